"""The report as one HTML page: light and dark, from a phone to a wall screen, without a script.

Rule: the page needs nothing from elsewhere, and every text that came from a record, a file name or a peer passes
`escape` and is kept to its own line: it can show itself, and nothing else.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import sqrt
from pathlib import Path
from string import Template

from lace.notation.b64a import ALPHABET
from lace.spark.jobs.report import LARGEST_GROUPS, ArchiveReport, Counts, QuarantineRow

_TYPES = {"B": "Blob", "P": "Plex", "S": "Seal"}
_MONTHS_SHOWN = 36
_YEARS_SHOWN = 60
_FEWEST_PLOTTED = 64  # records; a map of fewer is a list
_STANDARD_DEVIATIONS = 6.0
_RUNS_SHOWN = 12
_LONGEST_TEXT = 300
_CELL = 10
_LOOK = Path(__file__).parents[2] / "inspector/static/lace.css"
"""The design of all faces of Lace; a report takes its colours and typefaces, which come before its first layer."""
_PAGE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


def page(report: ArchiveReport) -> str:
    """The whole page."""
    title = report.facts.get("archive", "")
    holdings = [
        _section("Growth", _growth(report.growth_by_month), "records by their own time"),
        _section("Records by type", _bars([(_TYPES.get(kind, kind), count) for kind, count in report.by_type])),
        _section("Records by group and app", _bars(report.by_coordinate)),
        _section("Records by signer", _bars(report.by_signer)),
    ]
    peers = [
        _section("What each peer may have and lacks", _peers(report) or _bars(report.selected_by_peer)),
        _section("Selected by group and app", _bars(report.selected_by_coordinate)),
        _section("Records by partition", _heat(report.by_partition), "hashes should be spread evenly: these are not"),
        *(
            _section(f"{name} lacks {sum(count for _, count in counts):,}", _heat(counts), "records by partition")
            for name, counts in report.missing_by_archive.items()
        ),
    ]
    sections = [
        _tiles(report),
        _section("What changed", _changes(report), f"since {report.since}" if report.since else ""),
        _section("Inputs", _inputs(report)),
        _flow(holdings),
        _section("Quarantine", _quarantine(report), tone="warn" if report.quarantined else ""),
        _flow(peers),
        _section("Steps", _steps(report), "how long the last runs took, newest right"),
        _section("Tables", _tables(report), _compaction(report)),
        _section("About this report", _facts(report)),
    ]
    tone = "warn" if report.quarantined or any(row.behind for row in report.peers) else "well"
    palette = _LOOK.read_text(encoding="utf-8").partition("@layer lace {")[0]
    said = {"title": _text(title), "verdict": _text(report.verdict), "tone": tone}
    return _PAGE.substitute(said, palette=palette, sections="".join(sections))


def _text(value: object) -> str:
    """Foreign text on one line: control and direction characters are shown as what they are, markup is escaped."""
    shown = "".join(
        character if unicodedata.category(character)[0] != "C" else "\N{REPLACEMENT CHARACTER}"
        for character in str(value)[:_LONGEST_TEXT]
    )
    return escape(shown + ("…" if len(str(value)) > _LONGEST_TEXT else ""))


def _flow(cards: Iterable[str]) -> str:
    """Cards in as many columns as there is room for."""
    return f"<div class=flow>{''.join(cards)}</div>"


def _section(title: str, body: str, note: str = "", *, tone: str = "") -> str:
    if not body:
        return ""
    classes = " ".join(filter(None, ["card", tone]))
    small = f"<p class=note>{_text(note)}</p>" if note else ""
    return f'<section class="{classes}"><h2>{_text(title)}</h2>{small}{body}</section>'


def _tiles(report: ArchiveReport) -> str:
    listed = sum(count for _, count in report.selected_by_peer)
    tiles = [
        ("records", f"{report.records:,}", ""),
        ("data", _size(report.data_bytes), ""),
        ("in quarantine", f"{report.quarantined:,}", "warn" if report.quarantined else ""),
        ("signers", f"{len(report.by_signer):,}{'+' if len(report.by_signer) == LARGEST_GROUPS else ''}", ""),
        ("peers", f"{len(report.selected_by_peer):,}", ""),
        ("selected for peers", f"{listed:,}", ""),
    ]
    cells = "".join(f'<div class="tile {tone}"><b>{value}</b><span>{name}</span></div>' for name, value, tone in tiles)
    return f"<div class=tiles>{cells}</div>"


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} PiB"


def _bars(counts: Sequence[tuple[str, int]]) -> str:
    """Label, bar, number: a table, so that it reads as one without any style."""
    if not counts:
        return ""
    most = max(count for _, count in counts) or 1
    rows = "".join(
        f'<tr><th scope=row title="{_text(label)}">{_text(label)}</th>'
        f'<td><i style="width:{max(0.5, 100 * count / most):.1f}%"></i></td><td class=n>{count:,}</td></tr>'
        for label, count in counts
    )
    cut = f"<p class=note>the {LARGEST_GROUPS} largest</p>" if len(counts) == LARGEST_GROUPS else ""
    return f"<table class=bars>{rows}</table>{cut}"


def _growth(by_month: Counts) -> str:
    """Months while a reader can take them in, else years; those without a record too, so that a gap is seen."""
    known = dict(by_month)
    if months := _between(known, _MONTHS_SHOWN, _next_month):
        return _bars([(month, known.get(month, 0)) for month in months])
    years: dict[str, int] = {}
    for month, count in by_month:
        years[month[:4]] = years.get(month[:4], 0) + count
    shown = _between(years, _YEARS_SHOWN, lambda year: f"{int(year) + 1:04}")
    return _bars([(year, years.get(year, 0)) for year in shown or years])  # clocks may be centuries apart


def _between(known: Iterable[str], most: int, following: Callable[[str], str]) -> list[str]:
    """Everything from the first to the last; nothing if there would be too much of it."""
    first, last = min(known, default=""), max(known, default="")
    found = [first] if first else []
    while found and found[-1] < last and len(found) <= most:
        found.append(following(found[-1]))
    return found if len(found) <= most else []


def _next_month(month: str) -> str:
    year, number = int(month[:4]), int(month[5:7])
    return f"{year + number // 12:04}-{number % 12 + 1:02}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Cells are HTML already."""
    right_aligned = [" class=n" if at in right else "" for at in range(len(head))]
    titles = "".join(f"<th scope=col{side}>{_text(name)}</th>" for side, name in zip(right_aligned, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for side, cell in zip(right_aligned, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<div class=scroll><table class=rows><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"


def _changes(report: ArchiveReport) -> str:
    if not report.since:
        return ""
    if not report.changes:
        return "<p>nothing that the log counts</p>"
    rows = [
        [_text(row.name), f"{row.before:,}", f"{row.now:,}", f"{row.now - row.before:+,}"] for row in report.changes
    ]
    return _table(["", "before", "now", "change"], rows, frozenset({1, 2, 3}))


def _inputs(report: ArchiveReport) -> str:
    if not report.inputs:
        return ""
    names = list(dict.fromkeys(name for row in report.inputs for name in row.counts if name != "files"))
    rows = [
        [_text(row.when), f"{row.files:,}", _size(row.bytes), *(f"{row.counts.get(name, 0):,}" for name in names)]
        for row in report.inputs
    ]
    return _table(["when", "files", "size", *names], rows, frozenset(range(1, 3 + len(names))))


def _quarantine(report: ArchiveReport) -> str:
    if not report.quarantined:
        return ""
    rows = _table(["file", "byte", "rule", "reason"], map(_quarantine_row, report.quarantine_rows), frozenset({1}))
    more = report.quarantined - len(report.quarantine_rows)
    rest = f"<p class=note>and {more:,} more in the table quarantine</p>" if more > 0 else ""
    return _bars(report.rejected_by_rule) + rows + rest


def _quarantine_row(row: QuarantineRow) -> list[str]:
    bytes_of_it = (
        f"<details><summary>{_text(row.reason)}</summary><dl>"
        f"<dt>claims to be</dt><dd><code>{_text(row.hash) or 'nothing'}</code></dd><dt>length</dt>"
        f"<dd>{_size(row.length)}</dd><dt>begins</dt><dd><code>{_text(row.begins)}</code></dd></dl></details>"
    )
    return [_text(row.file), f"{row.offset:,}", _text(row.rule), bytes_of_it]


def _peers(report: ArchiveReport) -> str:
    """A bar for what each peer may have, and in it how much of that it was given."""
    if not report.peers:
        return ""
    most = max(row.may_have for row in report.peers) or 1
    rows = []
    for row in report.peers:
        share = 100 * (row.may_have - row.lacks) / most
        width = 100 * row.may_have / most
        bar = f'<div class=share><i style="width:{width:.1f}%"></i><b style="width:{share:.1f}%"></b></div>'
        lacks = f"<strong>{row.lacks:,}</strong>" if row.lacks else "0"
        rows.append([_text(row.name), bar, f"{row.may_have:,}", f"{row.given:,}", lacks, f"{row.partitions:,}"])
    head = ["peer", "given of all", "may have", "was given", "lacks", "partitions"]
    return _table(head, rows, frozenset({2, 3, 4, 5}))


def _heat(counts: Counts) -> str:
    """A cell for each partition, darker for more; four steps are what an eye tells apart."""
    place = {character: at for at, character in enumerate(ALPHABET)}
    known = [(prefix, count) for prefix, count in counts if len(prefix) == 2 and set(prefix) <= set(place)]
    if not _is_uneven([count for _, count in known]):
        return ""
    most = max(count for _, count in known)
    cells = "".join(
        f'<rect class=h{_shade(count, most)} x="{place[prefix[1]] * _CELL}" '
        f'y="{place[prefix[0]] * _CELL}" width="{_CELL - 1}" height="{_CELL - 1}">'
        f"<title>{escape(prefix)}: {count:,}</title></rect>"
        for prefix, count in known
    )
    side = len(ALPHABET) * _CELL
    legend = f"{len(known):,} of {len(ALPHABET) ** 2:,} partitions hold records, at most {most:,}"
    box = f'viewBox="0 0 {side} {side}"'
    return f'<svg class=heat {box} role=img aria-label="{legend}">{cells}</svg><p class=note>{legend}</p>'


def _is_uneven(counts: Sequence[int]) -> bool:
    """Whether counts by partition say more than how many there are: hashes are spread evenly, whatever they are of.

    Of evenly spread records the sum of (found - expected)² / expected is about the number of partitions.
    """
    partitions, total = len(ALPHABET) ** 2, sum(counts)
    expected = total / partitions
    if total < _FEWEST_PLOTTED:
        return False
    strayed = sum((count - expected) ** 2 for count in counts) + (partitions - len(counts)) * expected**2
    return strayed / expected > partitions + _STANDARD_DEVIATIONS * sqrt(2 * partitions)


def _shade(count: int, most: int) -> int:
    """1 to 4, by quarters of the most: what holds the most is darkest, even where that is one record."""
    return max(1, -(-4 * count // most))


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _steps(report: ArchiveReport) -> str:
    if not report.steps:
        return ""
    longest = max((seconds for row in report.steps for seconds in row.seconds), default=0.0) or 1.0
    rows = []
    for row in report.steps:
        runs = "".join(
            f'<i style="height:{max(4, 100 * seconds / longest):.0f}%" title="{_seconds(seconds)}"></i>'
            for seconds in row.seconds[-_RUNS_SHOWN:]
        )
        result = ", ".join(f"{_text(name)} {count:,}" for name, count in row.result.items())
        rows.append([_text(row.step), f"<div class=spark>{runs}</div>", _seconds(row.seconds[-1]), result])
    return _table(["step", "last runs", "last", "result"], rows, frozenset({2}))


def _tables(report: ArchiveReport) -> str:
    if not report.tables:
        return ""
    rows = [
        [
            f'<a href="{escape(row.link)}">{_text(row.name)}</a>',
            f"{row.rows:,}",
            f"{row.files:,}",
            _size(row.bytes),
            _size(row.bytes // max(1, row.files)),
        ]
        for row in report.tables
    ]
    return _table(["table", "rows", "files", "size", "a file"], rows, frozenset({1, 2, 3, 4}))


def _compaction(report: ArchiveReport) -> str:
    """Whether compacting is worth it."""
    if not report.tables:
        return ""
    small, files = sum(row.small_files for row in report.tables), sum(row.files for row in report.tables)
    if not small:
        return f"{files:,} {'file' if files == 1 else 'files'}, none that compacting would write together"
    return f"{small:,} of {files:,} files are small: `lace archive compact` writes them together"


def _facts(report: ArchiveReport) -> str:
    rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in report.facts.items())
    return f"<dl>{rows}</dl>" if rows else ""
