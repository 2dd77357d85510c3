"""Records that one side removes while an exchange is open (070, P34): what the peer claims is what it would list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from differences.test_exchange import CHAIN, RealSide
from interlace.pair import ALL, Pair, config_of, group_module, hash_of, plex
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, sendable_fields
from lace.interlace.effects import Evaluate
from lace.notation.identifiers import RecordHash
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.store import open_store
from lace.store.base import RecordStore
from tries import tries

SALTS = {"standard": (None, None), "differences": (11, 12)}
# A claim without its fields would be asked for, and one with them is not.
UNLESS_IN_GROUP = Module.author(
    "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group',_,'v')."
)
# Only some are offered, the newest by name: a record that comes pushes another out of the set, which stays stored.
NEWEST = Module.author(
    "Later(P,Q) :- Field(P,'Name',_,N), Field(Q,'Name',_,M), LexCompare(M,'>',N).\n"
    "SelectHave(P) :- Have(P), Field(P,'Group',_,'u'), Cardinality(Later(P,Q),'<','6').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u')."
)
OVER_THRESHOLD = {"partition_threshold_bytes": 0, "min_compared": 0}
RULES = {
    "all": ALL,
    "by field": group_module("u"),
    "unless in group": UNLESS_IN_GROUP,
    "newest": NEWEST,
    "listings on listings": CHAIN,
}


def store_at(path: Path, records: Sequence[bytes]) -> RecordStore:
    """A durable store with these records."""
    store = open_store(path, create=True)
    store.put([validate(record) for record in records])
    return store


class DurableSide(RealSide):
    """Tells its machine what it stored and removed, as a node does."""

    def remove(self, *records: RecordHash) -> None:
        self.store.delete(*records)

    def listed_now(self) -> list[Advertisement]:
        """What this side would list of its set as it was last evaluated."""
        agreement, own = self.machine.agreement, self.host.agreed.own  # type: ignore[attr-defined]
        claims = sorted(own.listing())
        source, most = agreement.own_source, self.terms.max_line_bytes
        return [Advertisement(claim.hash, sendable_fields(claim, source, most)) for claim in claims]


def open_pair(rules: Module, stores: Sequence[RecordStore], mode: str, **options: object) -> Pair:
    """Two sides at rest in an open exchange."""
    sides = []
    for index, store in enumerate(stores):
        config = config_of(index, rules, salt=SALTS[mode][index], is_open=True, **options)
        sides.append(DurableSide(config, store))  # type: ignore[arg-type]
    both = Pair(*sides)
    both.start()
    both.run()
    return both


def tell_both(both: Pair) -> None:
    """Both sides look at their stores, and go on until nothing moves."""
    for side in both.sides:
        both.give(side, given.LocalChanged())
    both.run()


def assert_each_knows_the_other(both: Pair) -> None:
    for side in both.sides:
        assert side.aborted is None
        assert side.machine.is_resting
        other = both.other(side)
        assert isinstance(other, DurableSide)
        assert list(side.held) == other.listed_now()


@pytest.mark.clause("070-END-02", "050-RECON-05")
@pytest.mark.parametrize(
    ("mode", "remover", "count", "options"),
    [
        *(
            pytest.param(mode, remover, 40, options, id=f"{what}-{remover}-{mode}")
            for mode in sorted(SALTS)
            for remover in (0, 1)
            for what, options in (("below the threshold", {}), ("threshold handed in", OVER_THRESHOLD))
        ),
        # Settings as shipped, over the threshold: a twin of what was handed in, once for each mode.
        pytest.param("standard", 0, 12_000, {}, marks=pytest.mark.long, id="as shipped-0-standard"),
        pytest.param("differences", 1, 12_000, {}, marks=pytest.mark.long, id="as shipped-1-differences"),
    ],
)
def test_a_record_that_one_side_removes_comes_back_from_the_peer_that_has_it(
    mode: str, remover: int, count: int, options: dict[str, object], tmp_path: Path
) -> None:
    records = [plex(f"n/{n:05}") for n in range(count)]
    gone = hash_of(records[count // 3])
    with ExitStack() as opened:
        stores = [opened.enter_context(store_at(tmp_path / f"{n}.lace", records)) for n in (0, 1)]
        both = open_pair(group_module("u"), stores, mode, **options)
        for _ in range(2):  # and again: what was asked for anew is a base like any other
            side = both.sides[remover]
            assert isinstance(side, DurableSide)
            side.remove(gone)
            both.give(side, given.LocalChanged())
            both.run()
            assert gone in side.have
        assert_each_knows_the_other(both)


@pytest.mark.parametrize("mode", sorted(SALTS))
def test_a_record_that_is_removed_while_requests_are_worked_out_comes_back_in_a_bounded_exchange(
    mode: str, tmp_path: Path
) -> None:
    """The claim rests on our own facts, and these go between the comparison and its evaluation."""
    records = [plex(f"n/{n:05}") for n in range(40)]
    gone = hash_of(records[7])
    with ExitStack() as opened:
        first, second = (opened.enter_context(store_at(tmp_path / f"{n}.lace", records)) for n in (0, 1))
        second.put([validate(plex("more"))])

        removed = list[RecordHash]()

        class Removing(DurableSide):
            def _perform(self, effect: object, peer: object) -> None:  # type: ignore[override]
                if isinstance(effect, Evaluate) and effect.max_requests > 1 and not removed:
                    removed.append(gone)
                    self.remove(gone)
                super()._perform(effect, peer)  # type: ignore[arg-type]

        options = {"min_compared": 0, "partition_threshold_bytes": 0}
        sides = [
            make(config_of(n, group_module("u"), salt=SALTS[mode][n], **options), store)  # type: ignore[arg-type]
            for n, (make, store) in enumerate([(Removing, first), (DurableSide, second)])
        ]
        Pair(*sides).exchange()
        assert removed == [gone]
        assert sides[0].have == sides[1].have
        assert len(sides[0].have) == 41


Step = tuple[int, str, list[int], int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1]),
        st.sampled_from(["put", "remove", "remove and put", "remove on both"]),
        st.lists(st.integers(0, 23), min_size=1, max_size=4),
        st.integers(0, 40),  # inputs that the two machines are given before the next step; 40 is mostly to rest
    ),
    min_size=1,
    max_size=6,
)


def act(both: Pair, step: Step, records: Sequence[bytes], number: int) -> None:
    index, what, chosen, _ = step
    side = both.sides[index]
    hashes = [hash_of(records[n]) for n in chosen]
    if what == "put":
        side.put(*[plex(f"late/{number}/{n}", group="uv"[n % 2]) for n in chosen])
    else:
        side.store.delete(*hashes)
    if what == "remove and put":
        side.put(*[records[n] for n in chosen])
    if what == "remove on both":
        both.other(side).store.delete(*hashes)


def ended(rules: Module, steps: Sequence[Step], mode: str, threshold: int, *, rests: bool) -> list[set[str]]:
    records = [plex(f"n/{n:02}", group="uuv"[n % 3]) for n in range(24)]
    with TemporaryDirectory() as folder, ExitStack() as opened:
        stores = [opened.enter_context(store_at(Path(folder) / f"{n}.lace", records)) for n in (0, 1)]
        both = open_pair(rules, stores, mode, min_compared=0, partition_threshold_bytes=threshold)
        for number, step in enumerate(steps):
            act(both, step, records, number)
            if rests:
                tell_both(both)
                continue
            both.give(both.sides[step[0]], given.LocalChanged())
            moved = iter(range(step[3]))
            both.run(until=lambda moved=moved: next(moved, None) is None)
        tell_both(both)
        assert_each_knows_the_other(both)
        return [side.have for side in both.sides]


@pytest.mark.long
@tries(60)
@examples(st.sampled_from(sorted(RULES)), STEPS, st.sampled_from([0, 1 << 19]))
def test_both_modes_end_alike_whatever_is_put_and_removed_at_rest(name: str, steps: list[Step], threshold: int) -> None:
    ends: list[Callable[[], list[set[str]]]] = [
        lambda mode=mode: ended(RULES[name], steps, mode, threshold, rests=True) for mode in sorted(SALTS)
    ]
    assert ends[0]() == ends[1]()


@pytest.mark.long
@tries(60)
@examples(st.sampled_from(sorted(RULES)), STEPS, st.sampled_from([0, 1 << 19]), st.sampled_from(sorted(SALTS)))
def test_whatever_is_put_and_removed_in_the_middle_of_loops_each_side_ends_with_the_listing_of_the_other(
    name: str, steps: list[Step], threshold: int, mode: str
) -> None:
    ended(RULES[name], steps, mode, threshold, rests=False)
