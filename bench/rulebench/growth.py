"""How time grows with the number of facts: a fitted power, and a picture."""

from __future__ import annotations

import math
from pathlib import Path

Points = list[tuple[float, float]]  # facts, seconds


def exponent(points: Points) -> float:
    """The slope of the line through the logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def draw(target: Path, curves: dict[str, Points], unit: str) -> None:
    """One line a program, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name, points in curves.items():
        axes.loglog(*zip(*points, strict=True), marker="o", label=f"{name} (power {exponent(points):.2f})")
    axes.set_xlabel("facts, given and derived")
    axes.set_ylabel(unit)
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, bbox_inches="tight")
