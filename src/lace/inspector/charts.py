"""Small drawings: growth over time, bars, and lines of what happened lately.

Rule: a drawing has a text alternative with the same numbers, is drawn by the server, and is coloured by classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lace.inspector.html import Markup, join, tag

_WIDTH, _HEIGHT, _FOOT = 320, 96, 16


class Point(NamedTuple):
    """One value of a drawing and its label."""

    label: str
    value: float


def area_chart(told: str, points: Sequence[Point]) -> Markup:
    """Values over time as a filled line, with the first and last label and the highest value written."""
    most = max((point.value for point in points), default=0) or 1
    floor = _HEIGHT - _FOOT
    across = _WIDTH / max(1, len(points) - 1)
    places = [(place * across, floor - (floor - 12) * point.value / most) for place, point in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    drawn = join(
        tag("polygon", points=f"0,{floor} {line} {_WIDTH},{floor}", class_="area"),
        tag("polyline", points=line, class_="line"),
        tag("text", points[0].label, x=0, y=_HEIGHT - 2),
        tag("text", points[-1].label, x=_WIDTH, y=_HEIGHT - 2, text_anchor="end"),
        tag("text", f"{points[-1].value:,.0f}", x=_WIDTH, y=10, text_anchor="end", class_="strong"),
    )
    return tag("svg", drawn, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="area-chart", role="img", aria_label=told)


def sparkline(told: str, values: Sequence[float], kind: str = "") -> Markup:
    """What happened lately as a line without axes."""
    width, height = 120, 28
    most = max(values, default=0) or 1
    across = width / max(1, len(values) - 1)
    line = " ".join(f"{place * across:.1f},{height - 2 - (height - 4) * value / most:.1f}"
                    for place, value in enumerate(values))  # fmt: skip
    drawn = tag("polyline", points=line, class_=f"line {kind}".strip()) if len(values) > 1 else None
    return tag("svg", drawn, viewBox=f"0 0 {width} {height}", class_="sparkline", role="img", aria_label=told)
