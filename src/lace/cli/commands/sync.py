"""`lace sync DIR [PEER]`: a folder that follows a lace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.key import user_ring
from lace.cli.options.arguments import LACE_OF_FOLDER
from lace.cli.options.completing import keys
from lace.cli.options.links import LINK_OPTIONS, LinkChoices, link_options
from lace.cli.options.peerchoices import PeerType
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, print_warning, say
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.folder.engine import Folder, RoundReport, Trouble
    from lace.folder.setup import FolderSettings
    from lace.porcelain.lace import Lace

LOOK_AGAIN_S = 60.0
_WORDS: dict[str, str] = {"take": "stored", "retract": "retracted", "write": "written", "remove": "removed"}


def _note_lace(ctx: click.Context, _: click.Parameter, directory: Path) -> Path:
    """So that a PEER may be the name of a remote of the lace that the folder follows."""
    from lace.folder.setup import read_settings

    settings = read_settings(directory)
    if settings is not None:
        ctx.meta[LACE_OF_FOLDER] = settings.lace_path(directory)
    return directory


def _note_named_lace(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """The same for a folder that follows no lace yet."""
    if path is not None:
        ctx.meta.setdefault(LACE_OF_FOLDER, Path(path))
    return path


@click.command("sync")
@click.argument(
    "directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), callback=_note_lace, is_eager=True
)
@click.argument("address", metavar="[PEER]", required=False, type=PeerType())
@click.option(
    "--lace", "lace_path", metavar="PATH", is_eager=True, callback=_note_named_lace,
    help="The lace to follow (default: one in DIR/.lace).",
)  # fmt: skip
@click.option("--at", metavar="PLACE", help="Where in the lace: //group//app or //group//app//name.")
@click.option(
    "-s",
    "--sign",
    metavar="KEY",
    shell_complete=keys,
    help="Sign versions with this key of the ring, by name or verifier.",
)
@click.option("--once", is_flag=True, help="Bring both up to date and end; otherwise keep them so until stopped.")
@click.option("--on-demand", is_flag=True, help="Only show the files, and fetch one when it is opened; needs --lace.")
@click.option("--yes", is_flag=True, help="Go on where the last run stopped with a question.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what needs a person.")
@link_options
@json_option
def command(
    directory: Path,
    address: Any,
    lace_path: str | None,
    at: str | None,
    sign: str | None,
    once: bool,
    on_demand: bool,
    yes: bool,
    quiet: bool,
    as_json: bool,
    **links: Any,
) -> ExitCode:
    """Keep a folder and a lace the same, and both the same as a peer's.

    What you change in DIR is stored as versions, and what comes from others is written. The first time, --at says where
    the files are in the lace; DIR remembers that in DIR/.lace. PEER is an address, a remote, or another lace on this
    machine. If the lace has a policy, the policy says what is exchanged; else it is what is under that place. If two
    people change one file, both versions are kept: the older one appears beside it, under a name with
    the word conflict; remove it to settle the conflict. Patterns in DIR/.laceignore say what to leave alone. Nothing is
    ever removed that the lace does not hold. With --on-demand DIR takes no space and cannot be written to: see
    `lace mount`.
    """
    if on_demand:
        _show(directory, address, lace_path, at, links, quiet=quiet, is_other=once or yes or as_json or bool(sign))
        return ExitCode.OK
    from lace.folder.setup import opened_folder
    from lace.porcelain.lace import open_lace

    settings = _settings(directory, lace_path, at, sign)
    path = settings.lace_path(directory)
    with (
        open_lace(path, create=not path.exists(), keys=user_ring()) as lace,
        opened_folder(directory, settings, lace) as folder,
    ):
        teller = Teller(directory, quiet=quiet, as_json=as_json)
        if not (quiet or as_json or folder.disk.keeps_executable):
            say(f"{directory} cannot keep which files may be executed; the lace does", err=True)
        exchange = _exchange(lace, settings, address, links)
        if once:
            ended = exchange()
            report = folder.rounds(go_on=yes)
            if report.stopped is None and any(report.done[do] for do in report.done if do in ("take", "retract")):
                ended = exchange()
                report = _joined(report, folder.rounds(go_on=yes))
            teller.tell(report)
            teller.tell_sum(report)
            return teller.exit_code(report) or ended
        return _follow(folder, lace, directory, settings, address, links, teller, go_on=yes)


def _show(
    directory: Path,
    address: Any,
    lace_path: str | None,
    at: str | None,
    links: dict[str, Any],
    *,
    quiet: bool,
    is_other: bool,
) -> None:
    """Show the files of a lace that lies elsewhere, for what is mounted on a folder hides what is in it."""
    from lace.cli.commands.mount import command as mount
    from lace.cli.options.arguments import lace_path as checked
    from lace.folder.setup import read_settings
    from lace.porcelain.lace import open_lace

    if is_other:
        raise click.UsageError("--on-demand goes with --lace, --at, --quiet and the options of the connection only")
    if lace_path is None:
        raise click.UsageError("--on-demand needs a lace outside DIR: name it with --lace")
    if read_settings(directory) is not None:
        raise click.UsageError(
            f"{directory} has files of its own, which would be hidden: show the lace in another folder"
        )
    path = checked(lace_path)
    directory.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        open_lace(path, create=True, keys=user_ring()).close()
    click.get_current_context().invoke(
        mount, path=path, directory=directory, address=address, at=at, quiet=quiet, **links
    )


def _settings(directory: Path, lace_path: str | None, at: str | None, sign: str | None) -> FolderSettings:
    """What the folder knows of itself, or is told now."""
    from dataclasses import replace

    from lace.cli.options.arguments import lace_path as checked
    from lace.folder.setup import LACE, FolderSettings, parse_place, read_settings, write_settings

    known = read_settings(directory)
    if known is None:
        if at is None:
            raise click.UsageError(f"{directory} does not follow a lace yet: say where its files are with --at")
        where = LACE if lace_path is None else str(checked(lace_path).resolve())
        known = FolderSettings(lace=where, place=parse_place(at), sign=sign)
        write_settings(directory, known)
        return known
    if at is not None and parse_place(at) != known.place:
        raise click.UsageError(f"{directory} follows {known.place}; remove {directory}/.lace to start over elsewhere")
    if lace_path is not None and checked(lace_path).resolve() != known.lace_path(directory).resolve():
        raise click.UsageError(f"{directory} follows the lace {known.lace}; remove {directory}/.lace to start over")
    if sign is not None and sign != known.sign:
        known = replace(known, sign=sign)
        write_settings(directory, known)
    return known


def _joined(first: RoundReport, second: RoundReport) -> RoundReport:
    second.done.update(first.done)
    second.steps[:0] = first.steps
    return second


class Teller:
    """Prints what rounds did: what needs a person always, the rest unless it is to be quiet.

    What no folder can keep is told once, not in every run: nobody can do anything about it here.
    """

    def __init__(self, directory: Path, *, quiet: bool, as_json: bool) -> None:
        from lace.folder.setup import told_before

        self._directory = directory
        self._known = told_before(directory)
        self._quiet = quiet
        self._as_json = as_json
        self._told: tuple[object, ...] = ()

    def tell(self, report: RoundReport) -> None:
        """Print one report; what was told before and is still so is not told again."""
        for step in report.steps:
            if step.do not in _WORDS:
                continue
            if self._as_json:
                print_json({"event": "step", "do": _WORDS[step.do], "name": step.name})
            elif not self._quiet:
                say(f"{_WORDS[step.do]:<9} {step.name}")
        open_matters = (report.stopped, tuple(report.troubles), tuple(sorted(report.contested)))
        if open_matters != self._told or self._as_json:
            self._told = open_matters
            self._tell_matters(report)
            self._note_lasting(report)
        sys.stdout.flush()

    def _tell_matters(self, report: RoundReport) -> None:
        if self._as_json:
            counted = {_WORDS[do]: count for do, count in report.done.items() if do in _WORDS}
            troubles = [{"name": one.name, "why": one.why, "passing": one.is_passing} for one in report.troubles]
            stopped = report.stopped and {"question": report.stopped.question, "text": report.stopped.text}
            print_json({"event": "round", **counted, "conflicts": report.contested, "troubles": troubles,
                        "stopped": stopped})  # fmt: skip
            return
        if report.stopped is not None:
            print_warning(f"{report.stopped.text} Nothing was done; --yes goes on.")
        for trouble in self._needing_people(report):
            print_warning(f"{trouble.name or 'the folder'}: {trouble.why}")
        for name, beside in sorted(report.contested.items()):
            versions = count_of(len(beside) + 1, "version")
            print_warning(f"{name}: {versions} in conflict; remove what you do not need: {', '.join(sorted(beside))}")

    def _needing_people(self, report: RoundReport) -> list[Trouble]:
        """Troubles but those that last and were told by an earlier run."""
        return [one for one in report.troubles if not one.is_lasting or one.name not in self._known]

    def _note_lasting(self, report: RoundReport) -> None:
        from lace.folder.setup import note_told, told_before

        lasting = {one.name for one in report.troubles if one.is_lasting}
        if report.stopped is None and lasting != told_before(self._directory):
            note_told(self._directory, lasting)

    def tell_sum(self, report: RoundReport) -> None:
        """Print how much a run did."""
        counted = {_WORDS[do]: count for do, count in report.done.items() if do in _WORDS and count}
        if not (self._as_json or self._quiet or report.stopped):
            parts = ", ".join(f"{count:,} {word}" for word, count in counted.items())
            files = count_of(sum(counted.values()), "file")
            say(f"{files}: {parts}" if parts else "nothing to do", err=True)

    def exit_code(self, report: RoundReport) -> ExitCode:
        """Whether something needs a person."""
        is_open = report.stopped or self._needing_people(report) or report.contested
        return ExitCode.BAD if is_open else ExitCode.OK


def _exchange(lace: Lace, settings: FolderSettings, peer: Any, links: dict[str, Any]) -> Callable[[], ExitCode]:
    """One bounded exchange by the rules of the folder, and how it ended; nothing without a peer."""
    if peer is None:
        return lambda: ExitCode.OK
    where = _where(peer)

    def locally(other_path: Path) -> ExitCode:
        from lace.cli.exchange.local import make_parties
        from lace.cli.options.peerchoices import LocalChoices
        from lace.cli.options.policies import RuleChoices
        from lace.porcelain.lace import open_lace
        from lace.runtime.local.local import exchange

        with open_lace(other_path, keys=user_ring()) as other:
            (ours, shown), (theirs, shown_to_us) = _rules(lace, settings), _rules(other, settings)
            rules = RuleChoices.of((), (ours,) if ours else (), (), (shown,) if shown else ())
            choices = LocalChoices(rules, theirs, (shown_to_us,) if shown_to_us else ())
            results = exchange(*make_parties(lace, other, choices))
        return ExitCode.OK if all(result.fixed_point for result in results) else ExitCode.BAD

    def remotely() -> ExitCode:
        from lace.cli.exchange.remote import exchange_once
        from lace.cli.output.outcome import exit_code_of, print_outcome
        from lace.porcelain.network import terms_of

        choices = _choices(peer, links)
        terms = choices.patient(terms_of(lace, *_rules(lace, settings), is_open=False))
        outcome, seconds, moved = exchange_once(lace.store, where, terms, choices)
        code = exit_code_of(outcome)
        if code in (ExitCode.OK, ExitCode.NOTHING):
            return ExitCode.OK
        print_outcome(outcome, seconds, *moved, as_json=False)
        return code

    return partial(locally, where) if isinstance(where, Path) else remotely


def _rules(lace: Lace, settings: FolderSettings) -> tuple[str | None, str | None]:
    """What to select and to show: what the policy of the lace says, else what is under the folder's place."""
    if lace.policy() is not None:
        return None, None
    place = settings.place
    return f"//{place.group}//{place.app}//" + (f"{place.name}/" if place.name else ""), "selected"


def _where(peer: Any) -> Any:
    return getattr(peer, "place", peer)


def _choices(peer: Any, links: dict[str, Any]) -> LinkChoices:
    from lace.cli.options.remotes import remote_name, with_remote

    given = {name: links[name] for name in LINK_OPTIONS}
    return LinkChoices(**(with_remote(peer, given) if remote_name(peer) is not None else given))


@contextmanager
def _kept_open(lace: Lace, settings: FolderSettings, peer: Any, links: dict[str, Any]) -> Iterator[None]:
    """An open exchange with a peer elsewhere, in a thread of its own."""
    from lace.porcelain.network import serve
    from lace.transports.tls import ClientTls

    choices = _choices(peer, links)
    key = user_ring().load(choices.key) if choices.key else None
    tls = ClientTls(pin=choices.pin, ca_file=choices.ca)
    select, expose = _rules(lace, settings)
    with serve(
        lace, follow=[str(_where(peer))], select=select, expose=expose, key=key, trusted=tuple(choices.trust), tls=tls
    ):
        yield


def _follow(
    folder: Folder, lace: Lace, directory: Path, settings: FolderSettings, peer: Any, links: dict[str, Any],
    teller: Teller, *, go_on: bool,
) -> ExitCode:  # fmt: skip
    """Rounds whenever there is news, until SIGTERM or Ctrl-C."""
    from lace.folder.watching import watched

    where = _where(peer)
    is_local = isinstance(where, Path)
    exchange = _exchange(lace, settings, peer, links) if is_local else lambda: ExitCode.OK
    kept = nullcontext() if peer is None or is_local else _kept_open(lace, settings, peer, links)
    with kept, watched(directory, lace) as news:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: news.stop())
        is_told = False
        while True:
            exchange()
            report = folder.rounds(go_on=go_on, expects_news=news.is_told)
            exchange()
            teller.tell(report)
            if report.stopped is not None:
                return ExitCode.BAD
            if news.trouble and not is_told:
                is_told = True
                print_warning(f"{directory} cannot be watched ({news.trouble}); it is looked at every few seconds")
            is_passing = any(one.is_passing for one in report.troubles)
            if not news.wait(1.0 if is_passing or is_local else LOOK_AGAIN_S):
                return ExitCode.OK
