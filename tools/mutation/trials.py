"""Mutants on trial, inside one pytest: the tests are collected once, and each mutant gets a fork of that process.

In the fork the functions of the changed module get their changed code, and the tests that reach it run one by one until
the first fails. Nothing is imported or collected again: a mutant that is noticed costs a few milliseconds.

A function that ran while its module was imported may have left its result behind. Such a mutant, if it survives, is
tried once more in a process of its own that imports the changed module.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.abc
import importlib.machinery
import mmap
import os
import resource
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NoReturn

import pytest

from mutation.changes import ROOT, Mutant, mutated
from mutation.outcomes import Found, Outcome

MOST_MEMORY = 8 << 30
OPTIONS = [
    *("-o", "addopts=--strict-markers --import-mode=importlib", "-o", "tmp_path_retention_policy=none"),
    *(
        "-p",
        "no:terminal",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        "-p",
        "no:xdist",
        "-p",
        "no:pytest_cov",
    ),
    *("--capture=no", "-m", "not spark and not slow"),
]


def run_pytest(files: Sequence[str], plugin: object) -> int:
    """Pytest on some files, in this process."""
    # The folder of this tool must be on no path: tools/siege.py would stand before the package tests/siege.
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != ROOT / "tools"]
    return int(pytest.main([*OPTIONS, *files], plugins=[plugin]))


class Note:
    """Where a fork writes which test it is at: whatever ends the process, its parent can read it."""

    _MOST = 4096

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self._MOST)

    def write(self, test: str) -> None:
        self._memory[:] = test.encode()[: self._MOST].ljust(self._MOST, b"\0")

    def read(self) -> str:
        return self._memory[:].rstrip(b"\0").decode(errors="replace")


def codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from codes(inner)


def place(code: CodeType) -> tuple[object, ...]:
    """What a code keeps while its inside changes: its name and where its text begins."""
    return (code.co_qualname, code.co_firstlineno, next(iter(code.co_positions()), None))


class Breaking(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module with its change to whoever imports it in this process; all others as they are."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        file = self._mutant.source
        places = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(file), is_package=places is not None)
        spec.submodule_search_locations = places
        return spec

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._mutant.source)
        exec(compile(mutated(self._mutant), module.__file__, "exec"), module.__dict__)


class Imported:
    """Our functions and their caches, as they are in memory before any test has run."""

    def __init__(self) -> None:
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        self._caches: list[functools._lru_cache_wrapper[object]] = []
        gc.unfreeze()  # what tests/conftest.py has set aside is not among the objects
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                self._functions[thing.__code__.co_filename].append(thing)
            elif isinstance(thing, functools._lru_cache_wrapper) and str(thing.__module__).startswith("lace"):
                self._caches.append(thing)

    def broken_by(self, mutant: Mutant) -> bool:
        """Give the function that it changes its new code; whether that could be done."""
        sys.meta_path.insert(0, Breaking(mutant))
        if mutant.module not in sys.modules:
            return True  # whoever imports it will get it
        for cached in self._caches:
            cached.cache_clear()
        changed = {place(code): code for code in codes(compile(mutated(mutant), str(mutant.source), "exec"))}
        found = False
        for function in self._functions[str(mutant.source)]:
            code = changed.get(place(function.__code__), function.__code__)
            if code != function.__code__:
                try:
                    function.__code__ = code
                except ValueError:  # it sees other variables of the functions around it
                    return False
                found = True
        return found


def _judged(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    patience: Callable[[str], float],
    most: int,
    at: Callable[[str], object],
) -> Outcome:
    """Run tests until one fails. An endless loop or a wait for ever ends the process, by a signal: noticed as well."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for item, after in zip(items, [*items[1:], None], strict=True):
        if time.process_time() > most:
            return Outcome.UNDECIDED
        at(item.nodeid)
        enough = patience(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, enough)
        signal.setitimer(signal.ITIMER_REAL, 12 * enough)  # one that waits uses no processor; others may use all
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return Outcome.NOTICED
    return Outcome.SURVIVED


@dataclass(frozen=True)
class Fork:
    """A process in which tests run against one mutant, or against none."""

    pid: int
    mutant: Mutant | None
    tests: int
    note: Note

    def end(self) -> None:
        """End whatever its tests have started and not ended, and the fork itself if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def ended(self, status: int) -> Found:
        self.end()
        code = os.waitstatus_to_exitcode(status)
        outcome = Outcome(code) if code in set(Outcome) else Outcome.NOTICED
        return Found(outcome, self.tests, self.note.read() if outcome is Outcome.NOTICED else "")


class Trials:
    """A pytest plugin that runs mutants instead of tests.

    A test whose failure is to count must pass by itself in such a fork while nothing is broken. One that does not is
    never asked again, and the mutant is tried without it.
    """

    def __init__(
        self,
        mutants: Sequence[Mutant],
        tests: Callable[[Mutant, Sequence[str]], list[str]],
        patience: Callable[[str], float],
        *,
        workers: int,
        most: int,
        told: Callable[[Mutant, Found], None],
    ) -> None:
        self._waiting, self._tests, self._patience = deque(mutants), tests, patience
        self._workers, self._most, self._told = workers, most, told
        self._running: dict[int, Fork] = {}
        self._passes: dict[str, bool] = {}  # by itself, while nothing is broken

    @property
    def unfit(self) -> list[str]:
        """Tests that failed while nothing was broken."""
        return sorted(test for test, passes in self._passes.items() if not passes)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("tests could not be collected: no mutant was tried")
        items = {item.nodeid: item for item in session.items}
        imported = Imported()
        gc.freeze()  # a collection in a fork would touch, and so copy, every page

        def fork(mutant: Mutant | None, tests: Sequence[str]) -> Fork:
            note = Note()
            pid = os.fork()
            if pid == 0:
                self._stand_trial(session, imported, mutant, [items[test] for test in tests], note)
            return Fork(pid, mutant, len(tests), note)

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._try_all(list(items), fork)
        finally:
            for trial in self._running.values():  # somebody has ended this run: forks are sessions of their own
                trial.end()
        return True

    def _try_all(self, collected: Sequence[str], fork: Callable[[Mutant | None, Sequence[str]], Fork]) -> None:
        while self._waiting or self._running:
            if not self._waiting or len(self._running) >= self._workers:
                self._finish_one(fork)
                continue
            mutant = self._waiting.popleft()
            reaching = [test for test in self._tests(mutant, collected) if self._passes.get(test, True)]
            if reaching:
                trial = fork(mutant, reaching)
                self._running[trial.pid] = trial
            else:
                self._told(mutant, Found(Outcome.SURVIVED, 0))

    def _stand_trial(
        self,
        session: pytest.Session,
        imported: Imported,
        mutant: Mutant | None,
        items: Sequence[pytest.Item],
        note: Note,
    ) -> NoReturn:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        outcome = Outcome.BETTER_IMPORTED
        try:
            if mutant is None or imported.broken_by(mutant):
                outcome = Outcome.NOTICED  # whatever escapes from pytest itself, the test under way has met
                outcome = _judged(session, items, self._patience, self._most, note.write)
        finally:
            os._exit(outcome)

    def _finish_one(self, fork: Callable[[Mutant | None, Sequence[str]], Fork]) -> None:
        pid, status = os.wait()
        trial = self._running.pop(pid)
        found = trial.ended(status)
        assert trial.mutant is not None
        if found.outcome is Outcome.NOTICED and not self._passes_unbroken(found.by, fork):
            self._waiting.appendleft(trial.mutant)
        else:
            self._told(trial.mutant, found)

    def _passes_unbroken(self, test: str, fork: Callable[[Mutant | None, Sequence[str]], Fork]) -> bool:
        if test not in self._passes:
            trial = fork(None, [test])
            _, status = os.waitpid(trial.pid, 0)
            self._passes[test] = trial.ended(status).outcome is Outcome.SURVIVED
        return self._passes[test]


class OnlyThese:
    """A pytest plugin for a trial in a process of its own: some tests, in an order."""

    def __init__(self, tests: Sequence[str], patience: Callable[[str], float], most: int, at: Path) -> None:
        self._tests, self._patience, self._most, self._at = tests, patience, most, at
        self.outcome = Outcome.NOTICED

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.testsfailed:  # else the tests could not even be imported
            items = {item.nodeid: item for item in session.items}
            chosen = [items[test] for test in self._tests if test in items]
            self.outcome = _judged(session, chosen, self._patience, self._most, self._at.write_text)
        return True


def imported_trial(
    mutant: Mutant | None, tests: Sequence[str], patience: Callable[[str], float], most: int, at: Path
) -> Outcome:
    """Try a mutant, or none, in this process, which has imported nothing of ours yet."""
    if mutant is not None:
        sys.meta_path.insert(0, Breaking(mutant))
    only = OnlyThese(tests, patience, most, at)
    run_pytest(sorted({test.partition("::")[0] for test in tests}), only)
    return only.outcome
