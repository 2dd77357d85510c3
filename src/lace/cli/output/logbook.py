"""The log of a running node: lines for people or JSON objects, on stderr.

Rule: one line per event, flushed immediately; the time is the system's, in UTC.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lace.cli.output.outcome import refusal_rows, sent_text
from lace.cli.output.output import json_line, say
from lace.cli.output.text import visible_line
from lace.cli.output.words import count_of, human_size

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.runtime.link.session import Outcome
    from lace.runtime.node.node import LinkInfo


class Logbook:
    """Writes the log of a node."""

    def __init__(self, *, as_json: bool, every_event: bool = False) -> None:
        self._as_json = as_json
        self._every_event = every_event

    def say(self, event: str, text: str, **fields: object) -> None:
        """One line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            line = json_line({"time": now, "event": event, **fields, "text": text})
        else:
            line = visible_line(f"{now} {text}")
        say(line, err=True)
        sys.stderr.flush()

    def opened(self, info: LinkInfo) -> None:
        """A link came up."""
        who = f" as {info.peer}" if info.peer else ""
        way = "to" if info.dialled else "from"
        self.say("open", f"link {info.number} {way} {info.address}{who}", **_link(info))

    def event(self, info: LinkInfo, event: Event) -> None:
        """An event of a link; only fixed points and refusals, unless `every_event` is set."""
        from lace.cli.output.events import event_fields, event_text

        if self._every_event or type(event).__name__ in ("FixedPoint", "HoldingBack", "RefusedByPeer"):
            self.say("exchange", f"link {info.number} {event_text(event)}", **_link(info), **event_fields(event))

    def ended(self, info: LinkInfo, outcome: Outcome) -> None:
        """A link ended."""
        result = outcome.result
        how = f"aborted: {outcome.abort} ({outcome.detail})" if outcome.abort else _closed(outcome)
        text = (
            f"link {info.number} {how}; received {count_of(len(result.received_hashes), 'record')} "
            f"({human_size(result.bytes_received)}), sent {sent_text(result)}, rejected {len(result.rejected_hashes)}"
        )
        text += "".join(f", {label} {said}" for label, said in refusal_rows(result))
        self.say(
            "end",
            text,
            **_link(info),
            abort=outcome.abort or None,
            detail=outcome.detail or None,
            received=len(result.received_hashes),
            sent=len(result.sent_hashes),
            sent_not_confirmed=len(result.unconfirmed_hashes),
            rejected=dict(result.rejected_hashes),
            refused_by_peer=dict(result.refused_hashes),
            held_back=dict(result.held_back),
            held_back_by_peer=dict(result.held_back_by_peer.counts),
            ending=outcome.status,
            loops=result.loops,
        )

    def limited(self, info: LinkInfo, why: str) -> None:
        """A link reached one of its limits."""
        who = info.peer or info.address
        self.say("limited", f"link {info.number} of {who}: {why}", **_link(info), why=why)

    def policy(self, lines: Sequence[str]) -> None:
        """A newer policy is in force."""
        for line in lines:
            self.say("policy", line)

    def trouble(self, text: str) -> None:
        """Something failed, and the node carries on."""
        self.say("trouble", text)


def _closed(outcome: Outcome) -> str:
    """How a link ended that was not aborted."""
    if outcome.result.limit_reached:
        return f"closed at the limit {outcome.result.limit_reached}"
    if outcome.is_complete:
        return "closed"
    return f"closed by {'the peer' if outcome.result.closed_by_peer else 'us'}"


def _link(info: LinkInfo) -> dict[str, object]:
    return {"link": info.number, "address": info.address, "peer": info.peer}
