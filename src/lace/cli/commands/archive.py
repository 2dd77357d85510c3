"""`lace archive …`: an archive of records under one address, grown batch by batch, each change one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.invite import SpanType
from lace.cli.commands.pipeline import NamedPath, policies, policy_options, way_fields
from lace.cli.options.arguments import Target
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.spark import InputPlace, OutputFolder, spark_options, spark_settings
from lace.cli.output.failure import ExitCode
from lace.cli.output.interrupts import leave_when_interrupted
from lace.cli.output.output import json_option, print_fields, print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import count_of, human_size

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive
    from lace.spark.archive.log import Log
    from lace.spark.archive.versions import State, StepResult
    from lace.spark.source.places import Place

_URI = click.argument("uri")
_MASTER = spark_options("Spark master: local[*] (default), spark://…, or sc://… for Spark Connect.")
_AS_OF = click.option("--as-of", help="A version, or a time (2026-11-16T12:00, UTC): the archive as it was then.")


def _few_option(mib: int) -> Callable[[Any], Any]:
    said = "Up to this size new records need no Spark; 0: always Spark."
    return click.option("--few-mib", type=click.IntRange(min=0), default=mib, show_default=True, help=said)


_FEW = _few_option(64)


class SharePercent(click.ParamType[float]):
    """`0.1%`, as a share of one."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            share = float(str(value).removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not str(value).endswith("%") or not 0 <= share <= 1:
            self.fail(f"{value!r} is not a percentage from 0% to 100%, such as 0.1%", param, ctx)
        return share


_MAX_QUARANTINED = click.option(
    "--max-quarantined",
    type=SharePercent(),
    metavar="0.1%",
    help="Add nothing and fail if more of the new records are not valid.",
)


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
        if ui := getattr(getattr(started, "sparkContext", None), "uiWebUrl", None):
            progress("spark", f"its UI is at {ui}")
        return started

    return session


def open_archive(
    uri: str,
    master: str | None,
    progress: Tell | None = None,
    few_mib: int | None = None,
    *,
    is_served: bool = False,
    max_quarantined: float | None = None,
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
    return Archive(
        uri,
        session,
        progress=progress,
        thresholds=thresholds,
        wants_spark=wants_spark,
        max_quarantined=max_quarantined,
    )


def open_log(uri: str, master: str | None) -> Log:
    """The log of an archive; on an object store it is read without Spark, unless a master is named."""
    from lace.spark.archive.filesystem import log_files
    from lace.spark.archive.log import Log

    files = None if master is not None else log_files(uri)
    log = open_archive(uri, master).log if files is None else Log(files)
    log.state()  # that there is no archive is said before a line is printed
    return log


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
@_MAX_QUARANTINED
@policy_options
@_FEW
@_MASTER
@json_option
def add(
    uri: str,
    paths: Sequence[Place],
    split_mib: int,
    max_quarantined: float | None,
    few_mib: int,
    master: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Add the records of bundles, stores and folders of them that are not here yet, as one batch.

    Every record is judged; what is none goes to the quarantine table with its bytes and the rule it broke. With peers
    the steps of `run` follow.
    """
    archive = open_archive(uri, master, few_mib=few_mib, max_quarantined=max_quarantined)
    peers = policies(options) if options["peers"] else []  # a rule file with a mistake is told before anything is read
    state = archive.add(paths, split_mib << 20)
    if peers:
        from lace.spark.archive.run import run as run_steps

        state = run_steps(archive, peers)
    _show(state, as_json)


@command.command("status")
@_URI
@_AS_OF
@click.option("--prometheus", is_flag=True, help="Print gauges as Prometheus reads them.")
@_MASTER
@json_option
def status(uri: str, as_of: str | None, prometheus: bool, master: str | None, as_json: bool) -> None:
    """Show what an archive holds, table by table, and how far each step is."""
    log = open_log(uri, master)
    state = log.state(as_of)
    if prometheus:
        from lace.spark.archive.metrics import prometheus_text

        say(prometheus_text(log.files.uri, state).rstrip("\n"))
        return
    _show(state, as_json)


def _show(state: State, as_json: bool) -> None:
    from lace.spark.archive.versions import step_name

    names = sorted({file.table for file in state.files})
    sizes = [(name, state.rows(name), state.table(name)) for name in names]
    if as_json:
        print_json({"version": state.version, "batches": len(state.batches), "oldest_version": state.oldest})
        if state.batches and state.batches[-1].way is not None:
            print_json({"step": "add", **way_fields(state.batches[-1].way), **state.batches[-1].counts})
        for name, rows, files in sizes:
            print_json({"table": name, "rows": rows, "files": len(files), "bytes": sum(file.bytes for file in files)})
        for key, result in state.results.items():
            behind = {"behind_batches": state.count(state.since(result))}
            behind |= {"behind_removals": state.removals - result.removals}
            named = {"step": step_name(key, result), "key": key}
            print_json({**named, **behind, "seconds": result.seconds, **way_fields(result.way), **result.counts})
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
            step_name(key, result),
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
    history = open_log(uri, master)
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


@command.command("lineage")
@_URI
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="VERSION", help="Only commits after this one.")
@_MASTER
def lineage(uri: str, since: int, master: str | None) -> None:
    """Print an OpenLineage event for each commit, oldest first, one JSON object a line.

    Each says which bundles or tables a commit read, and how many rows, bytes and files it wrote to which table. The
    same commit has the same run id each time, so sending an event twice does no harm.
    """
    from lace import __version__
    from lace.spark.archive.lineage import run_event

    history = open_log(uri, master)
    for version in history.versions():
        if version > since:
            for commit in history.commits([version]):
                print_json(run_event(history.files.uri, commit, f"urn:lace-protocol:{__version__}"))


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
@click.option("--to", type=OutputFolder(), help="Folder or address for bundles; else URI/published.")
@_FEW
@_MASTER
@json_option
def publish(uri: str, to: Place | None, few_mib: int, master: str | None, as_json: bool, **options: Any) -> None:
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


@command.command("forget")
@_URI
@click.argument("targets", type=Target(), metavar="[COORDINATE|HASH]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Print the hashes that never come in again.")
@click.option("--allow", is_flag=True, help="Let these hashes come in again; others may still have them.")
@_FEW
@_MASTER
@json_option
def forget(
    uri: str, targets: tuple[str, ...], listed: bool, allow: bool, few_mib: int, master: str | None, as_json: bool
) -> None:
    """Remove records for good: they never come in again.

    A coordinate means all its versions; a hash need not be here. Neither bundles nor peers bring them back, and peers
    are not asked for them. The bytes leave the files: every older version goes with them, and the next `run` works out
    from nothing what peers may have. Bundles that were published and other copies keep what they hold.
    """
    if listed == bool(targets):
        raise click.UsageError("name what to forget, or give --list alone")
    archive = open_archive(uri, master, few_mib=few_mib)
    if listed:
        for record in sorted(archive.forgotten()):
            print_json({"hash": record}) if as_json else say(record)
    elif allow:
        allowed = archive.take_again(*targets)
        print_json({"allowed": allowed}) if as_json else say(f"{count_of(allowed, 'record')} may come in again")
    else:
        found = archive.forget(*targets)
        if as_json:
            gone = {"removed": found.removed, "parts": found.parts, "files": found.files}
            print_json({"forgotten": list(found.records), **gone})
            return
        parts = f" and {count_of(found.parts, 'part')} that nothing else needs" if found.parts else ""
        say(
            f"forgot {count_of(len(found.records), 'record')}{parts}; removed {found.removed:,} from {uri}, "
            f"with {count_of(found.files, 'file')} of older versions"
        )


@command.command("find")
@_URI
@click.argument("targets", nargs=-1, metavar="[COORDINATE|HASH]...")
@click.option("--since", metavar="TIME", help="Records dated then or later (2026-11-16T12:00, UTC).")
@click.option("--until", metavar="TIME", help="Records dated then or earlier.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Show at most this many.")
@_AS_OF
@_MASTER
@json_option
def find(
    uri: str,
    targets: Sequence[str],
    since: str | None,
    until: str | None,
    limit: int,
    as_of: str | None,
    master: str | None,
    as_json: bool,
) -> ExitCode:
    """Find records by coordinate, time and hash, the newest first.

    A coordinate is //group, //group//app or //group//app//name. Only files that may hold the answer are opened. The
    exit code is 1 if nothing is found.
    """
    from lace.notation.identifiers import RecordHash
    from lace.records.coordinate import is_place, parse_prefix
    from lace.spark.archive.archive import ArchiveLookup
    from lace.spark.archive.executors import Steps
    from lace.spark.archive.find import COLUMNS, rows

    places = [parse_prefix(target) for target in targets if is_place(target)]
    hashes = tuple(RecordHash.parse(target) for target in targets if not is_place(target))
    if len(places) > 1 or (places and hashes) or (hashes and (since or until)):
        raise click.UsageError("one coordinate, with times if you like; or hashes")
    if places and (places[0].under or places[0].version):
        raise click.UsageError("a coordinate is //group, //group//app or //group//app//name")
    where = {part: getattr(places[0], part) for part in ("group", "app", "name")} if places else {}
    archive = open_archive(uri, master)
    state = archive.log.state(as_of)
    question = ArchiveLookup(hashes=hashes, since=since, until=until, **where)
    found = rows(archive, state, question, limit, Steps(archive, state).step("find"))
    if as_json:
        for row in found:
            print_json(row)
    elif found:
        print_table(COLUMNS, [[str(row[name] if row[name] is not None else "") for name in COLUMNS] for row in found])
    if len(found) == limit:
        say(f"there may be more: --limit {limit}", err=True)
    if not found:
        say("no record is found", err=True)
    return ExitCode.OK if found else ExitCode.BAD


@command.command("gc")
@_URI
@click.option("--keep", type=click.Path(exists=True, path_type=Path), help="Rule file that derives Keep(P).")
@click.option("--versions", type=click.IntRange(min=1), help="Delete the files that only older versions need.")
@click.option(
    "--older-than", type=SpanType(), metavar="30d", help="Delete the files that only versions before then need."
)
@click.option("--apply", is_flag=True, help="Do it; without this what would go is only shown.")
@click.option("--all", "show_all", is_flag=True, help="Show every record that would go, not the oldest alone.")
@click.option("--why", multiple=True, metavar="HASH", help="Say what becomes of this record, and by which rules.")
@_MASTER
@json_option
def gc(
    uri: str,
    keep: Path | None,
    versions: int | None,
    older_than: int | None,
    apply: bool,
    show_all: bool,
    why: Sequence[str],
    master: str | None,
    as_json: bool,
) -> None:
    """Remove what no rule keeps, and the files of old versions. Shows what would go; --apply does it.

    Says how many records each rule keeps, and what would go by coordinate. With --versions and --older-than a version
    stays that either of them keeps. The log goes with the versions, all but the last day of it.
    """
    if keep is None and versions is None and older_than is None:
        raise click.UsageError("give --keep RULES, --versions N, --older-than AGE, or several")
    if keep is None and (show_all or why):
        raise click.UsageError("--all and --why go with --keep RULES")
    from lace.cli.output.retention import retain, vacuum
    from lace.notation.identifiers import RecordHash

    asked = [RecordHash.parse(text) for text in why]
    archive = open_archive(uri, master)
    if keep is not None:
        retain(archive, keep, apply, show_all, asked, as_json)
    if older_than is not None:
        versions = max(versions or 1, archive.log.versions_since(datetime.now(UTC) - timedelta(seconds=older_than)))
    if versions is not None:
        vacuum(archive, versions, apply, as_json)


@command.command("follow")
@_URI
@click.option("--inbox", required=True, type=InputPlace(is_folder=True), help="A folder, or an address.")
@click.option("--every", "every_seconds", default=1.0, show_default=True, help="Seconds between looks into the inbox.")
@click.option("--once", is_flag=True, help="Add what is there now, then stop.")
@click.option("--max-files", default=1000, show_default=True, help="Most files of one micro-batch.")
@click.option("--done", type=click.Path(file_okay=False, path_type=Path), help="Move bundles here once they are added.")
@_MAX_QUARANTINED
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
    max_quarantined: float | None,
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

    archive = open_archive(uri, master, few_mib=few_mib, max_quarantined=max_quarantined)
    peers = policies(options)
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
