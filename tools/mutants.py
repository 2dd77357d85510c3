"""Break the pure packages in small ways and see whether the tests notice: `python tools/mutants.py --sample 200`.

Each mutant is one changed operator, constant or condition of one module, made in memory: no file is touched. The tests
of its package that reach its line run until one fails (which those are is measured first, with coverage, and kept in
.mutants until a source changes). A mutant that no test notices is printed with its place: a sentence of the code that
nothing proves (or a change that means the same: read before you blame).

The sample is drawn by `--seed`, the day unless told, so that nobody mends the same sample for ever; `--only
datalog/meter.py:59` tries every mutant of a line. What became of a mutant is kept in .mutants too: a run that was ended
goes on where it was, until a source, a test or this tool changes.

A mutant is noticed if a test fails, or takes many times its usual time, that passes while nothing is broken. One for
which the time was used up counts as one that survived. Exit status 1 means a share under `--least`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mutation.changes import ROOT, Mutant, all_of, drawn
from mutation.outcomes import Found, Outcome, Outcomes, stamp
from mutation.reach import KEPT, Reach, patience
from mutation.trials import Trials, imported_trial, run_pytest

os.environ["LACE_HYPOTHESIS_PROFILE"] = "mutants"
CHILD = "--child"  # how this script starts itself
PACKAGES: dict[str, Sequence[str]] = {  # the pure packages, and the tests that know them best
    "notation": ["notation"],
    "records": ["records", "facts"],
    "facts": ["facts", "policy"],
    "datalog": ["datalog", "engine", "executors"],
    "policy": ["policy"],
    "interlace": ["interlace", "differences"],
    "iltp": ["iltp"],
    "differences": ["differences"],
}


def interval(noticed: int, of: int) -> tuple[float, float]:
    """Between which shares the true one lies with 95 % confidence (Wilson)."""
    z, share = 1.96, noticed / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return middle - half, middle + half


@dataclass
class Trial:
    """One run of the tool: its outcomes as they come."""

    reach: Reach
    seconds: int
    outcomes: Outcomes
    left: int  # how many are still to be tried
    tests: dict[Mutant, list[str]] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    told: int = 0
    kills: Counter[tuple[Path, str]] = field(default_factory=Counter)  # by module and test

    def of(self, mutant: Mutant, collected: Sequence[str]) -> list[str]:
        """Tests that reach a mutant; first those that noticed others of its module, which saves most of the time."""
        tests = self.reach.tests(mutant, collected)
        self.tests[mutant] = sorted(tests, key=lambda test: -self.kills[mutant.path, test])
        return self.tests[mutant]

    def tell(self, mutant: Mutant, found: Found) -> None:
        survived = found.outcome is Outcome.SURVIVED
        if found.outcome is Outcome.BETTER_IMPORTED or (survived and found.tests and self.reach.at_import(mutant)):
            found = self._imported(mutant)
        self.outcomes.add(mutant, found)
        self.kills[mutant.path, found.by] += 1
        self.told += 1
        minutes = (time.monotonic() - self.begun) / self.told * (self.left - self.told) / 60
        print(f"{shown(mutant, found)}  [{self.told} of {self.left}, {minutes:.0f} min left]", flush=True)

    def _imported(self, mutant: Mutant) -> Found:
        """In a process of its own; whatever fails there must pass in another that has nothing broken."""
        tests = self.tests[mutant]
        outcome, at = self._child([str(mutant.path), str(mutant.number)], tests)
        if outcome is Outcome.NOTICED and self._child([], [at] if at else tests)[0] is Outcome.NOTICED:
            return Found(Outcome.UNDECIDED, len(tests))
        return Found(outcome, len(tests), at if outcome is Outcome.NOTICED else "")

    def _child(self, mutant: Sequence[str], tests: Sequence[str]) -> tuple[Outcome, str]:
        at = KEPT / "at"
        at.write_text("", encoding="utf-8")
        command = [sys.executable, __file__, CHILD, str(self.seconds), str(at), *mutant]
        done = subprocess.run(command, cwd=ROOT, input="\n".join(tests), text=True, capture_output=True, check=False)
        outcome = Outcome(done.returncode) if done.returncode in set(Outcome) else Outcome.NOTICED
        return outcome, at.read_text(encoding="utf-8")


def shown(mutant: Mutant, found: Found) -> str:
    said = "noticed  " if found.outcome is Outcome.NOTICED else found.outcome.name.ljust(9)
    file, _, test = found.by.partition("::")
    reached = f"by {Path(file).name}::{ascii(test)[1:-1]:.70}" if found.by else f"{found.tests} tests reach it"
    return f"{said} {mutant.path}:{mutant.lines.start}  {mutant.change}  ({reached})"


def summed_up(outcomes: dict[Mutant, Found]) -> tuple[int, int]:
    """Print what was not noticed and the shares by package; how many were noticed, of how many."""
    print("\nNot noticed:")
    for mutant, found in sorted(outcomes.items(), key=lambda pair: (pair[0].path, pair[0].lines.start)):
        if found.outcome is not Outcome.NOTICED:
            print(f"  {shown(mutant, found)}")
    of = Counter(mutant.package for mutant in outcomes)
    noticed = Counter(mutant.package for mutant, found in outcomes.items() if found.outcome is Outcome.NOTICED)
    print(f"\n{'package':<12} {'tried':>5} {'noticed':>7}  {'share':>6}  95 % interval")
    rows = [(package, noticed[package], of[package]) for package in sorted(of)]
    if len(rows) > 1:
        rows.append(("all", noticed.total(), of.total()))
    for name, some, every in rows:
        low, high = interval(some, every)
        print(f"{name:<12} {every:>5} {some:>7}  {some / every:>6.1%}  {low:.1%} to {high:.1%}")
    return noticed.total(), of.total()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants to try (default 200)")
    parser.add_argument("--seed", type=int, help="which sample (default: the day, as in 20261231)")
    parser.add_argument("--only", action="append", metavar="PATH:LINE", help="every mutant of this line instead")
    parser.add_argument("--same", action="store_true", help="those said to mean the same instead: none may be noticed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one mutant (default 60)")
    parser.add_argument("--least", type=float, default=0.9, help="the share that must be noticed (default 0.9)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on the last line")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="default: all of the pure ones")
    return parser.parse_args()


def child(seconds: str, at: str, *mutant: str) -> int:
    """What this script does when it has started itself."""
    broken = Mutant(Path(mutant[0]), int(mutant[1]), range(0), "") if mutant else None
    return imported_trial(broken, sys.stdin.read().split("\n"), patience(), int(seconds), Path(at))


def chosen_mutants(chosen: argparse.Namespace) -> list[Mutant]:
    seed = chosen.seed if chosen.seed is not None else int(f"{datetime.now(UTC):%Y%m%d}")
    same = all_of(chosen.packages, mean_the_same=True)
    if chosen.only:
        mutants = [m for m in all_of(chosen.packages) if f"{m.path}:{m.lines.start}" in chosen.only]
    else:
        mutants = same if chosen.same else drawn(chosen.sample, seed, chosen.packages)
    if not mutants:
        raise SystemExit("no such mutant: " + ", ".join(chosen.only or chosen.packages))
    print(
        f"{len(mutants)} mutants, seed {seed}; never drawn are {len(same)} that are known to mean the same", flush=True
    )
    return mutants


def main() -> int:
    """Try a sample of mutants and say how many were noticed."""
    if sys.argv[1:2] == [CHILD]:
        return child(*sys.argv[2:])
    chosen = parsed()
    mutants = chosen_mutants(chosen)
    reach = Reach.of(PACKAGES, chosen.workers)
    outcomes = Outcomes(KEPT / "outcomes.jsonl", stamp(chosen.seconds))
    new = [mutant for mutant in mutants if mutant not in outcomes]
    if len(new) < len(mutants):
        print(f"{len(mutants) - len(new)} of them were tried before", flush=True)
    trial = Trial(reach, chosen.seconds, outcomes, len(new))
    plugin = Trials(new, trial.of, patience(), workers=chosen.workers, most=chosen.seconds, told=trial.tell)
    status = run_pytest(reach.files(new), plugin) if new else 0
    if trial.told != len(new):
        raise SystemExit(f"pytest ended with status {status} before every mutant was tried; the same command goes on")
    noticed, of = summed_up({mutant: outcomes[mutant] for mutant in mutants})
    for test in plugin.unfit:
        print(f"fails while nothing is broken, and was not asked: {test}")
    if chosen.json:
        print(json.dumps({"tried": of, "noticed": noticed, "share": round(noticed / of, 4)}))
    if chosen.same:
        return 1 if noticed else 0
    return 0 if noticed >= chosen.least * of else 1


if __name__ == "__main__":
    sys.exit(main())
