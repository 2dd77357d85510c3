"""Storing content, files and folders, alone or in batches that share transactions: `with notes.batch() as batch:`.

Rule: what a batch was given is durable when its block ends, or earlier if much is waiting. A block that ends in an
error stores nothing more; what was durable before stays, as after a crash. In a folder, a file that cannot be stored is
a result with its reason, and the others go on; symbolic links are kept as links (082), never followed.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import partial
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from lace.errors import InvalidInput, InvalidText, KeyUnavailable, StoreError
from lace.intake.batch import Batch
from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.stopping import Interrupt, between_steps, never, until
from lace.porcelain.content import Content, CountedContent, Cut, Heading, Progress, Sign, opened_content, write_content
from lace.porcelain.misuse import When, text_of, time_of
from lace.porcelain.openfolder import is_ours
from lace.porcelain.smallfiles import FileRecords, SmallFile, records_of
from lace.records.fileform import Attributes, FileKind, leads_inside, name_of, read_attributes
from lace.records.keys import Signer, SigningKey, seal, verify
from lace.records.link import link_header
from lace.records.model import Header, Plex, Record, Seal, ValidRecord
from lace.records.write import encode_record
from lace.runtime.clock import Clock
from lace.runtime.identity.keyring import KeyRing
from lace.values import dataclass

Headers = Mapping[str, str] | Iterable[Header]
Links = Iterable[tuple[str, str]]
RESULTS_HELD = 10_000  # files of one tree whose results wait for their records to be durable


class PutVerbs(ABC):
    """The verbs that store: in a lace they are durable on return, in a batch when its block ends."""

    @abstractmethod
    def _putting(self) -> AbstractContextManager[PutBatch]:
        """The batch that takes the records of one call."""

    def put(
        self,
        content: Content,
        *,
        group: str,
        app: str,
        name: str,
        tai: When | None = None,
        headers: Headers = (),
        links: Links = (),
        sign: Signer | str | None = None,
        progress: Progress | None = None,
        size: int | None = None,
        cut: Cut | None = None,
        deadline_s: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> RecordHash:
        """Store content under a coordinate, signed by `sign` (a key, or a key's name in the ring).

        Content may be bytes, the path of a file, or anything with `read`. Content over the limit of one record becomes
        chunks under a manifest, with one chunk in memory at a time. `progress` gets the size of every read. `size` is
        that of what is read, if the caller knows it; `cut` decides where chunks end. Durable on return; in a batch,
        when its block ends.

        After `deadline_s` seconds, or once `interrupt` (asked after every read) returns True, it ends in `CallStopped`,
        and the coordinate is as it was.
        """
        stop = until(deadline_s, interrupt)
        step = progress if stop is never else between_steps(stop, "content was stored", progress)
        with self._putting() as batch:
            heading = batch._heading(group, app, name, tai, headers, links)
            return batch._add_content(content, heading, batch._signer(sign), step, size, cut)

    def put_tree(
        self,
        folder: Path,
        *,
        group: str,
        app: str,
        name: str = "",
        tai: When | None = None,
        headers: Headers = (),
        links: Links = (),
        sign: Signer | str | None = None,
        again: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[TreeResult]:
        """Store every file below a folder under `name/relative/path`; a result for each, given once it is durable.

        A file whose content (and every header and link given here) is that of its coordinate's tip is not stored again,
        unless `again` says so; a run that was broken off goes on where it was.
        """
        with self._putting() as batch:
            # Each file's name replaces the placeholder; everything else is the same for all of them.
            heading = batch._heading(group, app, name or "-", tai, headers, links)
            sign_plex = batch._signer(sign)

            def add(content: Path | bytes, file_name: str, said: Attributes) -> tuple[RecordHash, FileState]:
                own = replace(heading, name=file_name)
                tip = batch._tip(own)
                if tip is not None and not again and batch._is_unchanged(tip, own, content, said, progress):
                    return tip.hash, FileState.UNCHANGED
                state = FileState.NEW if tip is None else FileState.CHANGED
                own = replace(own, headers=(*own.headers, *said.headers()))
                return batch._add_content(content, own, sign_plex, progress), state

            return put_tree(folder, name, batch._queue, add)

    def put_plex(self, plex: Plex, *, sign: Signer | str | None = None) -> RecordHash:
        """Store a Plex that was made here, signed by `sign`."""
        with self._putting() as batch:
            return batch._queue.add(batch._signer(sign)(plex))

    def put_record(self, record: Record) -> RecordHash:
        """Store a record that was built elsewhere."""
        with self._putting() as batch:
            return batch._queue.add_stored(encode_record(record))

    def put_stored(self, stored: bytes) -> RecordHash:
        """Validate the bytes of one record and store them."""
        with self._putting() as batch:
            return batch._queue.add_stored(stored)


class PutBatch(PutVerbs):
    """Records on their way into one lace; `Lace.batch` creates it."""

    def __init__(
        self,
        queue: Batch,
        *,
        clock: Clock,
        keys: KeyRing,
        limits: RecordLimits,
        tip_of: Callable[[str, str, str], ValidRecord | None],
        holds: Callable[[ValidRecord, BinaryIO], bool],
        on_signer: Callable[[Verifier], None] | None = None,
    ) -> None:
        self._queue = queue
        self._on_signer = on_signer
        self._clock = clock
        self._keys = keys
        self._limits = limits
        self._tip_of = tip_of  # the stored tip of a group, app and name
        self._holds = holds  # whether all of a file's content is stored under a record
        self._is_begun = self._is_over = False

    def _putting(self) -> AbstractContextManager[PutBatch]:
        self._require_open()
        return nullcontext(self)

    def _require_open(self) -> None:
        """Refuse records outside the block: only its end makes a batch durable, so they would be lost."""
        if not self._is_begun:
            raise StoreError("a batch takes records inside its block: `with notes.batch() as batch:`")
        if self._is_over:
            raise StoreError("the block of this batch has ended: put into the lace, or start another batch")

    @property
    def waiting(self) -> int:
        """How many records are not durable yet."""
        return self._queue.waiting

    def flush(self) -> None:
        """Make everything given so far durable now."""
        self._require_open()
        self._queue.flush()

    def __enter__(self) -> Self:
        self._is_begun = True
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._is_over = True

    def _heading(self, group: str, app: str, name: str, tai: When | None, headers: Headers, links: Links) -> Heading:
        """The heading of a Plex; the time is now unless given."""
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        for header, value in pairs:
            text_of(header, "a header's name", "Content-Type")
            text_of(value, f"the value of {header}", "text/plain")
        return Heading(
            group=text_of(group, "group", "u"),
            app=text_of(app, "app", "notes"),
            name=text_of(name, "name", "links/1"),
            tai=time_of(tai) if tai is not None else self._clock.tai(),
            headers=(*pairs, *(_link(tag, target) for tag, target in links)),
        )

    def _signer(self, sign: Signer | str | None) -> Sign:
        """The function that turns a Plex into the record to store."""
        key = self._key(sign)
        if key is None:
            return _unsigned
        return key.seal if isinstance(key, SigningKey) else partial(_sealed_by, key)

    def _key(self, sign: Signer | str | None) -> Signer | None:
        """The key that signs, which is a known one from now on."""
        if sign is None:
            return None
        key = self._keys.load(sign) if isinstance(sign, str) else sign
        if not (hasattr(key, "verifier") and hasattr(key, "sign")):
            message = "sign is a SigningKey, a lace.Signer, or the name of a key of the ring"
            raise InvalidInput(message, rule="argument-type", found=type(key).__name__)
        if self._on_signer is not None:
            self._on_signer(key.verifier)
        return key

    def _tip(self, heading: Heading) -> ValidRecord | None:
        return self._tip_of(heading.group, heading.app, heading.name)

    def _is_unchanged(
        self, tip: ValidRecord, heading: Heading, content: Path | bytes, said: Attributes, progress: Progress | None
    ) -> bool:
        """Whether storing a file would say nothing that the tip of its coordinate does not say."""
        headers = tip.parts.headers
        if not set(heading.headers) <= set(headers) or not said.means_same(read_attributes(headers)):
            return False
        with content.open("rb") if isinstance(content, Path) else BytesIO(content) as file:
            is_same = self._holds(tip, file)
            if is_same and progress is not None:
                progress(file.seek(0, os.SEEK_END))
        return is_same

    def _add_content(
        self,
        content: Content,
        heading: Heading,
        sign: Sign,
        progress: Progress | None,
        size: int | None = None,
        cut: Cut | None = None,
    ) -> RecordHash:
        with opened_content(content) as (source, known):
            counted = CountedContent(source, progress) if progress else source
            size = known if size is None else size
            return write_content(
                counted, heading, add=self._queue.add, sign=sign, limits=self._limits, size=size, cut=cut
            )


def put_files(
    to: PutVerbs, files: Sequence[SmallFile], *, group: str, app: str, sign: Signer | str | None
) -> FileRecords:
    """Store versions of small files at one group and app, all or none, in one transaction; durable on return."""
    with to._putting() as batch:
        records = records_of(files, group, app, batch._key(sign))
        batch._queue.store_alike(records.blobs, records.versions)
        return records


def _sealed_by(signer: Signer, plex: Plex) -> Seal:
    """What a signer of the application made of a Plex; checked, for what cannot be verified is not stored."""
    sealed = seal(plex, signer)
    try:
        verify(signer.verifier.digest, plex.hash.digest, b64a.decode(sealed.signature))
    except InvalidInput as error:
        raise KeyUnavailable(f"the signer of {signer.verifier} returned a wrong signature: {error}") from error
    return sealed


def _unsigned(plex: Plex) -> Plex | Seal:
    return plex


def _link(tag: str, target: str) -> Header:
    try:
        return link_header(tag, target)
    except ValueError:
        message = "a link is a word and the hash it points to"
        raise InvalidText(message, rule="record-link", found=repr(f"{tag} {target}"[:80])) from None


class FileState(StrEnum):
    """What became of one file, on its way into a lace or out of it."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TreeResult:
    """The result for one file: its record, or why it was refused."""

    path: Path
    name: str
    hash: RecordHash | None
    refused: str = ""
    state: FileState = FileState.NEW


Add = Callable[[Path | bytes, str, Attributes], tuple[RecordHash, FileState]]


def put_tree(folder: Path, name: str, batch: Batch, add: Add) -> Iterator[TreeResult]:
    """Queue each file and give its result once its records are durable."""
    queued: list[TreeResult] = []
    for path in paths_below(folder):
        if is_ours(tuple(map(os.fsencode, path.relative_to(folder).parts))):
            continue  # what `lace sync` knows of the folder, and its lace, are not files of the folder
        queued.append(_put_file(folder, path, name, add))
        if len(queued) >= RESULTS_HELD:  # unchanged files fill no batch
            batch.flush()
        if not batch.waiting:
            yield from queued
            queued.clear()
    batch.flush()
    yield from queued


def _put_file(folder: Path, path: Path, prefix: str, add: Add) -> TreeResult:
    parts = tuple(map(os.fsencode, path.relative_to(folder).parts))
    name = f"{prefix.rstrip('/')}/{name_of(parts)}" if prefix else name_of(parts)
    try:
        content, said = _content_of(path, parts)
        record_hash, state = add(content, name, said)
    except InvalidInput as error:
        return TreeResult(path, name, None, str(error), FileState.REFUSED)
    except OSError as error:
        return TreeResult(path, name, None, error.strerror or str(error), FileState.REFUSED)
    return TreeResult(path, name, record_hash, state=state)


def _content_of(path: Path, parts: tuple[bytes, ...]) -> tuple[Path | bytes, Attributes]:
    """What is stored of a file, a link or an empty folder; InvalidInput if it is none of them (082)."""
    found = path.lstat()
    if stat.S_ISREG(found.st_mode):
        return path, Attributes(FileKind.FILE, bool(found.st_mode & stat.S_IXUSR), found.st_mtime_ns)
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(path))
        if not leads_inside(parts, target):  # 082-LINK-01
            raise InvalidInput("a link that leads out of the folder is not kept", rule="file-link")
        return target, Attributes(FileKind.LINK)
    if stat.S_ISDIR(found.st_mode):
        return b"", Attributes(FileKind.FOLDER)
    raise InvalidInput("not a regular file", rule="file-kind")  # 082-ATTR-03


def paths_below(folder: Path) -> Iterator[Path]:
    """Everything below a folder except folders that hold something, in the order of paths; no link is entered."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        path = Path(entry.path)
        if not entry.is_dir(follow_symlinks=False):
            yield path
            continue
        below = paths_below(path)
        first = next(below, None)
        yield path if first is None else first
        yield from below
