"""`lace archive …`: an archive of records under one address, grown batch by batch, each change one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.pipeline import NamedPath, policies, policy_options, way_fields
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.spark import InputPlace, spark_options, spark_settings
from lace.cli.output.interrupts import leave_when_interrupted
from lace.cli.output.output import count_of, human_size, json_option, print_fields, print_json, print_table, say

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive
    from lace.spark.archive.versions import State, StepResult
    from lace.spark.source.places import Place

_URI = click.argument("uri")
_MASTER = spark_options("Spark master: local[*] (default), spark://…, or sc://… for Spark Connect.")
_AS_OF = click.option("--as-of", help="A version, or a time (2026-11-16T12:00, UTC): the archive as it was then.")


def _few_option(mib: int) -> Callable[[Any], Any]:
    said = "Up to this size new records need no Spark; 0: always Spark."
    return click.option("--few-mib", type=click.IntRange(min=0), default=mib, show_default=True, help=said)


_FEW = _few_option(64)


@click.group("archive", cls=SummaryGroup, short_help="Keep archives of any size: add, look up, evaluate, compact.")
def command() -> None:
    """Keep archives of any size: add, look up, evaluate, compact.

    URI is a folder or any address that Spark's Hadoop layer reaches (hdfs:, s3a:, viewfs:, …). Every change is one
    commit with a number: readers see a version whole or not at all, and after a crash the last one stands. `status`,
    `log` and a `run` with nothing new start no Spark.
    """


Tell = Callable[[str, str], None]


def session_starter(uri: str, master: str | None, progress: Tell, app_name: str) -> Callable[[], Any]:
    """What starts Spark when an archive has work for it."""
    config = spark_settings()

    def session() -> Any:
        from lace.spark.session.session import spark_session

        progress("spark", "starting")
        # Where executors may be lost, the rounds of a recursion are kept with the archive; `gc` clears what is left.
        folder = f"{uri if '://' in uri else Path(uri).absolute()}/data/checkpoints"
        kept = {"spark.checkpoint.dir": folder, "spark.cleaner.referenceTracking.cleanCheckpoints": "true"}
        started = spark_session(master, app_name=app_name, config=config, on_cluster=kept)
        leave_when_interrupted()
        return started

    return session


def open_archive(
    uri: str, master: str | None, progress: Tell | None = None, few_mib: int | None = None, *, is_served: bool = False
) -> Archive:
    """An archive that says what it does, on stderr unless told otherwise, and starts Spark when it has to.

    A master that is named means Spark for every step; for an archive that is served it says where its jobs run.
    """
    from lace.spark.archive.archive import Archive
    from lace.thresholds import ArchiveThresholds

    began = time.monotonic()

    def show(step: str, what: str) -> None:
        say(f"[{time.monotonic() - began:6.1f} s] {step:<28} {what}", err=True)

    progress = progress or show
    session = session_starter(uri, master, progress, "lace archive")
    thresholds = None if few_mib is None else ArchiveThresholds(in_process_bytes=few_mib << 20)
    wants_spark = master is not None and not is_served
    return Archive(uri, session, progress=progress, thresholds=thresholds, wants_spark=wants_spark)


@command.command("init")
@_URI
@_MASTER
def init(uri: str, master: str | None) -> None:
    """Make an empty archive."""
    archive = open_archive(uri, master)
    archive.init()
    say(archive.files.uri)


@command.command("add")
@_URI
@click.argument("paths", nargs=-1, required=True, type=InputPlace())
@click.option("--split-mib", default=64, show_default=True, help="Size of one task's share of a bundle.")
@policy_options
@_FEW
@_MASTER
@json_option
def add(
    uri: str,
    paths: Sequence[Place],
    split_mib: int,
    few_mib: int,
    master: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Add the records of bundles, stores and folders of them that are not here yet, as one batch.

    Every record is judged; what is none goes to the quarantine table with its bytes and the rule it broke. With peers
    the steps of `run` follow.
    """
    archive = open_archive(uri, master, few_mib=few_mib)
    peers = policies(options) if options["peers"] else []  # a rule file with a mistake is told before anything is read
    state = archive.add(paths, split_mib << 20)
    if peers:
        from lace.spark.archive.run import run as run_steps

        state = run_steps(archive, peers)
    _show(state, as_json)


@command.command("status")
@_URI
@_AS_OF
@_MASTER
@json_option
def status(uri: str, as_of: str | None, master: str | None, as_json: bool) -> None:
    """Show what an archive holds, table by table, and how far each step is."""
    _show(open_archive(uri, master).log.state(as_of), as_json)


def _show(state: State, as_json: bool) -> None:
    names = sorted({file.table for file in state.files})
    sizes = [(name, state.rows(name), state.table(name)) for name in names]
    if as_json:
        print_json({"version": state.version, "batches": len(state.batches), "oldest_version": state.oldest})
        if state.batches and state.batches[-1].way is not None:
            print_json({"step": "add", **way_fields(state.batches[-1].way), **state.batches[-1].counts})
        for name, rows, files in sizes:
            print_json({"table": name, "rows": rows, "files": len(files), "bytes": sum(file.bytes for file in files)})
        for key, result in state.results.items():
            behind = state.count(state.since(result))
            way = way_fields(result.way)
            gone = {"behind_removals": state.removals - result.removals}
            print_json(
                {"step": key, "behind_batches": behind, **gone, "seconds": result.seconds, **way, **result.counts}
            )
        return
    print_fields([("version", state.version), ("batches", len(state.batches))])
    shown = [
        (name, f"{rows:,}", f"{len(files):,}", human_size(sum(file.bytes for file in files)))
        for name, rows, files in sizes
    ]
    if shown:
        say("")
        print_table(["table", "rows", "files", "size"], shown, right=frozenset({"rows", "files", "size"}))
    steps = [
        (
            key,
            ", ".join(f"{k} {v:,}" for k, v in result.counts.items()),
            str(result.way or ""),
            _behind(state, result),
        )
        for key, result in state.results.items()
    ]
    if steps:
        say("")
        print_table(["step", "result", "where", "behind by"], steps)


def _behind(state: State, result: StepResult) -> str:
    """What a step has not seen: batches, and removals."""
    batches, removals = state.count(state.since(result)), state.removals - result.removals
    found = [count_of(batches, "batch", "batches")] if batches else []
    found += [count_of(removals, "removal")] if removals else []
    return ", ".join(found) or "-"


@command.command("log")
@_URI
@click.option("--limit", default=20, show_default=True, help="How many of the newest commits; 0 for all.")
@_MASTER
@json_option
def log(uri: str, limit: int, master: str | None, as_json: bool) -> None:
    """Show the commits, newest first."""
    history = open_archive(uri, master).log
    newest = history.versions()[::-1]
    commits = history.commits(newest[:limit] if limit else newest)
    if as_json:
        for commit in commits:
            ways = {"ways": {step: way_fields(way) for step, way in commit.ways.items()}} if commit.ways else {}
            what = {"version": commit.version, "time": commit.time, "operation": commit.operation}
            print_json({**what, **ways, **commit.counts})
        return
    rows = [
        (str(c.version), c.time, c.operation, ", ".join(f"{key} {value:,}" for key, value in c.counts.items()))
        for c in commits
    ]
    print_table(["version", "time", "operation", "what"], rows, right=frozenset({"version"}))


@command.command("run")
@_URI
@policy_options
@click.option("--listings/--no-listings", default=True, show_default=True, help="Write listings and roots too.")
@_FEW
@_MASTER
@json_option
def run(uri: str, listings: bool, few_mib: int, master: str | None, as_json: bool, **options: Any) -> None:
    """Bring what each peer may have, its listing and its roots up to the newest batch.

    Peers whose rules come to the same are evaluated once, and every step follows what came and went since its last run.
    """
    from lace.spark.archive.run import run as run_steps

    archive = open_archive(uri, master, few_mib=few_mib)
    _show(run_steps(archive, policies(options), listings=listings), as_json)


@command.command("publish")
@_URI
@policy_options
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), help="Folder for bundles; else URI/published.")
@_FEW
@_MASTER
@json_option
def publish(uri: str, to: Path | None, few_mib: int, master: str | None, as_json: bool, **options: Any) -> None:
    """Write bundles with what each peer may have and was not given yet.

    Brings what each peer may have up to date first. Bundles lie under FOLDER/PEER/VERSION; hand them over as they are,
    any lace imports them.
    """
    from lace.spark.archive.publish import publish as publish_new
    from lace.spark.archive.publish import require_names
    from lace.spark.archive.run import run as run_steps

    archive, peers = open_archive(uri, master, few_mib=few_mib), policies(options)
    require_names(peers)
    run_steps(archive, peers)
    _show(publish_new(archive, peers, to), as_json)


@command.command("compact")
@_URI
@click.option("--small-mib", default=32, show_default=True, help="Files below this size are written together.")
@_MASTER
@json_option
def compact(uri: str, small_mib: int, master: str | None, as_json: bool) -> None:
    """Write small files together, in the order that lookups prune by."""
    _show(open_archive(uri, master).compact(small_mib << 20), as_json)


@command.command("remove")
@_URI
@click.argument("hashes", nargs=-1, required=True)
@_MASTER
@json_option
def remove(uri: str, hashes: Sequence[str], master: str | None, as_json: bool) -> None:
    """Remove records by hash. Older versions still hold them until `gc --versions` removes their files."""
    from lace.notation.identifiers import RecordHash

    _show(open_archive(uri, master).remove([RecordHash.parse(text) for text in hashes]), as_json)


@command.command("gc")
@_URI
@click.option("--keep", type=click.Path(exists=True, path_type=Path), help="Rule file that derives Keep(P).")
@click.option("--versions", type=click.IntRange(min=1), help="Delete the files that only older versions need.")
@click.option("--apply", is_flag=True, help="Do it; without this what would go is only shown.")
@click.option("--all", "show_all", is_flag=True, help="Show every record that would go, not the oldest alone.")
@click.option("--why", multiple=True, metavar="HASH", help="Say what becomes of this record, and by which rules.")
@_MASTER
@json_option
def gc(
    uri: str,
    keep: Path | None,
    versions: int | None,
    apply: bool,
    show_all: bool,
    why: Sequence[str],
    master: str | None,
    as_json: bool,
) -> None:
    """Remove what no rule keeps, and the files of old versions. Shows what would go; --apply does it.

    Says how many records each rule keeps, and what would go by coordinate.
    """
    if keep is None and versions is None:
        raise click.UsageError("give --keep RULES, --versions N, or both")
    if keep is None and (show_all or why):
        raise click.UsageError("--all and --why go with --keep RULES")
    from lace.cli.output.retention import retain, vacuum
    from lace.notation.identifiers import RecordHash

    asked = [RecordHash.parse(text) for text in why]
    archive = open_archive(uri, master)
    if keep is not None:
        retain(archive, keep, apply, show_all, asked, as_json)
    if versions is not None:
        vacuum(archive, versions, apply, as_json)


@command.command("follow")
@_URI
@click.option("--inbox", required=True, type=InputPlace(is_folder=True), help="A folder, or an address.")
@click.option("--every", "every_seconds", default=1.0, show_default=True, help="Seconds between looks into the inbox.")
@click.option("--once", is_flag=True, help="Add what is there now, then stop.")
@click.option("--max-files", default=1000, show_default=True, help="Most files of one micro-batch.")
@click.option("--done", type=click.Path(file_okay=False, path_type=Path), help="Move bundles here once they are added.")
@policy_options
@_few_option(8)  # its session is there, and warm after the first batches
@_MASTER
@json_option
def follow(
    uri: str,
    inbox: Place,
    every_seconds: float,
    once: bool,
    max_files: int,
    done: Path | None,
    few_mib: int,
    master: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Add every bundle that is moved into a folder, exactly once, until interrupted.

    One commit a micro-batch; with peers the steps of `run` follow each of them. Move finished bundles into the inbox:
    a file is read as it is when it is first seen.
    """
    from lace.spark.archive.follow import MicroBatch
    from lace.spark.archive.follow import follow as follow_inbox
    from lace.spark.archive.run import run as run_steps

    archive, peers = open_archive(uri, master, few_mib=few_mib), policies(options)
    archive.log.state()  # that there is none is told before a stream begins

    def told(batch: MicroBatch) -> None:
        if as_json:
            print_json({name: getattr(batch, name) for name in batch.__slots__})
            return
        rate = batch.records / batch.seconds if batch.seconds else 0.0
        say(
            f"version {batch.version}: {count_of(batch.files, 'file')}, {count_of(batch.records, 'new record')}, "
            f"{batch.quarantined:,} in quarantine; {rate:,.{1 if rate < 10 else 0}f} a second, "
            f"lag {batch.lag_seconds:.1f} s"
        )

    after = (lambda _: run_steps(archive, peers)) if peers else (lambda _: None)
    seconds = None if once else every_seconds
    follow_inbox(archive, inbox, after=after, told=told, every_seconds=seconds, max_files=max_files, done=done)


@command.command("report")
@_URI
@click.option("--archive", "archives", multiple=True, type=NamedPath(), help="NAME=PATH to reconcile with.")
@click.option(
    "--since", metavar="VERSION|TIME", help="Say what changed since then (default: since the last report was written)."
)
@_MASTER
@json_option
def report(
    uri: str, archives: Sequence[tuple[str, Path]], since: str | None, master: str | None, as_json: bool
) -> None:
    """Write report.html and report.json at the archive's root: a page that needs nothing from elsewhere.

    It says what each peer may have and was given. With --archive (bundles, a store, another archive) it also says how
    many records stand here and not there, and there and not here, by partition.
    """
    from lace.spark.archive.report import write_report

    archive = open_archive(uri, master)
    found = write_report(archive, dict(archives), since)
    if as_json:
        print_json(found.as_json())
    else:
        say(found.verdict)
        say(f"{archive.files.uri}/report.html")
