"""A self-signed certificate for wss, to be pinned by the SHA-256 of its public key (extra `tls`).

Rule: the only module that imports `cryptography`; the private key is written readable by its owner only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lace.errors import TransportError, naming_extras
from lace.transports.tls import pin_of

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName


def write_self_signed(
    certificate_file: Path, key_file: Path, hosts: Sequence[str], *, not_before: datetime, valid_days: int
) -> bytes:
    """Write a new P-256 key and its certificate for some hosts; the pin comes back."""
    with naming_extras():
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    made, pin = _self_signed(key, hosts, not_before, valid_days)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(key_file, secret, 0o600)
    _write_new(certificate_file, made, 0o644)
    return pin


def renew_self_signed(
    certificate_file: Path, key_file: Path, hosts: Sequence[str], *, not_before: datetime, valid_days: int
) -> bytes:
    """Replace a certificate by a new one for the same key, and for the same hosts if none are given.

    The pin, which comes back, stays what it was; a pin of the old certificate itself does not fit any more.
    """
    with naming_extras():
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        old = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        known = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise TransportError(f"cannot renew {certificate_file} with {key_file}: {error}") from error
    if key.public_key() != old.public_key():
        raise TransportError(f"{key_file} is not the key of {certificate_file}; nothing was changed")
    if old.issuer != old.subject:
        raise TransportError(f"{certificate_file} is signed by somebody else, who has to renew it; nothing was changed")
    names = hosts or [str(name.value) for name in known]
    made, pin = _self_signed(key, names, not_before, valid_days)
    aside = certificate_file.with_name(f".{certificate_file.name}.{os.getpid()}")
    _write_new(aside, made, 0o644)
    os.replace(aside, certificate_file)
    return pin


def certificate_end(certificate_file: Path) -> float:
    """When the first certificate of a file ends, in seconds since 1970."""
    with naming_extras():
        from cryptography import x509
    try:
        return x509.load_pem_x509_certificate(certificate_file.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError) as error:
        raise TransportError(f"cannot read the certificate {certificate_file}: {error}") from error


def _self_signed(key: Any, hosts: Sequence[str], not_before: datetime, valid_days: int) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import NameOID

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
    pin = pin_of(certificate.public_bytes(serialization.Encoding.DER))
    return certificate.public_bytes(serialization.Encoding.PEM), pin


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
