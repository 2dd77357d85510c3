"""Where each rule of a lowered policy comes from: the source-map sidecar (040, annotations and provenance).

Rule: metadata only. No executor gets these facts, so no rule can read them (040-PROV-06).
"""

from __future__ import annotations

from collections.abc import Iterator

from lace.datalog.language.canonical import format_rule, rule_id
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.syntax import Fact, Predicate, Rule
from lace.notation.identifiers import LacegramId, RuleId
from lace.values import dataclass

RULE_SOURCE = Predicate("RuleSource", 3)
RULE_GENERATED_BY = Predicate("RuleGeneratedBy", 3)
RULE_ORIGIN = Predicate("RuleOrigin", 2)

OPERAND_SCOPE = "040-operand-scope"
INTERSECTION = "040-intersection"
LOWERING = "040-lowering"
EXPOSURE_SCOPE = "040-exposure-scope"
QUERY_GATE = "020-query-gate"
QUERY_VIEW = "020-query-view"
SEND_GATE = "lace-send-gate"  # P32


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredRule:
    """One generated rule, the stage that made it, whose rule it is, and the source rule if it has one."""

    rule: Rule
    stage: str
    detail: str
    origin: str = ""  # of the operand it stands for; empty for rules of the profile itself
    source: tuple[LacegramId, RuleId] | None = None

    @property
    def id(self) -> RuleId:
        """`U.` of the generated rule."""
        return rule_id(self.rule)

    @property
    def line(self) -> str:
        """The generated rule as text."""
        return format_rule(self.rule)

    def facts(self) -> Iterator[Fact]:
        """Its sidecar facts."""
        yield Fact(RULE_GENERATED_BY, (self.id, self.stage, self.detail))  # 040-PROV-04
        if self.source is not None:
            yield Fact(RULE_SOURCE, (self.id, *self.source))  # 040-PROV-03
        if self.origin:
            yield Fact(RULE_ORIGIN, (self.id, self.origin))  # 040-PROV-05


@dataclass(frozen=True, slots=True)
class Provenance:
    """Every generated rule of a lowered policy; one rule may have several sources."""

    rules: tuple[LoweredRule, ...]

    def of(self, rule: RuleId) -> tuple[LoweredRule, ...]:
        """Where a generated rule comes from."""
        return tuple(lowered for lowered in self.rules if lowered.id == rule)

    def facts(self) -> list[Fact]:
        """The sidecar as facts, sorted, each once."""
        return sorted({fact for lowered in self.rules for fact in lowered.facts()})

    def text(self) -> str:
        """The sidecar as fact lines."""
        return "\n".join(map(format_fact, self.facts()))
