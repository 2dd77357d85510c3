"""Arrays of one or two dimensions over the cells of a memoryview.

Rule: what numpy would answer, as far as Lace asks; anything else raises. One-dimensional slices are views that write
through, as in numpy; everything of two dimensions is small here, and copied.
"""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, repeat
from typing import Any

from smallnumpy.dtypes import BOOL, FLOAT, INT, OBJECT, Structure, dtype, dtype_of, promoted, weakly_promoted

Shape = tuple[int, ...]
Operation = Callable[[Any, Any], Any]


class ndarray:  # noqa: N801 - numpy's name
    """Cells of one kind; two dimensions lie row by row."""

    __slots__ = ("_cells", "dtype", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, cells: Any, kind: dtype, shape: Shape | None = None) -> None:
        self._cells = cells
        self.dtype = kind
        self.shape: Shape = (len(cells),) if shape is None else shape

    def __class_getitem__(cls, _: object) -> type:
        return cls

    # --- looking at it -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.flat()) if len(self.shape) == 1 else map(self._row, range(len(self)))

    def __bool__(self) -> bool:
        (only,) = self.flat()
        return bool(only)

    def __repr__(self) -> str:
        return f"array({self.tolist()}, {self.dtype.kind}{self.dtype.itemsize})"

    @property
    def size(self) -> int:
        return len(self._cells)

    @property
    def nbytes(self) -> int:
        return len(self._cells) * self.dtype.itemsize

    @property
    def data(self) -> memoryview:
        """The cells themselves, in the machine's order."""
        return memoryview(self._cells)

    def flat(self) -> list[Any]:
        """Every value, row by row."""
        if not self.dtype.swapped:
            return self._cells.tolist() if isinstance(self._cells, memoryview) else list(self._cells)
        turned = array(self.dtype.code, bytes(self._cells))
        turned.byteswap()
        return turned.tolist()

    def tolist(self) -> list[Any]:
        values = self.flat()
        if len(self.shape) == 1:
            return values
        rows, width = self.shape
        return [values[row * width : (row + 1) * width] for row in range(rows)]

    def tobytes(self) -> bytes:
        return bytes(self._cells)

    def item(self, place: int) -> Any:
        return self._cells[place]

    def _row(self, number: int) -> ndarray:
        width = self.shape[1]
        return ndarray(self._cells[number * width : (number + 1) * width], self.dtype)

    # --- other forms -------------------------------------------------------------------------------------------

    def astype(self, kind: Any) -> ndarray:
        wanted = dtype_of(kind)
        return ndarray(wanted.cells(self.flat()), wanted, self.shape)

    def copy(self) -> ndarray:
        return ndarray(self.dtype.plain.cells(self.flat()), self.dtype.plain, self.shape)

    def view(self, kind: Any) -> ndarray:
        wanted = dtype_of(kind)
        data = memoryview(bytearray(bytes(self._cells)))
        cells = data.cast("?" if wanted.kind == "b" else wanted.code)
        if len(self.shape) == 2:
            return ndarray(cells, wanted, (self.shape[0], len(cells) // max(1, self.shape[0])))
        return ndarray(cells, wanted)

    def byteswap(self) -> ndarray:
        turned = array(self.dtype.code, bytes(self._cells))
        turned.byteswap()
        return ndarray(memoryview(turned), self.dtype, self.shape)

    def reshape(self, *shape: Any) -> ndarray:
        rows, *rest = shape[0] if isinstance(shape[0], tuple) else shape
        if not rest:
            return ndarray(self._cells, self.dtype)
        width = rest[0]
        rows = self.size // width if rows < 0 else rows
        if rows * width != self.size:
            raise ValueError(f"{self.size} cells are not {rows} times {width}")
        return ndarray(self._cells, self.dtype, (rows, width))

    @property
    def T(self) -> ndarray:  # noqa: N802 - numpy's name
        rows, width = self.shape
        values = self.flat()
        turned = [values[row * width + column] for column in range(width) for row in range(rows)]
        return ndarray(self.dtype.cells(turned), self.dtype, (width, rows))

    # --- parts -------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self._part_of_rows(*key)
        if len(self.shape) == 2:
            if isinstance(key, slice):
                chosen = range(*key.indices(len(self)))
                width = self.shape[1]
                return ndarray(_joined(self, [self._row(row) for row in chosen]), self.dtype, (len(chosen), width))
            return self._row(operator.index(key) % len(self))
        if isinstance(key, slice):
            return ndarray(self._cells[key], self.dtype)
        if isinstance(key, ndarray | list):
            return self._chosen(as_array(key))
        return self.flat()[key] if self.dtype.swapped else self._cells[operator.index(key)]

    def _chosen(self, key: ndarray) -> ndarray:
        if key.dtype.kind == "b":
            if len(key) != len(self):
                raise IndexError(f"a mask of {len(key)} for {len(self)} cells")
            return ndarray(self.dtype.cells(list(compress(self._as_stored(), key._cells))), self.dtype)
        found = list(map(self._as_stored().__getitem__, key.flat()))
        return ndarray(self.dtype.cells(found), self.dtype)

    def _as_stored(self) -> Any:
        return self.flat() if self.dtype.kind != "O" else self._cells

    def _part_of_rows(self, rows: Any, columns: Any) -> ndarray:
        if isinstance(rows, int):
            return self._row(rows)[columns]  # type: ignore[no-any-return]
        parts = [self._row(row)[columns] for row in range(*rows.indices(len(self)))]
        if isinstance(columns, int):
            return ndarray(self.dtype.plain.cells(parts), self.dtype.plain)
        width = len(parts[0]) if parts else len(range(*columns.indices(self.shape[1])))
        return ndarray(_joined(self, parts), self.dtype, (len(parts), width))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, tuple):
            self._set_rows(*key, value)
        elif isinstance(key, slice):
            self._cells[key] = self._to_store(value, len(range(*key.indices(len(self)))))
        elif isinstance(key, ndarray | list):
            self._set_chosen(as_array(key), value)
        elif len(self.shape) == 2:
            width = self.shape[1]
            self._cells[key * width : (key + 1) * width] = self._to_store(value, width)
        else:
            self._cells[key] = self._to_store(value, 1)[0]

    def _set_rows(self, rows: Any, columns: Any, value: Any) -> None:
        width = self.shape[1]
        for number in range(*rows.indices(len(self))):
            part = ndarray(self._cells[number * width : (number + 1) * width], self.dtype)
            given = value
            if isinstance(value, ndarray):
                given = value._row(number) if len(value.shape) == 2 else value[number]
            part[columns] = given

    def _set_chosen(self, key: ndarray, value: Any) -> None:
        places = list(compress(range(len(self)), key._cells)) if key.dtype.kind == "b" else key.flat()
        stored, cells = self._to_store(value, len(places)), self._cells
        for place, one in zip(places, stored, strict=True):
            cells[place] = one

    def _to_store(self, value: Any, count: int) -> Any:
        """A value or values as cells of this kind."""
        if isinstance(value, ndarray | list | tuple):
            values = value.flat() if isinstance(value, ndarray) else list(value)
            values = values * count if len(values) == 1 else values
            return self.dtype.cells(values)
        return self.dtype.filled(count, value)

    # --- numbers -----------------------------------------------------------------------------------------------

    def _with(self, other: Any, operation: Operation, result: dtype | None = None, *, turned: bool = False) -> Any:
        if isinstance(other, ndarray):
            kind = result or promoted(self.dtype, other.dtype)
            if len(other.shape) == len(self.shape) and other.size != self.size:
                if other.size != 1 and self.size != 1:
                    raise ValueError(f"shapes {self.shape} and {other.shape}")
                mine = self.flat() * other.size if self.size == 1 else self.flat()
                its: Iterable[Any] = other.flat() * self.size if other.size == 1 else other.flat()
            else:
                mine, its = self.flat(), other.flat()
            shape = self.shape if self.size != 1 else other.shape
        elif hasattr(other, "dtype"):
            kind = result or promoted(self.dtype, other.dtype)
            mine, its, shape = self.flat(), repeat(other), self.shape
        elif isinstance(other, int | float):
            kind = result or weakly_promoted(self.dtype, other)
            mine, its, shape = self.flat(), repeat(other), self.shape
        else:
            return NotImplemented
        found = list(map(operation, its, mine)) if turned else list(map(operation, mine, its))
        return ndarray(kind.cells(found), kind, shape)

    def _change(self, other: Any, operation: Operation) -> ndarray:
        changed = self._with(other, operation)
        self._cells[:] = self.dtype.cells(changed.flat())
        return self

    def __invert__(self) -> ndarray:
        turn = operator.not_ if self.dtype.kind == "b" else operator.invert
        return ndarray(self.dtype.cells(list(map(turn, self.flat()))), self.dtype, self.shape)

    def __matmul__(self, other: ndarray) -> Any:
        return sum(map(operator.mul, self.flat(), other.flat()))

    # --- all of it ---------------------------------------------------------------------------------------------

    def any(self, axis: int | None = None) -> Any:
        return any(self.flat()) if axis is None else self._by_column(any)

    def all(self, axis: int | None = None) -> Any:
        return all(self.flat()) if axis is None else self._by_column(all)

    def _by_column(self, fold: Callable[[Iterable[Any]], bool]) -> ndarray:
        rows = [self._row(row).flat() for row in range(len(self))]
        columns = zip(*rows, strict=True) if rows else repeat((), self.shape[1])
        return ndarray(BOOL.cells(map(fold, columns)), BOOL)

    def max(self, initial: Any = None) -> Any:
        return max(self.flat()) if initial is None else max(self.flat(), default=initial)

    def min(self) -> Any:
        return min(self.flat())

    def sum(self) -> Any:
        return sum(self.flat())

    def mean(self) -> float:
        return sum(self.flat()) / self.size

    def sort(self, kind: str = "") -> None:
        self._cells[:] = self.dtype.cells(sorted(self.flat()))

    def searchsorted(self, wanted: Any, side: str = "left") -> Any:
        values, look = self.flat(), bisect_left if side == "left" else bisect_right
        if not isinstance(wanted, ndarray):
            return look(values, wanted)
        return ndarray(INT.cells([look(values, one) for one in wanted.flat()]), INT)


def _give_operators() -> None:
    """`+` and the like: as they stand, turned round, in place."""
    arithmetic = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
    bitwise = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
    shifts = {"lshift": operator.lshift, "rshift": operator.rshift}
    for name, do in {**arithmetic, **bitwise, **shifts}.items():
        setattr(ndarray, f"__{name}__", lambda self, other, do=do: self._with(other, do))
        setattr(ndarray, f"__r{name}__", lambda self, other, do=do: self._with(other, do, turned=True))
        setattr(ndarray, f"__i{name}__", lambda self, other, do=do: self._change(other, do))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        compare = getattr(operator, name)
        setattr(ndarray, f"__{name}__", lambda self, other, do=compare: self._with(other, do, BOOL))


_give_operators()


def _joined(like: ndarray, parts: Iterable[ndarray]) -> Any:
    return like.dtype.cells([value for part in parts for value in part.flat()])


def as_array(value: Any, kind: Any = None) -> ndarray:
    """Whatever numpy would take for an array."""
    if isinstance(value, ndarray):
        return value if kind is None or dtype_of(kind) == value.dtype else value.astype(kind)
    if isinstance(value, memoryview | range):
        value = list(value)
    if not isinstance(value, list | tuple):
        value = [value]
    if value and isinstance(value[0], list | tuple):
        wanted = INT if kind is None else dtype_of(kind)
        return ndarray(wanted.cells([one for row in value for one in row]), wanted, (len(value), len(value[0])))
    wanted = _kind_of(value) if kind is None else dtype_of(kind)
    return ndarray(wanted.cells(value), wanted)


def _kind_of(values: Iterable[Any]) -> dtype:
    """The type of plain values: numpy calls an empty list floats."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return BOOL
    if kinds and kinds <= {int, bool}:
        return INT
    return FLOAT if kinds <= {int, float, bool} else OBJECT


class StructuredArray:
    """Rows of a structure, one array for each field."""

    def __init__(self, structure: Structure, columns: dict[str, ndarray]) -> None:
        self._structure = structure
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        return StructuredArray(self._structure, {name: column[key] for name, column in self._columns.items()})

    def __setitem__(self, name: str, values: Any) -> None:
        self._columns[name][:] = values

    def tobytes(self) -> bytes:
        fields = [(self._columns[name].tobytes(), kind.itemsize) for name, kind in self._structure.fields]
        rows = range(len(self))
        return b"".join(data[size * row : size * (row + 1)] for row in rows for data, size in fields)
