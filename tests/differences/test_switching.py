"""Capabilities that come and go between exchanges and epochs, with lies in between: the outcome is that of listings."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from differences.test_exchange import MODULES, Liar, flipped, once
from interlace.pair import Pair, changed, config_of, group_module, plex
from lace.interlace import inputs as given
from lace.runtime.host.host import LocalHost
from tries import tries

SALTS = st.sampled_from([(11, 12), (11, None), (None, 12), (None, None)])
NEWS = st.tuples(st.integers(0, 5), st.integers(0, 5))
LIES = st.sampled_from(["", "DifferenceRoot", "DifferenceSummary", "DifferenceSymbols", "DifferenceLacks"])


@pytest.mark.long
@pytest.mark.clause("070-CAP-01", "070-DROP-01")
@pytest.mark.parametrize("name", sorted(MODULES))
@tries(5)
@examples(st.lists(st.tuples(SALTS, NEWS, LIES, st.sampled_from([0, 1])), min_size=2, max_size=4))
def test_whatever_each_side_speaks_from_one_exchange_to_the_next_both_end_alike(
    name: str, steps: list[tuple[tuple[int | None, int | None], tuple[int, int], str, int]]
) -> None:
    stores = None
    for step, (salts, news, lie, index) in enumerate(steps):
        sides = [Liar(config_of(n, MODULES[name], salt=salts[n], min_compared=0)) for n in (0, 1)]
        if stores is not None:
            for side, store in zip(sides, stores, strict=True):
                side.store = store
                side.host = LocalHost(store, side.config.terms)  # type: ignore[assignment]
        if lie:
            sides[index].lie = once(lie, lambda v: (*v[:-1], flipped(v[-1])))  # type: ignore[method-assign]
        for side, count in zip(sides, news, strict=True):
            side.put(*[plex(f"s/{step}/{sides.index(side)}/{n}", group="u") for n in range(count)])
        Pair(*sides).exchange()
        stores = [side.store for side in sides]
        assert sides[0].have == sides[1].have


@pytest.mark.clause("070-CAP-01")
@pytest.mark.parametrize("salts", [(11, 12), (11, None), (None, 12)])
def test_another_epoch_begins_without_a_base(salts: tuple[int | None, int | None]) -> None:
    """A new operand in the middle of changes: what was compared before says nothing about the new sets."""
    both = Pair(*(Liar(config_of(n, salt=salts[n], min_compared=0, is_open=True)) for n in (0, 1)))
    both.start()
    both.run()
    for step, group in enumerate(("u", "v", "u")):
        for side in both.sides:
            side.put(plex(f"e/{step}/{both.sides.index(side)}", group=group))
        both.give(both.sides[step % 2], given.LocalChanged())
        for side in (both.sides[1 - step % 2], both.sides[step % 2]):
            both.give(side, changed(group_module(group)))
        both.run()
        assert [len(side.have) for side in both.sides] == [2 * (step + 1)] * 2
