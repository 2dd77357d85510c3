"""What a link may use in a while, and what it has used: token buckets (050, 060; docs/serving.md has the table).

Rule: a link that overdraws an account is not read from until it is level again; one that would have to wait longer
than it may is cut. Nothing is charged to a link but work that its own peer caused, and time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lace.limits import GIB, MIB, SECOND_NS


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast an account fills, and how much it holds when it is full."""

    per_s: float
    burst: float

    def times(self, factor: float) -> Rate:
        """So many times as much."""
        return Rate(self.per_s * factor, self.burst * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRates:
    """What one link of a stranger may use; a peer that wants more proves that it is trusted, or is dialled by us.

    `blocks` counts every block of the stream: tick blocks, phases, narrowing rounds. `cpu_s` is processor time of our
    threads and of the evaluating process that was spent for the link.
    """

    blocks: Rate = Rate(50, 400)  # of the stream: tick blocks, phases, narrowing rounds
    loops: Rate = Rate(5, 60)  # of an exchange
    epochs: Rate = Rate(0.1, 5)  # each may bring new rules
    bytes: Rate = Rate(64 * MIB, GIB)  # both ways
    cpu_s: Rate = Rate(0.25, 60)  # of our side's processors
    max_wait_s: float = 30.0  # who would have to be left unread for longer is cut
    known_factor: float = 20.0  # so many times as much for whom we dialled, trust by name, or have on this machine

    def for_known(self) -> LinkRates:
        """The same for a link that is no stranger's: a steady writer is not slowed, a broken one is still bounded."""
        return replace(
            self,
            blocks=self.blocks.times(self.known_factor),
            loops=self.loops.times(self.known_factor),
            epochs=self.epochs.times(self.known_factor),
            bytes=self.bytes.times(self.known_factor),
            cpu_s=self.cpu_s.times(self.known_factor),
        )


class Bucket:
    """One account; it may be overdrawn by the one charge that empties it."""

    def __init__(self, rate: Rate, now_ns: int) -> None:
        self._rate = rate
        self._level = rate.burst
        self._at_ns = now_ns

    def charge(self, amount: float, now_ns: int) -> None:
        """Take an amount out."""
        self._fill(now_ns)
        self._level -= amount

    def wait_s(self, now_ns: int) -> float:
        """Seconds until the account is level; 0 if it is."""
        self._fill(now_ns)
        return max(0.0, -self._level / self._rate.per_s)

    def _fill(self, now_ns: int) -> None:
        passed = max(0, now_ns - self._at_ns) / SECOND_NS
        self._level = min(self._rate.burst, self._level + passed * self._rate.per_s)
        self._at_ns = max(self._at_ns, now_ns)


_HEAD_END = b"\nData-Length: "
ACCOUNTS = ("blocks", "loops", "epochs", "bytes", "cpu_s")


@dataclass(slots=True)
class Debt:
    """The account that a link has to wait for longest."""

    account: str
    wait_s: float


class Meter:
    """The accounts of one link."""

    def __init__(self, rates: LinkRates, now_ns: int) -> None:
        self.rates = rates
        self._buckets = {name: Bucket(getattr(rates, name), now_ns) for name in ACCOUNTS}
        self._used = dict.fromkeys(ACCOUNTS, 0.0)

    @property
    def used(self) -> Mapping[str, float]:
        """What was charged since the link began."""
        return self._used

    def charge(self, account: str, amount: float, now_ns: int) -> None:
        """Work of the peer's making was done."""
        self._used[account] += amount
        self._buckets[account].charge(amount, now_ns)

    def debt(self, now_ns: int) -> Debt | None:
        """What has to be waited for before more is read, if anything."""
        waits = ((bucket.wait_s(now_ns), name) for name, bucket in self._buckets.items())
        wait_s, account = max(waits)
        return Debt(account, wait_s) if wait_s > 0 else None


def slices(data: bytes, max_blocks: int = 64, *, holds_records: bool = False) -> Iterator[bytes]:
    """Received bytes in pieces of few blocks each, for what a block causes runs on the event loop; mostly one piece.

    Where records are expected, the blank lines of their heads end no block.
    """
    blocks = data.count(b"\n\n")
    if holds_records and blocks > max_blocks:
        blocks -= data.count(_HEAD_END)
    if blocks <= max_blocks:
        yield data
        return
    start = 0
    while start < len(data):
        end = start
        for _ in range(max_blocks):
            end = data.find(b"\n\n", end + 1)
            if end < 0:
                break
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end
