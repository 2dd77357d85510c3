"""The log of an archive: numbered commits, each an immutable file that says what changed.

Rule: a version is a number, and a number is taken once. What an archive holds at a version is the commits up to it,
replayed; every few commits carry the whole, so that a reader opens few files. Nothing here needs Spark.

    ROOT/log/00000001.json …
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from typing import Any

from lace.errors import InvalidInput, LaceError, StoreError
from lace.notation.jsontext import read_json
from lace.spark.archive.filesystem import Files
from lace.spark.archive.moments import parse_moment
from lace.values import dataclass

FORMAT = 1
FOLDER = "log"
_WHOLE_EVERY = 16


class LostRace(LaceError):
    """Another writer took the version that this one was about to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One Parquet file of a table, and the least and greatest values in it that readers prune by."""

    table: str
    path: str
    rows: int
    bytes: int
    batches: tuple[str, ...] = ()  # whose rows stand in it
    low: dict[str, str] = field(default_factory=dict)
    high: dict[str, str] = field(default_factory=dict)


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
    """How far a step has come: what it hangs on, the batches it has seen, the removals it knows, what it counted."""

    mark: str
    batches: tuple[str, ...]
    removals: int
    counts: dict[str, int]
    seconds: float
    kept: bool = False  # whether all that its rules derive is stored, so that it can follow what changes
    way: StepWay | None = None  # None in commits of older versions


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that an archive holds at a version."""

    version: int = 0
    files: tuple[DataFile, ...] = ()
    batches: tuple[ArchiveBatch, ...] = ()
    results: Mapping[str, StepResult] = field(default_factory=dict)
    removals: int = 0  # how many commits have taken records away
    oldest: int = 1  # the first version whose files are all still there

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
        kept = tuple(file for file in state.files if file.path not in gone)
        return State(
            version=self.version,
            files=(*kept, *self.added),
            batches=state.batches if self.batch is None else (*state.batches, self.batch),
            results={key: one for key, one in {**state.results, **self.results}.items() if key not in self.forgotten},
            removals=state.removals + self.removal,
            oldest=state.oldest if self.oldest is None else self.oldest,
        )


class Log:
    """The commits under one root."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def versions(self) -> list[int]:
        """Every version there is, oldest first."""
        names = (listed.name.rpartition("/")[2] for listed in self.files.listing(FOLDER))
        return sorted(int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdecimal())

    def commits(self, versions: Iterable[int] | None = None) -> list[Commit]:
        return [self._read(version)[0] for version in (self.versions() if versions is None else versions)]

    def state(self, as_of: int | str | None = None) -> State:
        """What the archive holds now, at a version, or at a time (ISO 8601)."""
        versions = self.versions()
        if not versions:
            raise StoreError(f"{self.files.uri}: there is no archive here (`lace archive init` makes one)")
        wanted = versions[-1] if as_of is None else self._version_at(as_of, versions)
        state = self._replayed(wanted)
        if as_of is not None and wanted < (oldest := self._replayed(versions[-1]).oldest):
            raise InvalidInput(f"the files of versions before {oldest} were removed", rule="as-of", found=str(as_of))
        return state

    def _replayed(self, wanted: int) -> State:
        tail: list[Commit] = []
        for version in range(wanted, 0, -1):
            commit, whole = self._read(version)
            if whole is not None:
                state = whole
                break
            tail.append(commit)
        else:
            state = State()
        for commit in reversed(tail):
            state = commit.apply(state)
        return state

    def _version_at(self, as_of: int | str, versions: list[int]) -> int:
        if isinstance(as_of, int) or as_of.isdecimal():
            if int(as_of) not in versions:
                raise InvalidInput(f"versions are 1 to {versions[-1]}", rule="archive-version", found=str(as_of))
            return int(as_of)
        moment = parse_moment(as_of, "as-of", "a version number or a time")
        before = [commit.version for commit in self.commits() if datetime.fromisoformat(commit.time) <= moment]
        if not before:
            raise InvalidInput("the archive is younger than that", rule="as-of", found=as_of)
        return before[-1]

    def _read(self, version: int) -> tuple[Commit, State | None]:
        name = _name(version)
        try:
            return _decoded(self.files.read(name))
        except FileNotFoundError:
            raise StoreError(f"{self.files.uri}/{name}: this commit is missing from the log") from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.files.uri}/{name}: not a commit ({error})") from None

    def commit(self, state: State, change: Commit) -> State:
        """Write the commit after `state`; LostRace if another writer was first."""
        change = replace(change, version=state.version + 1)
        after = change.apply(state)
        whole = after if change.version % _WHOLE_EVERY == 0 else None
        if not self.files.publish(_name(change.version), _encoded(change, whole)):
            raise LostRace(f"version {change.version} was written by somebody else meanwhile: run again")
        return after


def _name(version: int) -> str:
    return f"{FOLDER}/{version:08d}.json"


def _encoded(commit: Commit, whole: State | None) -> bytes:
    body = {"format": FORMAT, **asdict(commit), "whole": None if whole is None else asdict(whole)}
    return (json.dumps(body, indent=1) + "\n").encode()


def _decoded(data: bytes) -> tuple[Commit, State | None]:
    body = read_json(data)
    if body.pop("format") != FORMAT:
        raise ValueError("written by another version of lace")
    whole = body.pop("whole")
    body["added"] = _files(body["added"])
    body["dropped"] = tuple(body["dropped"])
    body["forgotten"] = tuple(body.get("forgotten", ()))
    body["batch"] = None if body["batch"] is None else _batch(body["batch"])
    body["results"] = _results(body["results"])
    body["ways"] = {step: StepWay(**way) for step, way in body.get("ways", {}).items()}
    if whole is None:
        return Commit(**body), None
    whole["files"] = _files(whole["files"])
    whole["batches"] = tuple(map(_batch, whole["batches"]))
    whole["results"] = _results(whole["results"])
    return Commit(**body), State(**whole)


def _batch(found: dict[str, Any]) -> ArchiveBatch:
    inputs = {content: Input(**item) for content, item in found["inputs"].items()}
    return ArchiveBatch(**{**found, "inputs": inputs, "way": _way(found.get("way"))})


def _files(found: list[dict[str, Any]]) -> tuple[DataFile, ...]:
    return tuple(DataFile(**{**item, "batches": tuple(item["batches"])}) for item in found)


def _results(found: dict[str, dict[str, Any]]) -> dict[str, StepResult]:
    return {
        key: StepResult(**{**item, "batches": tuple(item["batches"]), "way": _way(item.get("way"))})
        for key, item in found.items()
    }


def _way(found: dict[str, Any] | None) -> StepWay | None:
    return None if found is None else StepWay(**found)
