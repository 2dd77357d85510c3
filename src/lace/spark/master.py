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
# What a client of HTTP/2 says first; any server of it answers at once. A standalone master has no such question that it
# would not log as an error, so there a connection must do.
_GREETINGS = {"sc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])}
ANSWER_SECONDS = 6.0  # how long a master may take to accept a connection
_GRACE_SECONDS = 0.5  # for the thread that waits to say what it waited for


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
    if not any(_answers(address, _GREETINGS.get(scheme, b""), end, reasons) for address in addresses):
        raise TransportError(
            f"no Spark answers at {master}: {'; '.join(reasons)}. Is it running, and reachable from here?"
        )


def _address(scheme: str, part: str) -> tuple[str, int]:
    try:
        found = urlsplit(f"//{part.split(';')[0]}")
        return found.hostname or "localhost", found.port or _DEFAULT_PORTS[scheme]
    except ValueError as error:
        raise InvalidInput(f"no host and port: {error}", rule="master", found=part) from None


def _answers(address: tuple[str, int], greeting: bytes, end: float, reasons: list[str]) -> bool:
    """Whether somebody accepts a connection before `end`, and answers a greeting.

    A thread waits, since looking up a name has no timeout. Whoever hangs up has answered: Spark itself will say why.
    """
    outcome: list[str] = []

    def connect() -> None:
        try:
            with socket.create_connection(address, timeout=max(0.1, end - time.monotonic())) as link:
                if greeting:
                    link.settimeout(max(0.1, end - time.monotonic()))
                    link.sendall(greeting)
                    link.recv(1)
            outcome.append("")
        except TimeoutError:
            outcome.append("somebody listens there and says nothing" if greeting else "no answer")
        except ConnectionResetError:
            outcome.append("")
        except OSError as error:
            outcome.append(str(error.strerror or error))

    waiting = threading.Thread(target=connect, daemon=True)
    waiting.start()
    waiting.join(max(0.1, end - time.monotonic()) + _GRACE_SECONDS)
    if outcome != [""]:
        reasons.append(f"{address[0]} port {address[1]}: {outcome[0] if outcome else 'no answer'}")
    return outcome == [""]
