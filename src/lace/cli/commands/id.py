"""`lace id FILE`: the identifier of a rule file."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lace.cli.options.rules import chosen_limits, limit_option, profile_named, profile_option, read_rules
from lace.cli.output.output import json_option, print_json, say_data


@click.command("id")
@click.argument("file")
@click.option("--rules", "show_rules", is_flag=True, help="Also print the identifier of every rule.")
@profile_option
@limit_option
@json_option
def command(file: str, show_rules: bool, profile: str, limit_words: Sequence[str], as_json: bool) -> None:
    """Print the identifier of a rule file.

    `R.…` names the canonical text, regardless of the file's spelling, order and comments; `U.…` names one rule. Only
    valid rules have identifiers. With --json each rule comes with its annotation.
    """
    from lace.datalog.language.annotations import canonicalize
    from lace.datalog.language.canonical import rule_id

    name, text = read_rules(file)
    limits = chosen_limits(text, limit_words, name)
    result = canonicalize(text, profile=profile_named(profile), limits=limits, name=name)
    lines = result.lacegram.text.split("\n") if result.lacegram.text else []
    if as_json:
        rules = [{"id": rule_id(line), "rule": line, **_note(result.sidecar.get(rule_id(line)))} for line in lines]
        print_json({"file": name, "id": result.lacegram.id, "rules": rules})
        return
    say_data(result.lacegram.id)
    if show_rules:
        for line in lines:
            say_data(f"{rule_id(line)}  {line}")


def _note(annotation: object) -> dict[str, object]:
    return {"annotation": annotation} if annotation else {}
