"""What a pump does with one request of a session where nothing has to wait: simulations, tests, a browser tab.

Rule: the same calls in the same order as `drive`, in the caller's own thread.
"""

from __future__ import annotations

from typing import Any

from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import Call, Host, perform, store
from lace.runtime.link.session import CheckResource, ReceivedRecords, Request, Session, checked
from lace.runtime.node.bounds import Service


def carry_out(session: Session, host: Host[Any], request: Request, now_ns: int) -> Event | None:
    """Carry out a request and give the session its answer; the event of a report."""
    quick = host.at_once
    match request:
        case ReceivedRecords(records):
            for answer in store(host, host.judge(records, Call()), Call()):
                session.answer(answer, now_ns)
        case CheckResource(resource):
            session.resource_checked(checked(resource, session.terms.engine_limits), now_ns)
        case asked.SendListing():
            listed = quick.listed(request) if quick is not None else None
            named: list[str] = []
            for batch in host.list(request, Call()) if listed is None else [listed]:
                session.put_listing(batch, request.source)
                named += request.names(batch)
            session.answer(given.ListingSent(named), now_ns)
        case asked.SendRecords():
            service = Service(request)
            found = quick.loaded(request) if quick is not None else None
            for loaded in host.load(request, Call()) if found is None else [found]:
                session.put_records([data for _, data in service.take_all(loaded)])
            session.answer(given.RecordsSent(service.sent, service.missing), now_ns)
        case asked.Report(event):
            return event
        case _:
            answered = quick.answer(request) if quick is not None else None
            if answered is None:
                answered = perform(host, request, Call())
            if answered is not None:
                session.answer(answered, now_ns)
    return None
