"""Assertions about what moved and what was withheld, which say why when they fail."""

from __future__ import annotations

from collections.abc import Iterable

from lace.notation.identifiers import Verifier
from lace.porcelain.diagnosis import why
from lace.porcelain.exchange import Exchanged, Expose, Select
from lace.porcelain.lace import Lace
from lace.porcelain.why import Walk
from lace.runtime.link.session import Outcome

# Words for a gate, by how its name begins; `lace.why` has the whole names.
GATES = {
    "stored": "stored",
    "valid": "valid",
    "selected": "selected by its own rules",
    "exposed": "exposed",
    "selected there": "selected by the other side's rules",
    "advertised": "advertised",
    "missing": "missing",
    "wanted": "wanted by",
}


def assert_moved(done: Exchanged | Outcome, into: Lace, records: Iterable[str]) -> None:
    """That an exchange ended well and brought exactly these records into a lace, which holds them."""
    wanted = {str(record) for record in records}
    results = (done.first, done.second) if isinstance(done, Exchanged) else (done.result,)
    came = {str(record) for result in results for record in result.received_hashes if into.store.have(record)}
    assert done.status in ("converged", "incomplete"), f"the exchange ended {done.status}"
    assert came == wanted, _difference(came, wanted)


def assert_withheld(
    record: str,
    sender: Lace,
    receiver: Lace,
    *,
    at: str | None = None,
    select: Select = None,
    expose: Expose | None = None,
    their_select: Select = None,
    there: Verifier | None = None,
) -> Walk:
    """That a record does not go to a peer under these rules, and at which gate it stops: a word of `GATES`."""
    if at is not None and at not in GATES:
        raise ValueError(f"a gate is one of {', '.join(GATES)}, not {at!r}")
    known = "unknown" if their_select is None else their_select
    walked = why(sender, record, receiver, select=select, expose=expose, their_select=known, there=there)
    stopped = walked.stopped
    assert stopped is not None, f"{record} passes every gate: it would move"
    is_there = at is None or stopped.name.startswith(GATES[at])
    assert is_there, f"{record} stops at {stopped.name!r} and not at {at!r}: {stopped.said}"
    return walked


def _difference(came: set[str], wanted: set[str]) -> str:
    missing, more = sorted(wanted - came), sorted(came - wanted)
    return f"did not come: {missing or 'none'}; came and was not expected: {more or 'none'}"
