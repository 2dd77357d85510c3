"""Partitions, Merkle roots, narrowing and cursors (050 LIST, PART, RECON, P16)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from interlace.pair import Pair, blob, group_module, hash_of, make_pair, plex
from interlace.scripted import Scripted, limits_with
from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, canonical_bytes
from lace.interlace.claims.cursor import AdvertisementCursor, decode_cursor
from lace.interlace.claims.merkle import EMPTY, partition_roots, roots_without_one
from lace.interlace.claims.partitions import AdvertisementSet, Partition
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.effects import EndBlock, Finish, SendFacts, SetHandle, Summarise, TakeClaims
from lace.interlace.host import Call
from lace.interlace.loop.partitioned import Offers, Reconciliation
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason
from lace.interlace.setup.hello import FieldSchema
from lace.limits import ExchangeLimits
from lace.notation.digest import digest, domain_digest
from lace.notation.factline import format_fact
from lace.notation.identifiers import RecordHash

mark = pytest.mark
HELLO_WORLD = hash_of(blob(b"hello world"))
SOURCE = "Opq_s"


def record(number: int, kind: str = "B") -> RecordHash:
    return RecordHash.of(kind, digest(str(number).encode()))


def claims(*numbers: int) -> list[Advertisement]:
    return [Advertisement(record(number)) for number in numbers]


def filled(items: list[Advertisement]) -> AdvertisementSet:
    whole = AdvertisementSet(1024)
    whole.put_all(items)
    return whole


def naive_root(digests: list[bytes]) -> bytes:
    """The root as the text of 050 reads, without shortcuts."""
    leaves = [domain_digest("lace-advertisement-leaf/v1", leaf) for leaf in sorted(digests)]
    size = 1
    while size < len(leaves):
        size *= 2
    leaves += [domain_digest("lace-advertisement-empty/v1", b"")] * (max(size, 1) - len(leaves))
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2], strict=True)
        leaves = [domain_digest("lace-advertisement-node/v1", left + right) for left, right in pairs]
    return leaves[0]


# --- roots ----------------------------------------------------------------------------------------------------------


@mark.clause("050-PART-07", "050-PART-09", "050-PART-11", "050-PART-06")
def test_the_root_of_three_is_that_of_the_golden_vector() -> None:
    [root] = partition_roots([[bytes([n]) * 32 for n in (2, 3, 1)]])
    assert root.hex() == "07c813882893b69083658de06207c55d18395c38a1c3fa089f0ee1486ee5bfc8"


@mark.clause("050-PART-10", "050-PART-12")
def test_the_root_of_nothing_is_empty() -> None:
    assert partition_roots([[]]) == [EMPTY]
    assert EMPTY.hex() == "a9a2ffee96b0c5973f99725706cae86658385fc47d4cc2ee3d5e01d22286a3ca"


@mark.clause("050-PART-08", "050-PART-13", "050-LIST-04", "050-LIST-07")
def test_the_root_of_one_record_is_its_leaf() -> None:
    from lace.interlace.claims.advertisement import FieldClaim

    whole = filled([Advertisement(HELLO_WORLD, (FieldClaim("Type", "0", "B"),))])
    assert whole.summaries(SOURCE) == [Partition("EA", 1, "a12FNhLkWJij2_YLICeu_8Co54zdruYnvaHzsnHrQLC")]


@mark.clause("050-PART-06", "050-PART-11")
@examples(st.lists(st.binary(min_size=32, max_size=32), max_size=20, unique=True))
def test_the_root_is_that_of_the_plain_reading(digests: list[bytes]) -> None:
    assert partition_roots([digests]) == [naive_root(digests)]


@mark.clause("050-PART-06", "050-PART-11")
@examples(st.lists(st.binary(min_size=32, max_size=32), max_size=40))
def test_roots_without_one_record_are_those_of_the_others(digests: list[bytes]) -> None:
    others = [digests[:at] + digests[at + 1 :] for at in range(len(digests))]
    assert list(roots_without_one(digests)) == [naive_root(rest) for rest in others]


@mark.clause("050-PART-01", "050-PART-02", "050-PART-03", "050-PART-05")
def test_type_and_suffix_take_no_part_in_the_prefix() -> None:
    payload = record(1).payload
    whole = filled([Advertisement(f"{letter}.{payload}.H3") for letter in "BPS"])
    (top,) = whole.summaries(SOURCE)
    assert (top.prefix, top.count) == (payload[:2], 3)
    (child,) = whole.children([top.prefix], SOURCE)
    assert (child.prefix, child.count) == (payload[:3], 3)


@mark.clause("050-PART-05", "050-PART-18", "050-LIST-06")
def test_children_add_up_to_their_parent() -> None:
    whole = filled(claims(*range(400)))
    for top in whole.summaries(SOURCE):
        children = whole.children([top.prefix], SOURCE)
        assert sum(child.count for child in children) == top.count
        assert all(child.prefix[:-1] == top.prefix and child.count for child in children)
        for child in children:
            assert child == whole.summary(child.prefix, SOURCE)


@examples(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_remembered_roots_are_always_those_of_the_content(changes: list[tuple[bool, int]]) -> None:
    whole, content = AdvertisementSet(1024), set()
    for add, number in changes:
        if add:
            whole.put_all([Advertisement(record(number))])
            content.add(number)
        else:
            whole.drop(record(number))
            content.discard(number)
        assert whole.summaries(SOURCE) == filled(claims(*content)).summaries(SOURCE)
        assert len(whole) == len(content)


# --- a wire with summaries ------------------------------------------------------------------------------------------


def summary_line(items: list[Advertisement], prefix: str, source: str, count: int | None = None) -> str:
    part = filled(items).summary(prefix, source)
    return f"AdvertisementPartition('{prefix}','{part.count if count is None else count}','{part.root}')"


def by_prefix(items: list[Advertisement]) -> dict[str, list[Advertisement]]:
    groups: dict[str, list[Advertisement]] = {}
    for item in items:
        groups.setdefault(item.hash[2:4], []).append(item)
    return dict(sorted(groups.items()))


def say_summaries(wire: Scripted, items: list[Advertisement]) -> None:
    wire.say(*(summary_line(part, prefix, wire.label) for prefix, part in by_prefix(items).items()))


def list_lines(wire: Scripted, items: list[Advertisement]) -> list[str]:
    text = b"".join(canonical_bytes(item, wire.label, 1024) for item in sorted(items))
    return text.decode().splitlines()


@mark.clause("050-LIST-09", "050-LIST-05", "050-LIST-03", "050-PART-14", "050-EX-01", "050-RECON-03")
def test_a_side_without_a_cursor_lists_every_partition_and_requests() -> None:
    items = claims(1, 2, 3)
    wire = Scripted().with_partitions()
    wire.heard()
    say_summaries(wire, items)
    selection = [f"ListAdvertisementPartition('{prefix}')" for prefix in by_prefix(items)]
    assert wire.heard() == [*selection, ""]
    wire.say()
    assert wire.heard() == [""]  # our answer to an empty selection
    wire.say(*list_lines(wire, items))
    assert wire.heard() == [""]  # all settled: the empty selection
    wire.say()
    assert wire.heard() == [*(f"MayRequest('{item.hash}')" for item in sorted(items)), ""]
    assert wire.phase is Phase.REQUEST


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        pytest.param(
            ["AdvertisementPartition('abc','1','{root}')"], "summary", id="k-3", marks=mark.clause("050-PART-04")
        ),
        pytest.param(
            ["AdvertisementPartition('a','1','{root}')"],
            "summary",
            id="k-1",
            marks=mark.clause("050-PART-04", "050-ERR-10"),
        ),
        pytest.param(
            ["AdvertisementPartition('a=','1','{root}')"], "summary", id="alphabet", marks=mark.clause("050-ERR-10")
        ),
        pytest.param(
            ["AdvertisementPartition('ab','0','{root}')"], "summary", id="count-0", marks=mark.clause("050-LIST-07")
        ),
        pytest.param(
            ["AdvertisementPartition('ab','01','{root}')"], "summary", id="count-01", marks=mark.clause("050-LIST-07")
        ),
        pytest.param(
            ["AdvertisementPartition('ab','x','{root}')"], "summary", id="count-x", marks=mark.clause("050-LIST-07")
        ),
        pytest.param(
            ["AdvertisementPartition('ab','1','short')"],
            "summary",
            id="root",
            marks=mark.clause("050-LIST-07", "050-ERR-10"),
        ),
        pytest.param(
            ["AdvertisementPartition('ab','1','{root}')", "AdvertisementPartition('ab','2','{root}')"],
            "summary",
            id="two",
            marks=mark.clause("050-LIST-09"),
        ),
    ],
)
def test_a_malformed_summary_aborts(lines: list[str], reason: str) -> None:
    wire = Scripted().with_partitions()
    wire.say(*(line.format(root="0" * 43) for line in lines))
    assert wire.reason is AbortReason.MALFORMED_PARTITION_SUMMARY


@mark.clause("050-LIST-09")
@pytest.mark.parametrize("announced", [None, "HelloLimit('max_partition_summaries','0')"])
def test_summaries_without_agreement_abort(announced: str | None) -> None:
    wire = Scripted().open(HelloLimit=announced)
    say_summaries(wire, claims(1))
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            "missing", AbortReason.LIST_ROOT_MISMATCH, marks=mark.clause("050-PART-15", "050-ERR-11", "050-PART-14")
        ),
        pytest.param("other", AbortReason.LIST_ROOT_MISMATCH, marks=mark.clause("050-PART-15", "050-ERR-11")),
        pytest.param("foreign", AbortReason.LIST_ROOT_MISMATCH, marks=mark.clause("050-PART-16")),
        pytest.param("child", AbortReason.MALFORMED_PARTITION_SUMMARY, marks=mark.clause("050-PART-18")),
        pytest.param("tick", AbortReason.MALFORMED_FACT_BLOCK, marks=mark.clause("050-TICK-17")),
    ],
)
def test_an_answer_that_is_not_what_was_promised_aborts(answer: str, reason: AbortReason) -> None:
    items = claims(1, 2)
    wire = Scripted().with_partitions()
    say_summaries(wire, items)
    wire.say()
    lines = list_lines(wire, items)
    match answer:
        case "missing":
            lines = lines[:1]
        case "other":
            twin = items[0].hash.replace("B.", "S.")
            lines = [line.replace(items[0].hash, twin) for line in lines]
        case "foreign":
            lines += list_lines(wire, claims(3))
        case "child":
            lines += [summary_line(items, items[0].hash[2:5], wire.label)]
        case "tick":
            lines += ["TickReady('1640995210:000000000')"]
    wire.say(*lines)
    assert wire.reason is reason


@mark.clause("050-TICK-17")
def test_a_tick_in_a_selection_block_aborts() -> None:
    wire = Scripted().with_partitions()
    say_summaries(wire, claims(1))
    wire.say("TickReady('1640995210:000000000')")
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


def summarising(*stored: bytes, **options: object) -> Scripted:
    """Our machine summarises its own set, however small."""
    wire = Scripted(stored=stored, partition_threshold_bytes=1, **options).with_partitions()
    wire.say()
    return wire


@mark.clause("050-LIST-09", "050-LIST-04", "050-LIST-05", "050-LIST-06", "050-LIST-08", "050-PART-03")
def test_our_summaries_and_answers_are_those_of_the_send_set() -> None:
    stored = [blob(str(number).encode()) for number in range(30)]
    wire = summarising(*stored)
    mine = filled([Advertisement(hash_of(item)) for item in stored])
    source = wire.own_label
    lines = wire.heard()
    expected = [f"AdvertisementPartition('{p.prefix}','{p.count}','{p.root}')" for p in mine.summaries(source)]
    assert [line for line in lines if line.startswith("AdvertisementPartition")] == expected
    assert lines[-1] == ""  # our empty selection: the peer advertised nothing
    first, second = mine.prefixes()[:2]
    wire.say(f"ListAdvertisementPartition('{first}')", f"NarrowAdvertisementPartition('{second}')")
    listed = [f"Advertised('{claim.hash}','{source}')" for claim in mine.under(first)]
    children = [f"AdvertisementPartition('{p.prefix}','{p.count}','{p.root}')" for p in mine.children([second], source)]
    assert wire.heard() == [*listed, *children, ""]


@pytest.mark.parametrize(
    "selections",
    [
        pytest.param([["ListAdvertisementPartition('~~')"]], id="not-offered", marks=mark.clause("050-PART-19")),
        pytest.param(
            [["ListAdvertisementPartition('{p}')", "NarrowAdvertisementPartition('{p}')"]],
            id="both",
            marks=mark.clause("050-PART-19"),
        ),
        pytest.param(
            [["ListAdvertisementPartition('{p}')"], ["ListAdvertisementPartition('{p}')"]],
            id="again",
            marks=mark.clause("050-PART-19"),
        ),
        pytest.param(
            [["NarrowAdvertisementPartition('{p}')"], ["ListAdvertisementPartition('{p}')"]],
            id="list-after-narrow",
            marks=mark.clause("050-PART-19"),
        ),
        pytest.param([["MayRequest('{r}')"]], id="other-phase", marks=mark.clause("050-FACT-10")),
    ],
)
def test_a_selection_of_what_is_not_on_offer_aborts(selections: list[list[str]]) -> None:
    stored = blob(b"x")
    wire = summarising(stored)
    for lines in selections:
        wire.say(*(line.format(p=hash_of(stored)[2:4], r=hash_of(stored)) for line in lines))
        if not wire.side.is_over:
            wire.say()  # our selection was empty, so the peer's answer is
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


@mark.clause("050-PART-19", "050-FACT-11")
def test_an_identical_repeat_in_one_selection_is_one_fact() -> None:
    stored = blob(b"x")
    wire = summarising(stored)
    wire.heard()
    wire.say(*[f"ListAdvertisementPartition('{hash_of(stored)[2:4]}')"] * 2)
    assert wire.heard() == [f"Advertised('{hash_of(stored)}','{wire.own_label}')", ""]


@mark.clause("050-LIM-05")
def test_narrowing_ends_at_the_agreed_depth() -> None:
    stored = blob(b"x")
    wire = summarising(stored, limits=limits_with(max_narrowing_depth=2))
    payload = hash_of(stored)[2:]
    for length in (2, 3):
        wire.say(f"NarrowAdvertisementPartition('{payload[:length]}')")
        wire.say()
        assert wire.reason is None
    wire.say(f"NarrowAdvertisementPartition('{payload[:4]}')")
    assert wire.reason is AbortReason.MALFORMED_FACT_BLOCK


@mark.clause("050-LIM-04")
def test_more_summaries_than_agreed_abort() -> None:
    wire = Scripted(limits=limits_with(max_partition_summaries=2)).with_partitions()
    say_summaries(wire, claims(1, 2, 3))
    assert wire.reason is AbortReason.MALFORMED_PARTITION_SUMMARY


# --- the selecting side ---------------------------------------------------------------------------------------------


def reconcile_with(
    theirs: list[Advertisement], held: list[Advertisement], own: list[Advertisement], **limits: int
) -> tuple[PeerClaims, int, int]:
    """Run a reconciliation against an honest answerer: the state, records listed, summaries sent."""
    agreed = limits_with(**limits)
    peer, ours = filled(theirs), filled(own)
    state = PeerClaims(SOURCE, 1024)
    state.take(TakeClaims(added=held, is_whole=True))
    state.take_changes()
    offers = Offers(agreed)
    handle = SetHandle(0, len(ours))
    reconciliation = Reconciliation(handle, SOURCE, FieldSchema(frozenset()), agreed)
    top = peer.summaries(SOURCE)
    offers.offer(top)
    reconciliation.settle(state.reconcile(reconciliation.offer(top), ours, Call()).unknown)
    listed, summaries = 0, len(top)
    while selection := reconciliation.select():
        answer = offers.answer(selection)
        answered = sorted(claim for prefix in answer.listed for claim in peer.under(prefix))
        assert len(answered) <= agreed.max_advertisement_records_listed
        listed += len(answered)
        children = [child for prefix in answer.narrowed for child in peer.children([prefix], SOURCE)]
        summaries += len(children)
        offers.offer(children)
        reconciliation.settle(state.reconcile(reconciliation.answer(answered, children), ours, Call()).unknown)
    assert summaries <= agreed.max_partition_summaries
    before = filled(held)
    changes = state.take_changes()
    for claim in changes.removed:
        assert before.drop(claim.hash) == claim
    for claim in changes.added:
        assert claim.hash not in before
        before.put_all([claim])
    assert before.listing() == state.listing()  # the changes that an engine is told are exact
    return state, listed, summaries


numbers = st.sets(st.integers(0, 60), max_size=30)


@mark.clause("050-RECON-03", "050-ENG-08", "050-PART-14", "050-LIST-11", "050-RECON-04")
@examples(numbers, numbers, numbers, st.sampled_from([1, 2, 5, 100]), st.sampled_from([62, 70, 200]))
def test_partitions_give_the_state_of_a_full_listing(
    theirs: set[int], held: set[int], own: set[int], most_records: int, most_summaries: int
) -> None:
    items = claims(*theirs)
    state, _, _ = reconcile_with(
        items,
        claims(*held),
        claims(*own),
        max_advertisement_records_listed=most_records,
        max_partition_summaries=most_summaries,
    )
    assert state.listing() == filled(items).listing()


@mark.clause("050-PART-14", "050-LIST-09", "050-SEND-02")
def test_a_partition_that_is_held_or_that_we_would_list_ourselves_is_not_transferred() -> None:
    everything = claims(*range(500))
    for held, own in ((everything, []), ([], everything)):
        state, listed, _ = reconcile_with(everything, held, own)
        assert listed == 0
        assert state.listing() == filled(everything).listing()


@mark.clause("050-PART-14", "050-SEND-02")
@pytest.mark.parametrize("knows", ["held", "own"])
def test_a_partition_that_lacks_one_record_that_we_know_is_named_whichever_it_is(knows: str) -> None:
    """Forty records under one prefix: the root without each of them is tried."""
    digests = [b"\0\0" + digest(str(number).encode())[2:] for number in range(40)]
    all_of_them = [Advertisement(RecordHash.of("B", found)) for found in digests]
    for missing in (0, 1, len(all_of_them) // 2, len(all_of_them) - 1):
        theirs = [claim for claim in all_of_them if claim != sorted(all_of_them)[missing]]
        held, own = (all_of_them, []) if knows == "held" else ([], all_of_them)
        state, listed, summaries = reconcile_with(theirs, held, own)
        assert (listed, summaries) == (0, 1)
        assert state.listing() == filled(theirs).listing()


@mark.clause("050-LIST-11")
def test_few_differences_are_found_by_few_records() -> None:
    rng = random.Random(7)
    everything = claims(*range(6_000))
    mine = [claim for claim in everything if claim not in set(rng.sample(everything, 20))]
    _, listed, summaries = reconcile_with(everything, [], mine)
    assert listed < 200
    assert summaries < 4_000


@mark.clause("050-PART-17")
@pytest.mark.long
def test_one_changed_record_among_many_costs_far_less_than_a_listing() -> None:
    everything = claims(*range(30_000))
    _, listed, summaries = reconcile_with(everything, everything[1:], everything[1:])
    in_full = sum(len(canonical_bytes(claim, SOURCE, 1024)) for claim in everything)
    assert listed < 30
    assert (
        summaries * 85 + listed * 114 < in_full / 5
    )  # a summary line has 85 bytes, a claim without fields at most 114


@mark.clause("050-LIST-11")
def test_a_large_set_reaches_an_empty_store_within_the_limits() -> None:
    state, listed, _ = reconcile_with(
        claims(*range(3_000)), [], [], max_advertisement_records_listed=100, max_partition_summaries=4_096
    )
    assert (len(state), listed) == (3_000, 3_000)


# --- pairs ----------------------------------------------------------------------------------------------------------


def fill(pair: Pair, first: range, second: range, group: str = "u") -> None:
    for side, names in zip(pair.sides, (first, second), strict=True):
        side.put(*(plex(f"n{number}", group=group) for number in names))


@mark.clause("050-RECON-03", "050-ENG-08", "050-LIST-03", "050-ENG-01", "050-ENG-02", "050-ENG-04", "050-ENG-07")
@pytest.mark.parametrize("module", ["all", "fields"])
def test_listing_partitions_and_changes_end_in_the_same_stores_and_states(module: str) -> None:
    ends = []
    for options in ({"partitions": False}, {"partition_threshold_bytes": 1}, {"is_direct": True}):
        pair = make_pair(*([group_module("u")] if module == "fields" else []), **options)
        fill(pair, range(12), range(9, 16))
        results = pair.exchange()
        ends.append(
            [
                (side.have, side.held, side.host.own.listing(), result.received_hashes)
                for side, result in zip(pair.sides, results, strict=True)
            ]
        )
    assert ends[0] == ends[1] == ends[2]
    assert len(ends[0][0][0]) == 16


def test_what_comes_while_roots_are_worked_out_waits_or_ends_the_exchange() -> None:
    pair = make_pair(partition_threshold_bytes=1)
    fill(pair, range(20), range(0))
    full = pair.sides[0]
    pair.start()
    pair.run(until=lambda: any(isinstance(effect, Summarise) for effect in full.asked))
    (answer,) = full.results
    assert not full.machine.wants_peer_input
    assert full.machine.next_timer is None  # the peer is not to blame for our own work
    assert full.machine.receive(given.LocalChanged(), pair.now_ns) == []
    assert any(isinstance(effect, Finish) for effect in full.machine.receive(given.StreamEnded(), pair.now_ns))
    assert full.machine.receive(answer, pair.now_ns) == []


def test_roots_that_nobody_asked_for_are_a_fault_of_the_driver() -> None:
    pair = make_pair(is_open=True)
    pair.start()
    pair.run()
    with pytest.raises(LocalProtocolError, match="no question"):
        pair.sides[0].machine.receive(given.Summarised([]), pair.now_ns)


@mark.clause("050-LINK-04", "050-RECON-05", "050-SEND-02", "050-RESULT-09", "050-EX-01")
def test_a_second_exchange_on_a_link_begins_with_the_cursor_and_lists_nothing() -> None:
    pair = make_pair(signed=True, partition_threshold_bytes=1)
    fill(pair, range(10), range(10, 14))
    first, _ = pair.exchange()
    assert first.cursor_updated
    assert list(pair.sides[0].store.settings("cursor")) == [first.link_id]
    again = make_pair(signed=True, partition_threshold_bytes=1)
    for side, old in zip(again.sides, pair.sides, strict=True):
        side.store = side.host.store = old.store
    result, _ = again.exchange()
    assert not result.cursor_updated
    assert result.received_hashes == ()
    for side in again.sides:
        assert side.named("Advertised") == []
        assert side.named("ListAdvertisementPartition") == []
    assert len(again.sides[0].held) == 14


@mark.clause("050-LINK-05", "050-RECON-05")
def test_a_cursor_under_a_local_key_serves_and_a_spoiled_one_is_none() -> None:
    def run(cursor: bytes | None) -> Pair:
        pair = make_pair(cursor_key="door")
        fill(pair, range(5), range(5, 9))
        if cursor is not None:
            for side in pair.sides:
                side.store.put_setting("cursor", "door", cursor)
        pair.exchange()
        return pair

    assert run(None).sides[0].have == run(b"\x00spoiled").sides[0].have


@examples(st.lists(st.integers(0, 30), unique=True, max_size=10), st.binary(max_size=40))
def test_a_cursor_survives_its_bytes_and_never_breaks_on_others(held: list[int], noise: bytes) -> None:
    from lace.interlace.claims.advertisement import FieldClaim, is_record_id

    items = tuple(Advertisement(record(n), (FieldClaim("Name", "0", f"ü {n}\n"),) if n % 2 else ()) for n in held)
    cursor = AdvertisementCursor(
        plan="E.x", source="S", claims=items, partitions=tuple(filled(list(items)).summaries("S"))
    )
    data = cursor.encode()
    assert decode_cursor(data, "E.x", "S", 1 << 20) == cursor
    assert decode_cursor(data, "E.y", "S", 1 << 20) is None
    assert decode_cursor(data, "E.x", "T", 1 << 20) is None
    assert decode_cursor(data, "E.x", "S", 10) is None
    assert decode_cursor(noise, "E.x", "S", 1 << 20) is None
    spoiled = decode_cursor(data[:-3] + noise[:2], "E.x", "S", 1 << 20)
    assert spoiled is None or all(is_record_id(claim.hash) for claim in spoiled.claims)  # a format may be unknown (P14)


@mark.clause("050-LIST-10", "050-LIST-11", "050-LIM-03")
def test_a_listing_over_the_limit_goes_by_partitions() -> None:
    pair = make_pair(limits=limits_with(max_advertisement_records_listed=5))
    fill(pair, range(16), range(14, 24))
    first, _ = pair.exchange()
    assert first.fixed_point
    assert pair.sides[0].have == pair.sides[1].have
    assert len(pair.sides[0].have) == 24
    for side in pair.sides:
        for block in blocks_of(side.wire):
            assert len([line for line in block if line.startswith("Advertised(")]) <= 5


def blocks_of(effects: list[object]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for effect in effects:
        if isinstance(effect, SendFacts):
            blocks[-1] += map(format_fact, effect.facts)
        elif isinstance(effect, list):
            blocks[-1] += [f"Advertised({claim.hash})" for claim in effect]
        elif isinstance(effect, EndBlock):
            blocks.append([])
    return blocks


@mark.clause("050-LIST-10", "050-LIM-04", "050-LIM-02")
@pytest.mark.parametrize(
    "limits",
    [
        limits_with(max_partition_summaries=2, max_advertisement_records_listed=3),
        limits_with(max_fact_block_size=300, max_advertisement_records_listed=3),
    ],
)
def test_summaries_over_a_limit_are_a_local_error_before_a_byte_of_them_is_sent(limits: ExchangeLimits) -> None:
    wire = Scripted(stored=tuple(blob(b"%d" % n) for n in range(20)), limits=limits).with_partitions()
    assert wire.reason is AbortReason.LOCAL_FAILURE
    assert wire.side.aborted is not None
    assert wire.side.aborted.detail.endswith("partitions are too many")
    assert wire.side.named("AdvertisementPartition") == []


@mark.clause("050-LIST-11", "050-ERR-10")
def test_a_partition_that_no_answer_can_hold_is_a_local_failure() -> None:
    wire = Scripted(limits=limits_with(max_advertisement_records_listed=1, max_narrowing_depth=1)).with_partitions()
    payload = record(1).payload
    twins = [Advertisement(f"{letter}.{payload}.H3") for letter in "BP"]
    say_summaries(wire, twins)
    wire.say()
    wire.say(summary_line(twins, payload[:3], wire.label))
    assert wire.reason is AbortReason.LOCAL_FAILURE
