"""`lace put PATH … FILE|-`: store content from a file, a whole directory or standard input."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.checkout import told_states
from lace.cli.options.arguments import Pair, TaiTime, lace_argument, opened
from lace.cli.options.completing import keys
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, print_warning, say
from lace.cli.output.progress import metered
from lace.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace


@click.command("put")
@lace_argument
@click.argument("words", nargs=-1, required=True, metavar="[COORDINATE] FILE")
@click.option("-g", "--group", help="Group path: whose content it is.")
@click.option("-a", "--app", help="App path: which program it belongs to.")
@click.option(
    "-n",
    "--name",
    default="",
    help="Name path; by default the file's own name. For a directory: a prefix for each file.",
)
@click.option("--tai", type=TaiTime(), metavar="TIME", help="Its time: a date, ISO 8601 or TAI (default: now).")
@click.option(
    "--header", "headers", type=Pair(), metavar="NAME=VALUE", multiple=True, help="An extra header; repeatable."
)
@click.option("--link", "links", type=Pair(), metavar="TAG=HASH", multiple=True, help="A link to a record; repeatable.")
@click.option(
    "-s", "--sign", metavar="KEY", shell_complete=keys, help="Sign with this key of the ring, by name or verifier."
)
@click.option("--again", is_flag=True, help="Store the files of a directory that are unchanged, too.")
@click.option("-q", "--quiet", is_flag=True, help="For a directory: print no line for each file.")
@json_option
def command(
    path: Path,
    words: Sequence[str],
    group: str | None,
    app: str | None,
    name: str,
    again: bool,
    quiet: bool,
    as_json: bool,
    **heading: Any,
) -> ExitCode:
    """Store a file, a directory or standard input under a coordinate.

    COORDINATE is where, such as //club//notes//plan, or //club//notes to keep the file's own name; --group, --app and
    --name say the same. FILE is a file, - for standard input, or a directory: then every file below it that is new or
    changed is stored under its relative path. Prints the hash of each record. Content over 32 MiB is stored as chunks
    under a manifest; `lace get` joins them, and `lace checkout` writes a directory back as files.
    """
    *places, file = words
    click.Path(exists=True, allow_dash=True).convert(file, None, click.get_current_context())
    group, app, name = _place(places, group, app, name)
    heading |= {"group": group, "app": app}
    if file == "-" and not name:
        raise click.UsageError("standard input has no name of its own: give --name, or a whole coordinate")
    with opened(path, write=True) as lace:
        if file != "-" and Path(file).is_dir():
            return _put_directory(lace, Path(file), name, heading | {"again": again}, quiet, as_json)
        _put_one(lace, file, name or Path(file).name, heading, as_json)
        return ExitCode.OK


def _place(places: Sequence[str], group: str | None, app: str | None, name: str) -> tuple[str, str, str]:
    """The group, the app and the name (empty: the file's own) that a coordinate or the options say."""
    from lace.records.coordinate import is_place, parse_prefix

    if not places:
        if not group or not app:
            raise click.UsageError("say where it belongs: a coordinate such as //club//notes//x, or --group and --app")
        return group, app, name
    if len(places) > 1 or not is_place(places[0]):
        raise click.UsageError(f"{places[0]!r} is not a coordinate such as //club//notes//x")
    if group or app or name:
        raise click.UsageError(f"{places[0]} says where it belongs: leave out --group, --app and --name")
    try:
        prefix = parse_prefix(places[0])
    except InvalidInput as error:
        raise click.UsageError(f"{error}. `lace help coordinates` explains coordinates.") from error
    if not prefix.group or not prefix.app or prefix.version is not None:
        raise click.UsageError(f"{places[0]} does not name a group and an app, as in //club//notes or //club//notes//x")
    return prefix.group, prefix.app, prefix.name or ""


def _put_one(lace: Lace, file: str, name: str, heading: dict[str, Any], as_json: bool) -> None:
    size = None if file == "-" else os.path.getsize(file)
    content = sys.stdin.buffer if file == "-" else Path(file)
    with metered(f"storing {name}", size, in_bytes=True) as meter:
        found = lace.put(content, name=name, progress=meter.advance, **heading)
    coordinate = _coordinate(heading, name)
    if as_json:
        print_json({"hash": found, "coordinate": coordinate, "file": file})
    else:
        say(found)
    if (why := _why_not_tip(lace, coordinate, found)) is not None:
        print_warning(why)


def _why_not_tip(lace: Lace, coordinate: str, record: RecordHash) -> str | None:
    """Why the record that was stored is not the tip of its coordinate; None if it is."""
    try:
        if lace.resolve(coordinate) == record:
            return None
    except NotFound:
        pass
    state = next((one.state for one in lace.history(coordinate) if one.version.hash == record), None)
    if state == "ahead":
        return f"the record is dated too far ahead to be the tip of {coordinate}"
    if state == "barred":
        return f"the policy lets only others write at {coordinate}, so this record is not its tip"
    return f"{coordinate} has a newer record, so this one is not its tip"


def _put_directory(
    lace: Lace, folder: Path, name: str, heading: dict[str, Any], quiet: bool, as_json: bool
) -> ExitCode:
    states: Counter[str] = Counter()
    with metered(f"storing {folder}", in_bytes=True) as meter:
        for result in lace.put_tree(folder, name=name, progress=meter.advance, **heading):
            states[result.state] += 1
            if result.hash is None:
                print_warning(f"{result.path} was not stored: {result.refused}")
                continue
            if as_json:
                coordinate = _coordinate(heading, result.name)
                print_json(
                    {"hash": result.hash, "coordinate": coordinate, "file": str(result.path), "state": result.state}
                )
            elif not quiet and result.state != "unchanged":
                say(f"{result.hash}  {result.name}")
    say(told_states(states), err=True)
    return ExitCode.BAD if states["refused"] else ExitCode.OK


def _coordinate(heading: dict[str, Any], name: str) -> str:
    return f"//{heading['group']}//{heading['app']}//{name}"
