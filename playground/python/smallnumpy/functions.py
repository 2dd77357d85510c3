"""The functions of numpy that Lace calls, over `ndarray`.

Rule: as in `array`, what numpy would answer as far as Lace asks.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, chain, islice
from typing import Any

from smallnumpy.array import StructuredArray, as_array, ndarray
from smallnumpy.dtypes import BOOL, FLOAT, INT, Structure, dtype, dtype_of, promoted


class Function:
    """An operation on whole arrays, with `reduce`, `at` and `out`."""

    def __init__(self, operation: Callable[..., Any], result: dtype | None = None, start: Any = None) -> None:
        self._operation = operation
        self._result = result
        self._start = start

    def __call__(self, left: Any, *right: Any, out: ndarray | None = None) -> Any:
        if right:
            turned = not isinstance(left, ndarray)
            array, other = (right[0], left) if turned else (left, right[0])
            found = array._with(other, self._operation, self._result, turned=turned)
        else:
            kind = self._result or left.dtype
            found = ndarray(kind.cells(list(map(self._operation, left.flat()))), kind, left.shape)
        if out is None:
            return found
        out[:] = found
        return out

    def reduce(self, values: Any, *, keepdims: bool = False, dtype: Any = None) -> Any:
        """One value of all, or one array of several."""
        if not isinstance(values, ndarray):
            total = values[0]
            for one in values[1:]:
                total = self(total, one)
            return total
        kind = dtype_of(dtype) if dtype is not None else _summing(values.dtype)
        total = self._start
        for one in values.flat():
            total = self._operation(total, one)
        cells = kind.cells([total])
        return ndarray(cells, kind) if keepdims else cells[0]

    def at(self, array: ndarray, places: ndarray, values: Any) -> None:
        """The operation at each place, repeated where a place is."""
        given = values.flat() if isinstance(values, ndarray) else [values] * len(places)
        cells = array.flat()
        for place, value in zip(places.flat(), given, strict=True):
            cells[place] = self._operation(cells[place], value)
        array[:] = cells


def _summing(kind: dtype) -> dtype:
    """Sums of small numbers are kept in long ones."""
    if kind.kind == "f":
        return FLOAT
    return dtype_of("u8") if kind.kind == "u" else INT


add = Function(operator.add, start=0)
minimum, maximum = Function(min), Function(max)
equal, not_equal = Function(operator.eq, BOOL), Function(operator.ne, BOOL)
logical_or = Function(lambda left, right: bool(left or right), BOOL, start=False)
left_shift, right_shift, bitwise_or = Function(operator.lshift), Function(operator.rshift), Function(operator.or_)
sqrt, ceil, divide = Function(math.sqrt, FLOAT), Function(math.ceil, FLOAT), Function(operator.truediv, FLOAT)
square = Function(lambda value: value * value)


def errstate(**_: str) -> AbstractContextManager[None]:
    """Nothing warns here."""
    return nullcontext()


# --- making ---------------------------------------------------------------------------------------------------------


def _of_shape(shape: int | tuple[int, ...], kind: dtype, value: Any) -> ndarray:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    count = math.prod(sizes)
    return ndarray(kind.filled(count, value) if value else kind.blank(count), kind, sizes)


def zeros(shape: int | tuple[int, ...], dtype: Any = float) -> ndarray:
    return _of_shape(shape, dtype_of(dtype), 0)


def empty(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    kind = dtype_of(dtype)
    if isinstance(kind, Structure):
        return StructuredArray(kind, {name: zeros(shape, one) for name, one in kind.fields})
    return _of_shape(shape, kind, 0)


def ones(shape: int | tuple[int, ...], dtype: Any = float) -> ndarray:
    return _of_shape(shape, dtype_of(dtype), 1)


def full(shape: int | tuple[int, ...], value: Any, dtype: Any) -> ndarray:
    return _of_shape(shape, dtype_of(dtype), value)


def arange(start: int, stop: int | None = None, dtype: Any = int) -> ndarray:
    numbers = range(start) if stop is None else range(start, stop)
    kind = dtype_of(dtype)
    return ndarray(kind.cells(list(numbers)), kind)


def array(values: Any, dtype: Any = None) -> ndarray:
    made = as_array(values, dtype)
    return made.copy() if made is values else made


def asarray(values: Any, dtype: Any = None) -> ndarray:
    return as_array(values, dtype)


def ascontiguousarray(values: ndarray) -> ndarray:
    cells = values._cells
    if not isinstance(cells, memoryview) or cells.c_contiguous:
        return values
    return ndarray(values.dtype.cells(values.flat()), values.dtype, values.shape)


def fromiter(values: Iterable[Any], dtype: Any, count: int = -1) -> ndarray:
    kind = dtype_of(dtype)
    found = list(values if count < 0 else islice(values, count))
    if len(found) < count:
        raise ValueError(f"{count} values were promised and {len(found)} came")
    return ndarray(kind.cells(found), kind)


def frombuffer(data: Any, dtype: Any) -> Any:
    kind = dtype_of(dtype)
    flat = memoryview(data).cast("B")
    if isinstance(kind, Structure):
        return StructuredArray(kind, _columns(bytes(flat), kind))
    return ndarray(flat.cast("?" if kind.kind == "b" else kind.code), kind)


def _columns(data: bytes, structure: Structure) -> dict[str, ndarray]:
    columns, offset, step = {}, 0, structure.itemsize
    for name, kind in structure.fields:
        cells = b"".join(data[at + offset : at + offset + kind.itemsize] for at in range(0, len(data), step))
        columns[name] = frombuffer(bytearray(cells), kind)
        offset += kind.itemsize
    return columns


def concatenate(parts: Sequence[Any], axis: int = 0) -> ndarray:
    arrays = [as_array(part) for part in parts]
    kind = arrays[0].dtype.plain
    for one in arrays[1:]:
        kind = promoted(kind, one.dtype)
    if len(arrays[0].shape) == 1:
        return ndarray(kind.cells(list(chain.from_iterable(one.flat() for one in arrays))), kind)
    if axis == 0:
        return vstack(arrays)
    found = [value for row in range(len(arrays[0])) for one in arrays for value in one._row(row).flat()]
    width = sum(one.shape[1] for one in arrays)
    return ndarray(kind.cells(found), kind, (len(arrays[0]), width))


def vstack(parts: Sequence[ndarray]) -> ndarray:
    rows = [row for part in parts for row in ([part] if len(part.shape) == 1 else part)]
    kind = parts[0].dtype
    return ndarray(kind.cells([value for row in rows for value in row.flat()]), kind, (len(rows), len(rows[0])))


def repeat(values: ndarray, counts: Any) -> ndarray:
    times = counts.flat() if isinstance(counts, ndarray) else counts
    found = [value for value, many in zip(values.flat(), times, strict=True) for _ in range(many)]
    return ndarray(values.dtype.cells(found), values.dtype)


# --- asking ---------------------------------------------------------------------------------------------------------


def flatnonzero(values: ndarray) -> ndarray:
    return ndarray(INT.cells([place for place, value in enumerate(values.flat()) if value]), INT)


def count_nonzero(values: ndarray) -> int:
    return sum(map(bool, values.flat()))


def array_equal(left: ndarray, right: ndarray) -> bool:
    return left.shape == right.shape and left.flat() == right.flat()


def isin(values: ndarray, among: ndarray) -> ndarray:
    wanted = set(among.flat())
    return ndarray(BOOL.cells([value in wanted for value in values.flat()]), BOOL)


def where(mask: ndarray, yes: Any, no: Any) -> ndarray:
    arrays = [one for one in (yes, no) if isinstance(one, ndarray)]
    kind = arrays[0].dtype if arrays else INT
    for one in arrays[1:]:
        kind = promoted(kind, one.dtype)
    left, right = (one.flat() if isinstance(one, ndarray) else [one] * len(mask) for one in (yes, no))
    return ndarray(
        kind.cells([a if chosen else b for chosen, a, b in zip(mask.flat(), left, right, strict=True)]), kind
    )


def searchsorted(ordered: ndarray, wanted: Any, side: str = "left") -> Any:
    return ordered.searchsorted(wanted, side)


def bincount(values: ndarray, minlength: int = 0) -> ndarray:
    found = values.flat()
    counts = [0] * max(minlength, max(found, default=-1) + 1)
    for value in found:
        counts[value] += 1
    return ndarray(INT.cells(counts), INT)


def cumsum(values: ndarray, out: ndarray | None = None) -> ndarray:
    kind = _summing(values.dtype)
    found = ndarray(kind.cells(list(accumulate(values.flat()))), kind)
    if out is None:
        return found
    out[:] = found
    return out


def diff(values: ndarray) -> ndarray:
    return values[1:] - values[:-1]  # type: ignore[no-any-return]


# --- order ----------------------------------------------------------------------------------------------------------


def sort(values: ndarray) -> ndarray:
    return ndarray(values.dtype.cells(sorted(values.flat())), values.dtype)


def argsort(values: ndarray, kind: str = "") -> ndarray:
    return ndarray(INT.cells(sorted(range(len(values)), key=values.flat().__getitem__)), INT)


def lexsort(keys: Sequence[ndarray]) -> ndarray:
    rows = list(zip(*(key.flat() for key in reversed(keys)), strict=True))
    return ndarray(INT.cells(sorted(range(len(rows)), key=rows.__getitem__)), INT)
