"""`lace view PATH`: exactly what a peer's rules can see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.options.arguments import TaiTime, lace_argument, opened
from lace.cli.options.links import ViewerType
from lace.cli.options.policies import RuleChoices, expose_option, select_options
from lace.cli.output.output import json_option, print_json, print_warning, say, say_data
from lace.cli.output.words import count_of


@click.command("view")
@lace_argument
@expose_option
@click.option(
    "--viewer",
    type=ViewerType(),
    metavar="KEY|V",
    required=True,
    help="The peer: a verifier, the name of a key, or a label such as Opq_A.",
)
@select_options
@click.option(
    "--at", "at", type=TaiTime(), metavar="TAI", help="The time that StartTAI and TickTAI give (default: now)."
)
@click.option("--hashes", "hashes_only", is_flag=True, help="Print only the hashes of the visible records.")
@json_option
def command(
    path: Path,
    expose: Sequence[str],
    viewer: str,
    sources: Sequence[str],
    coordinates: Sequence[str],
    hashes: Sequence[str],
    at: str | None,
    hashes_only: bool,
    as_json: bool,
) -> None:
    """Show exactly what a peer's rules could see of a lace.

    Prints every record fact in the query view of the viewer, one per line; a verifier counts as proven. Records that
    are not listed do not exist for that peer's rules, and by default they are not advertised or sent to it either.
    """
    from lace.notation.factline import format_fact
    from lace.notation.tai import TAI
    from lace.policy.origin import Viewer
    from lace.porcelain.visibility import visible_facts, visible_records
    from lace.runtime.clock import SystemClock

    chosen = RuleChoices.of(sources, coordinates, hashes, expose)
    moment = TAI(at) if at else SystemClock().tai()
    with opened(path) as lace:
        exposures = chosen.rules(lace, path).exposures
        snapshot = lace.store.snapshot()
        admitted = visible_records(snapshot, Viewer(viewer), exposures, at=moment)
        shown = 0
        for fact in visible_facts(snapshot, admitted):
            shown += fact.predicate.name == "Have"
            if hashes_only and fact.predicate.name != "Have":
                break  # Have comes first
            if as_json:
                print_json({"predicate": fact.predicate.name, "values": list(fact.values)})
            else:
                say_data(fact.values[0] if hashes_only else format_fact(fact))
        total = count_of(snapshot.record_count, "record")
    if not exposures:
        print_warning(f"nothing is exposed: the rules of {viewer} see none of {total}. --expose changes that.")
    else:
        say(f"{viewer} sees {shown:,} of {total}", err=True)
