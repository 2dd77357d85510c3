"""BLAKE3 in the three ways the specifications use it: plain, behind a domain string, and as a key derivation.

Rule: no other module imports blake3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from lace.notation.compiled import IS_PURE

if TYPE_CHECKING:
    from blake3 import blake3
else:
    try:
        if IS_PURE:
            raise ImportError("LACE_PURE is set")
        from blake3 import blake3
    except ImportError:
        from lace.notation.plainblake3 import PlainBlake3

        blake3 = PlainBlake3


class Hasher(Protocol):
    """An incremental BLAKE3."""

    def update(self, data: bytes | bytearray | memoryview, /) -> object: ...
    def digest(self, length: int = 32) -> bytes: ...


def digest(data: bytes | bytearray | memoryview) -> bytes:
    """Plain BLAKE3-256."""
    return blake3(data).digest()


def digest_each(pieces: Iterable[bytes]) -> list[bytes]:
    """Plain BLAKE3-256 of each of many short pieces; one hasher for all, for making one costs as much as hashing."""
    return _each(blake3(), pieces)


def digest_tails(buffers: Iterable[bytes], places: Iterable[Iterable[int]]) -> list[bytes]:
    """Plain BLAKE3-256 of what stands from each of its places on in each of many buffers; one hasher for all."""
    one = blake3()
    update, finish, reset = one.update, one.digest, one.reset
    digests: list[bytes] = []
    for buffer, starts in zip(buffers, places, strict=True):
        view = memoryview(buffer)
        for start in starts:
            update(view[start:])
            digests.append(finish())
            reset()
    return digests


def derive_each(context: str, materials: Iterable[bytes]) -> list[bytes]:
    """The 32 bytes that `key_deriver` gives for each of many materials; the context is hashed once for all."""
    return _each(blake3(derive_key_context=context), materials)


def _each(one: blake3, pieces: Iterable[bytes]) -> list[bytes]:
    update, finish, reset = one.update, one.digest, one.reset
    digests: list[bytes] = []
    for piece in pieces:
        update(piece)
        digests.append(finish())
        reset()
    return digests


def domain_digest(domain: str, data: bytes) -> bytes:
    """BLAKE3-256 of a domain string and bytes, concatenated raw (P2)."""
    return blake3(domain.encode() + data).digest()


def hasher() -> Hasher:
    """A BLAKE3-256 to be fed piece by piece."""
    return blake3()


def key_deriver(context: str) -> Callable[[bytes, int], bytes]:
    """`derive(material, length)`: BLAKE3 derive-key output under `context`, `length` bytes of it."""

    def derive(material: bytes, length: int = 32) -> bytes:
        return blake3(material, derive_key_context=context).digest(length)

    return derive
