"""`lace quota PATH`: what peers have stored in a lace, by account."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible_line
from lace.cli.output.words import human_size


@click.command("quota")
@lace_argument
@click.option("--forget", "forgotten", multiple=True, metavar="ACCOUNT", help="Reset this account; repeatable.")
@json_option
def command(path: Path, forgotten: Sequence[str], as_json: bool) -> ExitCode:
    """Show how much peers have stored in a lace, by account.

    There is an account for each peer that has a quota (its key, or the network it came from), one for all strangers
    together, and, where `lace serve --quota` limits them, one for each signer and group. Removing a record frees the
    space it took. `--forget` resets an account and removes no record.
    """
    from lace.store import ledger

    with opened(path, write=bool(forgotten)) as lace:
        unknown = [name for name in forgotten if not ledger.forget(lace.store, name)]
        accounts = ledger.all_usage(lace.store)
        stat = lace.stat()
    for name in unknown:
        say(visible_line(f"there is no account {name!r}; `lace quota {path}` lists them"), err=True)
    rows = [(name, used.records, used.bytes) for name, used in accounts.items()]
    rows.append(("all records of the lace", stat.records, stat.stored_bytes))
    if as_json:
        print_json_lines({"account": name, "records": records, "bytes": size} for name, records, size in rows)
    else:
        cells = [(name, f"{n:,}", human_size(size)) for name, n, size in rows]
        print_table(("account", "records", "bytes"), cells, right=frozenset(("records", "bytes")))
    return ExitCode.BAD if unknown else ExitCode.OK
