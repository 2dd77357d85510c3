"""The page of one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lace.errors import LaceError
from lace.facts.derive import derive_facts
from lace.inspector.browse import HERE, crumbs, record_url, tip_at, tip_data
from lace.inspector.content import Content, read_head, show_content
from lace.inspector.graph import neighbours, show_links
from lace.inspector.history import entries_data, show_history, versions_of
from lace.inspector.html import Markup, join, tag
from lace.inspector.opened import InspectorLimits, OpenedLace
from lace.inspector.page import Page
from lace.inspector.words import (
    copyable,
    empty,
    fields,
    hash_link,
    instant,
    link,
    section,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.notation.factline import format_fact
from lace.records.model import ValidRecord

KINDS = {"B": "Blob", "P": "Plex", "S": "Seal"}
_EXPLAINED = {
    "B": "bytes without a coordinate",
    "P": "content under a coordinate, unsigned",
    "S": "content under a coordinate, signed",
}


def record_page(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits, *, write: bool) -> Page:
    """Everything there is to see of a record."""
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
        section("Facts", _facts(facts), note="What rules see of this record."),
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
    """As much of a content as a page shows; what is missing is said."""
    try:
        return read_head(opened.lace.content(record.hash), opened.lace.content_length(record.hash), limits.shown_bytes)
    except LaceError as error:  # a manifest whose chunks did not all come
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
    """A content's beginning, by which its type is told, and all of it."""
    valid = opened.lace.record(record)
    head = read_head(opened.lace.content(valid.hash), opened.lace.content_length(valid.hash), 64)
    return head, (bytes(piece) for piece in opened.lace.content(valid.hash))
