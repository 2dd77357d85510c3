"""The options about connections that the commands of an exchange share, and the node they describe.

Rule: these options are parsed here and nowhere else; a wrong one is a usage error before anything is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lace.cli.commands.key import user_ring
from lace.cli.options.arguments import lace_of
from lace.cli.options.completing import keys
from lace.errors import InvalidInput, KeyUnavailable
from lace.limits import HORIZON_S
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.iltp.address import Address, WebSocketAddress
    from lace.interlace.host import Host
    from lace.interlace.setup.terms import Terms
    from lace.notation.identifiers import Verifier
    from lace.policy.exposure import Exposure
    from lace.policy.operand import Module
    from lace.records.keys import SigningKey
    from lace.runtime.host.quotas import QuotaGate
    from lace.runtime.node.node import Hooks, Node, NodeLimits
    from lace.store.base import RecordStore
    from lace.transports.dial import TransportOptions

F = TypeVar("F", bound=Callable[..., Any])


class AddressType(click.ParamType[Any]):
    """A Lace address: `tcp:host:port`, `unix:/path`, `ws:host`, `wss:host` or `stdio`."""

    name = "address"

    def __init__(self, *, listening: bool = False) -> None:
        self._listening = listening

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        from lace.iltp.address import parse_address

        try:
            return parse_address(str(value), listening=self._listening)
        except InvalidInput as error:
            self.fail(f"{error}. `lace help addresses` lists the forms.", param, ctx)


class VerifierType(click.ParamType[Any]):
    """`V.….H3`, the name of a key of the ring, or a name that is known in the lace of the command."""

    name = "verifier"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Verifier:
        from lace.cli.options.names import verifier_named

        try:
            return verifier_named(str(value), lace_of(ctx))
        except (InvalidInput, KeyUnavailable) as error:
            self.fail(". ".join([str(error), *getattr(error, "__notes__", ())]), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from lace.cli.options.completing import names

        return names(ctx, param, incomplete)


class ViewerType(VerifierType):
    """The viewer of a view: a verifier, the name of a key, or the label of a peer that proves no identity."""

    name = "viewer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from lace.policy.origin import is_opaque

        return str(value) if is_opaque(str(value)) else super().convert(value, param, ctx)


class PinType(click.ParamType[bytes]):
    """The SHA-256 of a public key or certificate: 43 B64A characters, as `lace cert` prints it, or 64 hex digits."""

    name = "pin"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        from lace.notation import b64a

        if isinstance(value, bytes):
            return value
        text = str(value).replace(":", "")
        if b64a.is_canonical(text, 32):
            return b64a.decode(text)
        try:
            pin = bytes.fromhex(text)
        except ValueError:
            pin = b""
        if len(pin) != 32:
            self.fail("a pin is 43 B64A characters or 64 hexadecimal digits", param, ctx)
        return pin


class UidType(click.ParamType[tuple[int, Any]]):
    """UID=VERIFIER."""

    name = "uid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, Verifier]:
        uid, _, verifier = str(value).partition("=")
        if not uid.isdigit():
            self.fail(f"{value!r} is not of the form UID=VERIFIER", param, ctx)
        return int(uid), VerifierType().convert(verifier, param, ctx)


class ProxyType(click.ParamType[str]):
    """The address of a proxy, or the word unix."""

    name = "proxy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from lace.transports.proxied import proxy_name

        try:
            return proxy_name(str(value))
        except InvalidInput as error:
            self.fail(str(error), param, ctx)


# The names by which click hands over what `link_options` reads; they are fields of `LinkChoices`.
LINK_OPTIONS = ("key", "standard", "patience", "trust", "pin", "ca", "uids", "peer")


def link_options(function: F) -> F:
    """`--key`, `--trust` and how the other end of a connection is checked."""
    existing = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        click.option("--peer", type=VerifierType(), metavar="KEY|V", help="Over stdio: the verifier of the peer."),
        click.option(
            "--uid",
            "uids",
            type=UidType(),
            multiple=True,
            metavar="UID=V",
            help="Over unix sockets: this user is V; repeatable.",
        ),
        click.option("--ca", type=existing, help="Over wss: accept certificates of these CAs instead of the system's."),
        click.option("--pin", type=PinType(), help="Over wss: accept only the server with this pin."),
        click.option(
            "--trust",
            type=VerifierType(),
            multiple=True,
            metavar="KEY|V",
            help="Exchange only with this peer; repeatable.",
        ),
        click.option(
            "--patience",
            type=click.FloatRange(min=1),
            metavar="SECONDS",
            help="How long a peer may take for one phase (default: 30); a peer that serves an archive may need more.",
        ),
        click.option("--standard", is_flag=True, help="Announce no capability beyond 050 and 060 (see 070)."),
        click.option(
            "--key",
            metavar="KEY",
            shell_complete=keys,
            help="Prove your identity with this key of the ring (over ws and wss).",
        ),
    ):
        function = option(function)
    return function


def trace_option(function: F) -> F:
    """`--trace FILE`."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option("--trace", type=path, help="Capture every byte in this file; `lace tap FILE` reads it.")(
        function
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkChoices:
    """The options about connections."""

    key: str | None = None
    signer: SigningKey | None = None  # proves our identity with a key that is not in the ring
    trust: Sequence[Verifier] = ()
    pin: bytes | None = None
    ca: Path | None = None
    uids: Sequence[tuple[int, Verifier]] = ()
    peer: Verifier | None = None
    command: Sequence[str] = ()
    certificate: Path | None = None
    certificate_key: Path | None = None
    names: Sequence[WebSocketAddress] = ()
    origins: Sequence[str] = ()
    proxies: Sequence[str] = ()  # trusted to say where a connection comes from
    loopback_is_network: bool = False
    unix_mode: int = 0o600
    takes_from_strangers: bool = False
    patience: float | None = None  # seconds that a peer has for one phase
    standard: bool = False  # announce no capability (P33)
    quotas: Sequence[tuple[str, str]] = ()  # (what, how much) as the user wrote them
    horizon_s: float | None = HORIZON_S

    def transport(self) -> tuple[TransportOptions, Verifier | None]:
        """The transport options, and our own verifier if there is a key."""
        from lace.runtime.clock import SystemClock
        from lace.transports.base import UidMap
        from lace.transports.dial import TransportOptions
        from lace.transports.tls import ClientTls, ServerTls

        signer = user_ring().load(self.key) if self.key else self.signer
        server_tls = None
        if self.certificate is not None and self.certificate_key is not None:
            server_tls = ServerTls(certificate_file=self.certificate, key_file=self.certificate_key)
        options = TransportOptions(
            clock=SystemClock().tai,
            signer=signer,
            trusted=tuple(self.trust),
            uids=UidMap(dict(self.uids)),
            unix_mode=self.unix_mode,
            client_tls=ClientTls(pin=self.pin, ca_file=self.ca),
            server_tls=server_tls,
            names=tuple(self.names),
            origins=tuple(self.origins),
            proxies=tuple(self.proxies),
            loopback_is_network=self.loopback_is_network,
            command=tuple(self.command),
            stated_peer=self.peer,
        )
        return options, signer.verifier if signer else None

    def patient(self, terms: Terms) -> Terms:
        """Terms with the chosen phase timeout."""
        from lace.limits import SECOND_NS

        if self.patience is None:
            return terms
        return replace(terms, limits=replace(terms.limits, phase_timeout_ns=round(self.patience * SECOND_NS)))

    def require_use_of_key(self, addresses: Sequence[Address]) -> None:
        """Refuse a key that no connection can prove, before anything is opened."""
        from lace.iltp.address import TcpAddress

        if self.key and addresses and all(isinstance(address, TcpAddress) for address in addresses):
            where = ", ".join(map(str, addresses))
            raise click.UsageError(f"--key proves nothing over {where}: tcp carries no proof; use wss, ws or unix")


def make_terms(module: Module, exposures: tuple[Exposure, ...], *, is_open: bool) -> Terms:
    """Terms under the default limits of the specifications."""
    from lace.interlace.setup.terms import Terms

    return Terms(module=module, exposures=exposures, is_open=is_open)


def make_node(
    store: RecordStore,
    choices: LinkChoices,
    hooks: Hooks | None = None,
    limits: NodeLimits | None = None,
    make_host: Callable[[Terms, QuotaGate], Host[Any]] | None = None,
) -> Node:
    """A node over a store; call it inside an event loop."""
    from lace.runtime.clock import SystemClock
    from lace.runtime.host.quotas import quotas_with
    from lace.runtime.node.node import Node

    transport, here = choices.transport()
    return Node(
        store,
        transport,
        SystemClock(),
        here=here,
        limits=limits,
        hooks=hooks,
        make_host=make_host,
        standard=choices.standard,
        takes_from_strangers=choices.takes_from_strangers,
        quotas=quotas_with(choices.quotas),
        horizon_s=choices.horizon_s,
    )


@contextmanager
def captured(path: Path | None, hooks: Hooks) -> Iterator[None]:
    """Capture every byte of every link in one file, if a path is given."""
    if path is None:
        yield
        return
    from lace.runtime.clock import SystemClock
    from lace.runtime.trace.trace import Capture

    with path.open("wb") as file:
        capture = Capture(file, SystemClock())
        hooks.make_tap = lambda _: capture
        yield
