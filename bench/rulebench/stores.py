"""Rules over a real store of many records: built once, then asked by processes of their own.

Rule: every step prints its figures as JSON; what is made ready for a step is not measured in it.

    cd bench && python -m rulebench.stores STEP PATH ARGUMENT…     STEP: build, cold, bound, warm, changes
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from time import perf_counter

import lace
from lace.datalog.engine import materialize
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.facts.derive import derive_facts
from lace.facts.predicates import HAVE
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.query import query
from lace.records.model import Blob, Plex
from lace.records.validate import ValidRecord, validate
from lace.records.write import encode_record
from lace.store import open_store
from rulebench.programs import LACE_EVIDENCE, LACE_NEWEST, LACE_SELECTOR

Figures = dict[str, float]
BATCH = 8192
BOUND_GOALS = 7
CHANGES = 220  # the first 20 are not counted
LACE_SELECTIVE = LACE_SELECTOR.replace("'u'", "'g7'").replace("'links/'", "'links/7'")
RULES = {
    "one group, one prefix": LACE_SELECTIVE,
    "group/app/name selector": LACE_SELECTOR,
    "evidence closure": LACE_EVIDENCE,
    "newest 100": LACE_NEWEST,
}
CHANGED = ("group/app/name selector", "evidence closure", "newest 100")
COMPILED = "import lace.cli.commands.query, lace.porcelain.query, lace.store.columns.store, lace.cli.options.arguments"
COMMAND = [sys.executable, "-c", "from lace.cli import main; main()", "query"]


def records(count: int) -> Iterator[ValidRecord]:
    """Plexes of 300 bytes: half of them of one group, each with a link to an earlier one."""
    random = Random(11)
    hashes: list[RecordHash] = []
    for number in range(count):
        kind = random.randrange(100)
        target = hashes[random.randrange(number)] if number else RecordHash(f"P.{'A' * 43}.H3")
        group, app = "u" if kind < 52 else f"g{kind % 10}", random.choice(("ding", "dong"))
        name = f"{random.choice(('links', 'notes'))}/{number:x}"
        second = 1_700_000_000 + random.randrange(50_000_000)
        link = f"{'evidence' if number % 2 else 'reply'} {target}"
        record = plex(group, app, name, second, link, random.randbytes(300))
        hashes.append(record.hash)
        yield record


def plex(group: str, app: str, name: str, second: int, link: str, data: bytes) -> ValidRecord:
    """One record through the door that every record takes."""
    tai = TAI.from_ns(second * 10**9)
    return validate(
        encode_record(Plex(group=group, app=app, name=name, tai=tai, headers=(("+Link", link),), blob=Blob(data)))
    )


def build(path: str, count: str) -> Figures:
    """A store of that many records."""
    seconds, batch = 0.0, []
    with open_store(path, create=True) as store:
        for record in records(int(count)):
            batch.append(record)
            if len(batch) == BATCH:
                started = perf_counter()
                store.put(batch)
                seconds += perf_counter() - started
                batch = []
        store.put(batch)
    return {"seconds": seconds, "bytes": float(os.path.getsize(path))}


def drop_pages(path: str) -> None:
    """Ask the system to forget what it holds of a file."""
    if hasattr(os, "posix_fadvise"):
        for name in (path, path + "-wal"):
            if os.path.exists(name):
                handle = os.open(name, os.O_RDONLY)
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(handle)


def cold(path: str, name: str, pages: str = "dropped", goal: str = "") -> Figures:
    """`lace query` as a process, from its start to its end, the store's file in the page cache (`kept`) or not."""
    command = [*COMMAND, path, RULES[name], "--json", *(("--goal", f"Selected('{goal}')") if goal else ())]
    installed = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", COMPILED], check=True, env=installed)  # bytecode, as an installed lace has it
    if pages == "dropped":
        drop_pages(path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, env=installed)
    seconds = perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "count": done.stdout.count(b"\n"),
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "peak": used.ru_maxrss * 1024.0,
        "read": used.ru_inblock * 512.0,
    }


def bound(path: str, name: str) -> Figures:
    """`lace query` of a goal that names one record, as a whole process: the best of a few, and what it took of the
    processor. Records are picked by a seed; half of them or so are selected."""
    with open_store(path, read_only=True) as store:
        view = store.snapshot()
        (subjects,) = view.columns(HAVE)
        picked = [view.texts(subjects[at : at + 1])[0] for at in Random(17).sample(range(len(subjects)), BOUND_GOALS)]
    runs = [cold(path, name, "kept", goal) for goal in picked]
    return {
        "count": sum(run["count"] for run in runs),
        "seconds": min(run["seconds"] for run in runs),
        "processor": min(run["processor"] for run in runs),
        "peak": max(run["peak"] for run in runs),
    }


def warm(path: str, name: str) -> Figures:
    """`lace.query` on an open store: the first time, and again."""
    with lace.open(path, read_only=True) as opened:
        times = []
        for _ in range(7):
            started = perf_counter()
            answer = query(opened, RULES[name])
            times.append(perf_counter() - started)
        started = perf_counter()
        count = len(answer.rows())
        figures = {"count": count, "first": times[0], "again": statistics.median(times[1:])}
        return figures | {"rows": perf_counter() - started, "peak": peak_bytes()}


def changes(path: str, name: str) -> Figures:
    """One record more and one less in a store: the answers followed, after the store has it."""
    program = check_program(parse_program(RULES[name]), RAW_PROFILE)
    random, target = Random(13), f"evidence P.{'A' * 43}.H3"
    with open_store(path) as store:
        started = perf_counter()
        kept = materialize(program, store.snapshot())
        full = perf_counter() - started
        gc.freeze()
        new = [
            plex("u", "ding", f"links/new{n}", 1_800_000_000 + n, target, random.randbytes(300)) for n in range(CHANGES)
        ]
        added = [
            _followed(partial(store.put, [record]), kept.apply, added=list(derive_facts(record))) for record in new
        ]
        removed = [
            _followed(partial(store.delete, record.hash), kept.apply, removed=list(derive_facts(record)))
            for record in new
        ]
    return {
        "full": full,
        "added": statistics.median(added[20:]),
        "removed": statistics.median(removed[20:]),
        "peak": peak_bytes(),
    }


def _followed(change: Callable[[], object], apply: Callable[..., object], **facts: list[Fact]) -> float:
    """Change the store, then follow; how long following took."""
    change()
    started = perf_counter()
    apply(**facts)
    return perf_counter() - started


def peak_bytes() -> float:
    """The most memory this process ever held."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


STEPS: dict[str, Callable[..., Figures]] = {
    "build": build,
    "cold": cold,
    "bound": bound,
    "warm": warm,
    "changes": changes,
}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
