"""Jobs on behalf of a link: each can be given up, has a time limit, and says which files it read.

Rule: nothing of a peer's runs on the cluster but through here.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from lace.errors import LimitExceeded
from lace.interlace.host import Call
from lace.spark.archive.versions import DataFile
from lace.spark.engine.guest import GaveWay
from lace.spark.session.failure import plainly
from lace.spark.session.tags import add_tag, interrupt, remove_tag
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lace.spark.engine.guest import ClusterGuest

_LOOK_SECONDS = 0.2
_KEPT_READS = 256
_A_MOMENT_S = 1.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read:
    """What one job read."""

    what: str
    files: int
    rows: int
    bytes: int
    seconds: float


class Jobs:
    """The jobs of all links of one archive."""

    def __init__(
        self,
        session: Callable[[], SparkSession],
        *,
        max_seconds: float,
        told: Callable[[Read], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._max_seconds = max_seconds
        self._told = told
        self._lock = threading.Lock()
        self._under_way = 0
        self._guests = 0
        self._last_ended = float("-inf")
        self.reads: deque[Read] = deque(maxlen=_KEPT_READS)  # the newest, oldest first

    @property
    def spark(self) -> SparkSession:
        return self._session()

    @contextmanager
    def job(
        self, what: str, files: Iterable[DataFile], call: Call, guest: ClusterGuest | None = None
    ) -> Iterator[None]:
        """Work on the cluster that reads some files; its calls in this thread end when the call is given up, or when a
        guest has had the cluster for too long."""
        call.check()
        held = list(files)
        began = time.monotonic()
        counted = self.others() if guest is None else nullcontext()
        with counted, _watched(self.spark, call, self._max_seconds, guest) as ended:
            try:
                yield
            except Exception as error:
                call.check()
                if isinstance(error, LimitExceeded | GaveWay):
                    raise
                if ended.is_set():
                    if guest is not None and guest.has_to_go:
                        raise guest.reason() from error
                    raise LimitExceeded("max_job_seconds", round(self._max_seconds), what) from error
                plain = plainly(what, error)
                if plain is None:
                    raise
                raise plain from error
        self.note(what, held, began)

    @contextmanager
    def others(self) -> Iterator[None]:
        """Work that guests give way to: everything but theirs."""
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._last_ended = time.monotonic()

    @contextmanager
    def guest(self) -> Iterator[None]:
        """A guest that wants the cluster, or has it."""
        with self._lock:
            self._guests += 1
        try:
            yield
        finally:
            with self._lock:
                self._guests -= 1

    def others_wait(self) -> bool:
        """Whether a guest has to give way: to any other, or to an exchange, which is a row of jobs, a moment later."""
        return self._under_way > 0 or self._guests > 1 or time.monotonic() - self._last_ended < _A_MOMENT_S

    def stepping(self, rows: Iterator[T]) -> Iterator[T]:
        """Rows of the cluster that are computed while they are gone through."""
        while True:
            with self.others():
                try:
                    row = next(rows)
                except StopIteration:
                    return
            yield row

    def note(self, what: str, files: Sequence[DataFile], began: float) -> None:
        """Say that some files were read, by work that began at a moment of the monotonic clock."""
        rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
        read = Read(what, len(files), rows, size, round(time.monotonic() - began, 3))
        self.reads.append(read)
        self._told(read)


@contextmanager
def _watched(
    spark: SparkSession, call: Call, max_seconds: float, guest: ClusterGuest | None
) -> Iterator[threading.Event]:
    """Interrupt what this thread runs on the cluster when the call is given up or takes too long; whether it did."""
    tag, done, ended = f"lace-{uuid.uuid4().hex}", threading.Event(), threading.Event()
    last = time.monotonic() + max_seconds

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            if call.is_cancelled or time.monotonic() > last or (guest is not None and guest.has_to_go):
                ended.set()
                interrupt(spark, tag)

    add_tag(spark, tag)
    watcher = threading.Thread(target=watch, name="lace-job-watch", daemon=True)
    watcher.start()
    try:
        yield ended
    finally:
        done.set()
        remove_tag(spark, tag)
        watcher.join()
