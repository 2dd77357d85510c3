"""Who pays for an evaluation that several links use (docs/decisions/176).

Rule: all links that have a part in it pay in equal parts, no matter which asked first. An evaluation that is broken off
is paid by the link that asked for it, and it is broken off only if no other link waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from time import thread_time

from lace.interlace.host import Call, Payer

_WORTH_SHARING_S = 0.001  # below this the asking link pays alone: splitting the bill would cost more than the bill


class ForAll(Call):
    """A call on behalf of everybody who waits for its answer: given up when all of them have given up."""

    __slots__ = ("_asking",)

    def __init__(self, asking: dict[int, Call], caller: Call) -> None:
        super().__init__(caller.max_rows, caller.payer, may_wait=caller.may_wait)
        self.account: Hashable = caller.account
        self._asking = asking

    @property
    def is_cancelled(self) -> bool:
        return all(call.is_cancelled for call in list(self._asking.values()))


class SharedBill:
    """The links that have a part in one set, and the calls that wait for it now."""

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self._clock = clock
        self._payers: dict[int, Payer] = {}
        self._asking: dict[int, Call] = {}

    @property
    def asking(self) -> int:
        """How many calls wait for the same answer."""
        return len(self._asking)

    @contextmanager
    def waiting(self, call: Call) -> Iterator[None]:
        """While a call waits, what it waits for is not broken off for another's sake."""
        self._asking[id(call)] = call
        try:
            yield
        finally:
            del self._asking[id(call)]

    def join(self, payer: Payer | None) -> None:
        """A link has a part in the set from now on."""
        if payer is not None:
            self._payers[id(payer)] = payer

    def leave(self, payer: Payer | None) -> None:
        """A link has no part in the set any more, and pays for nothing that comes."""
        self._payers.pop(id(payer), None)

    @contextmanager
    def split(self, call: Call) -> Iterator[Call]:
        """Work for everybody, as a call that all of them have to give up; paid by all once it is done."""
        for_all, started = ForAll(self._asking, call), self._clock()
        try:
            yield for_all
        finally:
            call.cpu_s += for_all.cpu_s
            call.rows += for_all.rows
        spent, payers = self._clock() - started + for_all.cpu_s, list(self._payers.values())
        if call.payer is None or spent > _WORTH_SHARING_S:
            others = [payer for payer in payers if payer is not call.payer]
            for other in others:
                other.pay(spent / len(payers))
            call.cpu_s -= spent * len(others) / max(1, len(payers))
