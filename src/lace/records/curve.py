"""secp256k1 for 009: multiples of G, and s·G − e·P, through libsecp256k1 where it is installed.

Rule: the only module that knows the curve library. `exact` holds the same operations in plain Python integers: for
machines without the library, for the inputs that the fast way cannot take, and for tests to compare with.

The fast way is one public-key recovery. ECDSA recovery gives Q = r⁻¹·(s'·R − z·G) for the point R with x-coordinate r;
with R = P (even y, so recovery id 0), s' = −e·r and z = −s·r it is Q = s·G − e·P, in one call instead of three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import urandom
from typing import Any, NamedTuple

from lace.records import exact
from lace.records.exact import N

try:
    from coincurve._libsecp256k1 import ffi as _ffi
    from coincurve._libsecp256k1 import lib as _lib
except ImportError:  # no wheel for this machine: the exact arithmetic serves
    _ffi = _lib = None

Combine = Callable[[bytes, int, int], bytes | None]
_COMPRESSED = 258  # SECP256K1_EC_COMPRESSED
_EVEN = b"\x02"
# The cube root of one mod n behind the curve's endomorphism: the library splits x + y·λ back into the short x and y.
_LAMBDA = 0x5363AD4CC05C30E0A5261C028812645A122E22EA20816678DF02967C1B23BD72


def has_library() -> bool:
    """Whether libsecp256k1 does the work."""
    return _lib is not None


def combiner() -> Combine:
    """A function `combine(px, s, e)`: the compressed s·G − e·P for the even-y P at x = px; None if there is none.

    Each call of `combiner` has buffers of its own, so that threads share none.
    """
    return _library_combiner() if _lib is not None else exact.combine


def _library_combiner() -> Combine:
    context = _CONTEXT
    signature = _ffi.new("secp256k1_ecdsa_recoverable_signature *")
    point = _ffi.new("secp256k1_pubkey *")
    serialized = _ffi.new("unsigned char [33]")
    size = _ffi.new("size_t *", 33)
    parse = _lib.secp256k1_ecdsa_recoverable_signature_parse_compact
    recover = _lib.secp256k1_ecdsa_recover
    serialize = _lib.secp256k1_ec_pubkey_serialize
    buffer = _ffi.buffer(serialized)

    def combine(px: bytes, s: int, e: int) -> bytes | None:
        r = int.from_bytes(px, "big")
        if not 0 < r < N or not e:
            return exact.combine(px, s, e)
        compact = px + (-e * r % N).to_bytes(32, "big")
        message = (-s * r % N).to_bytes(32, "big")
        if not parse(context, signature, compact, 0) or not recover(context, point, signature, message):
            return None
        serialize(context, serialized, size, point, _COMPRESSED)
        return bytes(buffer)

    return combine


class Equation(NamedTuple):
    """What one signature claims: s·G = R + e·P for the even-y points at x = rx and x = px."""

    px: bytes
    rx: bytes
    s: int
    e: int


def all_hold(equations: Sequence[Equation], randomness: Callable[[int], bytes] = urandom) -> bool:
    """Whether every equation holds; False also when that cannot be told at once, then each has to be looked at.

    One sum with random coefficients a stands for all: (Σ a·s)·G = Σ a·R + Σ (Σ a·e)·P. If an equation is false, the sum
    holds for one choice of its 128-bit coefficient at most. A coefficient x + y·λ with 64-bit x and y costs the library
    half the doublings of another of the same size.
    """
    if _lib is None:
        return False
    points = _ffi.new("secp256k1_pubkey[]", 2 * len(equations))
    drawn = memoryview(randomness(16 * len(equations))).cast("Q")
    total, by_key = 0, dict.fromkeys((equation.px for equation in equations), 0)
    count = 0
    for (px, rx, s, e), x, y in zip(equations, drawn[::2], drawn[1::2], strict=True):
        a = (x + y * _LAMBDA) % N
        total += a * s
        by_key[px] += a * e
        if not _put_multiple(points + count, rx, a):
            return False
        count += 1
    for px, factor in by_key.items():
        if not _put_multiple(points + count, px, factor % N):
            return False
        count += 1
    return _is_sum(points, count, total % N)


def _put_multiple(point: Any, x: bytes, factor: int) -> bool:
    """factor·X for the even-y X at x, if there is such a point and the product is one."""
    return bool(
        _lib.secp256k1_ec_pubkey_parse(_CONTEXT, point, _EVEN + x, 33)
        and _lib.secp256k1_ec_pubkey_tweak_mul(_CONTEXT, point, factor.to_bytes(32, "big"))
    )


def _is_sum(points: Any, count: int, scalar: int) -> bool:
    """Whether the first points add up to scalar·G."""
    found, wanted = _ffi.new("secp256k1_pubkey *"), _ffi.new("secp256k1_pubkey *")
    pointers = _ffi.new("secp256k1_pubkey *[]", [points + at for at in range(count)])
    return bool(
        _lib.secp256k1_ec_pubkey_combine(_CONTEXT, found, pointers, count)
        and _lib.secp256k1_ec_pubkey_create(_CONTEXT, wanted, scalar.to_bytes(32, "big"))
        and _lib.secp256k1_ec_pubkey_cmp(_CONTEXT, found, wanted) == 0
    )


def public_point(scalar: bytes) -> bytes:
    """The compressed point of a 32-byte scalar in 1..n−1, in constant time where the library is."""
    if _lib is None:
        return exact.compress(exact.multiply(int.from_bytes(scalar, "big"), exact.G))
    point = _ffi.new("secp256k1_pubkey *")
    if not _lib.secp256k1_ec_pubkey_create(_CONTEXT, point, scalar):
        raise ValueError("a scalar lies in 1..n-1")
    serialized = _ffi.new("unsigned char [33]")
    _lib.secp256k1_ec_pubkey_serialize(_CONTEXT, serialized, _ffi.new("size_t *", 33), point, _COMPRESSED)
    return bytes(_ffi.buffer(serialized))


def negate(scalar: bytes) -> bytes:
    """n − scalar."""
    if _lib is None:
        return (N - int.from_bytes(scalar, "big")).to_bytes(32, "big")
    return _in_place(scalar, lambda buffer: _lib.secp256k1_ec_seckey_negate(_CONTEXT, buffer))


def multiply_add(factor: bytes, scalar: bytes, addend: bytes) -> bytes:
    """(addend + factor·scalar) mod n, for the last step of signing."""
    if _lib is None or not any(factor):
        numbers = [int.from_bytes(number, "big") for number in (factor, scalar, addend)]
        return ((numbers[2] + numbers[0] * numbers[1]) % N).to_bytes(32, "big")
    product = _in_place(scalar, lambda buffer: _lib.secp256k1_ec_seckey_tweak_mul(_CONTEXT, buffer, factor))
    try:
        return _in_place(product, lambda buffer: _lib.secp256k1_ec_seckey_tweak_add(_CONTEXT, buffer, addend))
    except ValueError:  # the library refuses a sum of zero, which is a lawful s
        return bytes(32)


def _in_place(scalar: bytes, change: Callable[[Any], int]) -> bytes:
    buffer = _ffi.new("unsigned char [32]", scalar)
    if not change(buffer):
        raise ValueError("a scalar lies in 1..n-1")
    return bytes(_ffi.buffer(buffer))


def _new_context() -> Any:
    """A context of our own, blinded once, so that signing does not run on the bare tables."""
    context = _ffi.gc(_lib.secp256k1_context_create(1), _lib.secp256k1_context_destroy)
    _lib.secp256k1_context_randomize(context, urandom(32))
    return context


_CONTEXT = _new_context() if _lib is not None else None
