"""What a link may use in a while, and what it has used: token buckets (050, 060; docs/serving.md has the table).

Rule: a link that overdraws an account is not read from until it is level again; one that would have to wait longer
than it may is cut. Nothing is charged to a link but work that its own peer caused, and time is an argument.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lace.limits import GIB, MIB, SECOND_NS
from lace.values import dataclass

ACCOUNTS = ("blocks", "loops", "epochs", "bytes", "cpu_s")
_HEAD_END = b"\nData-Length: "
_BLANK = re.compile(rb"\n\n")  # a pattern finds so short a text in half the time of `count`


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

    blocks: Rate = Rate(25, 400)  # of the stream: tick blocks, phases, narrowing rounds
    loops: Rate = Rate(5, 60)  # of an exchange
    epochs: Rate = Rate(0.1, 3)  # each may bring new rules
    bytes: Rate = Rate(64 * MIB, GIB)  # both ways
    cpu_s: Rate = Rate(0.25, 60)  # of our side's processors
    max_wait_s: float = 30.0  # who would have to be left unread for longer is cut
    peer_cpu_s: Rate = Rate(0.5, 120)  # of all links of one peer together, whether they are open or were
    known_factor: float = 20.0  # so many times as much for whom we dialled, trust by name, or have on this machine

    def for_known(self) -> LinkRates:
        """The rates of a link to a peer we know: a steady writer is not slowed, a broken one is still bounded."""
        names = (*ACCOUNTS, "peer_cpu_s")
        return replace(self, **{name: getattr(self, name).times(self.known_factor) for name in names})


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

    @property
    def is_overdrawn(self) -> bool:
        """Whether it was, when something was last taken out; it only fills since."""
        return self._level < 0

    def has(self, amount: float, now_ns: int) -> bool:
        """Whether so much can be taken out without overdrawing it."""
        self._fill(now_ns)
        return self._level >= amount

    def is_full(self, now_ns: int) -> bool:
        """Whether it is as a new one would be."""
        self._fill(now_ns)
        return self._level >= self._rate.burst

    def _fill(self, now_ns: int) -> None:
        passed = now_ns - self._at_ns
        if passed > 0:
            level, rate = self._level + passed / SECOND_NS * self._rate.per_s, self._rate
            self._level = level if level < rate.burst else rate.burst
            self._at_ns = now_ns


@dataclass(slots=True)
class Debt:
    """The account that a link has to wait for longest."""

    account: str
    wait_s: float


class AccountBook:
    """The processor time of peers, by key or network prefix: shared by all links of a peer, and outliving them.

    A peer that hangs up and comes back still owes what it owed. An account that is full again is forgotten. Beyond
    the limit the least recently used one is: an attacker with more networks than that has more accounts anyway.
    """

    def __init__(self, max_peers: int = 4096) -> None:
        self._max_peers = max_peers
        self._known: OrderedDict[tuple[str, Rate], Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, peer: str, rates: LinkRates, now_ns: int) -> Bucket:
        """The account of one peer."""
        key = (peer, rates.peer_cpu_s)
        found = self._known.pop(key, None) or Bucket(rates.peer_cpu_s, now_ns)
        if len(self._known) >= self._max_peers:
            self._forget(now_ns)
        self._known[key] = found
        return found

    def _forget(self, now_ns: int) -> None:
        for key in [key for key, account in self._known.items() if account.is_full(now_ns)]:
            del self._known[key]
        while len(self._known) >= self._max_peers:
            self._known.popitem(last=False)


class LinkMeter:
    """The accounts of one link, and the one that it shares with the other links of its peer."""

    def __init__(self, rates: LinkRates, now_ns: int, shared: Bucket | None = None) -> None:
        self.rates = rates
        self._buckets = {name: Bucket(getattr(rates, name), now_ns) for name in ACCOUNTS}
        self._shared = shared
        self._used = dict.fromkeys(ACCOUNTS, 0.0)

    @property
    def used(self) -> Mapping[str, float]:
        """What was charged since the link began."""
        return self._used

    def charge(self, account: str, amount: float, now_ns: int) -> None:
        """Work of the peer's making was done."""
        self._used[account] += amount
        self._buckets[account].charge(amount, now_ns)
        if self._shared is not None and account == "cpu_s":
            self._shared.charge(amount, now_ns)

    @property
    def _is_overdrawn(self) -> bool:
        """Whether an account was, when it was last looked at: none is that was not."""
        shared = self._shared is not None and self._shared.is_overdrawn
        return shared or any(bucket.is_overdrawn for bucket in self._buckets.values())

    def debt(self, now_ns: int) -> Debt | None:
        """What has to be waited for before more is read, if anything."""
        if not self._is_overdrawn:
            return None
        waits = [(bucket.wait_s(now_ns), name) for name, bucket in self._buckets.items()]
        if self._shared is not None:
            waits.append((self._shared.wait_s(now_ns), "cpu_s of all its links"))
        wait_s, account = max(waits)
        return Debt(account, wait_s) if wait_s > 0 else None


def slices(data: bytes, max_blocks: int = 64, *, holds_records: bool = False) -> Iterator[bytes]:
    """Received bytes in pieces of few blocks each, for what a block causes runs on the event loop; mostly one piece.

    Where records are expected, the blank lines of their heads end no block.
    """
    blocks = len(_BLANK.findall(data))
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
