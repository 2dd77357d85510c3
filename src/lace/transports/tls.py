"""TLS for wss: contexts for both roles, certificates that are pinned instead of vouched for by a CA.

Rule: a connection counts as encrypted only after a check that we chose passed: a CA chain with the host's name, or
the SHA-256 of the certificate's public key or, as older versions printed it, of the certificate itself.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from lace.errors import TransportError
from lace.notation import b64a
from lace.values import dataclass

# The tags of version, serial number, algorithm, issuer, validity, subject and public key of a certificate.
_UP_TO_KEY = bytes((0xA0, 0x02, 0x30, 0x30, 0x30, 0x30, 0x30))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """How a dialer checks the server: a pin, or CAs (the system's if no file is given).

    A pin is the SHA-256 of the public key in the certificate (RFC 7469) or of the certificate itself.
    """

    pin: bytes | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """Where an acceptor's certificate chain and private key are."""

    certificate_file: Path
    key_file: Path


def client_context(tls: ClientTls) -> ssl.SSLContext:
    """A context for dialing; with a pin, no CA is asked, and `check_pin` must follow the handshake."""
    try:
        context = ssl.create_default_context(cafile=str(tls.ca_file) if tls.ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise TransportError(f"cannot use the CA file {tls.ca_file}: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.pin is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def server_context(tls: ServerTls) -> ssl.SSLContext:
    """A context for accepting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    except (OSError, ssl.SSLError) as error:
        raise TransportError(f"cannot use the certificate {tls.certificate_file}: {error}") from error
    return context


def certificate_sha256(tls: ServerTls) -> bytes:
    """The SHA-256 of the first certificate of a chain file, to which a proof of identity is bound."""
    return hashlib.sha256(_certificate(tls)).digest()


def _certificate(tls: ServerTls) -> bytes:
    try:
        text = tls.certificate_file.read_text(encoding="ascii")
        return ssl.PEM_cert_to_DER_cert(_first_certificate(text))
    except (OSError, ValueError) as error:
        raise TransportError(f"cannot read the certificate {tls.certificate_file}: {error}") from error


def peer_certificate(ssl_object: Any) -> bytes:
    """The certificate that the server of a live connection showed."""
    certificate = ssl_object.getpeercert(binary_form=True)
    if not certificate:
        raise TransportError("the server showed no certificate")
    return bytes(certificate)


def check_pin(certificate: bytes, tls: ClientTls) -> None:
    """Raise TransportError unless the certificate or its public key is the pinned one, if one is."""
    if tls.pin is None or tls.pin == hashlib.sha256(certificate).digest():
        return
    found = pin_of(certificate)
    if tls.pin != found:
        raise TransportError(f"the server's key is not the pinned one (its pin is {b64a.encode(found)})")


def certificate_pin(tls: ServerTls) -> bytes:
    """What peers pin of the first certificate of a chain file: the SHA-256 of its public key."""
    return pin_of(_certificate(tls))


def pin_of(certificate: bytes) -> bytes:
    """The SHA-256 of the SubjectPublicKeyInfo of a certificate in DER; TransportError if that is not to be found."""
    try:
        (body,) = islice(_items(certificate, *_inside(certificate, 0, len(certificate))), 1)
        fields = list(_items(certificate, *_inside(certificate, *body)))
        found = bytes(certificate[start] for start, _ in fields)
        at = len(_UP_TO_KEY) - (found[:1] != _UP_TO_KEY[:1])  # only the first version of certificates lacks a version
        if not found.startswith(_UP_TO_KEY[-at:]):
            raise ValueError("the fields of a certificate have other types")
        start, end = fields[at - 1]
    except (IndexError, ValueError) as error:
        raise TransportError("the certificate has no public key that can be read") from error
    return hashlib.sha256(certificate[start:end]).digest()


def _items(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each DER item between two places begins and ends, its head included."""
    while start < end:
        _, stop = _inside(data, start, end)
        yield start, stop
        start = stop


def _inside(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the content of the DER item at a place begins and ends; what only BER allows is refused, so that nobody
    reads another key out of a certificate than we do."""
    if data[start] & 0x1F == 0x1F or data[start + 1] == 0x80:
        raise ValueError("a tag of several bytes, or a length that is not said")
    length, at = data[start + 1], start + 2
    if length & 0x80:
        size = length & 0x7F
        length, at = int.from_bytes(data[at : at + size]), at + size
    if at + length > end:
        raise ValueError("an item is longer than what holds it")
    return at, at + length


def _first_certificate(text: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start, stop = text.find(begin), text.find(end)
    if start < 0 or stop < start:
        raise ValueError("no certificate in the file")
    return text[start : stop + len(end)] + "\n"
