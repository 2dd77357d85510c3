"""Break the pure packages in small ways and see whether the tests notice: `python tools/mutants.py --sample 200`.

Each mutant is one changed operator, constant or condition of one module, made in memory: no file is touched. The tests
of its package that reach its line run until one fails (which those are is measured first, with coverage, and kept in
.mutants until a source changes). A mutant that no test notices is printed with its place: a sentence of the code that
nothing proves (or a change that means the same: read before you blame).

The sample is drawn by `--seed`, so a run can be repeated; `--only datalog/meter.py:59` tries every mutant of a line.
Exit status 1 means a share under `--least`. A mutant for which the time was used up counts as one that survived.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutation.changes import ROOT, Mutant, drawn
from mutation.reach import Reach
from mutation.trials import Outcome, Trials, imported_trial, run_pytest

os.environ["LACE_HYPOTHESIS_PROFILE"] = "mutants"
CHILD = "--child"  # how this script starts itself
EVERY = 10**9
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
    tests: dict[Mutant, list[str]] = field(default_factory=dict)
    outcomes: dict[Mutant, Outcome] = field(default_factory=dict)

    def of(self, mutant: Mutant, collected: Sequence[str]) -> list[str]:
        self.tests[mutant] = self.reach.tests(mutant, collected)
        return self.tests[mutant]

    def told(self, mutant: Mutant, outcome: Outcome, tests: int) -> None:
        if outcome is Outcome.BETTER_IMPORTED or (outcome is Outcome.SURVIVED and self.reach.at_import(mutant)):
            outcome = self._imported(mutant)
        self.outcomes[mutant] = outcome
        said = "noticed  " if outcome is Outcome.NOTICED else outcome.name.ljust(9)
        print(f"{said} {mutant.path}:{mutant.lines.start}  {mutant.change}  ({tests} tests reach it)", flush=True)

    def _imported(self, mutant: Mutant) -> Outcome:
        command = [sys.executable, __file__, CHILD, str(mutant.path), str(mutant.number), str(self.seconds)]
        tests = "\n".join(self.tests[mutant])
        done = subprocess.run(command, cwd=ROOT, input=tests, text=True, capture_output=True, check=False)
        return Outcome(done.returncode) if done.returncode in set(Outcome) else Outcome.NOTICED


def summed_up(outcomes: dict[Mutant, Outcome]) -> tuple[int, int]:
    """Print the shares by package; how many were noticed, of how many."""
    of = Counter(mutant.package for mutant in outcomes)
    noticed = Counter(mutant.package for mutant, outcome in outcomes.items() if outcome is Outcome.NOTICED)
    for package in sorted(of):
        print(f"{package:<12} {noticed[package]:>4} of {of[package]:>4} noticed")
    share, (low, high) = noticed.total() / of.total(), interval(noticed.total(), of.total())
    counted = f"{noticed.total():>4} of {of.total():>4} noticed: {share:.1%}"
    print(f"{'all':<12} {counted}, 95 % interval {low:.0%} to {high:.0%}")
    return noticed.total(), of.total()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants to try (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="which sample (default 1)")
    parser.add_argument("--only", action="append", metavar="PATH:LINE", help="every mutant of this line instead")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--seconds", type=int, default=120, help="of processor time for one mutant (default 120)")
    parser.add_argument("--least", type=float, default=0.9, help="the share that must be noticed (default 0.9)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on the last line")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="default: all of the pure ones")
    return parser.parse_args()


def main() -> int:
    """Try a sample of mutants and say how many were noticed."""
    if sys.argv[1:2] == [CHILD]:
        path, number, seconds = sys.argv[2:]
        mutant = Mutant(Path(path), int(number), range(0), "")
        return imported_trial(mutant, sys.stdin.read().split("\n"), int(seconds))
    chosen = parsed()
    mutants = drawn(EVERY if chosen.only else chosen.sample, chosen.seed, chosen.packages)
    if chosen.only:
        mutants = [mutant for mutant in mutants if f"{mutant.path}:{mutant.lines.start}" in chosen.only]
    if not mutants:
        raise SystemExit("no such mutant: " + ", ".join(chosen.only or chosen.packages))
    trial = Trial(Reach.of(PACKAGES, chosen.workers), chosen.seconds)
    plugin = Trials(
        *(mutants, trial.of, lambda test: trial.reach.seconds.get(test, 1.0)),
        workers=chosen.workers,
        most=chosen.seconds,
        told=trial.told,
    )
    status = run_pytest(trial.reach.files(mutants), plugin)
    if len(trial.outcomes) != len(mutants):
        raise SystemExit(f"pytest ended with status {status} before every mutant was tried")
    noticed, of = summed_up(trial.outcomes)
    if chosen.json:
        print(json.dumps({"tried": of, "noticed": noticed, "share": round(noticed / of, 4)}))
    return 0 if noticed >= chosen.least * of else 1


if __name__ == "__main__":
    sys.exit(main())
