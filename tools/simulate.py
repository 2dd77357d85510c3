"""Run simulated worlds over many seeds, or replay one: `python tools/simulate.py --seeds 100000 [--from 0] | --seed 7`.

Every failing seed is printed with its reason; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 250


def _use_sources() -> None:
    for part in ("src", "tests"):
        path = str(ROOT / part)
        if path not in sys.path:
            sys.path.insert(0, path)


def run_seeds(first: int, count: int) -> list[tuple[int, str]]:
    """The seeds that break, each with the last line of why."""
    _use_sources()
    from simulation.world import World

    gc.set_threshold(20_000, 20, 50)  # what worlds remember of each other is large and lives on
    broken: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        try:
            World(seed).run()
        except Exception as error:  # noqa: BLE001 - whatever a seed finds is what we are looking for
            broken.append((seed, f"{type(error).__name__}: {error}"))
    return broken


def replay(seed: int) -> int:
    """One seed, with its whole traceback."""
    _use_sources()
    from simulation.world import World

    try:
        world = World(seed).run()
    except Exception:  # noqa: BLE001 - shown whole
        traceback.print_exc()
        return 1
    print(f"seed {seed} holds; transcript {world.transcript()}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this one seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        return replay(arguments.seed)
    started, done, found = time.monotonic(), 0, 0
    starts = range(arguments.first, arguments.first + arguments.seeds, CHUNK)
    counts = [min(CHUNK, arguments.first + arguments.seeds - start) for start in starts]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for count, broken in zip(counts, pool.map(run_seeds, starts, counts), strict=True):
            done += count
            for seed, reason in broken:
                found += 1
                print(f"\nseed {seed} breaks: {reason}\n  replay: python tools/simulate.py --seed {seed}", flush=True)
            rate = done / (time.monotonic() - started)
            print(f"\r{done} of {arguments.seeds} seeds, {found} broken, {rate:.0f} seeds/s ", end="", flush=True)
    print()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
