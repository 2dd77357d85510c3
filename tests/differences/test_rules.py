"""What 070 allows and refuses, clause by clause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from differences.test_exchange import MODULES, Liar, Make, RealSide, control, fill, flipped, once, pair
from interlace.pair import Pair, Side, config_of, plex
from interlace.scripted import limits_with
from lace.cli.commands.serve import file_choices
from lace.cli.options.nodefile import read_node_file
from lace.differences.sketchsize import CompareLimits
from lace.errors import InvalidText
from lace.interlace import inputs as given
from lace.interlace.effects import EndBlock
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.differencefacts import ASK, DROP, read_summary
from lace.interlace.phases import Phase
from lace.interlace.reasons import ProtocolAbort
from lace.interlace.setup.agreement import own_hello
from lace.interlace.setup.terms import Link
from lace.interlace.vocabulary import (
    DIFFERENCE_LACKS,
    DIFFERENCE_MORE,
    DIFFERENCE_ROOT,
    DIFFERENCE_SUMMARY,
    DIFFERENCE_SYMBOLS,
    TICK_READY,
    Block,
)
from lace.notation import b64a
from lace.notation.fact import Fact, Predicate
from lace.policy.exposure import Exposure

FIVE_FIRST = CompareLimits(min_symbols=5, symbols_each=0)
ROOT = Fact(DIFFERENCE_ROOT, ("0", "0" * 22))
SUMMARY = Fact(DIFFERENCE_SUMMARY, ("0", "0" * 22, "0" * 64))


def read(kind: Block, *facts: Fact, differences: bool = True) -> BlockReader:
    block = BlockReader(kind, 1 << 20, differences=differences)
    block.read(facts, 100)
    return block


@pytest.mark.clause("070-CAP-02", "070-FACT-01")
@pytest.mark.parametrize(
    ("kind", "fact"),
    [(Block.LISTING, SUMMARY), (Block.REQUEST, DROP), (Block.REQUEST, ASK)],
)
def test_where_it_is_off_its_facts_are_unknown(kind: Block, fact: Fact) -> None:
    assert read(kind, fact).facts == [fact]
    with pytest.raises(ProtocolAbort):
        read(kind, fact, differences=False)


@pytest.mark.clause("070-FACT-03")
@pytest.mark.parametrize("kind", [Block.SYMBOLS, Block.REPLY, Block.TOLD])
def test_no_tick_rides_in_a_comparison(kind: Block) -> None:
    with pytest.raises(ProtocolAbort):
        read(kind, Fact(TICK_READY, ("1640995200:000000000",)))


@pytest.mark.clause("070-FACT-02")
@pytest.mark.parametrize(
    "facts",
    [
        [SUMMARY, SUMMARY],
        [ROOT, ROOT],
        [ROOT, Fact(DIFFERENCE_SUMMARY, ("1", "0" * 22, "0" * 64))],
        [Fact(DIFFERENCE_ROOT, ("0", "0" * 21))],
        [Fact(DIFFERENCE_ROOT, ("00", "0" * 22))],
        [Fact(DIFFERENCE_ROOT, ("0", "0" * 21 + "1"))],
        [Fact(DIFFERENCE_SUMMARY, ("01", "0" * 22, "0" * 64))],
        [Fact(Predicate("DifferenceWithdrawn", 1), ("P.x.H3",))],
        [SUMMARY, Fact(Predicate("DifferenceWithdrawn", 1), ("nothing",))],
    ],
)
def test_summaries_that_break_the_rules_abort(facts: list[Fact]) -> None:
    with pytest.raises(ProtocolAbort):
        read_summary(facts)


SUMS = Fact(DIFFERENCE_SUMMARY, ("43", "0" * 22, "0" * 64))  # of as many records as the other side has below


def symbols_at(start: str, count: int = 1) -> Fact:
    return Fact(DIFFERENCE_SYMBOLS, (start, "0" * ((13 * count * 8 + 5) // 6)))


@pytest.mark.clause("070-FACT-02")
@pytest.mark.parametrize(
    ("index", "facts"),
    [
        (0, [SUMS, symbols_at("1")]),
        (0, [SUMS, symbols_at("0"), symbols_at("0")]),
        (0, [SUMS, symbols_at("0"), symbols_at("2")]),
        (0, [SUMS, symbols_at("0", 57)]),  # more than a line may hold
        (0, [SUMS, symbols_at("0", 0)]),
        (0, [SUMS]),
        (0, [SUMS, Fact(DIFFERENCE_SYMBOLS, ("0", "0" * 16)), Fact(DIFFERENCE_SYMBOLS, ("0", "0" * 19))]),  # 12 + 14
        (0, [SUMS, Fact(DIFFERENCE_SYMBOLS, ("0", "abc"))]),
        (0, [SUMS, SUMS, symbols_at("0")]),
        (0, [symbols_at("0")]),  # without the sums
        (0, [SUMMARY, symbols_at("0")]),  # with sums of another count than the root's
        (0, [symbols_at("0"), SUMS]),
        (0, []),
        (0, [DROP, symbols_at("0")]),
        (1, [Fact(DIFFERENCE_MORE, ("1",))]),
        (1, [Fact(DIFFERENCE_MORE, ("99999999999",))]),
        (1, [Fact(DIFFERENCE_MORE, ("100",)), Fact(DIFFERENCE_LACKS, ("0" * 11,))]),
        (1, [Fact(DIFFERENCE_LACKS, ("0" * 22,))]),
        (1, [Fact(DIFFERENCE_LACKS, ("0" * 5,))]),
        (1, [Fact(DIFFERENCE_LACKS, ("",))]),
        (1, [Fact(DIFFERENCE_LACKS, ("0" * 16,)), Fact(DIFFERENCE_LACKS, ("0" * 15 + "4",))]),  # 12 bytes, and 12
        (1, [DROP, Fact(DIFFERENCE_LACKS, ("0" * 11,))]),
    ],
)
def test_a_comparison_that_breaks_the_rules_ends_the_exchange(index: int, facts: list[Fact]) -> None:
    """What 050 calls malformed: numbers, lengths and orders that no honest side writes."""
    both = pair()
    fill(both, 40, 3, 3)
    victim, other = both.sides[index], both.sides[1 - index]
    wanted = {0: "sketching a set", 1: "naming what differs"}[index]
    both.start()
    both.run(until=lambda: victim.machine.phase.value == wanted and victim.machine.wants_peer_input)
    victim.inbox.clear()
    other.results.clear()
    both.give(victim, given.FactsReceived(tuple(facts), 10))
    if not victim.machine.is_closed:
        both.give(victim, given.BlockEnded())
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-ADV-03", "070-FACT-02")
@pytest.mark.parametrize(("index", "lie"), [(0, "no sums"), (0, "no root"), (1, "sums"), (1, "no root")])
def test_each_side_sends_the_summary_that_is_its_part(index: int, lie: str) -> None:
    both = pair()
    fill(both, 40, 3, 3)
    victim, other = both.sides[1 - index], both.sides[index]
    both.start()
    both.run(until=lambda: victim.machine.phase.value == "advertising" and victim.machine.wants_peer_input)
    facts = {"no sums": [ROOT], "no root": [SUMMARY], "sums": [ROOT, SUMMARY]}[lie]
    victim.inbox.clear()
    other.results.clear()
    both.give(victim, given.FactsReceived(tuple(facts), 10))
    both.give(victim, given.BlockEnded())
    assert victim.aborted is not None
    assert victim.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-CAP-04", "070-ZIP-06")
def test_hellos_announce_what_the_link_allows() -> None:
    config = config_of(0, salt=77)
    plan_side = RealSide(config)
    peer = RealSide(config_of(1, salt=78))
    Pair(plan_side, peer).exchange()
    plan = plan_side.machine.agreement.plan
    assert own_hello(config, plan, 0).capabilities == (
        ("x_differences", 1), ("x_differences_salt", 77), ("x_compression", 1),
    )  # fmt: skip
    secret = replace(config, link=Link(encrypted=True))
    assert ("x_compression", 1) not in own_hello(secret, plan, 0).capabilities
    assert own_hello(replace(config, salt=None), plan, 0).capabilities == ()


@pytest.mark.clause("070-ADV-01", "070-ADV-02", "070-ADV-03")
@pytest.mark.parametrize("few", [0, 1])
def test_a_summary_that_meets_a_listing_is_followed_by_one(few: int) -> None:
    both = pair(min_compared=10)
    both.sides[few].put(*[plex(f"few/{n}") for n in range(3)])
    both.sides[1 - few].put(*[plex(f"many/{n}") for n in range(30)])
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert control(both.sides[few])[:20].count("Advertised") == 3
    assert control(both.sides[1 - few]).count("Advertised") == 30


@pytest.mark.clause("070-BASE-04", "070-DROP-01")
@pytest.mark.parametrize("index", [0, 1])
def test_who_cannot_make_out_a_change_asks(index: int) -> None:
    made = [RealSide(config_of(n, salt=n + 5, min_compared=0, is_open=True)) for n in (0, 1)]
    made[index] = Liar(config_of(index, salt=index + 5, min_compared=0, is_open=True))
    both = Pair(*made)
    fill(both, 60, 2, 2)
    both.start()
    both.run()
    lie = once("DifferenceSummary", lambda v: (v[0], flipped(v[1]), v[2]))
    made[index].lie = lie  # type: ignore[attr-defined]
    made[index].put(plex("late"))
    both.give(made[index], given.LocalChanged())
    both.run()
    assert both.sides[0].have == both.sides[1].have
    assert "DifferenceAsk" in control(both.sides[1 - index])


@pytest.mark.clause("070-TELL-02", "070-SKETCH-02")
def test_symbols_that_do_not_suffice_are_continued() -> None:
    both = pair(compare_limits=FIVE_FIRST)
    fill(both, 60, 20, 20)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert len(both.sides[0].named("DifferenceMore")) >= 2
    assert control(both.sides[0]).count("Advertised") == 20


def at_reply(**options: object) -> tuple[Pair, Side]:
    """A teller whose symbols are out, and who waits for the asker's reply."""
    both = pair(**options)  # type: ignore[arg-type]
    fill(both, 40, 3, 3)
    teller = both.sides[1]
    both.start()
    both.run(until=lambda: teller.machine.phase.value == "naming what differs" and teller.machine.wants_peer_input)
    teller.inbox.clear()
    both.sides[0].results.clear()
    return both, teller


@pytest.mark.clause("070-LIM-01", "070-FACT-02")
@pytest.mark.parametrize(("named", "aborts"), [(5, False), (6, True)])
def test_no_more_short_ids_are_named_than_records_may_be_listed(named: int, aborts: bool) -> None:
    both, teller = at_reply(limits=limits_with(max_advertisement_records_listed=5))
    data = b"".join(number.to_bytes(8, "big") for number in range(named))
    both.give(teller, given.FactsReceived((Fact(DIFFERENCE_LACKS, (b64a.encode(data),)),), 10))
    both.give(teller, given.BlockEnded())
    assert (teller.aborted is not None) is aborts


@pytest.mark.clause("070-LIM-01", "070-DROP-01")
@pytest.mark.parametrize(("end", "drops"), [(100, False), (101, True)])
def test_a_teller_that_is_asked_for_more_than_its_bound_drops(end: int, drops: bool) -> None:
    both, teller = at_reply(compare_limits=CompareLimits(max_symbols=100))
    before = control(teller).count("DifferenceSymbols")
    both.give(teller, given.FactsReceived((Fact(DIFFERENCE_MORE, (str(end),)),), 10))
    both.give(teller, given.BlockEnded())
    while teller.results:
        both.step(teller)
    assert ("DifferenceDrop" in control(teller)) is drops
    assert (control(teller).count("DifferenceSymbols") > before) is not drops


@pytest.mark.clause("070-EQUAL-03", "070-CAP-03")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(
    ("name", "salts", "loops", "blocks"),
    [
        ("all", (11, 12), 1, 1),  # nothing can be asked for, and nothing is
        ("listings on listings", (11, 12), 3, 6),  # rules that read listings come first
        ("all", (None, None), 1, 2),
        ("listings on listings", (None, None), 3, 6),
    ],
)
@pytest.mark.parametrize("least", [0, 100])
def test_equal_sets_end_without_requests_only_where_both_compare_and_no_rule_reads_listings(
    make: Make, name: str, salts: tuple[int | None, int | None], loops: int, blocks: int, least: int
) -> None:
    both = pair(MODULES[name], salts=salts, make=make, min_compared=least)
    fill(both, 30, 0, 0)
    for side, result in zip(both.sides, both.exchange(), strict=True):
        assert result.loops == loops
        assert sum(isinstance(effect, EndBlock) for effect in side.wire) == 2 + blocks  # after setup and hello


@pytest.mark.clause("070-TELL-04", "070-LIAR-01")
@pytest.mark.parametrize("given_", ["none", "one", "all but one", "one too many"])
def test_who_asks_for_symbols_gets_those_up_to_the_number_asked_for(given_: str) -> None:
    """A teller that gives one at a time would have the asker pass over its set for each of them, and for ever."""
    both = pair(compare_limits=FIVE_FIRST)
    fill(both, 60, 20, 20)
    near = both.sides[0]
    both.start()
    both.run(until=lambda: bool(near.named("DifferenceMore")))
    wanted = int(near.named("DifferenceMore")[0][0]) - 5
    count = {"none": 0, "one": 1, "all but one": wanted - 1, "one too many": wanted + 1}[given_]
    near.inbox.clear()
    both.give(near, given.FactsReceived(tuple([symbols_at("5", count)] if count else []), 10))
    both.give(near, given.BlockEnded())
    assert near.aborted is not None
    assert near.aborted.reason.value == "malformed fact block"


@pytest.mark.clause("070-LIM-01", "070-DROP-02", "070-DROP-03")
@pytest.mark.parametrize("most", [5, 30])
def test_a_bound_of_either_side_leads_to_the_standard_listing(most: int) -> None:
    both = pair(compare_limits=CompareLimits(max_symbols=most))
    fill(both, 60, 20, 20)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert "DifferenceDrop" in {*control(both.sides[0]), *control(both.sides[1])}
    assert control(both.sides[0]).count("Advertised") >= 80


@pytest.mark.clause("070-SEC-01")
def test_what_is_not_exposed_is_in_no_summary() -> None:
    """Two stores of ours that differ in a hidden record say the same to a peer."""
    shown = (Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u')."),)
    said = []
    for hidden in (0, 3):
        both = pair(exposures=shown)
        fill(both, 0, 40, 40)
        both.sides[0].put(*[plex(f"secret/{n}", group="s") for n in range(hidden)])
        both.exchange()
        said.append(both.sides[0].named("DifferenceSummary")[0])
    assert said[0] == said[1]


@pytest.mark.clause("070-CAP-03")
@pytest.mark.parametrize(("line", "standard"), [("", False), ('speaks = "all"', False), ('speaks = "standard"', True)])
def test_a_node_file_switches_capabilities_off(line: str, standard: bool, tmp_path: Path) -> None:
    path = tmp_path / "lace.toml"
    path.write_text(f'store = "a.lace"\n{line}\n')
    assert file_choices(read_node_file(path)).standard is standard


def test_a_node_file_that_speaks_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lace.toml"
    path.write_text('store = "a.lace"\nspeaks = "esperanto"\n')
    with pytest.raises(InvalidText, match="all, standard"):
        read_node_file(path)


@pytest.mark.clause("070-FACT-02", "070-BASE-04")
@pytest.mark.parametrize(("doubt", "aborts"), [(ASK, True), (DROP, False)])
def test_a_doubt_of_sums_that_nobody_sent_is_malformed(doubt: Fact, aborts: bool) -> None:
    """Both sides speak 070 and listed their sets, for there was little to compare: there is nothing to sketch from."""
    both = pair(min_compared=1000)
    fill(both, 5, 1, 1)
    near = both.sides[0]
    both.start()
    both.run(until=lambda: near.machine.phase is Phase.REQUEST and near.machine.wants_peer_input)
    near.inbox.clear()
    both.give(near, given.FactsReceived((doubt,), 10))
    both.give(near, given.BlockEnded())
    assert (near.aborted is not None) is aborts
    if near.aborted is not None:
        assert "a doubt of what was listed" in near.aborted.detail
