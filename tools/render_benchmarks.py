"""Render bench/results/*.json into docs/benchmarks.md.

Each file is {"topic", "title", "columns", "rows", "claims": [{"text", "wanted", "got", "ok"}], "notes", "plots"} as
bench/report.py writes it. Quick runs are not published. `--check` writes nothing and exits 1 if the page is out of
date.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from report import show  # noqa: E402  (bench/ is a folder of scripts, not a package)

PAGE = ROOT / "docs" / "benchmarks.md"
INTRO = """# Benchmarks

Made by `make bench` from `bench/results/*.json`; do not edit. Ratios compare against a peer measured in the same run on
the same machine, so they travel better than absolute figures.
"""


def results(folder: Path) -> list[dict[str, Any]]:
    """One result per topic, by topic name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(found, key=lambda result: str(result["topic"]))


def row_of(cells: list[str]) -> str:
    """One Markdown table row."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def claims_table(all_results: list[dict[str, Any]]) -> list[str]:
    """Every claim of every topic in one table: what was promised and what was measured."""
    rows = [
        [
            claim["text"],
            claim["wanted"],
            claim["got"],
            "yes" if claim["ok"] else "**no**",
            f"[{r['topic']}](#{r['topic']})",
        ]
        for r in all_results
        for claim in r.get("claims", [])
    ]
    if not rows:
        return []
    return [
        "## Claims",
        "",
        row_of(["claim", "wanted", "measured", "held", "where"]),
        row_of(["---"] * 5),
        *map(row_of, rows),
        "",
    ]


def section(result: dict[str, Any]) -> list[str]:
    """One topic: its title, table, notes and plots."""
    title = result["title"] + (" (quick run)" if result.get("quick") else "")
    lines = [f'<a id="{result["topic"]}"></a>', "", f"## {title}", ""]
    lines += [row_of(result["columns"]), row_of(["---"] * len(result["columns"]))]
    lines += [row_of([show(cell) for cell in row]) for row in result["rows"]] + [""]
    lines += [f"- {note}" for note in result.get("notes", [])]
    if result.get("machine"):
        lines.append(f"- measured on {result['machine']}")
    lines.append("")
    for plot in result.get("plots", []):
        lines += [f"![{result['title']}]({os.path.relpath(ROOT / plot, PAGE.parent)})", ""]
    return lines


def render(folder: Path) -> str:
    """The whole page."""
    all_results = results(folder)
    lines = [INTRO, *claims_table(all_results)]
    for result in all_results:
        lines += section(result)
    if not all_results:
        lines.append("No results yet.")
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    text = render(ROOT / "bench" / "results")
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/benchmarks.md is out of date: run `make bench`, or tools/render_benchmarks.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
