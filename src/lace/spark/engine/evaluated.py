"""What an evaluation over frames came to: its frames, and how they were worked out.

Rule: it is a dictionary of frames, and what it says of itself costs no job.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lace.spark.engine.executor import SparkEvaluation


class EvaluatedFrames(dict[str, DataFrame]):
    """A frame for each predicate that was asked for, by its name."""

    def __init__(self, frames: Mapping[str, DataFrame], found: SparkEvaluation) -> None:
        super().__init__(frames)
        self._found = found

    def explain(self) -> str:
        """How it was worked out, stratum by stratum: where, in how many rounds, and the plan of what is left lazy."""
        lines = [f"{number}. {step}" for number, step in enumerate(self._found.steps, 1)]
        return "\n".join(lines) if lines else "nothing was derived"
