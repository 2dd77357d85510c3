"""Kinds of cells: what `numpy.dtype` and numpy's scalar types are to the code that uses them.

Rule: a type says how cells lie in memory (a format of `memoryview`) and which of two types an operation gives (NEP 50).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class dtype:  # noqa: N801 - numpy's name
    """A kind of cell; `code` is its format, "O" for any object."""

    code: str
    kind: str  # b, u, i, f or O, as numpy has them
    itemsize: int
    swapped: bool = False  # the other byte order than this machine's

    def __new__(cls, code: Any, *rest: Any) -> Any:
        """`dtype(code, kind, itemsize)` makes one; `dtype([...])` a structure; anything else names one."""
        if isinstance(code, list):
            return Structure([(name, dtype_of(kind)) for name, kind in code])
        return object.__new__(cls)

    @property
    def plain(self) -> dtype:
        """The same in this machine's byte order."""
        return dtype(self.code, self.kind, self.itemsize)

    def cells(self, values: Iterable[Any]) -> Any:
        """Values as cells: a memoryview, or a list of objects. What does not fit wraps, as in C."""
        if self.kind == "O":
            return list(values)
        if self.kind == "b":
            return memoryview(bytearray(map(bool, values))).cast("?")
        found = values if isinstance(values, list) else list(values)
        try:
            made = array(self.code, found)
        except (OverflowError, TypeError):  # TypeError: floats, which are cut
            made = array(self.code, self.wrap(found))
        if self.swapped:
            made.byteswap()
        return memoryview(made)

    def wrap(self, values: Iterable[Any]) -> list[int]:
        """Values modulo 2^bits."""
        bits = 8 * self.itemsize
        mask, half = (1 << bits) - 1, 1 << (bits - 1)
        low = [int(value) & mask for value in values]
        return low if self.kind == "u" else [value - mask - 1 if value >= half else value for value in low]

    def blank(self, count: int) -> Any:
        """Cells of nothing."""
        if self.kind == "O":
            return [None] * count
        return memoryview(bytearray(count * self.itemsize)).cast("?" if self.kind == "b" else self.code)

    def filled(self, count: int, value: Any) -> Any:
        """Cells of one value."""
        if self.kind in "Ob" or not value:
            made = self.blank(count)
            if value:
                made[:] = [value] * count if self.kind == "O" else memoryview(b"\1" * count).cast("?")
            return made
        return memoryview(array(self.code, bytes(self.cells([value]))) * count)


class Structure:
    """A record of several cells without gaps."""

    def __init__(self, fields: list[tuple[str, dtype]]) -> None:
        self.fields = fields
        self.itemsize = sum(kind.itemsize for _, kind in fields)


class generic:  # noqa: N801
    """Base of all scalar types."""

    dtype: dtype

    def __class_getitem__(cls, _: object) -> type:
        return cls


class integer(generic):  # noqa: N801
    """Whole numbers."""


class uint8(int, integer):  # noqa: N801
    dtype = dtype("B", "u", 1)


class uint16(int, integer):  # noqa: N801
    dtype = dtype("H", "u", 2)


class uint32(int, integer):  # noqa: N801
    dtype = dtype("I", "u", 4)


class uint64(int, integer):  # noqa: N801
    dtype = dtype("Q", "u", 8)


class int32(int, integer):  # noqa: N801
    dtype = dtype("i", "i", 4)


class int64(int, integer):  # noqa: N801
    dtype = dtype("q", "i", 8)


class float64(float, generic):  # noqa: N801
    dtype = dtype("d", "f", 8)


class bool_(generic):  # noqa: N801
    """Truth values; a plain bool stands for one."""

    dtype = dtype("?", "b", 1)

    def __new__(cls, value: object = False) -> bool:  # type: ignore[misc]  # nobody can derive from bool
        return bool(value)


OBJECT = dtype("O", "O", 0)
BOOL, INT, FLOAT = bool_.dtype, int64.dtype, float64.dtype
_BY_SIZE = {("u", 1): uint8, ("u", 2): uint16, ("u", 4): uint32, ("u", 8): uint64, ("i", 4): int32, ("i", 8): int64}
_PLAIN: dict[Any, dtype] = {object: OBJECT, bool: BOOL, int: INT, float: FLOAT}
_NATIVE = "<" if memoryview(array("H", [1])).tobytes()[0] else ">"


def dtype_of(kind: Any) -> dtype:
    """What a caller means by a type: a scalar type, a text such as ">u8", a dtype, or a type of Python."""
    if isinstance(kind, dtype | Structure):
        return kind  # type: ignore[return-value]  # structures go where dtypes go, and are asked for less
    if isinstance(kind, str):
        found = _BY_SIZE[kind[-2], int(kind[-1])].dtype
        order = kind[:-2] or _NATIVE
        swapped = found.itemsize > 1 and order != _NATIVE
        return dtype(found.code, found.kind, found.itemsize, swapped) if swapped else found
    return _PLAIN.get(kind) or kind.dtype


def promoted(left: dtype, right: dtype) -> dtype:
    """The type of an operation on two typed operands."""
    left, right = left.plain, right.plain
    if left == right or right.kind == "b":
        return left
    if left.kind == "b":
        return right
    if "f" in (left.kind, right.kind):
        return FLOAT
    if left.kind == right.kind:
        return left if left.itemsize >= right.itemsize else right
    signed, unsigned = (left, right) if left.kind == "i" else (right, left)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return INT if unsigned.itemsize < 8 else FLOAT


def weakly_promoted(kind: dtype, scalar: Any) -> dtype:
    """The type of an operation with a plain number of Python, which has no size of its own."""
    kind = kind.plain
    if isinstance(scalar, float):
        return FLOAT
    return INT if kind.kind == "b" and not isinstance(scalar, bool) else kind
