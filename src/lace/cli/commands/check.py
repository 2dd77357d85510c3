"""`lace check FILE…`: every error in rule files, and what can never match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from lace.cli.options.rules import PROFILES, chosen_limits, limit_option, profile_named, read_rules
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, GOOD, NOTE, json_option, print_json, say, say_verdict
from lace.cli.output.words import count_of
from lace.errors import InvalidLacegram

if TYPE_CHECKING:
    from lace.datalog.language.syntax import Predicate


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--profile",
    type=click.Choice(("auto", *PROFILES)),
    default="auto",
    show_default=True,
    help="What the rules are for: a store, a selector operand, an exposure module, or facts of any kind (raw). "
    "auto tells from what the rules define.",
)
@click.option(
    "--given",
    metavar="NAME/ARITY",
    multiple=True,
    help="Assume facts of this predicate are supplied, for example by --facts.",
)
@limit_option
@json_option
def command(
    files: tuple[str, ...], profile: str, given: Sequence[str], limit_words: tuple[str, ...], as_json: bool
) -> ExitCode:
    """Check rule files and show every error.

    The first line for each file is the verdict. Below it are errors of syntax, safety, reserved names, strata and
    limits; then likely mistakes, which are allowed but can never match: predicates, fields and values that no record
    has, a selector without an export, helpers that nothing uses. Each finding has its place and says what to do. The
    exit code is 1 if there is any.
    """
    supplied = [_predicate(text) for text in given]
    worst = ExitCode.OK
    for file in files:
        errors, found, rules = _check(file, profile, supplied, limit_words)
        if errors or found:
            worst = ExitCode.BAD
        if not as_json:
            mark = BAD if errors else NOTE if found else GOOD
            say_verdict(mark, _verdict(file, len(errors), len(found), rules))
        for kind, finding in [*(("error", one) for one in errors), *(("doubt", one) for one in found)]:
            _print(kind, finding, as_json)
    return worst


def _verdict(file: str, errors: int, found: int, rules: int) -> str:
    if not errors and not found:
        return f"{file}: {count_of(rules, 'rule')}, no errors"
    parts = [count_of(errors, "error")] if errors else []
    parts += [count_of(found, "likely mistake")] if found else []
    return f"{file}: {count_of(rules, 'rule')}, {' and '.join(parts)}"


def _predicate(text: str) -> Predicate:
    from lace.datalog.language.syntax import Predicate

    predicate = Predicate.parse(text)
    if predicate is None:
        raise click.UsageError(f"--given takes a name and a number of values, such as Edge/2, not {text!r}")
    return predicate


def _check(
    file: str, profile: str, given: Iterable[Predicate], limit_words: Sequence[str]
) -> tuple[Sequence[InvalidLacegram], Sequence[InvalidLacegram], int]:
    from lace.porcelain.diagnosis import check_rules

    try:
        name, text = read_rules(file)
    except InvalidLacegram as error:
        return [error], [], 0
    chosen = None if profile == "auto" else profile_named(profile)
    limits = chosen_limits(text, limit_words, name)
    checked = check_rules(text, profile=chosen, given=given, name=name, limits=limits)
    return checked.errors, checked.doubts, checked.rules


def _print(kind: str, error: InvalidLacegram, as_json: bool) -> None:
    if not as_json:
        say(f"\n{error}")
        return
    print_json(
        {
            "kind": kind,
            "place": error.place,
            "line": error.line,
            "column": error.column,
            "rule": error.rule,
            "message": error.message,
            "found": error.found,
            "advice": error.advice,
        }
    )
