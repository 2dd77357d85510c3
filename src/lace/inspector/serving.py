"""The inspector as a server on this machine.

Rule: it binds only loopback; `lace.inspector.guard` decides which requests to admit.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from lace.errors import TransportError
from lace.inspector.app import make_app
from lace.inspector.guard import TOKEN, Guard
from lace.inspector.inspected import Inspected

LOOPBACK = "127.0.0.1"
READY_WITHIN_S = 30.0


class Inspector:
    """A bound server; `address` is what to open."""

    def __init__(self, inspected: Inspected, port: int = 0) -> None:
        self.token: str = secrets.token_urlsafe(24)
        self._socket = _bound(port)
        self.port: int = self._socket.getsockname()[1]
        self.inspected = inspected
        app = Guard(make_app(inspected), token=self.token, port=self.port)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """With the token, for the first visit."""
        return f"http://{LOOPBACK}:{self.port}/?{TOKEN}={self.token}"

    @property
    def plain_address(self) -> str:
        """Without the token."""
        return f"http://{LOOPBACK}:{self.port}"

    def run(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until interrupted."""
        try:
            asyncio.run(self._serve(ready))
        finally:
            self._socket.close()

    async def _serve(self, ready: Callable[[], None] | None) -> None:
        """Call `ready` on the running loop: an interrupt right after the address is shown finds a loop to end."""
        if ready is not None:
            ready()
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Ask a running server to end."""
        self._server.should_exit = True

    def is_ready(self) -> bool:
        """Whether requests are answered."""
        return self._server.started


def _bound(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError as error:
        found.close()
        raise TransportError(f"{LOOPBACK}:{port} cannot be used: {error.strerror}") from error
    return found


@contextmanager
def inspecting(inspected: Inspected, port: int = 0) -> Iterator[Inspector]:
    """A server in a thread of its own until the block ends."""
    inspector = Inspector(inspected, port)
    thread = threading.Thread(target=inspector.run, name="lace-inspector", daemon=True)
    thread.start()
    waited = threading.Event()
    try:
        while not inspector.is_ready() and thread.is_alive():
            waited.wait(0.01)
        yield inspector
    finally:
        inspector.stop()
        thread.join(READY_WITHIN_S)
