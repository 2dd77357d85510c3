"""`lace import PATH BUNDLE…`: store the records of bundles."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.intake.bundles import ImportReport, RejectedSink


@click.command("import")
@lace_argument
@click.argument("bundles", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--rejected",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write refused bytes to this file with the reason, one JSON object per line.",
)
@json_option
def command(path: Path, bundles: tuple[str, ...], rejected: Path | None, as_json: bool) -> ExitCode:
    """Store the records of bundles, refusing the bad ones.

    Every record is first hashed and its signature verified. Bad records are refused, counted and reported with their
    reasons, and the exit code is then 1; the good ones are stored. BUNDLE may be - for standard input.
    """
    from lace.workers.allocator import keep_freed_memory

    keep_freed_memory()
    with opened(path, write=True) as lace, _as_files(bundles) as files, _rejected_sink(rejected) as sink:
        total = sum(file.stat().st_size for file in files)
        with metered(f"importing into {path}", total, in_bytes=True) as meter:
            report = lace.import_(*files, rejected=sink, progress=lambda r: meter.advance(r.bytes - meter.done))
    _print_report(report, as_json)
    return ExitCode.BAD if report.rejected_total else ExitCode.OK


def _print_report(report: ImportReport, as_json: bool) -> None:
    by_rule = dict(sorted(report.rejected.items()))
    if as_json:
        counts = {"stored": report.stored, "present": report.present, "forgotten": report.forgotten}
        print_json({**counts, "rejected": by_rule, "bytes": report.bytes})
        return
    present = f", {report.present:,} already here" if report.present else ""
    say(f"stored {count_of(report.stored, 'record')}{present}")
    if report.forgotten:
        say(f"left out {count_of(report.forgotten, 'record')} that you forgot here (`lace forget --list`)", err=True)
    if by_rule:
        say(f"refused {count_of(report.rejected_total, 'record')}:", err=True)
        for rule, count in by_rule.items():
            say(f"  {count:>8,}  {rule}", err=True)


@contextmanager
def _as_files(bundles: tuple[str, ...]) -> Iterator[list[Path]]:
    """The bundles as files that can be read twice; standard input is first copied into one."""
    if "-" not in bundles:
        yield [Path(bundle) for bundle in bundles]
        return
    with tempfile.TemporaryDirectory(prefix="lace-import-") as folder:
        spool = Path(folder) / "standard-input"
        with spool.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [spool if bundle == "-" else Path(bundle) for bundle in bundles]


@contextmanager
def _rejected_sink(path: Path | None) -> Iterator[RejectedSink | None]:
    if path is None:
        yield None
        return
    from lace.intake.bundles import RejectedFile

    with path.open("w", encoding="utf-8") as file:
        yield RejectedFile(file)
