"""Peers on the command line: an address, or the name of a remote of the lace that the command is about.

Rule: a name is looked up once, before anything is dialled. What the command line says about the connection (`--key`,
`--trust`, `--pin`, `--ca`) replaces what the remote says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from lace.cli.options.arguments import lace_of, opened_for_rules
from lace.cli.options.links import AddressType, LinkChoices
from lace.errors import LaceError, NotFound, TransportError

if TYPE_CHECKING:
    from lace.iltp.address import Address
    from lace.porcelain.remotes import Remote


class RemoteType(AddressType):
    """An address to dial, or the name of a remote: `lace remote list` shows the names."""

    name = "remote"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from lace.porcelain.remotes import is_remote_name

        text = str(value)
        if not is_remote_name(text):
            return super().convert(value, param, ctx)
        try:
            return named_remote(text, ctx)
        except NotFound as error:
            about = "; ".join([str(error), *getattr(error, "__notes__", ())])
            self.fail(f"{about}. `lace help addresses` lists the forms of addresses.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from lace.cli.options.completing import remotes

        return remotes(ctx, param, incomplete)


def named_remote(name: str, ctx: click.Context | None) -> Remote:
    """The remote of a name, in the lace of the command; NotFound says what is near."""
    from lace.porcelain.remotes import find_remote

    path = lace_of(ctx)
    if path is None:
        raise NotFound(f"{name!r} is not an address, and there is no lace whose remote it could be")
    with opened_for_rules(path) as lace:
        return find_remote(lace.store, name)


def dialled(peer: Any, links: Mapping[str, Any]) -> tuple[Address, LinkChoices]:
    """The address of a peer and how to connect to it; of a remote, what the command line does not say otherwise."""
    from lace.porcelain.remotes import Remote

    if not isinstance(peer, Remote):
        return peer, LinkChoices(**links)
    place = peer.place
    if isinstance(place, Path):
        raise click.UsageError(f"{peer.name} is the lace {place} on this machine: `lace interlace` exchanges with it")
    return place, LinkChoices(**with_remote(peer, links))


def with_remote(remote: Remote, links: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a connection, completed by what a remote says; `patience` and the rest stay as they are."""
    own = {"key": remote.key, "trust": remote.trust, "pin": remote.pin, "ca": remote.ca}
    if links.get("pin") is not None or links.get("ca") is not None:  # the two say how to check one certificate
        own = {"key": remote.key, "trust": remote.trust}
    return {**links, **{name: value for name, value in own.items() if not links.get(name)}}


def remote_name(peer: Any) -> str | None:
    """The name of a remote; None for an address."""
    from lace.porcelain.remotes import Remote

    return peer.name if isinstance(peer, Remote) else None


def keep_outcome(store: Any, name: str | None, outcome: Any, incomplete: int = 0) -> None:
    """Remember how an exchange with a remote ended, for `lace status --offline`."""
    if name is None:
        return
    from lace.porcelain.remotes import note_exchange
    from lace.runtime.clock import SystemClock

    with _told(name):
        note_exchange(store, name, outcome, SystemClock().tai(), incomplete)


@contextmanager
def failure_kept(store: Any, name: str | None) -> Iterator[None]:
    """Remember a connection that could not be made."""
    try:
        yield
    except TransportError as error:
        if name is not None:
            from lace.porcelain.remotes import note_failure
            from lace.runtime.clock import SystemClock

            with _told(name):
                note_failure(store, name, str(error), SystemClock().tai())
        raise


@contextmanager
def _told(name: str) -> Iterator[None]:
    """A disk that is full must not spoil what an exchange reports."""
    try:
        yield
    except LaceError as error:
        from lace.cli.output.output import print_warning

        print_warning(f"how the exchange with {name} ended was not remembered: {error}")
