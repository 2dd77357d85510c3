"""What a peer that has hung up left behind: bytes that the kernel holds and nobody has read yet.

Rule: they are read for a moment longer, and no more. We learn that a stream has ended only after reading everything
sent before its end, and that may be megabytes on each of many links: a peer that floods us and leaves would keep us
working long afterwards. A link that is overdrawn is read so slowly that a few pieces would last for many seconds: its
reading ends with the moment too. So does that of a link that is not read because too much of it, or of all strangers,
is held here: otherwise each would be read as soon as the one before it has ended. From a peer that can hear nothing
more, and from which no record is awaited, next to nothing is read: nobody would hear what comes of it.
"""

from __future__ import annotations

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai
from lace.runtime.link.account import LinkAccount
from lace.runtime.link.backlog import Backlog
from lace.runtime.link.session import Session
from lace.runtime.link.stepper import LinkStepper
from lace.transports.base import ByteStream, HeardStream

LAST_PIECES = 64  # that are always read on: what a peer says at the end, however slow we are
LAST_BYTES = 256 * 1024  # if they are no more than this: a listing without a reader is long
LAST_UNHEARD = 4  # pieces of a peer that hears nothing more: the end of an exchange in lockstep is in the first
SHORT_EXCHANGE = 12  # blocks: who says all of one ahead is read to its end, whether it is there to hear of it or not,
SHORT_BYTES = 16 * 1024  # if that is no more than this


class HangUp:
    """Of one link."""

    def __init__(
        self,
        stream: ByteStream,
        session: Session,
        link: LinkStepper,
        backlog: Backlog,
        account: LinkAccount,
        time: SteadyTai,
        worth_s: float,
    ) -> None:
        self._stream = stream
        self._heard = stream if isinstance(stream, HeardStream) else None
        self._link = link
        self._session = session
        self._backlog = backlog
        self._account = account
        self._time = time
        self._worth_ns = worth_s * SECOND_NS
        self._left_at_ns: int | None = None  # when it was first seen that the peer is gone
        self._pieces = self._bytes = 0  # that were read since
        self._waits = 0  # for an account to be level again, before that

    def are_given_up(self, size: int, *, holds_records: bool) -> bool:
        """A piece of this size was read. Whether the peer is gone for longer than what it left is worth: then the
        exchange ends as by a lost link.

        Records are read to the end, and nothing is given up while some are being stored.
        """
        if holds_records or self._link.storing_bytes:
            return False
        if not self._is_over(size) and not self._is_for_nobody:
            return False
        self._session.lose(self._time.now_ns)
        return True

    def are_unread_for_long(self, *, holds_records: bool) -> bool:
        """Asked now and then: the same of a link that is not read from, so that nobody sees its peer go."""
        if not self._backlog.is_full or not self._is_left_for_long() or holds_records or self._link.storing_bytes:
            return False
        self._session.lose(self._time.now_ns)
        return True

    def _is_over(self, size: int) -> bool:
        is_long = self._is_left_for_long()
        if self._left_at_ns is None:
            return False
        self._pieces += 1
        self._bytes += size
        is_much = self._pieces > LAST_PIECES or self._bytes > LAST_BYTES or self._account.waits > self._waits
        return is_much and is_long

    @property
    def _is_for_nobody(self) -> bool:
        """Whether what is left cannot be answered, nor bring a record."""
        session = self._session
        is_short = session.blocks_in <= SHORT_EXCHANGE and self._bytes <= SHORT_BYTES
        if self._pieces <= LAST_UNHEARD or is_short or session.machine.awaits_records:
            return False
        return self._heard is not None and self._heard.is_deaf

    def _is_left_for_long(self) -> bool:
        if not getattr(self._stream, "is_left", False):  # an application's own transport need not tell
            return False
        if self._left_at_ns is None:
            self._left_at_ns, self._waits = self._time.now_ns, self._account.waits
            return False
        return self._time.now_ns - self._left_at_ns > self._worth_ns
