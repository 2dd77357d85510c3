"""Processes killed at random moments (tools/kills.py; `make nightly` kills 10,000)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kills.judge import Ledger
from kills.plays import SUPPLY
from lace.store import open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_100_kills_lose_nothing_acknowledged_show_nothing_invalid_and_leave_nothing_half_done() -> None:
    command = [sys.executable, str(ROOT / "tools" / "kills.py"), "--kills", "100", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert sum(row["kills"] for row in found["plays"]) == 100
    assert [row["play"] for row in found["plays"] if not row["acknowledged"]] == []  # every one was at work


@pytest.mark.parametrize(
    ("said", "held", "wrong"),
    [
        (b"?+1,2\n+1,2\n", [1], "acknowledged and lost"),
        (b"?+1,2\n", [1], "half of a change"),
        (b"?+1,2\n+1,2\n?-1,2\n", [1], "half of a change"),
        (b"?+1\n+1\n?-1\n-1\n", [1], "nobody put them or they were removed"),
        (b"?+1\n+1\n", [1, 2], "nobody put them or they were removed"),
        (b"?+1,2\n", [], ""),
        (b"?+1,2\n", [1, 2], ""),
        (b"?+1,2\n+1,2\n?-1\n", [2], ""),
        (b"?+1,2\n+1,2\n?-1\n", [1, 2], ""),
    ],
)
def test_the_judge_notices_each_kind_of_loss(said: bytes, held: list[int], wrong: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put([SUPPLY[number] for number in held])
    ledger = Ledger()
    pending, sign = ledger.hear(said)
    problems = ledger.judge(tmp_path / "a.lace", pending, sign, announces=True)
    assert len(problems) == bool(wrong)
    assert wrong in "".join(problems)


def test_the_judge_notices_facts_that_are_not_those_of_the_records(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put(SUPPLY[:3])
        with store.file.writing() as connection:  # type: ignore[attr-defined]  # a file
            connection.execute("DELETE FROM segments")
            connection.execute("UPDATE state SET segments = 0, segment_sums = 0")
    assert Ledger().judge(tmp_path / "a.lace", set(), "", announces=False)
