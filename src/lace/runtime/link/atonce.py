"""What a pump does with one request of a session where nothing has to wait: simulations, tests, a browser tab.

Rule: the same calls in the same order as `drive`, in the caller's own thread.
"""

from __future__ import annotations

from typing import Any

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import NOT_NOW, Call, Host, at_hand, perform, store
from lace.runtime.link.session import CheckResource, ReceivedRecords, Request, Session, checked
from lace.runtime.node.bounds import Service


def carry_out(session: Session, host: Host[Any], request: Request, now_ns: int) -> Event | None:
    """Carry out a request and give the session its answer; the event of a report."""
    match request:
        case ReceivedRecords(records):
            for answer in store(host, host.judge(records, Call()), Call()):
                session.answer(answer, now_ns)
        case CheckResource(resource):
            session.resource_checked(checked(resource, session.terms.engine_limits), now_ns)
        case asked.SendListing():
            named: list[str] = []
            for batch in at_hand(host, host.list, request) or host.list(request, Call()):
                session.put_listing(batch, request.source)
                named += request.names(batch)
            session.answer(given.ListingSent(named), now_ns)
        case asked.SendRecords():
            service = Service(request)
            for loaded in at_hand(host, host.load, request) or host.load(request, Call()):
                session.put_records([data for _, data in service.take_all(loaded)])
            session.answer(given.RecordsSent(service.sent, service.missing), now_ns)
        case asked.Report(event):
            return event
        case _:
            answered = perform(host, request, Call(may_wait=False))
            if answered is NOT_NOW:
                answered = perform(host, request, Call())
            if answered is not None and answered is not NOT_NOW:
                session.answer(answered, now_ns)
    return None
