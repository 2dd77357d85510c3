"""The first page: what is opened. If that is one lace, or one thing, it leads there."""

from __future__ import annotations

from lace.inspector.html import join, tag
from lace.inspector.inspected import Inspected
from lace.inspector.page import Data, Page
from lace.inspector.widgets import count, link, section, size, table


def overview(inspected: Inspected) -> Page:
    """The first page: everything that is opened."""
    laces: list[Data] = []
    for opened in map(inspected.current, list(inspected.laces)):
        stat = opened.lace.stat()
        laces.append(
            {
                "name": opened.slug,
                "path": str(opened.path),
                "address": opened.base,
                "records": stat.records,
                "stored_bytes": stat.stored_bytes,
                "file_bytes": stat.file_bytes,
            }
        )
    rows = [
        (
            link(one["name"], one["address"]),
            tag("code", one["path"]),
            f"{one['records']:,}",
            size(one["stored_bytes"]),
            size(one["file_bytes"]),
        )
        for one in laces
    ]
    columns = ("Lace", "File", "Records", "Of records", "On disk")
    listing = table("Laces", columns, rows, right=frozenset(columns[2:])) if rows else None
    mode = "Records can be put and removed from here." if inspected.write else "Nothing can be changed from here."
    others = [
        *((name, f"/archive/{name}", "an archive") for name in inspected.archives),
        *((name, f"/capture/{name}", "a captured conversation") for name in inspected.captures),
        *([("The running node", "/node", "live")] if inspected.node else []),
    ]
    body = join(
        tag("h1", "Inspector"),
        tag("p", f"{count(len(laces), 'lace')} on this machine. {mode}", class_="lead"),
        listing and section("Laces", listing),
        others
        and section(
            "Also opened", tag("ul", [tag("li", link(label, address), " ", kind) for label, address, kind in others])
        ),
    )
    data: Data = {
        "laces": laces,
        "write": inspected.write,
        "captures": {name: str(path) for name, path in inspected.captures.items()},
        "archives": {name: str(path) for name, path in inspected.archives.items()},
        "node": inspected.node or None,
    }
    return Page(title="Inspector", data=data, body=body, location=inspected.only or "")
