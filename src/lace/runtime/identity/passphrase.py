"""Secrets under a passphrase: scrypt makes a pad and a seal from it, and a file keeps nothing else.

Rule: a salt is used for one secret, so the pad is used once. A wrong passphrase and a changed file look the same, and
nothing tells how wrong it was.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from os import urandom
from typing import Self

from lace.errors import InvalidText, KeyUnavailable
from lace.notation import b64a
from lace.values import dataclass

SALT_BYTES = 16
SECRET_BYTES = 32
SEAL_BYTES = 32
MAX_MEMORY = 1 << 28
MAX_LOG_N = 20

Ask = Callable[[str], str]
"""Asked for the passphrase of the key of this name."""


@dataclass(frozen=True, slots=True)
class SealingCost:
    """What one guess costs: about 128 · 2^log_n · r bytes of memory and a tenth of a second."""

    log_n: int = 16
    r: int = 8
    p: int = 1


DEFAULT_COST = SealingCost()


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret of 32 bytes that only its passphrase opens."""

    cost: SealingCost
    salt: bytes
    body: bytes  # the secret under the pad, then the seal

    @classmethod
    def make(cls, secret: bytes, passphrase: str, cost: SealingCost = DEFAULT_COST) -> Self:
        """Lock a secret."""
        if not passphrase:
            raise KeyUnavailable("a passphrase has at least one character")
        salt = urandom(SALT_BYTES)
        pad, key = _derive(passphrase, salt, cost)
        hidden = _under(secret, pad)
        return cls(cost, salt, hidden + _seal(key, cost, salt, hidden))

    def open(self, passphrase: str) -> bytes | None:
        """The secret, or None if that is not its passphrase."""
        pad, key = _derive(passphrase, self.salt, self.cost)
        hidden, seal = self.body[:SECRET_BYTES], self.body[SECRET_BYTES:]
        if not hmac.compare_digest(seal, _seal(key, self.cost, self.salt, hidden)):
            return None
        return _under(hidden, pad)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the words that `str` gives; InvalidText if they are none."""
        words = text.split(" ")
        if len(words) != 6 or words[0] != "scrypt" or not all(word.isdecimal() for word in words[1:4]):
            raise InvalidText("a locked secret is `scrypt`, three numbers, a salt and the rest", rule="key-locked")
        log_n, r, p = map(int, words[1:4])
        salt, body = b64a.decode(words[4]), b64a.decode(words[5])
        is_costly = not 1 <= log_n <= MAX_LOG_N or not 1 <= r <= 32 or not 1 <= p <= 16
        if is_costly or len(salt) != SALT_BYTES or len(body) != SECRET_BYTES + SEAL_BYTES:
            raise InvalidText("the numbers of a locked secret are out of bounds", rule="key-locked")
        return cls(SealingCost(log_n, r, p), salt, body)

    def __str__(self) -> str:
        cost = self.cost
        return f"scrypt {cost.log_n} {cost.r} {cost.p} {b64a.encode(self.salt)} {b64a.encode(self.body)}"


def _derive(passphrase: str, salt: bytes, cost: SealingCost) -> tuple[bytes, bytes]:
    """The pad and the key of the seal."""
    try:
        found = hashlib.scrypt(
            passphrase.encode(), salt=salt, n=1 << cost.log_n, r=cost.r, p=cost.p, maxmem=MAX_MEMORY, dklen=64
        )
    except (ValueError, MemoryError):
        raise KeyUnavailable("this key asks for more memory than a passphrase may take") from None
    return found[:SECRET_BYTES], found[SECRET_BYTES:]


def _under(secret: bytes, pad: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(secret, pad, strict=True))


def _seal(key: bytes, cost: SealingCost, salt: bytes, hidden: bytes) -> bytes:
    numbers = f"lace-key/v1 scrypt {cost.log_n} {cost.r} {cost.p} ".encode()
    return hmac.digest(key, numbers + salt + hidden, "sha256")
