"""What the rule commands share: reading rule files, choosing a profile and limits.

Rule: a rule file is annotated source; `-` is standard input, and text that contains `:-` is rules, not a file name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.errors import InvalidLacegram, InvalidText
from lace.notation.text import decode_text

if TYPE_CHECKING:
    from lace.datalog.language.validate import Profile
    from lace.limits import EngineLimits

F = TypeVar("F", bound=Callable[..., Any])
PROFILES = ("local", "selector", "exposure", "raw")


def profile_option(function: F) -> F:
    """`--profile`: which names are reserved."""
    text = "Which names are reserved: over a store, in a selector operand, in an exposure module, or none."
    return click.option("--profile", type=click.Choice(PROFILES), default="local", show_default=True, help=text)(
        function
    )


def limit_option(function: F) -> F:
    """`--limit`: engine limits for this command."""
    text = (
        "A limit of the engine, such as max_working_rows=500M or tuple-arity=14; repeatable. "
        "`lace help limits` lists them."
    )
    return click.option("--limit", "limit_words", metavar="NAME=VALUE", multiple=True, help=text)(function)


def chosen_limits(rules: str, words: Sequence[str], name: str = "") -> EngineLimits:
    """The limits of a rule file, overridden by those of the command line."""
    from lace.datalog.language.limiting import limits_with, parse_limit, stated_limits

    try:
        said = dict(map(parse_limit, words))
    except InvalidText as error:
        raise click.UsageError(f"--limit: {error}") from None
    return limits_with(stated_limits(rules, name=name), said)


def profile_named(name: str) -> Profile:
    """The profile with this name."""
    if name == "selector":
        from lace.policy.operand import SELECTOR_PROFILE

        return SELECTOR_PROFILE
    if name == "exposure":
        from lace.policy.exposure import EXPOSURE_PROFILE

        return EXPOSURE_PROFILE
    from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE

    return RAW_PROFILE if name == "raw" else LOCAL_PROFILE


def read_text(name: str) -> str:
    """The text of a file, or of standard input."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return decode_text(data.removeprefix(b"\xef\xbb\xbf"))
    except InvalidText as error:
        raise InvalidLacegram(error.message, rule=error.rule, place=name, found=error.found) from None


def read_rules(argument: str, lace: Path | str | None = None) -> tuple[str, str]:
    """Name and text of rules given as a file, on standard input, or directly; `@bob` is a name in the lace."""
    if not argument.strip():
        raise InvalidLacegram("there are no rules: the text is empty", rule="empty-rules", found=repr(argument))
    from lace.cli.options.names import resolved

    name, text = ("<rules>", argument) if ":-" in argument else (argument, read_text(argument))
    return name, resolved(text, name, lace)
