"""`lace ls PATH [PREFIX]`: a table of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.exchange.remote import from_options, pull, selector_of
from lace.cli.options.arguments import PrefixType, as_of_option, lace_argument, opened
from lace.cli.options.names import Namer
from lace.cli.options.remotes import dialled
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.tables import PAGE_ROWS, print_table
from lace.cli.output.words import human_size

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace
    from lace.porcelain.listing import Row
    from lace.store.base import Entry

OVERVIEW = ("record", "coordinate", "time (UTC)", "size", "signed by")
ALSO_BY = "also written by"  # beside a tip, where several people have written
STATE = "state"  # with --all, where something is withdrawn


@click.command("ls")
@lace_argument
@click.argument("prefix", type=PrefixType(), default="//")
@click.option("--columns", metavar="NAME,…", help="Show these fields: Group, App, Name, TAI, Signed-By, any header.")
@click.option("--tips", is_flag=True, help="List only the tip of each coordinate: the record it names.")
@click.option("--all", "withdrawn", is_flag=True, help="Also list what was withdrawn, and by whom.")
@as_of_option
@click.option("--blobs", is_flag=True, help="List Blobs instead: chunks, and what was stored without a coordinate.")
@json_option
@from_options
def command(
    path: Path,
    prefix: str,
    columns: str | None,
    tips: bool,
    withdrawn: bool,
    as_of: str | None,
    blobs: bool,
    as_json: bool,
    source: Any,
    **links: Any,
) -> None:
    """List records, by coordinate, oldest first.

    PREFIX is the beginning of a coordinate: //u, //u//ding, //u//ding//links/ or a whole one; //u/ and //u//ding/ mean
    the groups below u and the apps below ding. If several people have written to a coordinate, the row of its tip says
    who else and when. Withdrawn versions (`lace retract`) are listed with --all only. With --from, the records under
    PREFIX are first fetched from a peer into the lace.
    """
    if blobs and (columns or tips or withdrawn or as_of or prefix != "//"):
        raise click.UsageError(
            "--blobs lists what has no coordinate, so it cannot be combined with a prefix, --columns, --tips, --all or"
            " --as-of"
        )
    from lace.policy.select import select_all
    from lace.porcelain.listing import COLUMNS

    chosen = [column.strip() for column in columns.split(",") if column.strip()] if columns else list(COLUMNS)
    with opened(path, write=source is not None) as lace:
        if source is not None:
            policy = lace.policy() if prefix == "//" else None
            wanted = policy.module if policy is not None else select_all() if prefix == "//" else selector_of(prefix)
            pull(lace, *dialled(source, links), wanted)
        lace = lace.at(as_of) if as_of is not None else lace
        listed = lace.list_blobs() if blobs else lace.list(prefix, columns=chosen, tips=tips, withdrawn=withdrawn)
        rows = listed if blobs else _told_if_empty(listed, lace, path, prefix)
        if as_json:
            print_json_rows(rows, ["Data-Length"] if blobs else chosen)
        elif blobs:
            print_table(["record", "size"], ([r.hash, human_size(int(r["Data-Length"]))] for r in rows))
        elif columns:
            first = tuple(reversed(chosen[1:]))
            print_table(["record", *chosen], ([row.hash, *_cells(row, chosen)] for row in rows), drop=first)
        else:
            print_overview(lace, rows)


def _told_if_empty(rows: Iterator[Row], lace: Lace, path: Path, prefix: str) -> Iterator[Row]:
    """The rows as they are; if there are none, stderr names the nearest prefixes that have some."""
    first = next(rows, None)
    if first is not None:
        return chain([first], rows)
    if next(lace.list(prefix, columns=(), withdrawn=True), None) is not None:
        say(f"everything under {prefix} is withdrawn, or is not the tip; `lace ls --all` lists it", err=True)
        return iter(())
    from lace.porcelain.nearness import nearest_places

    near = nearest_places(path, prefix)
    say(f"no records under {prefix}" + (f"; did you mean {' or '.join(near)}?" if near else ""), err=True)
    return iter(())


def print_json_rows(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """One value as a text, several as a list, none as null."""
    for row in rows:
        values = {column: row.fields.get(column, ()) for column in columns}
        shown = {c: list(v) if len(v) > 1 else (v[0] if v else None) for c, v in values.items()}
        print_json({"hash": row.hash, **shown, **_tip_json(row)})


def _tip_json(row: Row) -> dict[str, object]:
    """Whether a row is the tip of its coordinate, and who else has written there; empty if nobody looked."""
    if row.is_tip is None:
        return {}
    others = [{"hash": entry.hash, "signer": entry.signer, "tai": entry.tai} for entry in row.concurrent]
    by = row.withdrawn_by
    withdrawn = {"hash": by.hash, "signer": by.signer, "tai": by.tai} if by is not None else None
    return {"is_tip": row.is_tip, "concurrent": others, "state": row.state, "withdrawn_by": withdrawn}


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [", ".join(row.fields.get(column, ())) for column in columns]


def print_overview(lace: Lace, rows: Iterable[Row]) -> None:
    """Records as people look for them: where, when, how large, by whom; and who else has written there, if anybody."""
    coming = iter(rows)
    page = list(islice(coming, PAGE_ROWS))
    told = writer_words(lace)
    columns: tuple[str, ...] = OVERVIEW
    if any(row.concurrent for row in page):
        columns = (*columns, ALSO_BY)
    if any(state_words(row, told) for row in page):
        columns = (*columns, STATE)
    shown = (_overview(lace, row, told, columns) for row in chain(page, coming))
    print_table(columns, shown, right=frozenset({"size"}), drop=("signed by", "record", "size", "time (UTC)"))


def state_words(row: Row, told: Callable[[Entry], str]) -> str:
    """What a listed version counts for, where it is not simply a version."""
    if row.withdrawn_by is not None:
        return f"withdrawn by {told(row.withdrawn_by)}"
    if row.state is None or row.state in ("stands", "ahead"):
        return ""
    if row.state == "barred":
        return "does not count: others may write here"
    return "withdraws other versions"


def _overview(lace: Lace, row: Row, told: Callable[[Entry], str], columns: Sequence[str]) -> list[str]:
    from lace.porcelain.tips import listed

    size = int(row["Data-Length"]) or lace.content_length(row.hash)  # an empty body may stand for chunks
    signer = row["Signed-By"] or "-"
    cells = [row.hash, row.coordinate, shown_time(row["TAI"]), human_size(size), signer]
    for column, said in ((ALSO_BY, listed(row.concurrent, told)), (STATE, state_words(row, told))):
        if column in columns:
            cells.append(said)
        elif said:  # the first page had no such column
            cells[-1] += f"; {'also by ' if column == ALSO_BY else ''}{said}"
    return cells


def writer_words(lace: Lace) -> Callable[[Entry], str]:
    """How to tell people who wrote a version and when: by a name of its key, else by its verifier.

    That the lace does not know a key is only a hint.
    """

    @cache
    def names() -> tuple[Namer, frozenset[str]]:
        return Namer.of(lace.store), frozenset(lace.known_keys())

    def words(entry: Entry) -> str:
        when = shown_time(entry.tai)
        if entry.signer is None:
            return f"unsigned ({when})"
        namer, known = names()
        who = namer.shown(entry.signer)
        is_known = entry.signer in known or namer.is_mine(entry.signer)
        hint = "" if is_known else ", a key that this lace does not know"
        return f"{who} ({when}{hint})"

    return words


def shown_time(tai: str) -> str:
    """A TAI as a date and time; unchanged if the calendar cannot express it."""
    from lace.notation.tai import TAI

    try:
        return datetime.fromtimestamp(TAI(tai).to_unix_ns() // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return tai
