"""One HTML file that shows a lace, an explanation or a conversation to somebody who has only a browser.

Rule: the file is self-contained: it includes its styles and at most one script, ours, which filters what is there. The
file's own policy allows that script by its hash and nothing else: no other script, and no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lace.errors import InvalidLacegram
from lace.inspector.answers import ask
from lace.inspector.content import hex_dump
from lace.inspector.conversation import read_told, show_steps, told_data
from lace.inspector.html import Markup, join, raw_text_element, tag
from lace.inspector.inspected import Inspected, InspectorLimits, OpenedLace
from lace.inspector.names import Names, speller
from lace.inspector.phases import placed, steps
from lace.inspector.prooftree import show_explanation
from lace.inspector.record import KINDS, read_content_head
from lace.inspector.widgets import (
    TIME,
    count,
    empty,
    fields,
    instant,
    link,
    notice,
    section,
    short,
    signer,
    size,
    table,
    utc,
)
from lace.limits import EngineLimits
from lace.notation.identifiers import RecordHash
from lace.records.model import ValidRecord

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
FILTER = "export.js"
_STATIC = Path(__file__).parent / "static"
STYLES = ("lace.css", "inspector.css")
_TOLD_ITEMS = 20_000


def export_html(inspected: Inspected, *, rules: str = "", goal: str = "") -> Markup:
    """The HTML of everything that was opened; with rules and a goal, of the explanation over each lace."""
    parts = [
        _explained(opened, rules, goal) if goal else _lace(opened, inspected.limits)
        for opened in inspected.laces.values()
    ]
    parts += [_conversation(name, path, inspected.names()) for name, path in inspected.captures.items()]
    titles = [*inspected.laces, *inspected.captures]
    return _document(goal or ", ".join(titles), join(parts), filtered=bool(inspected.laces) and not goal)


def script_hash(script: str) -> str:
    """What a policy calls a script that it allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _document(title: str, body: Markup, *, filtered: bool) -> Markup:
    script = (_STATIC / FILTER).read_text(encoding="utf-8") if filtered else ""
    policy = f"{POLICY}; script-src {script_hash(script)}" if script else POLICY
    styles = "".join((_STATIC / name).read_text(encoding="utf-8") for name in STYLES).replace('url("icon.svg")', "none")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Lace"),
        raw_text_element("style", styles),
    )
    return Markup(
        "<!doctype html>\n"
        + tag("html", head, tag("body", tag("main", body), script and raw_text_element("script", script)), lang="en")
        + "\n"
    )


def _conversation(name: str, path: Path, names: Names) -> Markup:
    told = list(islice(read_told(path), _TOLD_ITEMS))
    return join(
        tag("h1", name),
        tag("p", f"A conversation of {count(len(told), 'item')}.", class_="lead"),
        show_steps(steps(placed(map(told_data, told))), names),
    )


def _explained(opened: OpenedLace, rules: str, goal: str) -> Markup:
    asked = ask(opened, rules, EngineLimits())
    if asked.errors:
        raise asked.errors[0]
    if asked.limit:
        raise InvalidLacegram(asked.limit, rule="limit")
    source = tag("pre", tag("code", rules), class_="content")
    lead = tag(
        "p", "Over ", tag("code", opened.path.name), f", {count(opened.lace.stat().records, 'record')}.", class_="lead"
    )
    return join(
        tag("h1", goal), lead, show_explanation(asked.explain(goal), speller(opened.names())), section("Rules", source)
    )


def _lace(opened: OpenedLace, limits: InspectorLimits) -> Markup:
    stat = opened.lace.stat()
    spaces = opened.browser.spaces(limit=limits.page_rows)
    rows = [(space.group, space.app, str(opened.browser.count(space, limit=limits.count_to))) for space in spaces]
    chosen = [record for _, record in opened.browser.newest_records(limit=limits.exported_records)]
    here = frozenset(chosen)
    shown = [_record(opened, record, here, limits) for record in _loaded(opened, chosen)]
    cut = len(chosen) < stat.records and notice(
        "warning", f"The {len(chosen):,} most recently stored of {count(stat.records, 'record')}."
    )
    return join(
        tag("h1", opened.slug),
        tag("p", f"{count(stat.records, 'record')}, {size(stat.stored_bytes)}.", class_="lead"),
        table("Groups and apps", ("Group", "App", "Records"), rows, right=frozenset({"Records"})) if rows else None,
        section(
            "Records",
            cut,
            _filter() if shown else None,
            shown or empty("There are no records here."),
            note="Most recently stored first.",
        ),
    )


def _filter() -> Markup:
    """A field that the script of the file shows and listens to."""
    field = tag("input", type="search", id="filter", placeholder="Filter: words, a name, a key", autocomplete="off")
    told = tag("span", "", id="filtered", class_="note", role="status")
    return tag("div", tag("label", "Filter", for_="filter", class_="visually-hidden"), field, told, id="filter-bar",
               class_="inline filter", hidden=True)  # fmt: skip


def _loaded(opened: OpenedLace, chosen: list[RecordHash]) -> Iterator[ValidRecord]:
    for record in chosen:
        if opened.lace.store.have(record):  # it may have been removed since it was listed
            yield opened.lace.load(record)


def _record(opened: OpenedLace, record: ValidRecord, here: frozenset[str], limits: InspectorLimits) -> Markup:
    parts = record.parts
    where = f"//{parts.group}//{parts.app}//{parts.name}" if parts.group else KINDS[record.type]
    content = read_content_head(opened, record, limits)
    text = content.parsed or content.text or hex_dump(content.head[: limits.hex_bytes])
    rows: list[tuple[str, object]] = [("Hash", tag("code", record.hash))]
    if parts.group:
        rows += [
            (TIME, instant(parts.tai)),
            ("Signed by", _signer(opened, parts.signed_by)),
        ]
    rows += [(name, _value(value, here)) for name, value in parts.headers]
    body = join(fields(rows), tag("pre", tag("code", text), class_="content"))
    names = opened.names()
    who = names.told(parts.signed_by) if parts.group else short(record.hash)
    told = [who, utc(parts.tai) if parts.tai else "", size(record.data_length)]
    summary = tag("span", tag("strong", where), " ", tag("span", " · ".join(filter(None, told)), class_="note"))
    return tag(
        "details", tag("summary", summary), tag("div", body, class_="inside"), id=record.hash, class_="fold record"
    )


def _signer(opened: OpenedLace, verifier: str) -> Markup:
    name = opened.names().name_of(verifier) if verifier else None
    return join(name and f"{name} ", tag("code", verifier)) if verifier else signer(None, None)


def _value(value: str, here: frozenset[str]) -> Markup:
    """A header; if it names a record in this file, as a link to it."""
    before, space, target = value.rpartition(" ")
    if target in here:
        return join(before, space, link(tag("code", target), f"#{target}"))
    return tag("code", value)
