"""Whole exchanges that compare their sets (070), beside the same without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from interlace.pair import ALL, Pair, Side, blob, config_of, group_module, plex
from interlace.scripted import limits_with
from lace.differences import setview
from lace.differences.ids import Ids
from lace.differences.keyed import U64, DifferenceKey, KeyedIds, keyed_ids
from lace.differences.scalarsums import measure_few
from lace.interlace import inputs as given
from lace.interlace.effects import Decode, Evaluate, Measure, Sketch, TakeDifference
from lace.notation.fact import Fact
from lace.policy.operand import Module
from lace.runtime.host.host import LocalHost
from tries import tries

# Listings that depend on listings: a blob is offered when the peer offers a record of the group.
CHAIN = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n"
    "SelectHave(P) :- Have(P), Advertised(Q,S), AdvertisedField(Q,S,'App',_,'ding').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S)."
)
MODULES = {"all": ALL, "by field": group_module("u"), "listings on listings": CHAIN}


class RealSide(Side):
    """A side with the host that a node uses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.host = LocalHost(self.store, self.config.terms)  # type: ignore[assignment]

    @property
    def held(self) -> list[object]:  # type: ignore[override]
        policy = self.host.agreed  # type: ignore[attr-defined]
        return list(policy.claims.listing())


class Acting(RealSide):
    """Says which side is at work."""

    now: ClassVar[Side | None] = None

    def _perform(self, effect: object, peer: Side) -> None:  # type: ignore[override]
        Acting.now = self
        super()._perform(effect, peer)  # type: ignore[arg-type]


Make = Callable[..., Side]


def pair(
    module: Module = ALL, *, salts: Sequence[int | None] = (11, 12), make: Make = RealSide, **options: object
) -> Pair:
    options = {"min_compared": 0, **options}
    return Pair(*(make(config_of(index, module, salt=salts[index], **options)) for index in (0, 1)))


def fill(both: Pair, common: int, first: int, second: int) -> None:
    """Some records for both sides, and some for each alone."""
    records = [plex(f"n/{n}", group="u" if n % 3 else "v") if n % 2 else blob(b"%d" % n) for n in range(common)]
    for index, side in enumerate(both.sides):
        own = [plex(f"own/{index}/{n}") for n in range((first, second)[index])]
        side.put(*records, *own)


def control(side: Side) -> list[str]:
    return [fact.predicate.name for fact in side.facts_sent()]


@pytest.mark.clause("070-EQUAL-01", "070-TURN-01")
def test_equal_sets_say_one_line_each() -> None:
    both = pair()
    fill(both, 60, 0, 0)
    both.exchange()
    for side, expected in zip(both.sides, (["DifferenceRoot", "DifferenceSummary"], ["DifferenceRoot"]), strict=True):
        said = control(side)
        assert [name for name in said if name.startswith("Difference")] == expected
        assert "Advertised" not in said
        assert len(side.held) == 60


@pytest.mark.clause("070-ADV-03", "070-EQUAL-01", "070-EQUAL-02")
def test_a_teller_whose_set_is_the_peers_never_passes_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sums are those that the asker told, in this loop and, with what changed, in all that follow."""
    both = pair(is_open=True, make=Acting)
    fill(both, 60, 0, 0)
    teller, hashed = both.sides[1], list[int]()

    def count(ids: Ids, key: DifferenceKey) -> KeyedIds:
        if Acting.now is teller:
            hashed.append(len(ids))
        return keyed_ids(ids, key)

    def count_few(ids: Ids, key: DifferenceKey) -> U64:
        if Acting.now is teller:
            hashed.append(len(ids))
        return measure_few(ids, key)

    monkeypatch.setattr(setview, "keyed_ids", count)
    monkeypatch.setattr(setview, "measure_few", count_few)
    both.start()
    both.run()
    for step in range(4):
        side = both.sides[step % 2]
        side.put(plex(f"late/{step}"))
        both.give(side, given.LocalChanged())
        both.run()
        assert both.sides[0].have == both.sides[1].have
        assert not set(control(teller)) & {"DifferenceAsk", "DifferenceDrop", "DifferenceSymbols"}
    assert max(hashed) == 1


class Recording(RealSide):
    """Remembers what its machine asked it to measure."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.measured: list[Measure] = []

    def _perform(self, effect: object, peer: Side) -> None:  # type: ignore[override]
        if isinstance(effect, Measure):
            self.measured.append(effect)
        super()._perform(effect, peer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second", "sums"), [(4, 16, 1), (16, 4, 1), (4, 17, 0), (17, 4, 0), (0, 1, 0)])
def test_sets_whose_counts_say_that_listings_cost_less_are_not_summed_up(first: int, second: int, sums: int) -> None:
    """A sketch may pay while the counts differ by at most six tenths of both together."""
    both = pair(make=Recording)
    fill(both, 0, first, second)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert isinstance(far, Recording)
    assert sum(wanted.sums and wanted.since is None for wanted in far.measured) == sums


@pytest.mark.clause("070-ADV-04", "070-TELL-01", "070-TELL-03", "070-END-02", "070-END-04", "070-ROLE-01")
@pytest.mark.parametrize("make", [Side, RealSide])
@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1), (3, 5), (40, 25)])
def test_only_what_differs_is_listed(make: Make, first: int, second: int) -> None:
    both = pair(make=make)
    fill(both, 60, first, second)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    assert len(near.have) == 60 + first + second
    assert control(near).count("Advertised") == first
    assert control(far).count("Advertised") == second
    assert "DifferenceSymbols" not in control(near)
    assert "DifferenceLacks" not in control(far)
    assert [claim.hash for claim in near.held] == sorted(far.have)


@pytest.mark.parametrize(("first", "second"), [(5, 0), (0, 5), (5, 5), (6, 0), (0, 6), (6, 5), (5, 6)])
def test_as_many_as_may_be_listed_are_named_and_one_more_ends_the_comparison(first: int, second: int) -> None:
    both = pair(limits=limits_with(max_advertisement_records_listed=5))
    fill(both, 60, first, second)
    both.exchange()
    near, far = both.sides
    assert near.have == far.have
    is_too_much = max(first, second) > 5
    assert ("DifferenceDrop" in control(near)) is is_too_much
    for side in both.sides:
        assert ("AdvertisementPartition" in control(side)) is is_too_much


@pytest.mark.clause("070-CAP-01", "070-CAP-03")
@pytest.mark.parametrize("salts", [(None, None), (11, None), (None, 12)])
def test_one_side_alone_says_nothing_of_it(salts: tuple[int | None, int | None]) -> None:
    one, off = pair(salts=salts), pair(salts=(None, None))
    for both in (one, off):
        fill(both, 50, 4, 3)
        both.exchange()
    for mine, other in zip(one.sides, off.sides, strict=True):
        assert mine.have == other.have
        said = [fact for fact in mine.facts_sent() if not str(fact.values[:1]).startswith("('x_")]
        assert said == other.facts_sent()


@pytest.mark.clause("070-FIX-01", "070-END-02")
@pytest.mark.parametrize("name", sorted(MODULES))
@tries(8)
@examples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 12), st.sampled_from([0, 20]))
@pytest.mark.long
def test_the_outcome_is_that_of_full_listings(name: str, common: int, first: int, second: int, least: int) -> None:
    """Full listing = partitions = differences, whatever the sets; a side may list its few while the other sums."""
    ends = []
    for options in (
        {"salts": (None, None)},
        {"salts": (None, None), "partition_threshold_bytes": 0},
        {"min_compared": least},
    ):
        both = pair(MODULES[name], **options)  # type: ignore[arg-type]
        fill(both, common, first, second)
        both.exchange()
        ends.append([(side.have, list(side.held)) for side in both.sides])
    assert ends[0] == ends[1]
    assert ends[2] == ends[0]


@pytest.mark.clause("070-BASE-01", "070-BASE-02", "070-BASE-03")
@pytest.mark.parametrize("make", [Side, RealSide])
def test_an_open_exchange_tells_changes(make: Make) -> None:
    both = pair(is_open=True, make=make)
    fill(both, 40, 2, 2)
    both.start()
    both.run()
    near, far = both.sides
    assert near.have == far.have
    for step in range(3):
        before = [len(control(side)) for side in both.sides]
        side = both.sides[step % 2]
        side.put(plex(f"late/{step}"))
        both.give(side, given.LocalChanged())
        both.run()
        assert near.have == far.have
        said = [control(side)[count:] for side, count in zip(both.sides, before, strict=True)]
        assert sum(names.count("Advertised") for names in said) == 1
        assert not any(
            name in ("DifferenceSymbols", "DifferenceAsk", "DifferenceDrop") for names in said for name in names
        )
    gone = sorted(near.have)[:3]
    near.store.delete(*gone)  # type: ignore[arg-type]
    both.give(near, given.LocalChanged())
    both.run()
    assert len(near.named("DifferenceWithdrawn")) == 3
    assert [claim.hash for claim in far.held] == sorted(near.have)


# --- lies ------------------------------------------------------------------------------------------------------------


class Liar(RealSide):
    """Changes one of the facts that it sends."""

    lie: Callable[[Fact], Fact | None] = staticmethod(lambda fact: fact)

    def _perform(self, effect: object, peer: Side) -> None:  # type: ignore[override]
        from lace.interlace.effects import SendFacts

        if isinstance(effect, SendFacts):
            changed = [self.lie(fact) for fact in effect.facts]
            effect = SendFacts([fact for fact in changed if fact is not None])
        super()._perform(effect, peer)  # type: ignore[arg-type]


def once(name: str, change: Callable[[tuple[str, ...]], tuple[str, ...] | None]) -> Callable[[Fact], Fact | None]:
    done: list[str] = []

    def lie(fact: Fact) -> Fact | None:
        if fact.predicate.name != name or done:
            return fact
        done.append(name)
        values = change(fact.values)
        return None if values is None else Fact(fact.predicate, values)

    return lie


def one_more(fact: Fact) -> Fact:
    """Whatever says how many records there are says one more."""
    if fact.predicate.name not in ("DifferenceRoot", "DifferenceSummary"):
        return fact
    return Fact(fact.predicate, (str(int(fact.values[0]) + 1), *fact.values[1:]))


def flipped(text: str) -> str:
    return ("1" if text[0] == "0" else "0") + text[1:]


@pytest.mark.clause("070-DROP-01", "070-DROP-02", "070-LIAR-01", "070-KEY-04")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("lie", ["count", "root", "sum", "counters", "symbols", "lacks", "nothing lacking"])
def test_a_liar_costs_itself_the_standard_path(lie: str, index: int) -> None:
    made = [RealSide(config_of(n, salt=n + 5, min_compared=0)) for n in (0, 1)]
    liar = Liar(config_of(index, salt=index + 5, min_compared=0))
    liar.lie = {
        "count": one_more,
        "root": once("DifferenceRoot", lambda v: (v[0], flipped(v[1]))),
        "sum": once("DifferenceSummary", lambda v: (v[0], flipped(v[1]), v[2])),
        "counters": once("DifferenceSummary", lambda v: (*v[:2], flipped(v[2]))),
        "symbols": once("DifferenceSymbols", lambda v: (v[0], flipped(v[1]))),
        "lacks": once("DifferenceLacks", lambda v: (flipped(v[0]),)),
        "nothing lacking": once("DifferenceLacks", lambda v: None),
    }[lie]  # type: ignore[method-assign]
    made[index] = liar
    both = Pair(*made)
    fill(both, 60, 7, 9)
    both.exchange()
    assert both.sides[0].have == both.sides[1].have
    assert len(both.sides[0].have) == 76


class Growing(RealSide):
    """Stores a record whenever its machine is in the middle of a comparison."""

    number = 0

    def _perform(self, effect: object, peer: Side) -> None:  # type: ignore[override]
        if isinstance(effect, Sketch | Decode | TakeDifference) and self.number < 3:
            self.number += 1
            self.put(plex(f"grown/{self.config.index}/{self.number}"))
        super()._perform(effect, peer)  # type: ignore[arg-type]


@pytest.mark.clause("070-ROLE-01")
@pytest.mark.parametrize(("first", "second"), [(0, 5), (5, 0), (7, 9), (40, 1)])
@pytest.mark.parametrize("make", [RealSide, Growing])
def test_the_side_with_operand_0_decodes_and_its_set_stays_as_it_was_advertised(
    make: Make, first: int, second: int
) -> None:
    """Whoever holds more, and whatever is stored meanwhile."""
    both = pair(make=make)
    fill(both, 60, first, second)
    both.exchange()
    asker, teller = both.sides
    assert any(isinstance(effect, Decode) for effect in asker.asked)
    assert any(isinstance(effect, Sketch) for effect in teller.asked)
    assert not any(isinstance(effect, Sketch) for effect in asker.asked)
    assert not any(isinstance(effect, Decode) for effect in teller.asked)
    for side in both.sides:
        own = None  # of the advertisement at hand
        for effect in side.asked:
            if isinstance(effect, Measure) and effect.root:
                own = effect.own
            elif isinstance(effect, Measure | Sketch | Decode | TakeDifference) and own is not None:
                assert effect.own == own
            elif isinstance(effect, Evaluate):
                own = None
    if make is RealSide:  # what was stored after the last evaluation need not have crossed (050-BOUND-05)
        assert asker.have == teller.have
