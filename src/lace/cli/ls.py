"""`lace ls PATH [PREFIX]`: records as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.arguments import PrefixType, lace_argument, opened
from lace.cli.links import LinkChoices
from lace.cli.output import human_size, json_option, print_json, print_table, say, short_hash, shown_hash
from lace.cli.remote import from_options, pull, selector_of

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace
    from lace.porcelain.listing import Row

OVERVIEW = ("record", "coordinate", "time (UTC)", "size", "signed by")


@click.command("ls")
@lace_argument
@click.argument("prefix", type=PrefixType(), default="//")
@click.option("--columns", metavar="NAME,…", help="Show these fields: Group, App, Name, TAI, Signed-By, any header.")
@click.option("--tips", is_flag=True, help="Only the tip of each coordinate: the record that it means.")
@click.option("--blobs", is_flag=True, help="The Blobs instead: chunks, and what was stored without a coordinate.")
@json_option
@from_options
def command(
    path: Path,
    prefix: str,
    columns: str | None,
    tips: bool,
    blobs: bool,
    as_json: bool,
    source: Any,
    **links: Any,
) -> None:
    """List records, by coordinate, oldest first.

    PREFIX is the beginning of a coordinate: //u, //u//ding, //u//ding//links/ or a whole one; //u/ and //u//ding/ are
    the groups below u and the apps below ding. With --from the records it covers are first fetched from a peer into the
    lace.
    """
    if blobs and (columns or tips or prefix != "//"):
        raise click.UsageError("--blobs lists what has no coordinate, so it goes with no prefix, --columns or --tips")
    from lace.policy.select import select_all
    from lace.porcelain.listing import COLUMNS

    chosen = [column.strip() for column in columns.split(",") if column.strip()] if columns else list(COLUMNS)
    with opened(path, write=source is not None) as lace:
        if source is not None:
            pull(lace, source, select_all() if prefix == "//" else selector_of(prefix), LinkChoices(**links))
        listed = lace.list_blobs() if blobs else lace.list(prefix, columns=chosen, tips=tips)
        rows = listed if blobs else _told_if_empty(listed, path, prefix)
        if as_json:
            print_json_rows(rows, ["Data-Length"] if blobs else chosen)
        elif blobs:
            print_table(["record", "size"], ([shown_hash(r.hash), human_size(int(r["Data-Length"]))] for r in rows))
        elif columns:
            print_table(["record", *chosen], ([shown_hash(row.hash), *_cells(row, chosen)] for row in rows))
        else:
            print_overview(lace, rows)


def _told_if_empty(rows: Iterator[Row], path: Path, prefix: str) -> Iterator[Row]:
    """The same rows; where there are none, what stands nearest is said on stderr."""
    first = next(rows, None)
    if first is not None:
        return chain([first], rows)
    from lace.porcelain.near import nearest_prefixes

    near = nearest_prefixes(path, prefix)
    say(f"nothing stands at {prefix}" + (f"; there is {', '.join(near)}" if near else ""), err=True)
    return iter(())


def print_json_rows(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """One value as a text, several as a list, none as null."""
    for row in rows:
        values = {column: row.fields.get(column, ()) for column in columns}
        shown = {c: list(v) if len(v) > 1 else (v[0] if v else None) for c, v in values.items()}
        print_json({"hash": row.hash, **shown})


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [", ".join(row.fields.get(column, ())) for column in columns]


def print_overview(lace: Lace, rows: Iterable[Row]) -> None:
    """Records as people look for them: where, when, how large, by whom."""
    print_table(OVERVIEW, (_overview(lace, row) for row in rows), right=frozenset({"size"}))


def _overview(lace: Lace, row: Row) -> list[str]:
    size = int(row["Data-Length"]) or lace.content_length(row.hash)  # an empty body may stand for chunks
    signer = row["Signed-By"]
    return [shown_hash(row.hash), row.coordinate, shown_time(row["TAI"]), human_size(size), short_hash(signer) or "-"]


def shown_time(tai: str) -> str:
    """A TAI as people read it; as it stands where the calendar ends."""
    from lace.notation.tai import TAI

    try:
        return datetime.fromtimestamp(TAI(tai).to_unix_ns() // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return tai
