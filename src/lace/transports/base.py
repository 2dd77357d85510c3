"""What every transport offers: a byte stream, a listener, and what the connection proves (060).

Rule: a stream moves bytes and knows nothing of what they say. A lost connection reads as the end of the stream:
whether that is a clean close depends on where the exchange stood, which is not known here.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import field
from typing import Protocol, Self, runtime_checkable

from lace.errors import TransportError
from lace.iltp.address import Address, parse_address
from lace.limits import MIB
from lace.notation.identifiers import Verifier
from lace.values import dataclass

READ_BYTES = 256 * 1024
# What may wait in a stream's own buffer before `send` waits. Little: asyncio moves all of it for each part that the
# socket takes.
WRITE_BUFFER_BYTES = 256 * 1024
KEEPALIVE_AFTER_S = 60
_ERRNO = re.compile(r"\[Errno (\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportProof:
    """What a connection shows of itself; each field becomes a fact that rules can read, or stays absent (060).

    `peer` is `Peer(V)`. With `signed` it rests on a signature over this connection, and only then may the peer say
    `HelloSigner(V)`; without it the deployment stated it (credentials map, parent process). `here` is the verifier
    that we proved to the peer by such a signature, so that we may say `HelloSigner` (P24).
    """

    address: Address
    peer: Verifier | None = None
    signed: bool = False
    here: Verifier | None = None
    encrypted: bool = False
    via_proxy: bool = False  # a proxy of the deployment passed it on: `address` is what that proxy says

    @classmethod
    def at(cls, address: str, *, peer: Verifier | None = None) -> Self:
        """What a transport of your own proves: where it leads (`tcp:10.0.0.7`) and, if the deployment knows, the peer.

        Links from one address share one account, so streams of different peers say different ones.
        """
        return cls(address=parse_address(address), peer=peer)


class ByteStream(Protocol):
    """A bidirectional byte stream, opened and proven."""

    @property
    def proof(self) -> TransportProof:
        """What the connection proves."""

    async def receive(self) -> bytes:
        """The next bytes; empty at the end of the stream, however it came."""

    async def send(self, data: bytes) -> None:
        """Hand bytes over; waits while the peer takes none. TransportError if the connection is gone."""

    async def close(self) -> None:
        """Send what was handed over, then close both directions."""

    def abort(self) -> None:
        """Drop the connection without sending what still waits."""


@runtime_checkable
class PromptStream(Protocol):
    """A stream that says whether bytes would go out at once."""

    @property
    def is_prompt(self) -> bool:
        """Whether the connection stands and nothing that was handed over waits here."""

    def put(self, data: bytes) -> None:
        """Hand bytes over where `is_prompt`; what the peer does not take now waits here."""


@runtime_checkable
class HeardStream(Protocol):
    """A stream that may know that its peer hears nothing more."""

    @property
    def is_deaf(self) -> bool:
        """Whether the peer's end is known to be torn down, though bytes of it may wait here."""


@runtime_checkable
class TurningStream(Protocol):
    """A stream that can say goodbye in words."""

    def turn_away(self, why: str, retry_after_s: float) -> None:
        """Close it, and say when to come back."""


class AcceptedStream(ByteStream, Protocol):
    """A stream that somebody else opened, and may have left before it was served."""

    @property
    def is_left(self) -> bool:
        """Whether the peer is known to be gone, or to say no more, though bytes of it may wait here."""


class Listener(Protocol):
    """A bound endpoint that accepts streams."""

    @property
    def address(self) -> Address:
        """Where it is bound, the real port filled in."""

    async def accept(self) -> AcceptedStream:
        """The next stream; TransportError once closed."""

    async def close(self) -> None:
        """Stop accepting; accepted streams stay."""

    def reload(self) -> list[str]:
        """Read again what came from files, for connections from now on; what was done."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


class Hears(Protocol):
    """Who is told what a listener does by itself."""

    def refused(self, address: object, reason: str, why: str = "") -> None:
        """A connection was turned away: a reason from a closed set, to be counted, and what was found."""

    def trouble(self, text: str) -> None:
        """Something failed and the listener goes on."""

    def retry_after_s(self, proof: TransportProof) -> float | None:
        """When to come back, if this peer can neither be served now nor wait; None if it can."""


class Nobody:
    """Hears nothing, and has a place for everybody."""

    def refused(self, address: object, reason: str, why: str = "") -> None:
        pass

    def trouble(self, text: str) -> None:
        pass

    def retry_after_s(self, proof: TransportProof) -> float | None:
        return None


class TurnedAway(TransportError):
    """The peer has no place for us now; it may have said when to come back."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportLimits:
    """What connections may use before an exchange begins; every table here is bounded by one of these."""

    connect_timeout_s: float = 10.0  # from dialling, or from being accepted, to a stream
    close_timeout_s: float = 5.0
    max_pending_accepts: int = 64
    accept_pause_s: float = 1.0  # after the system had no room for another connection
    max_handshakes: int = 256  # accepted connections that are not streams yet: before TLS, in it, not yet upgraded
    max_handshakes_per_prefix: int = 128  # of them, from one network prefix
    max_message_bytes: int = MIB  # of one WebSocket message received
    message_bytes: int = 256 * 1024  # of one WebSocket message sent
    keepalive_s: float = 20.0
    proof_window_s: int = 60  # how far the clocks of a signed upgrade may differ
    max_remembered_proofs: int = 100_000


@dataclass(frozen=True, slots=True)
class UidMap:
    """Which verifier a deployment takes a user id of this machine to be (060-UNIX-02)."""

    verifiers: Mapping[int, Verifier] = field(default_factory=dict)

    def verifier(self, uid: int | None) -> Verifier | None:
        """The verifier of a user, if one was configured (060-UNIX-03)."""
        return None if uid is None else self.verifiers.get(uid)


def prepare_socket(writer: asyncio.StreamWriter) -> None:
    """No delay: a phase ends with a short write that the peer waits for. Probes: a peer that is gone takes no link."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_AFTER_S)


def reason(error: BaseException) -> str:
    """An operating-system error in words; a timeout has none of its own.

    asyncio puts addresses, and where a name has several of them several errors, into one text: what people can use of
    it is the system's word for the error, if there is one.

    >>> reason(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"))
    'Connection refused'
    """
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    numbers = set(_ERRNO.findall(str(error))) if isinstance(error, OSError) else set()
    return os.strerror(int(numbers.pop())) if len(numbers) == 1 else str(error)
