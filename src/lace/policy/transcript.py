"""The canonical exchange-plan transcript and its `E.` identifier (040, P2, P3).

Rule: a transcript is the one text that `write_transcript` gives for what it says; any other spelling is refused,
never repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from lace.datalog.language.syntax import Constant, Rule
from lace.errors import InvalidExchangePlan, InvalidText, excerpt
from lace.facts.predicates import ADVERTISED_FIELD, RUNTIME_PREDICATES
from lace.notation.digest import domain_digest
from lace.notation.fact import Fact, Predicate
from lace.notation.factline import format_fact, parse_fact
from lace.notation.identifiers import ExchangePlanId, LacegramId
from lace.notation.text import decode_text
from lace.policy.operand import Facet
from lace.policy.origin import Origin
from lace.policy.rewrite import body_atoms
from lace.values import dataclass

PROFILE = "lace-040-exchange-plan-v1"
_DOMAIN = "lace-exchange-plan/v1"

PLAN_PROFILE = Predicate("ExchangePlanProfile", 1)
PLAN_LOWERING = Predicate("ExchangePlanLowering", 1)
PLAN_RUNTIME = Predicate("ExchangePlanRuntime", 2)
PLAN_OPERAND = Predicate("ExchangePlanOperand", 3)
PLAN_ORIGIN = Predicate("ExchangePlanOperandOrigin", 2)
PLAN_FIELD = Predicate("ExchangePlanRequireAdvertisedField", 1)
PLAN_ALL_FIELDS = Predicate("ExchangePlanRequireAllAdvertisedFields", 0)
_PREDICATES = frozenset(
    (PLAN_PROFILE, PLAN_LOWERING, PLAN_RUNTIME, PLAN_OPERAND, PLAN_ORIGIN, PLAN_FIELD, PLAN_ALL_FIELDS)
)
_NAME_POSITION = 2  # of AdvertisedField(P,S,Name,Index,Value)


class Lowering(StrEnum):
    """How the merged selection becomes enforcement; a stricter one is another plan (040-LOWER-08)."""

    STANDARD = "standard-v1"
    ENCRYPTED = "standard-v1-encrypted"  # MaySend also needs TransportEncrypted()
    FROM_PEER = "standard-v1-from-peer"  # MayRequest also needs Peer(S)
    ENCRYPTED_FROM_PEER = "standard-v1-encrypted-from-peer"

    @classmethod
    def of(cls, *, require_encrypted: bool = False, peer_must_be_source: bool = False) -> Lowering:
        """The lowering with these two requirements."""
        table = {
            (False, False): cls.STANDARD,
            (True, False): cls.ENCRYPTED,
            (False, True): cls.FROM_PEER,
            (True, True): cls.ENCRYPTED_FROM_PEER,
        }
        return table[require_encrypted, peer_must_be_source]

    @property
    def require_encrypted(self) -> bool:
        """Whether sending needs an encrypted transport."""
        return self in (Lowering.ENCRYPTED, Lowering.ENCRYPTED_FROM_PEER)

    @property
    def peer_must_be_source(self) -> bool:
        """Whether a record is requested only from the proven peer's own advertisement."""
        return self in (Lowering.FROM_PEER, Lowering.ENCRYPTED_FROM_PEER)


@dataclass(frozen=True, slots=True)
class FieldRequirements:
    """Which advertised fields a plan needs: some names, or all fields."""

    names: frozenset[str] = frozenset()
    all_fields: bool = False

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> FieldRequirements:
        """Read off every rule and every atom, used or not (P3, 040-ADVREQ-03)."""
        names: set[str] = set()
        all_fields = False
        for atom in body_atoms(rules):
            if atom.predicate != ADVERTISED_FIELD:
                continue
            match atom.terms[_NAME_POSITION]:
                case Constant(name):  # 040-ADVREQ-01
                    names.add(name)
                case _:  # 040-ADVREQ-02
                    all_fields = True
        return cls(frozenset() if all_fields else frozenset(names), all_fields)

    def facts(self) -> list[str]:
        """Its transcript lines; beside the all-fields line no single name stands (P3)."""
        if self.all_fields:
            return [_line(PLAN_ALL_FIELDS)]
        return [_line(PLAN_FIELD, name) for name in self.names]


@dataclass(frozen=True, slots=True)
class OperandEntry:
    """What a transcript says of one operand."""

    facet: Facet
    module: LacegramId
    origin: Origin


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a canonical transcript says; `text` is that transcript."""

    operands: tuple[OperandEntry, OperandEntry]
    requirements: FieldRequirements
    lowering: Lowering
    text: str
    id: ExchangePlanId  # `E.` of the transcript bytes (040-EID-01)

    @property
    def lines(self) -> list[str]:
        """Its fact lines."""
        return self.text.split("\n")


def plan_id(transcript: bytes) -> ExchangePlanId:
    """The identifier of transcript bytes, which have no final LF (P2)."""
    return ExchangePlanId.of(domain_digest(_DOMAIN, transcript))


def write_transcript(
    operands: tuple[OperandEntry, OperandEntry],
    requirements: FieldRequirements,
    lowering: Lowering = Lowering.STANDARD,
) -> Transcript:
    """The canonical transcript of a plan (040-TRANS-01 to 040-TRANS-22)."""
    lines = [_line(PLAN_LOWERING, lowering), *requirements.facts()]
    lines += [_line(PLAN_RUNTIME, name, str(arity)) for name, arity in RUNTIME_PREDICATES]  # P3: all seven, always
    for index, entry in enumerate(operands):
        lines.append(_line(PLAN_OPERAND, str(index), entry.facet, entry.module))
        lines.append(_line(PLAN_ORIGIN, str(index), entry.origin))
    lines.sort(key=lambda line: (line.partition("(")[0].encode(), line.encode()))  # 040-TRANS-06
    text = "\n".join([_line(PLAN_PROFILE, PROFILE), *lines])
    return Transcript(operands, requirements, lowering, text, plan_id(text.encode()))


def read_transcript(data: bytes) -> Transcript:
    """What received transcript bytes say, if they are canonical (040-TRANS-24)."""
    try:
        text = decode_text(data, "transcript")
    except InvalidText as error:
        raise InvalidExchangePlan(error.message, rule="transcript-text", place=error.place, found=error.found) from None
    facts: dict[Predicate, list[tuple[str, ...]]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        predicate, values = _read_line(line, len(data), f"transcript line {number}")
        facts.setdefault(predicate, []).append(values)
    found = write_transcript(_read_operands(facts), _read_requirements(facts), _read_lowering(facts))
    if found.text != text:
        raise InvalidExchangePlan(
            "the transcript is not in canonical form",
            rule="transcript-canonical",
            place=_first_difference(text, found.text),
        )
    return found


def _line(predicate: Predicate, *values: str) -> str:
    return format_fact(Fact(predicate, values))


def _read_line(line: str, max_bytes: int, place: str) -> Fact:
    try:
        fact = parse_fact(line, max_bytes)
    except InvalidText as error:
        rule = "transcript-line" if line else "transcript-blank-line"  # 040-TRANS-05, 040-TRANS-03
        raise InvalidExchangePlan(error.message, rule=rule, place=place, found=error.found) from None
    if fact.predicate not in _PREDICATES:
        found = str(fact.predicate)
        raise InvalidExchangePlan("no such line in a transcript", rule="transcript-unknown", place=place, found=found)
    return fact


_Facts = dict[Predicate, list[tuple[str, ...]]]


def _read_operands(facts: _Facts) -> tuple[OperandEntry, OperandEntry]:
    modules = _by_index(facts, PLAN_OPERAND, "transcript-operands")
    origins = _by_index(facts, PLAN_ORIGIN, "transcript-origins")
    try:
        first, second = (
            OperandEntry(_read_facet(facet), LacegramId.parse(module), Origin.parse(origin))
            for (_, facet, module), (_, origin) in zip(modules, origins, strict=True)
        )
    except InvalidText as error:
        raise InvalidExchangePlan(error.message, rule="transcript-canonical", found=error.found) from None
    return first, second


def _read_facet(text: str) -> Facet:
    if text not in set(Facet):
        raise InvalidExchangePlan("no such facet in the standard profile", rule="facet", found=excerpt(text))
    return Facet(text)


def _by_index(facts: _Facts, predicate: Predicate, rule: str) -> Sequence[tuple[str, ...]]:
    rows = sorted(facts.get(predicate, ()))
    if [row[0] for row in rows] != ["0", "1"]:
        raise InvalidExchangePlan(
            f"{predicate.name} occurs once for each of the indexes 0 and 1",
            rule=rule,
            found=excerpt(", ".join(row[0] for row in rows)) if rows else "none",
        )
    return rows


def _read_requirements(facts: _Facts) -> FieldRequirements:
    names = frozenset(name for (name,) in facts.get(PLAN_FIELD, ()))
    return FieldRequirements(frozenset() if PLAN_ALL_FIELDS in facts else names, PLAN_ALL_FIELDS in facts)


def _read_lowering(facts: _Facts) -> Lowering:
    values = [value for (value,) in facts.get(PLAN_LOWERING, ())]
    if len(values) != 1 or values[0] not in set(Lowering):
        raise InvalidExchangePlan(
            "a transcript names one known lowering",
            rule="transcript-lowering",
            found=excerpt(", ".join(values)) if values else "none",
        )
    return Lowering(values[0])


def _first_difference(found: str, canonical: str) -> str:
    pairs = zip(found.split("\n"), canonical.split("\n"), strict=False)
    number = next((n for n, (left, right) in enumerate(pairs, start=1) if left != right), None)
    return f"transcript line {number}" if number else "end of the transcript"
