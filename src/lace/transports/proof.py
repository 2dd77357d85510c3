"""Proof of identity by signed upgrade headers, both directions (P24; `docs/identity.md` is the exact text).

Rule: a signature covers everything that makes this one connection: the dialled address, the server certificate, the
upgrade's key, nonce and time of each side that has spoken. It is checked once, inside a time window, and remembered.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

from lace.errors import InvalidSignature, InvalidText, TransportError
from lace.iltp.address import WebSocketAddress
from lace.limits import SECOND_NS
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.records.keys import Signer, verify
from lace.values import dataclass

HEADER = "Lace-Identity"
DOMAIN = "lace-websocket-identity/v1"
NONE = "-"  # no verifier, no signature, no certificate
NONCE_BYTES = 32
SIGNATURE_BYTES = 64
_FEW_LINES = 1000  # of the file of nonces, before it is worth rewriting

Clock = Callable[[], TAI]


class ProofRefused(TransportError):
    """An identity header is missing, malformed, stale, repeated or wrongly signed; `kind` is what it counts under."""

    def __init__(self, message: str, kind: str = "bad proof") -> None:
        super().__init__(message)
        self.kind = kind


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
    ahead_ns = claim.tai.to_ns() - now.to_ns()
    if abs(ahead_ns) > window_s * SECOND_NS:
        way = "ahead of" if ahead_ns > 0 else "behind"
        seconds = abs(ahead_ns) // SECOND_NS
        raise ProofRefused(
            f"identity refused: your clock is {seconds:,} s {way} the server's; {window_s} s are allowed", "clock off"
        )
    if claim.verifier is None:
        return None
    try:
        verify(claim.verifier.digest, message, b64a.decode(claim.signature))
    except InvalidSignature:
        _refuse("the signature does not verify")
    return claim.verifier


class ProofMemory:
    """The nonces of the last while, so that no signed header works twice; all listeners of a node share it.

    A proof dated before the memory began may have been used with an earlier process, whose memory is gone, so over
    plain ws it is refused. That leaves proofs that were dated ahead of our clock when they came. These few are written
    to a file, if there is one, before they are accepted, and read by the next process.
    """

    def __init__(self, window_s: int, max_entries: int, file: Path | None = None) -> None:
        self._window_ns = window_s * SECOND_NS
        self._max_entries = max_entries
        self._seen: OrderedDict[str, int] = OrderedDict()
        self._file = file
        self._written = 0  # lines in the file
        self._began: TAI | None = None

    def begin(self, now: TAI) -> None:
        """From now on; a second listener changes nothing."""
        if self._began is None:
            self._began = now
            self._read(now.to_ns())

    def require_new(self, claim: Claim) -> None:
        """ProofRefused if an earlier process may have accepted this claim without leaving word of it."""
        if self._began is not None and claim.tai < self._began:
            raise ProofRefused("identity refused: this proof is older than the server; try again", "old proof")

    def remember(self, claim: Claim, now: TAI) -> None:
        """Note a claim that verified; ProofRefused if it was seen, or if there is no room to know (fail closed)."""
        now_ns = now.to_ns()
        while self._seen and next(iter(self._seen.values())) < now_ns:
            self._seen.popitem(last=False)
        if claim.nonce in self._seen:
            raise ProofRefused("identity refused: this proof was used before", "old proof")
        if len(self._seen) >= self._max_entries:
            raise ProofRefused("identity refused: too many proofs in a short time", "too many proofs")
        # A claim is accepted up to a window before and after its own time, so it is kept for both.
        until_ns = now_ns + 2 * self._window_ns
        if claim.tai > now:
            self._write(claim.nonce, until_ns)
        self._seen[claim.nonce] = until_ns

    def _write(self, nonce: str, until_ns: int) -> None:
        if self._file is None:
            return
        try:
            if self._written > 2 * len(self._seen) + _FEW_LINES:
                self._write_anew()
            with _opened(self._file, os.O_APPEND) as file:
                file.write(f"{nonce} {until_ns}\n")
            self._written += 1
        except OSError as error:
            text = f"identity refused: your clock is ahead of the server's, which cannot note that: {error.strerror}"
            raise ProofRefused(text, "clock off") from error

    def _write_anew(self) -> None:
        """What has run out goes; the file is as long as what is remembered."""
        assert self._file is not None
        beside = self._file.with_name(self._file.name + ".part")
        with _opened(beside, os.O_TRUNC) as file:
            file.writelines(f"{nonce} {until_ns}\n" for nonce, until_ns in self._seen.items())
        os.replace(beside, self._file)
        self._written = len(self._seen)

    def _read(self, now_ns: int) -> None:
        if self._file is None:
            return
        try:
            with self._file.open(encoding="ascii", errors="replace") as file:
                for line in file:
                    nonce, _, until = line.strip().partition(" ")
                    self._written += 1
                    if until.isdigit() and int(until) >= now_ns and len(self._seen) < self._max_entries:
                        self._seen[nonce] = int(until)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TransportError(f"cannot read {self._file}: {error.strerror}") from error


def _opened(path: Path, flags: int) -> IO[str]:
    """A file of the owner's alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600), "w", encoding="ascii")


def _refuse(message: str) -> NoReturn:
    raise ProofRefused(f"identity refused: {message}")
