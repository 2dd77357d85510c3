"""`lace pipeline …`: archives of records on Spark, step by step or all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.options.groups import SummaryGroup
from lace.cli.options.policies import RuleChoices, read_rules
from lace.cli.options.spark import InputPlace, spark_options
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.tables import print_table

if TYPE_CHECKING:
    from lace.spark.archive.versions import StepWay
    from lace.spark.jobs.evaluate import PeerPolicy
    from lace.spark.pipeline import Manifest

STEP_HELP = {
    "ingest": "Read and judge bundles and stores; keep each record once, the bad ones in quarantine.",
    "validate": "Says whether records were read: reading them is what validates them.",
    "facts": "Write the record facts as Parquet tables.",
    "evaluate": "Find what may go to each peer, and what may be asked of it.",
    "advertise": "Write each peer's listing, partition counts and Merkle roots.",
    "reconcile": "Find what this archive and others lack of each other.",
    "publish": "Write bundles and a store with exactly what each peer may have.",
    "report": "Write report.html and report.json.",
}


class NamedPath(click.ParamType[tuple[str, Path]]):
    """`NAME=PATH`."""

    name = "name=path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        if isinstance(value, tuple):
            return value
        label, equals, path = str(value).partition("=")
        if not (label and equals and path):
            self.fail(f"{value!r} is not NAME=PATH", param, ctx)
        if not Path(path).exists():
            self.fail(f"{path!r} does not exist", param, ctx)
        return label, Path(path)


_EXISTING = click.Path(exists=True, path_type=Path)
_POLICY_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--select", "selectors", multiple=True, type=_EXISTING, help="Our own rule file."),
    click.option("--select-coordinate", "coordinates", multiple=True, help="Our selection by prefix: //u//ding//."),
    click.option("--expose", default="selected", show_default=True, help="all, selected, none or a rule file."),
    click.option("--peer", "peers", multiple=True, type=NamedPath(), help="NAME=FILE: a peer and its rule file."),
]
_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Directory of the tables."),
    click.option(
        "--input",
        "-i",
        "inputs",
        multiple=True,
        type=InputPlace(),
        help="Bundle, store or folder, here or at s3://….",
    ),
    *_POLICY_OPTIONS,
    click.option("--listing", "listings", multiple=True, type=NamedPath(), help="NAME=PATH: what a peer advertises."),
    click.option("--archive", "archives", multiple=True, type=NamedPath(), help="NAME=PATH to reconcile with."),
    spark_options("Spark master: local[*] (default), spark://…, or sc://… for Spark Connect."),
    click.option("--split-mib", default=64, show_default=True, help="Size of one task's share of a bundle."),
]


def policy_options(function: Any) -> Any:
    """The options that say who the peers are and what they may have."""
    for option in reversed(_POLICY_OPTIONS):
        function = option(function)
    return function


def _options(function: Any) -> Any:
    for option in reversed(_OPTIONS):
        function = option(function)
    return json_option(function)


@click.group("pipeline", cls=SummaryGroup, short_help="Validate, index, evaluate and reconcile archives on Spark.")
def command() -> None:
    """Validate, index, evaluate and reconcile archives on Spark.

    `run` does every step; each step is a command of its own too. A step that was done for the same input is passed
    over, new input is added, and after a crash the same command goes on where it was. Nothing is lost: an invalid
    record goes to the quarantine table with its bytes and the rule it broke.
    """


@command.command("run")
@_options
def run_all(**options: Any) -> None:
    """Run every step."""
    from lace.spark.pipeline import STEPS

    _run(STEPS, options)


@command.command("init")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--declarative", is_flag=True, required=True, help="A project for Spark Declarative Pipelines.")
@click.option("--inbox", required=True, type=click.Path(path_type=Path), help="Folder that bundles are moved into.")
def init(folder: Path, declarative: bool, inbox: Path) -> None:
    """Write a project for `spark-pipelines run`: ingest, validate, facts, tips."""
    from lace.spark.declarative import write_project

    for path in write_project(folder, inbox):
        say(path)


def _add_step(step: str) -> None:
    @command.command(step, help=STEP_HELP[step])
    @_options
    def run_step(**options: Any) -> None:
        _run([step], options)


for _step in STEP_HELP:
    _add_step(_step)


def _run(steps: Sequence[str], options: dict[str, Any]) -> None:
    from lace.cli.commands.archive import session_starter
    from lace.spark.pipeline import Pipeline, PipelineSettings

    peers = policies(options)
    settings = PipelineSettings(
        output=options["output"],
        inputs=options["inputs"],
        peers=peers,
        archives=dict(options["archives"]),
        listings=dict(options["listings"]),
        split_bytes=options["split_mib"] << 20,
    )
    began = time.monotonic()

    def tell(step: str, what: str) -> None:
        say(f"[{time.monotonic() - began:6.1f} s] {step:<28} {what}", err=True)

    master = options["master"]
    session = session_starter(str(options["output"]), master, tell, "lace pipeline")
    manifest = Pipeline(session, settings, tell, wants_spark=master is not None).run(steps)
    _show(manifest, options["output"], options["as_json"])


def policies(options: dict[str, Any]) -> list[PeerPolicy]:
    """The plan with each peer, lowered for this side; a verifier as a peer's name is its identity."""
    from lace.policy.compile import agree
    from lace.policy.lower import lower
    from lace.policy.operand import Module
    from lace.policy.origin import Viewer
    from lace.spark.jobs.evaluate import PeerPolicy

    if not options["peers"]:
        return []
    sources = [str(path) for path in options["selectors"]]
    ours = RuleChoices.of(sources, options["coordinates"], (), [options["expose"]]).without_policy()
    found = []
    for name, path in options["peers"]:
        plan = agree(ours.module, Module.author(read_rules(path), name=str(path)))
        viewer = Viewer(name if name.startswith("V.") else plan.operands[1].origin)
        lowered = lower(plan, local_index=0, viewer=viewer, exposures=ours.exposures)
        found.append(PeerPolicy(name=name, policy=lowered))
    return found


def way_fields(way: StepWay | None) -> dict[str, object]:
    """Who carried a step out, as fields of a JSON line."""
    if way is None:
        return {}
    return {"where": way.where} if way.jobs is None else {"where": way.where, "jobs": way.jobs}


def _show(manifest: Manifest, output: Path, as_json: bool) -> None:
    if as_json:
        for step, done in manifest.steps.items():
            print_json({"step": step, "seconds": round(done.seconds, 3), **way_fields(done.way), **done.counts})
        return
    rows = [
        (
            step,
            ", ".join(f"{key} {value:,}" for key, value in done.counts.items()),
            str(done.way or ""),
            f"{done.seconds:.1f} s",
        )
        for step, done in manifest.steps.items()
    ]
    print_table(["step", "result", "where", "time"], rows, right=frozenset({"time"}))
    say(f"\ntables and manifest: {output}")
    if (output / "report.html").exists():
        say(f"report: {output / 'report.html'}")
