"""Claims in columns are the claims one by one: the same digests, roots, listings and answers, whatever is done to them
(050, P16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.deciding import SOURCE
from interlace.test_partitions import naive_root
from lace.differences.ids import EMPTY, framed, ids_of_texts, joined, same_ids
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, bare_claims, canonical_bytes, record_digest
from lace.interlace.claims.columns import ColumnClaims, column_parts, pack_columns
from lace.interlace.claims.cursor import AdvertisementCursor, decode_cursor
from lace.interlace.claims.partclaims import PackedClaims, Part, are_same, by_record, packed_as
from lace.interlace.claims.partitions import AdvertisementSet, Partition, summarise
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.claims.sharedroots import pack, split, unpack
from lace.interlace.effects import Reconcile, SetHandle
from lace.interlace.host import Call
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.thresholds import ClaimThresholds
from tries import tries

LABELS = (SOURCE, "it's \\ me", "S.é" * 20, "")
FIELD = (FieldClaim("Name", "0", "it's"), FieldClaim("Name", "1", "x" * 2000))
ODD = ("X.00.S1", "q.00aa.H4", "B.~~~~.other")


def h3(number: int) -> str:
    """Three records of one digest follow each other, and many share their first symbols."""
    start = bytes([number % 5, number % 3])
    return RecordHash.of("BPS"[number % 3], start + digest(str(number // 3).encode())[2:])


numbers = st.sets(st.integers(0, 120), max_size=60)
labels = st.sampled_from(LABELS)


def in_columns(records: Sequence[str]) -> AdvertisementSet:
    return AdvertisementSet(1024, column_parts(ids_of_texts(records)))


def one_by_one(claims: Sequence[Advertisement]) -> AdvertisementSet:
    whole = AdvertisementSet(1024)
    whole.put_all(claims)
    return whole


def told(held: AdvertisementSet, label: str) -> tuple[object, ...]:
    """All that can be heard of a set."""
    tops = held.prefixes()
    return (
        len(held), held.listing(), held.summaries(label), held.children(tops, label), held.size_under(label),
        [held.count_under(top) for top in tops], [held.under(top) for top in tops], held.fingerprint(label),
        [held.size_under(label, top) for top in tops], [held.family(top) for top in tops], sorted(held),
    )  # fmt: skip


@pytest.mark.clause("050-ADVREC-07", "050-PART-07", "050-LIST-09")
@tries(60)
@given(numbers, labels)
def test_a_set_in_columns_says_what_the_same_set_one_by_one_says(held: set[int], label: str) -> None:
    records = sorted(map(h3, held))
    packed_set, plain = in_columns(records), one_by_one(bare_claims(records))
    assert told(packed_set, label) == told(plain, label)
    for summary in packed_set.summaries(label):
        inside = [record for record in records if record[2:4] == summary.prefix]
        leaves = [record_digest(canonical_bytes(Advertisement(one), label, 1024)) for one in inside]
        assert (summary.count, b64a.decode(summary.root)) == (len(inside), naive_root(leaves))
    asked = [*map(h3, range(0, 120, 7)), *ODD, h3(0), h3(0)]
    assert packed_set.among(asked) == plain.among(asked) == [one for one in asked if one in records]
    for one in asked:
        assert packed_set.get(one) == plain.get(one)
        assert (one in packed_set) is (one in records)


@tries(60)
@given(numbers, st.binary(max_size=40), st.binary(max_size=40))
def test_ids_are_framed_as_their_texts_are(held: set[int], before: bytes, after: bytes) -> None:
    ids = ids_of_texts(map(h3, held))
    assert framed(ids, before, after) == [before + text.encode() + after for text in ids.texts()]
    stretches = [part.ids() for part in column_parts(ids).values() if isinstance(part, ColumnClaims)]
    assert same_ids(joined(stretches), ids)
    assert same_ids(joined([]), EMPTY)
    if held:
        assert not same_ids(ids, EMPTY)
        assert not same_ids(ids.take(slice(0, 1)), ids.take(slice(1, 2)))


claims = st.builds(
    lambda number, has_field: Advertisement(h3(number) if number >= 0 else ODD[number], FIELD if has_field else ()),
    st.integers(-3, 120),
    st.booleans() | st.just(False),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(claims, max_size=8)),
        st.tuples(st.just("drop"), st.lists(claims, max_size=8)),
        st.tuples(st.just("changed"), st.lists(claims, max_size=4), st.lists(claims, max_size=4)),
        st.tuples(st.just("below"), st.integers(2, 4), st.lists(claims, max_size=10)),
        st.tuples(st.just("all"), st.lists(claims, max_size=20)),
    ),
    max_size=6,
)


def step(held: AdvertisementSet, model: dict[str, Advertisement], change: tuple) -> AdvertisementSet:  # type: ignore[type-arg]
    """The same change to a set and to a dict of claims."""
    match change:
        case "put", given_:
            held.put_all(given_)
            model.update((claim.hash, claim) for claim in given_)
        case "drop", given_:
            gone = held.drop_all([claim.hash for claim in given_])
            assert sorted(gone) == sorted({model.pop(c.hash) for c in given_ if c.hash in model})
        case "changed", added, removed:
            before = told(held, SOURCE)
            later = held.changed(added, [claim.hash for claim in removed])
            assert told(held, SOURCE) == before
            for claim in removed:
                model.pop(claim.hash, None)
            model.update((claim.hash, claim) for claim in added)
            return later
        case "below", length, given_:
            found: dict[str, dict[str, Advertisement]] = {}
            for claim in given_:
                found.setdefault(claim.hash[2 : 2 + length], {})[claim.hash] = claim
            parts = {prefix: list(part.values()) for prefix, part in list(found.items())[1:]}
            parts |= {prefix: [] for prefix in list(found)[:1]}  # one of them is emptied
            held.replace_under(parts, partial(pack_columns, thresholds=ClaimThresholds(column_claims=2)))
            for record in [one for one in model if one[2 : 2 + length] in parts]:
                del model[record]
            model.update((claim.hash, claim) for part in parts.values() for claim in part)
        case "all", given_:
            held.replace_all({claim.hash: claim for claim in given_}.values())
            model.clear()
            model.update((claim.hash, claim) for claim in given_)
    return held


@tries(120)
@given(numbers, steps, labels)
def test_whatever_is_changed_in_columns_is_what_it_is_one_by_one(
    start: set[int], changes: list[tuple[object, ...]], label: str
) -> None:
    records = sorted(map(h3, start))
    held, model = in_columns(records), {claim.hash: claim for claim in bare_claims(records)}
    for change in changes:
        held.summaries(label)  # some roots are remembered, and those of what changes must not be
        moment, before = held.parts(), dict(model)
        held = step(held, model, change)
        plain = one_by_one(sorted(model.values()))
        assert told(held, label) == told(plain, label)
        came, went = held.changes_since(moment)
        assert came == sorted(claim for claim in model.values() if before.get(claim.hash) != claim)
        assert went == sorted(claim for claim in before.values() if model.get(claim.hash) != claim)
    other = in_columns(sorted(map(h3, range(0, 120, 2))))
    beyond = [claim for claim in sorted(model.values()) if claim.hash not in other]
    assert held.beyond(other) == one_by_one(sorted(model.values())).beyond(other) == beyond
    known = {summary.prefix: summary for summary in held.summaries(label)}
    held.share(other, label)
    assert list(known.values()) == held.summaries(label)
    assert told(held, label) == told(one_by_one(sorted(model.values())), label)
    assert all(known[one.prefix] == one for one in other.known_summaries(label))
    assert other.summaries(label) == in_columns(sorted(other)).summaries(label)


def test_columns_are_for_claims_that_are_nothing_but_an_id() -> None:
    many = {claim.hash: claim for claim in bare_claims([h3(n) for n in range(64)])}
    few = dict(list(many.items())[:63])
    assert isinstance(pack_columns({}, many), ColumnClaims)
    assert by_record(pack_columns({}, many)) == many
    assert pack_columns({}, few) is few
    for odd in (Advertisement(h3(70), FIELD), Advertisement(ODD[0])):
        mixed = {**many, odd.hash: odd}
        assert pack_columns({}, mixed) is mixed


def test_roots_are_remembered_under_so_many_labels_and_no_more() -> None:
    held = in_columns([h3(n) for n in range(10)])
    for number in range(40):
        held.summaries(f"S{number}")
    assert held.known_labels() == [f"S{number}" for number in range(8, 40)]
    held.put_all(bare_claims([h3(11)]))
    assert held.known_labels() == []
    assert held.summaries("S39") == in_columns([*map(h3, range(10)), h3(11)]).summaries("S39")


# --- a peer's claims --------------------------------------------------------------------------------------------------


def learn(theirs: AdvertisementSet, own: AdvertisementSet, claims: PeerClaims) -> list[object]:
    """All questions that it takes to learn what a peer claims that answers honestly, and what came of each."""
    asked: list[object] = []
    wanted = Reconcile(own=SetHandle(0, len(own)), offered=theirs.summaries(SOURCE))
    while True:
        call = Call()
        found = claims.reconcile(wanted, own, call)
        assert found.count == len(claims)
        asked.append((dict(found.unknown), found.changed, call.rows))
        narrow = [one.prefix for one in found.unknown if len(one.prefix) < 4 and one.count > 1]
        listed = [one for one in found.unknown if one.prefix not in narrow]
        if not found.unknown:
            return asked
        wanted = Reconcile(
            own=SetHandle(0, len(own)),
            offered=theirs.children(narrow, SOURCE),
            parents=narrow,
            listed=listed,
            claims=sorted(claim for one in listed for claim in theirs.under(one.prefix)),
        )


@pytest.mark.clause("050-PART-14", "050-RECON-03", "050-LIST-09")
@tries(60)
@given(numbers, numbers, numbers, st.sets(st.sampled_from(ODD)), st.integers(0, 3))
def test_what_is_asked_of_a_peer_is_the_same_whether_ours_is_in_columns_or_not(
    theirs: set[int], ours: set[int], held: set[int], odd: set[str], with_fields: int
) -> None:
    of_peer = [Advertisement(h3(n), FIELD[:1] if n < with_fields else ()) for n in sorted(theirs)]
    peer = one_by_one([*of_peer, *bare_claims(sorted(odd))])
    mine, before = sorted(map(h3, ours)), sorted(map(h3, held))
    ends: list[tuple[object, ...]] = []
    for make in (in_columns, lambda records: one_by_one(bare_claims(records))):
        claims = PeerClaims(SOURCE, 1024)
        claims.restore(AdvertisementCursor(plan="p", source=SOURCE, claims=(), bare=ids_of_texts(before)))
        own = make(mine)
        asked = learn(peer, own, claims)
        assert claims.listing() == peer.listing()
        assert own.listing() == bare_claims(mine)  # parts are shared, and never changed
        changes = claims.take_changes()
        again = learn(peer, own, claims)
        assert again[-1][1] is False  # type: ignore[index]
        ends.append((asked, changes, claims.among([*mine, *ODD]), claims.fingerprint(), own.summaries(SOURCE)))
    assert ends[0] == ends[1]


def test_a_partition_that_is_ours_is_held_as_ours() -> None:
    """Nothing is made of its claims one by one."""
    records = sorted(h3(n) for n in range(100))
    own, claims = in_columns(records), PeerClaims(SOURCE, 1024)
    looked: list[Part] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnClaims, "hashes", lambda self: looked.append(self))
        found = claims.reconcile(Reconcile(own=SetHandle(0, 100), offered=own.summaries(SOURCE)), own, Call())
        assert (found.unknown, found.count, found.changed) == ({}, 100, True)
        found = claims.reconcile(Reconcile(own=SetHandle(0, 100), offered=own.summaries(SOURCE)), own, Call())
        assert (found.unknown, found.count, found.changed) == ({}, 100, False)
        assert claims.as_cursor("p").claims == ()
    assert looked == []
    assert claims.listing() == bare_claims(records)


# --- cursors ----------------------------------------------------------------------------------------------------------


def same(one: AdvertisementCursor | None, other: AdvertisementCursor) -> bool:
    return one == other and one is not None and same_ids(one.bare, other.bare)


@tries(60)
@given(numbers, st.lists(claims, max_size=5), st.binary(max_size=40), st.integers(0, 200))
def test_a_cursor_with_columns_survives_its_bytes_and_never_breaks_on_others(
    held: set[int], others: list[Advertisement], noise: bytes, place: int
) -> None:
    known = in_columns(sorted(map(h3, held))).summaries(SOURCE)
    cursor = AdvertisementCursor(
        plan="E.x", source=SOURCE, claims=tuple(others), partitions=tuple(known), bare=ids_of_texts(map(h3, held))
    )
    data = cursor.encode()
    assert same(decode_cursor(data, "E.x", SOURCE, 1 << 20), cursor)
    assert decode_cursor(data, "E.y", SOURCE, 1 << 20) is None
    assert decode_cursor(data, "E.x", "T", 1 << 20) is None
    if held:
        assert decode_cursor(data, "E.x", SOURCE, len(data) - 1) is None
        assert same(decode_cursor(data, "E.x", SOURCE, max(len(data), 50_000)), cursor)
        assert decode_cursor(data[:-1], "E.x", SOURCE, 1 << 20) is None
        assert decode_cursor(data + b"B", "E.x", SOURCE, 1 << 20) is None
    spoiled = data[:place] + noise + data[place + len(noise) :]
    decode_cursor(spoiled, "E.x", SOURCE, 1 << 20)  # whatever it is, it is not an error
    for head in (b"", b",-9]\n", b',"x"]\n', b",0,0]\n"):
        assert decode_cursor(b'["lace-advertisement-cursor/2"' + head + noise, "E.x", SOURCE, 1 << 20) is None


@tries(30)
@given(numbers, numbers, st.lists(claims, max_size=6))
def test_claims_are_kept_and_taken_up_again_as_they_were(
    held: set[int], ours: set[int], more: list[Advertisement]
) -> None:
    own, before = in_columns(sorted(map(h3, ours))), PeerClaims(SOURCE, 1024)
    theirs = one_by_one([*bare_claims(sorted(map(h3, held))), *more])
    learn(theirs, own, before)
    kept = decode_cursor(before.as_cursor("p").encode(), "p", SOURCE, 1 << 20)
    assert kept is not None
    after = PeerClaims(SOURCE, 1024)
    after.restore(kept)
    assert after.listing() == before.listing() == theirs.listing()
    for rows in (None, 0):  # of partitions that were narrowed no root was ever told as a whole
        [(unknown, changed, worked_out)] = learn(theirs, own, after)  # type: ignore[misc]
        assert (unknown, changed) == ({}, False)
        assert rows is None or worked_out == rows


def parts_of(records: Sequence[str]) -> Mapping[str, Sequence[Advertisement]]:
    return {prefix: list(part) for prefix, part in column_parts(ids_of_texts(records)).items()}


def test_many_partitions_are_worked_out_a_share_at_a_time() -> None:
    records = [h3(n) for n in range(300)]
    whole = summarise(parts_of(records), SOURCE, 1024)
    for most in (1, 50, 299, 300, 301):
        assert summarise(parts_of(records), SOURCE, 1024, most) == whole
        assert summarise(column_parts(ids_of_texts(records)), SOURCE, 1024, most) == whole
        assert summarise({}, SOURCE, 1024, most) == []
    [job] = [pack(share, SOURCE, 1024) for share in split(column_parts(ids_of_texts(records)), 1)]
    assert unpack(job.run(BytesIO())) == whole
    assert summarise({"00": ()}, SOURCE, 1024) == [Partition("00", 0, b64a.encode(naive_root([])))]


def test_claims_are_packed_where_packed_ones_stood_and_they_can_be() -> None:
    records = [h3(n) for n in range(300)]
    prefix, packed = next((key, part) for key, part in column_parts(ids_of_texts(records)).items() if len(part) > 1)
    plain = {record: Advertisement(record, ()) for record in packed.hashes()[:1]}
    found = packed_as(packed, plain)
    assert isinstance(found, PackedClaims)
    assert found.hashes() == list(plain)
    assert packed_as(packed, {}) == {}
    assert packed_as({}, plain) is plain
    [record] = plain
    told = {record: Advertisement(record, FIELD[:1])}
    assert packed_as(packed, told) is told
    assert prefix in packed.hashes()[0]


def test_parts_are_the_same_if_their_claims_are() -> None:
    records = [h3(n) for n in range(300)]
    first, second = (column_parts(ids_of_texts(records)) for _ in range(2))
    one, other = list(first.values())[:2]
    for part in (one, by_record(one)):
        assert are_same(part, part)
        assert are_same(part, second[next(iter(first))])
        assert are_same(part, dict(by_record(one)))
        assert not are_same(part, other)
        assert not are_same(part, {})
