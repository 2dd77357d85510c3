"""`lace check FILE…`: every error of rule files."""

from __future__ import annotations

import click

from lace.cli.failure import ExitCode
from lace.cli.output import json_option, print_json, say
from lace.cli.rules import profile_named, profile_option, read_rules
from lace.errors import InvalidLacegram


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@profile_option
@json_option
def command(files: tuple[str, ...], profile: str, as_json: bool) -> ExitCode:
    """Check rule files and show every error.

    Syntax, safety, reserved names, strata and limits, each with its place and what to do. Exit code 1 if there is one.
    """
    worst = ExitCode.OK
    for file in files:
        found, rules = _check(file, profile)
        for error in found:
            _print(error, as_json)
        if found:
            worst = ExitCode.BAD
        elif not as_json:
            say(f"{file}: {rules} {'rule' if rules == 1 else 'rules'}, no errors")
    return worst


def _check(file: str, profile: str) -> tuple[list[InvalidLacegram], int]:
    from lace.datalog.annotations import read_annotated_all
    from lace.datalog.validate import check_all

    try:
        name, text = read_rules(file)
    except InvalidLacegram as error:
        return [error], 0
    source, errors = read_annotated_all(text, name=name)
    errors += check_all(source.program, profile_named(profile))
    return sorted(errors, key=lambda error: (error.line, error.column)), len(source.program.rules)


def _print(error: InvalidLacegram, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "place": error.place,
                "line": error.line,
                "column": error.column,
                "rule": error.rule,
                "message": error.message,
                "found": error.found,
                "advice": error.advice,
            }
        )
    else:
        say(f"{error}\n")
