"""The page of one record, with its links in both directions, drawn and listed.

Rule: the drawing shows what the list says, and no more of it than fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from lace.datalog.language.syntax import Predicate
from lace.errors import LaceError
from lace.facts.derive import derive_facts
from lace.facts.predicates import BLOB_HASH, RECORD_LINK
from lace.inspector.browse import HERE, crumbs, record_url, tip_at, tip_data
from lace.inspector.content import Content, read_head, show_content
from lace.inspector.history import entries_data, show_history, versions_of
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Data, Page
from lace.inspector.widgets import (
    copyable,
    empty,
    fields,
    hash_link,
    instant,
    link,
    section,
    short,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.notation.factline import format_fact
from lace.records.link import parse_link
from lace.records.model import ValidRecord
from lace.store.base import Snapshot
from lace.store.columns.segments.segment import as_codes, rows_holding
from lace.values import dataclass

KINDS = {"B": "Blob", "P": "Plex", "S": "Seal"}
_EXPLAINED = {
    "B": "bytes without a coordinate",
    "P": "content under a coordinate, unsigned",
    "S": "content under a coordinate, signed",
}


def record_page(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits, *, write: bool) -> Page:
    """The page of a record."""
    record = opened.lace.record(asked["record"])
    parts = record.parts
    content = read_content_head(opened, record, limits)
    found = neighbours(opened, record, limits)
    versions = versions_of(opened, record, limits)
    facts = [format_fact(fact) for fact in derive_facts(record)]
    title = parts.name.rpartition("/")[2] if parts.name else KINDS[record.type]
    tip = tip_at(opened, parts.group, parts.app, parts.name) if record.type != "B" else None
    is_tip = tip is not None and tip.entry.hash == record.hash
    raw = f"{opened.base}/content/{record.hash}"
    shown = show_content(
        content, asked.get("view", ""), limits, raw, lambda view: record_url(opened, record.hash, view=view)
    )
    body = join(
        tag("h1", title, " ", _badges(record, is_tip, bool(versions))),
        _about(record, tip.entry.hash if tip is not None and not is_tip else None, opened),
        tag("p", link("Would a peer get this?", url(f"{opened.base}/exposure", {"record": record.hash}) + "#outcome")),
        write and link("Remove this record", url(f"{opened.base}/delete", {"record": record.hash}), class_="button"),
        section("Content", shown),
        section("Headers", _headers(record)),
        section("Links", show_links(opened, record, found, limits), _same(opened, found.same_content)),
        section("History", show_history(opened, record, versions, tip, limits)),
        section("Facts", _facts(facts), note="What rules see about this record."),
    )
    data = {
        "hash": record.hash,
        "type": record.type,
        "group": parts.group,
        "app": parts.app,
        "name": parts.name,
        "tai": parts.tai,
        "utc": utc(parts.tai) if parts.tai else "",
        "signer": parts.signed_by or None,
        "signature": parts.signature or None,
        "blob": parts.blob_hash,
        "plex": parts.plex_hash or None,
        "headers": [list(header) for header in parts.headers],
        "content_length": content.length,
        "content_text": content.text,
        "content_is_cut": not content.is_whole,
        "content_trouble": content.trouble or None,
        "is_tip": is_tip,
        "versions": entries_data(versions[: limits.versions]),
        "versions_more": len(versions) > limits.versions,
        **tip_data(tip),
        **found.data(),
        "facts": facts,
    }
    return Page(title=title, data=data, body=body, crumbs=crumbs(opened, parts.group, parts.app, parts.name), here=HERE)


def read_content_head(opened: OpenedLace, record: ValidRecord, limits: InspectorLimits) -> Content:
    """As much of the content as a page shows, and what is missing."""
    try:
        return read_head(opened.lace.content(record.hash), opened.lace.content_length(record.hash), limits.shown_bytes)
    except LaceError as error:  # a manifest that lacks chunks
        return Content(bytes(record.data[: limits.shown_bytes]), record.data_length, str(error))


def _badges(record: ValidRecord, is_tip: bool, has_versions: bool) -> Markup:
    kind = tag("span", KINDS[record.type], class_="badge", title=_EXPLAINED[record.type])
    if not has_versions:
        return kind
    state = tag("span", "tip", class_="badge good") if is_tip else tag("span", "not the tip", class_="badge warn")
    return join(kind, " ", state)


def _about(record: ValidRecord, newer: str | None, opened: OpenedLace) -> Markup:
    parts = record.parts
    rows: list[tuple[str, object]] = [("Hash", copyable(record.hash))]
    if record.type != "B":
        rows.append(("Coordinate", copyable(f"//{parts.group}//{parts.app}//{parts.name}")))
        rows.append(("Time", join(instant(parts.tai), " UTC ", tag("span", f"TAI {parts.tai}", class_="faint"))))
        rows.append(("Signed by", copyable(parts.signed_by) if parts.signed_by else signer(None)))
    rows.append(("Size", f"{size(record.data_length)} of data, {size(len(record.stored))} stored"))
    if newer is not None:
        rows.append(("Tip", join("this coordinate means ", hash_link(newer, record_url(opened, newer)))))
    return fields(rows)


def _headers(record: ValidRecord) -> Markup:
    if not record.parts.headers:
        return empty("This record has no headers of its own.")
    return table("Headers", ("Name", "Value"), [(name, tag("code", value)) for name, value in record.parts.headers])


def _same(opened: OpenedLace, holders: object) -> Markup | None:
    found = list(holders) if isinstance(holders, list | tuple) else []
    if not found:
        return None
    listed = [tag("li", hash_link(holder, record_url(opened, holder))) for holder in found]
    return join(tag("h3", "Same content"), tag("ul", listed, class_="plain"))


def _facts(facts: list[str]) -> Markup:
    return tag("pre", tag("code", "\n".join(facts)), class_="content", tabindex="0", role="region", aria_label="Facts")


def stream_content(opened: OpenedLace, record: str) -> tuple[Content, Iterator[bytes]]:
    """The first bytes of the content, which tell its type, and the whole content."""
    valid = opened.lace.record(record)
    head = read_head(opened.lace.content(valid.hash), opened.lace.content_length(valid.hash), 64)
    return head, (bytes(piece) for piece in opened.lace.content(valid.hash))


_WIDTH, _ROW, _BOX, _TALL = 720, 44, 190, 32


@dataclass(frozen=True, slots=True)
class Linked:
    """One link: what it says, the record at its other end, and whether that is here."""

    says: str
    record: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The links of one record; `more` says that other records point to it too."""

    outgoing: Sequence[Linked]
    incoming: Sequence[Linked]
    more: bool
    same_content: Sequence[str]

    def data(self) -> Data:
        """For programs."""
        ways = {"links": self.outgoing, "linked_from": self.incoming}
        found: Data = {
            name: [{"says": one.says, "record": one.record, "stored": one.is_here} for one in way]
            for name, way in ways.items()
        }
        return {**found, "linked_from_more": self.more, "same_content": list(self.same_content)}


def neighbours(opened: OpenedLace, record: ValidRecord, limits: InspectorLimits) -> Neighbours:
    """The records that a record points to, and those that point to it."""
    from lace.notation.identifiers import RecordHash

    links = [found for name, value in record.parts.headers if (found := parse_link(name, value)) is not None]
    store = opened.lace.store
    outgoing = [Linked(found.data, found.target, store.have(RecordHash(found.target))) for found in links]
    snapshot = opened.snapshot()
    ways = first_rows(snapshot, RECORD_LINK, 4, str(record.hash), limits.linked + 1)
    incoming = [Linked(row[3], row[0], True) for row in ways]
    blob = record.parts.blob_hash if record.type != "B" else str(record.hash)
    holders = first_rows(snapshot, BLOB_HASH, 1, blob, limits.linked + 1)
    same = [row[0] for row in holders if row[0] != record.hash]
    return Neighbours(outgoing, incoming[: limits.linked], len(incoming) > limits.linked, same[: limits.linked])


def first_rows(snapshot: Snapshot, predicate: Predicate, place: int, value: str, limit: int) -> list[tuple[str, ...]]:
    """The first facts of a predicate with a value in one place; only these are decoded into texts."""
    code = snapshot.codes([value])[0]
    columns = snapshot.columns(predicate)
    if code < 0 or not columns:
        return []
    found = list(islice(rows_holding(columns[place], code), limit))
    texts = [snapshot.texts(as_codes(column[row] for row in found)) for column in columns]
    return list(zip(*texts, strict=True))


def show_links(opened: OpenedLace, record: ValidRecord, found: Neighbours, limits: InspectorLimits) -> Markup:
    """The links as a drawing and as lists."""
    if not found.outgoing and not found.incoming:
        return empty("This record links to no other, and none here links to it.")
    address = f"{opened.base}/record/"
    parts = [_drawing(record, found, limits, address)]
    for title, way in (("Links to", found.outgoing), ("Linked from", found.incoming)):
        if way:
            rows = [
                (one.says, hash_link(one.record, address + one.record), "stored here" if one.is_here else "not here")
                for one in way
            ]
            parts.append(tag("h3", title))
            parts.append(table(title, ("Says", "Record", "State"), rows))
    if found.more:
        goal = f"To(P,S) :- RecordLink(P,_,_,S,'{record.hash}')."
        parts.append(
            tag("p", "More records link to this one than are shown. As rules: ", tag("code", goal), class_="note")
        )
    return join(parts)


def _drawing(record: ValidRecord, found: Neighbours, limits: InspectorLimits, address: str) -> Markup:
    sides = (found.incoming[: limits.linked], found.outgoing[: limits.linked])
    rows = max(len(side) for side in sides)
    height = max(1, rows) * _ROW + 12
    middle = height / 2
    left, centre, right = 4, (_WIDTH - _BOX) / 2, _WIDTH - _BOX - 4
    lines, boxes = [], [_box(centre, middle - _TALL / 2, short(record.hash), None, "graph-self")]
    for side, x, start, end in (
        (sides[0], left, left + _BOX, centre),
        (sides[1], right, right, centre + _BOX),
    ):
        for place, one in enumerate(side):
            y = height / 2 + (place - (len(side) - 1) / 2) * _ROW
            lines.append(_edge(start, y, end, middle))
            kind = "graph-node" if one.is_here else "graph-node graph-absent"
            boxes.append(
                _box(x, y - _TALL / 2, f"{one.says[:10]} {short(one.record)[:13]}", address + one.record, kind)
            )
    title = tag("title", f"{len(found.incoming)} records link here, this one links to {len(found.outgoing)}")
    return tag("svg", title, lines, boxes, viewBox=f"0 0 {_WIDTH} {height:g}", class_="graph")


def _edge(x1: float, y1: float, x2: float, y2: float) -> Markup:
    bend = (x1 + x2) / 2
    return tag("path", d=f"M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {x2:g} {y2:g}", class_="graph-edge")


def _box(x: float, y: float, label: str, address: str | None, kind: str) -> Markup:
    drawn = join(
        tag("rect", x=f"{x:g}", y=f"{y:g}", width=_BOX, height=_TALL, rx=6),
        tag("text", label, x=f"{x + _BOX / 2:g}", y=f"{y + _TALL / 2 + 4:g}", text_anchor="middle"),
    )
    inner = tag("g", drawn, class_=kind)
    return link(inner, address) if address else inner
