"""Two sessions over real stores behind real gates, joined by bytes: what one brings the other may refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlace.pair import ALL, START_NS, config_of, hash_of
from interop.harness import filled
from lace.interlace.setup.terms import Terms
from lace.limits import SECOND_NS
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.records.model import Blob, Plex
from lace.records.write import encode_record
from lace.runtime.host.host import LocalHost
from lace.runtime.host.quotas import Allowance, GateRules, QuotaGate, Quotas, wants_lengths
from lace.store.base import RecordStore
from runtime.memory_link import End, MemoryLink

NOW = TAI.from_ns(START_NS)
LATE = TAI.from_ns(START_NS + 1000 * SECOND_NS)
QUOTA = GateRules(quotas=Quotas(known_peer=Allowance(records=2)), peer="p")
HORIZON = GateRules(horizon=lambda: NOW, peer="p")


def plex_at(name: str, tai: TAI = NOW, data: bytes = b"") -> bytes:
    """A record with a date."""
    return encode_record(Plex(group="u", app="a", name=name, tai=tai, headers=(), blob=Blob(data)))


def at_most(count: int) -> GateRules:
    """A quota of records."""
    return GateRules(quotas=Quotas(known_peer=Allowance(records=count)), peer="p")


def bytes_at_most(size: int) -> GateRules:
    """A quota of bytes."""
    return GateRules(quotas=Quotas(known_peer=Allowance(bytes=size)), peer="p")


def end_of(
    index: int, records: Sequence[bytes] | RecordStore, rules: GateRules, module: Module = ALL, **options: Any
) -> End:
    """One end whose peer is held to some rules; it announces what a node would."""
    store = filled(records) if isinstance(records, Sequence) else records

    def host(store: RecordStore, terms: Terms) -> LocalHost:
        return LocalHost(store, terms, gate=QuotaGate(store, rules))

    seat = {"refusals": True, "salt": index + 1, "wants_lengths": wants_lengths(store, rules), **options}
    return End(config_of(index, module, **seat), store, host)


def run(
    first: Sequence[bytes] | RecordStore,
    second: Sequence[bytes] | RecordStore,
    rules: GateRules,
    *,
    receiver: int = 1,
    module: Module = ALL,
    **options: Any,
) -> tuple[End, End]:
    """An exchange of two ends; the receiver is the one that has rules."""
    kept = [GateRules(), GateRules()]
    kept[receiver] = rules
    ends = end_of(0, first, kept[0], module, **options), end_of(1, second, kept[1], module, **options)
    MemoryLink(ends).run()
    return ends


def lines(end: End, *names: str) -> list[str]:
    """What an end wrote of some predicates, line by line."""
    return [line for line in bytes(end.sent).decode("utf-8", "replace").splitlines() if line.startswith(names)]


def hashes_of(records: Sequence[bytes]) -> set[str]:
    return {str(hash_of(record)) for record in records}
