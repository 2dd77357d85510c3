"""`lace status PATH [REMOTE…]`: whether a lace and its remotes hold the same, and what is missing where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.ls import writer_words
from lace.cli.exchange.remote import exchange_once
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.options.policies import RuleChoices, expose_option, select_options
from lace.cli.options.remotes import with_remote
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import KEPT_OUT, incomplete_after
from lace.cli.output.output import BAD, GOOD, NOTE, OPEN, json_option, print_json, say, say_tree, say_verdict
from lace.cli.output.words import count_of, shown_time
from lace.errors import LaceError

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Terms
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.lace import Lace
    from lace.porcelain.listing import Row
    from lace.porcelain.status import Missing, RemoteStatus

MOST_LISTED = 10  # of each kind, for people; --json has all
_MOST_NAMED = 3  # remotes in one line


@click.command("status")
@lace_argument
@click.argument("names", nargs=-1, metavar="[REMOTE…]")
@click.option("--offline", is_flag=True, help="Dial nobody: tell what is known from last time.")
@click.option(
    "--patience",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="How long a peer may take for one phase (default: 30).",
)
@select_options
@expose_option
@json_option
def command(
    path: Path,
    names: Sequence[str],
    offline: bool,
    patience: float | None,
    sources: Sequence[str],
    coordinates: Sequence[str],
    hashes: Sequence[str],
    expose: Sequence[str],
    as_json: bool,
) -> ExitCode:
    """Show whether a lace and its remotes hold the same, and what is missing where.

    The first line is the verdict. Asks each remote, under the rules of an exchange, what either side would ask the
    other for; no records move. Shows what is missing each way and why, what was refused, content that lacks parts, and
    coordinates where several people have written. The exit code is 0 only if every remote answered and is equal: 1 if
    something is missing, 6 if one could not be asked, 8 if one shows nothing, 9 if something is refused or held back,
    10 if only content lacks parts. With --offline, 0 means equal after the last exchange, with nothing stored here
    since.
    """
    from lace.porcelain.remotes import find_remote, remotes_of
    from lace.porcelain.status import conflicts, known_status

    choices = RuleChoices.of(sources, coordinates, hashes, expose)
    with opened(path) as lace:
        rules = choices.rules(lace, path)
        terms = LinkChoices(patience=patience).patient(make_terms(rules.module, rules.exposures, is_open=False))
        chosen = [find_remote(lace.store, name) for name in names] or remotes_of(lace.store)
        found = []
        for remote in chosen:
            known = known_status(lace, remote)
            found.append(known if offline else _ask(lace, known, terms))
        incomplete, disputed = incomplete_after(lace, rules.module), conflicts(lace, lace.list("//", tips=True))
        code = _exit_code(found, incomplete)
        if as_json:
            _print_json(found, incomplete, disputed, code)
        else:
            if found:
                _say_verdict(found, code, offline)
            for one in found:
                _print_remote(one, offline, is_only=len(found) == 1)
            _print_local(lace, incomplete, disputed)
    if not chosen:
        say(f"{path} has no remotes to compare with; `lace remote add` adds one", err=True)
    return code


def _ask(lace: Lace, known: RemoteStatus, terms: Terms) -> RemoteStatus:
    """Ask a remote; one that cannot be asked must not keep the others from being asked."""
    try:
        place = known.remote.place
        return _ask_here(lace, known, place, terms) if isinstance(place, Path) else _dial(lace, known, place, terms)
    except (LaceError, OSError) as error:
        notes = getattr(error, "__notes__", [])
        return replace(known, was_asked=True, trouble="; ".join([str(error), *notes]))


def _dial(lace: Lace, known: RemoteStatus, address: Any, terms: Terms) -> RemoteStatus:
    from lace.porcelain.preview import preview_hosts, preview_terms
    from lace.porcelain.status import asked_status
    from lace.runtime.local.preview import Preview

    choices = LinkChoices(**with_remote(known.remote, {}))
    preview = Preview()
    hosts = preview_hosts(lace.store, preview)
    outcome, _, _ = exchange_once(lace.store, address, preview_terms(terms), choices, None, hosts)
    held = _held(lace, terms, outcome.result.peer_verifier, preview)
    return asked_status(known, terms.module, outcome, preview, held)


def _ask_here(lace: Lace, known: RemoteStatus, place: Path, terms: Terms) -> RemoteStatus:
    from lace.porcelain.preview import preview_locally_with_outcome
    from lace.porcelain.status import asked_status

    exposed = tuple(terms.exposures)
    with opened(place) as other:
        from lace.porcelain.exchange import local_parties

        parties = local_parties(lace, other, (terms.module, exposed), (terms.module, exposed), is_open=False)
        preview, outcome = preview_locally_with_outcome(*parties)
        return asked_status(known, terms.module, outcome, preview, _held(lace, terms, parties[1].here, preview))


def _held(lace: Lace, terms: Terms, peer: Any, preview: Any) -> Any:
    """How many records our own exposure holds back."""
    if preview.sendable or preview.asked_for:
        return None
    from lace.porcelain.visibility import held_back
    from lace.runtime.clock import SystemClock

    return held_back(lace.store, terms, peer, at=SystemClock().tai())


def _exit_code(found: Sequence[RemoteStatus], incomplete: Sequence[Incomplete]) -> ExitCode:
    if not found or any(one.missing_here or one.missing_there for one in found):
        return ExitCode.BAD
    unequal = [one for one in found if not one.is_equal]
    if any(one.trouble for one in unequal):
        return ExitCode.CONNECTION
    if any(one.held_back_here or one.held_back_there for one in unequal):
        return ExitCode.REFUSED
    if any(one.nothing_shown or one.not_shown or one.is_kept_out for one in unequal):
        return ExitCode.NOTHING
    if unequal:
        return ExitCode.BAD
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _print_json(
    found: Iterable[RemoteStatus], incomplete: Sequence[Incomplete], disputed: Sequence[Row], code: ExitCode
) -> None:
    for one in found:
        print_json(one.to_json())
    conflicting = [
        {
            "coordinate": row.coordinate,
            "tip": row.hash,
            "signer": row["Signed-By"] or None,
            "others": [{"hash": entry.hash, "signer": entry.signer, "tai": entry.tai} for entry in row.concurrent],
        }
        for row in disputed
    ]
    lacking = [one.to_json() for one in incomplete]
    print_json({"equal": code is ExitCode.OK, "incomplete": lacking, "conflicts": conflicting})


def _say_verdict(found: Sequence[RemoteStatus], code: ExitCode, offline: bool) -> None:
    """One line for all remotes: what is missing where, or that nothing is."""
    equal = [one for one in found if one.is_equal]
    also = ", but some content here lacks parts" if code is ExitCode.INCOMPLETE else ""
    if len(found) == 1:
        (one,) = found
        say_verdict(_mark(one, also), f"{one.remote.name}: {_verdict(one, offline)}{also}")
        return
    if len(equal) == len(found):
        then = " after the last exchange, and nothing was stored here since" if offline else ""
        say_verdict(NOTE if also else GOOD, f"all {len(found)} remotes are equal{then}{also}")
        return
    behind = [f"{one.remote.name} is {len(one.missing_there):,} behind" for one in found if one.missing_there]
    here = len({missing.hash for one in found for missing in one.missing_here})
    parts = [f"{count_of(here, 'record')} {'is' if here == 1 else 'are'} missing here"] if here else []
    parts += behind if len(behind) <= _MOST_NAMED else [f"{len(behind)} remotes are behind"]
    others = [one for one in found if not (one.is_equal or one.missing_here or one.missing_there)]
    parts += [f"{one.remote.name} {_verdict(one, offline)}" for one in others[:_MOST_NAMED]]
    if equal:
        parts.append(f"{len(equal)} of {count_of(len(found), 'remote')} equal")
    worst = BAD if BAD in (marks := [_mark(one, "") for one in found]) else OPEN if OPEN in marks else NOTE
    say_verdict(worst, "; ".join(parts))


def _mark(one: RemoteStatus, also: str) -> str:
    if one.is_equal:
        return NOTE if also else GOOD
    return OPEN if not one.was_asked or one.nothing_shown or one.is_kept_out else BAD


def _print_remote(one: RemoteStatus, offline: bool, *, is_only: bool) -> None:
    """What is known of one remote, as a tree; the verdict is its root if there is no other."""
    lines = list(_remote_lines(one))
    if not is_only:
        mark = _mark(one, "")
        say_tree(f"{mark} {one.remote.name}: {_verdict(one, offline)}", mark)
    for number, (depth, text) in enumerate(lines):
        is_last = not any(other == depth for other, _ in lines[number + 1 :])
        if depth == 0:
            say_tree(f"{'└' if is_last else '├'}─ {text}")
        else:
            more = any(other == 0 for other, _ in lines[number + 1 :])
            say_tree(f"{'│' if more else ' '}    {text}")


def _remote_lines(one: RemoteStatus) -> Iterator[tuple[int, str]]:
    """Lines of the tree, each with its depth."""
    if one.last is not None:
        reached = shown_time(one.last.fixed_point_at) + " UTC" if one.last.fixed_point_at else "never"
        yield 0, f"last fixed point: {reached}; last exchange: {shown_time(one.last.at)} UTC, {_last(one)}"
    if one.stored_since:
        yield 0, f"{count_of(one.stored_since, 'record')} stored here since"
    yield from _missing("missing here", one.missing_here)
    yield from _missing("missing there", one.missing_there)
    if one.not_shown:
        shown = "your exposure shows the peer none (`--expose selected` would)"
        yield 0, f"not sent: {count_of(one.not_shown, 'record')} that your rules select: {shown}"
    if one.has_other_rules:
        yield 0, "rules: the peer's differ from yours; what is compared is what both select"
    for what, counts in (("held back here", one.held_back_here), ("held back there", one.held_back_there)):
        if counts:
            yield 0, f"{what}: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
    yield from _refused("refused here, last time", one.refused_here)
    yield from _refused("refused there, last time", one.refused_there)


def _verdict(one: RemoteStatus, offline: bool) -> str:
    if one.trouble:
        return f"could not be asked: {one.trouble}"
    if one.is_equal:
        return "equal after the last exchange, and nothing was stored here since" if offline else "equal"
    if not one.was_asked:
        return "unknown: not asked" if one.last is None else "not known to be equal"
    if one.nothing_shown:
        return "unknown: neither side shows the other a record that both rules select"
    if one.is_kept_out:
        return f"unknown: {KEPT_OUT}"
    behind = [f"{len(missing):,} missing {where}"
              for where, missing in (("here", one.missing_here), ("there", one.missing_there)) if missing]  # fmt: skip
    return f"different: {', '.join(behind)}" if behind else "different"


def _last(one: RemoteStatus) -> str:
    last = one.last
    assert last is not None
    return f"{last.ending}: {last.detail}" if last.detail else last.ending


def _missing(what: str, missing: Sequence[Missing]) -> Iterator[tuple[int, str]]:
    return _listed(what, [f"{one.coordinate or one.hash}: {one.why}" for one in missing])


def _refused(what: str, refused: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    return _listed(what, [f"{record}: {reason}" for record, reason in refused.items()])


def _listed(what: str, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    if lines:
        yield 0, f"{what}: {count_of(len(lines), 'record')}"
        yield from ((1, line) for line in lines[:MOST_LISTED])
        if len(lines) > MOST_LISTED:
            yield 1, f"and {len(lines) - MOST_LISTED:,} more; --json has all"


def _print_local(lace: Lace, incomplete: Sequence[Incomplete], disputed: Sequence[Row]) -> None:
    if incomplete:
        say(f"incomplete here: {count_of(len(incomplete), 'content')}")
        for one in incomplete[:MOST_LISTED]:
            say(f"  {one}")
        _print_more(len(incomplete))
    if disputed:
        say(f"written by several people: {count_of(len(disputed), 'coordinate')} (`lace ls` shows all versions)")
        told = writer_words(lace)
        for row in disputed[:MOST_LISTED]:
            say(f"  {row.coordinate}: also by {', '.join(map(told, row.concurrent))}")
        _print_more(len(disputed))


def _print_more(count: int) -> None:
    if count > MOST_LISTED:
        say(f"    and {count - MOST_LISTED:,} more; --json has all")
