"""What a version of an archive holds, and what a commit changes of it.

Rule: values alone; whoever reads or writes them is `log`. The names of batches are in the order in which they came, so
how far a step has come is one name, and what it has not seen is a range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime

from lace.errors import LaceError
from lace.values import dataclass


class LostRace(LaceError):
    """Another writer took the version that this one was about to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One Parquet file of a table, and the least and greatest values in it that readers prune by."""

    table: str
    path: str
    rows: int
    bytes: int
    first: str = ""  # the batches whose rows stand in it, and perhaps others between; empty where rows have none
    last: str = ""
    low: dict[str, str] = field(default_factory=dict)
    high: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchRange:
    """The batches that came after one and up to another; `after` is empty before the first."""

    after: str
    last: str

    def __bool__(self) -> bool:
        return self.after < self.last

    def __contains__(self, batch: object) -> bool:
        return isinstance(batch, str) and self.after < batch <= self.last

    def meets(self, file: DataFile) -> bool:
        """Whether a file may hold rows of these batches."""
        return self.after < file.last and "" < file.first <= self.last

    def holds(self, file: DataFile) -> bool:
        """Whether all rows of a file are of these batches."""
        return self.after < file.first and file.last <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A file that was read."""

    address: str
    size: int
    modified_ns: int = 0


HERE, ON_SPARK = "in this process", "on Spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWay:
    """Who carried a step out; of how many jobs, where that was Spark and its session could say."""

    where: str
    jobs: int | None = None
    seconds: float = 0.0

    @classmethod
    def together(cls, ways: Sequence[StepWay]) -> StepWay | None:
        """Several ways as one: on Spark if one of them was; None of none."""
        if not ways:
            return None
        jobs = [way.jobs for way in ways if way.where == ON_SPARK]
        known = sum(count for count in jobs if count is not None) if None not in jobs else None
        seconds = round(sum(way.seconds for way in ways), 3)
        return cls(where=ON_SPARK, jobs=known, seconds=seconds) if jobs else cls(where=HERE, seconds=seconds)

    def __str__(self) -> str:
        return self.where if self.jobs is None else f"{self.where}, {self.jobs} job{'' if self.jobs == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveBatch:
    """One addition: the inputs it read, by content, and what became of them."""

    id: str
    inputs: dict[str, Input]
    counts: dict[str, int]
    way: StepWay | None = None  # None in commits of older versions


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How far a step has come: what it hangs on, the last batch it has seen, the removals it knows, what it counted."""

    mark: str
    seen: str
    removals: int
    counts: dict[str, int]
    seconds: float
    kept: bool = False  # whether all that its rules derive is stored, so that it can follow what changes
    way: StepWay | None = None  # None in commits of older versions


_STEPS = {"advertise": "list for", "publish": "publish for", "requestable": "requestable from"}


def step_name(key: str, result: StepResult) -> str:
    """A step as people call it: where its key has the mark of some rules, whom they are for."""
    kind, _, whose = key.partition(":")
    if kind == "selected":
        names = [name.removeprefix("selected ") for name in result.counts]
        return f"select for {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
    return f"{_STEPS[kind]} {whose}" if kind in _STEPS else key


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that an archive holds at a version."""

    version: int = 0
    files: tuple[DataFile, ...] = ()
    batches: tuple[ArchiveBatch, ...] = ()
    results: Mapping[str, StepResult] = field(default_factory=dict)
    removals: int = 0  # how many commits have taken records away
    oldest: int = 1  # the first version whose files are all still there
    time: str = ""  # of its commit

    def table(self, name: str) -> tuple[DataFile, ...]:
        return tuple(file for file in self.files if file.table == name)

    def rows(self, name: str) -> int:
        return sum(file.rows for file in self.table(name))

    @property
    def contents(self) -> frozenset[str]:
        """The digests of every input that was read."""
        return frozenset(content for batch in self.batches for content in batch.inputs)

    @property
    def batch_ids(self) -> tuple[str, ...]:
        return tuple(batch.id for batch in self.batches)

    @property
    def last_batch(self) -> str:
        return self.batches[-1].id if self.batches else ""

    @property
    def every_batch(self) -> BatchRange:
        return BatchRange("", self.last_batch)

    def since(self, before: StepResult | None) -> BatchRange:
        """The batches that a step has not seen."""
        return BatchRange("" if before is None else before.seen, self.last_batch)

    def count(self, batches: BatchRange) -> int:
        """How many batches a range has."""
        return sum(batch.id in batches for batch in self.batches)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One change, worked out now; the log gives it its version when it is written."""

    operation: str
    version: int = 0
    time: str = field(default_factory=_now)
    counts: dict[str, int] = field(default_factory=dict)
    added: tuple[DataFile, ...] = ()
    dropped: tuple[str, ...] = ()  # paths of files that are no longer part of the archive
    batch: ArchiveBatch | None = None
    results: Mapping[str, StepResult] = field(default_factory=dict)
    removal: bool = False
    oldest: int | None = None
    forgotten: tuple[str, ...] = ()  # results that are no longer kept
    ways: Mapping[str, StepWay] = field(default_factory=dict)  # who carried each step out

    def apply(self, state: State) -> State:
        gone = set(self.dropped)
        kept = tuple(file for file in state.files if file.path not in gone) if gone else state.files
        return State(
            version=self.version,
            files=(*kept, *self.added),
            batches=state.batches if self.batch is None else (*state.batches, self.batch),
            results={key: one for key, one in {**state.results, **self.results}.items() if key not in self.forgotten},
            removals=state.removals + self.removal,
            oldest=state.oldest if self.oldest is None else self.oldest,
            time=self.time,
        )
