"""Pins of a server's key: read as `cryptography` reads them, kept by a renewal, and nothing else is let through."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import TransportError
from lace.transports.certificate import renew_self_signed, write_self_signed
from lace.transports.dial import dial, listen
from lace.transports.tls import ClientTls, ServerTls, certificate_pin, certificate_sha256, pin_of
from transports.endpoints import any_port, plain_options

KEYS: dict[str, Any] = {
    "P-256": ec.generate_private_key(ec.SECP256R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA": rsa.generate_private_key(public_exponent=65537, key_size=2048),
}
NOW = datetime.now(UTC)


def certificate_of(key: Any, name: str = "a") -> bytes:
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
    builder = builder.serial_number(1 << 150).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    made = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def spki_of(key: Any) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_key().public_bytes(serialization.Encoding.DER, form)).digest()


@pytest.mark.parametrize("kind", KEYS)
def test_a_pin_is_that_of_the_key_which_a_library_reads(kind: str) -> None:
    assert pin_of(certificate_of(KEYS[kind], "a" * 64)) == spki_of(KEYS[kind])


@given(st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))
def test_a_changed_certificate_has_no_pin_or_the_one_that_a_library_reads(at: int, other: bytes, cut: int) -> None:
    der = certificate_of(KEYS["P-256"])
    changed = der[: at % len(der)] + other + der[at % len(der) + cut :]
    try:
        found = pin_of(changed)
    except TransportError:
        return
    try:
        key = x509.load_der_x509_certificate(changed).public_key()
    except (ValueError, UnsupportedAlgorithm, UserWarning):  # a warning is an error here: the library is in doubt
        return
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    assert found == hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).digest()


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x80", b"\x30\x02\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x3f\x01\x00"]
)
def test_what_is_not_a_certificate_has_no_pin(data: bytes) -> None:
    with pytest.raises(TransportError):
        pin_of(data)


def test_a_renewed_certificate_keeps_its_pin_over_a_running_listener(tmp_path: Path) -> None:
    files = ServerTls(certificate_file=tmp_path / "c.pem", key_file=tmp_path / "k.pem")
    hosts = ["127.0.0.1", "localhost"]
    pin = write_self_signed(files.certificate_file, files.key_file, hosts, not_before=NOW, valid_days=2)
    of_certificate = certificate_sha256(files)
    assert pin == certificate_pin(files) != of_certificate

    async def can_dial(address: Any, with_pin: bytes) -> bool:
        try:
            (await dial(address, replace(plain_options(), client_tls=ClientTls(pin=with_pin)))).abort()
        except TransportError:
            return False
        return True

    async def run() -> None:
        options = replace(plain_options(), server_tls=files)
        async with await listen(any_port("wss", tmp_path), options) as listener:
            assert await can_dial(listener.address, pin)
            assert await can_dial(listener.address, of_certificate)  # as older versions printed it
            assert not await can_dial(listener.address, bytes(32))
            secret = files.key_file.read_bytes()
            assert renew_self_signed(files.certificate_file, files.key_file, [], not_before=NOW, valid_days=9) == pin
            assert "is another one now" in listener.reload()[0]
            assert files.key_file.read_bytes() == secret
            assert await can_dial(listener.address, pin)
            assert not await can_dial(listener.address, of_certificate)

    asyncio.run(run())
    names = x509.load_pem_x509_certificate(files.certificate_file.read_bytes()).extensions
    kept = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in kept] == hosts


def test_a_certificate_of_another_key_or_signer_is_not_renewed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_self_signed(
            tmp_path / f"{name}.pem", tmp_path / f"{name}.key", ["localhost"], not_before=NOW, valid_days=2
        )
    before = (tmp_path / "a.pem").read_bytes()
    for certificate, key in (("a.pem", "b.key"), ("a.pem", "missing"), ("a.key", "a.key")):
        with pytest.raises(TransportError):
            renew_self_signed(tmp_path / certificate, tmp_path / key, [], not_before=NOW, valid_days=2)
    assert (tmp_path / "a.pem").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.key", "a.pem", "b.key", "b.pem"]
