"""The pages of an archive: its report, its commits, and its tables row by row.

Rule: a page reads the footers of a table's files and the rows that it shows. Which files an archive has is told by
replaying the log that `lace.spark.archive.log` writes, which this package may not import (a test compares the two); a
file that a commit dropped is not part of the archive, even if it still exists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lace.errors import StoreError
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits
from lace.inspector.names import Names
from lace.inspector.page import Data, Page
from lace.inspector.widgets import (
    count,
    empty,
    fields,
    instant,
    link,
    notice,
    pager,
    section,
    short,
    signer,
    size,
    table,
    url,
    utc,
)
from lace.notation.decimal import natural
from lace.notation.jsontext import read_json
from lace.porcelain.difference import as_text
from lace.values import dataclass

_REPORT = "report.json"
_TABLES = "tables"
_LONGEST = 160  # characters of one cell
_SUMMARY = 60
_LONGEST_NESTED = 10_000
_MAIN = 4  # columns; the others unfold
_FIRST = ("name", "group", "app", "tai", "signed_by", "data_length", "hash", "type", "rule", "reason")
_LABELS = {"tai": "time (UTC)", "data_length": "size"}
_BYTES = ("bytes", "_length", "size")
_HASH = re.compile(r"[A-Z]\.[A-Za-z0-9_~-]{43}(?:\.H3)?")
_BAR, _ROW, _LABEL = 420, 24, 260
_TITLES = {
    "by_type": "Records by type",
    "by_coordinate": "Records by group and app",
    "rejected_by_rule": "Refused, by rule",
    "growth_by_month": "Growth by month",
    "selected_by_peer": "Selected, by peer",
    "selected_by_coordinate": "Selected, by group and app",
}
_MOST_BARS = 24
_COMMITS = 30


def archive_page(name: str, path: Path, asked: Mapping[str, str], limits: InspectorLimits, names: Names) -> Page:
    """The report, or one table."""
    wanted = asked.get("table", "")
    if wanted in table_names(path):
        return _table_page(name, path, wanted, asked, limits, names)
    report = _json(path / _REPORT)
    tables = [_table_data(path, table_name) for table_name in table_names(path)]
    commits = history(path, _COMMITS) if has_log(path) else []
    body = join(
        tag("h1", name),
        tag("p", "An archive in ", tag("code", path), class_="lead"),
        _report(report)
        if report
        else empty("There is no report yet.", "`lace archive report` or `lace pipeline report` writes one."),
        section("Tables", _tables(name, tables)),
        section("History", _history(commits)) if commits else None,
    )
    data: Data = {"path": str(path), "report": report, "tables": tables, "commits": commits}
    return Page(title=name, data=data, body=body, here=name)


def table_names(path: Path) -> list[str]:
    """The tables of an archive."""
    if has_log(path):
        return sorted({file.table for file in live_files(path)})
    folder = path / _TABLES
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def _json(path: Path) -> Data | None:
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _files(path: Path, name: str) -> list[Path]:
    if has_log(path):
        return [file.path for file in live_files(path) if file.table == name]
    found = (path / _TABLES / name).rglob("*.parquet")
    return sorted(one for one in found if not one.name.startswith(("_", ".")))


def _table_data(path: Path, name: str) -> Data:
    if has_log(path):
        live = [file for file in live_files(path) if file.table == name]
        counted = {"rows": sum(file.rows for file in live), "bytes": sum(file.bytes for file in live)}
        return {"name": name, "files": len(live), **counted}
    files = _files(path, name)
    found: Data = {"name": name, "files": len(files), "bytes": sum(one.stat().st_size for one in files)}
    parquet = _parquet()
    if parquet is not None:
        found["rows"] = sum(parquet.read_metadata(one).num_rows for one in files)
    return found


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        return None
    return pyarrow.parquet


def _tables(name: str, tables: list[Data]) -> Markup:
    if not tables:
        return empty("This archive has no tables.")
    rows = [
        (
            link(one["name"], url(f"/archive/{name}", {"table": one["name"]})),
            f"{one['rows']:,}" if "rows" in one else "",
            f"{one['files']:,}",
            size(one["bytes"]),
        )
        for one in tables
    ]
    return table("Tables", ("Table", "Rows", "Files", "Size"), rows, right=frozenset({"Rows", "Files", "Size"}))


def _history(commits: list[Data]) -> Markup:
    rows = [
        (
            str(one["version"]),
            one["time"],
            one["operation"],
            ", ".join(f"{key} {n:,}" for key, n in one["counts"].items()),
        )
        for one in commits
    ]
    return table("Commits, newest first", ("Version", "Time", "What", "Counted"), rows)


def _report(report: Data) -> Markup:
    numbers = [(key, value) for key, value in report.items() if isinstance(value, int)]
    figures = [
        tag(
            "div",
            tag("b", size(value) if key.endswith("bytes") else f"{value:,}"),
            tag("span", key.replace("_", " ")),
            class_="figure",
        )
        for key, value in numbers
    ]
    charts = [section(title, _chart(title, report[key])) for key, title in _TITLES.items() if report.get(key)]
    return join(tag("div", figures, class_="figures"), charts)


def _chart(title: str, counts: list[Any]) -> Markup:
    """A bar chart, with a text alternative."""
    pairs = [(str(label), int(number)) for label, number in counts][:_MOST_BARS]
    most = max((number for _, number in pairs), default=1) or 1
    bars = []
    for place, (label, number) in enumerate(pairs):
        y = place * _ROW
        width = max(2, round(_BAR * number / most))
        shown = label if len(label) <= 36 else f"…{label[-35:]}"
        bars.append(tag("text", shown, x=_LABEL - 8, y=y + 16, text_anchor="end"))
        bars.append(tag("rect", x=_LABEL, y=y + 2, width=width, height=_ROW - 7, rx=2))
        bars.append(tag("text", f"{number:,}", x=_LABEL + width + 6, y=y + 16))
    told = "; ".join(f"{label}: {number:,}" for label, number in pairs)
    view = f"0 0 {_LABEL + _BAR + 80} {len(pairs) * _ROW}"
    return tag("svg", bars, viewBox=view, class_="chart", role="img", aria_label=f"{title}. {told}")


def _table_page(
    name: str, path: Path, wanted: str, asked: Mapping[str, str], limits: InspectorLimits, names: Names
) -> Page:
    start = natural(asked.get("start", "")) or 0
    base = f"/archive/{name}"
    parquet = _parquet()
    if parquet is None:
        body = notice("warning", "Tables need pyarrow: pip install 'lace-protocol[arrow]'")
        return Page(
            title=wanted, data={"error": "pyarrow is not installed"}, body=body, here=name, crumbs=[(name, base)]
        )
    rows = list(_rows(parquet, _files(path, wanted), start, limits.page_rows + 1))
    shown = rows[: limits.page_rows]
    columns = list(dict.fromkeys(key for row in shown for key in row))
    following = url(base, {"table": wanted, "start": start + len(shown)}) if len(rows) > len(shown) else None
    listing = _row_table(wanted, columns, shown, names) if shown else empty("No rows.")
    first = url(base, {"table": wanted}) if start else None
    body = join(
        tag("h1", wanted), tag("p", f"From row {start + 1:,}.", class_="lead"), listing, pager(following, first)
    )
    data: Data = {
        "table": wanted,
        "start": start,
        "columns": columns,
        "rows": [_plain(row) for row in shown],
        "next": following,
    }
    return Page(title=wanted, data=data, body=body, here=name, crumbs=[(name, base)])


def _rows(parquet: Any, files: list[Path], start: int, limit: int) -> Iterator[Mapping[str, Any]]:
    """Rows from a position on; the footers let us skip the files and row groups before it."""
    left = limit
    for path in files:
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                if start >= rows:
                    start -= rows
                    continue
                found = file.read_row_group(number).slice(start, left).to_pylist()
                start = 0
                left -= len(found)
                yield from found
                if left <= 0:
                    return


def _row_table(caption: str, columns: list[str], rows: list[Mapping[str, Any]], names: Names) -> Markup:
    """Rows for people: what names a record and says who wrote it first, everything else unfolds."""
    has_place = {"group", "app", "name"} <= set(columns)
    first = [
        column for column in _FIRST if column in columns and not (has_place and column in ("group", "app", "hash"))
    ]
    main = (first or columns)[:_MAIN] if len(columns) > _MAIN else columns
    rest = [column for column in columns if column not in main and not (has_place and column in ("group", "app"))]
    head = [
        "coordinate" if has_place and column == "name" else _LABELS.get(column, column.replace("_", " "))
        for column in main
    ]
    cells = []
    for row in rows:
        shown: list[object] = [
            tag("span", f"//{row['group']}//{row['app']}//{row['name']}", title=row.get("hash"))
            if has_place and column == "name" and row.get("group")
            else _cell(column, row.get(column), names)
            for column in main
        ]
        if rest:
            listed = [(column.replace("_", " "), _cell(column, row.get(column), names)) for column in rest]
            shown.append(tag("details", tag("summary", count(len(rest), "column")), fields(listed)))
        cells.append(shown)
    numbers = frozenset(label for label, column in zip(head, main, strict=True) if _is_number(rows, column))
    return table(caption, [*head, "More"] if rest else head, cells, right=numbers)


def _is_number(rows: list[Mapping[str, Any]], column: str) -> bool:
    return any(type(row.get(column)) in (int, float) for row in rows)


def _cell(column: str, value: Any, names: Names) -> Markup:
    """A value as people read it: names, times and sizes; what is long or nested unfolds."""
    match value:
        case None:
            return tag("span", "none", class_="faint")
        case bool():
            return tag("span", "yes" if value else "no")
        case int() if column.endswith(_BYTES):
            return tag("span", size(value), title=f"{value:,} bytes")
        case int():
            return tag("span", f"{value:,}")
        case bytes():
            text = as_text(value[:_LONGEST], is_whole=len(value) <= _LONGEST)
            return _long(text) if text else tag("span", count(len(value), "byte"), class_="faint")
        case str() if _HASH.fullmatch(value):
            return signer(value, names) if value[0] == "V" else tag("code", short(value), title=value, class_="hash")
        case str() if column == "tai" and utc(value):
            return instant(value)
        case str():
            return _long(value)
        case list() | dict() if not value:
            return tag("span", "none", class_="faint")
        case list() | dict() | tuple():
            text = json.dumps(value, ensure_ascii=False, default=str, indent=1)
            return tag("details", tag("summary", count(len(value), "entry").replace("entrys", "entries")),
                       tag("pre", text[:_LONGEST_NESTED]))  # fmt: skip
        case _:
            return _long(str(value))


def _long(text: str) -> Markup:
    if len(text) <= _LONGEST:
        return tag("span", text, class_="value")
    return tag("details", tag("summary", f"{text[:_SUMMARY]}…"), tag("pre", text[:_LONGEST_NESTED]))


def _plain(row: Mapping[str, Any]) -> Data:
    return {key: _plain_value(value) for key, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"{count(len(value), 'byte')}"
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


FOLDER = "log"


@dataclass(frozen=True, slots=True)
class TableFile:
    """One Parquet file of a table."""

    table: str
    path: Path
    rows: int
    bytes: int


def has_log(root: Path) -> bool:
    """Whether a directory is an archive with a log."""
    return (root / FOLDER).is_dir() and bool(_versions(root))


def live_files(root: Path) -> list[TableFile]:
    """The files of every table at the newest version."""
    version, floor = _versions(root)[-1], _floor(root)
    parts: list[_Change] = []
    whole = False
    while version > floor and not whole:
        start, part, whole = _last_part(root, floor, version)
        parts.append(part)
        version = start
    if floor and not whole:
        parts.append(_stretch(root / FOLDER / "base" / f"{floor:08d}.parquet"))
    files: dict[str, dict[str, Any]] = {}
    for part in reversed(parts):
        for path in part.dropped:
            files.pop(path, None)
        files |= {item["path"]: item for item in part.added}
    return [
        TableFile(item["table"], root / item["path"], item["rows"], item["bytes"])
        for item in files.values()
        if item["path"].endswith(".parquet")
    ]


class _Change(NamedTuple):
    """What a commit, or a stretch of them, comes to."""

    added: list[dict[str, Any]]
    dropped: list[str]


def _floor(root: Path) -> int:
    """The version up to which commits may be gone; 0 if all are there."""
    return max((int(path.stem) for path in (root / FOLDER / "base").glob("*.parquet")), default=0)


def _last_part(root: Path, floor: int, version: int) -> tuple[int, _Change, bool]:
    """The longest stretch that ends at a version, else its commit; where it begins, and whether it is all there was."""
    stretches = (root / FOLDER / "stretches").glob(f"*-{version:08d}.parquet") if _parquet() is not None else ()
    starts = {int(path.stem.partition("-")[0]): path for path in stretches}
    start = min((start for start in starts if start >= floor), default=None)
    if start is not None:
        return start, _stretch(starts[start]), False
    commit = _read(root, version)
    if commit.get("whole") is not None:  # of an older lace, every few commits
        return 0, _Change(commit["whole"]["files"], []), True
    return version - 1, _Change(commit["added"], commit["dropped"]), False


def _stretch(path: Path) -> _Change:
    try:
        columns = ["kind", "key", "table", "rows", "bytes"]
        rows = _parquet().read_table(path, columns=columns).to_pylist()
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: not a part of an archive's log ({error})") from error
    added = [{**row, "path": row["key"]} for row in rows if row["kind"] == "file"]
    return _Change(added, [row["key"] for row in rows if row["kind"] == "dropped"])


def history(root: Path, limit: int) -> list[dict[str, Any]]:
    """The newest commits, newest first: version, time, what was done, what it counted."""
    found = [_read(root, version) for version in _versions(root)[-limit:][::-1]]
    said = ("version", "time", "operation")
    return [{**{key: commit[key] for key in said}, "counts": commit.get("counts", {})} for commit in found]


def _versions(root: Path) -> list[int]:
    names = (path.stem for path in (root / FOLDER).glob("*.json"))
    return sorted(int(name) for name in names if name.isdecimal())


def _read(root: Path, version: int) -> dict[str, Any]:
    path = root / FOLDER / f"{version:08d}.json"
    try:
        found = read_json(path.read_text(encoding="utf-8"))
        if "version" not in found:
            raise ValueError("no version")
        return {**found, "added": list(found.get("added", ())), "dropped": list(found.get("dropped", ()))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: not a commit of an archive ({error})") from error
