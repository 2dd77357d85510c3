"""`lace explain PATH RULES GOAL`: why a fact holds, or why not, or how a program is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.arguments import opened
from lace.cli.output import human_size, json_option, print_json
from lace.cli.rules import read_rules, read_text

if TYPE_CHECKING:
    from lace.datalog.annotations import AnnotatedSource
    from lace.datalog.engine import Result
    from lace.datalog.explain import Known
    from lace.datalog.source import FactSource
    from lace.datalog.syntax import Atom
    from lace.datalog.validate import CheckedProgram


@click.command("explain")
@click.argument("arguments", nargs=-1, metavar="[PATH] RULES [GOAL]")
@click.option("--facts", "facts_file", metavar="FILE", help="Evaluate over the fact lines of a file instead of a lace.")
@click.option("--not", "absent", is_flag=True, help="Explain why no such fact holds.")
@click.option("--plan", is_flag=True, help="Show the query plan with rows and times after a run.")
@click.option("--dot", is_flag=True, help="Print the proof as a Graphviz graph.")
@json_option
def command(
    arguments: tuple[str, ...], facts_file: str | None, absent: bool, plan: bool, dot: bool, as_json: bool
) -> None:
    """Show why a fact holds, or why it does not.

    RULES is a rule file, or rules in place. GOAL is an atom such as "Selected('P…')"; a goal with variables stands for
    the first fact that matches it. Labels and reasons from `#:json` lines stand beside their rules.
    """
    path, rules, goal = _split(arguments, facts_file is not None, plan)
    source = _read(rules)
    with _facts(path, facts_file) as facts:
        checked = _checked(source, facts, raw=facts_file is not None)
        result = _evaluated(checked, facts)
        if goal is not None:
            _explain(source, checked, facts, result, goal, absent=absent, dot=dot, as_json=as_json)
    if plan:
        _print_plan(result)


def _split(arguments: tuple[str, ...], over_facts: bool, plan: bool) -> tuple[Path | None, str, str | None]:
    rest = list(arguments)
    path = None if over_facts else Path(rest.pop(0)) if rest else None
    if not (1 if plan else 2) <= len(rest) <= 2 or (path is None and not over_facts):
        form = "--facts FILE RULES" if over_facts else "PATH RULES"
        raise click.UsageError(f"give {form} and a goal such as \"Selected('P…')\"; only --plan needs no goal.")
    return path, rest[0], rest[1] if len(rest) == 2 else None


def _read(rules: str) -> AnnotatedSource:
    from lace.datalog.annotations import read_annotated

    name, text = read_rules(rules)
    return read_annotated(text, name=name)


@contextmanager
def _facts(path: Path | None, facts_file: str | None) -> Iterator[FactSource]:
    if path is not None:
        with opened(path) as lace:
            yield lace.store.snapshot()
        return
    from lace.datalog.parser import parse_facts
    from lace.datalog.source import MemorySource

    assert facts_file is not None
    yield MemorySource(parse_facts(read_text(facts_file), name=facts_file))


def _checked(source: AnnotatedSource, facts: FactSource, *, raw: bool) -> CheckedProgram:
    from lace.datalog.validate import LOCAL_PROFILE, RAW_PROFILE, check_program

    profile = RAW_PROFILE.with_base(facts.predicates()) if raw else LOCAL_PROFILE
    return check_program(source.program, profile)


def _evaluated(checked: CheckedProgram, facts: FactSource) -> Result:
    from lace.datalog.engine import evaluate

    return evaluate(checked, facts)


def _explain(
    source: AnnotatedSource,
    checked: CheckedProgram,
    facts: FactSource,
    result: Result,
    goal: str,
    *,
    absent: bool,
    dot: bool,
    as_json: bool,
) -> None:
    from lace.datalog.explain import Known
    from lace.datalog.parser import parse_atom

    known = Known(checked, facts, result.rows)
    atom = parse_atom(goal)
    if absent:
        _print_absence(source, known, atom, as_json)
    else:
        _print_proof(source, known, atom, dot, as_json)


def _print_absence(source: AnnotatedSource, known: Known, goal: Atom, as_json: bool) -> None:
    from lace.datalog.explain import why_not
    from lace.datalog.explain.data import absence_json
    from lace.datalog.explain.text import format_absence

    absence = why_not(known, goal)
    if as_json:
        print_json(absence_json(absence, source.sidecar))
    else:
        click.echo(format_absence(absence, source.sidecar), nl=False)


def _print_proof(source: AnnotatedSource, known: Known, goal: Atom, dot: bool, as_json: bool) -> None:
    from lace.datalog.explain import why
    from lace.datalog.explain.data import proof_dot, proof_json
    from lace.datalog.explain.text import format_proof
    from lace.datalog.formatting import format_atom
    from lace.datalog.syntax import Fact
    from lace.errors import NotFound

    row = next(known.matches(goal, {}), None)
    if row is None:
        missing = NotFound(f"{format_atom(goal)} does not hold")
        missing.add_note("`lace explain --not` says why")
        raise missing
    proof = why(known, Fact(goal.predicate, row))
    if as_json:
        print_json(proof_json(proof, source.sidecar))
    else:
        click.echo((proof_dot if dot else format_proof)(proof, source.sidecar), nl=False)


def _print_plan(result: Result) -> None:
    stats = result.stats
    for line in stats.lines():
        click.echo(line)
    for stratum, rounds in stats.rounds.items():
        click.echo(f"{stratum}: {rounds} {'round' if rounds == 1 else 'rounds'}")
    click.echo(
        f"loaded in {stats.load_seconds * 1000:.1f} ms, evaluated in {stats.seconds * 1000:.1f} ms, "
        f"{human_size(stats.memory_bytes)} held"
    )
