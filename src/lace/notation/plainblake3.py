"""BLAKE3 in plain Python, for interpreters that have no compiled one (a browser tab, a new Python, `LACE_PURE=1`).

Rule: the same answers as the compiled library, some thousand times slower, for long inputs a hundred times; written to
be read beside the BLAKE3 paper. Nothing else of Lace may tell which of the two it runs on.

Many chunks are compressed by the same steps as one: each number of the state then holds a word of every chunk, 64 bits
apart, so that sums and shifts never reach the next lane's 32 bits. It takes 3 MiB in 0.2 s instead of 3, and without it
no peer would wait for a large record of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack
from typing import NamedTuple

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)  # of message words, from round to round
_CHUNK_START, _CHUNK_END, PARENT, _ROOT, _CONTEXT, _MATERIAL = 1, 2, 4, 8, 32, 64
_MASK = 0xFFFFFFFF
_CHUNK, _BLOCK = 1024, 64
_LEAST_LANES, _MOST_LANES = 4, 128  # fewer gain nothing; more are hardly faster, and hold every word as a number
_COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip

Words = tuple[int, ...]


def compress(key: Words, block: Words, counter: int, length: int, flags: int) -> Words:
    """The compression function: 16 words, of which the first eight chain on."""
    return _mixed([*key, *IV[:4], counter & _MASK, counter >> 32, length, flags], block, _MASK)


def _mixed(state: list[int], block: Sequence[int], mask: int) -> Words:
    """Seven rounds over a state of one lane, or of many under a mask of as many."""
    key, message = state[:8], list(block)
    for _ in range(7):
        for at, (a, b, c, d) in enumerate(_COLUMNS_AND_DIAGONALS):
            va, vb, vc, vd = state[a], state[b], state[c], state[d]
            for word, (right_d, right_b) in ((message[2 * at], (16, 12)), (message[2 * at + 1], (8, 7))):
                va = (va + vb + word) & mask
                vd ^= va
                vd = (vd >> right_d | vd << (32 - right_d)) & mask
                vc = (vc + vd) & mask
                vb ^= vc
                vb = (vb >> right_b | vb << (32 - right_b)) & mask
            state[a], state[b], state[c], state[d] = va, vb, vc, vd
        message = [message[index] for index in _ORDER]
    low = [state[index] ^ state[index + 8] for index in range(8)]
    high = [state[index + 8] ^ key[index] for index in range(8)]
    return (*low, *high)


def _spread(words: Sequence[int]) -> int:
    """A word for each lane, the first lowest."""
    return int.from_bytes(pack(f"<{len(words)}Q", *words), "little")


def _gathered(chained: Sequence[int], lanes: int) -> list[Words]:
    """The chaining words of each lane."""
    return list(zip(*(unpack(f"<{lanes}Q", word.to_bytes(8 * lanes, "little")) for word in chained), strict=True))


def subtree(key: Words, data: bytes, first: int, flags: int) -> Words:
    """The chaining words of a whole subtree: of as many chunks as a power of two says."""
    lanes = len(data) // _CHUNK
    ones, words = _spread([1] * lanes), unpack(f"<{len(data) // 4}I", data)
    mask, wide_iv = ones * _MASK, [word * ones for word in IV[:4]]
    counters = [_spread([at & _MASK for at in range(first, first + lanes)])]
    counters += [_spread([at >> 32 for at in range(first, first + lanes)])]
    chained: Sequence[int] = [word * ones for word in key]
    for block in range(_CHUNK // _BLOCK):
        message = [_spread(words[16 * block + at :: _CHUNK // 4]) for at in range(16)]
        marks = flags | _CHUNK_START * (block == 0) | _CHUNK_END * (block == _CHUNK // _BLOCK - 1)
        chained = _mixed([*chained, *wide_iv, *counters, _BLOCK * ones, marks * ones], message, mask)[:8]
    nodes = _gathered(chained, lanes)
    while len(nodes) > 1:
        nodes = _parents(key, nodes, flags | PARENT)
    return nodes[0]


def _parents(key: Words, nodes: Sequence[Words], flags: int) -> list[Words]:
    """One level up: what each two neighbours chain to."""
    lanes = len(nodes) // 2
    ones = _spread([1] * lanes)
    message = [_spread([node[at] for node in nodes[side::2]]) for side in (0, 1) for at in range(8)]
    state = [word * ones for word in (*key, *IV[:4], 0, 0, _BLOCK, flags)]
    return _gathered(_mixed(state, message, ones * _MASK)[:8], lanes)


class _TreeNode(NamedTuple):
    """A compression that was not made yet, because only the last one is marked as the root."""

    key: Words
    block: Words
    counter: int
    length: int
    flags: int

    def chain(self) -> Words:
        return compress(*self)[:8]

    def output(self, length: int) -> bytes:
        flags = self.flags | _ROOT
        counters = range(-(-length // _BLOCK))
        words = [compress(self.key, self.block, counter, self.length, flags) for counter in counters]
        return b"".join(pack("<16I", *one) for one in words)[:length]


def chunk(key: Words, data: bytes, counter: int, flags: int) -> _TreeNode:
    """One chunk of up to 1,024 bytes."""
    chained, start = key, _CHUNK_START
    last = max(0, (len(data) - 1) // _BLOCK * _BLOCK)
    for at in range(0, last, _BLOCK):
        words = unpack("<16I", data[at : at + _BLOCK])
        chained = compress(chained, words, counter, _BLOCK, flags | start)[:8]
        start = 0
    rest = data[last:]
    return _TreeNode(chained, unpack("<16I", rest.ljust(_BLOCK, b"\0")), counter, len(rest), flags | start | _CHUNK_END)


class PlainBlake3:
    """The surface of the compiled `blake3.blake3` as far as Lace uses it."""

    def __init__(self, data: bytes | bytearray | memoryview = b"", /, *, derive_key_context: str | None = None) -> None:
        self._key, self._flags = IV, 0
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
        view = memoryview(data).cast("B")
        while view:  # a piece at a time: what was given is not held twice
            room = _MOST_LANES * _CHUNK + 1 - len(self._waiting)
            self._waiting, view = self._take(self._waiting + view[:room]), view[room:]
        return self

    def _take(self, fed: bytes) -> bytes:
        """Bring bytes into the tree but for the last chunk, which is given back: it may be the root."""
        at = 0
        while (left := len(fed) - at) > _CHUNK:
            chunks = self._chunks_at_once((left - 1) // _CHUNK)
            end = at + chunks * _CHUNK
            if chunks > 1:
                chained = subtree(self._key, fed[at:end], self._count, self._flags)
            else:
                chained = chunk(self._key, fed[at:end], self._count, self._flags).chain()
            at = end
            self._count += chunks
            subtrees = self._count // chunks
            while not subtrees & 1:
                chained = self._parent(self._stack.pop(), chained).chain()
                subtrees >>= 1
            self._stack.append(chained)
        return fed[at:]

    def _chunks_at_once(self, whole: int) -> int:
        """How many of the chunks at hand make one subtree; one, where lanes would cost more than they save."""
        most = 1 << min(whole, _MOST_LANES).bit_length() - 1
        aligned = most if not self._count else min(most, self._count & -self._count)
        return aligned if aligned >= _LEAST_LANES else 1

    def digest(self, length: int = 32) -> bytes:
        """The hash of everything fed so far, as many bytes of it as asked for."""
        node = chunk(self._key, self._waiting, self._count, self._flags)
        for left in reversed(self._stack):
            node = self._parent(left, node.chain())
        return node.output(length)

    def _parent(self, left: Words, right: Words) -> _TreeNode:
        return _TreeNode(self._key, (*left, *right), 0, _BLOCK, self._flags | PARENT)
