"""The log of an archive: numbered commits, each an immutable file that says what changed.

Rule: a version is a number, and a number is taken once. What an archive holds at a version is the commits up to it,
replayed. A commit says only what it changed, so its size does not depend on what was there before; stretches of 16,
256, 4,096 … commits are written once as what they come to (`stretches`), so any version of a log of any length is read
from a few dozen files. Nothing here needs Spark.

    ROOT/log/00000001.json …                 the commits
    ROOT/log/stretches/00000000-00000016.parquet …   what stretches of them come to
    ROOT/log/base/00000123.parquet           all that there was at a version before which commits are gone
    ROOT/log/_newest                         a version that there is, near the newest
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lace.errors import InvalidInput, StoreError
from lace.notation.jsontext import read_json
from lace.spark.archive.moments import parse_moment
from lace.spark.archive.versions import Commit, LostRace, State

if TYPE_CHECKING:
    from lace.spark.archive.filesystem import Files
    from lace.spark.archive.stretches import Stretch

FORMAT = 2
_FORMAT_WITH_WHOLES = 1  # each sixteenth commit repeated all that there was
FOLDER = "log"
_BASES = f"{FOLDER}/base"
_STRETCHES = f"{FOLDER}/stretches"
_HINT = f"{FOLDER}/_newest"
_FAN_OUT = 16
_SUFFIX = ".parquet"


class Log:
    """The commits under one root."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._kept: State | None = None  # the newest that was read or written here

    def versions(self) -> list[int]:
        """Every version whose commit is there, oldest first."""
        names = (listed.name.removeprefix(f"{FOLDER}/") for listed in self.files.listing(FOLDER))
        return sorted(int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdecimal())

    def newest(self) -> int:
        """The newest version; 0 if there is no archive."""
        return self._newest_commit()[0]

    def commits(self, versions: Iterable[int] | None = None) -> list[Commit]:
        return [self._read(version)[0] for version in (self.versions() if versions is None else versions)]

    def state(self, as_of: int | str | None = None) -> State:
        """What the archive holds now, at a version, or at a time (ISO 8601)."""
        state = self._current()
        if as_of is None:
            return state
        wanted = self._version_at(as_of, state)
        if wanted < state.oldest:
            raise InvalidInput(
                f"the files of versions before {state.oldest} were removed", rule="as-of", found=str(as_of)
            )
        return state if wanted == state.version else self._at(wanted)

    def _current(self) -> State:
        """What the archive holds now; from what was read before, if something was."""
        kept = self._kept
        if kept is None:
            newest, last = self._newest_commit()
            if not newest:
                raise StoreError(f"{self.files.uri}: there is no archive here (`lace archive init` makes one)")
            kept = self._at(newest, last)
        else:
            while (found := self._next(kept.version)) is not None:
                kept = found.apply(kept)
        self._kept = kept
        return kept

    def _newest_commit(self) -> tuple[int, tuple[Commit, State | None] | None]:
        """The newest version and its commit, if it was read to find that out."""
        try:
            newest = int(self.files.read(_HINT))
        except (FileNotFoundError, ValueError):
            return (self.versions() or [0])[-1], None
        found: tuple[Commit, State | None] | None = None
        while True:
            try:
                found = self._read(newest + 1, missing_is_fine=True)
            except FileNotFoundError:
                return newest, found
            newest += 1

    def _next(self, version: int) -> Commit | None:
        try:
            return self._read(version + 1, missing_is_fine=True)[0]
        except FileNotFoundError:
            return None

    def _at(self, wanted: int, last: tuple[Commit, State | None] | None = None, floor: int = 0) -> State:
        """What the archive held at a version: stretches from the end back to the beginning, put together.

        The beginning is a base at `floor`, if that is not 0.
        """
        from lace.spark.archive.stretches import Stretch, together

        parts: list[Stretch] = []
        version = wanted
        while version > floor:
            part = self._longest(floor, version)
            if part is not None:
                version, stretch = part
                parts.append(stretch)
                continue
            try:
                commit, whole = last if last is not None and version == wanted else self._read(version, True)
            except FileNotFoundError:
                base = self._base(version, wanted)
                if base <= floor:
                    missing = f"{self.files.uri}/{_name(version)}: this commit is missing from the log"
                    raise StoreError(missing) from None
                return self._at(wanted, last, base)
            parts.append(Stretch.of(commit) if whole is None else Stretch.of_state(whole))
            version, floor = (0, 0) if whole is not None else (version - 1, floor)
        if floor:
            base_of_all = self._stretch(_base_name(floor))
            assert base_of_all is not None
            parts.append(base_of_all)
        return together(reversed(parts)).apply(State())

    def _longest(self, start: int, version: int) -> tuple[int, Stretch] | None:
        """The longest stretch that is there of those that end at a version and begin at `start` or later."""
        length = _FAN_OUT
        while version % (length * _FAN_OUT) == 0 and version - length * _FAN_OUT >= start:
            length *= _FAN_OUT
        while length >= _FAN_OUT and version % length == 0 and version - length >= start:
            found = self._stretch(_stretch_name(version - length, version))
            if found is not None:
                return version - length, found
            length //= _FAN_OUT
        return None

    def _stretch(self, name: str) -> Stretch | None:
        from lace.spark.archive.stretches import decoded

        try:
            return decoded(self.files.read(name))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise StoreError(f"{self.files.uri}/{name}: not a part of a log ({error})") from None

    def _base(self, low: int, high: int) -> int:
        """The newest version up to `high` before which commits are gone; 0 if none is at `low` or later."""
        bases = (_end(file.name) for file in self.files.listing(_BASES))
        return max((base for base in bases if low <= base <= high), default=0)

    def _version_at(self, as_of: int | str, state: State) -> int:
        if isinstance(as_of, int) or as_of.isdecimal():
            if not 1 <= int(as_of) <= state.version:
                raise InvalidInput(f"versions are 1 to {state.version}", rule="archive-version", found=str(as_of))
            return int(as_of)
        moment = parse_moment(as_of, "as-of", "a version number or a time")
        low, high = state.oldest - 1, state.version  # times never go back, so the newest before one is looked for
        while low < high:
            middle = (low + high + 1) // 2
            if datetime.fromisoformat(self._read(middle)[0].time) <= moment:
                low = middle
            else:
                high = middle - 1
        if low < state.oldest:
            gone = f"the files of versions before {state.oldest} were removed"
            what = "the archive is younger than that" if state.oldest == 1 else gone
            raise InvalidInput(what, rule="as-of", found=as_of)
        return low

    def versions_since(self, moment: datetime) -> int:
        """How many of the newest versions tell what there was at any time from a moment on; at least one."""
        state = self._current()
        try:
            return state.version - self._version_at(moment.astimezone(UTC).isoformat(), state) + 1
        except InvalidInput:  # all that are still readable are younger
            return state.version - state.oldest + 1

    def _read(self, version: int, missing_is_fine: bool = False) -> tuple[Commit, State | None]:
        name = _name(version)
        try:
            return _decoded(self.files.read(name))
        except FileNotFoundError:
            if missing_is_fine:
                raise
            raise StoreError(f"{self.files.uri}/{name}: this commit is missing from the log") from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.files.uri}/{name}: not a commit ({error})") from None

    # Writing

    def commit(self, state: State, change: Commit) -> State:
        """Write the commit after `state`; LostRace if another writer was first."""
        change = replace(change, version=state.version + 1, time=_later(state.time, change.time))
        if not self.files.publish(_name(change.version), _encoded(change)):
            raise LostRace(f"version {change.version} was written by somebody else meanwhile: run again")
        self._kept = after = change.apply(state)
        if change.version % _FAN_OUT == 0:
            self._write_stretches(change.version)
        return after

    def _write_stretches(self, version: int) -> None:
        """Those that end at a version; one that a crash left out is part of the next longer one."""
        from lace.spark.archive.stretches import Stretch, encoded, together

        length = _FAN_OUT
        while version % length == 0:
            start, at = version - length, version
            parts: list[Stretch] = []
            while at > start:
                found = self._longest(start, at)
                commit = self._next(at - 1) if found is None else None
                if found is not None:
                    at, part = found
                elif commit is not None:
                    at, part = at - 1, Stretch.of(commit)
                else:  # commits before here are gone
                    break
                parts.append(part)
            if at == start:
                self.files.publish(_stretch_name(start, version), encoded(together(reversed(parts))))
            length *= _FAN_OUT
        self.files.replace(_HINT, str(version).encode())

    def forget(self, oldest: int, writing_seconds: float) -> int:
        """Remove commits before a version, once what they come to is written; how many went.

        None that is younger than the newest by less than a writer may take: it would think the number free.
        """
        from lace.spark.archive.stretches import Stretch, encoded

        listed = self.files.listing(FOLDER)
        newest = max((file.modified_s for file in listed), default=0.0)
        commits = [file for file in listed if file.name.endswith(".json")]
        young = (_end(file.name) for file in commits if file.modified_s >= newest - writing_seconds)
        last = min(oldest, *young) - 1  # of those that go
        gone = [file for file in listed if 1 < _end(file.name) <= last]  # by the first one archives are known
        went = sum(file in commits for file in gone)
        if not went:
            return 0
        self.files.publish(_base_name(last), encoded(Stretch.of_state(self._at(last))))
        # The newest first: what is before a gap is never asked for, so a crash between leaves a log that can be read.
        for file in sorted(gone, key=lambda file: _end(file.name), reverse=True):
            self.files.remove(file.name)
        return went


def _name(version: int) -> str:
    return f"{FOLDER}/{version:08d}.json"


def _base_name(version: int) -> str:
    return f"{_BASES}/{version:08d}{_SUFFIX}"


def _stretch_name(start: int, end: int) -> str:
    return f"{_STRETCHES}/{start:08d}-{end:08d}{_SUFFIX}"


def _end(name: str) -> int:
    """The version that a file of the log ends at."""
    return int(name.rpartition("/")[2].partition(".")[0].rpartition("-")[2])


def _later(before: str, now: str) -> str:
    """The time of a commit after another one: clocks of several writers may differ, and times never go back."""
    return before if before and datetime.fromisoformat(now) < datetime.fromisoformat(before) else now


def _encoded(commit: Commit) -> bytes:
    from lace.spark.archive.stretches import shortened

    body = shortened(asdict(commit))
    body["added"] = [shortened(file) for file in body.get("added", ())]
    body["results"] = {key: shortened(result) for key, result in body.get("results", {}).items()}
    return (json.dumps({"format": FORMAT, **shortened(body)}, separators=(",", ":")) + "\n").encode()


def _decoded(data: bytes) -> tuple[Commit, State | None]:
    """A commit, and what there was after it where an older version said so."""
    from lace.spark.archive.stretches import batch_of, file_of, result_of, way_of

    body = read_json(data)
    if body.pop("format") not in (FORMAT, _FORMAT_WITH_WHOLES):
        raise ValueError("written by another version of lace")
    whole = body.pop("whole", None)
    commit = Commit(
        added=tuple(map(file_of, body.pop("added", ()))),
        dropped=tuple(body.pop("dropped", ())),
        forgotten=tuple(body.pop("forgotten", ())),
        batch=None if (batch := body.pop("batch", None)) is None else batch_of(batch),
        results={key: result_of(one) for key, one in body.pop("results", {}).items()},
        ways={step: way for step, one in body.pop("ways", {}).items() if (way := way_of(one)) is not None},
        **body,
    )
    if whole is None:
        return commit, None
    return commit, State(
        files=tuple(map(file_of, whole.pop("files"))),
        batches=tuple(map(batch_of, whole.pop("batches"))),
        results={key: result_of(one) for key, one in whole.pop("results").items()},
        time=commit.time,
        **whole,
    )
