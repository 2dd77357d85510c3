"""The stand-in answers as numpy does, cell for cell, for everything that Lace asks of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import smallnumpy as small
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent.parent
RANGES = {
    "uint8": (0, 255),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 62), 1 << 62),
}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}
kinds = st.sampled_from(sorted(RANGES))


@st.composite
def columns(draw: st.DrawFn, count: int | None = None, kind: str | None = None) -> tuple[str, list[int]]:
    kind = kind or draw(kinds)
    values = st.integers(*RANGES[kind]) | st.integers(0, 9)
    size = {"min_size": count, "max_size": count} if count is not None else {"max_size": 12}
    return kind, draw(st.lists(values, **size))


def both(column: tuple[str, list[int]]) -> tuple[Any, Any]:
    kind, values = column
    return np.array(values, getattr(np, kind)), small.array(values, getattr(small, kind))


def alike(theirs: Any, ours: Any) -> None:
    """The same values of the same type and shape."""
    if not isinstance(theirs, np.ndarray):
        assert ours == theirs
        return
    assert ours.tolist() == theirs.tolist()
    assert ours.shape == theirs.shape
    assert (ours.dtype.kind, ours.dtype.itemsize) == (theirs.dtype.kind, theirs.dtype.itemsize)


@given(st.data(), kinds, kinds, st.sampled_from(sorted(OPERATIONS)))
def test_two_columns_are_combined_alike(data: st.DataObject, left: str, right: str, sign: str) -> None:
    signed_and_widest = {left, right} >= {"uint64"} and "int" in (left + right).replace("uint", "")
    if signed_and_widest and sign in "&|^+-*":
        return  # numpy makes floats of these or refuses them; Lace never combines them
    count = data.draw(st.integers(0, 8))
    first, second = data.draw(columns(count, left)), data.draw(columns(count, right))
    (a, b), (x, y) = zip(both(first), both(second), strict=True)
    with np.errstate(all="ignore"):
        alike(OPERATIONS[sign](a, b), OPERATIONS[sign](x, y))


@given(columns(), st.sampled_from(sorted(OPERATIONS)), st.integers(0, 7))
def test_a_column_and_a_number_are_combined_alike(column: tuple[str, list[int]], sign: str, number: int) -> None:
    theirs, ours = both(column)
    kind = column[0]
    with np.errstate(all="ignore"):
        alike(OPERATIONS[sign](theirs, number), OPERATIONS[sign](ours, number))
        typed = getattr(np, kind)(number), getattr(small, kind)(number)
        alike(OPERATIONS[sign](theirs, typed[0]), OPERATIONS[sign](ours, typed[1]))
        alike(OPERATIONS[sign](typed[0], theirs), OPERATIONS[sign](typed[1], ours))


@given(columns(), st.integers(0, 40))
def test_bits_are_shifted_alike(column: tuple[str, list[int]], by: int) -> None:
    kind = column[0]
    if kind.startswith("int") or by >= np.dtype(kind).itemsize * 8:
        return
    theirs, ours = both(column)
    alike(theirs >> getattr(np, kind)(by), ours >> getattr(small, kind)(by))
    alike(theirs << getattr(np, kind)(by), ours << getattr(small, kind)(by))


@given(columns(), kinds)
def test_a_column_changes_its_type_alike(column: tuple[str, list[int]], kind: str) -> None:
    theirs, ours = both(column)
    alike(theirs.astype(getattr(np, kind)), ours.astype(getattr(small, kind)))
    assert ours.tobytes() == theirs.tobytes()
    if theirs.dtype.itemsize > 1:
        for order in (">", "<"):
            code = f"{order}{theirs.dtype.kind}{theirs.dtype.itemsize}"
            assert ours.astype(code).tobytes() == theirs.astype(code).tobytes()
            alike(np.frombuffer(theirs.astype(code).tobytes(), code).astype(theirs.dtype),
                  small.frombuffer(ours.astype(code).tobytes(), code).astype(ours.dtype))  # fmt: skip


@given(columns(), st.data())
def test_parts_are_taken_and_written_alike(column: tuple[str, list[int]], data: st.DataObject) -> None:
    theirs, ours = both(column)
    count = len(theirs)
    mask = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    alike(theirs[np.array(mask, np.bool_)], ours[small.array(mask, small.bool_)])
    cut = data.draw(st.slices(count))
    alike(theirs[cut], ours[cut])
    if not count:
        return
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=9))
    alike(theirs[np.array(places, np.int64)], ours[small.array(places, small.int64)])
    theirs[cut], ours[cut] = 3, 3
    theirs[np.array(mask, np.bool_)], ours[small.array(mask, small.bool_)] = 5, 5
    theirs[np.array(places, np.int64)] = np.arange(len(places))
    ours[small.array(places, small.int64)] = small.arange(len(places))
    alike(theirs, ours)
    theirs[1:][:1] += getattr(np, column[0])(1)
    ours[1:][:1] += getattr(small, column[0])(1)  # a part is a view: writing to it writes to the whole
    alike(theirs, ours)


@given(columns(), columns())
def test_order_and_search_are_alike(column: tuple[str, list[int]], other: tuple[str, list[int]]) -> None:
    theirs, ours = both(column)
    alike(np.sort(theirs), small.sort(ours))
    alike(np.argsort(theirs, kind="stable"), small.argsort(ours, kind="stable"))
    wanted = both((column[0], [min(value, RANGES[column[0]][1]) for value in map(abs, other[1])]))
    for side in ("left", "right"):
        alike(np.searchsorted(np.sort(theirs), wanted[0], side), small.searchsorted(small.sort(ours), wanted[1], side))
    alike(np.lexsort((theirs, theirs & theirs.dtype.type(1))), small.lexsort((ours, ours & 1)))
    alike(np.isin(theirs, wanted[0]), small.isin(ours, wanted[1]))


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 12))
def test_counting_is_alike(values: list[int], least: int) -> None:
    theirs, ours = np.array(values, np.uint32), small.array(values, small.uint32)
    alike(np.bincount(theirs, minlength=least), small.bincount(ours, minlength=least))
    alike(np.flatnonzero(theirs), small.flatnonzero(ours))
    assert small.count_nonzero(ours) == np.count_nonzero(theirs)
    alike(np.cumsum(theirs.astype(np.int64)), small.cumsum(ours.astype(small.int64)))
    alike(np.repeat(theirs, values), small.repeat(ours, values))
    alike(np.where(theirs > 4, theirs, np.uint32(7)), small.where(ours > 4, ours, small.uint32(7)))
    if values:
        alike(np.concatenate([theirs, [True], theirs > 3]), small.concatenate([ours, [True], ours > 3]))
    assert small.array_equal(ours, ours.copy())
    sums, mine = np.zeros(10, np.uint64), small.zeros(10, small.uint64)
    np.add.at(sums, theirs, np.uint64((1 << 64) - 3))
    small.add.at(mine, ours, small.uint64((1 << 64) - 3))
    alike(sums, mine)
    assert small.add.reduce(mine) == int(np.add.reduce(sums))


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_tables_are_alike(rows: int, width: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 255), min_size=rows * width, max_size=rows * width))
    theirs = np.array(values, np.uint8).reshape(rows, width)
    ours = small.array(values, small.uint8).reshape(rows, width)
    alike(theirs.T, ours.T)
    alike(theirs[:, 0], ours[:, 0])
    alike(theirs[:, 1:], ours[:, 1:])
    alike((theirs == 3).any(axis=0), (ours == 3).any(axis=0))
    alike((theirs == 3).all(axis=0), (ours == 3).all(axis=0))
    alike(np.concatenate((theirs, theirs), axis=1), small.concatenate((ours, ours), axis=1))
    alike(np.vstack((theirs, theirs[0])), small.vstack((ours, ours[0])))
    theirs[:, :1], ours[:, :1] = 9, 9
    theirs[:, width - 1] = np.arange(rows, dtype=np.uint8)
    ours[:, width - 1] = small.arange(rows, dtype=small.uint8)
    theirs[rows - 1] = np.arange(width, dtype=np.uint8)
    ours[rows - 1] = small.arange(width, dtype=small.uint8)
    alike(theirs, ours)


def test_rows_of_several_fields_are_written_and_read_alike() -> None:
    fields = [("sum", ">u8"), ("check", ">u4"), ("count", "u1")]
    theirs, ours = np.empty(3, np.dtype(fields)), small.empty(3, small.dtype(fields))
    for rows, module in ((theirs, np), (ours, small)):
        rows["sum"] = module.array([1, 2, 1 << 63], module.uint64)
        rows["check"], rows["count"] = module.array([7, 8, 9], module.uint32), module.array([1, 255, 0], module.uint8)
    assert ours.tobytes() == theirs.tobytes()
    read = small.frombuffer(theirs.tobytes(), small.dtype(fields))
    assert read["sum"].astype(small.uint64).tolist() == [1, 2, 1 << 63]
    assert read[1:]["count"].tolist() == [255, 0]


def test_what_numpy_refuses_is_refused() -> None:
    with pytest.raises(IndexError):
        small.arange(3)[small.array([True], small.bool_)]
    with pytest.raises(ValueError, match="shapes"):
        small.arange(3) + small.arange(2)
    with pytest.raises(ValueError, match="promised"):
        small.fromiter([1], small.int64, 2)


@pytest.mark.long
@pytest.mark.clause("030-EVAL-07")
def test_every_program_of_the_case_suite_gives_its_facts_on_the_stand_in() -> None:
    inside = Path(__file__).parent / "inside.py"
    paths = {"PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("playground/python", "src", "tests"))}
    wanted = ["tests/executors/test_cases.py", "-k", "embedded or incremental"]
    run = [sys.executable, str(inside), *wanted]
    done = subprocess.run(run, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
