"""What an evaluation did: rows and time per plan node, memory held (`lace explain --plan`).

Rule: counting never changes a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from lace.datalog.planning.plan import AnyNode, RulePlan, Scan, Unit, chain
from lace.values import dataclass


@dataclass(slots=True)
class NodeStats:
    """What one plan node gave, over all rounds; `seconds` include the nodes it reads from.

    The rows of a `Project` are the facts that its rule was the first to find.
    """

    rows: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Stats:
    """What one evaluation did."""

    plans: list[RulePlan] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)  # stratum → rounds that added facts
    load_seconds: float = 0.0
    seconds: float = 0.0
    memory_bytes: int = 0
    rows_touched: int = 0  # P36
    _nodes: dict[int, NodeStats] = field(default_factory=dict)

    def add(self, node: AnyNode, rows: int, seconds: float) -> None:
        """Count one batch of a node."""
        found = self._nodes.get(id(node))  # plans are kept, so that an id stays one node's
        if found is None:
            found = self._nodes[id(node)] = NodeStats()
        found.rows += rows
        found.seconds += seconds

    def of(self, node: AnyNode) -> NodeStats:
        """The figures of a node; its own time only."""
        whole = self._nodes.get(id(node), NodeStats())
        below = NodeStats() if isinstance(node, Unit | Scan) else self._nodes.get(id(node.input), NodeStats())
        return NodeStats(whole.rows, max(0.0, whole.seconds - below.seconds))

    def lines(self) -> Iterator[str]:
        """The plans as text, each node with its rows and its own time."""
        for plan in self.plans:
            head, *nodes = str(plan).split("\n")
            yield head
            for text, node in zip(nodes, reversed(chain(plan.root)), strict=True):
                figures = self.of(node)
                yield f"{text}   [{figures.rows:,} rows, {figures.seconds * 1000:.2f} ms]"
