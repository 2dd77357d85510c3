"""Commands end when they are told to, whatever the other side does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import lace as api

PATIENCE_S = 60


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_exchange_with_a_server_that_never_answers_ends_at_a_signal(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    api.open(tmp_path / "near.lace", create=True).close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-m", "lace.cli", "interlace", "near.lace", address]
        environment = {**os.environ, "LACE_HOME": str(tmp_path / "home")}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        server.settimeout(PATIENCE_S)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)  # it has begun to speak
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (code, b"interrupted\n")
