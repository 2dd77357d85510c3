"""How the commands of an exchange take selectors and exposure on the command line.

Rule: `--select…` options add up to one operand, `--expose` options intersect; a rule file is read once and named in
its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.errors import StoreError
from lace.limits import EngineLimits

if TYPE_CHECKING:
    from lace.policy.exposure import Exposure
    from lace.policy.operand import Module

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULT_LIMITS = EngineLimits()
MAX_BESIDE = 1000  # files that are searched for the one that was probably meant
_SQLITE = b"SQLite format 3\0"


def expose_option(function: F) -> F:
    """`--expose`: what the peer's rules may see; given several times, only what all of them allow."""
    return click.option(
        "--expose",
        "expose",
        metavar="all|selected|none|FILE",
        multiple=True,
        help="What the peer's rules may see: every record, what your selector selects, nothing (the default; only "
        "content that still lacks parts here is visible), or what the AllowQueryRecord rules of FILE allow. Given "
        "several times, all must allow it.",
    )(function)


def select_options(function: F) -> F:
    """`--select`, `--select-coordinate`, `--select-hash`: which records this side wants to share; none means all."""
    for option in (
        click.option("--select-hash", "hashes", metavar="HASH", multiple=True, help="Select this record."),
        click.option(
            "--select-coordinate",
            "coordinates",
            metavar="PREFIX",
            multiple=True,
            help="Select the records under this prefix.",
        ),
        click.option("--select", "sources", metavar="FILE", multiple=True, help="Select by the rules of FILE."),
    ):
        function = option(function)
    return function


def chosen_selector(sources: Sequence[str], coordinates: Sequence[str], hashes: Sequence[str]) -> Module:
    """The operand of the `--select…` options: what any of them selects; without one, everything."""
    from lace.policy.select import select

    authored = [_selector_file(name, _DEFAULT_LIMITS) for name in sources]
    return select(coordinates=coordinates, hashes=hashes, modules=authored)


def named_selector(text: str, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that one word names: `all`, a coordinate or its beginning, a hash, or a rule file."""
    from lace.policy.select import select_word

    return select_word(text) or _selector_file(text, limits, ("all",))


def _selector_file(name: str, limits: EngineLimits, words: Sequence[str] = ()) -> Module:
    from lace.policy.operand import Module

    return Module.author(_rules_or_word(name, words), name=name, limits=limits)


def chosen_exposures(
    choices: Sequence[str], selector: Module | None, limits: EngineLimits = _DEFAULT_LIMITS
) -> tuple[Exposure, ...]:
    """The exposure modules of the `--expose` options."""
    from lace.policy.exposure import EXPOSURE_WORDS, Exposure, expose

    if "none" in choices and len(set(choices)) > 1:
        raise click.UsageError("--expose none cannot be combined with another --expose")
    if "selected" in choices and selector is None:
        raise click.UsageError("--expose selected needs a selector: give one with --select…")
    modules: list[Exposure] = []
    for choice in choices:
        if choice in EXPOSURE_WORDS:
            modules += expose(choice, selector=selector)
        else:
            modules.append(Exposure.author(_rules_or_word(choice, EXPOSURE_WORDS), name=choice, limits=limits))
    return tuple(modules)


def _rules_or_word(name: str, words: Sequence[str]) -> str:
    """The rules of a file; if it does not exist, the error suggests a word or a file that was probably meant."""
    path = Path(name)
    try:
        return read_rules(path)
    except FileNotFoundError:
        from lace.policy.lint import nearest

        error = StoreError(f"{name}: no such rule file")
        meant = nearest(name, [*words, *_files_beside(path)])
        error.add_note(meant or f"give {', '.join((*words, 'a rule file'))}")
        raise error from None


def _files_beside(path: Path) -> list[str]:
    with suppress(OSError):
        return [str(path.with_name(one.name)) for one in islice(path.parent.iterdir(), MAX_BESIDE)]
    return []


def read_rules(path: Path) -> str:
    """The text of a rule file."""
    from lace.notation.text import decode_text

    if path == Path():  # an empty word on the command line
        raise click.UsageError("the name of the rule file is empty")
    data = path.read_bytes()
    if data.startswith(_SQLITE):
        error = StoreError(f"{path} is a lace, not a rule file")
        error.add_note("name a rule file, a coordinate such as //u//ding//, a hash, or all")
        raise error
    from lace.cli.options.names import resolved

    return resolved(decode_text(data, str(path)), str(path))
