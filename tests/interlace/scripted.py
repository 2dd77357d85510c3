"""One real machine against a peer that says exactly what a test writes, line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interlace.pair import ALL, EXPOSE_ALL, START_NS, Side, config_of
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement, canonical_bytes
from lace.interlace.effects import EndBlock, SendFacts, SendRecords, SendResource
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason
from lace.interlace.setup.hello import LIMIT_NAMES
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact
from lace.notation.factline import format_fact, parse_fact
from lace.policy.compile import ExchangePlan, agree
from lace.policy.exposure import Exposure
from lace.policy.operand import Module

TAI_TEXT = "1640995200:000000000"
SECOND = 1_000_000_000


class _Sink(Side):
    """The scripted peer's end: it only collects."""


class Scripted:
    """Our machine has index 0; the scripted peer has index 1 unless told otherwise."""

    def __init__(
        self,
        *,
        module: Module = ALL,
        peer_module: Module = ALL,
        expose: tuple[Exposure, ...] = EXPOSE_ALL,
        stored: tuple[bytes, ...] = (),
        **options: Any,
    ) -> None:
        self.side = Side(config_of(0, module, **{"exposures": expose, **options}))
        self.peer = _Sink(config_of(1, peer_module))
        self.peer_module = peer_module
        self.side.put(*stored)
        self.now_ns = START_NS
        self._seen = 0
        self.side.perform(self.side.machine.start(self.now_ns), self.peer)

    # --- what our machine did ----------------------------------------------------------------------------------

    @property
    def plan(self) -> ExchangePlan:
        return agree(self.side.terms.module, self.peer_module)

    @property
    def label(self) -> str:
        """The peer's source label."""
        return self.plan.operands[1].origin

    @property
    def own_label(self) -> str:
        return self.plan.operands[0].origin

    @property
    def phase(self) -> Phase:
        return self.side.machine.phase

    @property
    def reason(self) -> AbortReason | None:
        return self.side.aborted.reason if self.side.aborted else None

    def heard(self) -> list[str]:
        """What our machine sent since last asked: fact lines, `` for a blank line, `<resource R…>`, `<record …>`."""
        lines: list[str] = []
        for effect in self.side.wire[self._seen :]:
            match effect:
                case SendFacts(facts):
                    lines += map(format_fact, facts)
                case list():
                    for claim in effect:
                        source, longest = self.side.machine.agreement.own_source, self.side.terms.max_line_bytes
                        lines += canonical_bytes(claim, source, longest).decode().splitlines()
                case EndBlock():
                    lines.append("")
                case SendResource(identifier):
                    lines.append(f"<resource {identifier}>")
                case SendRecords(hashes=hashes):
                    lines += [f"<record {record}>" for record in hashes]
        self._seen = len(self.side.wire)
        return lines

    # --- what the peer does ------------------------------------------------------------------------------------

    def give(self, item: given.Input) -> None:
        self.side.perform(self.side.machine.receive(item, self.now_ns), self.peer)
        while self.side.results:
            self.side.perform(self.side.machine.receive(self.side.results.popleft(), self.now_ns), self.peer)

    def say(self, *lines: str) -> None:
        """A whole block."""
        self.begin(*lines)
        if not self.side.is_over:
            self.give(given.BlockEnded())

    def begin(self, *lines: str) -> None:
        """Some lines of a block."""
        if lines:
            facts = tuple(parse_fact(line, 1 << 20) for line in lines)
            self.give(given.FactsReceived(facts, sum(len(line.encode()) + 1 for line in lines)))

    def send_records(self, *stored: bytes, claimed: tuple[str, ...] = ()) -> None:
        """Records as their marklines claim."""
        for position, data in enumerate(stored):
            name = claimed[position] if claimed else data.split(b"\n", 1)[0].decode().split(": ", 1)[1]
            self.side.arrived.setdefault(name, []).append(data)
            self.give(given.RecordsReceived([(name, len(data))]))

    def resource(self, module: Module | None = None) -> None:
        sent = module or self.peer_module
        self.give(given.ResourceReceived(sent.id, "lacegram", sent.text.encode()))

    def operand_line(self, index: str = "1", origin: str | None = None, facet: str = "selector") -> str:
        return f"ExchangeOperand('{index}','{self.peer_module.id}','{origin or self.label}','{facet}')"

    def setup(self) -> None:
        """A proper setup of the peer."""
        if self.peer_module.id != self.side.terms.module.id:
            self.resource()
        self.say(self.operand_line())

    def hello_lines(self, **changes: str | list[str] | None) -> list[str]:
        """A proper hello; a keyword replaces the lines of that predicate, None leaves them out."""
        fields = sorted(self.plan.requirements.names)
        lines: dict[str, list[str]] = {
            "HelloExchangePlan": [f"HelloExchangePlan('{self.plan.id}')"],
            "HelloTAI": [f"HelloTAI('{TAI_TEXT}')"],
            "HelloTickInterval": ["HelloTickInterval('10000000000')"],
            "HelloRecordFormat": ["HelloRecordFormat('H3')"],
            "HelloAdvertisedField": [f"HelloAdvertisedField('{name}')" for name in fields],
            "HelloLimit": [],
        }
        if self.plan.requirements.all_fields:
            lines["HelloAllAdvertisedFields"] = ["HelloAllAdvertisedFields()"]
        for name, change in changes.items():
            lines[name] = [] if change is None else [change] if isinstance(change, str) else change
        return [line for group in lines.values() for line in group]

    def hello(self, **changes: str | list[str] | None) -> None:
        self.say(*self.hello_lines(**changes))

    def open(self, **changes: str | list[str] | None) -> Scripted:
        """Setup and hello done: the first listing phase, our adv is out."""
        self.setup()
        self.hello(**changes)
        return self

    def with_partitions(self, value: int = 16_384) -> Scripted:
        """The same, with partitions agreed."""
        return self.open(HelloLimit=f"HelloLimit('max_partition_summaries','{value}')")

    def advertise(self, *records: str) -> None:
        """A listing of bare records."""
        self.say(*(self.advertised(record) for record in records))

    def advertised(self, record: str) -> str:
        return f"Advertised('{record}','{self.label}')"

    def claim(self, record: str, name: str, value: str, index: str = "0") -> str:
        return f"AdvertisedField('{record}','{self.label}','{name}','{index}','{value}')"


def limits_with(**values: int) -> ExchangeLimits:
    """The default limits with some changed."""
    assert set(values) <= {*LIMIT_NAMES, "phase_timeout_ns"}
    return replace(ExchangeLimits(), **values)


__all__ = ["SECOND", "TAI_TEXT", "Advertisement", "Fact", "Scripted", "limits_with"]
