"""Worker processes that are started before the node that will use them.

Rule: this module loads next to nothing, so that they start while their command is still loading the rest. A guess that
was wrong costs processor time that nobody else asked for, and no record: nobody has to ask them anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lace.store.base import BEFORE_ALL, RecordStore
from lace.workers.pool import WorkerPool
from lace.workers.process import Load


@contextmanager
def workers_ahead(store: RecordStore) -> Iterator[WorkerPool | None]:
    """Workers that load what judging needs, if the store holds nothing: who dials with it is about to be sent much."""
    if store.high_water() != BEFORE_ALL:
        yield None
        return
    pool = WorkerPool(os.cpu_count() or 1)
    try:
        for _ in range(pool.count):
            pool.ask(Load("lace.intake.check"))
        yield pool
    finally:
        pool.close()  # if a node took them over, it has ended them already
