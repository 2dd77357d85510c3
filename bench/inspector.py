"""The pages of the inspector over a large lace, and `lace why`: how long each takes, warm, and how much it reads.

usage: python bench/inspector.py [--quick] [--store FILE]

A lace of 1,000,000 records (--quick: 50,000) is made in a folder of its own: 200 spaces, one folder with a tenth of all
names directly below it, one coordinate with 2,000 versions, one record that 10,000 others link to. --store keeps it in
a file, and finds it there the next time. Every page is asked over HTTP as a browser would, rules with a new comment
each time; one visit warms it, then the median and the worst of nine count. `reads` is how many statements the two
readers of the store file sent to SQLite for one visit: it must not grow with the lace. `lace why` is asked as whole
commands, from the start of a Python to its end. `CPU ms` is the processor time of the median, which a busy machine does
not change.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from report import Report

from lace.inspector.inspected import Inspected, open_all
from lace.inspector.serving import Inspector, inspecting
from lace.notation.tai import TAI
from lace.porcelain.lace import open_lace
from lace.porcelain.search import index
from lace.records.link import link_header
from lace.records.model import Blob, Plex
from lace.records.validate import ValidRecord, validate
from lace.records.write import encode_record
from lace.store.columns.store import SQLiteStore

VISITS = 9
BATCH = 5_000
VERSIONS = 2_000
LINKING = 10_000
WITHIN_MS = 200.0
WHY_WITHIN_S = 1.0
HUB = "hub"


def plex(group: str, app: str, name: str, number: int, *, link: str = "") -> Plex:
    """One small record."""
    headers = (link_header("about", link),) if link else ()
    tai = TAI.from_ns((1_700_000_000 + number) * 10**9)
    return Plex(group=group, app=app, name=name, tai=tai, headers=headers, blob=Blob(f"entry {number}\n".encode()))


def records(total: int) -> Iterator[Plex]:
    """The lace, record by record."""
    hub = plex("g000", "a0", HUB, 0)
    yield hub
    for number in range(1, total):
        if number <= VERSIONS:
            yield plex("g000", "a0", "versions", number)
        elif number <= VERSIONS + LINKING:
            yield plex("g000", "a1", f"linking/{number}", number, link=hub.hash)
        elif number % 10 == 0:
            yield plex("flat", "flat", f"all/{number:08d}", number)
        else:
            space = number % 200
            yield plex(f"g{space // 5:03d}", f"a{space % 5}", f"{number % 97}/{number % 31}/{number}", number)


def fill(path: Path, total: int) -> None:
    """Store the records in batches."""
    with open_lace(path, create=True) as lace:
        batch: list[ValidRecord] = []
        for record in records(total):
            batch.append(validate(encode_record(record)))
            if len(batch) == BATCH:
                lace.store.put(batch)
                batch = []
        lace.store.put(batch)


class Counter:
    """Counts the statements that the readers of a lace send to SQLite."""

    def __init__(self, inspected: Inspected) -> None:
        self.statements = 0
        opened = next(iter(inspected.laces.values()))
        store = opened.lace.store
        assert isinstance(store, SQLiteStore)
        for connection in (opened.browser._connection, store.file.connection):
            connection.set_trace_callback(self._count)

    def _count(self, _: str) -> None:
        self.statements += 1


def visit(inspector: Inspector, cookie: str, path: str) -> tuple[float, float, int]:
    """Milliseconds, those of them that a processor worked, and bytes of one visit."""
    started, worked = time.perf_counter(), time.process_time()
    connection = http.client.HTTPConnection("127.0.0.1", inspector.port, timeout=600)
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
    return (time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000, len(body)


def pages(base: str, total: int) -> dict[str, str]:
    """Every page by what it shows."""
    hub = plex("g000", "a0", HUB, 0).hash
    newest, older = (plex("g000", "a0", "versions", number).hash for number in (VERSIONS, VERSIONS - 1))
    some = plex("flat", "flat", f"all/{total // 20 * 10:08d}", total // 20 * 10).hash
    selector = quote("Chosen(P,N) :- Field(P,'Group',_,'g007'), Field(P,'Name',_,N).")
    everything = quote("Every(P) :- Have(P).")
    blocked = quote("Linking(P) :- RecordLink(P,_,_,_,_).\nChosen(P) :- Field(P,'App',_,'a1'), not Linking(P).")
    return {
        "overview": "/",
        "groups and apps": base,
        "one group": f"{base}?group=g007",
        "names of an app": f"{base}?group=g007&app=a2",
        "a folder of many names": f"{base}?group=flat&app=flat&under=all/",
        "the same, from its middle": f"{base}?group=flat&app=flat&under=all/&from=all/{total // 2:08d}",
        "what came last": f"{base}/recent",
        "the same, from the middle": f"{base}/recent?before={total // 2}",
        "a record": f"{base}/record/{some}",
        "a record that many link to": f"{base}/record/{hub}",
        f"a record with {VERSIONS:,} versions": f"{base}/record/{newest}",
        "what changed": f"{base}/compare?older={older}&newer={newest}",
        "rules: one group": f"{base}/rules?rules={selector}",
        "rules: every record": f"{base}/rules?rules={everything}",
        "rules: with a negation": f"{base}/rules?rules={blocked}",
        "rules: why": f"{base}/rules?rules={blocked}&goal={quote('Chosen(P)')}",
        "rules: why not": f"{base}/rules?rules={selector}&goal={quote(f'''Chosen('{hub}',N)''')}",
        "find a word of one record": f"{base}/find?q={total // 2}",
        "find a word of every record": f"{base}/find?q=entry",
        "exposure of everything": f"{base}/exposure",
        "exposure by rules": f"{base}/exposure?ours={quote('//g007//a2//')}&expose=selected",
    }


def unseen(address: str, number: int) -> str:
    """The same page with rules that were never asked before: the inspector keeps answers, and typing makes new ones."""
    return address.replace("rules?rules=", f"rules?rules={quote(f'# {number}')}%0A")


def questions(folder: Path, total: int) -> dict[str, list[str]]:
    """What `lace why` is asked, with the rules and the key that it is asked with."""
    newest, older = (plex("g000", "a0", "versions", number).hash for number in (VERSIONS, VERSIONS - 1))
    number = total // 20 * 10
    some, hub = plex("flat", "flat", f"all/{number:08d}", number).hash, plex("g000", "a0", HUB, 0).hash
    flat, unlinked = folder / "flat.rules", folder / "unlinked.rules"
    advertised = "SelectAdvertised(P,S) :- Advertised(P,S).\n"
    flat.write_text(f"SelectHave(P) :- Field(P,'Group',_,'flat').\n{advertised}")
    unlinked.write_text(
        f"Linking(P) :- RecordLink(P,_,_,_,_).\nSelectHave(P) :- Have(P), not Linking(P).\n{advertised}"
    )
    lace(folder, "key", "new", "bob")
    seen = ["--expose", "all"]
    return {
        "a record": [some],
        "a coordinate": [f"//flat//flat//all/{number:08d}"],
        "the beginning of a hash": [some[:16]],
        f"a coordinate with {VERSIONS:,} versions": ["//g000//a0//versions", *seen],
        "hidden by a newer tip": [older, *seen],
        "the newest of them, to everybody": [newest, *seen, "--peer", "all"],
        "a hash that is not there": [plex("no", "no", "no", 1).hash],
        "a coordinate that is not there": ["//no//no//no"],
        "to a peer by its rules": [some, "--peer", str(flat), "--expose", "selected"],
        "to a peer by name and rules": [some, "--peer", "bob", "--peer", str(flat), "--expose", "selected"],
        "not selected by our rules": [hub, "--select", str(flat), *seen],
        "not selected by the peer's rules": [hub, "--peer", str(flat), *seen],
        "to a peer whose rules negate": [some, "--peer", str(unlinked), *seen],
    }


def lace(folder: Path, *arguments: str) -> tuple[float, float, int]:
    """Milliseconds, those of them that a processor worked, and bytes printed of one whole command."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LACE_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "lace.cli", *arguments]
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1 says that a gate is shut, or that nothing is there
        raise SystemExit(f"{' '.join(arguments)}: {process.returncode} {printed[:300]!r}")
    return (time.perf_counter() - started) * 1000, (usage.ru_utime + usage.ru_stime) * 1000, len(printed)


def measure_why(report: Report, path: Path, folder: Path, total: int) -> None:
    """Every question, once to warm it, then a few times."""
    for name, question in questions(folder, total).items():
        lace(folder, "why", str(path), *question)
        taken = [lace(folder, "why", str(path), *question) for _ in range(VISITS // 2 + 1)]
        middle = add_row(report, f"lace why: {name}", taken, reads="")
        report.at_most(f"lace why: {name} in {WHY_WITHIN_S:.0f} s", wanted=WHY_WITHIN_S, got=middle / 1000, unit=" s")


def measure_pages(report: Report, path: Path, total: int) -> None:
    """Every page, once to warm it, then a few times."""
    inspected = open_all([path])
    counter = Counter(inspected)
    base = next(iter(inspected.laces.values())).base
    with inspecting(inspected) as inspector:
        cookie = f"lace_inspector_{inspector.port}={inspector.token}"
        for name, address in pages(base, total).items():
            first, _, _ = visit(inspector, cookie, address)
            before = counter.statements
            taken = [visit(inspector, cookie, unseen(address, number)) for number in range(VISITS)]
            middle = add_row(report, name, taken, reads=(counter.statements - before) // VISITS)
            print(f"    first {first:.0f} ms", file=sys.stderr)
            report.at_most(f"{name} in {WITHIN_MS:.0f} ms", wanted=WITHIN_MS, got=middle, unit=" ms")
    inspected.close()


def add_row(report: Report, name: str, taken: list[tuple[float, float, int]], *, reads: int | str) -> float:
    """A line of the table; the median milliseconds."""
    times, worked, sizes = zip(*taken, strict=True)
    middle = statistics.median(times)
    report.row(
        name, round(middle, 1), round(max(times), 1), round(statistics.median(worked), 1), sizes[0] // 1000, reads
    )
    return float(middle)


def make(report: Report, path: Path, total: int) -> None:
    """The lace with its index of words."""
    started = time.perf_counter()
    fill(path, total)
    report.note(f"{total:,} records, made in {time.perf_counter() - started:.0f} s; pages of 100 rows over HTTP")
    started, before = time.perf_counter(), path.stat().st_size
    with open_lace(path) as lace:
        index(lace)
    taken_s, grown = time.perf_counter() - started, path.stat().st_size - before
    report.note(f"`lace index` took {taken_s:.0f} s and {grown / total:.0f} bytes a record")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50,000 records")
    parser.add_argument("--store", type=Path, help="keep the lace in this file, and find it there the next time")
    chosen = parser.parse_args()
    columns = ["what", "median ms", "worst ms", "CPU ms", "KB", "reads"]
    report = Report.start("inspector", "Pages of the inspector, and lace why", columns=columns)
    total = 50_000 if report.quick else 1_000_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = chosen.store or folder / "large.lace"
        if path.exists():
            with open_lace(path, read_only=True) as lace:
                if lace.stat().records != total:
                    raise SystemExit(f"{path} holds {lace.stat().records:,} records, not {total:,}")
            report.note(f"{total:,} records, kept from a run before; pages of 100 rows over HTTP")
        else:
            make(report, path, total)
        measure_pages(report, path, total)
        measure_why(report, path, folder, total)
    report.end(is_whole=True)


if __name__ == "__main__":
    main()
