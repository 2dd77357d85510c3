"""How selectors and exposure are given on the command line, for every command of an exchange.

Rule: `--select…` choices join into one operand, `--expose` choices intersect; a rule file is read once and named in
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
MAX_BESIDE = 1000  # files that are looked at for one that may have been meant
_SQLITE = b"SQLite format 3\0"


def expose_option(function: F) -> F:
    """`--expose`: what the peer's rules may see; given several times, only what each allows."""
    return click.option(
        "--expose",
        "expose",
        metavar="all|selected|none|FILE",
        multiple=True,
        help="What the peer's rules may see: every record, what your selector selects, nothing (the default; only "
        "content that still lacks parts here is seen), or what the AllowQueryRecord rules of FILE allow. Several "
        "narrow each other.",
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
            help="Select what this begins.",
        ),
        click.option("--select", "sources", metavar="FILE", multiple=True, help="Select by the rules of FILE."),
    ):
        function = option(function)
    return function


def chosen_selector(sources: Sequence[str], coordinates: Sequence[str], hashes: Sequence[str]) -> Module:
    """The operand of `--select…` choices: what any of them selects, everything without one."""
    from lace.policy.select import select

    authored = [_selector_file(name, _DEFAULT_LIMITS) for name in sources]
    return select(coordinates=coordinates, hashes=hashes, modules=authored)


def named_selector(text: str, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """One operand by one word: `all`, a coordinate or its beginning, a hash, or a rule file."""
    from lace.policy.select import select_word

    return select_word(text) or _selector_file(text, limits, ("all",))


def _selector_file(name: str, limits: EngineLimits, words: Sequence[str] = ()) -> Module:
    from lace.policy.operand import Module

    return Module.author(_rules_or_word(name, words), name=name, limits=limits)


def chosen_exposures(
    choices: Sequence[str], selector: Module | None, limits: EngineLimits = _DEFAULT_LIMITS
) -> tuple[Exposure, ...]:
    """The exposure modules of `--expose` choices."""
    from lace.policy.exposure import EXPOSURE_WORDS, Exposure, expose

    if "none" in choices and len(set(choices)) > 1:
        raise click.UsageError("--expose none goes with no other --expose")
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
    """The rules of a file; if there is none, say which word or which file beside it was probably meant."""
    path = Path(name)
    try:
        return read_rules(path)
    except FileNotFoundError:
        from lace.policy.lint import nearest

        error = StoreError(f"{name}: there is no such file of rules")
        meant = nearest(name, [*words, *_files_beside(path)])
        error.add_note(meant or f"give {', '.join((*words, 'a file of rules'))}")
        raise error from None


def _files_beside(path: Path) -> list[str]:
    with suppress(OSError):
        return [str(path.with_name(one.name)) for one in islice(path.parent.iterdir(), MAX_BESIDE)]
    return []


def read_rules(path: Path) -> str:
    """The text of a rule file."""
    from lace.notation.text import decode_text

    if path == Path():  # what an empty text on the command line comes to
        raise click.UsageError("a rule file has a name; this one is empty")
    data = path.read_bytes()
    if data.startswith(_SQLITE):
        error = StoreError(f"{path}: this is a lace, not a file of rules")
        error.add_note("name a file of rules, a coordinate such as //u//ding//, a hash, or all")
        raise error
    return decode_text(data, str(path))
