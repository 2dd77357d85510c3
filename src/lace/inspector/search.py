"""The search page: records by words, with the places where these occur."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lace.inspector.browse import crumbs, number_of, record_url
from lace.inspector.content import Content
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Data, Page
from lace.inspector.widgets import TIME, empty, instant, link, pager, short, table, url
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
    before = number_of(asked.get("before"))
    rows: list[Data] = []
    following = None
    searched = is_searched(opened.lace)
    if question and searched:
        found = find(opened.lace, question, before=before, limit=limits.page_rows + 1)
        rows = _rows(opened, [record for _, record in found[: limits.page_rows]], question)
        if rows and len(found) > len(rows):
            following = url(f"{opened.base}/find", {"q": question, "before": found[len(rows) - 1][0]})
    body = join(tag("h1", "Find"), _form(opened, question), _results(opened, question, rows, searched=searched))
    first = url(f"{opened.base}/find", {"q": question}) if before is not None else None
    data: Data = {"question": question, "searched": searched, "records": rows, "next": following}
    return Page(
        title=question or "Find", data=data, body=join(body, pager(following, first)), crumbs=crumbs(opened), here=HERE
    )


def _form(opened: OpenedLace, question: str) -> Markup:
    box = tag("input", type="search", name="q", id="q", value=question, placeholder="words, a beg*, name:word")
    label = tag("label", "Words", for_="q")
    return tag("form", label, box, tag("button", "Find"), action=f"{opened.base}/find", class_="inline", role="search")


def _results(opened: OpenedLace, question: str, rows: list[Data], *, searched: bool) -> Markup:
    if not searched:
        hint = join("Make it searchable: ", tag("code", f"lace index {opened.path}"))
        return empty("This lace has no index of words.", hint)
    if not question:
        return empty("Finds records that contain every word, most recently stored first.")
    if not rows:
        return empty(
            "No record contains all of these words.", "Try fewer words, or the beginning of one followed by *."
        )
    cells = [
        (
            join(
                link(row["coordinate"] or "no coordinate", record_url(opened, row["hash"])),
                tag("div", _marked(row["excerpt"], question), class_="note"),
            ),
            instant(row["tai"]) if row["tai"] else "",
            tag("code", short(row["signer"]), title=row["signer"]) if row["signer"] else "",
            tag("code", short(row["hash"]), title=row["hash"], class_="hash"),
        )
        for row in rows
    ]
    return table("Found", ("Record", TIME, "Signed by", "Hash"), cells)


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
