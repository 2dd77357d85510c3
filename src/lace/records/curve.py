"""secp256k1 for 009: multiples of G, and s·G − e·P, through libsecp256k1 where it is installed.

Rule: the only module that computes with the curve library; `libsecp` finds it. `exact` holds the same operations in
plain Python integers: for machines without the library, for the inputs that the fast way cannot take, and for tests to
compare with.

The fast way is one public-key recovery. ECDSA recovery gives Q = r⁻¹·(s'·R − z·G) for the point R with x-coordinate r;
with R = P (even y, so recovery id 0), s' = −e·r and z = −s·r it is Q = s·G − e·P, in one call instead of three.
"""

from __future__ import annotations

from binascii import b2a_hex
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import mul
from os import urandom
from typing import Any, NamedTuple

from lace.records import exact, libsecp
from lace.records.exact import N

_ffi: Any = None  # the library, and a context of it; `use_library` sets them
_lib: Any = None
_context: Any = None
Combine = Callable[[bytes, int, int], bytes | None]
_COMPRESSED = 258  # SECP256K1_EC_COMPRESSED
_EVEN = b"\x02"


def has_library() -> bool:
    """Whether libsecp256k1 does the work."""
    return _lib is not None


class HostCurve(NamedTuple):
    """A curve that the surroundings of this Python bring along, as the JavaScript of a browser tab does."""

    combine: Combine
    public_point: Callable[[bytes], bytes]


_HOST = HostCurve(exact.combine, lambda scalar: exact.compress(exact.multiply(int.from_bytes(scalar, "big"), exact.G)))


def use_host_curve(host: HostCurve) -> None:
    """Let `host` do the work where libsecp256k1 is missing; to be called before the first key or signature."""
    global _HOST
    _HOST = host


def combiner() -> Combine:
    """A function `combine(px, s, e)`: the compressed s·G − e·P for the even-y P at x = px; None if there is none.

    Each call of `combiner` has buffers of its own, so that threads share none.
    """
    return _library_combiner() if _lib is not None else _HOST.combine


def _library_combiner() -> Combine:
    context = _context
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


_DIGIT_BITS = 4
_HEX_VALUES = bytes.maketrans(b"0123456789abcdef", bytes(range(16)))
_COEFFICIENT_BYTES = 16  # drawn at random for each equation
_FACTOR_BYTES = 32  # of a factor of a key


def all_hold(equations: Sequence[Equation], randomness: Callable[[int], bytes] = urandom) -> bool:
    """Whether every equation holds; False also when that cannot be told at once, then each has to be looked at.

    One sum with random coefficients a stands for all: (Σ a·s)·G = Σ a·R + Σ (Σ a·e)·P. If an equation is false, the sum
    holds for one choice of its coefficient of 128 bits at most.
    """
    if _lib is None:
        return False
    drawn = randomness(_COEFFICIENT_BYTES * len(equations))
    starts = range(0, len(drawn), _COEFFICIENT_BYTES)
    coefficients = [int.from_bytes(drawn[at : at + _COEFFICIENT_BYTES], "big") for at in starts]
    pxs, rxs, ss, es = zip(*equations, strict=True) if equations else [()] * 4
    total = sum(map(mul, coefficients, ss))
    by_key = dict.fromkeys(pxs, 0)
    for px, product in zip(pxs, map(mul, coefficients, es), strict=True):
        by_key[px] += product
    owner = _ffi.new("secp256k1_pubkey[]", len(rxs) + len(by_key))  # holds the memory that the pointers lead to
    points = [owner + at for at in range(len(rxs) + len(by_key))]
    compressed = [_EVEN + x for x in (*rxs, *by_key)]
    if not all(map(_lib.secp256k1_ec_pubkey_parse, repeat(_context), points, compressed, repeat(33))):
        return False
    nonces, keys = points[: len(equations)], points[len(equations) :]
    factors = b"".join([(factor % N).to_bytes(_FACTOR_BYTES, "big") for factor in by_key.values()])
    digits, key_digits = _digits(drawn), _digits(factors)
    stride, key_stride = 2 * _COEFFICIENT_BYTES, 2 * _FACTOR_BYTES  # digits of one
    columns: list[list[tuple[Sequence[Any], bytes]]] = [
        [(keys, key_digits[at::key_stride])] for at in range(key_stride)
    ]
    for at in range(stride):
        columns[key_stride - stride + at].append((nonces, digits[at::stride]))
    return is_multiple_of_g(_sum_by_digits(columns), total % N)


def _digits(data: bytes) -> bytes:
    """The digits of _DIGIT_BITS that bytes are, the highest first, a byte each."""
    return b2a_hex(data).translate(_HEX_VALUES)


def _sum_by_digits(columns: Iterable[Iterable[tuple[Sequence[Any], bytes]]]) -> Any | None:
    """Σ factor·point, factors given digit by digit, the highest first.

    Points that have the same digit are added up first (Pippenger), then the sums of digits that share a bit, so that
    nearly all the work is additions of two points.
    """
    total = None
    for column in columns:
        alike: list[list[Any]] = [[] for _ in range(1 << _DIGIT_BITS)]
        for points, digits in column:
            for point, digit in zip(points, digits, strict=True):
                alike[digit].append(point)
        sums = [(digit, _add(points)) for digit, points in enumerate(alike) if digit and points]
        for bit in reversed(range(_DIGIT_BITS)):
            total = _add([total, total, *[point for digit, point in sums if digit >> bit & 1]])
    return total


def _add(points: Iterable[Any | None]) -> Any | None:
    """The sum of points; None is the point at infinity, which the library has no form for."""
    finite = [point for point in points if point is not None]
    found = _ffi.new("secp256k1_pubkey *")
    if finite and _lib.secp256k1_ec_pubkey_combine(_context, found, finite, len(finite)):
        return found
    return None


def is_multiple_of_g(point: Any | None, scalar: int) -> bool:
    """Whether point = scalar·G."""
    if point is None or not scalar:
        return point is None and not scalar
    wanted = _ffi.new("secp256k1_pubkey *")
    _lib.secp256k1_ec_pubkey_create(_context, wanted, scalar.to_bytes(32, "big"))
    return bool(_lib.secp256k1_ec_pubkey_cmp(_context, point, wanted) == 0)


def public_point(scalar: bytes) -> bytes:
    """The compressed point of a 32-byte scalar in 1..n−1, in constant time where the library is."""
    if _lib is None:
        return _HOST.public_point(scalar)
    point = _ffi.new("secp256k1_pubkey *")
    if not _lib.secp256k1_ec_pubkey_create(_context, point, scalar):
        raise ValueError("a scalar lies in 1..n-1")
    serialized = _ffi.new("unsigned char [33]")
    _lib.secp256k1_ec_pubkey_serialize(_context, serialized, _ffi.new("size_t *", 33), point, _COMPRESSED)
    return bytes(_ffi.buffer(serialized))


def negate(scalar: bytes) -> bytes:
    """n − scalar."""
    if _lib is None:
        return (N - int.from_bytes(scalar, "big")).to_bytes(32, "big")
    return _in_place(scalar, lambda buffer: _lib.secp256k1_ec_seckey_negate(_context, buffer))


def multiply_add(factor: bytes, scalar: bytes, addend: bytes) -> bytes:
    """(addend + factor·scalar) mod n, for the last step of signing."""
    if _lib is None or not any(factor):
        numbers = [int.from_bytes(number, "big") for number in (factor, scalar, addend)]
        return ((numbers[2] + numbers[0] * numbers[1]) % N).to_bytes(32, "big")
    product = _in_place(scalar, lambda buffer: _lib.secp256k1_ec_seckey_tweak_mul(_context, buffer, factor))
    try:
        return _in_place(product, lambda buffer: _lib.secp256k1_ec_seckey_tweak_add(_context, buffer, addend))
    except ValueError:  # the library refuses a sum of zero, which is a lawful s
        return bytes(32)


def _in_place(scalar: bytes, change: Callable[[Any], int]) -> bytes:
    buffer = _ffi.new("unsigned char [32]", scalar)
    if not change(buffer):
        raise ValueError("a scalar lies in 1..n-1")
    return bytes(_ffi.buffer(buffer))


def use_library(binding: libsecp.Binding) -> None:
    """Let this library do the work, in a context that is blinded once, so that signing does not run on bare tables."""
    global _ffi, _lib, _context
    _ffi, _lib = binding
    if _lib is not None:
        _context = _ffi.gc(_lib.secp256k1_context_create(1), _lib.secp256k1_context_destroy)
        _lib.secp256k1_context_randomize(_context, urandom(32))


use_library(libsecp.binding())
