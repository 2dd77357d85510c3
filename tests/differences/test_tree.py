"""The root of a set (070): by the text of the document, incrementally, and for links that share it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences.sets import KEY, random_ids
from lace.differences.ids import EMPTY, Ids, digests_of, ids_of_digests
from lace.differences.idset import IdSet, set_of
from lace.differences.keyed import derive_key
from lace.differences.tree import PARTS, UNKNOWN, told_root, tree_root
from lace.notation import b64a
from lace.notation.digest import digest, key_deriver
from lace.runtime.rules.generation import Generation
from tries import tries


def root_by_the_text(ids: Ids) -> bytes:
    """As the document tells it, with nothing but bytes."""
    rows = sorted(
        bytes(row) + bytes([letter]) for row, letter in zip(digests_of(ids).tolist(), ids.letters.tolist(), strict=True)
    )
    parts: list[list[bytes]] = [[] for _ in range(PARTS)]
    for row in rows:
        parts[int.from_bytes(row[:2], "big") >> 4].append(row)
    return digest(b"".join(digest(b"".join(part)) for part in parts))


def crowded(count: int, seed: int) -> Ids:
    """Ids of few parts, the first and the last among them, some of which differ by their letter alone."""
    rng = np.random.default_rng(seed)
    digests = rng.integers(0, 256, (count, 32), dtype=np.uint8)
    digests[:, 0] = rng.choice([0, 0xFF], count)
    digests[:, 1] = rng.choice([0, 0x0F, 0x10, 0xEF, 0xF0, 0xFF], count)
    digests[count // 2 :, :] = digests[: count - count // 2, :]
    return ids_of_digests(digests, np.frombuffer(b"BPS", np.uint8)[rng.integers(0, 3, count)])


@pytest.mark.clause("070-ROOT-01")
@pytest.mark.parametrize("ids", [EMPTY, random_ids(1, 1), random_ids(900, 2), crowded(400, 3)])
def test_a_root_is_that_of_the_text(ids: Ids) -> None:
    assert UNKNOWN.of(set_of(ids)).root() == root_by_the_text(ids)


@pytest.mark.clause("070-ROOT-01")
@tries(20)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=6), st.integers(0, 99))
def test_a_root_that_follows_changes_is_that_of_the_set(steps: list[tuple[int, int, bool]], seed: int) -> None:
    """Whether it is asked for after every change or once at the end, a few parts at a time or all."""
    held: IdSet = set_of(crowded(120, seed))
    tree = UNKNOWN
    for number, (came, went, asked) in enumerate(steps):
        coming = crowded(came, seed * 10 + number) if number % 2 else random_ids(came, seed * 10 + number)
        here = held.ids()
        going = here.take(np.arange(min(went, len(here))))
        held = held.change(coming, going)
        tree = tree.touched(coming).touched(going)
        if asked:
            tree = tree.of(held)
            assert tree.root() == root_by_the_text(held.ids())
    assert tree.of(held).root() == root_by_the_text(held.ids())


def test_a_change_of_few_records_looks_at_few_parts() -> None:
    held = set_of(random_ids(5_000, 1))
    tree = UNKNOWN.of(held)
    assert int(tree.touched(random_ids(3, 9)).stale.sum()) == 3
    assert tree.touched(EMPTY) is tree


@pytest.mark.clause("070-ROOT-02")
def test_a_root_is_told_under_the_key_of_the_link() -> None:
    root = UNKNOWN.of(set_of(random_ids(10, 1))).root()
    told = told_root(root, KEY)
    assert told == key_deriver("lace-differences/v1 root")(KEY.to_bytes() + root, 16)
    assert told != told_root(root, derive_key(b"another", b"link"))
    assert told != told_root(digest(root), KEY)


@pytest.mark.clause("070-ROOT-01")
def test_generations_hand_their_trees_on() -> None:
    first = Generation(0, set_of(random_ids(600, 4)), lambda _: [], 1 << 10)
    first.root  # noqa: B018 - worked out here, and followed from here on
    more = random_ids(5, 8)
    second = first.then(more.texts(), first.ids.ids().texts()[:3])
    assert int(second._tree.stale.sum()) == 8
    assert second.root == root_by_the_text(second.ids.ids())
    assert first.anew(first.ids.ids()) is first
    third = second.anew(second.ids.ids().take(slice(10, None)))
    assert third.root == root_by_the_text(third.ids.ids())


@pytest.mark.clause("070-ROOT-01")
def test_parts_that_were_digested_elsewhere_by_their_two_symbols_give_the_root_of_the_set() -> None:
    ids = crowded(40, 3)
    parts: dict[str, list[bytes]] = {}
    for row, letter in zip(digests_of(ids).tolist(), ids.letters.tolist(), strict=True):
        parts.setdefault(b64a.encode(bytes(row))[:2], []).append(bytes(row) + bytes([letter]))
    assert len(parts) > 3
    digests = {symbols: digest(b"".join(sorted(rows))) for symbols, rows in parts.items()}
    assert tree_root(digests) == root_by_the_text(ids)
