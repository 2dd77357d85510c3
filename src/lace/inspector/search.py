"""The search page: records by words, with the places where these occur."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lace.errors import LaceError
from lace.inspector.browse import crumbs, number_of, record_url, tip_at
from lace.inspector.content import Content
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Data, Page
from lace.inspector.widgets import TIME, empty, instant, link, pager, prose, short, signer, table, url
from lace.limits import MIB
from lace.notation.identifiers import RecordHash
from lace.porcelain.search import find, is_searched
from lace.records.model import ValidRecord
from lace.records.validate import reread

HERE = "Find"
_AROUND = 60  # characters on each side of a word
_PAGE_BYTES = 8 * MIB  # of records read for one page
_READ = 16 << 10  # bytes that are searched for an excerpt


def find_page(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """The page of a search and its results."""
    question = asked.get("q", "").strip()
    if (place := place_of(opened, question)) is not None:
        return Page(title=question, data={"question": question, "location": place}, body=empty(place), location=place)
    before = number_of(asked.get("before"))
    rows: list[Data] = []
    following = None
    searched = is_searched(opened.lace)
    if question and searched:
        found = find(opened.lace, question, before=before, limit=limits.page_rows + 1)
        rows = _rows(opened, [record for _, record in found[: limits.page_rows]], question)
        if rows and len(found) > len(rows):
            following = url(f"{opened.base}/find", {"q": question, "before": found[len(rows) - 1][0]})
    named = [] if searched or not question else _named(opened, question, limits)
    body = join(
        tag("h1", f"Records with “{question}”" if question else "Find"),
        _results(opened, question, rows, named, searched=searched),
    )
    first = url(f"{opened.base}/find", {"q": question}) if before is not None else None
    data: Data = {"question": question, "searched": searched, "records": rows, "named": named, "next": following}
    return Page(
        title=question or "Find",
        data=data,
        body=join(body, pager(following, first)),
        crumbs=crumbs(opened),
        here=HERE,
        question=question,
    )


def place_of(opened: OpenedLace, question: str) -> str | None:
    """The page that a coordinate or a hash means; None if the question is words, or nothing is there."""
    if question.startswith("//"):
        group, app, name, *_ = (*question[2:].split("//", 2), "", "")
        try:
            return record_url(opened, opened.lace.resolve(question))
        except LaceError:
            pass  # a folder, or nothing
        space = opened.browser.space(group, app) if app else None
        if space is None:
            found = not app and bool(opened.browser.spaces(group=group, limit=1))
            return url(opened.base, {"group": group}) if found else None
        under = name and f"{name.rstrip('/')}/"
        if not opened.browser.count(space, under, limit=1).number:
            return None
        return url(opened.base, {"group": group, "app": app, "under": under})
    if question[:2] in ("P.", "S.", "B."):
        try:
            return record_url(opened, opened.lace.resolve(question))
        except LaceError:
            return None
    return None


def _named(opened: OpenedLace, question: str, limits: InspectorLimits) -> list[Data]:
    """Coordinates whose names contain the words, for a lace without an index of words."""
    found = opened.browser.named_like(question.split(), look_at=limits.surveyed, limit=limits.page_rows)
    return [{"group": group, "app": app, "name": name} for group, app, name in found]


def _results(opened: OpenedLace, question: str, rows: list[Data], named: list[Data], *, searched: bool) -> Markup:
    if not question:
        return empty("Finds records that contain every word, most recently stored first.",
                     "A coordinate such as //u//notes//, or a hash, leads straight to it.")  # fmt: skip
    if question.startswith("//") or question[:2] in ("P.", "S.", "B."):
        return empty(f"There is nothing at {question}.", _near(opened, question))
    if not searched:
        hint = prose(f"Only names were searched. `lace index {opened.path.name}` makes text searchable too.")
        if not named:
            return empty("No name contains all of these words.", hint)
        tips = [(one, tip_at(opened, one["group"], one["app"], one["name"])) for one in named]
        cells = [
            (
                link(f"//{one['group']}//{one['app']}//{one['name']}", record_url(opened, tip.entry.hash))
                if tip is not None
                else f"//{one['group']}//{one['app']}//{one['name']}",
                instant(tip.entry.tai) if tip is not None else "",
                signer(tip.entry.signer, opened.names()) if tip is not None else "",
            )
            for one, tip in tips
        ]
        return join(table("Found by name", ("Record", TIME, "Signed by"), cells), tag("p", hint, class_="note"))
    if not rows:
        return empty(
            "No record contains all of these words.", "Try fewer words, or the beginning of one followed by *."
        )
    cells = [
        (
            join(
                link(row["coordinate"] or short(row["hash"]), record_url(opened, row["hash"]), title=row["hash"]),
                tag("div", _marked(row["excerpt"], question), class_="note"),
            ),
            instant(row["tai"]) if row["tai"] else "",
            signer(row["signer"], opened.names()),
        )
        for row in rows
    ]
    return table("Found", ("Record", TIME, "Signed by"), cells)


def _near(opened: OpenedLace, question: str) -> Markup:
    """What there is around a coordinate that is not there."""
    parts = question[2:].split("//", 2) if question.startswith("//") else []
    if len(parts) == 3 and opened.browser.space(parts[0], parts[1]) is not None:
        return link(f"All of //{parts[0]}//{parts[1]}", url(opened.base, {"group": parts[0], "app": parts[1]}))
    return link("All groups and apps", f"{opened.base}/browse")


def _rows(opened: OpenedLace, records: Sequence[RecordHash], question: str) -> list[Data]:
    """The rows of some records, read together; a record that was removed meanwhile is left out."""
    bodies = opened.lace.store.get_first(records, _PAGE_BYTES) if records else []
    return [_row(reread(body), question) for body in bodies if body is not None]


def _row(record: ValidRecord, question: str) -> Data:
    parts = record.parts
    return {
        "hash": record.hash,
        "coordinate": f"//{parts.group}//{parts.app}//{parts.name}" if parts.group else "",
        "tai": parts.tai,
        "signer": parts.signed_by,
        "excerpt": _excerpt(record, question),
    }


def _excerpt(record: ValidRecord, question: str) -> str:
    """The part of a text around the first occurrence of a word of the question; else its beginning."""
    content = Content(bytes(record.data[:_READ]), record.data_length)
    text = " ".join((content.text or "").split())
    found = _pattern(question).search(text)
    start = max(0, found.start() - _AROUND) if found else 0
    end = (found.end() if found else 0) + _AROUND
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _pattern(question: str) -> re.Pattern[str]:
    words = [word.partition(":")[2] if word.split(":")[0] in ("name", "headers", "content") else word
             for word in re.findall(r"[^\s\"]+", question)]  # fmt: skip
    plain = [re.escape(word.rstrip("*")) for word in words if word.rstrip("*")]
    return re.compile("|".join(plain) or r"(?!)", re.IGNORECASE)


def _marked(text: str, question: str) -> Markup:
    parts: list[object] = []
    reached = 0
    for found in _pattern(question).finditer(text):
        parts += [text[reached : found.start()], tag("mark", found[0])]
        reached = found.end()
    return join(parts, text[reached:])
