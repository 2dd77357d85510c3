"""Seeded worlds: every delivery split, delayed, spoiled or cut, laces that crash; invariants after every step."""

from __future__ import annotations

import pytest

from simulation.world import World

SEEDS = 200  # `make nightly` tries ten thousand
CHUNK = 25


@pytest.mark.clause("050-INVAR-01", "050-INVAR-02", "050-INVAR-03", "050-INVAR-05", "050-INVAR-06", "050-MODEL-08")
@pytest.mark.clause("050-MODEL-04", "050-MODEL-05", "050-ERR-18", "050-NONMONO-04", "050-NONMONO-05", "050-RECON-03")
@pytest.mark.clause("050-ENG-08", "050-OPEN-08", "050-DRV-04", "050-BOUND-02")
@pytest.mark.parametrize("start", [0, *(pytest.param(at, marks=pytest.mark.long) for at in range(CHUNK, SEEDS, CHUNK))])
def test_no_seed_breaks_an_invariant(start: int) -> None:
    for seed in range(start, start + CHUNK):
        try:
            World(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}: python tools/simulate.py --seed {seed}")
            raise


@pytest.mark.parametrize("seed", [3, 77, 1234])
def test_the_same_seed_makes_the_same_transcript(seed: int) -> None:
    assert World(seed).run().transcript() == World(seed).run().transcript()
