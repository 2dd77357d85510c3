"""TLS for wss: contexts for both roles, certificates that are pinned instead of vouched for by a CA.

Rule: a connection counts as encrypted only after a check that we chose passed: a CA chain with the host's name, or
the SHA-256 of the certificate itself.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import Any

from lace.errors import TransportError
from lace.notation import b64a
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """How a dialer checks the server: a pin (SHA-256 of the certificate), or CAs (the system's if no file is given)."""

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
    """The SHA-256 of the first certificate of a chain file."""
    try:
        text = tls.certificate_file.read_text(encoding="ascii")
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(_first_certificate(text))).digest()
    except (OSError, ValueError) as error:
        raise TransportError(f"cannot read the certificate {tls.certificate_file}: {error}") from error


def peer_certificate_sha256(ssl_object: Any) -> bytes:
    """The SHA-256 of the certificate that the server of a live connection showed."""
    certificate = ssl_object.getpeercert(binary_form=True)
    if not certificate:
        raise TransportError("the server showed no certificate")
    return hashlib.sha256(certificate).digest()


def check_pin(found: bytes, tls: ClientTls) -> None:
    """Raise TransportError unless the certificate is the pinned one, if one is."""
    if tls.pin is not None and tls.pin != found:
        raise TransportError(f"the server's certificate is not the pinned one (it is {b64a.encode(found)})")


def _first_certificate(text: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start, stop = text.find(begin), text.find(end)
    if start < 0 or stop < start:
        raise ValueError("no certificate in the file")
    return text[start : stop + len(end)] + "\n"
