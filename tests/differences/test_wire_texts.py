"""Summaries, symbols and short ids as texts of fact lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences.sets import KEY, random_ids
from lace.differences.ids import ids_of_texts
from lace.differences.idset import set_of
from lace.differences.keyed import derive_key, keyed_ids
from lace.differences.setview import measured
from lace.differences.sketch import sketch
from lace.differences.tree import UNKNOWN, told_root
from lace.differences.wire import (
    SYMBOLS_PER_LINE,
    decode_short_ids,
    decode_summary,
    decode_symbols,
    encode_root,
    encode_short_ids,
    encode_summary,
    encode_symbols,
)
from lace.errors import InvalidText

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "differences.json").read_text(encoding="utf-8"))


@pytest.mark.clause("070-SUM-02", "070-EST-01", "070-EST-03")
@given(st.integers(0, 200))
def test_a_summary_is_read_back(count: int) -> None:
    given_ = measured(random_ids(count, seed=count), KEY)
    assert (decode_summary(*encode_summary(given_)) == given_).all()


@pytest.mark.clause("070-SKETCH-05")
@pytest.mark.parametrize("size", [0, 1, SYMBOLS_PER_LINE, SYMBOLS_PER_LINE + 1, 500])
def test_symbols_are_read_back_and_fit_their_lines(size: int) -> None:
    symbols = sketch(keyed_ids(random_ids(300, seed=1), KEY).short, KEY, 0, size)
    texts = list(encode_symbols(symbols))
    assert all(len(f"DifferenceSymbols('4194304','{text}')") <= 1024 for text in texts)
    lines = [(str(7 + 56 * line), text) for line, text in enumerate(texts)]
    back = decode_symbols(lines, 7)
    assert all((one == other).all() for one, other in zip(symbols, back, strict=True))
    for wrong, start in ((lines, 8), (lines[::-1], 7)):
        if wrong and (start == 8 or len(lines) > 1):
            with pytest.raises(InvalidText):
                decode_symbols(wrong, start)


@pytest.mark.clause("070-END-03", "070-SKETCH-06")
@given(st.sets(st.integers(0, 2**64 - 1), max_size=300))
def test_short_ids_are_read_back_ascending(values: set[int]) -> None:
    short = np.array(sorted(values), np.uint64)
    texts = list(encode_short_ids(short))
    assert all(len(f"DifferenceLacks('{text}')") <= 1024 for text in texts)
    assert (decode_short_ids(texts) == short).all()
    if len(short) > 1:
        with pytest.raises(InvalidText):
            decode_short_ids(list(encode_short_ids(short[::-1])))
        with pytest.raises(InvalidText):
            decode_short_ids(list(encode_short_ids(np.repeat(short, 2))))


@pytest.mark.clause("070-FACT-02")
@pytest.mark.parametrize(
    "texts",
    [
        ("01", "0" * 22, "0" * 64),
        ("-1", "0" * 22, "0" * 64),
        ("", "0" * 22, "0" * 64),
        ("9" * 19, "0" * 22, "0" * 64),
        ("1", "0" * 21, "0" * 64),
        ("1", "0" * 21 + "1", "0" * 64),
        ("1", "0" * 22, "0" * 63 + "="),
        ("1", "0" * 22, "0" * 68),
    ],
)
def test_summaries_that_nobody_writes_are_refused(texts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidText):
        decode_summary(*texts)


@pytest.mark.clause("070-KEY-01", "070-KEY-02", "070-KEY-03", "070-SKETCH-03", "070-SKETCH-04", "070-VEC-01")
@pytest.mark.parametrize("vector", VECTORS["sets"], ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, object]) -> None:
    """What another implementation must get, byte for byte."""
    key = derive_key(VECTORS["hello_0"].encode(), VECTORS["hello_1"].encode())
    ids = ids_of_texts(vector["records"])  # type: ignore[arg-type]
    keyed = keyed_ids(ids, key)
    assert [f"{int(value):016x}" for value in np.sort(keyed.short)] == vector["short_ids"]
    tree = UNKNOWN.of(set_of(ids)).root()
    assert tree.hex() == vector["tree"]
    assert list(encode_root(len(ids), told_root(tree, key))) == vector["root"]
    assert list(encode_summary(measured(ids, key))) == vector["summary"]
    assert list(encode_symbols(sketch(keyed.short, key, 0, 60))) == vector["symbols_0_60"]
