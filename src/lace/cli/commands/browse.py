"""`lace browse ADDRESS [PREFIX]`: a table of what a peer offers us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.exchange.preview import ask
from lace.cli.exchange.remote import selector_of
from lace.cli.options.arguments import LacePath, PrefixType, opened
from lace.cli.options.links import link_options, make_terms
from lace.cli.options.remotes import RemoteType, dialled
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import count_of, human_size, shown_time

if TYPE_CHECKING:
    from lace.policy.operand import Module
    from lace.porcelain.listing import Row

COLUMNS = ("record", "coordinate", "time (UTC)", "size", "signed by")


@click.command("browse")
@click.argument("address", type=RemoteType(), metavar="PEER")
@click.argument("prefix", type=PrefixType(), default="//")
@click.option(
    "--lace",
    "path",
    type=LacePath(),
    is_eager=True,
    metavar="PATH",
    help="Mark the records that this lace already has, and list only what its policy selects; PEER may be one of its "
    "remotes.",
)
@click.option(
    "--limit", "most", type=click.IntRange(1), default=10_000, show_default=True, help="Show at most this many."
)
@link_options
@json_option
def command(address: Any, prefix: str, path: Path | None, most: int, as_json: bool, **links: Any) -> None:
    """List what a peer offers, to pick from.

    Nothing is fetched, and the peer sees no records of yours. PREFIX is the beginning of a coordinate, as for `lace
    ls`. The table shows the peer's claims; they are checked when a record is fetched. To fetch one record, use `lace
    get LACE HASH --from ADDRESS`; to fetch all, `lace interlace`.
    """
    from lace.porcelain.preview import in_order, rows
    from lace.runtime.local.preview import Preview
    from lace.store.memory import MemoryStore

    address, choices = dialled(address, links)
    module = _by_policy(path) if prefix == "//" else selector_of(prefix)
    preview = Preview(max_records=most + 1)
    ask(MemoryStore(), address, make_terms(module, (), is_open=False), choices, preview)
    offered = in_order(rows(preview.offered))[:most]
    here = _held(path, offered)
    if as_json:
        for row in offered:
            fields = {name: values[0] for name, values in row.fields.items() if values}
            print_json({"hash": row.hash, **fields, **({} if here is None else {"here": row.hash in here})})
    else:
        columns = COLUMNS if here is None else (*COLUMNS, "here")
        table = (_cells(row, here) for row in offered)
        print_table(columns, table, right=frozenset({"size"}), drop=("signed by", "record", "size", "time (UTC)"))
    if len(preview.offered) > most:
        say(f"only the first {count_of(most, 'record')} are shown; --limit shows more", err=True)
    if not offered:
        say(f"{address} offers you nothing{'' if prefix == '//' else f' under {prefix}'}", err=True)


def _by_policy(path: Path | None) -> Module:
    """What the policy of our lace selects; everything without one."""
    from lace.policy.select import select_all

    if path is None:
        return select_all()
    with opened(path) as lace:
        policy = lace.policy()
    return select_all() if policy is None else policy.module


def _held(path: Path | None, offered: list[Row]) -> set[str] | None:
    if path is None:
        return None
    with opened(path) as lace:
        return {row.hash for row in offered if lace.store.have(row.hash)}


def _cells(row: Row, here: set[str] | None) -> list[str]:
    from lace.porcelain.preview import content_bytes

    known = [shown_time(row["TAI"]) if row["TAI"] else "-", human_size(content_bytes(row))]
    cells = [row.hash, row.coordinate or "-", *known, row["Signed-By"] or "-"]
    return cells if here is None else [*cells, "yes" if row.hash in here else "no"]
