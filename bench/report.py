"""What every benchmark prints and leaves behind: one table, its claims, one JSON file.

Rule: a figure is published only with the claim it answers and the machine it came from; a quick run never replaces
the figures of a full one.

    from report import Report

    report = Report.start("records", "Reading and verifying records", columns=["what", "per second", "of libsecp256k1"])
    rate = ... fewer rounds if report.quick ...
    report.row("verify, one core", rate, ratio)
    report.at_least("verify reaches 0.75 of libsecp256k1's own rate", wanted=0.75, got=ratio)
    report.note("1 KB records; both measured in this run")
    report.finish()

`python bench/records.py [--quick]` then prints the table and writes `bench/results/records.json`
(`bench/results/quick/records.json` with `--quick`); `make bench` renders all of them into docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"

Cell = str | int | float


@dataclass(slots=True, kw_only=True)
class Report:
    """The growing result of one benchmark file."""

    topic: str
    title: str
    columns: list[str]
    quick: bool = False
    rows: list[list[Cell]] = field(default_factory=list)
    claims: list[dict[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[str] = field(default_factory=list)
    machine: str = ""

    @classmethod
    def start(cls, topic: str, title: str, *, columns: list[str]) -> Report:
        """A report for this process; `--quick` on the command line makes it a quick one."""
        cores = os.cpu_count() or 1
        machine = f"{platform.machine()}, {cores} cores, {platform.system()}, Python {platform.python_version()}"
        return cls(topic=topic, title=title, columns=columns, quick="--quick" in sys.argv[1:], machine=machine)

    def row(self, *cells: Cell) -> None:
        """Add one line of the table and show it at once, so that a long run can be watched."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.topic}: a row has {len(self.columns)} cells, not {len(cells)}")
        self.rows.append(list(cells))
        print("  " + " | ".join(show(cell) for cell in cells), file=sys.stderr, flush=True)

    def claim(self, text: str, *, wanted: str, got: str, ok: bool) -> None:
        """Add one promise with what was wanted and what was measured."""
        self.claims.append({"text": text, "wanted": wanted, "got": got, "ok": ok})

    def at_least(self, text: str, *, wanted: float, got: float, unit: str = "") -> None:
        """Claim that a figure reaches `wanted`."""
        self.claim(text, wanted=f"≥ {show(wanted)}{unit}", got=f"{show(got)}{unit}", ok=got >= wanted)

    def at_most(self, text: str, *, wanted: float, got: float, unit: str = "") -> None:
        """Claim that a figure stays under `wanted`."""
        self.claim(text, wanted=f"≤ {show(wanted)}{unit}", got=f"{show(got)}{unit}", ok=got <= wanted)

    def note(self, text: str) -> None:
        """Add a sentence that a reader of the figures needs."""
        self.notes.append(text)

    def plot(self, path: Path | str) -> None:
        """Add a picture, as a path from the project's root."""
        self.plots.append(str(path))

    def finish(self) -> None:
        """Print the whole report and write its JSON file."""
        self.write()
        print("\n".join(self.lines()))

    def write(self, results: Path = RESULTS) -> None:
        """Write its JSON file, whole or not: what a long run has found must not be lost with it."""
        folder = results / "quick" if self.quick else results
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        (folder / f"{self.topic}.json").write_text(text, encoding="utf-8")

    def end(self, *, is_whole: bool) -> None:
        """Write a whole run down, show a part of one, and fail if a figure was missed."""
        if is_whole:
            self.finish()
        else:
            print("\n".join(self.lines()))
        self.require_held()

    def require_held(self) -> None:
        """End the process with an error if a figure was missed; those of a quick run are told, not judged."""
        missed = [claim for claim in self.claims if not claim["ok"] and not self.quick]
        if missed:
            listed = "\n".join(f"  {c['text']}: {c['got']} (wanted {c['wanted']})" for c in missed)
            raise SystemExit(f"\n{self.topic}: {len(missed)} of {len(self.claims)} figures are missed:\n{listed}")

    def lines(self) -> list[str]:
        """The report as aligned text."""
        table = [self.columns, *([show(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        out = ["", self.title + (" (quick run)" if self.quick else ""), ""]
        out += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        out += [""] + [
            f"  {'ok  ' if c['ok'] else 'MISS'} {c['text']}: {c['got']} (wanted {c['wanted']})" for c in self.claims
        ]
        return out + [f"  - {note}" for note in self.notes]


def show(cell: Cell) -> str:
    """A number the way a person reads it: thousands apart, three figures that count."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"
