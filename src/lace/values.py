"""The standard `dataclass`, made faster where a class is frozen and has slots, as nearly all of ours are.

Rule: such a class behaves as the one that `dataclasses` makes, and a type checker takes it for that one. What the fast
way does not cover (a class that inherits from a dataclass, one that writes such a method itself, fields that are no
parameters) is left to `dataclasses`.

Why: the standard decorator writes the methods of a frozen class as text and compiles each of them by itself, half a
millisecond a class. A command that dials a peer makes 260 classes before it does anything else, and that was a third
of its start. Here the methods that are called often are compiled together, and the others are closures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # type checkers know the standard one by heart
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`."""
        if cls is None:
            return lambda wrapped: dataclass(wrapped, **options)
        return _frozen(cls, options) if _is_covered(cls, options) else dataclasses.dataclass(cls, **options)


Methods = dict[str, Callable[..., Any]]

_OPTIONS = {"frozen", "slots", "kw_only", "eq"}
_METHODS = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"}


class _Factory:
    """Stands in a signature for what a factory will make."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _is_covered(cls: type, options: dict[str, bool]) -> bool:
    if not (options.get("frozen") and options.get("slots") and options.keys() <= _OPTIONS):
        return False
    if dataclasses.is_dataclass(cls) or hasattr(cls, "__post_init__") or _METHODS & vars(cls).keys():
        return False
    return cls.__doc__ is not None and all(each.init for each in vars(cls).values() if isinstance(each, Field))


def _frozen(cls: type, options: dict[str, bool]) -> Any:
    """`dataclasses` finds the fields and makes the slots; the methods are ours."""
    made: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=True, kw_only=options.get("kw_only", False)
    )(cls)
    said = made.__dataclass_params__
    said.init = said.repr = said.frozen = True
    said.eq = options.get("eq", True)
    fields = dataclasses.fields(made)
    names = tuple(each.name for each in fields)
    methods = _compiled(fields, has_eq=said.eq) | _refusals(made, names) | _pickling(names)
    methods["__repr__"] = _repr([each.name for each in fields if each.repr])
    for name, method in methods.items():
        method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
        setattr(made, name, method)
    return made


def _compiled(fields: Sequence[Field[Any]], *, has_eq: bool) -> Methods:
    """The methods that are called often, in one piece of text."""
    given: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    text = _init_text(fields, given)
    if has_eq:
        compared = [each.name for each in fields if each.compare]
        hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
        text += (
            "def __eq__(_self, _other):\n"
            " if _other.__class__ is _self.__class__:\n"
            f"  return {_tuple_text('_self', compared)} == {_tuple_text('_other', compared)}\n"
            " return NotImplemented\n"
            f"def __hash__(_self):\n return hash({_tuple_text('_self', hashed)})\n"
        )
    exec(text, given)  # noqa: S102 - of names that stand in our own classes
    given["__init__"].__annotations__ = {**{each.name: each.type for each in fields}, "return": None}
    return {name: given[name] for name in ("__init__", "__eq__", "__hash__") if name in given}


def _init_text(fields: Sequence[Field[Any]], given: dict[str, Any]) -> str:
    """`__init__` with a parameter for each field; what its text speaks of is put into `given`."""
    plain, keyword, body = ["_self"], list[str](), list[str]()
    for each in fields:
        name = each.name
        parameter, value = name, name
        if each.default is not MISSING:
            given[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
        elif each.default_factory is not MISSING:
            given[f"_make_{name}"] = each.default_factory
            parameter, value = f"{name}=_factory", f"_make_{name}() if {name} is _factory else {name}"
        (keyword if each.kw_only else plain).append(parameter)
        body.append(f" _set(_self, {name!r}, {value})\n")
    parameters = ", ".join([*plain, *(["*", *keyword] if keyword else [])])
    return f"def __init__({parameters}):\n{''.join(body) or ' pass'}\n"


def _tuple_text(owner: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{owner}.{name},' for name in names)})"


def _repr(names: Sequence[str]) -> Callable[..., Any]:
    @recursive_repr()
    def show(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({shown})"

    return show


def _refusals(cls: Any, names: Sequence[str]) -> Methods:
    """No field is assigned; what a subclass without slots adds to them is its own affair."""

    def refuse_value(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_removal(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_value, "__delattr__": refuse_removal}


def _pickling(names: Sequence[str]) -> Methods:
    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state, "__setstate__": set_state}
