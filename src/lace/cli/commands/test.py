"""`lace test RULES CASES…`: test rules against the rows that they should give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lace.cli.options.rules import chosen_limits, limit_option, read_rules, read_text
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say, say_tree
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.datalog.explain.explanation import Explanation
    from lace.datalog.language.syntax import Fact
    from lace.porcelain.casefile import CaseOutcome


@click.command("test")
@click.argument("rules", metavar="RULES")
@click.argument("files", nargs=-1, required=True, metavar="CASES...")
@click.option("-k", "only", metavar="TEXT", default="", help="Run only cases whose name contains this text.")
@limit_option
@json_option
def command(rules: str, files: Sequence[str], only: str, limit_words: Sequence[str], as_json: bool) -> ExitCode:
    """Test rules against cases: given records, expected rows.

    CASES are TOML files of [[case]] tables: `name`, `given` (fact lines), [[case.record]] and [[case.advertised]]
    tables with an `id` and fields, `viewer` for exposure rules, `expect` (all rows of the predicates it names),
    `absent` (facts that must not hold) and `none` (predicates that must have no row). A missing row is shown with the
    reason why it does not hold, an unexpected one with its proof. The exit code is 1 if a case fails.
    """
    from lace.porcelain.casefile import read_cases, run_case

    name, text = read_rules(rules)
    limits = chosen_limits(text, limit_words, name)
    read = [case for file in files for case in read_cases(read_text(file), name=file, limits=limits)]
    cases = [case for case in read if only in case.name]
    failed = 0
    for case in cases:
        outcome = run_case(case, text, name=name, limits=limits)
        failed += not outcome.passed
        _print(outcome, as_json)
    if not as_json:
        say(f"{len(cases) - failed} passed, {failed} failed")
    if not cases:
        raise click.UsageError(f"no case has {only!r} in its name")
    return ExitCode.BAD if failed else ExitCode.OK


def _print(outcome: CaseOutcome, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "case": outcome.name,
                "passed": outcome.passed,
                "missing": [_pair_json(*pair) for pair in outcome.missing],
                "unwanted": [_pair_json(*pair) for pair in outcome.unwanted],
            }
        )
        return
    if outcome.passed:
        say(f"ok    {outcome.name}")
        return
    say_tree(f"FAIL  {outcome.name}", "FAIL", fg="red", bold=True)
    for heading, pairs in (("should hold", outcome.missing), ("should not hold", outcome.unwanted)):
        for fact, explanation in pairs:
            _print_difference(heading, fact, explanation)
    if outcome.untold:
        say(f"      and {count_of(outcome.untold, 'further difference')}")


def _print_difference(heading: str, fact: Fact, explanation: Explanation | None) -> None:
    from lace.datalog.language.formatting import format_fact

    say_tree(f"      {heading}: {format_fact(fact)}")
    text = f"no rule and no given fact mentions {fact.predicate}" if explanation is None else str(explanation)
    for line in text.rstrip("\n").split("\n"):
        say_tree(f"        {line}")


def _pair_json(fact: Fact, explanation: Explanation | None) -> dict[str, object]:
    from lace.datalog.language.formatting import format_fact

    return {"fact": format_fact(fact), "why": None if explanation is None else explanation.to_json()}
