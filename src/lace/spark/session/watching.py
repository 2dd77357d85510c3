"""How far the jobs of a thread are, told while they run.

Rule: whoever watches decides nothing; what cannot be learnt is left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lace.values import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWatch:
    """Whom to tell, and how often."""

    tell: Callable[[str], None]
    every_seconds: float


@contextmanager
def watched(context: Any, tag: str, watch: JobWatch) -> Iterator[None]:
    """While the block runs, say how far the jobs with a tag are."""
    from py4j.protocol import Py4JError, Py4JJavaError

    over = threading.Event()

    def look() -> None:
        began = time.monotonic()
        while not over.wait(watch.every_seconds):
            try:
                said = _said(context, tag, time.monotonic() - began)
            except Py4JJavaError:  # of a stage that Spark's own account of it does not have yet, or no longer
                continue
            except (Py4JError, OSError):  # the session ended, or the JVM did: the step itself will say that
                return
            if said:
                watch.tell(said)

    thread = threading.Thread(target=look, name="lace-jobs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _said(context: Any, tag: str, seconds: float) -> str:
    """Tasks of the stages that run now, and what all stages of these jobs have read; empty if no stage runs."""
    inner = context._jsc.sc()
    tracker, store = inner.statusTracker(), inner.statusStore()
    done = tasks = read = moved = 0
    for job in tracker.getJobIdsForTag(tag):
        found = tracker.getJobInfo(job)
        is_running = found.isDefined() and found.get().status().name() == "RUNNING"
        for stage in found.get().stageIds() if found.isDefined() else ():
            about = tracker.getStageInfo(stage)
            if not about.isDefined() or not about.get().submissionTime():
                continue
            data = store.lastStageAttempt(stage)
            read += data.inputBytes()
            moved += data.shuffleReadBytes()
            completed, planned = about.get().numCompletedTasks(), about.get().numTasks()
            if is_running and completed < planned:  # which tasks are active Spark learns seconds later
                done += completed
                tasks += planned
    if not tasks:
        return ""
    parts = [f"{done:,} of {tasks:,} tasks"]
    parts += [f"{size / _MIB:,.0f} MiB {how}" for size, how in ((read, "read"), (moved, "moved")) if size >= _MIB]
    rate = (read + moved) / _MIB / seconds
    return ", ".join([*parts, f"{rate:,.1f} MiB/s"] if len(parts) > 1 else parts)
