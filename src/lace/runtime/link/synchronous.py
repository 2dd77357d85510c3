"""One request of a session carried out in the caller's own thread, where nothing has to wait: simulations, tests, a
browser tab.

Rule: the same link and the same jobs as `drive`, one after the other. A request is carried out to its end before the
next one is looked at, so nothing is left in the link.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from lace.interlace.events import Event
from lace.interlace.host import Call, Host
from lace.runtime.link.session import Request, Session
from lace.runtime.link.stepper import LinkStepper
from lace.runtime.node.bounds import DriveLimits

_LIMITS = DriveLimits(max_unsent_bytes=1 << 62)  # what was put is taken when the caller likes


def carry_out(session: Session, host: Host[Any], request: Request, now_ns: int) -> Event | None:
    """Carry out a request and give the session its answer; the event of a report."""
    events: list[Event] = []
    link = LinkStepper(session, host, _LIMITS, on_event=events.append)
    jobs = deque(link.carry_out(request, now_ns))
    link.flush()
    while jobs or (jobs := deque(link.jobs())):
        job = jobs.popleft()
        job.done(job.work(Call()), now_ns)
    return events[0] if events else None
