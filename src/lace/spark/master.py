"""Is there a Spark where the user says there is one?

Rule: asked before a JVM starts, answered within seconds, in words; Spark itself tries for minutes and prints a trace.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from urllib.parse import urlsplit

from lace.errors import InvalidInput, TransportError

_KNOWN = re.compile(r"local(-cluster)?(\[[^\]]+\])?|(spark|sc|k8s|mesos)://.+|yarn")
_DEFAULT_PORTS = {"spark": 7077, "sc": 15002}
ANSWER_SECONDS = 6.0  # how long a master may take to accept a connection


def require_master(master: str, seconds: float = ANSWER_SECONDS) -> None:
    """Raise InvalidInput for a text that names no master, TransportError for one that nobody answers at."""
    if not _KNOWN.fullmatch(master):
        raise InvalidInput(
            "a Spark master is local[*], local[N], spark://HOST:PORT or sc://HOST:PORT", rule="master", found=master
        )
    scheme = master.partition("://")[0]
    if scheme not in _DEFAULT_PORTS:
        return
    addresses = [_address(scheme, part) for part in master.partition("://")[2].split("/")[0].split(",")]
    reasons: list[str] = []
    end = time.monotonic() + seconds
    if not any(_answers(address, end, reasons) for address in addresses):
        raise TransportError(
            f"no Spark answers at {master}: {'; '.join(reasons)}. Is it running, and reachable from here?"
        )


def _address(scheme: str, part: str) -> tuple[str, int]:
    try:
        found = urlsplit(f"//{part.split(';')[0]}")
        return found.hostname or "localhost", found.port or _DEFAULT_PORTS[scheme]
    except ValueError as error:
        raise InvalidInput(f"no host and port: {error}", rule="master", found=part) from None


def _answers(address: tuple[str, int], end: float, reasons: list[str]) -> bool:
    """Whether somebody accepts a connection before `end`; a thread waits, since looking up a name has no timeout."""
    outcome: list[str] = []

    def connect() -> None:
        try:
            socket.create_connection(address, timeout=max(0.1, end - time.monotonic())).close()
            outcome.append("")
        except OSError as error:
            outcome.append(str(error.strerror or error))

    waiting = threading.Thread(target=connect, daemon=True)
    waiting.start()
    waiting.join(max(0.1, end - time.monotonic()))
    if outcome != [""]:
        reasons.append(f"{address[0]} port {address[1]}: {outcome[0] if outcome else 'no answer'}")
    return outcome == [""]
