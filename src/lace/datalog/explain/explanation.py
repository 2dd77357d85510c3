"""An explanation as one value: a proof or an absence, with the annotations of its rules.

Rule: as text it is a tree for people, as JSON the same tree for programs (docs/datalog.md has the schema).
"""

from __future__ import annotations

from lace.datalog.explain.absence import Absence
from lace.datalog.explain.data import Json, absence_json, proof_dot, proof_json
from lace.datalog.explain.proof import Proof
from lace.datalog.explain.text import format_absence, format_proof
from lace.datalog.language.annotations import Sidecar
from lace.datalog.language.formatting import format_atom
from lace.errors import NotFound
from lace.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A proof or an absence, with the annotations of its rules; as text it is a tree for people."""

    found: Proof | Absence
    annotations: Sidecar

    @property
    def holds(self) -> bool:
        """Whether the goal holds."""
        return isinstance(self.found, Proof)

    def __str__(self) -> str:
        if isinstance(self.found, Proof):
            return format_proof(self.found, self.annotations)
        return format_absence(self.found, self.annotations)

    def to_json(self) -> Json:
        """The explanation for programs."""
        if isinstance(self.found, Proof):
            return proof_json(self.found, self.annotations)
        return absence_json(self.found, self.annotations)

    def to_dot(self) -> str:
        """A proof as a Graphviz graph."""
        if isinstance(self.found, Proof):
            return proof_dot(self.found, self.annotations)
        raise NotFound(f"{format_atom(self.found.goal)} does not hold, so there is no proof to draw")
