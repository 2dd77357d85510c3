"""`make demo` plays to its end: every section that needs no JVM, with the real commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent


def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    sections = [path.stem for path in sorted((ROOT / "demo").glob("*.md")) if "spark" not in path.read_text().lower()]
    command = [sys.executable, "tools/demo.py", "--stage", str(tmp_path / "stage"), *sections]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert f"Sections played: {len(sections)}," in done.stdout
