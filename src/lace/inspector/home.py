"""The home of a lace: how much it holds, what came lately, who signs, what is contested or incomplete, and its peers.

Rule: a sentence comes first, then what it is made of. What would need the whole lace is counted up to a limit, kept
while nothing changes, and says where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

from lace.errors import LaceError, LimitExceeded
from lace.inspector.browse import (
    entry_data,
    nothing_here,
    recent_rows,
    record_table,
    record_url,
    space_table,
    spaces_data,
    tip_at,
)
from lace.inspector.charts import Point, area_chart
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.page import Data, Page
from lace.inspector.widgets import DAY_S, ago, card, count, link, prose, signer, size, url, utc
from lace.limits import SECOND_NS
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.people.kinds import PolicyKind
from lace.porcelain.completeness import Incomplete, incomplete_content
from lace.porcelain.remotes import LastExchange, Remote, last_exchange, remotes_of
from lace.porcelain.tips import Tip
from lace.records.model import ValidRecord
from lace.store.browsing import Survey
from lace.values import dataclass

HERE = "Home"
_ARRIVED = 40
_RECENT, _SPACES, _LISTED, _WRITERS = 8, 8, 6, 6
_DAYS_AHEAD = 1  # a record dated later than that is left out of the drawing, and counted
_POINTS = 60
_KINDS = {
    PolicyKind.SELECT: "selects",
    PolicyKind.EXPOSE: "exposes",
    PolicyKind.RECEIVE: "takes",
    PolicyKind.TIP: "who may move a tip",
    PolicyKind.KEEP: "keeps",
    PolicyKind.QUOTA: "quotas",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a lace's home says beyond its lists."""

    survey: Survey
    contested: Sequence[tuple[str, str, str, Tip]]
    incomplete: Sequence[Incomplete]
    looked_through: bool  # whether all content in parts was looked at


def home(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """The home of a lace."""
    stat = opened.lace.stat()
    found = opened.while_unchanged("health", lambda: _health(opened, limits))
    arrived, _ = recent_rows(opened, None, _ARRIVED)
    recent = [row for row in arrived if row["coordinate"]][:_RECENT] or arrived[:_RECENT]  # parts of content say little
    spaces = opened.browser.spaces(limit=_SPACES + 1)
    shown = spaces[:_SPACES]
    counts = [opened.browser.count(space, limit=limits.count_to) for space in shown]
    remotes = [(remote, last_exchange(opened.lace.store, remote.name)) for remote in remotes_of(opened.lace.store)]
    policy = _policy(opened)
    lead = tag("p", f"{size(stat.stored_bytes)} of records, {size(stat.file_bytes)} on disk: ",
               tag("code", opened.path), class_="lead")  # fmt: skip
    main = [
        _contested(opened, found.contested),
        _incomplete(opened, found),
        card("Recently stored", record_table(opened, "Recently stored", recent),
             note=link("all, newest first", f"{opened.base}/recent")),
        card("Groups and apps", space_table(opened, shown, counts),
             note=len(spaces) > _SPACES and link("all", f"{opened.base}/browse")),
    ]  # fmt: skip
    aside = [
        _growth(found.survey),
        _writers(opened, found.survey, stat.records),
        _remotes(opened, remotes),
        _policy_card(opened, policy),
    ]
    columns = tag("div", tag("div", main, class_="wide-side"), tag("div", aside, class_="narrow-side"), class_="sides")
    empty = None if stat.records else nothing_here(opened)
    body = join(
        tag("h1", opened.slug), _verdict(found, stat.records, recent), lead, empty if not stat.records else columns
    )
    data: Data = {
        "path": str(opened.path),
        "records": stat.records,
        "stored_bytes": stat.stored_bytes,
        "file_bytes": stat.file_bytes,
        "recent": recent,
        "spaces": spaces_data(shown, counts),
        "next": f"{opened.base}/browse" if len(spaces) > _SPACES else None,
        "counted": found.survey.looked_at,
        "counted_all": found.survey.is_whole,
        "writers": [
            {"signer": verifier, "versions": number, "newest": newest}
            for verifier, number, newest in found.survey.writers
        ],
        "contested": [
            {"coordinate": f"//{group}//{app}//{name}", "tip": entry_data(tip.entry),
             "others": [entry_data(entry) for entry in tip.concurrent]}
            for group, app, name, tip in found.contested
        ],
        "incomplete": [one.to_json() for one in found.incomplete],
        "remotes": [{**remote.to_json(), "last": last.to_json() if last else None} for remote, last in remotes],
        "policy": policy,
    }  # fmt: skip
    return Page(title=opened.slug, data=data, body=body, here=HERE)


# --- what is found out


def _health(opened: OpenedLace, limits: InspectorLimits) -> Health:
    survey = opened.browser.survey(look_at=limits.surveyed, writers=_WRITERS + 1, shared=limits.conflicts)
    contested = [
        (*place, tip) for place in survey.shared if (tip := tip_at(opened, *place)) is not None and tip.concurrent
    ]
    incomplete: list[Incomplete] = []
    load = _up_to(limits.manifests, opened.lace.load)
    try:
        incomplete.extend(islice(incomplete_content(opened.lace.store, load, opened.lace.limits), _LISTED + 1))
    except LimitExceeded:
        return Health(survey=survey, contested=contested, incomplete=incomplete, looked_through=False)
    return Health(survey=survey, contested=contested, incomplete=incomplete, looked_through=True)


def _up_to(most: int, load: Callable[[RecordHash], ValidRecord]) -> Callable[[RecordHash], ValidRecord]:
    """A loader that gives up after so many records."""
    left = iter(range(most))

    def loaded(record: RecordHash) -> ValidRecord:
        if next(left, None) is None:
            raise LimitExceeded("manifests", most)
        return load(record)

    return loaded


def _policy(opened: OpenedLace) -> Data | None:
    try:
        policy = opened.lace.policy()
    except LaceError as error:  # a root that cannot be read must not hide the rest
        return {"error": str(error)}
    if policy is None:
        return None
    versions = policy.in_force.versions
    return {
        "group": policy.in_force.root.group,
        "founder": policy.in_force.root.founder,
        "waiting": policy.is_waiting,
        "versions": [
            {"kind": str(kind), "hash": version.hash, "tai": version.tai, "signer": version.signer}
            for kind, version in versions.items()
        ],
    }


# --- how it is shown


def _verdict(found: Health, records: int, recent: Sequence[Data]) -> Markup:
    """One sentence for whoever has no time, and what to look at."""
    writers = sum(1 for verifier, _, _ in found.survey.writers if verifier)
    many = "more than " if len(found.survey.writers) > _WRITERS else ""
    said = [f"{count(records, 'record')}", f"signed by {many}{count(min(writers, _WRITERS), 'key')}" if writers else ""]
    dated = next((row["tai"] for row in recent if row["tai"]), "")
    sentence = ", ".join(filter(None, said)) + "."
    newest = f" The newest arrival is dated {utc(dated)} UTC." if dated and utc(dated) else ""
    marks = [
        found.contested
        and link(_more(len(found.contested), found.survey, "contested coordinate"), "#contested", class_="badge warn"),
        found.incomplete
        and link(count(len(found.incomplete), "incomplete content"), "#incomplete", class_="badge warn"),
    ]
    calm = not any(marks) and tag("span", "nothing contested or incomplete", class_="badge good")
    return tag("p", tag("strong", sentence), newest, " ", [join(mark, " ") for mark in marks if mark],
               calm if records else None, class_="verdict")  # fmt: skip


def _more(number: int, survey: Survey, noun: str) -> str:
    return f"at least {count(number, noun)}" if not survey.is_whole else count(number, noun)


def _contested(opened: OpenedLace, contested: Sequence[tuple[str, str, str, Tip]]) -> Markup | None:
    if not contested:
        return None
    names = opened.names()
    items = [
        tag(
            "li",
            link(f"//{group}//{app}//{name}", record_url(opened, tip.entry.hash) + "#history"),
            tag(
                "div",
                "now by ", signer(tip.entry.signer, names), f", {utc(tip.entry.tai)}; also by ",
                [join(", " if place else None, signer(entry.signer, names))
                 for place, entry in enumerate(tip.concurrent[:3])],
                len(tip.concurrent) > 3 and f" and {len(tip.concurrent) - 3} more",
                class_="note",
            ),
        )
        for group, app, name, tip in contested[:_LISTED]
    ]  # fmt: skip
    more = len(contested) > _LISTED and tag("p", f"and {len(contested) - _LISTED:,} more", class_="note")
    note = "Several keys wrote here; the tip is the newest version by anybody who may write."
    return tag("div", card("Contested", tag("ul", items, class_="rows"), more, note=note), id="contested")


def _incomplete(opened: OpenedLace, found: Health) -> Markup | None:
    if not found.incomplete:
        return None
    items = [
        tag(
            "li",
            link(one.coordinate, record_url(opened, one.hash)),
            tag("div", f"{len(one.missing):,} of {one.parts:,} parts, {size(one.missing_bytes)}, are not here",
                class_="note"),
        )
        for one in found.incomplete[:_LISTED]
    ]  # fmt: skip
    more = len(found.incomplete) > _LISTED or not found.looked_through
    told = more and tag("p", prose("There may be more: `lace status` lists all."), class_="note")
    return tag("div", card("Incomplete", tag("ul", items, class_="rows"), told), id="incomplete")


def _growth(survey: Survey) -> Markup | None:
    today = int(time.time()) // DAY_S
    days = [(day, number) for day, number in survey.days if day <= today + _DAYS_AHEAD]
    ahead = sum(number for day, number in survey.days if day > today + _DAYS_AHEAD)
    if not days:
        return None
    first, last = days[0][0], max(days[-1][0], days[0][0] + 1)
    step = max(1, -(-(last - first + 1) // _POINTS))
    total, place, points = 0, 0, list[Point]()
    for end in range(first + step - 1, last + step, step):
        while place < len(days) and days[place][0] <= end:
            total += days[place][1]
            place += 1
        points.append(Point(_date(min(end, last)), total))
    told = f"From {_date(first)} to {_date(days[-1][0])}, by the time of the records: {count(total, 'version')}."
    left = ahead and tag("p", f"{count(ahead, 'version')} dated in the future left out.", class_="note")
    part = not survey.is_whole and tag("p", f"The first {survey.looked_at:,} coordinates only.", class_="note")
    return card("Growth", area_chart("Growth over time. " + told, points), left or None, part or None)


def _date(day: int) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%d")
    except OverflowError:
        return "?"


def _writers(opened: OpenedLace, survey: Survey, records: int) -> Markup | None:
    if not survey.writers:
        return None
    names = opened.names()
    most = survey.writers[0][1]
    rows = [
        tag(
            "li",
            tag("span", signer(verifier, names), tag("span", f"{number:,}", class_="number"), class_="line"),
            tag("meter", value=number, min=0, max=most, class_="meter", aria_label=f"{number} of {records} records"),
        )
        for verifier, number, _ in survey.writers[:_WRITERS]
    ]
    more = len(survey.writers) > _WRITERS and tag("p", "and others", class_="note")
    note = None if survey.is_whole else f"among {survey.looked_at:,} versions"
    return card("Who signs", tag("ul", rows, class_="rows"), more or None, note=note)


def _remotes(opened: OpenedLace, remotes: Sequence[tuple[Remote, LastExchange | None]]) -> Markup:
    if not remotes:
        hint = f"lace remote add {opened.path.name} NAME ADDRESS"
        return card("Peers", tag("p", "No remotes yet. ", tag("code", hint), class_="note"))
    rows = [tag("li", tag("span", tag("strong", remote.name), _ending(last), class_="line"),
                tag("div", _told(last), title=remote.address, class_="note"))
            for remote, last in remotes[:_LISTED]]  # fmt: skip
    more = len(remotes) > _LISTED and tag("p", f"and {len(remotes) - _LISTED:,} more", class_="note")
    return card("Peers", tag("ul", rows, class_="rows"), more or None)


def _ending(last: LastExchange | None) -> Markup:
    if last is None:
        return tag("span", "never met", class_="badge")
    if last.is_equal:
        return tag("span", "equal", class_="badge good", title="after the last exchange")
    return tag("span", last.ending, class_="badge warn", title=last.detail or None)


def _told(last: LastExchange | None) -> str:
    if last is None:
        return "no exchange yet"
    refused = len(last.refused_here) + len(last.refused_there)
    said = [_when(last.at), f"{last.received:,} in, {last.sent:,} out", f"{refused:,} refused" if refused else ""]
    return "; ".join(filter(None, said))


def _when(tai: str) -> str:
    try:
        return ago(time.time() - TAI.parse(tai).to_unix_ns() / SECOND_NS)
    except (LaceError, ValueError, OverflowError):
        return tai


def _policy_card(opened: OpenedLace, policy: Data | None) -> Markup:
    if policy is None:
        said = "None: each exchange goes by the rules it is given."
        return card("Policy in force", tag("p", said, class_="note"))
    if "error" in policy:
        return card("Policy in force", tag("p", policy["error"], class_="note"))
    names = opened.names()
    lead = tag("p", "Group ", link(policy["group"], url(opened.base, {"group": policy["group"]})), ", founded by ",
               signer(policy["founder"], names))  # fmt: skip
    rows = [
        tag("li", link(_KINDS.get(PolicyKind(one["kind"]), one["kind"]), record_url(opened, one["hash"])),
            tag("div", "by ", signer(one["signer"], names), f", {utc(one['tai'])}", class_="note"))
        for one in policy["versions"]
    ]  # fmt: skip
    waiting = policy["waiting"] and tag("p", "The policy itself has yet to arrive.", class_="note")
    ask = tag("p", link("May somebody read something?", f"{opened.base}/exposure"))
    return card("Policy in force", lead, tag("ul", rows, class_="rows") if rows else None, waiting or None, ask)
