"""Links of a record in both directions, drawn and listed.

Rule: the drawing shows what the list says, and no more of it than fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lace.datalog.language.syntax import Predicate
from lace.facts.predicates import BLOB_HASH, RECORD_LINK
from lace.inspector.html import Markup, join, tag
from lace.inspector.opened import InspectorLimits, OpenedLace
from lace.inspector.page import Data
from lace.inspector.words import empty, hash_link, link, short, table
from lace.records.link import parse_link
from lace.records.model import ValidRecord
from lace.store.base import Snapshot
from lace.store.columns.segments.segment import as_codes, rows_holding
from lace.values import dataclass

_WIDTH, _ROW, _BOX, _TALL = 720, 44, 190, 32


@dataclass(frozen=True, slots=True)
class Linked:
    """One link: what it says, the record at its other end, and whether that is here."""

    says: str
    record: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The links of one record; `more` says that there are others that point at it."""

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
    """The records that a record points at and those that point at it."""
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
    """The first facts of a predicate with a value in one place; only these become texts."""
    code = snapshot.codes([value])[0]
    columns = snapshot.columns(predicate)
    if code < 0 or not columns:
        return []
    found = list(islice(rows_holding(columns[place], code), limit))
    texts = [snapshot.texts(as_codes(column[row] for row in found)) for column in columns]
    return list(zip(*texts, strict=True))


def show_links(opened: OpenedLace, record: ValidRecord, found: Neighbours, limits: InspectorLimits) -> Markup:
    """The drawing, and the same as lists."""
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
