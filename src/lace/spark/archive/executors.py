"""Who carries a step of an archive out: this process, or jobs of Spark.

Rule: the only place where that is decided, from what the user said, where the archive lies and how much there is to go
through. Both executors have one interface and write the same rows; each step says which one it was, and the commit
keeps it.

What the way without Spark buys: five new records in about a second instead of a JVM's start and some ten jobs (decision
205), 100,000 small ones in 5 CPU s instead of 27 s (decision 275, `bench/archive.py`). `tests/spark/test_few.py`
compares the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from lace.limits import EngineLimits
from lace.spark.archive.versions import HERE, ON_SPARK, BatchRange, DataFile, State, StepWay
from lace.spark.engine.executor import SparkSettings
from lace.thresholds import ArchiveThresholds
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lace.spark.archive.archive import Archive
    from lace.spark.archive.forget import DescribedRecord
    from lace.spark.jobs.evaluate import PeerPolicy
    from lace.spark.jobs.report import Counts, ReportCounts
    from lace.spark.source.files import RawRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Bounds of a run."""

    limits: EngineLimits | None = None  # those of one machine, and on a cluster its own
    executor: SparkSettings = field(default_factory=SparkSettings)


class TooMuchHere(Exception):
    """A step turned out to need more than this process takes on; nothing of it is left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a step has to go through, as far as commits and the sizes of files say."""

    bytes: int = 0  # of inputs, or of files that are read through
    whole_bytes: int = 0  # of the records that rules look at all at once
    scanned_rows: int = 0  # of a narrow column that something is looked for in
    held_rows: int = 0  # of narrow columns that are held at once


def files_bytes(files: Iterable[DataFile]) -> int:
    """How large some files are."""
    return sum(file.bytes for file in files)


def files_rows(files: Iterable[DataFile]) -> int:
    """How many rows some files hold."""
    return sum(file.rows for file in files)


def is_for_process(archive: Archive, need: Need) -> bool:
    """Whether this process does without Spark what a step needs: the one decision."""
    most: ArchiveThresholds = archive.thresholds
    return (
        not archive.wants_spark
        and most.in_process_bytes > 0
        and archive.files.folder is not None
        and need.bytes <= most.in_process_bytes
        and need.whole_bytes <= min(most.whole_bytes, most.in_process_bytes)
        and need.scanned_rows <= most.scanned_rows
        and need.held_rows <= most.held_rows
    )


class NewRecords(Protocol):
    """Records that may be new to an archive, as they were found."""

    def rows(self) -> Iterator[RawRecord]:
        """One after another, in the order of their places."""

    def frame(self, columns: Sequence[str] | None = None) -> DataFrame:
        """The same on the cluster; all columns of `RAW`, or some of them."""


class Addition(NamedTuple):
    """What was read, and the files that it became."""

    read: int
    files: list[DataFile]
    dropped: list[str]  # paths of files that some of these stand for
    forgotten: int = 0  # of what was read: left out, because it was forgotten here


class Cut(NamedTuple):
    """Files written again without some records."""

    added: list[DataFile]
    dropped: list[str]  # paths of the files that they stand for
    rows: int  # records that went


class Unseen(NamedTuple):
    """What was selected since a peer was last given something: the files that say so, and the batches."""

    files: list[DataFile]
    batches: BatchRange
    is_all: bool  # every row of the files counts, whatever its batch


class ChangedListing(NamedTuple):
    """The listing of one peer whose counts and roots are to be renewed."""

    peer: str
    held: list[DataFile]  # the listing
    old: list[DataFile]  # its counts and roots so far; none if they are worked out from nothing
    new: list[DataFile]  # those of the listing that came
    went: DataFrame | None = None  # hashes that left the listing


class Executor(Protocol):
    """The steps, over one version of an archive. Files are written, and nothing is committed."""

    def add(self, found: NewRecords, batch: str) -> Addition:
        """Judge the records that are not here yet and write them, each once."""

    def described(self, hashes: Sequence[str]) -> list[DescribedRecord]:
        """What forgetting has to know of those of some records that are here."""

    def links_to(self, hashes: Sequence[str]) -> list[tuple[str, str]]:
        """(record, target): the records here that link to some."""

    def without(self, hashes: Sequence[str], *, for_good: bool) -> Cut:
        """Every table without some records; `for_good` keeps nothing of them for steps that still count them."""

    def are_about_parts(self, files: Sequence[DataFile]) -> bool:
        """Whether one of the records in some files of `records` or `removed` is a Blob or names parts of content."""

    def select(self, peer: PeerPolicy, mark: str, batches: BatchRange, *, apart: bool) -> list[DataFile]:
        """What rules let a peer have of some batches; `apart` says that any part of them may be looked at alone."""

    def advertise(self, peer: PeerPolicy, chosen: Sequence[DataFile], batches: BatchRange) -> list[DataFile]:
        """The listing of what some files of `selected` name, which rules of one record choose from some batches."""

    def summarise(self, listing: ChangedListing) -> list[DataFile]:
        """Counts and roots of the partitions of a listing; those that did not change are taken over."""

    def publish(
        self, peer: PeerPolicy, unseen: Unseen, given: Sequence[DataFile], place: str
    ) -> tuple[int, list[DataFile]]:
        """Bundles with what a peer may have and was not given, how many records that is, and that it was given them."""

    def facts(self, batches: BatchRange) -> list[DataFile]:
        """The facts of 020 of the records that some batches brought, one table for each predicate."""

    def missing(self, others: Mapping[str, Path]) -> list[DataFile]:
        """The records that one of several places lacks and another one has, and how many those are by partition."""

    def count(self, others: Mapping[str, Path]) -> tuple[ReportCounts, dict[str, Counts]]:
        """What a report counts, and who lacks what by partition."""


class Step:
    """One step under way: its parts may be carried out by one executor or by both."""

    def __init__(self, archive: Archive, state: State, settings: RunSettings, name: str) -> None:
        self._archive = archive
        self._state = state
        self._settings = settings
        self.name = name
        self._is_on_spark = False
        self._jobs: int | None = 0
        self._began = time.monotonic()

    def do(self, need: Need | None, work: Callable[[Executor], T]) -> T:
        """Have a part of the step carried out; None is what only Spark can do."""
        if need is not None and is_for_process(self._archive, need):
            from lace.spark.archive.in_process import InProcess

            try:
                return work(InProcess(self._archive, self._state, self._settings))
            except TooMuchHere:  # it has looked closer than sizes tell
                pass
        from lace.spark.archive.on_spark import OnSpark

        return self.by_jobs(lambda: work(OnSpark(self._archive, self._state, self._settings)))

    def by_jobs(self, work: Callable[[], T]) -> T:
        """Have a part done that is written for Spark alone; its jobs count."""
        from lace.spark.session.tags import counted_jobs
        from lace.spark.session.watching import JobWatch

        self._is_on_spark = True
        spark = self._archive.spark
        watch = JobWatch(tell=partial(self._archive.progress, self.name), every_seconds=self._archive.tell_every_s)
        with counted_jobs(spark, watch) as jobs:
            found = work()
        ran = jobs()
        self._jobs = None if ran is None or self._jobs is None else self._jobs + ran
        return found

    @property
    def way(self) -> StepWay:
        """Which way was taken."""
        seconds = round(time.monotonic() - self._began, 3)
        where, jobs = (ON_SPARK, self._jobs) if self._is_on_spark else (HERE, None)
        return StepWay(where=where, jobs=jobs, seconds=seconds)

    def tell(self, what: str) -> None:
        """Say what came out and who did it."""
        self._archive.step_done(self.name, what, self.way)


class Steps:
    """The steps of one change, over one version of an archive."""

    def __init__(self, archive: Archive, state: State, settings: RunSettings | None = None) -> None:
        self._archive = archive
        self._state = state
        self._settings = settings or RunSettings()

    def step(self, name: str) -> Step:
        """A step that begins now."""
        self._archive.say_step(name)
        return Step(self._archive, self._state, self._settings, name)
