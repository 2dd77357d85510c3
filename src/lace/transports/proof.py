"""Proof of identity by signed upgrade headers, both directions (P24; `docs/identity.md` is the exact text).

Rule: a signature covers everything that makes this one connection: the dialled address, the server certificate, the
upgrade's key, nonce and time of each side that has spoken. It is checked once, inside a time window, and remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NoReturn, Protocol

from lace.errors import InvalidSignature, InvalidText, TransportError
from lace.iltp.address import WebSocketAddress
from lace.limits import SECOND_NS
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.records.keys import verify
from lace.values import dataclass

HEADER = "Lace-Identity"
DOMAIN = "lace-websocket-identity/v1"
NONE = "-"  # no verifier, no signature, no certificate
NONCE_BYTES = 32
SIGNATURE_BYTES = 64

Clock = Callable[[], TAI]


class Signer(Protocol):
    """A key that can prove itself."""

    @property
    def verifier(self) -> Verifier: ...

    def sign(self, msg32: bytes, /) -> bytes: ...


class ProofRefused(TransportError):
    """An identity header is missing, malformed, stale, repeated or wrongly signed."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What both sides know of one upgrade request."""

    address: WebSocketAddress  # as dialled
    certificate: bytes | None  # SHA-256 of the server's certificate in DER, over wss
    key: str  # Sec-WebSocket-Key


@dataclass(frozen=True, slots=True)
class Claim:
    """What one `Lace-Identity` header says; without a verifier it only asks the other side to prove itself."""

    verifier: Verifier | None
    nonce: str
    tai: TAI
    signature: str = NONE

    def __str__(self) -> str:
        return f"{self.verifier or NONE} {self.nonce} {self.tai} {self.signature}"


def parse_claim(text: str) -> Claim:
    """The claim of a header value: four tokens, one space between."""
    tokens = text.split(" ")
    if len(tokens) != 4:
        _refuse("the identity header has four parts")
    verifier, nonce, tai, signature = tokens
    if not b64a.is_canonical(nonce, NONCE_BYTES):
        _refuse("the nonce is 32 bytes in B64A")
    if (verifier == NONE) != (signature == NONE) or (
        signature != NONE and not b64a.is_canonical(signature, SIGNATURE_BYTES)
    ):
        _refuse("a verifier comes with its signature of 64 bytes in B64A")
    try:
        return Claim(None if verifier == NONE else Verifier.parse(verifier), nonce, TAI.parse(tai), signature)
    except InvalidText as error:
        _refuse(str(error))


def client_message(upgrade: Upgrade, claim: Claim) -> bytes:
    """The 32 bytes that a dialer signs."""
    return _message("client", upgrade, (claim.nonce, claim.tai, claim.verifier or NONE))


def server_message(upgrade: Upgrade, client: Claim, claim: Claim) -> bytes:
    """The 32 bytes that an acceptor signs, the dialer's claim inside."""
    asked = (client.verifier or NONE, client.nonce, client.tai)
    return _message("server", upgrade, (*asked, claim.nonce, claim.tai, claim.verifier or NONE))


def _message(role: str, upgrade: Upgrade, parts: tuple[str, ...]) -> bytes:
    certificate = NONE if upgrade.certificate is None else b64a.encode(upgrade.certificate)
    return digest("\n".join((DOMAIN, role, str(upgrade.address), certificate, upgrade.key, *parts)).encode())


def sign_as_client(upgrade: Upgrade, signer: Signer | None, nonce: bytes, now: TAI) -> Claim:
    """The dialer's claim; unsigned, it is a challenge to the acceptor."""
    claim = Claim(signer.verifier if signer else None, b64a.encode(nonce), now)
    return claim if signer is None else _signed(claim, signer, client_message(upgrade, claim))


def sign_as_server(upgrade: Upgrade, client: Claim, signer: Signer, nonce: bytes, now: TAI) -> Claim:
    """The acceptor's answer to a dialer's claim."""
    claim = Claim(signer.verifier, b64a.encode(nonce), now)
    return _signed(claim, signer, server_message(upgrade, client, claim))


def _signed(claim: Claim, signer: Signer, message: bytes) -> Claim:
    return Claim(claim.verifier, claim.nonce, claim.tai, b64a.encode(signer.sign(message)))


def check_claim(claim: Claim, message: bytes, now: TAI, window_s: int) -> Verifier | None:
    """The verifier that a claim proves, None if it claims none; ProofRefused if it is stale or does not verify."""
    if abs(claim.tai.to_ns() - now.to_ns()) > window_s * SECOND_NS:
        _refuse(f"the clocks differ by more than {window_s} s")
    if claim.verifier is None:
        return None
    try:
        verify(claim.verifier.digest, message, b64a.decode(claim.signature))
    except InvalidSignature:
        _refuse("the signature does not verify")
    return claim.verifier


class ProofMemory:
    """The nonces of the last while, so that no signed header works twice."""

    def __init__(self, window_s: int, max_entries: int) -> None:
        self._window_ns = window_s * SECOND_NS
        self._max_entries = max_entries
        self._seen: OrderedDict[str, int] = OrderedDict()

    def remember(self, claim: Claim, now: TAI) -> None:
        """Note a claim that verified; ProofRefused if it was seen, or if there is no room to know (fail closed)."""
        now_ns = now.to_ns()
        while self._seen and next(iter(self._seen.values())) < now_ns:
            self._seen.popitem(last=False)
        if claim.nonce in self._seen:
            _refuse("this proof was used before")
        if len(self._seen) >= self._max_entries:
            _refuse("too many proofs in a short time")
        # A claim is accepted up to a window before and after its own time, so it is kept for both.
        self._seen[claim.nonce] = now_ns + 2 * self._window_ns


def _refuse(message: str) -> NoReturn:
    raise ProofRefused(f"identity refused: {message}")
