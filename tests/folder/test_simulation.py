"""The whole engine under a seed: crashes, torn writes, wrong clocks, case folding, old copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from folder.simulated import World, run_seed

SEEDS = 500  # of one test


@pytest.mark.clause("082-NAME-08")
@pytest.mark.parametrize("share", range(4))
def test_two_folders_end_equal_or_say_what_they_cannot(share: int, tmp_path: Path) -> None:
    for seed in range(share * SEEDS, (share + 1) * SEEDS):
        run_seed(seed, tmp_path)


def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    runs = []
    for _ in range(2):
        world = World(7, tmp_path)
        world.run()
        runs.append([sorted(record for _, record in site.store.records_since()) for site in world.sites])
    assert runs[0] == runs[1]
    assert runs[0][0]
