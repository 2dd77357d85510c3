"""The options that `lace interlace` and `lace follow` share: who exchanges with whom, and what each selects and shows.

Rule: read once, before anything is opened, so that a mistyped option costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from lace.cli.options.arguments import LacePath, lace_of, opened_for_rules
from lace.cli.options.links import LINK_OPTIONS, LinkChoices, link_options, make_terms, trace_option
from lace.cli.options.policies import RuleChoices, expose_option, select_options
from lace.cli.options.remotes import RemoteType, remote_name, with_remote
from lace.cli.options.side import side_argument
from lace.cli.output.failure import ExitCode
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Terms
    from lace.porcelain.lace import Lace


F = TypeVar("F", bound=Callable[..., Any])


class PeerType(RemoteType):
    """An address, the name of a remote, or the path of a lace on this machine; a name means the remote first."""

    name = "peer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        is_path = Path(text).is_file() or text.endswith(".lace") or ":memory:" in text
        if is_path and not _is_remote(text, lace_of(ctx)):
            return LacePath().convert(value, param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return super().shell_complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def _is_remote(name: str, path: Path | None) -> bool:
    if path is None:
        return False
    from lace.porcelain.remotes import is_remote_name, remotes_of

    if not is_remote_name(name):
        return False
    with opened_for_rules(path) as lace:
        return any(remote.name == name for remote in remotes_of(lace.store))


def require_lace(place: Path | str) -> Path:
    """Refuse an archive: in an exchange within one process both sides are laces."""
    if isinstance(place, str):
        raise click.UsageError(f"{place} is an archive: serve it with `lace serve` and name its address as the PEER")
    return place


def their_options(function: F) -> F:
    """`--their-select` and `--their-expose`: what the other lace brings, if it is on this machine."""
    for option in (
        click.option(
            "--their-expose",
            metavar="all|selected|none|FILE",
            multiple=True,
            help="With a lace as the peer: what it shows (default: as --expose).",
        ),
        click.option(
            "--their-select",
            metavar="WHAT",
            help="With a lace as the peer: what it selects: all, a PREFIX, a HASH or a FILE.",
        ),
    ):
        function = option(function)
    return function


class LocalChoices(NamedTuple):
    """The options of both laces; the other one's are as ours, unless given separately."""

    rules: RuleChoices
    their_select: str | None
    their_expose: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerChoices:
    """The options of one call that both commands share."""

    path: Path | str  # a lace, or an archive
    master: str | None
    address: Any  # an address, or the path of a lace on this machine
    remote: str | None  # the name under which this lace knows it
    child: Sequence[str]
    rules: RuleChoices
    expose: Sequence[str]
    their_select: str | None
    their_expose: Sequence[str]
    trace: Path | None
    links: dict[str, Any]

    def local(self) -> LocalChoices:
        """The options for two laces on this machine."""
        refuse_link_choices({**self.links, "trace": self.trace})
        return LocalChoices(self.rules, self.their_select, self.their_expose)

    def link(self) -> LinkChoices:
        """The options of a connection."""
        return LinkChoices(command=self.child, **self.links)

    def require_sense(self) -> None:
        """Refuse what could never work before anything is opened."""
        self.link().require_use_of_key([self.address])

    def terms(self, lace: Lace | None, *, is_open: bool) -> Terms:
        """What our side brings to an exchange over a connection, from a lace or an archive (None)."""
        rules = self.rules.rules(lace, self.path)
        return self.link().patient(make_terms(rules.module, rules.exposures, is_open=is_open))


def peer_command(function: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Add PATH, PEER and the shared options; the function gets them as `asked`, beside its own options."""

    @side_argument()
    @click.argument("address", metavar="PEER", type=PeerType())
    @click.argument("child", nargs=-1, metavar="[-- CHILD…]")
    @select_options
    @expose_option
    @their_options
    @link_options
    @trace_option
    @functools.wraps(function)
    def command(sources: Sequence[str], coordinates: Sequence[str], hashes: Sequence[str], **given: Any) -> ExitCode:
        _require_stdio(given["address"], given["child"])
        peer, links = given["address"], {name: given.pop(name) for name in LINK_OPTIONS}
        named = remote_name(peer)
        if named is not None:
            given["address"], links = peer.place, with_remote(peer, links)
        asked = PeerChoices(
            rules=RuleChoices.of(sources, coordinates, hashes, given["expose"]),
            remote=named,
            links=links,
            **{name: given.pop(name) for name in _GIVEN},
        )
        return function(asked, **given)

    return command


def _require_stdio(peer: object, child: Sequence[str]) -> None:
    """Refuse a word after PEER: it is most likely another peer, and its author must not think that it took part."""
    from lace.iltp.address import StdioAddress

    if child and not isinstance(peer, StdioAddress):
        raise click.UsageError(f"{child[0]!r} after {peer}: only the address stdio is followed by a command to start")


def refuse_link_choices(links: dict[str, Any]) -> None:
    """Refuse connection options: they mean nothing between two laces on one machine."""
    given = sorted(name for name, value in links.items() if value)
    if given:
        raise click.UsageError(f"--{given[0]} needs an address, and the peer is a lace on this machine")


_GIVEN = ("path", "master", "address", "child", "expose", "their_select", "their_expose", "trace")
