"""Advertisements, listings, blocks and sets of claims, line by line and at their bounds (050)."""

from __future__ import annotations

import pytest

from interlace.deciding import RECORDS, ROOT, SOURCE, reason_of, record, refuse
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, MAY_REQUEST
from lace.interlace.claims.advertisement import (
    Advertisement,
    FieldClaim,
    Listed,
    ListingReader,
    bare_claims,
    canonical_bytes,
    canonical_listing,
    is_record_id,
    record_digest,
    record_digests,
    require_record_ids,
    sendable_fields,
    with_format,
)
from lace.interlace.claims.cursor import AdvertisementCursor, decode_cursor
from lace.interlace.claims.partitions import AdvertisementSet, Partition, summarise
from lace.interlace.claims.sharedroots import is_worth_sharing, pack, split, unpack
from lace.interlace.inputs import ChangesReceived
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.reasons import ProtocolAbort
from lace.interlace.vocabulary import (
    TICK_READY,
    Block,
)
from lace.notation.fact import Fact, FactColumn

# --- advertisements --------------------------------------------------------------------------------------------------


def test_many_claims_are_written_as_one_by_one() -> None:
    fields = (FieldClaim("App", "0", "it's"), FieldClaim("Name", "0", "é" * 20))
    claims = [Advertisement(RECORDS[0]), Advertisement(RECORDS[1], fields), Advertisement(RECORDS[2])]
    each = [canonical_bytes(claim, "it's me", 1024) for claim in claims]
    assert canonical_listing(claims, "it's me", 1024) == b"".join(each)
    assert record_digests(claims, "it's me", 1024) == list(map(record_digest, each))


@pytest.mark.clause("050-ADVREC-06")
def test_a_field_line_fits_to_the_byte() -> None:
    claim = Advertisement(RECORDS[0], (FieldClaim("App", "0", "it's"), FieldClaim("é", "10", "y")))
    lines = canonical_bytes(claim, SOURCE, 1024).split(b"\n")[1:3]
    for line, kept in zip(lines, claim.fields, strict=True):
        alone = Advertisement(RECORDS[0], (kept,))
        for most, fits in ((len(line), True), (len(line) - 1, False)):
            assert sendable_fields(alone, SOURCE, most) == ((kept,) if fits else ())
            assert canonical_bytes(alone, SOURCE, most).count(b"\n") == 1 + fits
    assert sendable_fields(Advertisement(RECORDS[0]), SOURCE, 1024) == ()


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (RECORDS[0], True), ("X.00.H4", True), ("X.000.H4", True), ("X.0.H4", False), ("X..H4", False),
        ("X.00.", False), ("X.00", False), ("X.00.H3", False), ("XX.00.H4", False), ("1.00.H4", False),
        ("é.00.H4", False), (".00.H4", False), ("X.01.H4", False), ("X.00.H4.H5", True), ("", False), ("X", False),
        (f"{RECORDS[0]}\n", False), (f"\n{RECORDS[0]}", False), (f"{RECORDS[0]}\n{RECORDS[1]}", False),
        ("X.00.H4\n", False), ("X.00.\n", False),
    ],
)  # fmt: skip
def test_what_may_be_a_record_of_any_format(text: str, passes: bool) -> None:
    assert is_record_id(text) is passes
    if not passes:
        assert reason_of(lambda: require_record_ids([RECORDS[0], text])) == f"not a record id: {text[:80]!r}"
    else:
        require_record_ids([RECORDS[0], text])


def test_one_text_is_not_two_records() -> None:
    """Many ids are looked at as lines of one text, where a line feed inside one of them is the end of a line."""
    double = f"{RECORDS[0]}\n{RECORDS[1]}"
    for texts in ([double], [RECORDS[2], double], [double, RECORDS[2]], [double, ""]):
        with pytest.raises(ProtocolAbort) as caught:
            require_record_ids(texts)
        assert caught.value.clause == "050-ADVF-15"
    require_record_ids([])


def test_records_of_a_format_are_picked_out() -> None:
    mixed = [RECORDS[0], "X.00.H4", RECORDS[1], "X.00.H5"]
    assert with_format(mixed, frozenset({"H3"})) == RECORDS[:2]
    assert with_format(mixed, frozenset({"H4", "H5"})) == ["X.00.H4", "X.00.H5"]
    assert with_format(RECORDS, frozenset({"H3", "H4"})) == RECORDS
    assert with_format(RECORDS, frozenset({"H4"})) == []
    assert with_format([], frozenset({"H3"})) == []


def test_listed_claims_are_put_in_order_once_and_when_asked_for() -> None:
    asked: list[int] = []

    def order() -> list[Advertisement]:
        asked.append(1)
        return bare_claims(RECORDS[:3])

    listed = Listed(3, order)
    assert len(listed) == 3
    assert not asked
    assert list(listed) == bare_claims(RECORDS[:3]) == listed[:]
    assert listed[1] == Advertisement(RECORDS[1])
    assert listed == tuple(bare_claims(RECORDS[:3]))
    assert listed != bare_claims(RECORDS[:2])
    assert listed != 3
    assert asked == [1]


def listing(most: int = 5, names: frozenset[str] | None = None) -> ListingReader:
    return ListingReader(SOURCE, names, most)


@pytest.mark.clause("050-LIM-03", "050-ADVF-13", "050-ADVF-14", "050-ADVF-08", "050-ADVREC-08", "050-ADVF-06")
def test_a_listing_is_checked_line_by_line() -> None:
    reader = listing()
    assert reader.is_empty
    reader.add_records(RECORDS[:3], SOURCE)
    reader.add_records(RECORDS[1:5], SOURCE)  # repeats are one record
    assert len(reader) == 5
    assert reason_of(lambda: reader.add_records(RECORDS[5:6], SOURCE)) == "more than 5 records listed"
    assert reason_of(lambda: listing().add_records(RECORDS[:6], SOURCE)) == "more than 5 records listed"
    reader.add_records(RECORDS[:5], SOURCE)
    assert list(reader.finish()) == bare_claims(RECORDS[:5])
    assert reason_of(lambda: listing().add_records(RECORDS[:1], "Opq_t")) == "source 'Opq_t'"
    assert reason_of(lambda: listing().add_field((RECORDS[0], "Opq_t", "App", "0", "x"))) == "source 'Opq_t'"
    assert reason_of(lambda: listing().add_records(["X"], SOURCE)) == "not a record id: 'X'"
    named = listing(names=frozenset({"App"}))
    assert reason_of(lambda: named.add_field((RECORDS[0], SOURCE, "Name", "0", "x"))) == (
        "field 'Name' is outside the agreed schema"
    )
    assert reason_of(lambda: named.add_field((RECORDS[0], SOURCE, "App", "00", "x"))) == "field index '00'"
    named.add_field((RECORDS[0], SOURCE, "App", "0", "x"))
    assert not named.is_empty
    assert reason_of(named.finish) == f"a field of {RECORDS[0]!r}, which is not listed"
    named.add_field((RECORDS[0], SOURCE, "App", "0", "x"))  # an identical repeat
    assert reason_of(lambda: named.add_field((RECORDS[0], SOURCE, "App", "0", "y"))) == (
        f"two values for 'App' 0 of {RECORDS[0]}"
    )
    named.add_records([RECORDS[1], RECORDS[0]], SOURCE)
    named.add_field((RECORDS[0], SOURCE, "App", "10", "z"))
    named.add_field((RECORDS[0], SOURCE, "App", "2", "y"))
    fields = (FieldClaim("App", "0", "x"), FieldClaim("App", "2", "y"), FieldClaim("App", "10", "z"))
    assert list(named.finish()) == [Advertisement(RECORDS[0], fields), Advertisement(RECORDS[1])]
    other = listing()
    other.add_claim(Advertisement(RECORDS[0], fields))
    assert list(other.finish()) == [Advertisement(RECORDS[0], fields)]


def test_fresh_records_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = listing(40)
    monkeypatch.setattr(ListingReader, "_add_record", refuse)
    reader.add_records(RECORDS[:20], SOURCE)
    reader.add_records(RECORDS[20:], SOURCE)
    assert len(reader) == 40
    for again in (RECORDS[:1], ["X.00.H4"], [record(99)]):
        with pytest.raises(AssertionError):
            reader.add_records(again, SOURCE)


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("050-LIM-02", "050-FACT-10")
def test_a_block_has_at_most_its_bytes_and_knows_what_it_holds() -> None:
    block = BlockReader(Block.LISTING, 100, listing())
    tick = Fact(TICK_READY, ("1640995237:000000000",))
    block.read([tick], 60)
    assert (block.size, block.is_tick, block.lists) == (60, True, False)
    block.read(FactColumn(ADVERTISED, RECORDS[:2], (SOURCE,)), 40)
    assert (block.size, block.is_tick, block.lists) == (100, False, True)
    assert reason_of(lambda: block.read([tick], 1)) == "more than 100 bytes"
    fields = [Fact(ADVERTISED_FIELD, (RECORDS[0], SOURCE, "App", str(index), "x")) for index in range(2)]
    for given in (fields, FactColumn(ADVERTISED_FIELD, [RECORDS[0]], (SOURCE, "App", "0", "x"))):
        one = BlockReader(Block.LISTING, 1000, listing())
        one.read([Fact(ADVERTISED, (RECORDS[0], SOURCE)), Fact(ADVERTISED, (RECORDS[1], SOURCE))], 10)
        one.read(given, 10)
        assert [len(claim.fields) for claim in one.claims()] == [len(given), 0]
    taken = block.listing()
    assert (list(taken.added), list(taken.removed), taken.is_whole) == (bare_claims(RECORDS[:2]), [], True)
    block.changes = ChangesReceived(bare_claims(RECORDS[:1]), RECORDS[1:2], is_whole=False)
    assert block.listing().removed == RECORDS[1:2]
    assert not block.listing().is_whole
    requests = BlockReader(Block.REQUEST, 1000)
    assert not requests.is_tick
    requests.read([Fact(MAY_REQUEST, (RECORDS[0],)), tick, Fact(MAY_REQUEST, (RECORDS[1],))], 9)
    assert (list(requests.requested), requests.ticks) == (RECORDS[:2], ["1640995237:000000000"])
    assert not requests.is_tick
    assert reason_of(lambda: requests.read([Fact(ADVERTISED, (RECORDS[0], SOURCE))], 9)) == (
        "'Advertised/2' in a request block"
    )
    assert reason_of(lambda: requests.read_claims(bare_claims(RECORDS[:1]))) == "advertisements out of phase"


# --- sets of claims and their roots ----------------------------------------------------------------------------------


def test_a_set_of_claims_counts_what_changed() -> None:
    held = AdvertisementSet(1024)
    field = (FieldClaim("App", "0", "x"),)
    changes = held.put_all(bare_claims(RECORDS[:4]))
    assert (len(held), len(changes.added), changes.removed) == (4, 4, [])
    before = held.version
    changes = held.put_all([Advertisement(RECORDS[0]), Advertisement(RECORDS[1], field)])
    assert len(held) == 4
    assert held.version > before
    before = held.version
    assert changes == ([Advertisement(RECORDS[1], field)], [Advertisement(RECORDS[1])])
    assert held.drop(RECORDS[5]) is None
    assert held.drop(RECORDS[0]) == Advertisement(RECORDS[0])
    assert held.drop(RECORDS[0]) is None
    assert (len(held), RECORDS[0] in held, RECORDS[1] in held) == (3, False, True)
    assert held.version > before
    before = held.version
    assert held.get(RECORDS[1]) == Advertisement(RECORDS[1], field)
    assert held.get(RECORDS[0]) is None
    assert held.prefixes() == sorted({one[2:4] for one in RECORDS[1:4]})
    assert held.partition_count == len(held.prefixes())
    assert held.among(RECORDS) == RECORDS[1:4]
    other = held.changed(bare_claims(RECORDS[6:7]), RECORDS[1:2])
    assert (sorted(other), sorted(held)) == (sorted([*RECORDS[2:4], RECORDS[6]]), RECORDS[1:4])
    assert (len(other), len(held), held.version) == (3, 3, before)
    assert other.version > before
    moment = held.parts()
    held.replace_all(bare_claims(RECORDS[3:6]))
    assert held.version > before
    assert held.changes_since(moment) == (
        bare_claims(RECORDS[4:6]), [Advertisement(RECORDS[1], field), Advertisement(RECORDS[2])],
    )  # fmt: skip
    before = held.version
    held.replace_all(bare_claims(RECORDS[3:6]))
    held.replace_under({RECORDS[3][2:5]: bare_claims(RECORDS[3:4]), RECORDS[4][2:4]: bare_claims(RECORDS[4:5])})
    assert (held.version, sorted(held)) == (before, RECORDS[3:6])
    size = len(canonical_bytes(Advertisement(RECORDS[3]), SOURCE, 1024))
    assert held.size_under(SOURCE) == 3 * size
    assert held.size_under(SOURCE, RECORDS[3][2:4]) == size * held.count_under(RECORDS[3][2:4])
    fresh = AdvertisementSet(1024)
    fresh.replace_under({"zz": []})
    assert (fresh.prefixes(), fresh.version) == ([], 0)


def test_partitions_are_told_by_any_length_of_prefix() -> None:
    held = AdvertisementSet(1024)
    held.put_all(bare_claims(RECORDS))
    for length in (2, 3, 4):
        prefix = RECORDS[7][2 : 2 + length]
        inside = [one for one in RECORDS if one[2:].startswith(prefix)]
        assert held.under(prefix) == bare_claims(inside)
        assert held.count_under(prefix) == len(inside)
        assert held.summary(prefix, SOURCE) == summarise({prefix: bare_claims(inside)}, SOURCE, 1024)[0]
    children = held.children([RECORDS[7][2:4]], SOURCE)
    assert sum(child.count for child in children) == held.count_under(RECORDS[7][2:4])
    assert [child.prefix for child in children] == sorted({one[2:5] for one in RECORDS if one[2:4] == RECORDS[7][2:4]})
    first = held.summary(RECORDS[7][2:4], SOURCE)
    assert held.summary(RECORDS[7][2:4], SOURCE) is first
    assert held.known_summaries(SOURCE) == [first]
    assert RECORDS[7][2:4] not in held.unsummarised(SOURCE, held.prefixes())
    assert len(held.unsummarised(SOURCE, [*held.prefixes(), "zz"])) == held.partition_count - 1
    held.drop(RECORDS[7])
    assert held.known_summaries(SOURCE) == []


@pytest.mark.parametrize(
    ("counts", "shares", "expected"),
    [([4, 4, 4], 3, [4, 4, 4]), ([4, 4, 4], 2, [8, 4]), ([5, 1, 6], 2, [6, 6]), ([9, 1, 1], 2, [9, 2]), ([1], 4, [1]),
     ([2, 2, 2, 1], 2, [4, 3])],
)  # fmt: skip
def test_roots_are_worked_out_in_shares(counts: list[int], shares: int, expected: list[int]) -> None:
    field = (FieldClaim("App", "0", "x"),)
    numbers = iter(range(100))
    parts = {
        f"0{at}": [Advertisement(record(next(numbers)), field if at == 1 else ()) for _ in range(count)]
        for at, count in enumerate(counts)
    }
    cut = split(parts, shares)
    assert [sum(map(len, share.values())) for share in cut] == expected
    found = [one for share in cut for one in unpack(pack(share, SOURCE, 1024).run(None))]  # type: ignore[arg-type]
    assert found == summarise(parts, SOURCE, 1024)


def test_only_many_claims_are_worth_sharing() -> None:
    claims = bare_claims(RECORDS[:1]) * 4096
    assert not is_worth_sharing({"00": claims})
    assert is_worth_sharing({"00": claims, "01": claims[:1]})


def test_a_cursor_is_read_up_to_its_limit_and_for_its_plan() -> None:
    for fields in ((), (FieldClaim("App", "0", "it's"),)):
        claims = (Advertisement(RECORDS[0], fields), Advertisement(RECORDS[1]))
        cursor = AdvertisementCursor(plan="p", source=SOURCE, claims=claims, partitions=(Partition("00", 2, ROOT),))
        data = cursor.encode()
        assert data.startswith(b"[") is not bool(fields)
        size = len(data) if not fields else 10_000
        assert decode_cursor(data, "p", SOURCE, size) == cursor
        assert decode_cursor(data, "q", SOURCE, size) is None
        assert decode_cursor(data, "p", "other", size) is None
        assert decode_cursor(data, "p", SOURCE, len(data) - 1 if not fields else 100) is None
    plain = AdvertisementCursor(plan="p", source=SOURCE, claims=tuple(bare_claims(RECORDS[:2]))).encode()
    for broken in (
        plain[:-50],
        plain + b"\nX",
        plain + b"\n" + RECORDS[2].encode(),
        b"",
        b"[",
        plain.replace(b"B.", b"BB."),
    ):
        assert decode_cursor(broken, "p", SOURCE, 10_000) is None
