"""What is spelled most like a name that was not found: coordinates, hashes, files of laces.

Rule: an answer costs a bounded look at the store; where there are more names than that, fewer are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lace.datalog.language.syntax import Constant
from lace.notation.text import quote
from lace.policy.rewrite import body_atoms
from lace.records.coordinate import parse_prefix

if TYPE_CHECKING:
    from lace.datalog.language.syntax import Program
    from lace.limits import EngineLimits
    from lace.porcelain.query import HasStore
    from lace.store.browsing import Browser
    from lace.store.columns.tables.coordinates import Space

MAX_SPACES = 10_000  # groups and apps to look at
MAX_NAMES = 10_000
MAX_FILES = 1000  # of a folder
_CLOSE = 0.75
_MOST = 3
_SHORTEST_HASH = 6  # characters: a type, a dot, and four that a person compares
_FEWER = 2


def nearest_places(path: Path, place: str) -> list[str]:
    """The coordinates and prefixes with records that are spelled most like an empty one."""
    from lace.store.browsing import Browser

    asked = parse_prefix(place)
    if asked.group is None:
        return []
    with closing(Browser(path)) as browser:
        spaces = browser.spaces(limit=MAX_SPACES)
        group, app = asked.group, asked.app
        if app is None:
            wanted, known = f"//{group}", {f"//{space.group}//" for space in spaces}
            below = any(space.group.startswith(f"{group}/") for space in spaces)
        else:
            wanted, known = f"//{group}//{app}", {f"//{space.group}//{space.app}//" for space in spaces}
            below = any(space.group == group and space.app.startswith(f"{app}/") for space in spaces)
        close = get_close_matches(f"{wanted}//", sorted(known), n=_MOST, cutoff=_CLOSE)
        if app is not None:
            close = [one for one in close if one.startswith(f"//{group}//")] or close
        chosen = [space for space in spaces if f"//{space.group}//{space.app}//" in close or space.group == group]
        if app is not None and asked.name:
            chosen = [space for space in chosen if f"//{space.group}//{space.app}//" in close] or chosen
        named = _close_names(browser, chosen or spaces, (asked.name or app or group).rstrip("/"))
    found = [*named, *([f"{wanted}/"] if below else []), *(close if not named else ())]
    return [one for one in dict.fromkeys(found) if one != place][:_MOST]


def _close_names(browser: Browser, spaces: Iterable[Space], word: str) -> list[str]:
    """Coordinates whose name, or the last part of it, is spelled most like a word."""
    last = word.rpartition("/")[2]
    places: dict[str, str] = {}
    for space, name in islice(_names(browser, spaces), MAX_NAMES):
        for spelled in {name.lower(), name.rpartition("/")[2].lower()}:
            places.setdefault(spelled, f"//{space.group}//{space.app}//{name}")
    found = get_close_matches(word.lower(), places, n=_MOST, cutoff=_CLOSE)
    found += get_close_matches(last.lower(), places, n=_MOST, cutoff=_CLOSE) if last != word else []
    found += [one for one in sorted(places) if one.startswith(last.lower())][:_MOST] if last and not found else []
    return [places[one] for one in found]


def _names(browser: Browser, spaces: Iterable[Space]) -> Iterator[tuple[Space, str]]:
    for space in spaces:
        for name in browser.names(space, limit=MAX_NAMES):
            yield space, name


def nearest_names(path: Path, word: str) -> list[str]:
    """Coordinates anywhere in a lace whose names are spelled most like a word."""
    from lace.store.browsing import Browser

    with closing(Browser(path)) as browser:
        return list(dict.fromkeys(_close_names(browser, browser.spaces(limit=MAX_SPACES), word)))[:_MOST]


def nearest_hashes(path: Path, text: str) -> list[str]:
    """Stored records whose hashes begin as a text does, as far as possible."""
    from lace.store import open_store

    with open_store(path, read_only=True) as store:
        for end in range(len(text) - _FEWER, _SHORTEST_HASH - 1, -_FEWER):
            if found := store.beginning_with(text[:end]):
                return [str(one) for one in found[:_MOST]]
    return []


def nearest_files(path: Path) -> list[str]:
    """The laces beside a path whose names are spelled most like its own."""
    with suppress(OSError):
        beside = [one.name for one in islice(path.parent.iterdir(), MAX_FILES) if one.suffix == ".lace"]
        return [str(path.with_name(name)) for name in get_close_matches(path.name, beside, n=_MOST, cutoff=_CLOSE)]
    return []


def absent_fields(lace: HasStore, program: Program, limits: EngineLimits) -> Iterator[str]:
    """What the bodies of rules ask of fields that no record of a lace has, with what is spelled nearly like it."""
    from lace.facts.predicates import FIELD

    names: set[str] = set()
    values: dict[str, set[str]] = {}
    told: set[tuple[str, str]] = set()
    for atom in body_atoms(program.rules):
        name, value = (atom.terms[1], atom.terms[3]) if atom.predicate == FIELD else (None, None)
        if not isinstance(name, Constant):
            continue
        names = names or _column(lace, "Here(V) :- Field(_,V,_,_).", limits)
        asked = (name.value, value.value if isinstance(value, Constant) else "")
        if asked in told:
            continue
        told.add(asked)
        if name.value not in names:
            yield f"no record here has a field {name.value!r}{_meant(name.value, names)}"
        elif isinstance(value, Constant):
            if name.value not in values:
                quoted = quote(name.value)
                values[name.value] = _column(lace, f"Here(V) :- Field(_,{quoted},_,V).", limits)
            known = values[name.value]
            if value.value not in known:
                yield f"no record here has {name.value} {value.value!r}{_meant(value.value, known)}"


def _column(lace: HasStore, rule: str, limits: EngineLimits) -> set[str]:
    from lace.porcelain.query import query

    return {row[0] for page in query(lace, rule, limits=limits).pages() for row in page}


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, sorted(islice(known, MAX_NAMES)), n=_MOST, cutoff=_CLOSE)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
