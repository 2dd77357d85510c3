"""Putting and removing records from a page, if the inspector was started with `--write`.

Rule: without `--write` these pages do not exist, and opening one changes nothing: a form has to be sent. A record is
stored by the same verb as everywhere; it is removed by its hash, after a confirmation page.
"""

from __future__ import annotations

from collections.abc import Mapping

from lace.errors import KeyUnavailable, LaceError
from lace.inspector.browse import crumbs, record_url
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import OpenedLace
from lace.inspector.page import POSTED, Page
from lace.inspector.widgets import copyable, empty, fields, instant, notice, url
from lace.runtime.identity.keyring import KeyRing

HERE = "Put"
_FIELDS = (("group", "Group", "u"), ("app", "App", "notes"), ("name", "Name", "books/reading"))


def put_page(opened: OpenedLace, asked: Mapping[str, str]) -> Page:
    """The form; when it was sent, what it says is stored and shown."""
    trouble = ""
    if POSTED in asked:
        try:
            return _stored(opened, asked)
        except LaceError as error:
            trouble = str(error)
    body = join(
        tag("h1", "Put a record"),
        tag("p", "A newer record at the same coordinate is its new tip; nothing is overwritten.", class_="lead"),
        trouble and notice("bad", trouble),
        _form(opened, asked),
    )
    return Page(title="Put a record", data={"error": trouble or None}, body=body, crumbs=crumbs(opened), here=HERE,
                status=400 if trouble else 200)  # fmt: skip


def _stored(opened: OpenedLace, asked: Mapping[str, str]) -> Page:
    group, app, name = (asked.get(field, "").strip() for field, _, _ in _FIELDS)
    content = asked.get("content", "").replace("\r\n", "\n").encode()
    record = opened.lace.put(content, group=group, app=app, name=name, sign=asked.get("key") or None)
    return Page(title="Stored", data={"hash": record}, body=empty("Stored."), location=record_url(opened, record))


def _form(opened: OpenedLace, asked: Mapping[str, str]) -> Markup:
    boxes = [
        tag("div", tag("label", label, for_=name),
            tag("input", name=name, id=name, required=True, value=asked.get(name, ""), placeholder=example))
        for name, label, example in _FIELDS
    ]  # fmt: skip
    options = [tag("option", "nobody", value="")]
    options += [tag("option", name, selected=name == asked.get("key")) for name in key_names()]
    signing = tag("div", tag("label", "Signed by", for_="key"), tag("select", options, name="key", id="key"))
    text = tag("textarea", asked.get("content", ""), name="content", id="content-text", rows="10", class_="wide")
    content = tag("div", tag("label", "Content", for_="content-text"), text)
    parts = [tag("div", boxes, signing, class_="columns"), content, tag("button", "Put", class_="primary")]
    return tag("form", tag("div", parts, class_="stack"), method="post", action=f"{opened.base}/put")


def key_names() -> list[str]:
    """The keys of the user's ring, by name."""
    try:
        return sorted(entry.name for entry in KeyRing.of_user().entries())
    except (KeyUnavailable, OSError):
        return []


def delete_page(opened: OpenedLace, asked: Mapping[str, str]) -> Page:
    """Asks whether a record is to go; when the answer was yes, it goes."""
    record = opened.lace.record(asked.get("record", ""))
    parts = record.parts
    back = url(opened.base, {"group": parts.group, "app": parts.app}) if parts.group else opened.base
    if POSTED in asked and asked.get("sure") == record.hash:
        opened.lace.delete(record.hash)
        return Page(title="Removed", data={"removed": record.hash}, body=empty("Removed."), location=back)
    rows: list[tuple[str, object]] = [("Hash", copyable(record.hash))]
    if parts.group:
        rows += [("Coordinate", f"//{parts.group}//{parts.app}//{parts.name}"), ("Time", instant(parts.tai))]
    said = "It goes from this lace only. A peer that has it may send it again in the next exchange."
    sure = tag("input", type="hidden", name="sure", value=record.hash)
    named = tag("input", type="hidden", name="record", value=record.hash)
    button = tag("button", "Remove it", class_="danger")
    form = tag("form", sure, named, button, method="post", action=f"{opened.base}/delete")
    body = join(tag("h1", "Remove this record?"), tag("p", said, class_="lead"), fields(rows), form)
    return Page(title="Remove a record", data={"record": record.hash}, body=body, crumbs=crumbs(opened))
