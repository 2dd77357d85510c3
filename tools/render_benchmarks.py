"""Render bench/results/*.json: docs/benchmarks.md with its chart to read, and docs/benchmarks/TOPIC.md with the tables.

Each file is {"topic", "title", "columns", "rows", "claims": [{"text", "wanted", "got", "ok"}], "notes", "plots"} as
bench/report.py writes it. Quick runs are not published. `--check` writes nothing and exits 1 if a file is out of date.

Rule: every figure on the page is read from a claim. A headline whose claim is gone stops the rendering, and a claim
that was not held is on the page, not behind a link.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from report import show  # noqa: E402  (bench/ is a folder of scripts, not a package)

DOCS = ROOT / "docs"
FOLDER = DOCS / "benchmarks"
INTRO = """# Benchmarks

<!-- search: performance, speed, fast, how fast, memory, comparison, clingo, nemo, negentropy, duckdb -->

How fast Lace is beside tools that do a part of the same, and what a server spends on a peer. Each ratio compares two
programs in one run on one machine, so it travels better than a time would.
"""
MADE = "Made by `make bench` from `bench/results/*.json`; do not edit."


class Times(NamedTuple):
    """A bar of the chart: so many times less than what it is compared with."""

    says: str
    topic: str
    claim: str
    turned: bool = False  # the claim is what is left, a fraction


class Figure(NamedTuple):
    """A figure that stands for itself."""

    says: str
    topic: str
    claim: str


TIMES = (
    Times("friends of friends who are friends, 42,855 edges with one hub, beside DuckDB", "joins",
          "triangle at a hub, 42,855 edges: against duckdb"),
    Times("circles of four over a million edges, beside nemo", "joins",
          "circle of four, 1,000,000 edges: against nemo"),
    Times("the newest 100 of 100,000 records by rules, beside clingo", "datalog",
          "newest 100, 100,000: evaluation against clingo"),
    Times("the newest 100 of 100,000 records by rules, beside nemo", "datalog",
          "newest 100, 100,000: evaluation against nemo"),
    Times("members who are not blocked, 100,000 records, beside clingo", "datalog",
          "members, not blocked, 100,000: evaluation against clingo"),
    Times("reachability in a random graph, beside clingo", "datalog",
          "closure of a random graph, 1,500: evaluation against clingo"),
    Times("reachability in a random graph, beside nemo", "datalog",
          "closure of a random graph, 1,500: evaluation against nemo"),
    Times("dependencies of one package among 63,436, beside finding those of all", "goals",
          "packages: Needs('package-63435',B) beside no goal", turned=True),
    Times("one dependency less, beside evaluating again", "datalog",
          "closure of packages, 63,436: one less, of evaluating anew, median", turned=True),
    Times("bytes to find 1,000 differences in 1,000,000 ids, beside negentropy", "differences",
          "1,000 differ: negentropy takes so many times the bytes, ids only"),
    Times("bytes of comparison, beside listing everything", "exchange",
          "partitions take 0.05 of the bytes of full listings", turned=True),
    Times("a second exchange with nothing new, beside the first", "exchange",
          "a second exchange with nothing new takes 0.2 of the first", turned=True),
    Times("membership on Spark over a table of facts, beside one row per field", "spark",
          "membership on the wide table against Field rows"),
)  # fmt: skip
FIGURES = (
    Figure("Two sides with 1,000,000 equal records agree that they are equal", "differences",
           "nothing new: both summaries and empty requests"),
    Figure("A new record reaches each of 100 live followers (p99)", "hub",
           "100 followers: a new record at each of them, p99"),
    Figure("Memory one more follower costs the server", "hub", "further follower: memory of the server, mean"),
    Figure("Open a lace of 1,000,000 records and read one", "store", "open a store of a million and fetch by hash"),
    Figure("Rules follow one record more among 1,000,000 (median)", "datalog",
           "members, not blocked, 1,000,000: one record more, median"),
    Figure("Signatures verified, of what libsecp256k1 does alone", "records", "verify, of libsecp256k1's own"),
    Figure("First copy over TCP, bytes sent per byte of content", "network",
           "first copy over tcp, bytes per payload byte"),
    Figure("`lace --help`, start to end", "command", "`lace --help` starts and ends in 0.3 s"),
    Figure("Kinds of attack run against a real server", "siege", "plays"),
)  # fmt: skip


def results(folder: Path) -> list[dict[str, Any]]:
    """One result per topic, by topic name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(found, key=lambda result: str(result["topic"]))


def row_of(cells: list[str]) -> str:
    """One Markdown table row."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def claims_table(claims: list[dict[str, Any]]) -> list[str]:
    """What was promised and what was measured."""
    rows = [[claim["text"], claim["wanted"], claim["got"], "yes" if claim["ok"] else "**no**"] for claim in claims]
    return [row_of(["claim", "wanted", "measured", "held"]), row_of(["---"] * 4), *map(row_of, rows), ""]


def topic_page(result: dict[str, Any]) -> str:
    """One topic: its claims, its table, notes and plots."""
    title = result["title"] + (" (quick run)" if result.get("quick") else "")
    lines = [f"# {title}", "", f"[Benchmarks](../benchmarks.md) · {MADE}", ""]
    if result.get("claims"):
        lines += ["## Claims", "", *claims_table(result["claims"])]
    lines += ["## Figures", "", row_of(result["columns"]), row_of(["---"] * len(result["columns"]))]
    lines += [row_of([show(cell) for cell in row]) for row in result["rows"]] + [""]
    lines += [f"- {note}" for note in result.get("notes", [])]
    if result.get("machine"):
        lines.append(f"- measured on {result['machine']}")
    lines.append("")
    for plot in result.get("plots", []):
        lines += [f"![{result['title']}]({os.path.relpath(ROOT / plot, FOLDER)})", ""]
    return "\n".join(lines).rstrip() + "\n"


def got(by_topic: dict[str, dict[str, Any]], topic: str, claim: str) -> str:
    """What was measured for a claim."""
    for one in by_topic[topic].get("claims", []):
        if one["text"] == claim:
            return str(one["got"])
    raise SystemExit(f"the page shows a claim of {topic} that bench/results does not have: {claim}")


def bars(by_topic: dict[str, dict[str, Any]]) -> list[tuple[str, float]]:
    """The bars of the chart, as many times as each says."""
    found = []
    for bar in TIMES:
        number = re.match(r"[\d.]+", got(by_topic, bar.topic, bar.claim))
        if number is None:
            raise SystemExit(f"no ratio: {bar.claim}")
        value = float(number[0])
        found.append((bar.says, 1 / value if bar.turned else value))
    return found


STYLE = """<style>
text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1d1f1e; }
.soft { fill: #5a5f5c; font-size: 12px; text-anchor: middle; } .times { font-weight: 650; }
.bar { fill: #22604f; } .grid { stroke: #dddcd5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8e6; } .soft { fill: #a2aaa6; } .bar { fill: #7fc9b2; } .grid { stroke: #343937; }
}
</style>"""
CHART_WIDTH, BAR_HEIGHT, STEP, LEFT = 720, 16, 46, 8


def chart(drawn: list[tuple[str, float]]) -> str:
    """The bars as an SVG, on a scale where each line is ten times the one before."""
    decades = math.ceil(math.log10(max(value for _, value in drawn)))
    scale = (CHART_WIDTH - LEFT - 70) / decades
    height = STEP * len(drawn) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CHART_WIDTH} {height}" role="img">',
        "<title>How many times less time or bytes, on a logarithmic scale</title>",
        STYLE,
    ]
    for decade in range(decades + 1):
        x = LEFT + decade * scale
        lines.append(f'<path class="grid" d="M{x:.0f} 4V{height - 26}"/>')
        lines.append(f'<text class="soft" x="{max(x, 16):.0f}" y="{height - 8}">{10**decade:,}×</text>')
    for number, (says, value) in enumerate(drawn):
        y, long = number * STEP + 8, math.log10(max(value, 1)) * scale
        lines.append(f'<text x="{LEFT + 6}" y="{y + 10}">{escape(says)}</text>')
        lines.append(f'<rect class="bar" x="{LEFT}" y="{y + 16}" width="{long:.0f}" height="{BAR_HEIGHT}" rx="2"/>')
        lines.append(f'<text class="times" x="{LEFT + long + 8:.0f}" y="{y + 29}">{_times(value)}×</text>')
    return "\n".join([*lines, "</svg>", ""])


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def main_page(found: list[dict[str, Any]]) -> str:
    """The page with the headlines."""
    by_topic = {str(result["topic"]): result for result in found}
    drawn = bars(by_topic)
    lines = [INTRO, "## How many times less", ""]
    words = "; ".join(f"{says}: {_times(value)} times" for says, value in drawn)
    lines += [
        f"![{words}](benchmarks/headlines.svg)",
        "",
        "Time where no bytes are named. Each line is ten times the last.",
        "",
    ]
    lines += ["## What it takes", "", row_of(["what", "measured", "tables"]), row_of(["---"] * 3)]
    for one in FIGURES:
        link = f"[{one.topic}](benchmarks/{one.topic}.md)"
        lines.append(row_of([one.says, got(by_topic, one.topic, one.claim), link]))
    missed = [(result, claim) for result in found for claim in result.get("claims", []) if not claim["ok"]]
    lines += ["", "## What is not reached", ""]
    if missed:
        lines += [row_of(["claim", "wanted", "measured", "tables"]), row_of(["---"] * 4)]
        lines += [
            row_of(
                [claim["text"], claim["wanted"], claim["got"], f"[{result['topic']}](benchmarks/{result['topic']}.md)"]
            )
            for result, claim in missed
        ]
    else:
        lines.append("Every claim of the last full run was held.")
    held = sum(1 for result in found for claim in result.get("claims", []) if claim["ok"])
    lines += ["", "## All tables", "", f"{held} claims were held; the tables behind them:", ""]
    lines += [f"- [{result['title']}](benchmarks/{result['topic']}.md)" for result in found]
    machines = sorted({str(result["machine"]) for result in found if result.get("machine")})
    lines += ["", f"Measured on {'; '.join(machines)}. {MADE}"]
    return "\n".join(lines).rstrip() + "\n"


def render(folder: Path) -> dict[Path, str]:
    """Every file that is made, with its text."""
    found = results(folder)
    made = {FOLDER / f"{result['topic']}.md": topic_page(result) for result in found}
    made[FOLDER / "headlines.svg"] = chart(bars({str(result["topic"]): result for result in found}))
    made[DOCS / "benchmarks.md"] = main_page(found)
    return made


def main() -> int:
    made = render(ROOT / "bench" / "results")
    if "--check" in sys.argv[1:]:
        old = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        old += [path for path in FOLDER.glob("*.md") if path not in made]
        for path in old:
            print(f"{path.relative_to(ROOT)} is out of date: run tools/render_benchmarks.py", file=sys.stderr)
        return 1 if old else 0
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {len(made)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
