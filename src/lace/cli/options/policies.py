"""How the commands of an exchange take selectors and exposure, on the command line and from the policy of a lace.

Rule: `--select…` options add up to one operand, `--expose` options intersect; a rule file is read once, named in its
errors, and its likely mistakes are told. What no option says, the policy of the lace says, and an option that overrides
it is told. Only a lace without a policy selects everything where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.output.output import print_warning, say
from lace.errors import StoreError
from lace.limits import EngineLimits
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Rules
    from lace.policy.exposure import Exposure
    from lace.policy.operand import Module
    from lace.porcelain.lace import Lace

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULT_LIMITS = EngineLimits()
MAX_BESIDE = 1000  # files that are searched for the one that was probably meant


def expose_option(function: F) -> F:
    """`--expose`: what the peer's rules may see; given several times, only what all of them allow."""
    return click.option(
        "--expose",
        "expose",
        metavar="all|selected|none|FILE",
        multiple=True,
        help="What the peer's rules may see: every record, what your selector selects, nothing (the default of a lace "
        "without a policy; only content that still lacks parts here is visible), or what the AllowQueryRecord rules of "
        "FILE allow. Given several times, all must allow it.",
    )(function)


def select_options(function: F) -> F:
    """`--select…`: which records this side wants to share; none means what the lace's policy says, else all."""
    for option in (
        click.option("--select-hash", "hashes", metavar="HASH", multiple=True, help="Select this record."),
        click.option(
            "--select-coordinate",
            "coordinates",
            metavar="PREFIX",
            multiple=True,
            help="Select the records under this prefix.",
        ),
        click.option(
            "--select",
            "sources",
            metavar="all|PREFIX|HASH|FILE",
            multiple=True,
            help="Select everything, what is under a prefix such as //club, a record, or by the rules of FILE; "
            "repeatable.",
        ),
    ):
        function = option(function)
    return function


def chosen_selector(sources: Sequence[str], coordinates: Sequence[str], hashes: Sequence[str]) -> Module | None:
    """The operand of the `--select…` options: what any of them selects; None without one."""
    from lace.policy.select import select

    if not sources and not coordinates and not hashes:
        return None
    named = [named_selector(name, _DEFAULT_LIMITS) for name in sources]
    return select(coordinates=coordinates, hashes=hashes, modules=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChoices:
    """What the options say of our rules, read once; what they leave out, the policy of the lace says."""

    module: Module | None = None  # None: no `--select…`
    expose: Sequence[str | Exposure] = ()  # words, and exposures that were read from files; empty: no `--expose`
    limits: EngineLimits = _DEFAULT_LIMITS

    @classmethod
    def of(
        cls, sources: Sequence[str], coordinates: Sequence[str], hashes: Sequence[str], expose: Sequence[str]
    ) -> RuleChoices:
        """The choices of one command line; wrong ones raise now, before anything is opened."""
        return cls(module=chosen_selector(sources, coordinates, hashes), expose=read_exposures(expose))

    def without_policy(self) -> Rules:
        """The rules over a lace that carries no policy: everything is selected and nothing shown, unless said."""
        from lace.interlace.setup.terms import Rules
        from lace.policy.select import select_all

        module = self.module or select_all()
        return Rules(module, exposures_under(self.expose, module))

    def rules(self, lace: Lace | None, place: Path | str = "", *, is_told: bool = True) -> Rules:
        """The rules over a lace (None: an archive); an option that overrides its policy is told on stderr."""
        from lace.interlace.setup.terms import Rules

        policy = lace.policy() if lace is not None else None
        if policy is None:
            return self.without_policy()
        overridden = [name for name, given in (("--select", self.module), ("--expose", self.expose)) if given]
        if is_told and overridden:
            say(f"{' and '.join(overridden)}: not by the policy of {place}, for this once", err=True)
        if is_told and not overridden and policy.is_waiting:
            group = policy.in_force.root.group
            say(f"the policy of //{group} has not come yet: only records about its people are exchanged", err=True)
        module = self.module or policy.module
        return Rules(module, exposures_under(self.expose, module) if self.expose else policy.exposures)

    @property
    def follows_policy(self) -> bool:
        """Whether a newer policy of the lace changes anything."""
        return self.module is None or not self.expose


def named_selector(text: str, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that one word names: `all`, a coordinate or its beginning, a hash, or a rule file."""
    from lace.policy.select import select_word

    return select_word(text) or _selector_file(text, limits, ("all",))


def _selector_file(name: str, limits: EngineLimits, words: Sequence[str] = ()) -> Module:
    from lace.policy.operand import Module

    text = _rules_or_word(name, words)
    module = Module.author(text, name=name, limits=limits)
    tell_mistakes(text, name, limits)
    return module


def tell_mistakes(text: str, name: str, limits: EngineLimits = _DEFAULT_LIMITS) -> None:
    """Tell the likely mistakes in rules that are about to be used: a typo never runs without a word."""
    from lace.datalog.language.annotations import read_annotated
    from lace.policy.lint import doubts, profile_of

    program = read_annotated(text, name=name, limits=limits).program
    for doubt in doubts(program, profile_of(program)):
        print_warning(str(doubt))


def chosen_exposures(
    choices: Sequence[str], selector: Module | None, limits: EngineLimits = _DEFAULT_LIMITS
) -> tuple[Exposure, ...]:
    """The exposure modules of the `--expose` options."""
    return exposures_under(read_exposures(choices, limits), selector)


def read_exposures(choices: Sequence[str], limits: EngineLimits = _DEFAULT_LIMITS) -> tuple[str | Exposure, ...]:
    """The `--expose` options with their files read."""
    from lace.policy.exposure import EXPOSURE_WORDS, Exposure

    if "none" in choices and len(set(choices)) > 1:
        raise click.UsageError("--expose none cannot be combined with another --expose")
    found: list[str | Exposure] = []
    for choice in choices:
        if choice in EXPOSURE_WORDS:
            found.append(choice)
            continue
        text = _rules_or_word(choice, EXPOSURE_WORDS)
        found.append(Exposure.author(text, name=choice, limits=limits))
        tell_mistakes(text, choice, limits)
    return tuple(found)


def exposures_under(choices: Sequence[str | Exposure], selector: Module | None) -> tuple[Exposure, ...]:
    """The exposure modules of words and exposures; `selected` is what the selector selects."""
    from lace.policy.exposure import expose

    if "selected" in choices and selector is None:
        raise click.UsageError("--expose selected needs a selector: give one with --select…")
    return tuple(
        one
        for choice in choices
        for one in (expose(choice, selector=selector) if isinstance(choice, str) else (choice,))
    )


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


def is_lace(path: Path) -> bool:
    """Whether a file is a lace, by its first bytes."""
    from lace.store.columns.file.openers import is_store_file  # only here: a command may start without a store

    return is_store_file(path)


def read_rules(path: Path) -> str:
    """The text of a rule file."""
    from lace.notation.text import decode_text

    if path == Path():  # an empty word on the command line
        raise click.UsageError("the name of the rule file is empty")
    if path.is_file() and is_lace(path):  # what is piped in can be read once
        error = StoreError(f"{path} is a lace, not a rule file")
        error.add_note("name a rule file, a coordinate such as //u//ding//, a hash, or all")
        raise error
    from lace.cli.options.names import resolved

    return resolved(decode_text(path.read_bytes(), str(path)), str(path))
