"""Frozen values: made faster than by `dataclasses`, and not to be told from what that makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.values import dataclass

NAMES = ["a", "b", "c", "self", "_hidden", "cls"]


def _made(decorate: Callable[..., Any], fields: list[tuple[str, dict[str, Any]]], options: dict[str, bool]) -> Any:
    body: dict[str, Any] = {
        "__annotations__": dict.fromkeys((name for name, _ in fields), "int"),
        "__doc__": "A value.",
    }
    body |= {name: dataclasses.field(**said) for name, said in fields if said}
    return decorate(frozen=True, slots=True, **options)(type("Made", (), body))


FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "repr": st.booleans(),
        "compare": st.booleans(),
        "hash": st.sampled_from([None, True, False]),
        "kw_only": st.booleans(),
    },
)
DEFAULTS = st.sampled_from([{}, {"default": 7}, {"default_factory": list}])
FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.builds(lambda flags, default: flags | default, FLAGS, DEFAULTS)),
    max_size=5,
    unique_by=lambda pair: pair[0],
).map(lambda fields: sorted(fields, key=lambda pair: bool(pair[1].keys() & {"default", "default_factory"})))
OPTIONS = st.fixed_dictionaries({}, optional={"kw_only": st.booleans(), "eq": st.booleans()})


def _outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


@given(FIELDS, OPTIONS, st.lists(st.integers(0, 2), max_size=5), st.lists(st.integers(0, 2), max_size=5))
def test_a_value_is_what_the_standard_library_would_have_made(
    fields: list[tuple[str, dict[str, Any]]], options: dict[str, bool], one: list[int], other: list[int]
) -> None:
    def look(decorate: Callable[..., Any]) -> Any:
        made = _made(decorate, fields, options)
        names = [name for name, _ in fields]

        def describe(values: list[int]) -> Any:
            value = made(**dict(zip(names, values, strict=False)))
            again = made(**dict(zip(names, other, strict=False)))
            hashed = _outcome(lambda: hash(value)) if options.get("eq", True) else None  # else by its address
            return (
                repr(value),
                value == again,
                value == value,
                value != 3,
                hashed,
                _outcome(lambda: repr(dataclasses.replace(value, **dict.fromkeys(names[:1], 9)))),
                _outcome(lambda: dataclasses.asdict(value)),
                [_outcome(lambda name=name: setattr(value, name, 1)) for name in names],
                [_outcome(lambda name=name: delattr(value, name)) for name in names],
                repr(copy.deepcopy(value)),
            )

        told = [
            (each.name, each.type, each.repr, each.compare, each.hash, each.kw_only)
            for each in dataclasses.fields(made)
        ]
        return (
            str(inspect.signature(made)),
            made.__match_args__,
            made.__slots__,
            repr(made.__dataclass_params__),
            made.__init__.__qualname__,
            told,
            _outcome(lambda: describe(one)),
            _outcome(lambda: repr(made())),
        )

    assert _outcome(lambda: look(dataclass)) == _outcome(lambda: look(dataclasses.dataclass))


@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers and what was noted."""

    x: int
    y: int = 2
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A value that inherits from another is left to the standard library."""

    name: str = "n"


def test_a_value_survives_pickling_and_each_has_a_list_of_its_own() -> None:
    first, second = Point(1), Point(1)
    first.notes.append("seen")
    assert pickle.loads(pickle.dumps(first)) == first == Point(1, 2, ["seen"])
    assert second.notes == []
    assert pickle.loads(pickle.dumps(Named(1, name="m"))) == Named(1, 2, [], "m")


def test_frozen_values_inherit_and_stay_frozen() -> None:
    named = Named(1)
    assert repr(named) == "Named(x=1, y=2, notes=[], name='n')"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        named.x = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Loose", (Point,), {"__annotations__": {"z": "int"}}))


def test_a_subclass_without_fields_may_have_attributes_of_its_own() -> None:
    class Loose(Point):
        """Has no slots."""

    loose = Loose(1)
    loose.extra = 5  # type: ignore[attr-defined]
    assert loose.extra == 5  # type: ignore[attr-defined]
    del loose.extra  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'y'"):
        loose.y = 3  # type: ignore[misc]


def test_a_value_that_holds_itself_can_be_shown() -> None:
    point: Any = Point(1)
    point.notes.append(point)
    assert repr(point) == "Point(x=1, y=2, notes=[...])"


@pytest.mark.parametrize("own", ["__init__", "__repr__", "__eq__", "__hash__", "__post_init__"])
def test_methods_that_a_class_writes_itself_are_its_own(own: str) -> None:
    called: list[str] = []

    def method(self: Any, *others: Any) -> Any:
        called.append(own)
        return {"__repr__": "x", "__eq__": True, "__hash__": 1}.get(own)

    made = dataclass(frozen=True, slots=True)(type("Own", (), {"__annotations__": {}, "__doc__": "One.", own: method}))
    value: Any = made()
    assert (repr(value), value == made(), hash(value)) is not None
    assert called


def test_what_is_neither_frozen_nor_slotted_is_a_plain_dataclass() -> None:
    @dataclass
    class Loose:
        """May change."""

        a: int = 1

    loose = Loose()
    loose.a = 2
    assert loose == Loose(2)
