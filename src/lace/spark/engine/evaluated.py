"""What an evaluation over frames came to: its frames, how they were worked out, and why their rows hold.

Rule: it is a dictionary of frames; what it says of how it was worked out costs no job.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lace.datalog.explain.explanation import Explanation
from lace.errors import InvalidInput
from lace.spark.engine.executor import SparkEvaluation
from lace.spark.engine.provenance import WholeEvaluation, derivations, explained, one_predicate


class EvaluatedFrames(dict[str, DataFrame]):
    """A frame for each predicate that was asked for, by its name."""

    def __init__(self, frames: Mapping[str, DataFrame], found: SparkEvaluation, of: WholeEvaluation | None) -> None:
        super().__init__(frames)
        self._found = found
        self._of = of

    def explain(self) -> str:
        """How it was worked out, stratum by stratum: where, in how many rounds, and the plan of what is left lazy."""
        lines = [f"{number}. {step}" for number, step in enumerate(self._found.steps, 1)]
        return "\n".join(lines) if lines else "nothing was derived"

    def derivations(self, predicate: str) -> DataFrame:
        """Every way in which every row of a predicate is derived: its columns, `rule`, and `premises`, a list of texts.

        Rows of recursive rules may stand on each other in circles here; `why` gives a proof.
        """
        of = self._whole("derivations")
        return derivations(of, one_predicate(of, predicate))

    def why(self, goal: str) -> Explanation:
        """The proof of the first fact that matches a goal, or where each rule fails if none does.

        Relations of up to `small_rows` are read once; of longer ones each step of the search is a small job.
        """
        return explained(self._whole("why"), goal)

    def _whole(self, asked: str) -> WholeEvaluation:
        if self._of is None:
            raise InvalidInput(
                "of an evaluation for a goal only the goal's rows are here: evaluate without `goal`, then ask again",
                rule=asked,
            )
        return self._of
