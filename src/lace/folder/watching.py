"""Waiting until a folder or its lace may have changed.

Rule: news is a hint. Whoever waits looks at everything again, and looks now and then without any news, because watchers
miss things.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lace.porcelain.lace import Lace
from lace.porcelain.openfolder import OWN, is_ours

SETTLE_MS = 20  # files written together come as one piece of news
WITHOUT_WATCHER_S = 5.0


class News:
    """Set by whatever may have changed."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.stopped = threading.Event()
        self.is_told = False  # whether the last wait ended because something may have changed
        self.trouble = ""  # why the folder cannot be watched

    def tell(self) -> None:
        """Something may have changed."""
        self._event.set()

    def stop(self) -> None:
        """Nobody wants to know any more."""
        self.stopped.set()
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait for news, at most so long; False once it was stopped."""
        self.is_told = self._event.wait(min(seconds, WITHOUT_WATCHER_S) if self.trouble else seconds)
        self._event.clear()
        return not self.stopped.is_set()


@contextmanager
def watched(root: Path, lace: Lace) -> Iterator[News]:
    """News of a folder and its lace, while the block lasts."""
    news = News()
    threads = [
        threading.Thread(target=_watch_disk, args=(root, news), name="lace-watching-disk", daemon=True),
        threading.Thread(target=_watch_lace, args=(lace, news), name="lace-watching-lace", daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield news
    finally:
        news.stop()
        for thread in threads:
            thread.join(2)


def _watch_disk(root: Path, news: News) -> None:
    from watchfiles import watch

    root = root.resolve()  # as the paths in the news are spelled

    def is_news(_: object, path: str) -> bool:
        with suppress(ValueError):
            parts = tuple(os.fsencode(part) for part in Path(path).relative_to(root).parts)
            return not parts or not (is_ours(parts) or parts[0] == OWN)
        return True

    def follow(*, is_closed_ignored: bool) -> None:
        for _ in watch(
            root, watch_filter=is_news, stop_event=news.stopped, step=SETTLE_MS, debounce=5 * SETTLE_MS,
            rust_timeout=1_000, raise_interrupt=False, ignore_permission_denied=is_closed_ignored,
        ):  # fmt: skip
            news.tell()

    try:
        try:
            follow(is_closed_ignored=False)  # what ignores closed folders is silent about the limit of inotify too
        except PermissionError:
            follow(is_closed_ignored=True)
    except (OSError, RuntimeError) as error:  # the limit of inotify, a folder that went away
        news.trouble = str(error)
        news.tell()


def _watch_lace(lace: Lace, news: News) -> None:
    while not news.stopped.is_set():
        for _ in lace.changes(wait_s=1.0):
            news.tell()
            if news.stopped.is_set():
                return
