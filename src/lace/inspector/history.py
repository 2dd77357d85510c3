"""The versions of one coordinate, what changed between two of them, and who wrote them.

Rule: the tip is what `Lace.tip` says it is; if several keys wrote one coordinate, the page says so and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lace.inspector.browse import crumbs, entry_data, record_url
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Page
from lace.inspector.widgets import (
    TIME,
    empty,
    fields,
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
from lace.porcelain.difference import difference
from lace.porcelain.tips import Tip, writer_of
from lace.records.model import ValidRecord
from lace.records.tip import JudgedVersion, VersionState, Withdrawals
from lace.store.base import Entry

HERE = "Browse"
NOT_KNOWN = ", signed by a key that this lace does not know"
_MOST_LINES = 2000


def versions_of(opened: OpenedLace, record: ValidRecord, limits: InspectorLimits) -> list[Entry]:
    """The newest versions of a record's coordinate, as many as are searched for its writers."""
    if record.type == "B":
        return []
    space = opened.browser.space(record.parts.group, record.parts.app)
    return opened.browser.versions(space, record.parts.name, limit=limits.count_to) if space else []


def show_history(
    opened: OpenedLace, record: ValidRecord, versions: Sequence[Entry], tip: Tip | None, limits: InspectorLimits
) -> Markup:
    """The versions as a table, each with a link to what it changed."""
    if record.type == "B":
        return empty("A Blob has no coordinate, so it has no history.")
    shown = versions[: limits.versions]
    withdrawals = Withdrawals.of(versions, opened.lace.tip_policy())
    rows = []
    for place, entry in enumerate(shown):
        older = versions[place + 1] if place + 1 < len(versions) else None
        change = link("what changed", compare_url(opened, older.hash, entry.hash)) if older else "first version"
        mark = tag("span", "this one", class_="badge") if entry.hash == record.hash else None
        is_tip = tag("span", "tip", class_="badge good") if tip is not None and entry.hash == tip.entry.hash else None
        is_tip = is_tip or _withdrawn(withdrawals.judge(entry))
        rows.append(
            (
                join(hash_link(entry.hash, record_url(opened, entry.hash)), " ", is_tip, " ", mark),
                instant(entry.tai),
                signer(entry.signer),
                size(entry.data_length),
                change,
            )
        )
    listing = table(
        "Versions, newest first", ("Version", TIME, "Signed by", "Size", "Change"), rows, right=frozenset({"Size"})
    )
    more = len(versions) > limits.versions
    return join(
        writers(opened, tip),
        listing,
        more and tag("p", f"The newest {len(shown)} versions.", class_="note"),
    )


def _withdrawn(found: JudgedVersion[Entry]) -> Markup | None:
    """A badge for a version that is withdrawn, or that withdraws others."""
    if found.by is not None:
        said = f"by {writer_of(found.by)}, {utc(found.by.tai)} UTC"
        return tag("span", "withdrawn", class_="badge warn", title=said)
    if found.state is VersionState.BARRED:
        return tag("span", "barred", class_="badge warn", title="The policy lets only others write here.")
    if found.state is VersionState.RETRACTS:
        return tag("span", "withdraws", class_="badge warn", title="It withdraws versions and has nothing to read.")
    return None


def writers(opened: OpenedLace, tip: Tip | None) -> Markup | None:
    """Who wrote a coordinate and when, if several did."""
    if tip is None or not tip.concurrent:
        return None
    newest = (tip.entry, *tip.concurrent)
    listed = [
        tag(
            "li",
            tag("code", writer_of(entry)),
            ": newest version ",
            hash_link(entry.hash, record_url(opened, entry.hash)),
            " of ",
            instant(entry.tai),
            None if entry.signer is None or entry.signer in known else tag("span", NOT_KNOWN, class_="faint"),
        )
        for known in [frozenset(opened.lace.known_keys())]
        for entry in newest
    ]
    said = tag(
        "p",
        tag("strong", f"{len(newest):,} writers at one coordinate."),
        " The tip is the newest version that is not withdrawn, no matter who signed it.",
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
                signer(one.parts.signed_by or None),
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


def entries_data(versions: Sequence[Entry]) -> list[dict[str, object]]:
    """The versions for programs."""
    return [entry_data(entry) for entry in versions]
