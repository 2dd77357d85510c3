"""Listeners in this process that want to hear that a store has changed.

Rule: a signal and nothing else. It says that the cursor may have moved; what changed, the listener reads itself. What
another process stores is not heard here: code that has to know of it looks at the cursor now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Protocol

Tell = Callable[[], object]


class CommitPoint(Protocol):
    """A cursor of the store."""

    @property
    def removal(self) -> int: ...


class StoreNews:
    """The listeners of one open store."""

    def __init__(self) -> None:
        self._listeners: dict[int, Tell] = {}
        self._lock = Lock()
        self._numbers = 0
        self.at: CommitPoint | None = None  # as our newest commit left it, if nobody else has stored anything since
        self.count: int = (
            0  # commits so far: a reader that finds it unchanged has missed nothing that this process stored
        )

        self.removals: int = 0  # so many of them may have removed something

    def listen(self, tell: Tell) -> Callable[[], None]:
        """Have this called after each commit, in the thread that committed; what is returned ends that."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._listeners[number] = tell

        def unlisten() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return unlisten

    def tell(self, at: CommitPoint | None = None) -> None:
        """Something was committed: by us, and then the store stood here before anybody hears of it; or by others.

        A result worked out since the count last moved has seen everything up to `at`.
        """
        with self._lock:
            if at is None or self.at is None or at.removal != self.at.removal:
                self.removals += 1
            self.at = at
            self.count += 1
        if self._listeners:
            with self._lock:
                listeners = list(self._listeners.values())
            for tell in listeners:
                tell()

    def notice(self, at: CommitPoint) -> None:
        """The store was found here; if no commit of ours left it so, another process has stored something."""
        if at != self.at:
            self.tell()
