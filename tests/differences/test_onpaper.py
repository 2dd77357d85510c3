"""The vectors of 070 from its document alone, and our columns beside the same arithmetic done number by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences import onpaper
from differences.sets import random_ids
from lace.differences.idset import set_of
from lace.differences.keyed import derive_key, keyed_ids
from lace.differences.setview import measured
from lace.differences.sketch import sketch
from lace.differences.sums import estimate
from lace.differences.tree import UNKNOWN, told_root
from lace.differences.wire import encode_root, encode_summary, encode_symbols

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "differences.json").read_text(encoding="utf-8"))
HELLOS = [VECTORS[f"hello_{side}"].splitlines() for side in (0, 1)]


@pytest.mark.clause("070-VEC-01", "070-KEY-01", "070-KEY-02", "070-KEY-03", "070-ROOT-01", "070-ROOT-02", "070-SUM-02")
@pytest.mark.clause("070-EST-03", "070-SKETCH-01", "070-SKETCH-03", "070-SKETCH-04", "070-SKETCH-05")
@pytest.mark.parametrize("vector", VECTORS["sets"], ids=lambda vector: vector["name"])
def test_the_document_gives_the_vectors(vector: dict[str, Any]) -> None:
    key, records = onpaper.Key(*HELLOS), vector["records"]
    assert sorted(f"{key.keyed_id(record)[0]:016x}" for record in records) == vector["short_ids"]
    assert onpaper.tree(records).hex() == vector["tree"]
    assert [str(len(records)), key.root(records)] == vector["root"]
    assert list(key.summary(records).texts()) == vector["summary"]
    symbols = key.symbols(records, 60)
    assert [onpaper.symbols_text(part) for part in (symbols[:56], symbols[56:])] == vector["symbols_0_60"]


def test_words_of_the_key_stand_where_the_vectors_say() -> None:
    key, words = onpaper.Key(*HELLOS), VECTORS["keys"]
    assert [str(int.from_bytes(key.bytes[at : at + 8], "little")) for at in (0, 8)] == words["ids"]
    assert [str(key.check), str(key.walk)] == [words["check"], words["walk"]]


@pytest.mark.clause("070-EST-02", "070-LIN-01")
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 99), st.integers(1, 150))
def test_columns_count_what_the_document_counts(ours: int, theirs: int, salt: int, end: int) -> None:
    hellos = [[f"HelloLimit('x_differences_salt','{salt + side}')"] for side in (0, 1)]
    plain = onpaper.Key(*hellos)
    key = derive_key(*(f"{lines[0]}\n".encode() for lines in hellos))
    both = [random_ids(count, seed=seed) for count, seed in ((ours, 5), (theirs, 6))]
    sums = []
    for ids in both:
        records = ids.texts()
        assert list(encode_summary(measured(ids, key))) == list(plain.summary(records).texts())
        assert encode_root(len(ids), told_root(UNKNOWN.of(set_of(ids)).root(), key))[1] == plain.root(records)
        said = [symbol for text in encode_symbols(sketch(keyed_ids(ids, key).short, key, 0, end))
                for symbol in onpaper.symbols_of(text)]  # fmt: skip
        assert said == plain.symbols(records, end)
        sums.append(plain.summary(records))
    assert estimate(*(measured(ids, key) for ids in both)) == pytest.approx(onpaper.estimate(*sums))


@given(st.integers(0, 40), st.integers(0, 12), st.integers(0, 12))
def test_the_documents_decoder_names_what_differs(common: int, first: int, second: int) -> None:
    key, pool = onpaper.Key(["a"], ["b"]), random_ids(common + first + second, seed=9).texts()
    ours, theirs = pool[: common + first], pool[:common] + pool[common + first :]
    end = 24 + 4 * (first + second)
    found = key.decode(list(map(onpaper.minus, key.symbols(ours, end), key.symbols(theirs, end))))
    assert found is not None
    assert found == tuple(
        {key.keyed_id(one)[0] for one in only} for only in (set(ours) - set(theirs), set(theirs) - set(ours))
    )


def test_texts_are_read_back() -> None:
    symbols = [(255, onpaper.WORD, (1 << 32) - 1), (1, 2, 3), (0, 0, 0)]
    assert onpaper.symbols_of(onpaper.symbols_text(symbols)) == symbols
    assert onpaper.short_ids_of(onpaper.short_ids_text([0, 7, onpaper.WORD])) == [0, 7, onpaper.WORD]
