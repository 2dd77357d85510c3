"""020: the facts of valid records, complete and with nothing beside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given

from lace.datalog.admission import check_fact
from lace.datalog.source import MemorySource
from lace.errors import InvalidRecord, InvalidText, LimitExceeded
from lace.facts.derive import derive_facts, field_occurrences, link_occurrences
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK, RECORD_PREDICATES
from lace.limits import EngineLimits
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.lace import open_lace
from lace.records.link import parse_link
from lace.records.model import Blob, Plex, Record, Seal
from lace.records.validate import validate
from lace.records.write import encode_record
from records.strategies import BLOBS, KEY, PLEXES, RECORDS, SEALS, blob_bytes, plex_bytes, seal_bytes


def facts_of(stored: bytes) -> set[Fact]:
    listed = list(derive_facts(validate(stored)))
    assert len(listed) == len(set(listed)), "a fact was derived twice"
    return set(listed)


def expected_facts(record: Record) -> set[Fact]:
    """The fact set of 020-FIELD-17 to 020-FIELD-19, written down from the specification."""
    identifier = str(record.hash)
    plex = record.plex if isinstance(record, Seal) else record if isinstance(record, Plex) else None
    blob = plex.blob if plex else record
    assert isinstance(blob, Blob)
    facts = {Fact(HAVE, (identifier,)), field(identifier, "Type", 0, identifier[0])}
    facts.add(field(identifier, "Data-Length", 0, str(len(blob.data))))
    if plex:
        facts |= {field(identifier, "Group", 0, plex.group), field(identifier, "App", 0, plex.app)}
        facts |= {field(identifier, "Name", 0, plex.name), field(identifier, "TAI", 0, plex.tai)}
        facts.add(Fact(BLOB_HASH, (identifier, plex.blob.hash)))
        seen: Counter[str] = Counter()
        for name, value in plex.headers:
            facts.add(field(identifier, name, seen[name], value))
            link = parse_link(name, value)
            if link:
                facts.add(Fact(RECORD_LINK, (identifier, name, str(seen[name]), link.data, link.target)))
            seen[name] += 1
    if isinstance(record, Seal):
        facts |= {field(identifier, "Signed-By", 0, record.signed_by)}
        facts |= {field(identifier, "Signature", 0, record.signature)}
        facts.add(Fact(PLEX_HASH, (identifier, record.plex.hash)))
    return facts


def field(record: str, name: str, index: int, value: str) -> Fact:
    return Fact(FIELD, (record, name, str(index), value))


@pytest.mark.clause("020-FIELD-17", "020-FIELD-03", "020-FIELD-02", "020-FACT-06", "020-FACT-07")
@given(BLOBS)
def test_the_facts_of_a_blob(blob: Blob) -> None:
    facts = facts_of(encode_record(blob))
    assert facts == expected_facts(blob)
    assert len(facts) == 3


@pytest.mark.clause(
    "020-FIELD-18", "020-FIELD-04", "020-FIELD-06", "020-FIELD-07", "020-FIELD-08", "020-FIELD-09", "020-FIELD-12",
    "020-FIELD-14", "020-FACT-09", "020-FIELD-25",
)  # fmt: skip
@given(PLEXES)
def test_the_facts_of_a_plex(plex: Plex) -> None:
    assert facts_of(encode_record(plex)) == expected_facts(plex)


@pytest.mark.clause(
    "020-FIELD-19", "020-FIELD-05", "020-FIELD-10", "020-FIELD-11", "020-FIELD-12", "020-FIELD-21", "020-FACT-10",
    "020-EMBED-01",
)  # fmt: skip
@given(SEALS)
def test_the_facts_of_a_seal_are_those_of_its_plex_and_three_more(seal: Seal) -> None:
    facts = facts_of(encode_record(seal))
    assert facts == expected_facts(seal)
    of_plex = {
        Fact(fact.predicate, (str(seal.hash), *fact.values[1:]))
        for fact in facts_of(encode_record(seal.plex))
        if fact.values[1:2] != ("Type",)
    }
    assert of_plex < facts
    assert len(facts) == len(of_plex) + 4  # Type S, Signed-By, Signature, PlexHash


@pytest.mark.clause("020-EMBED-02", "020-EMBED-04", "020-FIELD-20", "020-ID-01")
@given(SEALS)
def test_an_outer_record_says_nothing_about_the_inner_ones_as_subjects(seal: Seal) -> None:
    facts = facts_of(encode_record(seal))
    assert {fact.values[0] for fact in facts} == {str(seal.hash)}
    assert Fact(HAVE, (str(seal.plex.hash),)) not in facts
    assert Fact(PLEX_HASH, (str(seal.hash), str(seal.plex.hash))) in facts
    assert Fact(BLOB_HASH, (str(seal.hash), str(seal.plex.blob.hash))) in facts
    inner = facts_of(encode_record(seal.plex)) | facts_of(encode_record(seal.plex.blob))
    assert not {
        fact for fact in inner if fact.predicate == PLEX_HASH or fact.values[1:2] in (("Signed-By",), ("Signature",))
    }


@given(RECORDS)
def test_the_bulk_form_says_the_same(record: Record) -> None:
    valid = validate(encode_record(record))
    fields = field_occurrences(valid)
    facts = set(derive_facts(valid))
    subject = str(record.hash)
    assert {field(subject, *one) for one in fields} == {fact for fact in facts if fact.predicate == FIELD}
    links = {Fact(RECORD_LINK, (subject, name, str(i), data, to)) for name, i, data, to in link_occurrences(fields)}
    assert links == {fact for fact in facts if fact.predicate == RECORD_LINK}
    assert all(len(fact.values) == fact.predicate.arity and fact.predicate in RECORD_PREDICATES for fact in facts)


def fields_named(stored: bytes, name: str) -> list[tuple[str, str]]:
    return [fact.values[2:] for fact in derive_facts(validate(stored)) if fact[0] == FIELD and fact[1][1] == name]


@pytest.mark.clause("020-FIELD-13", "020-FIELD-15", "020-FIELD-16")
def test_indexes_count_the_occurrences_of_one_name() -> None:
    stored = plex_bytes(extras=b"A: same\n" * 12 + b"B: x\nC: 2\nC: 1\n")
    assert fields_named(stored, "A") == [(str(index), "same") for index in range(12)]
    assert fields_named(stored, "B") == [("0", "x")]
    assert fields_named(stored, "C") == [("0", "2"), ("1", "1")]


@pytest.mark.clause("020-FIELD-01", "010-EXTRA-08")
def test_names_are_exact() -> None:
    stored = plex_bytes(extras=b"X-A: 1\nX-A: 2\ngroup: other\nx-a: 3\n")
    assert fields_named(stored, "X-A") == [("0", "1"), ("1", "2")]
    assert fields_named(stored, "x-a") == [("0", "3")]
    assert fields_named(stored, "Group") == [("0", "u")]
    assert fields_named(stored, "group") == [("0", "other")]


@pytest.mark.clause(
    "020-FACT-08", "020-FIELD-22", "020-FIELD-23", "020-FIELD-24", "010-LINK-07", "010-LINK-08", "020-ID-04"
)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_malformed_link_stays_a_field_and_leaves_a_gap(sealed: bool) -> None:
    target = validate(blob_bytes()).hash
    plex = plex_bytes(extras=f"+Link: source {target}\n+Link: broken\n+Link: other P.0000.H9\n".encode())
    stored = seal_bytes(plex) if sealed else plex
    assert [index for index, _ in fields_named(stored, "+Link")] == ["0", "1", "2"]
    links = [fact.values[1:] for fact in derive_facts(validate(stored)) if fact.predicate == RECORD_LINK]
    assert links == [("+Link", "0", "source", target), ("+Link", "2", "other", "P.0000.H9")]


@pytest.mark.clause("020-FACT-02", "020-FACT-03", "020-FACT-04", "020-FACT-05")
@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(blob_bytes()[:-1] + b"!", id="digest"),
        pytest.param(plex_bytes(b"Group: u\n"), id="structure"),
        pytest.param(plex_bytes(inner=blob_bytes()[:-1] + b"!"), id="embedded"),
        pytest.param(seal_bytes(plex_bytes(), signed_by="V." + "0" * 43 + ".H3"), id="signature"),
    ],
)
def test_an_invalid_record_has_no_facts(stored: bytes) -> None:
    source = MemorySource()
    with pytest.raises(InvalidRecord):
        source = MemorySource(derive_facts(validate(stored)))
    assert not list(source.predicates())


@pytest.mark.clause("020-ID-01", "020-ID-02")
@pytest.mark.parametrize(
    "change", [lambda t: t.lower(), lambda t: t[:-2] + "h3", lambda t: "p" + t[1:], lambda t: t + " ", lambda t: t[:-3]]
)
def test_identifiers_are_exact(change: object) -> None:
    text = str(validate(plex_bytes()).hash)
    assert len(RecordHash.parse(text).payload) == 43
    assert callable(change)
    with pytest.raises(InvalidText):
        RecordHash.parse(change(text))


@pytest.mark.clause("020-FACT-13")
def test_a_value_over_the_limit_is_refused_and_one_of_exactly_the_limit_is_not() -> None:
    for value in ("x" * 1024, "é" * 512):
        check_fact(Fact(FIELD, ("P", "N", "0", value)), EngineLimits(max_value_bytes=1024))
        with pytest.raises(LimitExceeded):
            check_fact(Fact(FIELD, ("P", "N", "0", value)), EngineLimits(max_value_bytes=1023))
    stored = plex_bytes(extras=b"A: " + b"x" * 1021 + b"\n")
    for fact in derive_facts(validate(stored)):
        check_fact(fact, EngineLimits(max_value_bytes=1024))


@pytest.mark.clause("020-FACT-11", "020-FACT-12")
@pytest.mark.parametrize("value", ["e\u0301", "\ud800", "ok\udc80"])
def test_a_value_that_is_no_nfc_text_is_refused(value: str) -> None:
    with pytest.raises(InvalidText):
        check_fact(Fact(FIELD, ("P", "N", "0", value)), EngineLimits(max_value_bytes=1024))


@pytest.mark.clause("020-FACT-15", "020-FACT-14")
def test_facts_are_a_set() -> None:
    valid = validate(seal_bytes(plex_bytes(extras=b"A: b\nA: b\n")))
    once = MemorySource(derive_facts(valid))
    twice = MemorySource([*derive_facts(valid), *derive_facts(valid)])
    for predicate in RECORD_PREDICATES:
        assert list(once.iterate(predicate)) == list(twice.iterate(predicate))
    assert once.count(FIELD) == 10
    assert KEY.verifier in {row[3] for row in once.iterate(FIELD)}


@pytest.mark.clause("020-ID-05")
def test_a_record_of_an_unknown_format_is_never_the_subject_of_a_fact(tmp_path: Path) -> None:
    """It may be the target of a link; bytes that claim it leave nothing, whichever door they come through."""
    foreign = f"P.{'0' * 43}.H9"
    headers = (("evidence+Link", f"seen {foreign}"),)
    plex = Plex(group="u", app="a", name="n", tai=TAI("1640995200:000000000"), headers=headers, blob=Blob(b"x"))
    stored = encode_record(plex)
    claimed = stored.replace(b".H3", b".H9", 1)
    assert claimed != stored
    with pytest.raises(InvalidRecord):
        validate(claimed)
    (tmp_path / "bundle").write_bytes(claimed + stored)
    with open_lace(tmp_path / "x.lace", create=True) as lace:
        report = lace.import_(tmp_path / "bundle")
        assert (report.stored, report.rejected_total) == (1, 1)
        facts = list(lace.facts())
    assert {fact.values[0] for fact in facts} == {str(plex.hash)}
    assert [fact.values for fact in facts if fact.predicate.name == "RecordLink"] == [
        (str(plex.hash), "evidence+Link", "0", "seen", foreign)
    ]
