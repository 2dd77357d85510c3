"""A value as a key of a cache by its identity, where comparing it would cost what the cache should save.

Rule: two keys are equal if they hold the same object. A cache keeps that alive, so no other object takes its place.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class SameObject(Generic[T]):
    """This object, and none that is equal to it."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
