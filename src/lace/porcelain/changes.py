"""Records that are added to and removed from a lace, as it happens: `for change in notes.changes()`, or `async for`.

Rule: a reader sees every record once, in the order of storing, no matter who stored it, even in another process.
Nothing is kept for a reader: its position is a cursor, a text that it may save.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Event
from typing import Self

from lace.errors import CursorExpired, InvalidText
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash
from lace.store.base import RecordStore, StoreCursor, StoreRecordId
from lace.values import dataclass

POLL_S = 0.25  # how soon a reader notices another process's records; it notices this one's immediately
MAX_RECORDS = 10_000  # in one change


@dataclass(frozen=True, slots=True)
class Change:
    """Records that were added and removed, and the cursor to continue from."""

    added: tuple[RecordHash, ...]
    removed: tuple[RecordHash, ...]
    cursor: str


def format_cursor(cursor: StoreCursor) -> str:
    """A cursor as text: how many records and how many removals were seen.

    >>> format_cursor(StoreCursor(StoreRecordId(7), 2))
    '7/2'
    """
    return f"{cursor.record}/{cursor.removal}"


def parse_cursor(text: str) -> StoreCursor:
    """Parse the text that `format_cursor` made."""
    record, _, removal = map(natural, text.partition("/"))
    if record is None or removal is None:
        raise InvalidText("a cursor is two numbers separated by a slash", rule="cursor-form", found=repr(text[:40]))
    return StoreCursor(StoreRecordId(record), removal)


class ChangeStream:
    """Changes since a cursor. Iterate over it, in a thread of its own or with `async for`.

    `close`, from any thread, ends every loop over it, also one that waits; so does leaving its `with` or `async with`.
    """

    def __init__(
        self,
        store: RecordStore,
        since: StoreCursor,
        wait_s: float | None = None,
        poll_s: float = POLL_S,
        max_records: int = MAX_RECORDS,
    ) -> None:
        self._store = store
        self._since = since
        self._wait_s = wait_s  # end after this long without news; None: never
        self._poll_s = poll_s
        self._max_records = max_records
        self._is_closed = False
        self._wakers: set[Callable[[], None]] = set()  # of loops that wait

    def close(self) -> None:
        """End every loop over this stream; closing it again does nothing."""
        self._is_closed = True
        for wake in list(self._wakers):
            wake()

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing` and `async with`."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _hearing(self, wake: Callable[[], None]) -> Iterator[None]:
        unlisten = self._store.news.listen(wake)
        self._wakers.add(wake)
        try:
            yield
        finally:
            self._wakers.discard(wake)
            unlisten()

    def __iter__(self) -> Iterator[Change]:
        news = Event()
        cursor, heard = self._since, time.monotonic()
        with self._hearing(news.set):
            while not self._is_closed:
                news.clear()  # before looking, so that nothing stored from here on is missed
                change, cursor = self._after(cursor)
                if change is not None:
                    yield change
                    heard = time.monotonic()
                elif self._is_over(heard):
                    return
                elif not self._is_closed:
                    news.wait(self._patience_s(heard))

    async def __aiter__(self) -> AsyncIterator[Change]:
        import asyncio  # only here: every command opens a lace, but few run an event loop

        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # a thread may store something after the loop has ended
                loop.call_soon_threadsafe(news.set)

        cursor, heard = self._since, time.monotonic()
        with self._hearing(tell):
            while not self._is_closed:
                news.clear()
                change, cursor = await asyncio.to_thread(self._after, cursor)
                if change is not None:
                    yield change
                    heard = time.monotonic()
                elif self._is_over(heard):
                    return
                elif not self._is_closed:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(news.wait(), self._patience_s(heard))

    def _is_over(self, heard: float) -> bool:
        return self._wait_s is not None and time.monotonic() - heard >= self._wait_s

    def _patience_s(self, heard: float) -> float:
        """How long to wait for a signal before polling: another process's writes give none."""
        left = self._poll_s if self._wait_s is None else heard + self._wait_s - time.monotonic()
        return max(0.0, min(self._poll_s, left))

    def _after(self, since: StoreCursor) -> tuple[Change | None, StoreCursor]:
        """The next change after a cursor, if there is one, and the cursor after it."""
        now = self._store.cursor()
        if now == since:
            return None, since
        if now.record < since.record or now.removal < since.removal:
            ours, theirs = format_cursor(now), format_cursor(since)
            raise CursorExpired(f"the cursor {theirs} is ahead of this lace, which is at {ours}")
        if now.removal != since.removal:
            return self._with_removals(since)
        # Only additions: their names are enough, and a reader that starts at the beginning gets them in batches.
        found = list(islice(self._store.records_since(since.record), self._max_records))
        if not found:
            return None, now
        reached = StoreCursor(found[-1][0], since.removal)
        return Change(tuple(record for _, record in found), (), format_cursor(reached)), reached

    def _with_removals(self, since: StoreCursor) -> tuple[Change | None, StoreCursor]:
        changes = self._store.changes(since)
        if changes is None:
            error = CursorExpired(f"this lace no longer knows what was removed since {format_cursor(since)}")
            error.add_note("list the lace again, then continue from its `cursor()`")
            raise error
        added, removed, cursor = changes.added_records, changes.removed_records, changes.cursor
        if not added and not removed:  # whatever was added meanwhile is gone again
            return None, cursor
        return Change(added, removed, format_cursor(cursor)), cursor


def change_stream(store: RecordStore, since: str | None, wait_s: float | None) -> ChangeStream:
    """The changes since a cursor given as text; without one, from now on."""
    return ChangeStream(store, store.cursor() if since is None else parse_cursor(since), wait_s)
