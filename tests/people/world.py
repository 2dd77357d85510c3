"""A small group for tests of the core rules: keys, records with times of their own, and who is what over any of them.

Rule: every record is really signed and every answer comes from the shipped rules over the facts of those records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from lace.datalog.engine import evaluate
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.syntax import Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_program
from lace.datalog.source import MemorySource
from lace.facts.derive import derive_facts
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.people import forms
from lace.people.root import Root
from lace.people.wording import TemplateWords, core_rules, fill_words, shipped
from lace.records.keys import SigningKey
from lace.records.model import Plex, Seal
from lace.records.validate import validate
from lace.records.write import encode_record

GROUP = "club"


@lru_cache(maxsize=64)
def key(name: str) -> SigningKey:
    """The key of a name: the same in every run, so that a seed repeats a failure."""
    from lace.records.keys import SigningSecret

    return SigningKey.from_secret(SigningSecret(name.encode().ljust(32, b".")))


def v(name: str) -> Verifier:
    return key(name).verifier


def at(second: int) -> TAI:
    return TAI(f"{2_000_000_000 + second:010d}:000000000")


def sealed(plex: Plex, signer: str) -> Seal:
    return key(signer).seal(plex, aux=b"\x01" * 32)


def note(signer: str, second: int, name: str = "note", app: str = "notes") -> Seal:
    return sealed(Plex(group=GROUP, app=app, name=name, tai=at(second)), signer)


@lru_cache(maxsize=100_000)
def facts_of(record: Seal) -> tuple[Fact, ...]:
    return tuple(derive_facts(validate(encode_record(record), verify_signature=False)))


@lru_cache(maxsize=100_000)
def claims_of(record: Seal) -> tuple[Fact, ...]:
    """What a peer says of a record that it offers."""
    fields = [fact.values for fact in facts_of(record) if fact.predicate.name == "Field"]
    said = [Fact(ADVERTISED_FIELD, (record.hash, "peer", name, index, value)) for _, name, index, value in fields]
    return (Fact(ADVERTISED, (record.hash, "peer")), *said)


@lru_cache(maxsize=8)
def _program(founder: str, *, travels: bool) -> CheckedProgram:
    root = Root(GROUP, v(founder))
    words = TemplateWords(root=root, apps=("notes",))
    text = fill_words(shipped("templates", "members.select.lace"), words, "select") if travels else core_rules(root)
    return check_program(read_annotated(text).program, LOCAL_PROFILE)


class Seen:
    """Who is what over some records."""

    def __init__(
        self, records: Iterable[Seal], founder: str = "anna", *, travels: bool = False, offered: Iterable[Seal] = ()
    ) -> None:
        facts = [fact for record in records for fact in facts_of(record)]
        facts += [fact for record in offered for fact in claims_of(record)]
        self.result = evaluate(_program(founder, travels=travels), [MemorySource(facts)])

    def rows(self, name: str, arity: int) -> Sequence[tuple[str, ...]]:
        return self.result.rows(Predicate(name, arity))

    def names(self, predicate: str, among: Iterable[str]) -> set[str]:
        """Which of these people a predicate with one column holds for."""
        found = {row[0] for row in self.rows(predicate, 1)}
        return {name for name in among if v(name) in found}

    def counts(self, record: Seal) -> bool:
        """Whether what somebody wrote counts: its key acts since before then, or it stands."""
        signer = record.signed_by
        if (record.hash, signer) in self.rows("Standing", 2):
            return True
        return any(who == signer and record.plex.tai >= since for who, since in self.rows("Author", 2))


def admin(name: str, by: str, second: int) -> Seal:
    return sealed(forms.admin_in(GROUP, v(name), at(second)), by)


def member(name: str, by: str, second: int, **words: str) -> Seal:
    role = forms.Role(words.pop("role", "member"))
    return sealed(forms.member(GROUP, v(name), at(second), role=role, **words), by)


def invite(one_time: str, by: str, second: int, until: int = 1000, uses: int = 1, role: str = "member") -> Seal:
    plex = forms.invite(GROUP, v(one_time), at(second), until=at(until), uses=uses, role=forms.Role(role))
    return sealed(plex, by)


def withdrawn(one_time: str, by: str, second: int, *stands: Seal) -> Seal:
    (plex,) = forms.invite_withdrawn(GROUP, v(one_time), at(second), hashes(stands))
    return sealed(plex, by)


def left(name: str, by: str, second: int, *stands: Seal) -> Seal:
    (plex,) = forms.left(GROUP, v(name), at(second), hashes(stands))
    return sealed(plex, by)


def dismissed(name: str, by: str, second: int, *stands: Seal) -> Seal:
    (plex,) = forms.admin_out(GROUP, v(name), at(second), hashes(stands))
    return sealed(plex, by)


def device(name: str, person: str, by: str, second: int) -> Seal:
    return sealed(forms.device(GROUP, v(name), v(person), at(second)), by)


def succession(name: str, following: str, second: int) -> tuple[Seal, Seal]:
    """The commitment of a key, and the record that it commits to."""
    named = sealed(forms.successor(GROUP, v(name), v(following), at(second)), following)
    return sealed(forms.commitment(GROUP, v(name), named.hash, at(second)), name), named


def hashes(records: Iterable[Seal]) -> list[RecordHash]:
    return [record.hash for record in records]
