"""secp256k1 in plain Python integers (009): slow, short and meant to be read.

Rule: correct for every input. It is not constant-time; where libsecp256k1 is installed no secret passes through here.
"""

from __future__ import annotations

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
Point = tuple[int, int] | None  # None is infinity
G: Point = (
    0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798,
    0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8,
)


def add(left: Point, right: Point) -> Point:
    """The sum of two points."""
    if left is None:
        return right
    if right is None:
        return left
    (x1, y1), (x2, y2) = left, right
    if x1 == x2:
        if (y1 + y2) % P == 0:
            return None
        slope = 3 * x1 * x1 * pow(2 * y1, -1, P) % P
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P) % P
    x3 = (slope * slope - x1 - x2) % P
    return x3, (slope * (x1 - x3) - y1) % P


def multiply(scalar: int, point: Point) -> Point:
    """scalar·point."""
    result: Point = None
    scalar %= N
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def lift_x(x: int) -> Point:
    """The point of even y at x; None if the curve has none there."""
    if x >= P:
        return None
    square = (pow(x, 3, P) + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        return None
    return x, y if y % 2 == 0 else P - y


def compress(point: Point) -> bytes:
    """The 33-byte form of a point that is not infinity."""
    if point is None:
        raise ValueError("infinity has no coordinates")
    return bytes([2 + (point[1] & 1)]) + point[0].to_bytes(32, "big")


def combine(px: bytes, s: int, e: int) -> bytes | None:
    """The compressed s·G − e·P for the even-y P at x = px; None if there is no such P or the result is infinity."""
    point = lift_x(int.from_bytes(px, "big"))
    if point is None:
        return None
    result = add(multiply(s, G), multiply(N - e % N, point))
    return None if result is None else compress(result)
