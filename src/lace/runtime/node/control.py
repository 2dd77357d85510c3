"""The sockets beside a lace on which the nodes over it answer `lace peers`, `lace top` and `lace reload`.

Rule: a socket is named after the lace and the process, so that several nodes over one lace do not disturb each other;
one whose process is gone is removed by the next program that finds it. If no socket can be made somewhere, a node
loses nothing else.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lace.errors import NotFound, TransportError
from lace.runtime.node.watching import WatchLimits

BESIDE = WatchLimits(ended_links=16, items=0)  # what a socket beside a lace keeps: no conversations
ANSWER_SECONDS = 5.0
MAX_ANSWER_BYTES = 64 << 20
_SUFFIX = ".node-"
_LONGEST = 100  # bytes of a path that every system takes for a unix socket


def control_path(store: Path | str) -> Path | None:
    """Where this process answers for a node over a lace; None if no socket can be there."""
    path = Path(store).absolute()
    beside = path.with_name(f"{path.name}{_SUFFIX}{os.getpid()}")
    can = hasattr(socket, "AF_UNIX") and os.access(beside.parent, os.W_OK) and len(os.fsencode(beside)) <= _LONGEST
    return beside if isinstance(store, Path) and can else None


def answering(store: Path) -> Iterator[Path]:
    """The sockets of the nodes over a lace; those of processes that are gone are removed."""
    path = store.absolute()
    with suppress(OSError):
        for beside in sorted(path.parent.glob(f"{path.name}{_SUFFIX}*")):
            if _is_running(beside.name.rpartition("-")[2]):
                yield beside
            else:
                with suppress(OSError):
                    beside.unlink()


def no_node(store: Path) -> NotFound:
    """That no node runs over a lace, and what starts one."""
    error = NotFound(f"no node runs over {store}")
    error.add_note("`lace serve` starts one")
    return error


def ask_node(path: Path, question: str) -> dict[str, Any]:
    """What a node answers on its socket; TransportError if it does not."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(ANSWER_SECONDS)
            asking.connect(str(path))
            asking.sendall(question.encode("ascii") + b"\n")
            with asking.makefile("rb") as answer:
                found = json.loads(answer.read(MAX_ANSWER_BYTES))
    except (OSError, ValueError) as error:
        raise TransportError(f"the node at {path} does not answer: {error}") from error
    if not isinstance(found, dict) or "error" in found:
        raise TransportError(f"the node at {path}: {found.get('error') if isinstance(found, dict) else 'no answer'}")
    return found


def _is_running(pid: str) -> bool:
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True
