"""The small parts of pages: links, hashes, times, tables, empty states.

Rule: a hash is shown short and copied whole; a time is shown in UTC, with its TAI text as a tooltip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import quote, urlencode

from lace.errors import InvalidText
from lace.inspector.html import Markup, join, tag
from lace.limits import SECOND_NS
from lace.notation.tai import TAI

SHORT = 14
TIME = "Time (UTC)"  # the name of every column of instants
DAY_S = 86_400
_SPANS = (("year", 365 * DAY_S), ("month", 30 * DAY_S), ("day", DAY_S), ("hour", 3600), ("minute", 60))
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def link(label: object, address: str, **attributes: object) -> Markup:
    """A link."""
    return tag("a", label, href=address, **attributes)


def url(path: str, parameters: Mapping[str, object | None] | None = None) -> str:
    """An address on this server; parameters that are None or empty are left out."""
    given = {key: str(value) for key, value in (parameters or {}).items() if value not in (None, "")}
    return quote(path, safe="/.-_~") + (f"?{urlencode(given)}" if given else "")


def short(text: str) -> str:
    """A hash cut short for display."""
    return f"{text[:SHORT]}…" if len(text) > SHORT + 1 else text


def hash_link(text: str, address: str) -> Markup:
    """A record's hash as a link to the record."""
    return link(tag("code", short(text)), address, title=text, class_="hash")


def copyable(text: str) -> Markup:
    """A text with a button that copies it; without a script, just the text."""
    button = tag("button", "Copy", type="button", class_="copy", data_copy=text, hidden=True, aria_label=f"Copy {text}")
    return tag("span", tag("code", text, class_="whole"), button, class_="copyable")


class NameSource(Protocol):
    """Whoever knows names of keys."""

    def name_of(self, verifier: str) -> str | None:
        """The preferred name of a key."""


def signer(verifier: str | None, names: NameSource | None) -> Markup:
    """Who signed, by name; the whole verifier on hover."""
    if not verifier:
        return tag("span", "unsigned", class_="faint")
    known = names.name_of(verifier) if names is not None else None
    return tag("span", known or tag("code", short(verifier)), title=verifier, class_="signer")


def ago(seconds: float) -> str:
    """How long ago something was, in the largest unit that fits."""
    if seconds < 0:
        return "in the future"
    for unit, length in _SPANS:
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"


def lasted(seconds: float) -> str:
    """A length of time in its two largest units."""
    left, parts = int(seconds), list[str]()
    for letter, length in (("d", DAY_S), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= length or (letter == "s" and not parts):
            parts.append(f"{left // length} {letter}")
            left %= length
    return " ".join(parts[:2])


def prose(said: str) -> Markup:
    """A sentence of ours; text between backticks is code."""
    return join(*(tag("code", part) if place % 2 else part for place, part in enumerate(said.split("`"))))


def instant(tai: str) -> Markup:
    """A TAI text as a time of day."""
    shown = utc(tai)
    return tag("time", shown, datetime=shown.replace(" ", "T") + "Z", title=f"TAI {tai}") if shown else tag("code", tai)


def utc(tai: str) -> str:
    """A TAI text in UTC, to the second; empty if no calendar has it."""
    try:
        seconds = TAI.parse(tai).to_unix_ns() // SECOND_NS
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (InvalidText, ValueError, OverflowError, OSError):
        return ""


def size(number: int) -> str:
    """A number of bytes in the units that people use."""
    value = float(number)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{number} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return str(number)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: frozenset[str] = frozenset()
) -> Markup:
    """A table; on a narrow screen each row becomes a card whose cells carry their column's name."""
    head = tag(
        "tr", [tag("th", column, scope="col", class_="right" if column in right else None) for column in columns]
    )
    body = [
        tag(
            "tr",
            [
                tag("td", cell, data_column=column, class_="right" if column in right else None)
                for column, cell in zip(columns, row, strict=True)
            ],
        )
        for row in rows
    ]
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag("div", inner, class_="table", tabindex="0", role="region", aria_label=caption)


def fields(rows: Iterable[tuple[str, object]]) -> Markup:
    """Names and values under each other."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in rows], class_="fields")


def figure(number: object, label: str) -> Markup:
    """One number with its label."""
    return tag("div", tag("b", number), tag("span", label), class_="figure")


def empty(title: str, advice: object = None) -> Markup:
    """A message in place of an empty list."""
    return tag("div", tag("p", title, class_="empty-title"), advice and tag("p", advice), class_="empty")


def notice(kind: str, body: object) -> Markup:
    """A remark: `warning`, `bad` or `good`."""
    return tag("div", body, class_=f"notice {kind}", role="alert" if kind == "bad" else "note")


def fold(title: object, *body: object, note: object = None, name: str = "", is_open: bool = False) -> Markup:
    """A part of a page that is folded until somebody wants it."""
    head = tag("summary", tag("span", title), note and tag("span", note, class_="note"))
    return tag("details", head, tag("div", join(*body), class_="inside"), class_="fold", id=name or None, open=is_open)


def card(title: str, *body: object, note: object = None) -> Markup:
    """A small part of a page that shows one thing."""
    heading = tag("div", tag("h2", title), note and tag("span", note, class_="note"), class_="card-head")
    return tag("section", heading, join(*body), class_="card")


def section(title: str, *body: object, note: object = None) -> Markup:
    """A part of a page under its heading."""
    anchor = "".join(c if c.isalnum() else "-" for c in title.lower())
    heading = tag("div", tag("h2", title, id=anchor), note and tag("p", note, class_="note"), class_="section-head")
    return tag("section", heading, join(*body))


def pager(forward: str | None, back: str | None = None) -> Markup | None:
    """Links to the next page and to the first."""
    if forward is None and back is None:
        return None
    first = link("First page", back, class_="button") if back else None
    following = link("Next page", forward, class_="button", rel="next") if forward else None
    return tag("nav", first, following, class_="pager", aria_label="Pages of this list")
