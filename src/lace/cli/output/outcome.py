"""How the end of an exchange is printed, and its exit code.

Rule: 0 means converged. Each of these has its own number: a limit, an abort, a lost connection or early close, nobody
being allowed to see anything, a side refusing something, and content that our rules select but that lacks parts. An
exchange that moves nothing says why in one line. "Sent" counts what the peer confirmed to have kept; the rest is "sent,
not confirmed".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lace.cli.output.failure import ExitCode, print_failure
from lace.cli.output.output import BAD, GOOD, OPEN, print_fields, print_json, say, say_verdict
from lace.cli.output.words import count_of, human_size, rate, span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lace.interlace.result import InterlaceResult
    from lace.interlace.setup.terms import Terms
    from lace.policy.operand import Module
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.lace import Lace
    from lace.porcelain.visibility import NotExposed
    from lace.runtime.link.session import Outcome
    from lace.store.base import RecordStore

KEPT_OUT = "the peer shows you nothing, so you may not be a member there any more"
MOST_REASONS = 10
_CONNECTION = frozenset(("stream broken in the middle of a phase", "phase timeout", "cut", "refused by the peer"))
_LOCAL = frozenset(("local failure",))


def incomplete_after(lace: Lace, module: Module) -> list[Incomplete]:
    """The content that a lace's own rules select and that lacks parts there."""
    from lace.porcelain.completeness import selected_among

    return selected_among(list(lace.incomplete()), module, lace.store)


def exit_code_of(
    outcome: Outcome, incomplete: Sequence[Incomplete] = (), *, needs_confirmation: bool = True
) -> ExitCode:
    """The exit code of an exchange that should reach a fixed point; a relay gets no confirmations and needs none."""
    code = _exit_code(outcome, needs_confirmation)
    return ExitCode.INCOMPLETE if incomplete and code is ExitCode.OK else code


def _exit_code(outcome: Outcome, needs_confirmation: bool) -> ExitCode:
    if outcome.abort == "transfer limit exceeded" or outcome.result.limit_reached:
        return ExitCode.LIMIT
    if outcome.abort in _CONNECTION:
        return ExitCode.CONNECTION
    if outcome.abort in _LOCAL:
        return ExitCode.STORE
    if outcome.abort:
        return ExitCode.PROTOCOL
    if not outcome.is_complete:
        return ExitCode.CONNECTION
    if outcome.result.has_refusals or (needs_confirmation and outcome.result.unconfirmed_hashes):
        return ExitCode.REFUSED
    return ExitCode.OK if _could_anything_be_shown(outcome) else ExitCode.NOTHING


def _could_anything_be_shown(outcome: Outcome) -> bool:
    """Whether a side showed a record, or there is none on either side: two empty laces are equal."""
    result = outcome.result
    return bool(result.advertised_to_peer or result.advertised_by_peer or result.both_hold_nothing)


def held_back_here(store: RecordStore, terms: Terms, outcome: Outcome) -> NotExposed | None:
    """What our own exposure held back, if we listed nothing to the peer; evaluates our rules once more."""
    if outcome.abort or outcome.result.advertised_to_peer:
        return None
    from lace.porcelain.visibility import held_back
    from lace.runtime.clock import SystemClock

    return held_back(store, terms, outcome.result.peer_verifier, at=SystemClock().tai())


def held_back_line(held: NotExposed) -> str:
    """One line: how much our own side held back, and what would change that."""
    return f"{held}, so none can be sent; `--expose selected` shows what your rules select"


def why_nothing_moved(outcome: Outcome, held: NotExposed | None = None) -> str:
    """One line for an exchange that ended well and moved nothing; empty if it moved something or broke off."""
    result = outcome.result
    sent = result.sent_hashes or result.unconfirmed_hashes or result.refused_hashes
    moved = result.received_hashes or result.rejected_hashes or sent
    if not outcome.is_complete or moved or result.held_back or result.held_back_by_peer:
        return ""
    if result.both_hold_nothing:
        return "nothing moved: both laces are empty"
    ours, theirs = result.advertised_to_peer, result.advertised_by_peer
    if held is not None:
        peer = f"the peer showed {count_of(theirs, 'record')}" if theirs else "the peer showed nothing either"
        return f"{'nothing moved' if theirs else 'nothing was allowed'}: {held_back_line(held)}; {peer}"
    if not ours and not theirs:
        why = "neither side showed the other a record that both rules select"
        return f"nothing was allowed: {why}; --expose shows yours, and the peer decides what it shows you"
    shown = [
        f"you showed {count_of(ours, 'record')}" if ours else "you showed nothing (see --expose)",
        f"the peer showed {count_of(theirs, 'record')}" if theirs else "the peer showed nothing",
    ]
    lacks = "neither lacks a record that its rules take"
    return f"nothing moved: {' and '.join(shown)}, and {lacks}; `lace why` explains one record"


def outcome_fields(
    outcome: Outcome, seconds: float, bytes_in: int, bytes_out: int, held: NotExposed | None = None
) -> dict[str, object]:
    """The whole outcome under names for programs."""
    result = outcome.result
    return {
        "fixed_point": result.fixed_point,
        "converged": outcome.is_converged,
        "ending": outcome.status,
        "abort": outcome.abort or None,
        "detail": outcome.detail or None,
        "limit": result.limit_reached or None,
        "plan": result.exchange_plan_id,
        "peer": result.peer_verifier,
        "link": result.link_id,
        "loops": result.loops,
        "received": len(result.received_hashes),
        "sent": len(result.sent_hashes),
        "sent_not_confirmed": len(result.unconfirmed_hashes),
        "refused_by_peer": dict(result.refused_hashes),
        "held_back": dict(result.held_back),
        "held_back_by_peer": dict(result.held_back_by_peer.counts),
        "held_back_records": dict(result.held_back_by_peer.records),
        "rejected": dict(result.rejected_hashes),
        "not_available": list(result.not_available_hashes),
        "record_bytes_received": result.bytes_received,
        "record_bytes_sent": result.bytes_sent,
        "bytes_received": bytes_in,
        "bytes_sent": bytes_out,
        "seconds": round(seconds, 6),
        "shown_to_peer": result.advertised_to_peer,
        "shown_by_peer": result.advertised_by_peer,
        "nothing_moved": why_nothing_moved(outcome, held) or None,
        "held_back_here": None if held is None else held.records,
    }


def print_outcome(
    outcome: Outcome,
    seconds: float,
    bytes_in: int,
    bytes_out: int,
    *,
    held: NotExposed | None = None,
    incomplete: Sequence[Incomplete] = (),
    as_json: bool,
) -> None:
    """Print the summary of an exchange; an abort goes to stderr, as every failure does."""
    if as_json:
        lacking = {"incomplete": [one.to_json() for one in incomplete]}
        print_json(outcome_fields(outcome, seconds, bytes_in, bytes_out, held) | lacking)
    else:
        _print_summary(outcome, seconds, bytes_in, bytes_out, held)
        print_refused(outcome.result)
        print_incomplete(incomplete)
        if line := why_nothing_moved(outcome, held):
            say(line, err=True)
    if outcome.abort:
        print_failure(f"the exchange was aborted: {outcome.abort}", [("why", outcome.detail)])


def _print_summary(outcome: Outcome, seconds: float, bytes_in: int, bytes_out: int, held: NotExposed | None) -> None:
    result = outcome.result
    # Between two laces on this machine nothing goes over a wire, so records are counted instead.
    moved = max(bytes_in, bytes_out) or result.bytes_received + result.bytes_sent
    speed = f", {rate(moved, seconds)}" if moved and seconds > 0 else ""
    say_verdict(*_verdict(outcome))
    rows: list[tuple[str, object]] = [("peer", result.peer_verifier)] if result.peer_verifier else []
    rows += [
        ("received", f"{count_of(len(result.received_hashes), 'record')}, {human_size(result.bytes_received)}"),
        ("sent", sent_text(result)),
    ]
    rows += refusal_rows(result)
    if held is not None:
        rows.append(
            ("held back", f"{count_of(held.records, 'record')} of yours that the peer's rules cannot see (--expose)")
        )
    if result.not_available_hashes:
        rows.append(("not available", count_of(len(result.not_available_hashes), "record")))
    if bytes_in or bytes_out:
        rows.append(("on the wire", f"{human_size(bytes_in)} in, {human_size(bytes_out)} out"))
    rows.append(("took", f"{span(seconds)}{speed}"))
    if result.exchange_plan_id:
        rows.append(("plan", result.exchange_plan_id))
    print_fields(rows)
    print_rejected(dict(result.rejected_hashes))


def _verdict(outcome: Outcome) -> tuple[str, str]:
    """How an exchange ended, in one line."""
    result = outcome.result
    loops = f"after {count_of(result.loops, 'loop')}"
    if outcome.abort:
        limit = f" at the limit {result.limit_reached}" if result.limit_reached else ""
        return BAD, f"aborted{limit} {loops}: {outcome.abort}"
    if result.limit_reached:
        return BAD, f"stopped at the limit {result.limit_reached} {loops}"
    if result.closed_by_peer or not result.fixed_point:
        return BAD, f"ended early: {'the peer' if result.closed_by_peer else 'this side'} closed it {loops}"
    if result.has_refusals:
        return BAD, f"at a fixed point {loops}, but not everything was kept"
    if not _could_anything_be_shown(outcome):
        return BAD, f"at a fixed point {loops}, but nothing was allowed"
    if not result.is_converged:
        return OPEN, f"at a fixed point {loops}, but what was sent is not confirmed"
    moved = f"received {len(result.received_hashes):,}, sent {len(result.sent_hashes):,}"
    return GOOD, f"converged {loops}: {moved}"


def sent_text(result: InterlaceResult) -> str:
    """How much the peer confirmed, and how much was sent without a confirmation."""
    size = human_size(result.bytes_sent)
    if not result.unconfirmed_hashes:
        written = f", {size} written" if result.refused_hashes else f", {size}"
        return f"{count_of(len(result.sent_hashes), 'record')}{written}"
    loose = f"{count_of(len(result.unconfirmed_hashes), 'record')} sent, not confirmed"
    return (
        f"{count_of(len(result.sent_hashes), 'record')}, {loose}, {size}" if result.sent_hashes else f"{loose}, {size}"
    )


def refusal_rows(result: InterlaceResult) -> list[tuple[str, object]]:
    """A row for each way in which records were not kept; empty if all were."""
    refused = Counter(result.refused_hashes.values())
    found = (
        ("refused by peer", refused, ""),
        ("held back by peer", result.held_back_by_peer.counts, ", not asked for"),
        ("held back here", result.held_back, ", not asked for"),
    )
    return [
        (label, f"{count_of(sum(counts.values()), 'record')}: {reasons_text(counts)}{more}")
        for label, counts, more in found
        if counts
    ]


def reasons_text(counts: Mapping[str, int]) -> str:
    """`2 quota, 1 horizon`."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))


def print_refused(result: InterlaceResult) -> None:
    """Print what the peer did not keep or ask for, record by record."""
    print_not_kept({**result.held_back_by_peer.records, **result.refused_hashes})


def print_not_kept(reasons: Mapping[str, str]) -> None:
    """Print the records that a peer would not keep, with its reasons."""
    if reasons:
        _print_records(f"the peer refused {count_of(len(reasons), 'record')}:", reasons)


def print_left_out(result: InterlaceResult) -> None:
    """Print what this side did not get or keep, in a few lines on stderr."""
    for label, said in refusal_rows(result):
        say(f"{label}: {said}", err=True)
    if result.not_available_hashes:
        say(f"not available: {count_of(len(result.not_available_hashes), 'record')}", err=True)
    print_rejected(dict(result.rejected_hashes))


def print_incomplete(incomplete: Sequence[Incomplete]) -> None:
    """Print which content lacks parts, and which parts."""
    for one in incomplete[:MOST_REASONS]:
        say(f"{one}", err=True)
    if len(incomplete) > MOST_REASONS:
        say(f"and {len(incomplete) - MOST_REASONS:,} more incomplete; --json names them all", err=True)


def print_rejected(rejected: dict[str, str]) -> None:
    """Print which received records were rejected, and why."""
    if not rejected:
        return
    _print_records(f"rejected {count_of(len(rejected), 'record')}:", rejected)


def _print_records(headline: str, reasons: Mapping[str, str]) -> None:
    say(headline, err=True)
    for record, reason in list(reasons.items())[:MOST_REASONS]:
        say(f"  {record}  {reason}", err=True)
    if len(reasons) > MOST_REASONS:
        say(f"  and {len(reasons) - MOST_REASONS:,} more; --json names them all", err=True)
