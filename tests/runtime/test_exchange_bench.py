"""The exchange benchmark measures what it says, at a size that fits into a test."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parent.parent.parent / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "argv", ["exchange.py", "--quick"])
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("exchange_bench", BENCH / "exchange.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.clause("050-ENG-09")
def test_every_figure_is_measured_on_real_stores(bench: ModuleType, tmp_path: Path) -> None:
    report = bench.Report.start("exchange", "test", columns=["what", "figure", "unit", "ratio"])
    bench.transfer(report, tmp_path, 60)
    bench.nothing_to_do(report, tmp_path, (40,))
    bench.reconciliation(report, tmp_path, 200, 4)
    bench.latency(report, tmp_path, 30, samples=3)
    assert len(report.rows) == 2 + 2 + 2 + 4
    assert all(row[1] > 0 for row in report.rows)
