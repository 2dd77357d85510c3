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
from lace.inspector.browse import HERE, crumbs, record_url, summaries, tip_at, tip_data
from lace.inspector.content import Content, read_head, show_content
from lace.inspector.history import History, history_of, show_history
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.names import fact
from lace.inspector.page import Data, Page
from lace.inspector.widgets import (
    copyable,
    count,
    empty,
    fields,
    fold,
    hash_link,
    instant,
    link,
    notice,
    short,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.notation.decimal import natural
from lace.notation.factline import format_fact
from lace.porcelain.tips import Tip
from lace.records.link import parse_link
from lace.records.model import NO_LIMITS, ValidRecord
from lace.records.tip import VersionState
from lace.records.validate import validate
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
    """The page of a record: what it says and whether that can be trusted, then everything else, folded."""
    record = opened.lace.record(asked["record"])
    parts = record.parts
    content = read_content_head(opened, record, limits)
    found = neighbours(opened, record, limits)
    history = history_of(opened, record, natural(asked.get("versions", "")) or 0, limits)
    facts = [format_fact(fact) for fact in derive_facts(record)]
    title = parts.name.rpartition("/")[2] if parts.name else KINDS[record.type]
    tip = tip_at(opened, parts.group, parts.app, parts.name) if record.type != "B" else None
    is_tip = tip is not None and tip.entry.hash == record.hash
    raw = f"{opened.base}/content/{record.hash}"
    shown = show_content(
        content, asked.get("view", ""), limits, raw, lambda view: record_url(opened, record.hash, view=view)
    )
    trust = trusted(record)
    links = len(found.outgoing) + len(found.incoming)
    whose = link("May somebody read this?", url(f"{opened.base}/exposure", {"record": record.hash}) + "#outcome")
    remove = write and link(
        "Remove this record", url(f"{opened.base}/delete", {"record": record.hash}), class_="button"
    )
    body = join(
        tag("h1", title),
        show_verdict(opened, record, tip, trust, history),
        tag("div", shown, id="content"),
        tag("p", whose, " ", remove or None, class_="actions"),
        show_history(opened, record, history, tip),
        tag(
            "div",
            fold("About", _about(opened, record), note=short(record.hash)),
            fold("Headers", _headers(record), note=count(len(record.parts.headers), "header")),
            fold(
                "Links",
                show_links(opened, record, found, limits),
                _same(opened, found.same_content),
                note=f"{count(links, 'link')}{' or more' if found.more else ''}",
            ),
            fold("Facts", _facts(opened, facts), note=f"{count(len(facts), 'fact')}: what rules see"),
            class_="folds",
        ),
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
        "verified": trust == "",
        "blob": parts.blob_hash,
        "plex": parts.plex_hash or None,
        "headers": [list(header) for header in parts.headers],
        "content_length": content.length,
        "content_text": content.text,
        "content_is_cut": not content.is_whole,
        "content_trouble": content.trouble or None,
        "is_tip": is_tip,
        "state": str(history.state) if history.state else None,
        **history.data(),
        **tip_data(tip),
        **found.data(),
        "facts": facts,
    }
    return Page(title=title, data=data, body=body, crumbs=crumbs(opened, parts.group, parts.app, parts.name), here=HERE)


def trusted(record: ValidRecord) -> str:
    """Why a record cannot be trusted to say what its writer said; empty if its hash and its signature hold."""
    try:
        validate(record.stored, limits=NO_LIMITS)
    except LaceError as error:
        return str(error)
    return ""


def show_verdict(opened: OpenedLace, record: ValidRecord, tip: Tip | None, trouble: str, history: History) -> Markup:
    """One line: whether it is intact, who signed it and when, and what it counts for."""
    if trouble:
        return notice("bad", join(tag("strong", "Not intact. "), trouble))
    names = opened.names()
    if record.type == "B":
        said: object = "Intact: its hash is right. A Blob is bytes without a coordinate."
        return tag("p", tag("span", "intact", class_="badge good"), " ", said, class_="verdict")
    signed = record.parts.signed_by
    proof = (
        join(tag("span", "verified", class_="badge good"), " signed by ", tag("strong", signer(signed, names)))
        if signed
        else join(tag("span", "unsigned", class_="badge warn"), " intact, but anybody may have written it")
    )
    what = _standing(opened, record, tip, history)
    return tag("p", proof, ", ", instant(record.parts.tai), " UTC. ", what, class_="verdict")


def _standing(opened: OpenedLace, record: ValidRecord, tip: Tip | None, history: History) -> Markup:
    """What the coordinate makes of a version."""
    names = opened.names()
    match history.state:
        case VersionState.WITHDRAWN:
            by = history.by and join(" by ", signer(history.by.signer, names), f", {utc(history.by.tai)} UTC")
            return join(tag("span", "withdrawn", class_="badge warn"), by or None)
        case VersionState.RETRACTS:
            return join(tag("span", "withdraws", class_="badge warn"), " other versions, and has nothing to read")
        case VersionState.AHEAD:
            return join(tag("span", "dated ahead", class_="badge warn"), " too far to be the tip")
        case VersionState.BARRED:
            return join(tag("span", "barred", class_="badge warn"), " the policy lets only others write here")
    if tip is None:
        return Markup("")
    contested = tip.concurrent and join(
        " ",
        link("contested", "#history", class_="badge warn"),
        " also written by ",
        [join(", " if place else None, signer(one.signer, names))
         for place, one in enumerate(one for one in (tip.entry, *tip.concurrent)
                                     if (one.signer or "") != record.parts.signed_by)],
    )  # fmt: skip
    if tip.entry.hash == record.hash:
        return join(tag("span", "tip", class_="badge good", title="what its coordinate means now"), contested or None)
    newer = link("a newer version", record_url(opened, tip.entry.hash), title=tip.entry.hash)
    return join(tag("span", "not the tip", class_="badge warn"), " there is ", newer, contested or None)


def read_content_head(opened: OpenedLace, record: ValidRecord, limits: InspectorLimits) -> Content:
    """As much of the content as a page shows, and what is missing."""
    try:
        return read_head(opened.lace.content(record.hash), opened.lace.content_length(record.hash), limits.shown_bytes)
    except LaceError as error:  # a manifest that lacks chunks
        return Content(bytes(record.data[: limits.shown_bytes]), record.data_length, str(error))


def _about(opened: OpenedLace, record: ValidRecord) -> Markup:
    parts = record.parts
    rows: list[tuple[str, object]] = [
        ("Hash", copyable(record.hash)),
        ("Kind", f"{KINDS[record.type]}: {_EXPLAINED[record.type]}"),
    ]
    if record.type != "B":
        rows.append(("Coordinate", copyable(f"//{parts.group}//{parts.app}//{parts.name}")))
        rows.append(("Time", join(instant(parts.tai), " UTC ", tag("span", f"TAI {parts.tai}", class_="faint"))))
        name = opened.names().name_of(parts.signed_by) if parts.signed_by else None
        rows.append(
            (
                "Signed by",
                join(name and f"{name} ", copyable(parts.signed_by)) if parts.signed_by else signer(None, None),
            )
        )
    rows.append(("Size", f"{size(record.data_length)} of data, {size(len(record.stored))} stored"))
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


def _facts(opened: OpenedLace, facts: list[str]) -> Markup:
    names = opened.names()
    lines = [join(fact(one, names, opened.base), "\n") for one in facts]
    return tag("pre", lines, class_="content", tabindex="0", role="region", aria_label="Facts")


def stream_content(opened: OpenedLace, record: str) -> tuple[Content, Iterator[bytes]]:
    """The first bytes of the content, which tell its type, and the whole content."""
    valid = opened.lace.record(record)
    head = read_head(opened.lace.content(valid.hash), opened.lace.content_length(valid.hash), 64)
    return head, (bytes(piece) for piece in opened.lace.content(valid.hash))


_WIDTH, _ROW, _BOX, _TALL = 720, 44, 190, 32
_LETTERS = 23  # that fit into a box


@dataclass(frozen=True, slots=True)
class Linked:
    """One link: what it says, the record at its other end, and whether that is here."""

    says: str
    record: str
    is_here: bool
    name: str = ""  # of its coordinate, and empty if it is not here

    @property
    def label(self) -> str:
        """What a page calls it: its name, else the beginning of its hash."""
        return self.name.rpartition("/")[2] or short(self.record)


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
    outgoing = [(found.data, found.target, store.have(RecordHash(found.target))) for found in links]
    snapshot = opened.snapshot()
    ways = first_rows(snapshot, RECORD_LINK, 4, str(record.hash), limits.linked + 1)
    incoming = [(row[3], row[0], True) for row in ways]
    blob = record.parts.blob_hash if record.type != "B" else str(record.hash)
    holders = first_rows(snapshot, BLOB_HASH, 1, blob, limits.linked + 1)
    same = [row[0] for row in holders if row[0] != record.hash]
    shown = [*outgoing[: limits.linked], *incoming[: limits.linked]]
    named = {row["hash"]: row["name"] for row in summaries(opened, [target for _, target, is_here in shown if is_here])}

    def linked(ways: Sequence[tuple[str, str, bool]]) -> list[Linked]:
        return [Linked(says, target, is_here, named.get(target, "")) for says, target, is_here in ways]

    more = len(incoming) > limits.linked
    return Neighbours(linked(outgoing), linked(incoming[: limits.linked]), more, same[: limits.linked])


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
                (
                    one.says,
                    link(one.label, address + one.record, title=one.record),
                    "stored here" if one.is_here else "not here",
                )
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
    lines = []
    own = _shortened(record.parts.name.rpartition("/")[2] or short(record.hash))
    boxes = [_box(centre, middle - _TALL / 2, own, record.hash, None, "graph-self")]
    for side, x, start, end in (
        (sides[0], left, left + _BOX, centre),
        (sides[1], right, right, centre + _BOX),
    ):
        for place, one in enumerate(side):
            y = height / 2 + (place - (len(side) - 1) / 2) * _ROW
            lines.append(_edge(start, y, end, middle))
            kind = "graph-node" if one.is_here else "graph-node graph-absent"
            boxes.append(
                _box(
                    x,
                    y - _TALL / 2,
                    _shortened(f"{one.says[:10]}: {one.label}"),
                    one.record,
                    address + one.record,
                    kind,
                )
            )
    title = tag("title", f"{len(found.incoming)} records link here, this one links to {len(found.outgoing)}")
    return tag("svg", title, lines, boxes, viewBox=f"0 0 {_WIDTH} {height:g}", class_="graph")


def _edge(x1: float, y1: float, x2: float, y2: float) -> Markup:
    bend = (x1 + x2) / 2
    return tag("path", d=f"M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {x2:g} {y2:g}", class_="graph-edge")


def _shortened(label: str) -> str:
    return label if len(label) <= _LETTERS else f"{label[:_LETTERS]}…"


def _box(x: float, y: float, label: str, whole: str, address: str | None, kind: str) -> Markup:
    drawn = join(
        tag("title", whole),
        tag("rect", x=f"{x:g}", y=f"{y:g}", width=_BOX, height=_TALL, rx=6),
        tag("text", label, x=f"{x + _BOX / 2:g}", y=f"{y + _TALL / 2 + 4:g}", text_anchor="middle"),
    )
    inner = tag("g", drawn, class_=kind)
    return link(inner, address) if address else inner
