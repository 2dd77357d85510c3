"""A lace that is served from another thread while commands run against it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lace as api
from interop.harness import make_node, terms_of
from lace.iltp.address import UnixAddress


@contextmanager
def serving(path: str, folder: Path, **terms: object) -> Iterator[str]:
    """A node over a lace in another thread; its address."""
    address = UnixAddress(str(folder / "node.sock"))
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        with api.open(path) as opened:
            node = make_node(opened.store)
            await node.listen(address, terms_of(**terms))
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)
            await node.shutdown()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield str(address)
    finally:
        stop.set()
        thread.join(30)
