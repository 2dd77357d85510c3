"""Worker processes: jobs and answers, failures as values of ours, and no code from the folder we stand in."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

import lace
from lace.errors import LimitExceeded
from lace.intake.check import check_job
from lace.limits import RecordLimits
from lace.workers.pool import BackgroundPool, Worker, WorkerDied, WorkerPool, search_path
from lace.workers.process import receive, send, serve
from store.samples import blob

FRAMES = [blob(bytes([number]) * 100).stored for number in range(5)]
JOB = check_job(FRAMES, RecordLimits())


@pytest.fixture
def worker() -> Iterator[Worker]:
    running = Worker()
    yield running
    running.close()


def test_a_worker_answers_one_job_after_the_other(worker: Worker) -> None:
    assert worker.ask(JOB, FRAMES).kept == [0, 1, 2, 3, 4]
    assert worker.ask(check_job([b"no record"], RecordLimits()), [b"no record"]).refused[0][:2] == (0, "line-unended")


def test_a_worker_that_was_killed_is_an_error_and_no_answer(worker: Worker) -> None:
    worker.kill()
    with pytest.raises(WorkerDied):
        worker.ask(JOB, FRAMES)


def test_jobs_of_a_pool_are_answered_whatever_their_number() -> None:
    pool = WorkerPool(2)
    try:
        waiting = [pool.ask(JOB, FRAMES) for _ in range(7)]
        assert [future.result().kept for future in waiting] == [[0, 1, 2, 3, 4]] * 7
    finally:
        pool.close()


def test_a_pool_ends_though_its_workers_are_at_something_that_takes_for_ever() -> None:
    """Whoever ends a server has seconds; a worker may be starting, or wait for bytes that nobody sends any more."""
    pool = WorkerPool(2)
    waiting = [pool.ask(JOB) for _ in range(3)]  # its frames do not come
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    for future in waiting:
        with pytest.raises((WorkerDied, CancelledError)):
            future.result(60)


@pytest.mark.parametrize("size", range(1, 40))
def test_an_answer_that_ends_in_the_middle_is_the_end_of_the_worker(size: int) -> None:
    pipe = BytesIO()
    send(pipe, ["an answer", "of some length"])
    with pytest.raises(EOFError):
        receive(BytesIO(pipe.getvalue()[:size]))


@dataclass
class Failing:
    def run(self, more: IO[bytes]) -> None:
        raise LimitExceeded("max_rows", 7, f"a job with {more.read(2)!r}")


def test_an_error_of_ours_comes_back_as_the_answer_and_the_next_job_is_done() -> None:
    requests, answers = BytesIO(), BytesIO()
    send(requests, Failing())
    requests.write(b"ab")
    send(requests, check_job(FRAMES[:1], RecordLimits()))
    requests.write(FRAMES[0])
    requests.seek(0)
    serve(requests, answers)
    answers.seek(0)
    failed, checked = receive(answers), receive(answers)
    assert isinstance(failed, LimitExceeded)
    assert "max_rows" in str(failed)
    assert "b'ab'" in str(failed)
    assert checked.kept == [0]  # type: ignore[attr-defined]
    with pytest.raises(EOFError):
        receive(answers)


def test_a_background_pool_has_no_answer_before_it_is_wanted_and_none_after_it_is_closed() -> None:
    pool = BackgroundPool(1, first=[check_job([], RecordLimits())])
    assert pool.ask(JOB, FRAMES) is None
    pool.want()
    pool.want()
    deadline = time.monotonic() + 60
    while (future := pool.ask(JOB, FRAMES)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert future.result().kept == [0, 1, 2, 3, 4]
    pool.close()
    assert pool.ask(JOB, FRAMES) is None
    assert not pool.is_ready


def test_a_background_pool_that_nobody_wanted_closes_at_once() -> None:
    BackgroundPool(4).close()


TRAPS = ["blake3.py", "pickle.py", "struct.py", "lace.py", "coincurve.py", "sitecustomize.py", "usercustomize.py"]
HOSTILE = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(1)"
# The program has loaded everything before its path is spoilt; only its workers look for modules after that.
PROGRAM = """
import os, sys
sys.path.insert(0, {root!r})
import lace.intake.bundles, lace.records.keys
from lace.limits import RecordLimits
if {spoilt}:
    sys.path[:0] = ["", os.getcwd()]
    os.environ["PYTHONPATH"] = os.pathsep
with lace.intake.bundles.checkers(1) as check:
    print(check([sys.stdin.buffer.read()], RecordLimits()).result().kept)
"""


@pytest.mark.parametrize("spoilt", [False, True])
def test_modules_that_lie_in_the_current_folder_do_not_run_in_a_worker(tmp_path: Path, spoilt: bool) -> None:
    for name in TRAPS:
        (tmp_path / name).write_text(HOSTILE)
    program = PROGRAM.format(root=str(Path(lace.__path__[0]).parent), spoilt=spoilt)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path, env=environment, input=FRAMES[0], capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"[0]\n"), done.stderr
    assert not list(tmp_path.glob("*.ran"))


def test_the_search_path_of_a_worker_leaves_out_where_we_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = str(tmp_path / "kept")
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), "kept", *sys.path])
    found = search_path()
    assert found[0] == str(Path(lace.__path__[0]).parent)
    assert kept in found
    assert not {"", ".", str(tmp_path)} & set(found)


def test_a_worker_stands_behind_whoever_asks(worker: Worker) -> None:
    worker.ask(JOB, FRAMES)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(own + 8, 19)
