"""A lace in a developer's hands (110): open it, put content in, get it out, list it, ask for its facts.

Rule: every verb acts on this store alone. Nothing here prints, and nothing here is a remote command. A missing file is
created only if asked for; `:memory:` is a lace that lives as long as its object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lace.errors import InvalidText, NotFound, StoreError
from lace.facts.derive import derive_facts
from lace.intake.batch import Batch, BatchLimits
from lace.limits import HORIZON_S, EngineLimits, RecordLimits, StoreLimits
from lace.notation import b64a
from lace.notation.closing import Closing
from lace.notation.fact import Fact
from lace.notation.identifiers import RECORD_TYPES, RecordHash, Verifier
from lace.notation.stopping import Interrupt, between_steps, until
from lace.notation.tai import TAI
from lace.porcelain.changes import ChangeStream, change_stream, format_cursor
from lace.porcelain.completeness import (
    Incomplete,
    incomplete_content,
    lacking,
    require_whole,
    unlinked_blobs,
    unneeded_parts,
)
from lace.porcelain.content import Progress, is_same_content, read_content
from lace.porcelain.export import Writable, all_bodies, covered_bodies, write_bundle, write_stream
from lace.porcelain.listing import COLUMNS, Row, blob_rows, entry_rows
from lace.porcelain.misuse import target_of
from lace.porcelain.putting import PutBatch, PutVerbs
from lace.porcelain.tips import (
    Tip,
    describe_tip,
    find_tip,
    forget_key,
    know_key,
    known_keys,
    who_and_when,
    withdrawal,
)
from lace.porcelain.verify import Damage, verify_store
from lace.records.coordinate import (
    Coordinate,
    HashAddress,
    Prefix,
    is_place,
    parse_address,
    parse_coordinate,
    parse_prefix,
)
from lace.records.keys import Signer, SigningKey
from lace.records.manifest import content_length
from lace.records.model import ValidRecord
from lace.records.tip import JudgedVersion, TipPolicy, TipWriters, judged
from lace.records.validate import validate
from lace.runtime.clock import Clock, SystemClock
from lace.runtime.identity.keyring import KeyRing
from lace.store import MemoryStore, open_store
from lace.store.base import Entry, RecordStore, StoreCursor, StoreStat
from lace.store.forgotten import all_forgotten, take_again

if TYPE_CHECKING:
    from lace.datalog.explain.explanation import Explanation
    from lace.intake.bundles import ImportReport, RejectedSink
    from lace.people.root import Root
    from lace.porcelain.checkout import CheckedOut
    from lace.porcelain.forgetting import Forgotten
    from lace.porcelain.policy import LacePolicy
    from lace.porcelain.query import Answer

MIN_ABBREVIATED = 6  # characters of a hash, its letter and dot included


class Lace(PutVerbs, Closing):
    """One store with a developer's verbs; `lace.open` creates it."""

    def __init__(
        self,
        store: RecordStore,
        *,
        clock: Clock | None = None,
        keys: KeyRing | None = None,
        limits: RecordLimits | None = None,
        batches: BatchLimits | None = None,
        horizon_s: int | None = HORIZON_S,
    ) -> None:
        self._store = store
        self._is_closed = False
        self._process = os.getpid()
        self.limits: RecordLimits = limits or RecordLimits()
        self._clock = clock or SystemClock()
        self._keys = keys or KeyRing.of_user()
        self._batches = batches or BatchLimits()
        # who may move tips, at a moment
        self._writers: tuple[tuple[StoreCursor, Root | None], tuple[TipWriters, ...]] | None = None
        self.horizon_s = horizon_s  # records dated further ahead are never tips and are refused from peers

    @property
    def store(self) -> RecordStore:
        """Where its records are. Every verb goes through here, so that none of them works on a closed lace."""
        if self._process != os.getpid():
            message = "this lace was opened before this process was forked; open it again here"
            raise StoreError(message)
        if self._is_closed:
            path = getattr(self._store, "path", None)
            raise StoreError(f"{f'{path}: ' if path else ''}this lace is closed; open it again")
        return self._store

    def _putting(self) -> PutBatch:
        return self.batch()

    def batch(self) -> PutBatch:
        """Many puts in few transactions: `with notes.batch() as batch: batch.put(…)`; durable when the block ends."""
        queue = Batch(self.store, self.limits, self._batches)
        return PutBatch(
            queue,
            clock=self._clock,
            keys=self._keys,
            limits=self.limits,
            tip_of=self._tip_record,
            holds=self._holds,
            on_signer=self._know_signer,
        )

    def _tip_record(self, group: str, app: str, name: str) -> ValidRecord | None:
        tip = find_tip(self._versions_of(Coordinate(group=group, app=app, name=name)), self.tip_policy())
        return None if tip is None else self.load(tip.hash)

    def _holds(self, record: ValidRecord, file: BinaryIO) -> bool:
        """Whether a file's content is that of a stored record, and all of it is here."""
        if lacking(record, self.store, self.load, self.limits) is not None:
            return False
        return is_same_content(record, file, load=self.load, limits=self.limits)

    def _know_signer(self, verifier: Verifier) -> None:
        """Remember a key that signs here as a known key."""
        know_key(self.store, verifier)

    def cursor(self) -> str:
        """The current position, to pass to `changes` later; a text that may be saved in a file."""
        return format_cursor(self.store.cursor())

    def changes(self, since: str | None = None, *, wait_s: float | None = None) -> ChangeStream:
        """Records added and removed after a cursor (by default from now on), no matter who changes the lace.

        `for change in notes.changes()` waits in this thread; `async for` does not block the event loop. Both continue
        until you leave the loop, or until nothing arrives for `wait_s` seconds; 0 gives what is there and ends. The
        cursor `0/0` is the beginning.
        """
        return change_stream(self.store, since, wait_s)

    def get(self, target: str) -> bytes:
        """The whole content at a hash or coordinate."""
        return b"".join(self.content(target))

    def content(self, target: str) -> Iterator[memoryview]:
        """The content at a hash or coordinate, chunk by chunk, for content that may be large."""
        record = self.record(target)
        require_whole(record, self.store, self.load, self.limits)
        return read_content(record, load=self.load, limits=self.limits)

    def incomplete(self) -> Iterator[Incomplete]:
        """The content that lacks some of its parts here, and what each lacks."""
        return incomplete_content(self.store, self.load, self.limits)

    def lacking(self, target: str) -> Incomplete | None:
        """What the content at a hash or coordinate lacks; None if it is complete."""
        return lacking(self.record(target), self.store, self.load, self.limits)

    def content_length(self, target: str) -> int:
        """The number of bytes in the content at a hash or coordinate."""
        return content_length(self.record(target))

    def record(self, target: str) -> ValidRecord:
        """The record at a hash or coordinate."""
        return self.load(self.resolve(target))

    def stored(self, target: str) -> bytes:
        """The stored bytes of the record at a hash or coordinate."""
        return self._stored(self.resolve(target))

    def checkout(
        self,
        folder: str | Path,
        place: str | None = None,
        *,
        as_of: str | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[CheckedOut]:
        """Write the tip of every coordinate below a place into a folder; a result for each file, once it is there.

        A place is `//group//app`, or what is below a name, `//group//app//name`; without one, the only group and app of
        this lace. `as_of` is a time (TAI text or ISO 8601): what was the tip then. A file whose content no stored
        version has is left alone and reported, unless `replace` says that it may go.
        """
        from lace.porcelain.checkout import check_out

        policy = self.tip_policy()
        if as_of is not None:
            moment = TAI.of_text(as_of)
            policy = TipPolicy(
                until=moment if policy.until is None else min(moment, policy.until), writers=policy.writers
            )
        return check_out(self, Path(folder), place, policy=policy, replace=replace, progress=progress)

    def list(
        self, prefix: str = "//", *, columns: Sequence[str] = COLUMNS, tips: bool = False, withdrawn: bool = False
    ) -> Iterator[Row]:
        """A row per Plex and Seal under a prefix; with `tips`, only the tip of each coordinate.

        With `withdrawn`, also what was withdrawn, and the records that withdraw it.
        """
        chosen = parse_prefix(prefix), columns, self.load, self.tip_policy()
        return entry_rows(self.store, *chosen, tips=tips, withdrawn=withdrawn)

    def list_blobs(self) -> Iterator[Row]:
        """A row per Blob that is stored as a record of its own."""
        return blob_rows(self.store, self.load)

    def facts(self, target: str | None = None) -> Iterator[Fact]:
        """The facts of one record, or of all records in the order of storing."""
        if target is not None:
            yield from derive_facts(self.record(target))
            return
        for _, stored in self.store.bodies_since():
            yield from derive_facts(validate(stored, limits=self.limits, verify_signature=False))

    def query(
        self,
        rules: str,
        goal: str | None = None,
        *,
        extra: Iterable[Fact] = (),
        limits: EngineLimits | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Answer:
        """The facts that rules derive here; see `lace.query`."""
        from lace.porcelain.query import answer_to, warned

        stop = until(deadline_s, interrupt)
        return warned(answer_to(self, rules, goal, extra=extra, limits=limits, stop=stop))

    def explain(
        self,
        rules: str,
        goal: str,
        *,
        limits: EngineLimits | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Explanation:
        """Why a fact holds here, or why it does not; print it, or take `to_json()`."""
        from lace.porcelain.explain import explain

        return explain(self, rules, goal, limits=limits, deadline_s=deadline_s, interrupt=interrupt)

    def import_(
        self,
        *bundles: str | Path,
        rejected: RejectedSink | None = None,
        progress: Callable[[ImportReport], None] | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> ImportReport:
        """Store every good record of some bundles; bad ones are counted and passed to `rejected` with the reason.

        After `deadline_s` seconds, or once `interrupt` returns True, it ends in `CallStopped`; what was stored stays.
        """
        from lace.intake.bundles import import_bundles  # only here: it loads the worker processes

        paths = [Path(bundle) for bundle in bundles]
        stop = until(deadline_s, interrupt)
        return import_bundles(
            self.store, paths, rejected_sink=rejected, progress=progress, record_limits=self.limits, stop=stop
        )

    def export(
        self,
        sink: str | Path | Writable,
        prefix: str = "//",
        *,
        progress: Progress | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> int:
        """Write all records, or those under a prefix with their chunks, back to back; return how many.

        A path gets a bundle with its index beside it; both appear only once they are complete. After `deadline_s`
        seconds, or once `interrupt` (asked after each record) returns True, it ends in `CallStopped`.
        """
        step = between_steps(until(deadline_s, interrupt), "records were exported", progress)
        wanted = parse_prefix(prefix)
        chosen = all_bodies(self.store) if wanted == Prefix() else covered_bodies(self.store, wanted, self.load)
        if isinstance(sink, str | Path):
            return write_bundle(Path(sink), chosen, step)
        return write_stream(sink, chosen, step)

    def delete(self, *hashes: str) -> int:
        """Remove records and their facts, all or none; NotFound if one is missing.

        Parts of content that only these records need go with them. Returns how many records went, including parts.
        """
        found = [self.resolve(self._require_hash(target_of(text))) for text in hashes]
        with self.store.together():  # so that nobody can store a record that needs the parts meanwhile
            return self.store.delete(*found, *unneeded_parts(self.store, self.load, found))

    def forget(self, *targets: str) -> Forgotten:
        """Remove records for good, with parts that only they need: they never come in again. All or none.

        A coordinate means all its versions; a whole hash need not be stored. Nobody else's copy is touched. The bytes
        stay in free pages of the file until `lace.compact` rewrites it.
        """
        from lace.porcelain.forgetting import forget

        return forget(self, targets)

    def forgotten(self) -> Sequence[RecordHash]:
        """The records that never come in again."""
        return all_forgotten(self.store)

    def take_again(self, *hashes: str) -> int:
        """Let forgotten records come in again; how many were forgotten."""
        return take_again(self.store, [RecordHash.parse(text) for text in hashes])

    def unlinked_blobs(self) -> Sequence[RecordHash]:
        """The Blobs that no stored record links to."""
        return unlinked_blobs(self.store)

    def verify(
        self,
        *,
        progress: Progress | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Iterator[Damage]:
        """Hash and verify every record again; yields what is wrong, nothing if all is well.

        After `deadline_s` seconds, or once `interrupt` returns True, it ends in `CallStopped`.
        """
        stop, workers = until(deadline_s, interrupt), os.cpu_count() or 1
        return verify_store(self.store, limits=self.limits, workers=workers, progress=progress or _unwatched, stop=stop)

    def stat(self) -> StoreStat:
        """Sizes of the store."""
        return self.store.stat()

    def resolve(self, target: str) -> RecordHash:
        """The hash of the stored record that a hash, the beginning of one, or a coordinate names; NotFound if none."""
        if not target_of(target).startswith("//"):
            return self._resolve_hash(target)
        address = parse_address(target)
        return self._resolve_hash(address.hash) if isinstance(address, HashAddress) else self._tip(address)

    def _tip(self, coordinate: Coordinate) -> RecordHash:
        tip = find_tip(self._versions_of(coordinate), self.tip_policy(), coordinate.version)
        if tip is None:
            raise self._no_tip(coordinate)
        return tip.hash

    def tip(self, target: str | Coordinate) -> Tip:
        """The record that a coordinate names, who else has written there, and which newer versions are not the tip."""
        coordinate = parse_address(target) if isinstance(target, str) else target
        if isinstance(coordinate, HashAddress):
            raise InvalidText("a hash address names one record and has no tip", rule="tip", found=str(target))
        tip = describe_tip(self._versions_of(coordinate), self.tip_policy(), coordinate.version)
        if tip is None:
            raise self._no_tip(coordinate)
        return tip

    def at(self, time: str) -> Lace:
        """This lace as it was at a time: TAI text or ISO 8601, where a date is its first moment in UTC.

        It reads what was there by the time that records tell, and takes no records. It ends with this lace.
        """
        from lace.porcelain.past import PastLace

        moment, until = TAI.of_text(time), self.tip_policy().until
        return PastLace(self, moment if until is None else TAI(min(moment, until)))

    def revert(self, target: str, to: str, *, sign: Signer | str | None = None) -> RecordHash:
        """Put an earlier version of a coordinate once more, so that it is the tip: by its hash, or as of a time."""
        from lace.porcelain.past import revert

        return revert(self, target, to, sign=sign)

    def history(self, target: str | Coordinate) -> Iterator[JudgedVersion[Entry]]:
        """The versions of a coordinate, newest first, each with what it counts for and what withdraws it."""
        coordinate = parse_coordinate(target) if isinstance(target, str) else target
        choice = coordinate.version
        return (
            found
            for found in judged(self._versions_of(coordinate)(None), self.tip_policy())
            if choice is None or choice.admits(found.version.hash, found.version.tai, found.version.signer)
        )

    def retract(self, *targets: str, sign: Signer | str | None = None, tai: str | None = None) -> Sequence[RecordHash]:
        """Withdraw coordinates, or single versions by their hashes, with a record at each coordinate.

        The records travel by the rules that carried what they withdraw. Nothing is removed: `history` shows it, and
        putting again or `undo` brings it back. All or none; returns the hash of each record stored.
        """
        from lace.porcelain.retracting import retract

        return retract(self, targets, sign, tai or self._later_than)

    def undo(self, *targets: str, sign: Signer | str | None = None, tai: str | None = None) -> Sequence[RecordHash]:
        """Take back the newest retraction of each coordinate, or retractions by their hashes; all or none."""
        from lace.porcelain.retracting import undo

        return undo(self, targets, sign, tai or self._later_than)

    def _later_than(self, version: Entry | None) -> str:
        """Now, or just after a version that is dated ahead of now."""
        now = self._clock.tai()
        return now if version is None else max(now, TAI(version.tai).plus_ns(1))

    def withdrawal(self, target: str | Coordinate) -> Entry | None:
        """The retraction that counts last at a coordinate; None if nothing there is withdrawn."""
        coordinate = parse_coordinate(target) if isinstance(target, str) else target
        return withdrawal(self._versions_of(coordinate), self.tip_policy())

    @property
    def clock(self) -> Clock:
        """Where this lace takes the time from."""
        return self._clock

    def tip_policy(self) -> TipPolicy:
        """What decides a tip now: the clock, the horizon, and who may write as the policy says."""
        from lace.people.root import pinned_root
        from lace.people.tipwriters import tip_writers

        plain = TipPolicy.at(self._clock.tai(), self.horizon_s)
        moment = self.store.cursor(), pinned_root(self.store)
        if self._writers is None or self._writers[0] != moment:
            self._writers = moment, tip_writers(self.store, plain)
        return TipPolicy(until=plain.until, writers=self._writers[1])

    def policy(self) -> LacePolicy | None:
        """The policy that this lace carries; None if nobody pinned a root here (`lace policy set`, `lace join`)."""
        from lace.porcelain.policy import read_lace_policy

        return read_lace_policy(self.store, TipPolicy.at(self._clock.tai(), self.horizon_s))

    def _versions_of(self, coordinate: Coordinate) -> Callable[[str | None], Iterator[Entry]]:
        place = coordinate.group, coordinate.app, coordinate.name
        return lambda until: self.store.newest_first(*place, until=until)

    def _no_tip(self, coordinate: Coordinate) -> NotFound:
        withdrawn = self.withdrawal(coordinate)
        if withdrawn is not None and coordinate.version is None:
            error = NotFound(f"{replace(coordinate, version=None)} was withdrawn by {who_and_when(withdrawn)}")
            error.add_note(f"`lace undo` takes that back; `lace log {coordinate}` shows its versions")
            return error
        versions = len(self.store.versions(coordinate.group, coordinate.app, coordinate.name))
        error = NotFound(f"there is no record at {coordinate}", place="" if versions else str(coordinate))
        if versions:
            others = "there is 1 other version" if versions == 1 else f"there are {versions:,} other versions"
            dated = ", none of which may be its tip" if coordinate.version is None else ""
            error.add_note(f"{others} at this coordinate{dated}; `lace ls` shows what there is")
        return error

    def known_keys(self) -> Sequence[Verifier]:
        """The keys that signed here, and those added by `know_key`; a hint for people that decides nothing."""
        return known_keys(self.store)

    def verifier_of(self, sign: Signer | str | None) -> Verifier | None:
        """The verifier of what `sign` signs, a key or the name of one in the ring; None for what nobody signs."""
        return self._keys.verifier(sign) if isinstance(sign, str) else None if sign is None else sign.verifier

    def know_key(self, verifier: str, *, forget: bool = False) -> None:
        """Remember a key in this lace, or forget it: a verifier, or the name of a key of the ring."""
        (forget_key if forget else know_key)(self.store, self._keys.verifier(verifier))

    def _resolve_hash(self, text: str) -> RecordHash:
        beginning = text.removesuffix("…")
        if is_beginning(beginning):
            return self._resolve_beginning(beginning)
        record_hash = RecordHash.parse(text)
        if not self.store.have(record_hash):
            raise NotFound(f"{record_hash} is not stored here", place=record_hash)
        return record_hash

    def _resolve_beginning(self, beginning: str) -> RecordHash:
        """The one stored hash with this beginning, so that what a terminal shows can be typed back."""
        found = self.store.beginning_with(beginning)
        if not found:
            raise NotFound(f"no record's hash begins with {beginning}", place=beginning)
        if len(found) > 1:
            raise InvalidText(f"{len(found)} hashes begin with {beginning}: give more of it", rule="hash-beginning")
        return found[0]

    def _require_hash(self, text: str) -> str:
        if is_place(text):
            message = "name records to delete by their hash: a coordinate may mean another record tomorrow"
            raise InvalidText(message, rule="delete-by-hash", found=text)
        return text

    def load(self, record_hash: RecordHash) -> ValidRecord:
        """The stored record with a hash; checks its digest again, not its signature, which was verified on entry."""
        return validate(self._stored(record_hash), limits=self.limits, verify_signature=False)

    def _stored(self, record_hash: RecordHash) -> bytes:
        stored = self.store.get(record_hash)
        if stored is None:
            raise NotFound(f"{record_hash} is not stored here", place=record_hash)
        return stored

    def close(self) -> None:
        """Close the store; what was put stays. Closing it again does nothing."""
        self._is_closed = True
        self._store.close()


def _unwatched(_: int) -> None:
    """Ignore progress."""


def is_beginning(text: str) -> bool:
    """Whether a text is the beginning of a hash, and long enough to search for."""
    return (
        MIN_ABBREVIATED <= len(text) < 45
        and text[0] in RECORD_TYPES
        and text[1] == "."
        and all(character in b64a.ALPHABET for character in text[2:])
    )


IN_MEMORY = ":memory:"


def generate_key() -> SigningKey:
    """Create a signing key in memory; `KeyRing.add` keeps one."""
    return SigningKey.generate()


def open_lace(
    path: str | os.PathLike[str],
    create: bool = False,
    *,
    read_only: bool = False,
    clock: Clock | None = None,
    keys: KeyRing | None = None,
    limits: RecordLimits | None = None,
    store_limits: StoreLimits | None = None,
    horizon_s: int | None = HORIZON_S,
) -> Lace:
    """Open the lace at a path; use it in a `with`, or close it. Records dated over `horizon_s` ahead are not tips.

    `limits` bound a record, `store_limits` what the file may use and how long a write waits for another process.
    """
    if os.fspath(path) == IN_MEMORY:
        return Lace(MemoryStore(), clock=clock, keys=keys, limits=limits, horizon_s=horizon_s)
    store = open_store(Path(path), create=create, read_only=read_only, limits=store_limits)
    return Lace(store, clock=clock, keys=keys, limits=limits, horizon_s=horizon_s)
