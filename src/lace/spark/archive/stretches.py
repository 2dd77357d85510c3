"""What some commits in a row come to, as one Parquet file.

Rule: a stretch says what a replay of its commits would, for any state before it, and stretches in a row are one
stretch. Files, batches and results are rows, so reading a long history costs what is left of it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet_files

from lace.spark.archive.versions import ArchiveBatch, Commit, DataFile, Input, State, StepResult, StepWay
from lace.values import dataclass

_SCHEMA = pa.schema(
    [("kind", pa.string()), ("key", pa.string()), ("table", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()),
     ("first", pa.string()), ("last", pa.string()), ("body", pa.string())]
)  # fmt: skip
_FILE, _DROPPED, _BATCH, _RESULT, _FORGOTTEN, _WHOLE = "file", "dropped", "batch", "result", "forgotten", "stretch"
_REPEATED = ["kind", "table", "first", "last"]


@dataclass(slots=True, kw_only=True)
class Stretch:
    """What the commits up to a version come to."""

    version: int
    time: str
    added: dict[str, DataFile] = field(default_factory=dict)  # by path, those that stayed
    dropped: list[str] = field(default_factory=list)  # of what was there before
    batches: list[ArchiveBatch] = field(default_factory=list)
    results: dict[str, StepResult | None] = field(default_factory=dict)  # None is forgotten
    removals: int = 0
    oldest: int | None = None

    @classmethod
    def of(cls, commit: Commit) -> Stretch:
        """A single commit."""
        return cls(
            version=commit.version,
            time=commit.time,
            added={file.path: file for file in commit.added},
            dropped=list(commit.dropped),
            batches=[] if commit.batch is None else [commit.batch],
            results={**commit.results, **dict.fromkeys(commit.forgotten)},
            removals=int(commit.removal),
            oldest=commit.oldest,
        )

    @classmethod
    def of_state(cls, state: State) -> Stretch:
        """All that an archive holds, as what every commit up to it comes to."""
        return cls(
            version=state.version,
            time=state.time,
            added={file.path: file for file in state.files},
            batches=list(state.batches),
            results=dict(state.results),
            removals=state.removals,
            oldest=state.oldest,
        )

    def then(self, after: Stretch) -> None:
        """Go on with what came after it."""
        for path in after.dropped:
            if self.added.pop(path, None) is None:
                self.dropped.append(path)
        self.added.update(after.added)
        self.batches += after.batches
        self.results.update(after.results)
        self.removals += after.removals
        self.version, self.time = after.version, after.time
        self.oldest = self.oldest if after.oldest is None else after.oldest

    def apply(self, state: State) -> State:
        """What an archive holds after it."""
        gone = set(self.dropped)
        results = {**state.results, **self.results}
        return State(
            version=self.version,
            files=(*(file for file in state.files if file.path not in gone), *self.added.values()),
            batches=(*state.batches, *self.batches),
            results={key: one for key, one in results.items() if one is not None},
            removals=state.removals + self.removals,
            oldest=state.oldest if self.oldest is None else self.oldest,
            time=self.time,
        )


def together(parts: Iterable[Stretch]) -> Stretch:
    """Stretches in a row as one."""
    found: Stretch | None = None
    for part in parts:
        if found is None:
            found = part
        else:
            found.then(part)
    assert found is not None
    return found


# As bytes


def encoded(stretch: Stretch) -> bytes:
    """A stretch as a Parquet file."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for row in _rows(stretch):
        for name, values in columns.items():
            values.append(row.get(name))
    sink = io.BytesIO()
    table = pa.table(columns, schema=_SCHEMA)
    parquet_files.write_table(table, sink, compression="zstd", use_dictionary=_REPEATED, write_statistics=False)
    return sink.getvalue()


def _rows(stretch: Stretch) -> Iterator[dict[str, Any]]:
    whole = {
        "version": stretch.version, "time": stretch.time, "removals": stretch.removals, "oldest": stretch.oldest
    }  # fmt: skip
    yield {"kind": _WHOLE, "body": short_json(whole)}
    for path in stretch.dropped:
        yield {"kind": _DROPPED, "key": path}
    for file in stretch.added.values():
        ends = short_json([file.low, file.high])
        yield {
            "kind": _FILE, "key": file.path, "table": file.table, "rows": file.rows, "bytes": file.bytes,
            "first": file.first, "last": file.last, "body": ends,
        }  # fmt: skip
    for batch in stretch.batches:
        yield {"kind": _BATCH, "key": batch.id, "body": short_json(shortened(asdict(batch)))}
    for key, result in stretch.results.items():
        if result is None:
            yield {"kind": _FORGOTTEN, "key": key}
        else:
            yield {"kind": _RESULT, "key": key, "body": short_json(shortened(asdict(result)))}


def decoded(data: bytes) -> Stretch:
    """The stretch of a Parquet file."""
    columns = parquet_files.read_table(pa.BufferReader(data), schema=_SCHEMA).to_pydict()
    stretch: Stretch | None = None
    for kind, key, table, rows, size, first, last, body in zip(*(columns[name] for name in _SCHEMA.names), strict=True):
        if stretch is None:
            if kind != _WHOLE:
                raise ValueError("a stretch begins with what it is")
            stretch = Stretch(**json.loads(body))
        elif kind == _FILE:
            low, high = json.loads(body)
            stretch.added[key] = DataFile(
                table=table, path=key, rows=rows, bytes=size, first=first, last=last, low=low, high=high
            )
        elif kind == _DROPPED:
            stretch.dropped.append(key)
        elif kind == _BATCH:
            stretch.batches.append(batch_of(json.loads(body)))
        elif kind == _RESULT:
            stretch.results[key] = result_of(json.loads(body))
        elif kind == _FORGOTTEN:
            stretch.results[key] = None
        else:
            raise ValueError(f"rows of kind {kind!r} are of another version of lace")
    if stretch is None:
        raise ValueError("no rows")
    return stretch


def short_json(body: object) -> str:
    """JSON without what is there for the eye."""
    return json.dumps(body, separators=(",", ":"))


def shortened(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a value that say something."""
    return {name: value for name, value in body.items() if value is not None and value != () and value != {}}


# Parts of both forms, those of older versions too: they named every batch where a range is enough


def file_of(found: dict[str, Any]) -> DataFile:
    """A data file as a commit names it."""
    if "batches" in found:
        batches = found.pop("batches")
        found |= {"first": min(batches, default=""), "last": max(batches, default="")}
    return DataFile(**found)


def batch_of(found: dict[str, Any]) -> ArchiveBatch:
    """A batch as a commit names it."""
    inputs = {content: Input(**item) for content, item in found.pop("inputs", {}).items()}
    return ArchiveBatch(inputs=inputs, counts=found.pop("counts", {}), way=way_of(found.pop("way", None)), **found)


def result_of(found: dict[str, Any]) -> StepResult:
    """A result as a commit names it."""
    if "batches" in found:
        found["seen"] = max(found.pop("batches"), default="")
    return StepResult(counts=found.pop("counts", {}), way=way_of(found.pop("way", None)), **found)


def way_of(found: dict[str, Any] | None) -> StepWay | None:
    """Who carried a step out."""
    return None if found is None else StepWay(**found)
