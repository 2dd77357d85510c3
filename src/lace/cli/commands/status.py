"""`lace status PATH [REMOTE…]`: whether a lace and its remotes hold the same, and what is missing where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.ls import shown_time, writer_words
from lace.cli.exchange.remote import exchange_once
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.options.policies import RuleChoices, expose_option, select_options
from lace.cli.options.remotes import with_remote
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import incomplete_after
from lace.cli.output.output import count_of, json_option, print_json, say, shown_hash
from lace.errors import LaceError

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Terms
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.lace import Lace
    from lace.porcelain.listing import Row
    from lace.porcelain.status import Missing, RemoteStatus

MOST_LISTED = 10  # of each kind, for people; --json has all


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

    Asks each remote, under the rules of an exchange, what either side would ask the other for; no records move. Shows
    what is missing each way and why, what was refused, content that lacks parts, and coordinates where several people
    have written. The exit code is 0 only if every remote answered and is equal: 1 if something is missing, 6 if one
    could not be asked, 9 if something is refused or held back, 10 if only content lacks parts. With --offline, 0 means
    equal after the last exchange, with nothing stored here since.
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
        incomplete, disputed = incomplete_after(lace, rules.module), conflicts(lace)
        code = _exit_code(found, incomplete)
        if as_json:
            _print_json(found, incomplete, disputed, code)
        else:
            for one in found:
                _print_remote(one, offline)
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
    if any(one.nothing_shown or one.not_shown for one in unequal):
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


def _print_remote(one: RemoteStatus, offline: bool) -> None:
    say(f"{one.remote.name}: {_verdict(one, offline)}")
    if one.last is not None:
        reached = shown_time(one.last.fixed_point_at) + " UTC" if one.last.fixed_point_at else "never"
        say(f"  last fixed point: {reached}; last exchange: {shown_time(one.last.at)} UTC, {_last(one)}")
    if one.stored_since:
        say(f"  {count_of(one.stored_since, 'record')} stored here since")
    _print_missing("missing here", one.missing_here)
    _print_missing("missing there", one.missing_there)
    if one.not_shown:
        shown = "your exposure shows the peer none (`--expose selected` would)"
        say(f"  not sent: {count_of(one.not_shown, 'record')} that your rules select: {shown}")
    if one.has_other_rules:
        say("  rules: the peer's differ from yours; what is compared is what both select")
    _print_counts("held back here", one.held_back_here)
    _print_counts("held back there", one.held_back_there)
    _print_refused("refused here, last time", one.refused_here)
    _print_refused("refused there, last time", one.refused_there)


def _verdict(one: RemoteStatus, offline: bool) -> str:
    if one.trouble:
        return f"could not be asked: {one.trouble}"
    if one.is_equal:
        return "equal after the last exchange, and nothing was stored here since" if offline else "equal"
    if not one.was_asked:
        return "unknown: not asked" if one.last is None else "not known to be equal"
    if one.nothing_shown:
        return "unknown: neither side shows the other a record that both rules select"
    return "different"


def _last(one: RemoteStatus) -> str:
    last = one.last
    assert last is not None
    return f"{last.ending}: {last.detail}" if last.detail else last.ending


def _print_missing(what: str, missing: Sequence[Missing]) -> None:
    if not missing:
        return
    say(f"  {what}: {count_of(len(missing), 'record')}")
    for one in missing[:MOST_LISTED]:
        say(f"    {one.coordinate or shown_hash(one.hash)}: {one.why}")
    _print_more(len(missing))


def _print_counts(what: str, counts: Mapping[str, int]) -> None:
    if counts:
        say(f"  {what}: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()))


def _print_refused(what: str, refused: Mapping[str, str]) -> None:
    if not refused:
        return
    say(f"  {what}: {count_of(len(refused), 'record')}")
    for record, reason in list(refused.items())[:MOST_LISTED]:
        say(f"    {shown_hash(record)}: {reason}")
    _print_more(len(refused))


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
