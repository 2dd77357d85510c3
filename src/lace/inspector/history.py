"""The versions of one coordinate, what changed between two of them, and who wrote them.

Rule: the tip is what `Lace.tip` says it is; if several keys wrote one coordinate, the page says so and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from lace.inspector.browse import crumbs, entry_data, record_url
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Page
from lace.inspector.widgets import (
    empty,
    fields,
    hash_link,
    instant,
    link,
    notice,
    section,
    short,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.porcelain.difference import difference
from lace.porcelain.tips import Tip
from lace.records.coordinate import Coordinate
from lace.records.model import ValidRecord
from lace.records.tip import JudgedVersion, VersionState
from lace.store.base import Entry
from lace.store.browsing import Count
from lace.values import dataclass

HERE = "Browse"
NOT_KNOWN = ", signed by a key that this lace does not know"
_MOST_LINES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One page of the versions of a coordinate, newest first, and what one of them counts for."""

    versions: Sequence[JudgedVersion[Entry]] = ()
    older: Entry | None = None  # the version behind the last one shown
    start: int = 0
    total: Count | None = None  # None: a Blob has no coordinate
    state: VersionState | None = None
    by: Entry | None = None  # what withdrew it

    def data(self) -> dict[str, object]:
        """For programs."""
        return {
            "versions": [{**entry_data(one.version), "state": str(one.state)} for one in self.versions],
            "versions_start": self.start,
            "versions_total": self.total.number if self.total else 0,
            "versions_more": self.older is not None,
        }


def history_of(opened: OpenedLace, record: ValidRecord, start: int, limits: InspectorLimits) -> History:
    """The versions of a record's coordinate from a place on, and what the record counts for among the newest ones."""
    parts = record.parts
    space = opened.browser.space(parts.group, parts.app) if record.type != "B" else None
    if space is None:
        return History()
    total = opened.browser.version_count(space, parts.name, limit=limits.versions_counted)
    start = min(start, max(0, total.number - 1)) // limits.versions * limits.versions
    end = start + limits.versions
    shown: list[JudgedVersion[Entry]] = []
    own = None
    place = Coordinate(group=parts.group, app=parts.app, name=parts.name)
    looked_at = max(end + 1, limits.count_to)
    for number, one in enumerate(islice(opened.lace.history(place), looked_at)):
        if start <= number <= end:
            shown.append(one)
        if one.version.hash == record.hash:
            own = one
        if own is not None and number > end:
            break
    older = shown[limits.versions].version if len(shown) > limits.versions else None
    return History(versions=shown[: limits.versions], older=older, start=start, total=total,
                   state=own.state if own else None, by=own.by if own else None)  # fmt: skip


def show_history(opened: OpenedLace, record: ValidRecord, history: History, tip: Tip | None) -> Markup:
    """The versions as a table, each with a link to what it changed, and links to the other pages."""
    if history.total is None:
        return Markup("")
    names = opened.names()
    rows = []
    for place, one in enumerate(history.versions):
        entry = one.version
        behind = history.versions[place + 1].version if place + 1 < len(history.versions) else history.older
        change = link("what changed", compare_url(opened, behind.hash, entry.hash)) if behind else "first version"
        mark = tag("span", "this one", class_="badge") if entry.hash == record.hash else None
        is_tip = tag("span", "tip", class_="badge good") if tip is not None and entry.hash == tip.entry.hash else None
        when = link(instant(entry.tai), record_url(opened, entry.hash), title=entry.hash)
        rows.append(
            (
                join(when, " ", is_tip or _judged(opened, one), " ", mark),
                signer(entry.signer, names),
                size(entry.data_length),
                change,
            )
        )
    listing = table("Versions, newest first", ("Version (UTC)", "Signed by", "Size", "Change"), rows,
                    right=frozenset({"Size"}))  # fmt: skip
    return section(
        "History",
        writers(opened, tip),
        listing,
        _pages(opened, record, history),
        note=f"{history.total} {'version' if history.total.number == 1 else 'versions'}",
    )


def _pages(opened: OpenedLace, record: ValidRecord, history: History) -> Markup | None:
    if not history.start and history.older is None:
        return None
    step = len(history.versions)
    said = f"{history.start + 1:,} to {history.start + step:,} of {history.total}"
    newer = history.start and link("Newer", _page_url(opened, record, max(0, history.start - step)), class_="button")
    older = history.older and link("Older", _page_url(opened, record, history.start + step), class_="button")
    return tag("nav", newer or None, older or None, tag("span", said, class_="note"), class_="pager",
               aria_label="Pages of the history")  # fmt: skip


def _page_url(opened: OpenedLace, record: ValidRecord, start: int) -> str:
    return record_url(opened, record.hash, versions=start or None) + "#history"


def _judged(opened: OpenedLace, found: JudgedVersion[Entry]) -> Markup | None:
    """A badge for a version that does not simply stand."""
    match found.state:
        case VersionState.WITHDRAWN:
            by = found.by
            said = f"by {opened.names().told(by.signer)}, {utc(by.tai)} UTC" if by is not None else None
            return tag("span", "withdrawn", class_="badge warn", title=said)
        case VersionState.BARRED:
            return tag("span", "barred", class_="badge warn", title="The policy lets only others write here.")
        case VersionState.RETRACTS:
            return tag("span", "withdraws", class_="badge warn", title="It withdraws versions and has nothing to read.")
        case VersionState.AHEAD:
            return tag("span", "dated ahead", class_="badge warn", title="Dated too far ahead to be the tip.")
        case VersionState.STANDS:
            return None


def writers(opened: OpenedLace, tip: Tip | None) -> Markup | None:
    """Who wrote a coordinate and when, if several did."""
    if tip is None or not tip.concurrent:
        return None
    newest = (tip.entry, *tip.concurrent)
    listed = [
        tag(
            "li",
            signer(entry.signer, opened.names()),
            ": newest version ",
            link(join(instant(entry.tai), " UTC"), record_url(opened, entry.hash), title=entry.hash),
            None
            if entry.signer is None or entry.signer in known or opened.names().name_of(entry.signer)
            else tag("span", NOT_KNOWN, class_="faint"),
        )
        for known in [frozenset(opened.lace.known_keys())]
        for entry in newest
    ]
    said = tag(
        "p",
        tag("strong", f"{len(newest):,} writers at one coordinate."),
        " The tip is the newest version that is not withdrawn, by anybody who may write here."
        if opened.lace.tip_policy().writers
        else " The tip is the newest version that is not withdrawn, no matter who signed it.",
    )
    return notice("warning", join(said, tag("ul", listed)))


def compare_url(opened: OpenedLace, older: str, newer: str) -> str:
    """The address of the page that compares two records."""
    return url(f"{opened.base}/compare", {"older": older, "newer": newer})


def compare(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """The page that compares two records, headers and text."""
    older, newer = (opened.lace.record(asked.get(key, "")) for key in ("older", "newer"))
    lines = list(difference(opened.lace, older, newer, shown_bytes=limits.shown_bytes))
    cut = lines[:_MOST_LINES]
    ends = [
        (
            label,
            join(
                hash_link(one.hash, record_url(opened, one.hash)),
                " ",
                instant(one.parts.tai),
                " ",
                signer(one.parts.signed_by or None, opened.names()),
            ),
        )
        for label, one in (("Older", older), ("Newer", newer))
    ]
    body = (
        tag(
            "pre",
            [_line(line) for line in cut],
            class_="difference",
            tabindex="0",
            role="region",
            aria_label="Difference",
        )
        if lines
        else empty("Headers and content are the same.")
    )
    parts = newer.parts
    return Page(
        title=f"{short(older.hash)} and {short(newer.hash)}",
        here=HERE,
        data={"older": older.hash, "newer": newer.hash, "difference": lines},
        body=join(tag("h1", "What changed"), fields(ends), body),
        crumbs=crumbs(opened, parts.group, parts.app, parts.name),
    )


def _line(line: str) -> Markup:
    kind = {"+": "ins", "-": "del"}.get(line[:1])
    shown = tag(kind, line) if kind else tag("span", line, class_="faint" if line.startswith("@@") else None)
    return join(shown, "\n")
