"""Browsing a lace: its groups and apps, names below names, and recently stored records.

Rule: a page starts at a key; nothing is counted beyond a limit, and no page reads what it does not show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from lace.errors import LaceError, NotFound
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Data, Page, Place
from lace.inspector.widgets import (
    TIME,
    copyable,
    empty,
    hash_link,
    instant,
    link,
    pager,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.limits import MIB
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash
from lace.porcelain.tips import Tip
from lace.records.coordinate import Coordinate
from lace.records.validate import validate
from lace.store.base import Entry
from lace.store.browsing import Child, Count
from lace.store.columns.tables.coordinates import Space

HERE = "Browse"
RECENT = "Recent"
_RECENT_BYTES = 32 * MIB  # of bodies read for one page of recently stored records


def browse(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """The page of a group, an app or a name; without one, of all spaces."""
    if asked.get("group") and asked.get("app"):
        return _names(opened, asked, limits)
    return _spaces(opened, asked, limits)


def crumbs(opened: OpenedLace, group: str = "", app: str = "", name: str = "") -> list[Place]:
    """The breadcrumbs to a name."""
    places: list[Place] = [(opened.slug, opened.base)]
    if group:
        places.append((group, url(opened.base, {"group": group})))
    if app:
        places.append((app, url(opened.base, {"group": group, "app": app})))
    below = ""
    for segment in name.split("/")[:-1]:
        below += f"{segment}/"
        places.append((segment, url(opened.base, {"group": group, "app": app, "under": below})))
    return places


def record_url(opened: OpenedLace, record: str, **parameters: object) -> str:
    """The address of a record's page."""
    return url(f"{opened.base}/record/{record}", parameters)


def _spaces(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    group = asked.get("group") or None
    start = (asked.get("from_group", group or ""), asked.get("from_app", ""))
    found = opened.browser.spaces(start=start, group=group, limit=limits.page_rows + 1)
    shown = found[: limits.page_rows]
    counts = [opened.browser.count(space, limit=limits.count_to) for space in shown]
    following = None
    if len(found) > limits.page_rows:
        following = url(
            f"{opened.base}/browse", {"group": group, "from_group": found[-1].group, "from_app": found[-1].app}
        )
    data: Data = {"spaces": spaces_data(shown, counts), "next": following}
    title = group or "Groups and apps"
    lead = tag("p", "Every record has a coordinate in a group and an app, except Blobs.", class_="lead")
    listing = (
        join(
            space_table(opened, shown, counts),
            pager(following, url(f"{opened.base}/browse", {"group": group}) if asked.get("from_group") else None),
        )
        if shown
        else nothing_here(opened, group)
    )
    body = join(tag("h1", title), None if group else lead, listing)
    return Page(title=title, data=data, body=body, crumbs=crumbs(opened, group or ""), here=HERE)


def spaces_data(spaces: Sequence[Space], counts: Sequence[Count]) -> list[Data]:
    """Groups and apps for programs."""
    return [
        {"group": space.group, "app": space.app, "records": n.number, "counted_all": n.is_whole}
        for space, n in zip(spaces, counts, strict=True)
    ]


def space_table(opened: OpenedLace, spaces: Sequence[Space], counts: Sequence[Count]) -> Markup:
    """Groups and apps with how much is in them."""
    rows = [
        (
            link(space.group, url(opened.base, {"group": space.group})),
            link(space.app, _space_url(opened, space)),
            str(n),
        )
        for space, n in zip(spaces, counts, strict=True)
    ]
    return table("Groups and apps", ("Group", "App", "Records"), rows, right=frozenset({"Records"}))


def nothing_here(opened: OpenedLace, group: str | None = None) -> Markup:
    """What is said where there is no coordinate."""
    if group:
        return empty(f"There are no records under the group {group}.", link("All groups", f"{opened.base}/browse"))
    if opened.lace.stat().records:
        return empty(
            "There are only Blobs here, which have no coordinate.", link("Recently stored", f"{opened.base}/recent")
        )
    hint = f"lace put {opened.path} --group u --app notes --name first -"
    return empty("There are no records here yet.", join("Store one: ", tag("code", hint)))


def _space_url(opened: OpenedLace, space: Space, **more: object) -> str:
    return url(opened.base, {"group": space.group, "app": space.app, **more})


def _names(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    group, app, under = asked["group"], asked["app"], asked.get("under", "")
    under = f"{under.rstrip('/')}/" if under else ""
    start = asked.get("from", "")
    space = opened.browser.space(group, app)
    found = None
    if space is not None:
        found = opened.browser.children(
            space,
            under,
            start=start,
            limit=limits.page_rows,
            count_to=limits.count_to,
        )
    rows = found.rows if found else ()
    tips = {child.name: tip_at(opened, group, app, child.name) for child in rows if not child.is_folder}
    following = None
    if found and space and found.next is not None:
        following = _space_url(opened, space, under=under, **{"from": found.next})
    data: Data = {
        "group": group,
        "app": app,
        "under": under,
        "names": [_child_data(child, tips.get(child.name)) for child in rows],
        "next": following,
    }
    title = under.rstrip("/").rpartition("/")[2] or app
    if rows and space:
        first = _space_url(opened, space, under=under) if start else None
        listing = join(
            _jump(opened, space, under, start), _name_table(opened, space, under, rows, tips), pager(following, first)
        )
    else:
        listing = empty("There are no records below this name.", link("All groups and apps", f"{opened.base}/browse"))
    lead = tag("p", copyable(f"//{group}//{app}//{under}"), class_="lead")
    return Page(
        title=title,
        data=data,
        body=join(tag("h1", title), lead, listing),
        here=HERE,
        crumbs=crumbs(opened, group, app, under.rstrip("/")),
    )


def _jump(opened: OpenedLace, space: Space, under: str, start: str) -> Markup:
    """A form that starts the list at a name."""
    kept = {"group": space.group, "app": space.app, "under": under}
    hidden = [tag("input", type="hidden", name=key, value=value) for key, value in kept.items() if value]
    box = tag("input", type="search", name="from", id="from", value=start.rstrip("\0"), placeholder=f"{under}…")
    label = tag("label", "Start at a name", for_="from")
    return tag("form", hidden, label, box, tag("button", "Go"), action=opened.base, class_="inline")


def _name_table(
    opened: OpenedLace, space: Space, under: str, rows: tuple[Child, ...], tips: Mapping[str, Tip | None]
) -> Markup:
    shown = [_name_row(opened, space, under, child, tips.get(child.name)) for child in rows]
    columns = ("Name", "Records", TIME, "Signed by", "Size")
    return table("Names", columns, shown, right=frozenset({"Records", "Size"}))


def _name_row(opened: OpenedLace, space: Space, under: str, child: Child, tip: Tip | None) -> tuple[object, ...]:
    label = child.name[len(under) :]
    if child.is_folder:
        return link(label, _space_url(opened, space, under=child.name), class_="folder"), str(child.held), "", "", ""
    shown = tip.entry if tip is not None else next(iter(opened.browser.versions(space, child.name, limit=1)), None)
    if shown is None:  # removed since the names were read
        return label, str(child.held), "", "", ""
    marks = several(opened, tip) if tip is not None else no_tip(opened, space.group, space.app, child.name)
    name = join(link(label, record_url(opened, shown.hash), title=shown.hash), marks)
    return name, str(child.held), instant(shown.tai), signer(shown.signer, opened.names()), size(shown.data_length)


def _child_data(child: Child, tip: Tip | None) -> Data:
    found: Data = {"name": child.name, "records": child.held.number, "counted_all": child.held.is_whole}
    if child.is_folder:
        return {**found, "folder": True}
    return {**found, "folder": False, **tip_data(tip)}


def tip_at(opened: OpenedLace, group: str, app: str, name: str) -> Tip | None:
    """The tip of a coordinate, as `lace get` finds it; None if every version is withdrawn or dated too far ahead."""
    try:
        return opened.lace.tip(Coordinate(group=group, app=app, name=name))
    except NotFound:
        return None


def tip_data(tip: Tip | None) -> Data:
    """A tip for programs, with the newest version of each other writer."""
    if tip is None:
        return {"tip": None, "concurrent": []}
    return {"tip": entry_data(tip.entry), "concurrent": [entry_data(entry) for entry in tip.concurrent]}


def several(opened: OpenedLace, tip: Tip) -> Markup | None:
    """A badge for a tip whose coordinate has several writers: how many, and on demand who and when."""
    if not tip.concurrent:
        return None
    names = opened.names()
    said = "; ".join(f"{names.told(entry.signer)}, {utc(entry.tai)} UTC" for entry in (tip.entry, *tip.concurrent))
    return join(" ", tag("span", f"{len(tip.concurrent) + 1} writers", class_="badge warn", title=said))


def no_tip(opened: OpenedLace, group: str, app: str, name: str) -> Markup:
    """A badge for a name without a tip: withdrawn, or why not."""
    by = opened.lace.withdrawal(Coordinate(group=group, app=app, name=name))
    if by is not None:
        said = f"by {opened.names().told(by.signer)}, {utc(by.tai)} UTC"
        return join(" ", tag("span", "withdrawn", class_="badge warn", title=said))
    title = "Every version is dated too far ahead, or by somebody who may not write here."
    return join(" ", tag("span", "no tip", class_="badge warn", title=title))


def entry_data(entry: Entry) -> Data:
    """A version for programs."""
    return {
        "hash": entry.hash,
        "tai": entry.tai,
        "utc": utc(entry.tai),
        "signer": entry.signer,
        "data_length": entry.data_length,
    }


def recent(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """Recently stored records, regardless of their coordinate and time."""
    before = number_of(asked.get("before"))
    rows, following = recent_rows(opened, before, limits.page_rows)
    body = (
        join(
            record_table(opened, "Recently stored", rows),
            pager(following, f"{opened.base}/recent" if before is not None else None),
        )
        if rows
        else nothing_here(opened)
    )
    lead = tag("p", "In the order in which they were stored here, regardless of their own time.", class_="lead")
    return Page(
        title="Recently stored",
        data={"records": rows, "next": following},
        here=RECENT,
        body=join(tag("h1", "Recently stored"), lead, body),
        crumbs=crumbs(opened),
    )


def recent_rows(opened: OpenedLace, before: int | None, limit: int) -> tuple[list[Data], str | None]:
    """Recently stored records, and the address of those stored before them."""
    found = opened.browser.newest_records(before=before, limit=limit)
    bodies = opened.lace.store.get_first([record for _, record in found], _RECENT_BYTES)
    shown = found[: len(bodies)]
    rows = [_summary(record, body) for (_, record), body in zip(shown, bodies, strict=True)]
    more = len(shown) < len(found) or len(found) == limit
    return rows, url(f"{opened.base}/recent", {"before": shown[-1][0]}) if shown and more else None


def record_table(opened: OpenedLace, caption: str, rows: Sequence[Data]) -> Markup:
    """Records with what their own headers say, and a mark for those that are contested or not the tip."""
    names = opened.names()
    cells = [
        (
            join(_record_link(opened, row), _standing(opened, row)),
            instant(row["tai"]) if row["tai"] else "",
            signer(row["signer"], names) if row["tai"] else "",
            size(row["data_length"]),
        )
        for row in rows
    ]
    return table(caption, ("Record", TIME, "Signed by", "Size"), cells, right=frozenset({"Size"}))


def _record_link(opened: OpenedLace, row: Data) -> Markup:
    address = record_url(opened, row["hash"])
    if not row["coordinate"]:
        return join(hash_link(row["hash"], address), " ", tag("span", "no coordinate", class_="faint"))
    return link(row["coordinate"], address, title=row["hash"])


def _standing(opened: OpenedLace, row: Data) -> Markup | None:
    """What its coordinate makes of a record: nothing to say if it is the only writer's tip."""
    if not row["coordinate"]:
        return None
    tip = tip_at(opened, row["group"], row["app"], row["name"])
    if tip is None:
        return no_tip(opened, row["group"], row["app"], row["name"])
    older = tip.entry.hash != row["hash"] and join(
        " ", tag("span", "older", class_="badge", title=f"The tip is {tip.entry.hash}")
    )
    return join(several(opened, tip), older or None)


def _summary(record: RecordHash, body: bytes | None) -> Data:
    """A row about a record; if it was removed meanwhile or is damaged, with as much as is known."""
    found: Data = {
        "hash": record, "coordinate": "", "group": "", "app": "", "name": "", "tai": "", "signer": None,
        "data_length": 0,
    }  # fmt: skip
    if body is None:
        return found
    try:
        valid = validate(body, verify_signature=False)
    except LaceError:
        return found
    parts = valid.parts
    return {
        **found,
        "coordinate": f"//{parts.group}//{parts.app}//{parts.name}" if parts.group else "",
        "group": parts.group,
        "app": parts.app,
        "name": parts.name,
        "tai": parts.tai,
        "signer": parts.signed_by or None,
        "data_length": valid.data_length,
    }


def summaries(opened: OpenedLace, records: Sequence[str]) -> list[Data]:
    """The headers of some stored records, without those beyond what a page may read."""
    wanted = [RecordHash(record) for record in dict.fromkeys(records)]
    bodies = opened.lace.store.get_first(wanted, _RECENT_BYTES) if wanted else []
    return [_summary(record, body) for record, body in zip_longest(wanted, bodies)]


def number_of(text: str | None) -> int | None:
    """A parameter of the address as a number, if it is one."""
    return natural(text or "")
