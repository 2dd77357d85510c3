"""Signing and verifying (009): BIP-340 with BLAKE3 derive-key for its tagged hash.

Rule: a secret leaves this module only through `SigningSecret.reveal`; never in a repr, an error, a pickle or a log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from os import urandom
from typing import Final, NoReturn, Protocol, Self

from lace.errors import InvalidSignature, InvalidText, KeyUnavailable
from lace.notation import b64a
from lace.notation.digest import derive_each, key_deriver
from lace.notation.identifiers import Verifier
from lace.records import curve
from lace.records.exact import N, P, lift_x
from lace.records.model import Plex, Seal

# 009-KDF-03: 🖧 is U+1F5A7.
derive_scalar: Final = key_deriver("lace-\U0001f5a7/adhoc-key")
derive_aux: Final = key_deriver("lace-\U0001f5a7/aux")
derive_nonce: Final = key_deriver("lace-\U0001f5a7/nonce")
_CHALLENGE = "lace-\U0001f5a7/challenge"
derive_challenge: Final = key_deriver(_CHALLENGE)

Randomness = Callable[[int], bytes]


class Signer(Protocol):
    """Whatever signs for a verifier: a SigningKey, or an agent, a smart card or an HSM that keeps the secret."""

    @property
    def verifier(self) -> Verifier:
        """The public key of its signatures."""

    def sign(self, digest: bytes, /) -> bytes:
        """64 bytes of a BIP-340 signature over a 32-byte digest, with BLAKE3 for its tagged hash (009)."""


def seal(plex: Plex, signer: Signer) -> Seal:
    """The Plex under a signer's signature of its digest (009-SEAL-01)."""
    return Seal(signed_by=signer.verifier, signature=b64a.encode(signer.sign(plex.hash.digest)), plex=plex)


class _Secret:
    """Something that is not shown, copied to disk or sent by accident."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied")

    def __format__(self, spec: str) -> str:
        return repr(self)


class SigningSecret(_Secret):
    """`&.<b64a>.H3`: 32 bytes from which a signing key is derived (009-TEXT-02)."""

    __slots__ = ("_material",)

    def __init__(self, material: bytes) -> None:
        if len(material) != 32:  # 009-TEXT-06
            raise InvalidText("a signing secret is 32 bytes", rule="secret-length", found=f"{len(material)} bytes")
        self._material = bytes(material)

    @classmethod
    def generate(cls, randomness: Randomness = urandom) -> Self:
        """A fresh secret."""
        return cls(randomness(32))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The secret of its text form; the error never repeats the text."""
        if not (text.startswith("&.") and text.endswith(".H3")):
            raise InvalidText("a signing secret has the form &.<43 B64A characters>.H3", rule="secret-form")
        try:
            material = b64a.decode(text[2:-3])
        except InvalidText:
            raise InvalidText("the payload of a signing secret is canonical B64A", rule="secret-form") from None
        return cls(material)

    def reveal(self) -> str:
        """The text form, for a file that only its owner reads or a person who asked."""
        return f"&.{b64a.encode(self._material)}.H3"

    def material(self) -> bytes:
        """The 32 bytes."""
        return self._material

    def __repr__(self) -> str:
        return "SigningSecret(…)"


class SigningKey(_Secret):
    """A scalar of even y (009-KEY-05) and its verifier."""

    __slots__ = ("_scalar", "verifier")

    def __init__(self, scalar: bytes) -> None:
        if not 0 < int.from_bytes(scalar, "big") < N or len(scalar) != 32:
            raise KeyUnavailable("a signing scalar is 32 bytes with a value in 1..n-1")
        point = curve.public_point(scalar)
        self._scalar = curve.negate(scalar) if point[0] == 3 else bytes(scalar)  # 009-KEY-03
        self.verifier: Verifier = Verifier.of(point[1:])  # 009-KEY-04: −d·G has the same x

    @classmethod
    def generate(cls, randomness: Randomness = urandom) -> Self:
        """A key of a random scalar (009-KEY-01, 009-KEY-02)."""
        while True:
            drawn = randomness(32)
            if 0 < int.from_bytes(drawn, "big") < N:
                return cls(drawn)

    @classmethod
    def from_secret(cls, secret: SigningSecret | str) -> Self:
        """The key that a signing secret stands for (009-SEC-01 to 009-SEC-03)."""
        if isinstance(secret, str):
            secret = SigningSecret.parse(secret)
        return cls(first_scalar(secret.material()))

    def sign(self, msg32: bytes, aux: bytes | None = None) -> bytes:
        """64 signature bytes over a 32-byte message; `aux` is fresh randomness unless a test gives it."""
        aux32 = _fresh_aux() if aux is None else aux
        if len(msg32) != 32 or len(aux32) != 32:  # 009-SIGN-10
            raise ValueError("message and aux have 32 bytes each")
        if not any(aux32):  # 009-SIGN-09
            raise ValueError("aux is not zero")
        px = self.verifier.digest
        mask = bytes(a ^ b for a, b in zip(derive_aux(aux32, 32), self._scalar, strict=True))
        drawn = nonce_scalar(mask, px, msg32)
        point = curve.public_point(drawn)
        nonce = curve.negate(drawn) if point[0] == 3 else drawn  # 009-SIGN-05
        challenge = challenge_scalar(point[1:], px, msg32).to_bytes(32, "big")
        return point[1:] + curve.multiply_add(challenge, self._scalar, nonce)  # 009-SIGN-07

    def seal(self, plex: Plex, aux: bytes | None = None) -> Seal:
        """The Plex under this key's signature of its digest (009-SEAL-01)."""
        signature = b64a.encode(self.sign(plex.hash.digest, aux))
        return Seal(signed_by=self.verifier, signature=signature, plex=plex)

    def __repr__(self) -> str:
        return f"SigningKey({str(self.verifier)!r})"


def _fresh_aux() -> bytes:
    while True:
        aux = urandom(32)
        if any(aux):
            return aux


def first_scalar(material: bytes) -> bytes:
    """The first XOF block of a secret's material that lies in 1..n−1 (009-SEC-01, 009-SEC-02)."""
    blocks = 1
    while True:
        candidate = derive_scalar(material, 32 * blocks)[-32:]
        if 0 < int.from_bytes(candidate, "big") < N:
            return candidate
        blocks += 1


def nonce_scalar(mask: bytes, px: bytes, msg32: bytes) -> bytes:
    """k0 of 009-SIGN-03; zero is refused (009-SIGN-04)."""
    k0 = int.from_bytes(derive_nonce(mask + px + msg32, 32), "big") % N
    if k0 == 0:
        raise KeyUnavailable("the nonce came out as zero; sign again with another aux")
    return k0.to_bytes(32, "big")


def challenge_scalar(rx: bytes, px: bytes, msg32: bytes) -> int:
    """e of 009-SIGN-06."""
    return int.from_bytes(derive_challenge(rx + px + msg32, 32), "big") % N


def verify(verifier_x: bytes, msg32: bytes, sig64: bytes) -> None:
    """Raise InvalidSignature unless `sig64` is a signature of `msg32` under the key at `verifier_x`."""
    try:
        combine = _LOCAL.combine
    except AttributeError:
        combine = _LOCAL.combine = curve.combiner()
    reason = _refusal(combine, verifier_x, msg32, sig64)
    if reason is not None:
        raise InvalidSignature(reason, rule="signature")


_LOCAL = threading.local()


SUMMED_AT_ONCE = (4096, 256)  # signatures checked by one sum; the shorter ones after a longer one failed
_WORTH_A_SUM = 128
_SIGNATURES_A_KEY = 4  # where most keys sign once, a sum is no faster than one by one


def verify_batch(tasks: Iterable[tuple[bytes, bytes, bytes]]) -> list[str | None]:
    """Why each (verifier_x, msg32, sig64) fails, None where it verifies; threads may run batches side by side.

    Good signatures are proven many at a time, in less than half the time of one by one; a batch that holds a bad one
    is looked at again in parts, and the part that holds it one by one.
    """
    return _verdicts(list(tasks), SUMMED_AT_ONCE)


def _verdicts(tasks: Sequence[tuple[bytes, bytes, bytes]], sizes: Sequence[int]) -> list[str | None]:
    if not sizes:
        combine = curve.combiner()
        return [_refusal(combine, *task) for task in tasks]
    size, *smaller = sizes
    reasons: list[str | None] = []
    for start in range(0, len(tasks), size):
        part = tasks[start : start + size]
        keys = len({px for px, _, _ in part})
        if len(part) >= max(_WORTH_A_SUM, _SIGNATURES_A_KEY * keys) and all_verify(part):
            reasons += [None] * len(part)
        else:
            reasons += _verdicts(part, smaller)
    return reasons


def all_verify(tasks: Sequence[tuple[bytes, bytes, bytes]]) -> bool:
    """Whether all of these signatures surely verify."""
    if any(len(px) != 32 or len(msg32) != 32 or len(sig64) != 64 for px, msg32, sig64 in tasks):
        return False
    drawn = derive_each(_CHALLENGE, [sig64[:32] + px + msg32 for px, msg32, sig64 in tasks])
    number = int.from_bytes
    equations = [
        curve.Equation(px, sig64[:32], number(sig64[32:], "big"), number(challenge, "big"))
        for (px, _, sig64), challenge in zip(tasks, drawn, strict=True)
    ]
    return max([equation.s for equation in equations]) < N and curve.all_hold(equations)


def _refusal(combine: curve.Combine, px: bytes, msg32: bytes, sig64: bytes) -> str | None:
    """Why a signature does not verify, or None (009-VER-01 to 009-VER-07)."""
    if len(px) != 32 or len(msg32) != 32 or len(sig64) != 64:
        return "verifier and message have 32 bytes, a signature 64"
    rx = sig64[:32]
    s = int.from_bytes(sig64[32:], "big")
    if s >= N:  # 009-VER-03
        return "s is not below the order of the curve"
    e = int.from_bytes(derive_challenge(rx + px + msg32, 32), "big") % N
    found = combine(px, s, e)
    # A compressed point of even y begins with 02: one comparison settles 009-VER-01, -02, -05, -06 and -07.
    if found == b"\x02" + rx:
        return None
    return mismatch(px, rx, found)


def mismatch(px: bytes, rx: bytes, found: bytes | None) -> str:
    """What exactly is wrong, worked out only for signatures that fail."""
    if int.from_bytes(rx, "big") >= P:
        return "r is not below the field prime"
    if lift_x(int.from_bytes(px, "big")) is None:
        return "the verifier is not an x-coordinate of the curve"
    if found is None:
        return "the signature leads to the point at infinity"
    if found[1:] == rx:
        return "the signature leads to a point of odd y"
    return "it was not made by this key over this message"
