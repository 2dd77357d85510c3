"""The notebook of the demo runs from its first cell to its last, and its plots show what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).parent.parent.parent / "demo" / "datalog-on-spark.ipynb"


@pytest.mark.spark
@pytest.mark.long
def test_the_notebook_runs_and_plots(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    known: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), known)
    said = capsys.readouterr().out
    assert "Needs('pyspark','py4j')\n│ by Needs(P,Q) :- Requires(P,Q)." in said
    assert "Needs('py4j','pyspark') does not hold" in said
    largest, ways = (pyplot.figure(number).axes[0] for number in pyplot.get_fignums())
    needed = {(row["P"], row["Q"]) for row in known["found"]["Needs"].collect()}
    counted = sorted((sum(pair[0] == package for pair in needed) for package in {p for p, _ in needed}), reverse=True)
    assert sorted((bar.get_width() for bar in largest.patches), reverse=True) == counted[:12]
    assert sum(bar.get_height() for bar in ways.patches) == len(needed)
    assert known["requires"].count() < len(needed) <= known["ways"].count()
    pyplot.close("all")
