"""What the page is about: two people, their records and rules, and what happens to the wire (the state of a link).

Rule: a scene comes from anybody's link, so every part of it is checked and bounded here, and refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lace.errors import InvalidText

PEOPLE = ("Ada", "Ben", "Cleo")  # the two who exchange, and one who only signs
EXPOSE = ("all", "selected", "none", "rules")
MAX_RULES = 20_000
MAX_TEXT = 4_000
MAX_NAME = 200
MAX_RECORDS = 60
MAX_RUNS = 12
MAX_SEED = 999_999


@dataclass(frozen=True, slots=True)
class Note:
    """One record that somebody put into a lace before the first exchange."""

    group: str
    app: str
    name: str
    text: str
    signer: str = ""  # one of PEOPLE, or nobody
    minute: int = 0  # of the scene's day: when it was written

    def to_json(self) -> dict[str, Any]:
        """As a link carries it."""
        return {"group": self.group, "app": self.app, "name": self.name, "text": self.text, "signer": self.signer,
                "minute": self.minute}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two who exchange."""

    notes: tuple[Note, ...]
    select: str
    expose: str = "selected"
    expose_rules: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a link carries it."""
        return {"notes": [note.to_json() for note in self.notes], "select": self.select, "expose": self.expose,
                "expose_rules": self.expose_rules}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weather:
    """What happens to the bytes of one exchange; the seed says where and how."""

    seed: int = 1
    cut: bool = False
    delay: bool = False
    corrupt: bool = False

    def to_json(self) -> dict[str, Any]:
        """As a link carries it."""
        return {"seed": self.seed, "cut": self.cut, "delay": self.delay, "corrupt": self.corrupt}


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that the page shows is a function of this."""

    sides: tuple[Side, Side]
    runs: tuple[Weather, ...] = ()  # the exchanges made so far, in order
    weather: Weather = field(default_factory=Weather)  # of the next one

    def to_json(self) -> dict[str, Any]:
        """As a link carries it."""
        return {
            "sides": [side.to_json() for side in self.sides],
            "runs": [run.to_json() for run in self.runs],
            "weather": self.weather.to_json(),
        }


def read_scene(data: object) -> Scene:
    """A scene out of parsed JSON; InvalidText says which part of it is not one."""
    parts = _object(data, "scene")
    sides = _list(parts, "sides", 2)
    if len(sides) != 2:
        _refuse("sides", "two of them", len(sides))
    first, second = (_side(side, f"side {PEOPLE[number]}") for number, side in enumerate(sides))
    runs = tuple(_weather(run, "runs") for run in _list(parts, "runs", MAX_RUNS))
    return Scene((first, second), runs, _weather(parts.get("weather", {}), "weather"))


def _side(data: object, place: str) -> Side:
    parts = _object(data, place)
    notes = tuple(_note(note, f"{place}, record {n + 1}") for n, note in enumerate(_list(parts, "notes", MAX_RECORDS)))
    return Side(
        notes,
        _text(parts, "select", MAX_RULES, place),
        _choice(parts, "expose", EXPOSE, place),
        _text(parts, "expose_rules", MAX_RULES, place),
    )


def _note(data: object, place: str) -> Note:
    parts = _object(data, place)
    group, app, name = (_text(parts, key, MAX_NAME, place) for key in ("group", "app", "name"))
    return Note(
        group,
        app,
        name,
        _text(parts, "text", MAX_TEXT, place),
        _choice(parts, "signer", ("", *PEOPLE), place),
        _number(parts, "minute", 1439, place),
    )


def _weather(data: object, place: str) -> Weather:
    parts = _object(data, place)
    return Weather(
        _number(parts, "seed", MAX_SEED, place), *(parts.get(key) is True for key in ("cut", "delay", "corrupt"))
    )


def _object(data: object, place: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        _refuse(place, "an object", data)
    return data


def _list(parts: Mapping[str, Any], key: str, most: int) -> Sequence[Any]:
    found = parts.get(key, [])
    if not isinstance(found, list):
        _refuse(key, "a list", found)
    if len(found) > most:
        _refuse(key, f"{most} at most", len(found))
    return found


def _text(parts: Mapping[str, Any], key: str, most: int, place: str) -> str:
    found = parts.get(key, "")
    if not isinstance(found, str):
        _refuse(f"{place}, {key}", "a text", found)
    if len(found) > most:
        _refuse(f"{place}, {key}", f"{most} characters at most", len(found))
    return found


def _choice(parts: Mapping[str, Any], key: str, among: Sequence[str], place: str) -> str:
    found = parts.get(key, among[0])
    if not isinstance(found, str) or found not in among:
        _refuse(f"{place}, {key}", f"one of {', '.join(map(repr, among))}", found)
    return found


def _number(parts: Mapping[str, Any], key: str, most: int, place: str) -> int:
    found = parts.get(key, 0)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
        _refuse(f"{place}, {key}", f"a number from 0 to {most}", found)
    return found


def _refuse(place: str, wanted: str, found: object) -> NoReturn:
    raise InvalidText(f"{place} should be {wanted}", rule="scene", place=place, found=repr(found)[:80])
