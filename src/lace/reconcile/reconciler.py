"""One side of a reconciliation: a message comes in, a message goes out.

    begins                         answers
      HELLO nonce, size ──────────▶
      ◀────────────────── SUMMARY nonce, size, count, sums, estimate
      SYMBOLS of our sketch ──────▶      or EQUAL, or LIST where a sketch would cost more
      ◀─────────────────────── MORE      until they suffice; LIST? if they never do
      ◀────────────────────── FOUND      what we lack, as ids; what it lacks, as short ids of 8 bytes
      IDS that were named ────────▶

Rule: every message is checked for its form and its size before anything is computed from it, and what does not fit is
an InvalidInput with a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from lace.differences.ids import EMPTY, Ids, digests_of, ids_of_digests
from lace.differences.idset import set_of
from lace.differences.keyed import U64, DifferenceKey, derive_key, keyed_ids
from lace.differences.peel import Peeler
from lace.differences.setview import SetView
from lace.differences.sketchsize import CompareLimits, first_symbols, more_symbols
from lace.differences.sums import COUNTERS, agrees
from lace.differences.wire import SHORT_BYTES, SYMBOL_ROW, symbols_of_rows
from lace.errors import InvalidInput, LimitExceeded, LocalProtocolError
from lace.values import dataclass

NONCE_BYTES = 16
FEWEST_ID_BYTES, MOST_ID_BYTES = 16, 32
_LETTER = ord("P")  # ids of records say what they are of; here all are of one kind
_SUMMARY_BYTES = 8 + 16 + 2 * COUNTERS
_NUMBER_BYTES = 4


class _Kind(IntEnum):
    HELLO = 1
    SUMMARY = 2
    EQUAL = 3
    SYMBOLS = 4
    MORE = 5
    ALL = 6  # send all ids
    LIST = 7
    FOUND = 8
    IDS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileLimits:
    """What a peer may make us hold or compute."""

    max_message_bytes: int = 64 * 1024 * 1024
    compare: CompareLimits = CompareLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDifference:
    """How the sets differ."""

    lacking: frozenset[bytes]  # that the peer has and we have not
    spare: frozenset[bytes]  # that we have and the peer has not


class Reconciler:
    """One side; `difference` is there once `is_over`."""

    def __init__(
        self,
        ids: Iterable[bytes],
        *,
        nonce: bytes,
        begins: bool,
        id_bytes: int = MOST_ID_BYTES,
        limits: ReconcileLimits | None = None,
    ) -> None:
        """`nonce` is 16 fresh random bytes (`os.urandom(16)`): without them, whoever chooses ids could make other
        sets look equal. `id_bytes` is the length of every id, the same on both sides."""
        if not FEWEST_ID_BYTES <= id_bytes <= MOST_ID_BYTES:
            _refuse("id-size", f"ids have {FEWEST_ID_BYTES} to {MOST_ID_BYTES} bytes", str(id_bytes))
        if len(nonce) != NONCE_BYTES:
            _refuse("nonce-size", f"a nonce is {NONCE_BYTES} random bytes", f"{len(nonce)} bytes")
        self._size = id_bytes
        self._limits = limits or ReconcileLimits()
        self._set = set_of(self._parsed(b"".join(self._checked(ids))))
        self._nonce = nonce
        self._begins = begins
        self._has_begun = False
        self._expects = {_Kind.SUMMARY} if begins else {_Kind.HELLO}
        self._key: DifferenceKey | None = None
        self._view: SetView | None = None
        self._peeler: Peeler | None = None
        self._asked: npt.NDArray[np.uint64] | None = None  # short ids that we asked the peer to name
        self._lacking = EMPTY
        self._spare = EMPTY
        self._difference: SetDifference | None = None
        self.bytes_sent = 0
        self.bytes_received = 0

    @property
    def is_over(self) -> bool:
        """Whether this side knows how the sets differ; a message that it returned last is still to be sent."""
        return self._difference is not None

    @property
    def difference(self) -> SetDifference:
        """How the sets differ; LocalProtocolError before that is known."""
        if self._difference is None:
            raise LocalProtocolError("the reconciliation is not over: carry messages until `is_over`")
        return self._difference

    def begin(self) -> bytes:
        """The first message, of the side that begins."""
        if not self._begins or self._has_begun:
            raise LocalProtocolError("the side that `begins` calls begin, once; the other one waits for a message")
        self._has_begun = True
        return self._say(_Kind.HELLO, self._nonce + bytes([self._size]))

    def receive(self, message: bytes) -> bytes:
        """Take a message of the peer; the answer to send, empty if there is none."""
        if len(message) > self._limits.max_message_bytes:
            raise LimitExceeded("max_message_bytes", self._limits.max_message_bytes, "a message of the peer")
        if not message or message[0] not in self._expects:
            expected = ", ".join(sorted(kind.name for kind in self._expects)) or "none"
            _refuse("message-kind", f"a message {expected} is due", repr(message[:1]))
        self.bytes_received += len(message)
        kind, body = _Kind(message[0]), message[1:]
        self._expects = set()
        match kind:
            case _Kind.HELLO:
                return self._answer_hello(body)
            case _Kind.SUMMARY:
                return self._answer_summary(body)
            case _Kind.EQUAL:
                return self._end()
            case _Kind.SYMBOLS:
                return self._answer_symbols(body)
            case _Kind.MORE:
                return self._answer_more(body)
            case _Kind.ALL:
                return self._list()
            case _Kind.LIST:
                return self._answer_list(body)
            case _Kind.FOUND:
                return self._answer_found(body)
            case _Kind.IDS:
                return self._take_names(body)

    # --- turns -------------------------------------------------------------------------------------------------

    def _answer_hello(self, body: bytes) -> bytes:
        self._agree(body[:NONCE_BYTES], self._nonce, body[NONCE_BYTES:])
        view = self._viewed(sums=True)
        self._expects = {_Kind.EQUAL, _Kind.SYMBOLS, _Kind.LIST}
        return self._say(_Kind.SUMMARY, self._nonce + bytes([self._size]) + _pack_summary(view.measured))

    def _answer_summary(self, body: bytes) -> bytes:
        head = NONCE_BYTES + 1
        if len(body) != head + _SUMMARY_BYTES:
            _refuse("message-size", "a summary has one size", f"{len(body)} bytes")
        self._agree(self._nonce, body[:NONCE_BYTES], body[NONCE_BYTES:head])
        theirs, ours = _unpack_summary(body[head:]), self._viewed(sums=True).measured
        if agrees(ours, theirs):
            self._end()
            return self._say(_Kind.EQUAL, b"")
        count = first_symbols(ours, theirs, self._limits.compare)
        return self._symbols(0, count) if count else self._list()

    def _symbols(self, start: int, end: int) -> bytes:
        rows = np.empty(end - start, SYMBOL_ROW)
        made = self._viewed().symbols(start, end)
        rows["sum"], rows["check"], rows["count"] = made.sums, made.checks, made.counts
        self._expects = {_Kind.MORE, _Kind.ALL, _Kind.FOUND}
        return self._say(_Kind.SYMBOLS, rows.tobytes())

    def _answer_symbols(self, body: bytes) -> bytes:
        if not body or len(body) % SYMBOL_ROW.itemsize:
            _refuse("message-size", "a message of symbols has whole ones", f"{len(body)} bytes")
        view, peeler = self._viewed(), self._peeler or Peeler(self._agreed)
        self._peeler = peeler
        start = peeler.symbols
        end = start + len(body) // SYMBOL_ROW.itemsize
        if end > self._limits.compare.max_symbols:
            raise LimitExceeded("max_symbols", self._limits.compare.max_symbols, "symbols of the peer")
        found = peeler.give(view.symbols(start, end).minus(symbols_of_rows(body)))
        if found is not None:
            spare = view.named(found.mine)
            if spare is not None:
                self._spare = spare
                return self._found(found.theirs)
        more = more_symbols(end, self._limits.compare)
        self._expects = {_Kind.SYMBOLS, _Kind.LIST}
        if peeler.is_hopeless or found is not None or more == end or more > 4 * (len(self._set) + 64):
            self._expects = {_Kind.LIST}
            return self._say(_Kind.ALL, b"")
        return self._say(_Kind.MORE, end.to_bytes(_NUMBER_BYTES, "big") + more.to_bytes(_NUMBER_BYTES, "big"))

    def _answer_more(self, body: bytes) -> bytes:
        start, end = (int.from_bytes(body[at : at + _NUMBER_BYTES], "big") for at in (0, _NUMBER_BYTES))
        if len(body) != 2 * _NUMBER_BYTES or not 0 < start < end <= self._limits.compare.max_symbols:
            _refuse("more-symbols", "symbols are asked for from where they ended", f"{start} to {end}")
        return self._symbols(start, end)

    def _list(self) -> bytes:
        self._expects = {_Kind.FOUND}
        return self._say(_Kind.LIST, self._written(self._set.ids()))

    def _answer_list(self, body: bytes) -> bytes:
        theirs, ours = self._parsed(body), self._set.ids()
        self._lacking, self._spare = theirs.without(ours), ours.without(theirs)
        answer = self._found(np.sort(keyed_ids(self._lacking, self._agreed).short), known=True)
        self._end()
        return answer

    def _found(self, lacking: U64, *, known: bool = False) -> bytes:
        """What the peer lacks, as ids, and what we lack, by short ids; the peer names those, unless they are known."""
        if len(lacking) and not known:
            self._asked, self._expects = lacking, {_Kind.IDS}
        elif not known:
            self._end()
        head = bytes([known]) + len(lacking).to_bytes(_NUMBER_BYTES, "big")
        return self._say(_Kind.FOUND, head + lacking.astype(">u8").tobytes() + self._written(self._spare))

    def _answer_found(self, body: bytes) -> bytes:
        head = 1 + _NUMBER_BYTES
        count = int.from_bytes(body[1:head], "big")
        ids_at = head + count * SHORT_BYTES
        if len(body) < ids_at or body[0] > 1:
            _refuse("message-size", "a finding has as many short ids as it says", f"{len(body)} bytes")
        short = np.frombuffer(body[head:ids_at], ">u8").astype(np.uint64)
        if bool((short[1:] <= short[:-1]).any()):
            _refuse("short-ids", "short ids are sorted, each once", f"{count} of them")
        spare, lacking = self._viewed().named(short), self._parsed(body[ids_at:])
        if spare is None or bool(self._set.among(lacking).any()):
            _refuse("finding", "a finding is of ids that one side has", f"{count} short ids, {len(lacking)} ids")
        self._spare, self._lacking = spare, lacking
        self._end()
        return b"" if body[0] or not count else self._say(_Kind.IDS, self._written(spare))

    def _take_names(self, body: bytes) -> bytes:
        named = self._parsed(body)
        asked = self._asked
        if asked is None or not np.array_equal(np.sort(keyed_ids(named, self._agreed).short), asked):
            _refuse("names", "the ids named are those that were asked for", f"{len(named)} ids")
        self._lacking = named
        return self._end()

    # --- parts -------------------------------------------------------------------------------------------------

    def _agree(self, first: bytes, second: bytes, size: bytes) -> None:
        if len(first) != NONCE_BYTES or len(second) != NONCE_BYTES or len(size) != 1:
            _refuse("message-size", f"a hello is a nonce of {NONCE_BYTES} bytes and the size of ids", "another size")
        if size[0] != self._size:
            _refuse("id-size", f"both sides have ids of one size, here {self._size} bytes", f"{size[0]} bytes")
        self._key = derive_key(first, second)

    @property
    def _agreed(self) -> DifferenceKey:
        assert self._key is not None
        return self._key

    def _viewed(self, *, sums: bool = False) -> SetView:
        if self._view is None:
            self._view = SetView(self._set, self._agreed, sums=sums)
        return self._view

    def _end(self) -> bytes:
        self._difference = SetDifference(lacking=self._named(self._lacking), spare=self._named(self._spare))
        return b""

    def _say(self, kind: _Kind, body: bytes) -> bytes:
        self.bytes_sent += 1 + len(body)
        return bytes([kind]) + body

    def _checked(self, ids: Iterable[bytes]) -> Iterable[bytes]:
        for one in ids:
            if len(one) != self._size:
                _refuse("id-size", f"every id has {self._size} bytes (`id_bytes`)", f"{len(one)} bytes")
            yield one

    def _parsed(self, data: bytes) -> Ids:
        if len(data) % self._size:
            _refuse("message-size", f"ids have {self._size} bytes each", f"{len(data)} bytes")
        count = len(data) // self._size
        rows = np.zeros((count, MOST_ID_BYTES), np.uint8)
        rows[:, : self._size] = np.frombuffer(data, np.uint8).reshape(count, self._size)
        return ids_of_digests(rows, np.full(count, _LETTER, np.uint8)) if count else EMPTY

    def _written(self, ids: Ids) -> bytes:
        return np.ascontiguousarray(digests_of(ids)[:, : self._size]).tobytes()

    def _named(self, ids: Ids) -> frozenset[bytes]:
        data = self._written(ids)
        return frozenset(data[at : at + self._size] for at in range(0, len(data), self._size))


def _pack_summary(measured: U64) -> bytes:
    sums = measured[:3].astype(">u8").tobytes()
    return sums + (measured[3:] & np.uint64(0xFFFF)).astype(">u2").tobytes()


def _unpack_summary(data: bytes) -> U64:
    measured = np.empty(3 + COUNTERS, np.uint64)
    measured[:3] = np.frombuffer(data[:24], ">u8")
    measured[3:] = np.frombuffer(data[24:], ">u2")
    return measured


def _refuse(rule: str, message: str, found: str) -> NoReturn:
    raise InvalidInput(message, rule=f"reconcile-{rule}", found=found)
