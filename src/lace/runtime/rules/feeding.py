"""Which of a peer's claims an evaluation has to see (050, request evaluation).

Rule: leaving a claim out never changes an answer. A record that we may send we also have, so a claim about it can not
be requested; whether it can matter to other records, the rules' texts tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum, auto

from lace.datalog.language.syntax import Cardinality, Rule
from lace.datalog.planning.stratify import reachable
from lace.facts.predicates import ADVERTISEMENT_PREDICATES, SELECT_ADVERTISED
from lace.interlace.claims.advertisement import Advertisement
from lace.policy.compile import ExchangePlan
from lace.policy.rewrite import atom_of, body_atoms

_MANY = 8  # removing one in so many entries of a dict costs as much as making a new dict


class Feeding(Enum):
    """How claims reach the engine."""

    ALWAYS = auto()  # what we send depends on claims
    TOGETHER = auto()  # claims about one record may matter to another: all, if any record is missing
    SEPARATE = auto()  # only claims about missing records


def feeding_of(plan: ExchangePlan) -> Feeding:
    """What the texts of both operands allow."""
    if plan.have_reads_advertisements:
        return Feeding.ALWAYS
    separate = all(_is_separate(operand.module.rules) for operand in plan.operands)
    return Feeding.SEPARATE if separate else Feeding.TOGETHER


def _is_separate(rules: tuple[Rule, ...]) -> bool:
    """Whether SelectAdvertised(P,S) reads claims about P only, and no helper reads claims at all."""
    read = reachable(rules, (SELECT_ADVERTISED,))
    for rule in rules:
        if rule.head.predicate == SELECT_ADVERTISED:
            for literal in rule.body:
                atom = atom_of(literal)
                if atom is None or atom.predicate not in ADVERTISEMENT_PREDICATES:
                    continue
                if isinstance(literal, Cardinality) or atom.terms[0] != rule.head.terms[0]:
                    return False
        elif rule.head.predicate in read and any(
            atom.predicate in ADVERTISEMENT_PREDICATES for atom in body_atoms((rule,))
        ):
            return False
    return True


class ClaimBook:
    """A peer's claims, which of them the engine has, and which are about records that we cannot send."""

    def __init__(self, feeding: Feeding = Feeding.ALWAYS) -> None:
        self._feeding = feeding
        self._claims: dict[str, Advertisement] = {}
        self._fed: dict[str, Advertisement] = {}
        self._sendable: set[str] = set()
        self._missing: dict[str, None] = {}  # in the order of the claims, which are sorted

    def change(
        self, added: Iterable[Advertisement], removed: Iterable[Advertisement]
    ) -> tuple[list[Advertisement], list[Advertisement]]:
        """The peer's state changed: what the engine has to be given and to forget for that."""
        forget: list[Advertisement] = []
        for claim in removed:
            self._claims.pop(claim.hash, None)
            self._missing.pop(claim.hash, None)
            fed = self._fed.pop(claim.hash, None)
            if fed is not None:
                forget.append(fed)
        fresh = list(added)
        hashes = [record for record, _ in fresh]
        self._claims.update(zip(hashes, fresh, strict=True))
        sendable = self._sendable
        unsendable = [record for record in hashes if record not in sendable] if sendable else hashes
        self._missing.update(dict.fromkeys(unsendable))
        if self._feeding is not Feeding.ALWAYS:
            return [], forget
        self._fed.update((claim.hash, claim) for claim in fresh)
        return fresh, forget

    def note_sendable(self, added: Collection[str], removed: Collection[str]) -> None:
        """What we may send changed."""
        for record in removed:
            self._sendable.discard(record)
            if record in self._claims:
                self._missing[record] = None
        self._sendable.update(added)
        if len(added) >= len(self._missing) and self._missing.keys() <= self._sendable:
            self._missing.clear()  # what was missing has come
        elif len(added) * _MANY >= len(self._missing):
            sendable = self._sendable
            self._missing = {record: None for record in self._missing if record not in sendable}
        else:
            for record in added:
                self._missing.pop(record, None)

    def feed(self) -> list[Advertisement]:
        """Claims that the engine has to be given now."""
        if not self._missing or self._feeding is Feeding.ALWAYS:
            return []
        wanted = self._missing if self._feeding is Feeding.SEPARATE else self._claims
        claims, fed = self._claims, self._fed
        if not fed and len(wanted) == len(claims):  # all of them: what is missing was claimed
            self._fed = dict(claims)
            return list(claims.values())
        unfed = {record: claims[record] for record in wanted if record not in fed}
        fed.update(unfed)
        return list(unfed.values())

    def start_over(self) -> Collection[Advertisement]:
        """The engine starts over: the claims it needs from the start."""
        if self._feeding is Feeding.ALWAYS:
            return self._fed.values()
        self._fed.clear()
        return ()

    @property
    def fed(self) -> Collection[Advertisement]:
        """The claims that the engine has."""
        return self._fed.values()
