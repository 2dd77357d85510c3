"""A scene: laces with records and rules, the links between them, and what happened on those links so far, as JSON.

Rule: a scene comes from a file or from anybody's link, so every part of it is checked and bounded here, and refused
with its place. Everything that a simulation does follows from its scene.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from lace.errors import InvalidText

PEOPLE = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay")  # names that scenes use; anybody may sign
EXPOSE = ("all", "selected", "none", "rules")
HOSTILE = ("", "greedy", "tampers", "silent")

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneLimits:
    """How large a scene may be."""

    laces: int = 6
    records: int = 60  # of one lace
    runs: int = 12
    rules: int = 20_000  # characters of one text
    text: int = 4_000
    name: int = 200
    person: int = 40
    expected: int = 200
    seed: int = 999_999
    link: int = 200_000  # bytes of a scene in a link, unpacked


LIMITS = SceneLimits()


@dataclass(frozen=True, slots=True)
class SceneRecord:
    """One record that somebody put into a lace before the first exchange."""

    group: str
    app: str
    name: str
    text: str
    signer: str = ""  # a name, or nobody
    minute: int = 0  # of the scene's day: when it was written

    @property
    def coordinate(self) -> str:
        """Where `lace get` finds it."""
        return f"//{self.group}//{self.app}//{self.name}"

    def to_json(self) -> dict[str, Any]:
        """As a file or a link holds it."""
        return {"group": self.group, "app": self.app, "name": self.name, "text": self.text, "signer": self.signer,
                "minute": self.minute}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SceneLace:
    """One lace: what it holds at the start, its rules, and what is wrong with it if it is hostile.

    A greedy lace asks for everything and shows nothing; one that tampers changes a bit of each record it sends; a
    silent one says hello and then nothing more.
    """

    records: tuple[SceneRecord, ...]
    select: str
    expose: str = "selected"
    expose_rules: str = ""
    name: str = ""
    hostile: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a file or a link holds it."""
        return {"name": self.name, "records": [record.to_json() for record in self.records], "select": self.select,
                "expose": self.expose, "expose_rules": self.expose_rules, "hostile": self.hostile}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weather:
    """What happens on the links in one run; the seed says where and how."""

    seed: int = 1
    cut: bool = False
    delay: bool = False
    corrupt: bool = False
    down: tuple[Pair, ...] = ()  # links that do not connect in this run

    def to_json(self) -> dict[str, Any]:
        """As a file or a link holds it."""
        return {"seed": self.seed, "cut": self.cut, "delay": self.delay, "corrupt": self.corrupt,
                "down": [list(pair) for pair in self.down]}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expected:
    """What a scene that is a test says of its end: a lace has a record, or must not have it."""

    lace: str
    record: str  # a coordinate
    has: bool = True

    def to_json(self) -> dict[str, Any]:
        """As a file or a link holds it."""
        return {"lace": self.lace, "record": self.record, "has": self.has}


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a simulation does is a function of this."""

    laces: tuple[SceneLace, ...]
    runs: tuple[Weather, ...] = ()  # the runs made so far, in order
    weather: Weather = field(default_factory=Weather)  # of the next one
    links: tuple[Pair, ...] = ((0, 1),)
    expect: tuple[Expected, ...] = ()

    def __post_init__(self) -> None:
        named = tuple(lace if lace.name else replace(lace, name=_called(n)) for n, lace in enumerate(self.laces))
        object.__setattr__(self, "laces", named)

    def to_json(self) -> dict[str, Any]:
        """As a file or a link holds it."""
        return {
            "laces": [lace.to_json() for lace in self.laces],
            "links": [list(pair) for pair in self.links],
            "runs": [run.to_json() for run in self.runs],
            "weather": self.weather.to_json(),
            "expect": [one.to_json() for one in self.expect],
        }


def read_scene(data: object, limits: SceneLimits = LIMITS) -> Scene:
    """A scene out of parsed JSON; InvalidText says which part of it is not one."""
    return _SceneReader(limits).scene(data)


def scene_in_link(link: str, limits: SceneLimits = LIMITS) -> Scene:
    """The scene that a link of the playground holds, in the part of the address behind `#`; nothing is fetched."""
    _, _, text = link.partition("#")
    try:
        data = urlsafe_b64decode(text.strip() + "=" * (-len(text.strip()) % 4))
        inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        whole = inflating.decompress(data, limits.link + 1)
        if len(whole) > limits.link:
            _refuse("link", f"{limits.link} bytes at most, unpacked", len(whole))
        if not inflating.eof:
            raise ValueError("it ends early")
        parsed = json.loads(whole)
    except (ValueError, zlib.error) as why:
        raise InvalidText(f"the link holds no scene: {why}", rule="scene", place="link", found=repr(text)[:80]) from why
    return read_scene(parsed, limits)


class _SceneReader:
    """Reads one scene under its limits."""

    def __init__(self, limits: SceneLimits) -> None:
        self._limits = limits

    def scene(self, data: object) -> Scene:
        limits, parts = self._limits, _object(data, "scene")
        given = _list(parts, "laces", limits.laces)
        if len(given) < 2:
            _refuse("laces", "two of them at least", len(given))
        laces = tuple(self._lace(lace, number) for number, lace in enumerate(given))
        names = [lace.name for lace in laces]
        if len(set(names)) < len(names):
            _refuse("laces", "of different names", names)
        pairs = self._pairs(parts, "links", len(laces), [[0, 1]] if len(laces) == 2 else [])
        runs = tuple(self._weather(run, "runs", len(laces)) for run in _list(parts, "runs", limits.runs))
        weather = self._weather(parts.get("weather", {}), "weather", len(laces))
        expected = tuple(self._expected(one, names) for one in _list(parts, "expect", limits.expected))
        return Scene(laces, runs, weather, pairs, expected)

    def _lace(self, data: object, number: int) -> SceneLace:
        limits = self._limits
        parts = _object(data, f"lace {_called(number)}")
        name = _text(parts, "name", limits.person, f"lace {_called(number)}") or _called(number)
        place = f"lace {name}"
        listed = enumerate(_list(parts, "records", limits.records), 1)
        return SceneLace(
            tuple(self._record(record, f"{place}, record {n}") for n, record in listed),
            _text(parts, "select", limits.rules, place),
            _choice(parts, "expose", EXPOSE, place, "selected"),
            _text(parts, "expose_rules", limits.rules, place),
            name,
            _choice(parts, "hostile", HOSTILE, place),
        )

    def _record(self, data: object, place: str) -> SceneRecord:
        parts, limits = _object(data, place), self._limits
        group, app, name = (_text(parts, key, limits.name, place) for key in ("group", "app", "name"))
        text, signer = _text(parts, "text", limits.text, place), _text(parts, "signer", limits.person, place)
        return SceneRecord(group, app, name, text, signer, _number(parts, "minute", 1439, place))

    def _weather(self, data: object, place: str, laces: int) -> Weather:
        parts = _object(data, place)
        seed = _number(parts, "seed", self._limits.seed, place, 1)
        cut, delay, corrupt = (parts.get(key) is True for key in ("cut", "delay", "corrupt"))
        return Weather(seed, cut, delay, corrupt, self._pairs(parts, "down", laces, []))

    def _pairs(self, parts: Mapping[str, Any], key: str, laces: int, otherwise: Sequence[Any]) -> tuple[Pair, ...]:
        """Links, each once, the smaller number first."""
        pairs: dict[Pair, None] = {}
        for ends in _list({key: parts.get(key, otherwise)}, key, laces * laces):
            if not isinstance(ends, list) or len(ends) != 2 or not all(_is_number(end, laces - 1) for end in ends):
                _refuse(key, f"pairs of numbers of laces, 0 to {laces - 1}", ends)
            if ends[0] == ends[1]:
                _refuse(key, "between two different laces", ends)
            pairs[min(ends), max(ends)] = None
        return tuple(pairs)

    def _expected(self, data: object, names: Sequence[str]) -> Expected:
        parts, place = _object(data, "expect"), "expect"
        record = _text(parts, "record", 3 * self._limits.name, place)
        has = parts.get("has", True)
        if not isinstance(has, bool):
            _refuse("expect, has", "true or false", has)
        return Expected(_choice(parts, "lace", names, place), record, has)


def _called(number: int) -> str:
    """The name of a lace that the scene does not name."""
    return PEOPLE[number % len(PEOPLE)]


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


def _choice(parts: Mapping[str, Any], key: str, among: Sequence[str], place: str, otherwise: str = "") -> str:
    found = parts.get(key, otherwise or among[0])
    if not isinstance(found, str) or found not in among:
        _refuse(f"{place}, {key}", f"one of {', '.join(map(repr, among))}", found)
    return found


def _is_number(found: object, most: int) -> bool:
    return isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= most


def _number(parts: Mapping[str, Any], key: str, most: int, place: str, otherwise: int = 0) -> int:
    found = parts.get(key, otherwise)
    if not _is_number(found, most):
        _refuse(f"{place}, {key}", f"a number from 0 to {most}", found)
    return int(found)


def _refuse(place: str, wanted: str, found: object) -> NoReturn:
    raise InvalidText(f"{place} should be {wanted}", rule="scene", place=place, found=repr(found)[:80])
