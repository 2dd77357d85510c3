"""Versions of files from a peer without their content, and the content of one when it is wanted.

Rule: nothing of ours is sent. What a place holds follows the peer as long as the block lasts; its parts come only by
`fetch`. Every method may be called from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lace.cli.commands.key import user_ring
from lace.cli.options.links import LinkChoices, make_node, make_terms
from lace.cli.options.remotes import dialled
from lace.errors import TransportError
from lace.folder.lacetree import FolderPlace
from lace.notation.identifiers import RecordHash

if TYPE_CHECKING:
    from lace.policy.operand import Module
    from lace.porcelain.lace import Lace

LOOK_AT_FILE_S = 1.0  # how often another lace on this machine is looked at


class ContentSource:
    """A peer that has the content of what we show; `opened_source` makes one."""

    def __init__(self, lace: Lace, peer: Any, links: dict[str, Any]) -> None:
        self._lace = lace
        self._other: Lace | None = None
        place = getattr(peer, "place", peer)
        if isinstance(place, Path):
            self._other = _opened(place)
        else:
            self._address, self._choices = dialled(peer, links)

    def fetch(self, version: RecordHash) -> None:
        """Bring what a version needs."""
        from lace.policy.select import select_hash

        self.pull(select_hash(version))

    def pull(self, module: Module) -> None:
        """Bring what a selector selects; TransportError if the exchange does not end well."""
        if self._other is not None:
            from lace.porcelain.exchange import interlace

            interlace(self._lace, self._other, select=module, expose="none", their_expose="all", their_select="all")
            return
        outcome = asyncio.run(_exchange(self._lace, self._address, self._choices, module))
        if outcome.abort:
            raise TransportError(f"{self._address}: {outcome.abort}: {outcome.detail}")

    @contextmanager
    def following(self, module: Module) -> Iterator[None]:
        """Bring what a selector selects from now on as well, while the block lasts."""
        if self._other is None:
            with _followed(self._lace, self._address, self._choices, module):
                yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._look, args=(module, over), name="lace-looking", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _look(self, module: Module, over: threading.Event) -> None:
        assert self._other is not None
        seen = self._other.cursor()
        while not over.wait(LOOK_AT_FILE_S):
            now = self._other.cursor()
            if now != seen:
                self.pull(module)
                seen = now

    def close(self) -> None:
        """Let go of the peer."""
        if self._other is not None:
            self._other.close()


def _opened(path: Path) -> Lace:
    from lace.porcelain.lace import open_lace

    return open_lace(path, keys=user_ring())


async def _exchange(lace: Lace, address: Any, choices: LinkChoices, module: Module) -> Any:
    node = make_node(lace.store, choices)
    try:
        return await node.exchange(address, make_terms(module, (), is_open=False))
    finally:
        await node.shutdown()


@contextmanager
def _followed(lace: Lace, address: Any, choices: LinkChoices, module: Module) -> Iterator[None]:
    from lace.porcelain.network import serve
    from lace.transports.tls import ClientTls

    key = user_ring().load(choices.key) if choices.key else None
    tls = ClientTls(pin=choices.pin, ca_file=choices.ca)
    with serve(
        lace, follow=[str(address)], select=module, expose="none", key=key, trusted=tuple(choices.trust), tls=tls
    ):
        yield


def without_content(place: FolderPlace) -> Module:
    """The selector of the versions of a place, without the parts of their content."""
    from lace.policy.operand import Module
    from lace.policy.parts import without_parts
    from lace.policy.select import select_coordinate

    where = f"//{place.group}//{place.app}//" + (f"{place.name}/" if place.name else "")
    return Module.of_rules(without_parts(select_coordinate(where).rules))


@contextmanager
def opened_source(lace: Lace, peer: Any, links: dict[str, Any]) -> Iterator[ContentSource]:
    """A peer, until the block ends."""
    with ExitStack() as stack:
        source = ContentSource(lace, peer, links)
        stack.callback(source.close)
        yield source
