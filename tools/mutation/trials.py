"""Mutants on trial, inside one pytest: the tests are collected once, and each mutant gets a fork of that process.

In the fork the functions of the changed module get their changed code, and the tests that reach it run one by one until
the first fails. Nothing is imported or collected again: a mutant that is noticed costs a few milliseconds.

A function that ran while its module was imported may have left its result behind. Such a mutant, if it survives, is
tried once more in a process of its own that imports the changed module.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import gc
import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NoReturn

import pytest

from mutation.changes import ROOT, Mutant, mutated

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


class Outcome(enum.IntEnum):
    """How a trial ended; also the exit status of its process."""

    NOTICED = 10
    SURVIVED = 11
    UNDECIDED = 12  # the time for it was used up
    BETTER_IMPORTED = 13  # its code fits into no function that is there


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _place(code: CodeType) -> tuple[object, ...]:
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
        changed = {_place(code): code for code in _codes(compile(mutated(mutant), str(mutant.source), "exec"))}
        found = False
        for function in self._functions[str(mutant.source)]:
            code = changed.get(_place(function.__code__), function.__code__)
            if code != function.__code__:
                try:
                    function.__code__ = code
                except ValueError:  # it sees other variables of the functions around it
                    return False
                found = True
        return found


def _judged(
    session: pytest.Session, items: Sequence[pytest.Item], seconds: Callable[[str], float], most: int
) -> Outcome:
    """Run tests until one fails. An endless loop or a wait for ever ends the process, by a signal: noticed as well."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for item, after in zip(items, [*items[1:], None], strict=True):
        if time.process_time() > most:
            return Outcome.UNDECIDED
        patience = 20 + 20 * seconds(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, patience)
        signal.setitimer(signal.ITIMER_REAL, 20 * patience)  # one that waits uses no processor; others may use all
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return Outcome.NOTICED
    return Outcome.SURVIVED


class Trials:
    """A pytest plugin that runs mutants instead of tests."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        tests: Callable[[Mutant, Sequence[str]], list[str]],
        seconds: Callable[[str], float],
        *,
        workers: int,
        most: int,
        told: Callable[[Mutant, Outcome, int], None],
    ) -> None:
        self._mutants, self._tests, self._seconds = mutants, tests, seconds
        self._workers, self._most, self._told = workers, most, told
        self._running: dict[int, tuple[Mutant, int]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("tests could not be collected: no mutant was tried")
        items = {item.nodeid: item for item in session.items}
        imported = Imported()
        gc.freeze()  # a collection in a fork would touch, and so copy, every page
        for mutant in self._mutants:
            reaching = [items[test] for test in self._tests(mutant, list(items))]
            if not reaching:
                self._told(mutant, Outcome.SURVIVED, 0)
                continue
            if len(self._running) >= self._workers:
                self._finish_one()
            pid = os.fork()
            if pid == 0:
                self._stand_trial(session, imported, mutant, reaching)
            self._running[pid] = (mutant, len(reaching))
        while self._running:
            self._finish_one()
        return True

    def _stand_trial(
        self, session: pytest.Session, imported: Imported, mutant: Mutant, items: Sequence[pytest.Item]
    ) -> NoReturn:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        outcome = Outcome.NOTICED  # whatever escapes from pytest itself, a test would have met
        try:
            outcome = Outcome.BETTER_IMPORTED
            if imported.broken_by(mutant):
                outcome = Outcome.NOTICED
                outcome = _judged(session, items, self._seconds, self._most)
        finally:
            os._exit(outcome)

    def _finish_one(self) -> None:
        pid, status = os.wait()
        mutant, tests = self._running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what its tests have started and not ended
        self._told(mutant, Outcome(code) if code in set(Outcome) else Outcome.NOTICED, tests)


class OnlyThese:
    """A pytest plugin for a trial in a process of its own: some tests, in an order."""

    def __init__(self, tests: Sequence[str], most: int) -> None:
        self._tests, self._most = tests, most
        self.outcome = Outcome.NOTICED

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.testsfailed:  # else the tests could not even be imported
            items = {item.nodeid: item for item in session.items}
            chosen = [items[test] for test in self._tests if test in items]
            self.outcome = _judged(session, chosen, lambda _test: 30, self._most)
        return True


def imported_trial(mutant: Mutant, tests: Sequence[str], most: int) -> Outcome:
    """Try a mutant in this process, which has imported nothing of ours yet."""
    sys.meta_path.insert(0, Breaking(mutant))
    only = OnlyThese(tests, most)
    files = sorted({test.partition("::")[0] for test in tests})
    run_pytest(files, only)
    return only.outcome
