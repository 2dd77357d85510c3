"""Events of an exchange as text for people and as fields for programs.

Rule: every event of `lace.interlace.events` has both; programs read the fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from lace.cli.output.outcome import reasons_text
from lace.cli.output.words import count_of
from lace.interlace import events as ev


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


def event_text(event: ev.Event) -> str:
    """The event in one line."""
    match event:
        case ev.EpochBegan(plan, epoch):
            return f"agreed on plan {plan} (epoch {epoch})"
        case ev.Advertising(ours, theirs):
            return f"advertises {count_of(ours, 'record')}, the peer {count_of(theirs, 'record')}"
        case ev.Requested(by_us, by_peer):
            return f"asks for {count_of(by_us, 'record')}, the peer for {count_of(by_peer, 'record')}"
        case ev.Received(hashes):
            return f"received {_some(hashes)}"
        case ev.Rejected(reasons):
            return f"rejected {_some(list(reasons))}: {next(iter(reasons.values()), '')}"
        case ev.Unwanted(count):
            return f"received {count_of(count, 'record')} that it did not ask for"
        case ev.HoldingBack(by_us, by_peer):
            return f"holds back from asking for {_counted(by_us)}, the peer for {_counted(by_peer)}"
        case ev.Sent(hashes):
            return f"sent {_some(hashes)}, not confirmed yet"
        case ev.Taken(hashes):
            return f"sent {_some(hashes)}, confirmed by the peer"
        case ev.RefusedByPeer(reasons):
            return f"refused by the peer: {_some(list(reasons))} ({reasons_text(Counter(reasons.values()))})"
        case ev.NotAvailable(hashes):
            return f"was refused {_some(hashes)}"
        case ev.Deferred(hashes):
            return f"waits for {_some(hashes)}"
        case ev.FixedPoint(loops):
            return f"at a fixed point after {count_of(loops, 'loop')}"
        case ev.Ticked(tai):
            return f"shared time {tai}"
        case ev.Closed(reason):
            return f"closed{': ' + reason if reason else ''}"
        case _:
            assert_never(event)


def _counted(counts: Mapping[str, int]) -> str:
    said = f" ({reasons_text(counts)})" if counts else ""
    return f"{count_of(sum(counts.values()), 'record')}{said}"


def _some(hashes: object) -> str:
    listed = list(hashes) if isinstance(hashes, (tuple, list)) else []
    return str(listed[0]) if len(listed) == 1 else count_of(len(listed), "record")
