"""`tools/soak.py` can fail: a real server that leaks is found out, one that does not is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Python reads this when it starts; only the server is made to lose memory or files.
LEAK = """
import sys, threading, time

def lose():
    lost = []
    while True:
        lost.append({what})
        time.sleep(0.1)

if "serve" in sys.orig_argv:
    threading.Thread(target=lose, daemon=True).start()
"""


def soak(folder: Path, lost: str | None) -> subprocess.CompletedProcess[str]:
    if lost is not None:
        (folder / "sitecustomize.py").write_text(LEAK.format(what=lost), "utf-8")
    words = ["--minutes", "0.2", "--peers", "3", "--seed", "5", "--out", str(folder / "out")]
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "soak.py"), *words],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.long
def test_a_server_that_leaks_memory_and_files_is_found_out_for_each(tmp_path: Path) -> None:
    ended = soak(tmp_path, "(bytearray(4 << 20), open(sys.executable, 'rb'))")
    assert "leak: memory grew from" in ended.stdout, ended.stdout + ended.stderr
    assert "leak: descriptors grew from" in ended.stdout
    assert ended.returncode == 1


@pytest.mark.long
def test_a_server_that_does_not_leak_passes(tmp_path: Path) -> None:
    ended = soak(tmp_path, None)
    assert "converged: True, server ended with 0" in ended.stdout, ended.stdout + ended.stderr
    assert "leak" not in ended.stdout
    assert ended.returncode == 0
