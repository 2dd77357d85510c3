"""What a host answers without waiting: the questions of an open link to which a record or two came (070, shared sets).

Rule: nothing here touches the store's file, evaluates rules, waits for a lock or looks at more than a few records;
where an answer would take any of that there is none, and the host is asked in a thread. So it may be called on an event
loop. The answers are those that the host itself gives.

A server of a hundred links answers some ten such questions for each of them when one record comes. In threads most of
the time that takes goes by in handing the interpreter from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.host import Call, Loaded, Shared
from lace.interlace.loop.advertise import RECORD_BYTES
from lace.interlace.setup.hello import NO_FIELDS
from lace.runtime.host.setcomparer import Comparer
from lace.runtime.link.bodies import RecentBodies
from lace.runtime.rules.generation import Generation

if TYPE_CHECKING:
    from lace.runtime.host.host import LocalHost

FEW = 64  # records


class Quick:
    """The quick answers of one host."""

    def __init__(self, host: LocalHost, bodies: RecentBodies) -> None:
        self._host = host
        self._bodies = bodies

    def answer(self, effect: asked.HostEffect) -> given.HostAnswer | None:
        """The answer to a question, if it takes no time."""
        match effect:
            case asked.Evaluate():
                return self._evaluate(effect)
            case asked.Measure() if self._is_nearly_measured(effect):
                return self._host.measure(effect, Call())
            case asked.TakeDifference() if effect.is_equal and len(effect.crossed) <= FEW:
                return self._host.take_difference(effect, Call())
            case asked.TakeChange() if self._is_small(effect):
                return self._host.take_difference(effect, Call())
            case _:
                return None

    def _evaluate(self, wanted: asked.Evaluate) -> given.Evaluated | None:
        """Where what may be sent is known and hardly another, and nothing is there to be requested."""
        agreed, sends = self._host.agreed, self._host.sends
        if agreed is None or agreed.own is None or sends is None:
            return None
        now, under = sends.at_once(), agreed.wanted
        if now is None or not now.ids.is_near(agreed.own.ids, FEW) or under.plan.have_reads_advertisements:
            return None
        bare = len(now) * (RECORD_BYTES + len(under.own_source))
        if under.schema != NO_FIELDS and bare <= wanted.measured_bytes:  # then every line is counted
            return None
        if under.schema != NO_FIELDS and agreed.claims.is_left_by(now):  # what it claims about them has to be read
            return None
        if wanted.max_requests and agreed.claims.has_beyond(now, FEW):
            return None
        return self._host.evaluated(sends, now, wanted, Call(), lacks_nothing=True)

    def _is_nearly_measured(self, wanted: asked.Measure) -> bool:
        agreed = self._host.agreed
        if agreed is None or agreed.comparer is None or agreed.own is None:
            return False
        return cast("Comparer", agreed.comparer).is_near(wanted, agreed.own)

    def _is_small(self, wanted: asked.TakeChange) -> bool:
        agreed = self._host.agreed
        rows = len(wanted.added) + len(wanted.removed) + len(wanted.sent)
        return agreed is not None and agreed.claims.is_measured and rows <= FEW

    def listed(self, wanted: asked.SendListing) -> Sequence[Advertisement] | None:
        """The advertisements of a few records, if they are at hand."""
        own = self._own(wanted.own)
        if own is None or wanted.records is None or len(wanted.records) > FEW:
            return None
        return own.some_at_once(wanted.records)

    def loaded(self, wanted: asked.SendRecords) -> Loaded | None:
        """The bytes of a few records that may be sent, if somebody was sent them a moment ago."""
        own = self._own(wanted.own)
        if own is None or len(wanted.hashes) > FEW:
            return None
        bodies = self._bodies.get(wanted.hashes)
        if bodies is None or len(own.among(wanted.hashes)) != len(wanted.hashes):
            return None
        return list(zip(wanted.hashes, bodies, strict=True))

    def foresee(self, listed: int) -> None:
        """A long listing is on its way."""
        self._host.expect(listed)

    def _own(self, handle: asked.SetHandle) -> Generation | None:
        own = self._host.agreed.own if self._host.agreed is not None else None
        return own if own is not None and own.number == handle.number else None

    @property
    def is_ready(self) -> bool:
        """Whether nothing is left to prepare for small changes."""
        sends = self._host.sends
        return sends is not None and sends.is_ready

    @property
    def shared(self) -> Shared | None:
        """What is brought up to date once for all links that have the same here."""
        return self._host.shared_sends
