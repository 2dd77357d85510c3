"""Events of an exchange as text for people and as fields for programs.

Rule: every event of `lace.interlace.events` has both; programs read the fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

from lace.cli.output.outcome import reasons_text
from lace.cli.output.words import count_of
from lace.interlace import events as ev

_MOST_NAMED = 3  # records in one line


def event_fields(event: ev.Event) -> dict[str, object]:
    """The event's name and its parts, as JSON values."""
    fields: dict[str, object] = {"kind": type(event).__name__}
    for name in event.__dataclass_fields__:
        value = getattr(event, name)
        if isinstance(value, (tuple, list)):
            value = [str(part) for part in value]
        elif hasattr(value, "items"):
            value = {str(key): str(part) for key, part in value.items()}
        fields[name] = value
    return fields


def event_text(event: ev.Event, named: Callable[[str], str] = str) -> str:
    """The event in one line; `named` says what people call a record."""
    match event:
        case ev.EpochBegan(plan, epoch):
            return f"agreed on plan {plan} (epoch {epoch})"
        case ev.Advertising(ours, theirs):
            return f"this side lists {count_of(ours, 'record')}, the peer {count_of(theirs, 'record')}"
        case ev.Requested(by_us, by_peer):
            return f"this side asks for {count_of(by_us, 'record')}, the peer for {count_of(by_peer, 'record')}"
        case ev.Received(hashes):
            return f"received {_some(hashes, named)}"
        case ev.Rejected(reasons):
            return f"rejected {_some(reasons, named)}: {next(iter(reasons.values()), '')}"
        case ev.Unwanted(count):
            return f"received {count_of(count, 'record')} that this side did not ask for"
        case ev.HoldingBack(by_us, by_peer):
            return f"this side does not ask for {_counted(by_us)}, the peer not for {_counted(by_peer)}"
        case ev.Sent(hashes):
            return f"sent {_some(hashes, named)}, not confirmed yet"
        case ev.Taken(hashes):
            return f"the peer confirmed {_some(hashes, named)}"
        case ev.RefusedByPeer(reasons):
            return f"the peer refused {_some(reasons, named)} ({reasons_text(Counter(reasons.values()))})"
        case ev.NotAvailable(hashes):
            return f"the peer no longer has {_some(hashes, named)}"
        case ev.Deferred(hashes):
            return f"the peer sends {_some(hashes, named)} later"
        case ev.FixedPoint(loops):
            return f"at a fixed point after {count_of(loops, 'loop')}"
        case ev.Ticked(tai):
            return f"the shared time is {tai}"
        case ev.Closed(reason):
            return f"closed{': ' + reason if reason else ''}"
        case _:
            assert_never(event)


def _counted(counts: Mapping[str, int]) -> str:
    said = f" ({reasons_text(counts)})" if counts else ""
    return f"{count_of(sum(counts.values()), 'record')}{said}"


def _some(hashes: Iterable[str], named: Callable[[str], str]) -> str:
    """A few records by name, many by their number and the first name."""
    listed = list(hashes)
    if len(listed) <= _MOST_NAMED:
        return ", ".join(map(named, listed)) or "nothing"
    return f"{count_of(len(listed), 'record')}, among them {named(listed[0])}"
