"""Is there a Spark where the user says there is one?

Rule: asked before a JVM starts, answered within seconds, in words; Spark itself tries for minutes and prints a trace.
"""

from __future__ import annotations

import contextlib
import queue
import re
import socket
import ssl
import struct
import threading
import time
from urllib.parse import urlsplit

from lace.errors import InvalidInput, TransportError

_KNOWN = re.compile(r"local(-cluster)?(\[[^\]]+\])?|(spark|sc|k8s|mesos)://.+|yarn")
_DEFAULT_PORTS = {"spark": 7077, "sc": 15002}
# What a client of either says first, and any server of it answers at once. Connect speaks HTTP/2. A standalone master
# is asked for a file that it does not have (a frame: its length, the type StreamRequest, a text), which is no error to
# it. A server that only accepts connections, as a proxy does for a machine that is gone, is found out, and so is one
# that answers in words of its own, as a proxy does that takes everything for a web page.
_NO_FILE = b"/files/lace"
_GREETINGS = {
    "sc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]),
    "spark": struct.pack(">qbi", 8 + 1 + 4 + len(_NO_FILE), 6, len(_NO_FILE)) + _NO_FILE,
}
# How the answers begin: a frame of settings (4) that belongs to no stream; a length below 2^32 and one of 13 types.
_ANSWERS = {
    "sc": re.compile(rb"...\x04.\0\0\0\0", re.DOTALL),
    "spark": re.compile(rb"\0\0\0\0....[\0-\x0c]", re.DOTALL),
}
_ANSWER_BYTES = 9  # what the two begin with
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
    addresses = list(dict.fromkeys(addresses))
    reasons = _reasons(addresses, scheme, seconds)
    if len(reasons) == len(addresses):
        raise TransportError(
            f"no Spark answers at {master}: {'; '.join(reasons)}. Is it running, and reachable from here?"
        )


def _address(scheme: str, part: str) -> tuple[str, int]:
    try:
        found = urlsplit(f"//{part.split(';')[0]}")
        return found.hostname or "localhost", found.port or _DEFAULT_PORTS[scheme]
    except ValueError as error:
        raise InvalidInput(f"no host and port: {error}", rule="master", found=part) from None


def _reasons(addresses: list[tuple[str, int]], scheme: str, seconds: float) -> list[str]:
    """Why those that do not answer a greeting in time do not; all of them are asked at once.

    Threads wait, since looking up a name has no timeout.
    """
    end = time.monotonic() + seconds
    told: queue.SimpleQueue[tuple[tuple[str, int], str]] = queue.SimpleQueue()

    def ask(address: tuple[str, int]) -> None:
        told.put((address, _outcome(address, scheme, end)))

    for address in addresses:
        threading.Thread(target=ask, args=(address,), daemon=True).start()
    outcomes: dict[tuple[str, int], str] = {}
    with contextlib.suppress(queue.Empty):
        while len(outcomes) < len(addresses) and "" not in outcomes.values():  # one that answers is enough
            address, outcome = told.get(timeout=max(0.1, end - time.monotonic()) + _GRACE_SECONDS)
            outcomes[address] = outcome
    found = {address: outcomes.get(address, "no answer") for address in addresses}
    return [f"{host} port {port}: {why}" for (host, port), why in found.items() if why]


def _outcome(address: tuple[str, int], scheme: str, end: float) -> str:
    """Why there is no answer; empty if there is one."""
    silent = "no answer"
    try:
        with socket.create_connection(address, timeout=max(0.1, end - time.monotonic())) as link:
            silent = "somebody listens there and says nothing"
            link.settimeout(max(0.1, end - time.monotonic()))
            link.sendall(_GREETINGS[scheme])
            answer = link.recv(4096)  # all of it: hanging up on something unread would be a reset in its log
            while answer and len(answer) < _ANSWER_BYTES and (more := link.recv(4096)):
                answer += more
            if answer:
                return "" if _ANSWERS[scheme].match(answer) else "something answers there that is not Spark"
    except TimeoutError:
        return silent
    except ConnectionResetError:
        pass
    except OSError as error:
        return str(error.strerror or error)
    return "" if _speaks_tls(address, end) else "somebody listens there and hangs up"


def _speaks_tls(address: tuple[str, int], end: float) -> bool:
    """Whether the server that hung up wants TLS: then Spark itself knows how, or says what is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is said to it, and nothing it says is believed
    try:
        with (
            socket.create_connection(address, timeout=max(0.1, end - time.monotonic())) as link,
            context.wrap_socket(link),
        ):
            return True
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        return False
    except ssl.SSLError:  # it answered in TLS that it wants something else
        return True
    except OSError:
        return False
