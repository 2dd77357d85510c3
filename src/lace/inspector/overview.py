"""The first page: what is opened."""

from __future__ import annotations

from lace.inspector.html import join, tag
from lace.inspector.opened import Inspected
from lace.inspector.page import Data, Page
from lace.inspector.words import count, empty, link, section, size, table


def overview(inspected: Inspected) -> Page:
    """Everything that can be looked at from here."""
    laces: list[Data] = []
    for opened in inspected.laces.values():
        stat = opened.lace.stat()
        laces.append({"name": opened.slug, "path": str(opened.path), "address": opened.base, "records": stat.records,
                      "stored_bytes": stat.stored_bytes, "file_bytes": stat.file_bytes})  # fmt: skip
    rows = [
        (link(one["name"], one["address"]), tag("code", one["path"]), f"{one['records']:,}", size(one["stored_bytes"]),
         size(one["file_bytes"]))
        for one in laces
    ]  # fmt: skip
    columns = ("Lace", "File", "Records", "Of records", "On disk")
    listing = table("Laces", columns, rows, right=frozenset(columns[2:])) if rows else None
    mode = "Records can be put and removed from here." if inspected.write else "Nothing can be changed from here."
    body = join(
        tag("h1", "Inspector"),
        tag("p", f"{count(len(laces), 'lace')} on this machine. {mode}", class_="lead"),
        listing and section("Laces", listing),
        not listing and empty("No lace is opened.", "Start with `lace inspect PATH`."),
    )
    return Page(title="Inspector", data={"laces": laces, "write": inspected.write}, body=body)
