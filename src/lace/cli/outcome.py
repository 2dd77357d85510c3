"""How the end of an exchange is shown and what exit code it has.

Rule: 0 is a fixed point or a close that somebody asked for; a limit, an abort, a lost connection and an exchange in
which nobody was allowed to see anything each have their own number. Whatever moves nothing says why in one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lace.cli.failure import ExitCode, print_failure
from lace.cli.output import count_of, human_size, print_fields, print_json, say

if TYPE_CHECKING:
    from lace.runtime.session import Outcome

MOST_REASONS = 10
_CONNECTION = frozenset(("stream broken in the middle of a phase", "phase timeout", "cut"))
_LOCAL = frozenset(("local failure",))


def exit_code_of(outcome: Outcome) -> ExitCode:
    """The exit code of an exchange that was to reach a fixed point."""
    if outcome.abort == "transfer limit exceeded" or outcome.result.limit_reached:
        return ExitCode.LIMIT
    if outcome.abort in _CONNECTION:
        return ExitCode.CONNECTION
    if outcome.abort in _LOCAL:
        return ExitCode.STORE
    if outcome.abort:
        return ExitCode.PROTOCOL
    if not outcome.result.fixed_point:
        return ExitCode.CONNECTION
    return ExitCode.OK if _could_anything_be_shown(outcome) else ExitCode.NOTHING


def _could_anything_be_shown(outcome: Outcome) -> bool:
    """Something was, or there is nothing on either side: two empty laces are equal."""
    result = outcome.result
    return bool(result.advertised_to_peer or result.advertised_by_peer or result.both_hold_nothing)


def why_nothing_moved(outcome: Outcome) -> str:
    """One line for an exchange that ended well and moved nothing; empty if it moved something or broke off."""
    result = outcome.result
    moved = result.received_hashes or result.sent_hashes or result.rejected_hashes
    if outcome.abort or not result.fixed_point or moved:
        return ""
    if result.both_hold_nothing:
        return "nothing moved: both laces are empty"
    ours, theirs = result.advertised_to_peer, result.advertised_by_peer
    if not ours and not theirs:
        why = "neither side showed the other a record that both rules select"
        return f"nothing was allowed: {why}; --expose shows yours, and the peer decides what it shows you"
    shown = [
        f"you showed {count_of(ours, 'record')}" if ours else "you showed nothing (see --expose)",
        f"the peer showed {count_of(theirs, 'record')}" if theirs else "the peer showed nothing",
    ]
    lacks = "neither lacks one that its rules take"
    return f"nothing moved: {' and '.join(shown)}, and {lacks}; `lace why` tells of one record"


def outcome_fields(outcome: Outcome, seconds: float, bytes_in: int, bytes_out: int) -> dict[str, object]:
    """Everything there is to say, under names for programs."""
    result = outcome.result
    return {
        "fixed_point": result.fixed_point,
        "abort": outcome.abort or None,
        "detail": outcome.detail or None,
        "limit": result.limit_reached or None,
        "plan": result.exchange_plan_id,
        "peer": result.peer_verifier,
        "link": result.link_id,
        "loops": result.loops,
        "received": len(result.received_hashes),
        "sent": len(result.sent_hashes),
        "rejected": dict(result.rejected_hashes),
        "not_available": list(result.not_available_hashes),
        "record_bytes_received": result.bytes_received,
        "record_bytes_sent": result.bytes_sent,
        "bytes_received": bytes_in,
        "bytes_sent": bytes_out,
        "seconds": round(seconds, 6),
        "shown_to_peer": result.advertised_to_peer,
        "shown_by_peer": result.advertised_by_peer,
        "nothing_moved": why_nothing_moved(outcome) or None,
    }


def print_outcome(outcome: Outcome, seconds: float, bytes_in: int, bytes_out: int, *, as_json: bool) -> None:
    """The summary after an exchange; an abort is told on stderr as every failure is."""
    if as_json:
        print_json(outcome_fields(outcome, seconds, bytes_in, bytes_out))
    else:
        _print_summary(outcome, seconds, bytes_in, bytes_out)
        if line := why_nothing_moved(outcome):
            say(line, err=True)
    if outcome.abort:
        print_failure(f"the exchange was aborted: {outcome.abort}", [("why", outcome.detail)])


def _print_summary(outcome: Outcome, seconds: float, bytes_in: int, bytes_out: int) -> None:
    result = outcome.result
    # Between two laces of this machine nothing goes over a wire: then records are what is counted.
    moved = max(bytes_in, bytes_out) or result.bytes_received + result.bytes_sent
    rate = f", {human_size(int(moved / seconds))}/s" if moved and seconds > 0 else ""
    rows: list[tuple[str, object]] = [("ended", _ending(outcome))]
    if result.exchange_plan_id:
        rows.append(("plan", result.exchange_plan_id))
    if result.peer_verifier:
        rows.append(("peer", result.peer_verifier))
    rows += [
        ("received", f"{count_of(len(result.received_hashes), 'record')}, {human_size(result.bytes_received)}"),
        ("sent", f"{count_of(len(result.sent_hashes), 'record')}, {human_size(result.bytes_sent)}"),
    ]
    if result.not_available_hashes:
        rows.append(("not available", count_of(len(result.not_available_hashes), "record")))
    if bytes_in or bytes_out:
        rows.append(("on the wire", f"{human_size(bytes_in)} in, {human_size(bytes_out)} out"))
    rows.append(("took", f"{seconds:.2f} s{rate}"))
    print_fields(rows)
    print_rejected(dict(result.rejected_hashes))


def _ending(outcome: Outcome) -> str:
    result = outcome.result
    loops = count_of(result.loops, "loop")
    if outcome.abort:
        limit = f" at the limit {result.limit_reached}" if result.limit_reached else ""
        return f"aborted{limit} after {loops}"
    if result.limit_reached:
        return f"at the limit {result.limit_reached} after {loops}"
    return f"at a fixed point after {loops}" if result.fixed_point else f"by the peer after {loops}"


def print_rejected(rejected: dict[str, str]) -> None:
    """What came and was not taken, and why."""
    if not rejected:
        return
    say(f"rejected {count_of(len(rejected), 'record')}:", err=True)
    for record, reason in list(rejected.items())[:MOST_REASONS]:
        say(f"  {record}  {reason}", err=True)
    if len(rejected) > MOST_REASONS:
        say(f"  and {len(rejected) - MOST_REASONS:,} more; --json names them all", err=True)
