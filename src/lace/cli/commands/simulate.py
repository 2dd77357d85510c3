"""`lace simulate FILE`: play a scene of the playground as a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, GOOD, json_option, print_json, say_tree, say_verdict
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.testing.simulator import Scene, Simulated

MAX_FILE = 1 << 20  # bytes


@click.command("simulate")
@click.argument("source", metavar="FILE")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Other trouble than the scene's own: what N chooses.")
@click.option(
    "--seeds", type=click.IntRange(1), metavar="COUNT", help="The trouble of COUNT seeds, from --seed or 0 on."
)
@json_option
def command(source: str, seed: int | None, seeds: int | None, as_json: bool) -> ExitCode:
    """Play laces, links and faults from a file as a test.

    FILE is a scene as the playground saves it (JSON), or a link to one; nothing is fetched. Its exchanges are played by
    real stores, rules and sessions in virtual time, then calm ones until nothing moves. Nothing may be lost, forged or
    shown to the wrong side at any step; in the end nothing that the rules let through may be missing, and what the
    scene expects must hold. The exit code is 1 if something does not.

    With --seeds the same scene is played under the trouble that each seed chooses: cuts, flipped bits, delays and
    links that are down. A seed that fails is printed, so that --seed repeats it.
    """
    from lace.testing.simulator import simulate, with_seed

    scene = _read(source)
    if seed is None and seeds is None:
        return _tell(scene, simulate(scene), None, as_json)
    first = seed or 0
    worst = ExitCode.OK
    for number in range(first, first + (seeds or 1)):
        worst = max(worst, _tell(scene, simulate(with_seed(scene, number)), number, as_json, is_short=bool(seeds)))
    return worst


def _read(source: str) -> Scene:
    """A scene out of a file, or out of a link to the playground."""
    import json

    from lace.errors import InvalidText
    from lace.testing.simulator import read_scene, scene_in_link

    if "://" in source and "#" in source:
        return scene_in_link(source)
    with click.open_file(source, encoding="utf-8") as file:
        text = file.read(MAX_FILE + 1)
    if len(text) > MAX_FILE:
        raise InvalidText(f"{source} has more than {MAX_FILE} characters", rule="scene", place=source)
    try:
        return read_scene(json.loads(text))
    except json.JSONDecodeError as why:
        place = f"{source}:{why.lineno}:{why.colno}"
        raise InvalidText(f"this is not JSON: {why.msg}", rule="scene", place=place, found=text[:40]) from why
    except RecursionError as why:
        raise InvalidText("this is not a scene: it is nested too deeply", rule="scene", place=source) from why


def _tell(scene: Scene, done: Simulated, seed: int | None, as_json: bool, *, is_short: bool = False) -> ExitCode:
    """What one simulation came to."""
    if as_json:
        broken = [{"rule": one.rule, "finding": one.sentence} for one in done.broken]
        print_json({"seed": seed, "passed": done.passed, "exchanges": len(done.runs),
                    "calm": done.calm, "moved": done.moved, "broken": broken, "holds": done.holds})  # fmt: skip
        return ExitCode.OK if done.passed else ExitCode.BAD
    played = f"{count_of(len(scene.laces), 'lace')}, {count_of(len(done.runs), 'exchange')} ({done.calm} calm)"
    moved = f"{count_of(done.moved, 'record')} moved"
    which = "" if seed is None else f"seed {seed} "
    if done.passed:
        say_verdict(GOOD, f"{which}passed: {played}, {moved}")
    else:
        say_verdict(BAD, f"{which}failed: {count_of(len(done.broken), 'finding')}, {played}, {moved}")
        for one in done.broken:
            say_tree(f"  {one.rule}: {one.sentence}")
    if is_short:
        return ExitCode.OK if done.passed else ExitCode.BAD
    for name, holds in done.holds.items():
        say_tree(f"{name} has {count_of(len(holds), 'record')}")
        for coordinate in holds:
            say_tree(f"  {coordinate}")
    return ExitCode.OK if done.passed else ExitCode.BAD
