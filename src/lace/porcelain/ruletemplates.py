"""Templates of rule files: a selector, an exposure and cases for both, with the user's names filled in.

Rule: a template is a set of files under `templates/`; `@group`, `@app`, `@admin` and `@count` in them are replaced. The
result passes `lace check` and its own cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from lace.errors import InvalidText, NotFound
from lace.people.wording import refuse_quotes
from lace.policy.lint import nearest
from lace.values import dataclass

_FILES = ("select.lace", "expose.lace", "cases.toml")
_SUMMARIES = {
    "public-read": "everybody may have the records of one app",
    "members": "records signed by members, for members only; an admin decides who is one",
    "blocked": "records of everybody except those whom an admin has blocked",
    "newest-n": "only the newest records of one app",
    "evidence": "records together with the evidence that they link to",
}


@dataclass(frozen=True, slots=True)
class Template:
    """One template: its name, what it is for, and the words it needs."""

    name: str
    summary: str
    wants: tuple[str, ...]


def templates() -> list[Template]:
    """All templates."""
    return [Template(name, summary, _wanted(name)) for name, summary in _SUMMARIES.items()]


def _read(name: str, file: str) -> str:
    return (files("lace.porcelain") / "templates" / f"{name}.{file}").read_text(encoding="utf-8")


def _wanted(name: str) -> tuple[str, ...]:
    text = "".join(_read(name, file) for file in _FILES)
    return tuple(word for word in ("group", "app", "admin", "count") if f"@{word}" in text)


def template_texts(name: str) -> tuple[str, str]:
    """The selector and the exposure of a template, its words not filled in."""
    _require(name)
    return _read(name, _FILES[0]), _read(name, _FILES[1])


def _require(name: str) -> None:
    if name not in _SUMMARIES:
        near = nearest(name, _SUMMARIES) or f"there are {', '.join(_SUMMARIES)}"
        raise NotFound(f"there is no template {name!r}; {near}")


def fill(name: str, words: Mapping[str, str]) -> dict[str, str]:
    """The files of a template by name, with the words filled in."""
    _require(name)
    missing = [word for word in _wanted(name) if not words.get(word)]
    if missing:
        raise InvalidText(f"the template {name} needs {' and '.join(missing)}", rule="template-words", place=name)
    filled = {}
    for file in _FILES:
        text = _read(name, file)
        for word in _wanted(name):
            text = text.replace(f"@{word}", refuse_quotes(word, words[word]))
        filled[file] = text
    return filled
