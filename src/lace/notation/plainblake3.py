"""BLAKE3 in plain Python, for interpreters that have no compiled one (a browser tab, a new Python, `LACE_PURE=1`).

Rule: the same answers as the compiled library, some ten thousand times slower; short, and written to be read beside the
BLAKE3 paper. Nothing else of Lace may tell which of the two it runs on.
"""

from __future__ import annotations

from struct import pack, unpack
from typing import NamedTuple

_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)  # of message words, from round to round
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT, _CONTEXT, _MATERIAL = 1, 2, 4, 8, 32, 64
_MASK = 0xFFFFFFFF
_CHUNK, _BLOCK = 1024, 64
_COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip

Words = tuple[int, ...]


def _compress(key: Words, block: Words, counter: int, length: int, flags: int) -> Words:
    """The compression function: 16 words, of which the first eight chain on."""
    state = [*key, *_IV[:4], counter & _MASK, counter >> 32, length, flags]
    message = list(block)
    for _ in range(7):
        for at, (a, b, c, d) in enumerate(_COLUMNS_AND_DIAGONALS):
            va, vb, vc, vd = state[a], state[b], state[c], state[d]
            for word, (right_d, right_b) in ((message[2 * at], (16, 12)), (message[2 * at + 1], (8, 7))):
                va = (va + vb + word) & _MASK
                vd ^= va
                vd = (vd >> right_d | vd << (32 - right_d)) & _MASK
                vc = (vc + vd) & _MASK
                vb ^= vc
                vb = (vb >> right_b | vb << (32 - right_b)) & _MASK
            state[a], state[b], state[c], state[d] = va, vb, vc, vd
        message = [message[index] for index in _ORDER]
    low = [state[index] ^ state[index + 8] for index in range(8)]
    high = [state[index + 8] ^ key[index] for index in range(8)]
    return (*low, *high)


class _TreeNode(NamedTuple):
    """A compression that was not made yet, because only the last one is marked as the root."""

    key: Words
    block: Words
    counter: int
    length: int
    flags: int

    def chain(self) -> Words:
        return _compress(*self)[:8]

    def output(self, length: int) -> bytes:
        flags = self.flags | _ROOT
        counters = range(-(-length // _BLOCK))
        words = [_compress(self.key, self.block, counter, self.length, flags) for counter in counters]
        return b"".join(pack("<16I", *one) for one in words)[:length]


def _chunk(key: Words, data: bytes, counter: int, flags: int) -> _TreeNode:
    """One chunk of up to 1,024 bytes."""
    chained, start = key, _CHUNK_START
    last = max(0, (len(data) - 1) // _BLOCK * _BLOCK)
    for at in range(0, last, _BLOCK):
        words = unpack("<16I", data[at : at + _BLOCK])
        chained = _compress(chained, words, counter, _BLOCK, flags | start)[:8]
        start = 0
    rest = data[last:]
    return _TreeNode(chained, unpack("<16I", rest.ljust(_BLOCK, b"\0")), counter, len(rest), flags | start | _CHUNK_END)


class PlainBlake3:
    """The surface of the compiled `blake3.blake3` as far as Lace uses it."""

    def __init__(self, data: bytes | bytearray | memoryview = b"", /, *, derive_key_context: str | None = None) -> None:
        self._key, self._flags = _IV, 0
        if derive_key_context is not None:
            deriver = PlainBlake3()
            deriver._flags = _CONTEXT
            deriver.update(derive_key_context.encode())
            self._key, self._flags = unpack("<8I", deriver.digest()), _MATERIAL
        self.reset()
        self.update(data)

    def reset(self) -> None:
        """Forget what was fed."""
        self._waiting = b""
        self._count = 0  # of chunks that are in the stack
        self._stack: list[Words] = []  # one subtree for each bit of the count

    def update(self, data: bytes | bytearray | memoryview, /) -> PlainBlake3:
        """Feed more bytes."""
        self._waiting += bytes(data)
        while len(self._waiting) > _CHUNK:  # the last chunk waits: it may be the root
            chunk, self._waiting = self._waiting[:_CHUNK], self._waiting[_CHUNK:]
            chained = _chunk(self._key, chunk, self._count, self._flags).chain()
            self._count += 1
            subtrees = self._count
            while not subtrees & 1:
                chained = self._parent(self._stack.pop(), chained).chain()
                subtrees >>= 1
            self._stack.append(chained)
        return self

    def digest(self, length: int = 32) -> bytes:
        """The hash of everything fed so far, as many bytes of it as asked for."""
        node = _chunk(self._key, self._waiting, self._count, self._flags)
        for left in reversed(self._stack):
            node = self._parent(left, node.chain())
        return node.output(length)

    def _parent(self, left: Words, right: Words) -> _TreeNode:
        return _TreeNode(self._key, (*left, *right), 0, _BLOCK, self._flags | _PARENT)
