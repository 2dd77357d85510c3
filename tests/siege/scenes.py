"""What a play of a siege is: what one hostile link does, again and again, until the siege is lifted.

Rule: a play sees a server from outside only. It is a coroutine over a fresh connection; when it returns, or is cut,
it begins anew with another number.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from siege.gates import Hostile

Play = Callable[[Hostile, random.Random], Awaitable[None]]
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A play, what it is for, and how many links it takes; `only` says where it makes sense: `ws` is below the stream
    of ws and wss, `tls` below the TLS of wss."""

    name: str
    play: Play
    links: int = 32
    only: str = ""

    def runs_over(self, scheme: str) -> bool:
        """Whether it makes sense there."""
        return not self.only or scheme in {"ws": ("ws", "wss"), "tls": ("wss",)}[self.only]


SCHEMES = ("tcp", "ws", "wss")
_SCENES: dict[str, Scene] = {}


def scene(name: str, *, links: int = 32, only: str = "") -> Callable[[Play], Play]:
    """Adds a play to the repertoire."""

    def add(play: Play) -> Play:
        _SCENES[name] = Scene(name, play, links, only)
        return play

    return add


def repertoire() -> dict[str, Scene]:
    """Every play by its name."""
    import siege.comparisons
    import siege.crowds
    import siege.frames
    import siege.handshakes
    import siege.plays  # noqa: F401  (they add themselves)

    return _SCENES


async def speak(peer: Hostile, data: bytes) -> None:
    """Say it, then read until the server has had enough."""
    await peer.send(data)
    await peer.read_to_the_end(PATIENCE_S)
