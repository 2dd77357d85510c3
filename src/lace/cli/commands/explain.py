"""`lace explain PATH RULES GOAL`: why a fact holds or does not, or how a program is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.cores import read_ahead, use_two_cores
from lace.cli.options.arguments import StoreOnly, lace_path, opened, opened_for_rules
from lace.cli.options.rules import chosen_limits, limit_option, read_rules, read_text
from lace.cli.output.output import json_option, print_json, say, say_tree
from lace.cli.output.words import human_size
from lace.errors import NotFound
from lace.notation.identifiers import RecordHash

if TYPE_CHECKING:
    from lace.datalog.engine import Result
    from lace.datalog.explain.explanation import Explanation
    from lace.datalog.language.syntax import Fact
    from lace.limits import EngineLimits
    from lace.porcelain.lace import Lace


@click.command("explain")
@click.argument("arguments", nargs=-1, metavar="[PATH] RULES [GOAL]")
@click.option("--facts", "facts_file", metavar="FILE", help="Evaluate over the fact lines of a file instead of a lace.")
@click.option("--not", "absent", is_flag=True, help="Explain why no such fact holds.")
@click.option("--plan", is_flag=True, help="Show the query plan with rows and times after a run.")
@click.option("--dot", is_flag=True, help="Print the proof as a Graphviz graph.")
@click.option("--columns", metavar="NAME,…", help="Show these fields beside each record: Name, App, any header.")
@limit_option
@json_option
def command(
    arguments: tuple[str, ...],
    facts_file: str | None,
    absent: bool,
    plan: bool,
    dot: bool,
    columns: str | None,
    limit_words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show why a fact holds, or why it does not.

    RULES is a rule file, or the rules themselves. GOAL is an atom such as "Selected('P…')"; a goal with variables means
    the first fact that matches it. Labels and reasons from `#:json` lines appear beside their rules.
    """
    path, rules, goal = _split(arguments, facts_file is not None, plan)
    if columns and (path is None or dot):
        raise click.UsageError("--columns reads the records of a lace, so it cannot be combined with --facts or --dot.")
    name, text = read_rules(rules, path)
    limits = chosen_limits(text, limit_words, name)
    with _asked(path, facts_file, limits) as asked:
        from lace.porcelain.explain import Explainer

        use_two_cores()
        explainer = Explainer(asked, text, name=name, limits=limits)
        if goal is not None:
            found = explainer.explain(goal)
            with _naming(path, columns) as named:
                _print(found, goal, named, absent=absent, dot=dot, as_json=as_json)
        if plan:  # while the store is open: what was counted is read from it
            _print_plan(explainer.result)


def _split(arguments: tuple[str, ...], over_facts: bool, plan: bool) -> tuple[Path | None, str, str | None]:
    rest = list(arguments)
    path = None if over_facts else lace_path(rest.pop(0)) if rest else None
    if not (1 if plan else 2) <= len(rest) <= 2 or (path is None and not over_facts):
        form = "--facts FILE RULES" if over_facts else "PATH RULES"
        raise click.UsageError(f"give {form} and a goal such as \"Selected('P…')\"; only --plan needs no goal.")
    return path, rest[0], rest[1] if len(rest) == 2 else None


@contextmanager
def _asked(path: Path | None, facts_file: str | None, limits: EngineLimits) -> Iterator[StoreOnly | list[Fact]]:
    if path is not None:
        with opened_for_rules(path) as lace, read_ahead(lace.store.snapshot):
            yield lace
        return
    from lace.datalog.language.parser import parse_facts

    assert facts_file is not None
    yield list(parse_facts(read_text(facts_file), name=facts_file, limits=limits))


@contextmanager
def _naming(path: Path | None, columns: str | None) -> Iterator[Naming | None]:
    """What names records by their fields, if that was asked for; only then is what reads records loaded."""
    if path is None or not columns:
        yield None
        return
    with opened(path) as lace:
        yield Naming(lace, columns.split(","))


def _print(
    explanation: Explanation, goal: str, named: Naming | None, *, absent: bool, dot: bool, as_json: bool
) -> None:
    if explanation.holds == absent:
        wrong = NotFound(f"{goal} {'holds' if absent else 'does not hold'}")
        wrong.add_note("without --not `lace explain` says why" if absent else "`lace explain --not` says why")
        raise wrong
    if as_json:
        told = explanation.to_json()
        print_json(told if named is None else {**told, "records": named.of(str(explanation))})
    elif dot:
        say(explanation.to_dot(), nl=False)
    else:
        say_tree((str(explanation) if named is None else named.beside(str(explanation))).rstrip("\n"))


def _print_plan(result: Result) -> None:
    stats = result.stats
    for line in stats.lines():
        say(line)
    for stratum, rounds in stats.rounds.items():
        say(f"{stratum}: {rounds} {'round' if rounds == 1 else 'rounds'}")
    say(
        f"loaded in {stats.load_seconds * 1000:.1f} ms, evaluated in {stats.seconds * 1000:.1f} ms, "
        f"{human_size(stats.memory_bytes)} held"
    )


_RECORD = re.compile(rf"\b{RecordHash.PATTERN}")


class Naming:
    """Some fields of the records that a text speaks of."""

    def __init__(self, lace: Lace, columns: Sequence[str]) -> None:
        self._lace = lace
        self._columns = [column.strip() for column in columns if column.strip()]
        self._known: dict[str, dict[str, tuple[str, ...]]] = {}

    def of(self, text: str) -> dict[str, dict[str, tuple[str, ...]]]:
        """The stored records of a text, each with its fields."""
        fields = {record: self._fields(record) for record in dict.fromkeys(_RECORD.findall(text))}
        return {record: found for record, found in fields.items() if found}

    def beside(self, text: str) -> str:
        """The text with the fields of its records at the ends of the lines that name them."""
        return "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        said = "; ".join(
            ", ".join(f"{name} {value}" for name, values in fields.items() for value in values)
            for fields in self.of(line).values()
        )
        body = line.rstrip("\n")
        return f"{body}   # {said}{line[len(body) :]}" if said else line

    def _fields(self, record: str) -> dict[str, tuple[str, ...]]:
        from lace.porcelain.listing import record_fields

        if record not in self._known:
            stored = RecordHash(record)
            have = self._lace.store.have(stored)
            found = record_fields(self._lace.load(stored), self._columns) if have else {}
            self._known[record] = {name: found[name] for name in self._columns if name in found}
        return self._known[record]
