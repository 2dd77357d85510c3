"""As much of numpy as Lace calls, in plain Python: for a browser tab, where numpy's own wheel is not at hand.

Rule: the same answers, cell for cell; `tests/playground` holds both against each other, and runs the case suite of the
engine on this one. Nothing here is fast, and nothing outside the playground may use it.
"""

from smallnumpy.array import ndarray
from smallnumpy.dtypes import bool_, dtype, float64, generic, int32, int64, integer, uint8, uint16, uint32, uint64
from smallnumpy.functions import (
    add,
    arange,
    argsort,
    array,
    array_equal,
    asarray,
    ascontiguousarray,
    bincount,
    bitwise_or,
    ceil,
    concatenate,
    count_nonzero,
    cumsum,
    diff,
    divide,
    empty,
    equal,
    errstate,
    flatnonzero,
    frombuffer,
    fromiter,
    full,
    isin,
    left_shift,
    lexsort,
    logical_or,
    maximum,
    minimum,
    not_equal,
    ones,
    repeat,
    right_shift,
    searchsorted,
    sort,
    sqrt,
    square,
    vstack,
    where,
    zeros,
)

__all__ = [
    "add",
    "arange",
    "argsort",
    "array",
    "array_equal",
    "asarray",
    "ascontiguousarray",
    "bincount",
    "bitwise_or",
    "bool_",
    "ceil",
    "concatenate",
    "count_nonzero",
    "cumsum",
    "diff",
    "divide",
    "dtype",
    "empty",
    "equal",
    "errstate",
    "flatnonzero",
    "float64",
    "frombuffer",
    "fromiter",
    "full",
    "generic",
    "install",
    "int32",
    "int64",
    "integer",
    "isin",
    "left_shift",
    "lexsort",
    "logical_or",
    "maximum",
    "minimum",
    "ndarray",
    "not_equal",
    "ones",
    "repeat",
    "right_shift",
    "searchsorted",
    "sort",
    "sqrt",
    "square",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vstack",
    "where",
    "zeros",
]


def install() -> None:
    """Be numpy for every import that follows."""
    import sys

    import smallnumpy
    from smallnumpy import typing

    sys.modules["numpy"] = smallnumpy
    sys.modules["numpy.typing"] = typing
