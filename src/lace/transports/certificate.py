"""A self-signed certificate for wss, to be pinned by its SHA-256 (extra `tls`).

Rule: the only module that imports `cryptography`; the private key is written readable by its owner only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import TransportError, naming_extras

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName


def write_self_signed(
    certificate_file: Path, key_file: Path, hosts: Sequence[str], *, not_before: datetime, valid_days: int
) -> bytes:
    """Write a new P-256 key and its certificate for some hosts; the SHA-256 to pin comes back."""
    with naming_extras():
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    start = not_before.astimezone(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - timedelta(hours=1))  # clocks that run a little behind
        .not_valid_after(start + timedelta(days=valid_days))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(key_file, secret, 0o600)
    _write_new(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).digest()


def _general_name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Create a file that must not exist yet: a key is never overwritten."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except OSError as error:
        raise TransportError(f"cannot write {path}: {error.strerror}") from error
