"""Distinct values by sorting.

Rule: like `numpy.unique`, which on its first call imports numpy's masked arrays; that alone costs more than most
evaluations.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound="np.generic[Any]")


def sorted_unique(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Distinct values in ascending order."""
    if len(values) < 2:
        return values
    ordered = np.sort(values)
    keep = np.empty(len(ordered), np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def numbered(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Distinct values in ascending order, and for each value its place among them."""
    distinct = sorted_unique(values)
    return distinct, np.searchsorted(distinct, values)
