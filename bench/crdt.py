"""The replicated list of frankmcsherry/dynamic-datalog, over its published trace of a text being typed.

Rule: the data is not in the project. Get it, then name the folder, or `input.zip`, with insert.txt and remove.txt:

    git clone https://github.com/frankmcsherry/dynamic-datalog
    python bench/crdt.py dynamic-datalog/problems/crdt/input.zip

The trace names each element by a counter and a writer; here they are one number, counter · 2²⁰ + writer, which orders
elements as the pair does. Differential dataflow finds 104,851 results; so must this. The published query shows
counters alone: as a set of those 104,653 are left, because two writers count alike; differential dataflow counts each
as often as it is found.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time

from report import Report
from rulebench.asked import REPLICATED_LIST
from rulebench.engines import peak_bytes

from lace import datalog

PUBLISHED = 104_851
# As differential dataflow is given it: blanks are followed from elements that have a value, so that each is met once.
RULES = (
    REPLICATED_LIST.replace("Skip(A,B) :- Next(A,B).", "Skip(A,B) :- HasValue(A), Next(A,B).")
    .replace(
        "Skip(A,C) :- Next(A,B), not HasValue(B), Skip(B,C).", "Skip(A,C) :- Skip(A,B), not HasValue(B), Next(B,C)."
    )
    .replace("Visible(A,B) :- HasValue(A), Skip(A,B), HasValue(B).", "Visible(A,B) :- Skip(A,B), HasValue(B).")
)
WRITERS = 20  # bits
EDITS = 200


def lines(place: Path, name: str) -> Iterator[list[int]]:
    """The numbers of each line of one of the two files."""
    if place.is_dir():
        text = (place / name).read_text(encoding="ascii")
    else:
        with zipfile.ZipFile(place) as packed:
            (inside,) = (each for each in packed.namelist() if each.endswith(f"/{name}") or each == name)
            text = packed.read(inside).decode("ascii")
    return ([int(word) for word in line.split()] for line in text.splitlines() if line.strip())


def element(counter: int, writer: int) -> str:
    """An element of the list."""
    if writer >> WRITERS:
        raise SystemExit(f"writer {writer} is beyond 2^{WRITERS}")
    return str(counter << WRITERS | writer)


def trace(place: Path) -> dict[str, list[tuple[str, ...]]]:
    """The trace as relations; every element is assigned one meaningless value, as in the published program."""
    inserted: list[tuple[str, ...]] = [(element(a, b), element(c, d)) for a, b, c, d in lines(place, "insert.txt")]
    removed: list[tuple[str, ...]] = [(element(a, b),) for a, b in lines(place, "remove.txt")]
    return {"Insert": inserted, "Assign": [(row[0], "hi") for row in inserted], "Removed": removed}


def main() -> None:
    places = [word for word in sys.argv[1:] if not word.startswith("-")]
    if len(places) != 1:
        print(__doc__)
        return
    report = Report.start("crdt", "The published replicated list", columns=["what", "facts", "seconds", "peak MiB"])
    relations = trace(Path(places[0]))
    program = datalog.compile(RULES)
    began = process_time()
    db = datalog.Database(relations)
    report.row("facts encoded", sum(map(len, relations.values())), process_time() - began, peak_bytes() / (1 << 20))
    began = process_time()
    shown = program.run(db, "Shown(A,B,V)").rows()
    seconds = process_time() - began
    counters = {(int(a) >> WRITERS, int(b) >> WRITERS, value) for a, b, value in shown}
    report.row("results", len(shown), seconds, peak_bytes() / (1 << 20))
    report.row("results without writers, as a set", len(counters), "", "")
    report.claim("results", wanted=f"{PUBLISHED:,}", got=f"{len(shown):,}", ok=len(shown) == PUBLISHED)
    edits(report, program, db, relations)
    report.end(is_whole=False)


def edits(
    report: Report, program: datalog.Program, db: datalog.Database, relations: dict[str, list[tuple[str, ...]]]
) -> None:
    """One edit more or less, picked by a seed: a character of the text is deleted, or one is typed behind another."""
    draw = Random(5)
    gone = {name for (name,) in relations["Removed"]}
    text = [name for name, _ in relations["Insert"] if name not in gone]
    with program.follow(db) as following:
        before = following.count("Shown")
        steps: dict[str, list[float]] = {"less": [], "more": []}
        last = max(map(int, text))
        for number in range(EDITS):
            typed = str(last + ((number + 1) << WRITERS))
            new = {"Insert": [(typed, draw.choice(text))], "Assign": [(typed, "hi")]}
            deleted = {"Removed": [(draw.choice(text),)]}
            for edit in (new, deleted):
                for way, came, went in (("more", edit, None), ("less", None, edit)):
                    began = process_time()
                    following.apply(came, went)
                    if number >= EDITS // 10:  # indexes of changes are made once
                        steps[way].append(process_time() - began)
        if following.count("Shown") != before:
            raise SystemExit("edits that were taken back left something")
        for way, taken in steps.items():
            middle = sorted(taken)[len(taken) // 2] * 1e3
            report.at_most(
                f"one edit {way}, median of {len(taken)}, of the processor", wanted=1, got=middle, unit=" ms"
            )
    report.note(
        "An edit: a character typed behind one of the text, or one of the text deleted; less: the same taken back."
    )


if __name__ == "__main__":
    main()
