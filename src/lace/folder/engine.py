"""The rounds of a folder: look at both sides, plan, take the steps.

Rule: a step is taken only if the disk still looks as it was seen, and noted only when it is durable. What goes wrong at
one path is told and stops no other; what puts many files at risk stops the round with a question.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from lace.errors import InvalidInput, InvalidText, LaceError, NotFound
from lace.folder.disk import NOT_KEPT, ChangedMeanwhile, Disk, FilePath, FileWrite, Found, StableFile
from lace.folder.lacetree import FolderPlace, LaceTree, blob_id
from lace.folder.memory import Memory, Signature
from lace.folder.merging import common_base, merged
from lace.folder.planner import Do, FolderStep, plan
from lace.folder.trees import Item, ShownItem
from lace.limits import MIB, SECOND_NS
from lace.notation.digest import hasher
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.bulkreading import RECORDS_AT_ONCE, ReadContent, contents
from lace.porcelain.content import Content
from lace.porcelain.cutting import cut_content
from lace.porcelain.lace import Lace
from lace.porcelain.openfolder import NAME_OF_OURS, in_the_way, is_ours
from lace.porcelain.putting import PutBatch, PutVerbs, put_files
from lace.porcelain.smallfiles import LARGEST as SMALL_BYTES
from lace.porcelain.smallfiles import SmallFile
from lace.records.fileform import (
    Attributes,
    FileKind,
    base_headers,
    leads_inside,
    name_of,
    path_of,
    read_attributes,
)
from lace.records.manifest import content_length
from lace.records.model import Header, Parts
from lace.records.retraction import ALL
from lace.values import dataclass

_Kept = tuple[FolderStep, ShownItem | None, Found | None]
_WHY_BARRED = "the policy lets only others write here, so this stays on this disk alone"
_WHY_UNSIGNED = "the policy counts nothing here that nobody signed, so this stays here alone; --sign names a key"
Ignored = Callable[[FilePath, bool], bool]
_UNREAD = "?"  # the content of a new file that nobody has read yet
_LASTING = frozenset({"file-link", "file-name"})  # rules about what no folder can keep
_OLD_ENOUGH_NS = 2 * SECOND_NS  # file systems may keep times by two seconds: a file that is newer is read again


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLimits:
    """What a round does without asking."""

    max_gone_share: float = 0.5  # of the files that may be deleted on either side
    min_gone: int = 10  # fewer are never asked about
    min_free_bytes: int = 64 * MIB  # that stay free on the disk
    taken_at_once: int = 2_000  # files stored in one go
    taken_bytes: int = 16 * MIB  # and of these files together, unless one alone is larger


class FolderQuestion(StrEnum):
    """Why a round stopped before it did anything."""

    ROOT_GONE = "root-gone"
    MANY_RETRACTED = "many-retracted"
    MANY_REMOVED = "many-removed"
    OLD_LACE = "old-lace"


@dataclass(frozen=True, slots=True)
class Stopped:
    """A question for a person, in one sentence."""

    question: FolderQuestion
    text: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """One path that needs a person, or another try."""

    name: str
    why: str
    is_passing: bool = False  # it will be tried again and may well work then
    is_lasting: bool = False  # no folder can keep it, so it is enough to say so once


@dataclass(frozen=True, slots=True)
class _Said:
    """A version of this folder, as far as a policy asks whether it counts."""

    group: str
    app: str
    signer: str | None
    tai: str
    hash: str
    withdraws: tuple[str, ...] = ()


@dataclass(slots=True)
class RoundReport:
    """What a round did."""

    done: Counter[Do] = field(default_factory=Counter)
    troubles: list[Trouble] = field(default_factory=list)
    contested: dict[str, list[str]] = field(default_factory=dict)  # by file, what is beside it
    stopped: Stopped | None = None
    steps: list[FolderStep] = field(default_factory=list)  # that were taken

    @property
    def is_at_rest(self) -> bool:
        """Whether another round would find nothing to do."""
        return self.stopped is None and not self.done.total() and not any(one.is_passing for one in self.troubles)


class Folder:
    """One folder over one lace."""

    def __init__(
        self,
        lace: Lace,
        place: FolderPlace,
        disk: Disk,
        memory: Memory,
        *,
        sign: str | None = None,
        ignored: Ignored = lambda _, __: False,
        limits: FolderLimits | None = None,
        now_ns: Callable[[], int],
    ) -> None:
        self.lace = lace
        self.place = place
        self.disk = disk
        self.memory = memory
        self.tree = LaceTree(lace, place, memory.agreed)
        self._sign = sign
        self._verifier: str | None = None
        self._ignored = ignored
        self._limits = limits or FolderLimits()
        self._now_ns = now_ns
        self._found: dict[str, Found] = {}
        self._items: dict[str, Item] = {}
        self._closed: dict[str, str] = {}
        self._looked_ns = 0  # when this round began, by the clock of the disk

    def rounds(self, *, go_on: bool = False, at_most: int = 8, expects_news: bool = False) -> RoundReport:
        """Rounds until nothing is left to do; what they did together, and what the last one left to people.

        Without news it first looks whether anything changed at all, which takes less time and memory than a round.
        """
        total = RoundReport()
        if not expects_news and self._is_at_rest_still():
            total.contested = _beside(self.memory.contested())
            return total
        for _ in range(at_most):
            report = self.round(go_on=go_on)
            total.done.update(report.done)
            total.steps += report.steps
            total.troubles, total.contested, total.stopped = report.troubles, report.contested, report.stopped
            if report.is_at_rest or report.stopped or not report.done.total() or self._has_settled(report):
                break
        return total

    def _is_at_rest_still(self) -> bool:
        """Whether lace and folder look as they did when nothing was left to do."""
        if not (self.memory.moment and self.disk.is_there() and self._may_rest()):
            return False
        left = len(self.memory.agreed)

        def compare(path: FilePath, found: Found) -> None:
            nonlocal left
            executable = found.executable if self.disk.keeps_executable else None
            if not self.memory.is_as(name_of(path), found.kind, executable, found.looked):
                raise ChangedMeanwhile("the folder is not as it was")
            left -= 1

        try:
            closed = self.disk.walk(self._ignored, compare)
        except LaceError:
            return False
        return not closed and not left

    def _has_settled(self, report: RoundReport) -> bool:
        """Whether what was seen on disk is all in the lace after a round that wrote nothing, and nothing else came."""
        if report.troubles or not report.done.keys() <= {Do.TAKE, Do.RETRACT}:
            return False
        self.tree.refresh()
        if self.tree.contested or plan(self._visible(self.tree.shown, report), self._items, self.memory.agreed):
            return False
        self._note_rest(report, is_at_rest=True)
        return True

    def _note_rest(self, report: RoundReport, *, is_at_rest: bool) -> None:
        """Note that nothing was left to do at a moment of the lace, so that the next process need not read it all."""
        is_all = is_at_rest and not report.troubles and self.tree.shown.keys() == self.memory.agreed.keys()
        if not is_all:
            self.memory.at_rest("")
        elif not self.tree.is_at(self.memory.moment):
            self.memory.at_rest(self.tree.mark(self.memory.folder))
        self.memory.flush()

    def round(self, *, go_on: bool = False) -> RoundReport:
        """Look, plan, act, once."""
        report = RoundReport()
        if not self.disk.is_there():
            report.stopped = Stopped(
                FolderQuestion.ROOT_GONE, "the folder is not there, or is another one; nothing was done"
            )
            return report
        if self._is_old(report, go_on=go_on):
            return report
        self.tree.refresh()
        merges = self._merge(report)
        if merges:
            self.tree.refresh()
        disk = self._look(report)
        lace = self._visible(self.tree.shown, report)
        agreed = self._visible(self.memory.agreed, None)
        steps = self._unless_barred(plan(lace, disk, agreed), report)
        if not go_on and (stopped := self._at_risk(steps, len(agreed))) is not None:
            report.stopped = stopped
            return report
        self._take_steps(steps, report)
        report.contested = _beside((name, one.beside) for name, one in self.tree.shown.items() if one.beside)
        self._note_rest(report, is_at_rest=report.is_at_rest)
        return report

    # What is there

    def _look(self, report: RoundReport) -> dict[str, Item]:
        self._looked_ns = self.disk.now_ns()
        scan = self.disk.scan(self._ignored)
        self._found, self._closed = {}, {}
        items = self._items = {}
        for path, why in scan.closed.items():
            name = name_of(path) if path else ""
            self._closed[name] = why
            report.troubles.append(Trouble(name, why, is_lasting=why == NOT_KEPT))
        for path, found in scan.found.items():
            name = name_of(path)
            try:
                item = self._item(name, path, found)
            except (OSError, LaceError) as error:
                self._closed[name] = _told(error)
                report.troubles.append(_trouble(name, error))
                continue
            self._found[name] = found
            items[name] = item
        return items

    def _item(self, name: str, path: FilePath, found: Found) -> Item:
        """What is at a path; a file is read unless it looks as it did when it was read before."""
        if found.kind is FileKind.FOLDER:
            return Item("", FileKind.FOLDER)
        last = self.memory.agreed.get(name)
        if last is not None and self.memory.looked(name) == found.looked and last.item.kind is found.kind:
            return Item(last.item.content, found.kind, self._is_executable(name, found))
        if found.kind is FileKind.LINK:
            target = self.disk.link_target(path)
            if not leads_inside(path, target):
                raise InvalidText("a link that leads out of the folder is not kept", rule="file-link")
            return Item(blob_id(len(target), iter([target])), FileKind.LINK)
        if last is None and name not in self.tree.shown:
            return Item(_UNREAD, FileKind.FILE, self._is_executable(name, found))
        with self.disk.opened(path) as file:
            item = Item(blob_id(file.size, _pieces(file)), FileKind.FILE, self._is_executable(name, found))
        if last is not None and last.item == item:
            self._agree(name, last, found)  # so that it need not be read next time
        return item

    def _is_executable(self, name: str, found: Found) -> bool:
        """What is on disk, or what was said last where the disk cannot tell."""
        if self.disk.keeps_executable or found.kind is not FileKind.FILE:
            return found.executable
        known = self.memory.agreed.get(name) or self.tree.shown.get(name)
        return known is not None and known.item.executable

    def _visible(self, tree: Mapping[str, ShownItem], report: RoundReport | None) -> dict[str, ShownItem]:
        """A tree without what is ignored, has no path, or could not be looked at."""
        found = {}
        above: dict[FilePath, bool] = {}  # whether a folder is ignored, or one that it is in
        for name, shown in tree.items():
            if self._closed and (name in self._closed or any(_is_below(name, closed) for closed in self._closed)):
                continue
            here = self._items.get(name)
            if here is not None and here.kind is shown.item.kind:
                found[name] = shown  # the scan met it, so the name has a path that nobody ignores
                continue
            try:
                path = path_of(name)
            except InvalidText as error:
                if report is not None:
                    report.troubles.append(_trouble(name, error))
                continue
            if is_ours(path):
                if report is not None:
                    report.troubles.append(Trouble(name, NAME_OF_OURS, is_lasting=True))
                continue
            if not (
                self._is_below_ignored(path[:-1], above) or self._ignored(path, shown.item.kind is FileKind.FOLDER)
            ):
                found[name] = shown
        return found

    def _is_below_ignored(self, folder: FilePath, known: dict[FilePath, bool]) -> bool:
        """Whether a folder is ignored, or one that it is in; each is asked about once."""
        if not folder:
            return False
        if folder not in known:
            known[folder] = self._is_below_ignored(folder[:-1], known) or self._ignored(folder, True)
        return known[folder]

    # What is too much to do unasked

    def _is_old(self, report: RoundReport, *, go_on: bool) -> bool:
        if self.tree.cursor is not None or self._may_rest():
            return False
        wanted = [RecordHash(shown.versions[0]) for shown in self.memory.agreed.values()]
        have: set[RecordHash] = set()
        for start in range(0, len(wanted), 500):
            have |= self.lace.store.present(wanted[start : start + 500])
        lost = {name: shown for name, shown in self.memory.agreed.items() if shown.versions[0] not in have}
        if not lost:
            return False
        if go_on:
            self.memory.forget(lost)
            return False
        text = f"the lace lacks {len(lost):,} versions that this folder has seen: is it an old copy?"
        report.stopped = Stopped(FolderQuestion.OLD_LACE, text)
        return True

    def _may_rest(self) -> bool:
        """Whether nothing has changed in the lace since nothing was left to do, so that it need not be read."""
        return self.tree.rest_at(self.memory.folder, self.memory.moment)

    def _at_risk(self, steps: Sequence[FolderStep], files: int) -> Stopped | None:
        for do, question, where in (
            (Do.RETRACT, FolderQuestion.MANY_RETRACTED, "are gone from the folder: delete them everywhere?"),
            (Do.REMOVE, FolderQuestion.MANY_REMOVED, "were deleted elsewhere: delete them here too?"),
        ):
            gone = sum(step.do is do for step in steps)
            if gone >= self._limits.min_gone and gone > files * self._limits.max_gone_share:
                moved = sum(step.do is (Do.TAKE if do is Do.RETRACT else Do.WRITE) for step in steps)
                if moved < gone:  # a tree that was moved is there under other names
                    return Stopped(question, f"{gone:,} of {files:,} files {where}")
        return None

    # What the policy of the lace does not let this folder do

    def _unless_barred(self, steps: list[FolderStep], report: RoundReport) -> list[FolderStep]:
        """The steps but those that would store what counts for nobody, or remove for that reason what was stored here.

        A version that the policy bars is not shown by any lace, and without this a file of somebody who is not a member
        would go from the disk as soon as it was stored.
        """
        if not any(step.do in (Do.TAKE, Do.RETRACT, Do.REMOVE) for step in steps):
            return steps
        policy = self.lace.tip_policy()
        if not policy.writers:
            return steps
        kept: list[FolderStep] = []
        for step in steps:
            said = self._said_by(step)
            if said is None or policy.may_write(said):
                kept.append(step)
            else:
                report.troubles.append(Trouble(step.name, _WHY_BARRED if said.signer else _WHY_UNSIGNED))
        return kept

    def _said_by(self, step: FolderStep) -> _Said | None:
        """The version that a step would store; or of a file that has to go, the one that was stored here."""
        if step.do in (Do.TAKE, Do.RETRACT):
            return self._next_version((ALL,) if step.do is Do.RETRACT else ())
        last = self.memory.agreed.get(step.name) if step.do is Do.REMOVE else None
        parts = None if last is None else self._parts_of(last.versions[0])
        if last is None or parts is None or parts.signed_by not in ("", self._signer()):
            return None  # others wrote it: what they may write is for the policy to say, here as well
        return _Said(self.place.group, self.place.app, parts.signed_by or None, parts.tai, last.versions[0])

    def _next_version(self, withdraws: tuple[str, ...] = ()) -> _Said:
        now = TAI.of_unix_ns(self._now_ns())
        return _Said(self.place.group, self.place.app, self._signer(), now, "", withdraws)

    def _signer(self) -> str | None:
        """Who signs what this folder stores; looked up once."""
        if self._sign is not None and self._verifier is None:
            self._verifier = self.lace.verifier_of(self._sign)
        return self._verifier

    def _parts_of(self, version: str) -> Parts | None:
        try:
            return self.lace.load(RecordHash(version)).parts
        except NotFound:
            return None

    # The steps

    def _take_steps(self, steps: list[FolderStep], report: RoundReport) -> None:
        stored = [step for step in steps if step.do in (Do.TAKE, Do.RETRACT)]
        others = [step for step in steps if step.do not in (Do.TAKE, Do.RETRACT)]
        for some in self._in_batches(stored):
            self._store(some, report)
        files = [step for step in others if self._is_file_to_write(step)]
        for step in others:
            if self._is_file_to_write(step):
                continue
            try:
                if self._bring(step):
                    self._count(step, report)
            except (OSError, LaceError) as error:
                report.troubles.append(_trouble(step.name, error))
            if step.do is Do.BLOCKED:
                report.troubles.append(Trouble(step.name, "a file and a folder have the same name; rename one of them"))
        for start in range(0, len(files), RECORDS_AT_ONCE):
            self._write_files(files[start : start + RECORDS_AT_ONCE], report)

    def _count(self, step: FolderStep, report: RoundReport) -> None:
        report.steps.append(step)
        if step.do is not Do.AGREE:
            report.done[step.do] += 1

    def _is_file_to_write(self, step: FolderStep) -> bool:
        """Whether a step puts the content of a file at its path."""
        if step.do is not Do.WRITE or step.shown is None or step.shown.item.kind is not FileKind.FILE:
            return False
        return step.found is None or step.found[:2] != step.shown.item[:2]

    def _write_files(self, steps: Sequence[FolderStep], report: RoundReport) -> None:
        """Write files beside their places and give them their names, each noted once its content is durable."""
        begun: deque[FolderStep] = deque()
        for result in self.disk.write_each(self._file_writes(steps, begun, report)):
            step = begun.popleft()
            if isinstance(result, Exception):
                report.troubles.append(_trouble(step.name, result))
                continue
            self._agree(step.name, step.shown, result)
            self._count(step, report)

    def _file_writes(
        self, steps: Sequence[FolderStep], begun: deque[FolderStep], report: RoundReport
    ) -> Iterator[FileWrite]:
        shown = [RecordHash(step.shown.versions[0]) for step in steps if step.shown is not None]
        for step, read in zip(steps, contents(self.lace.store, shown, self.lace.limits), strict=True):
            try:
                write = self._file_write(step, read)
            except (OSError, LaceError) as error:
                report.troubles.append(_trouble(step.name, error))
                continue
            begun.append(step)
            yield write

    def _file_write(self, step: FolderStep, read: ReadContent | None) -> FileWrite:
        assert step.shown is not None
        path, expected = path_of(step.name), self._found.get(step.name)
        if expected is not None:
            self._require(path, step, expected)
        version = RecordHash(step.shown.versions[0])
        record, pieces = (self.lace.load(version), None) if read is None else read
        if self.disk.free_bytes() < content_length(record) + self._limits.min_free_bytes:
            raise InvalidText("the disk is nearly full", rule="disk-full")
        return FileWrite(
            path,
            self.lace.content(version) if pieces is None else pieces,
            expected,
            step.shown.item.executable,
            read_attributes(record.parts.headers).time_ns,
        )

    def _bring(self, step: FolderStep) -> bool:
        path = path_of(step.name)
        expected = self._found.get(step.name)
        if step.do is Do.AGREE:
            self._agree(step.name, step.shown, expected)
        elif step.do is Do.REMOVE:
            assert expected is not None
            self._require(path, step, expected)
            self.disk.remove(path, expected)
            self.disk.prune(path)
            self._agree(step.name, None, None)
        elif step.do is Do.WRITE:
            assert step.shown is not None
            if expected is not None:
                self._require(path, step, expected)
            self._agree(step.name, step.shown, self._write(path, step.shown, expected))
        else:
            return False
        return True

    def _require(self, path: FilePath, step: FolderStep, expected: Found) -> None:
        """Read again what is to be replaced or removed: no step is taken on a guess."""
        if expected.kind is not FileKind.FILE or step.found is None:
            return
        with self.disk.opened(path) as file:
            if file.found != expected or blob_id(file.size, _pieces(file)) != step.found.content:
                raise ChangedMeanwhile("the file changed meanwhile")

    def _write(self, path: FilePath, shown: ShownItem, expected: Found | None) -> Found:
        wanted = shown.item
        if wanted.kind is FileKind.FOLDER:
            return self.disk.make_folder(path)
        record = self.lace.load(RecordHash(shown.versions[0]))
        if wanted.kind is FileKind.LINK:
            target = b"".join(self.lace.content(record.hash))
            if not leads_inside(path, target):
                raise InvalidText("it is a link that leads out of the folder", rule="file-link")
            return self.disk.make_link(path, target, expected)
        assert expected is not None
        return self.disk.set_executable(path, expected, executable=wanted.executable)

    def _agree(self, name: str, shown: ShownItem | None, found: Found | None) -> None:
        self.memory.agree(name, shown, None if found is None else self._settled(found))

    def _settled(self, found: Found) -> Signature | None:
        """How a file looked, if a change in the same tick of the clock would show."""
        age_ns = self._looked_ns - max(found.looked.mtime_ns, found.looked.ctime_ns)
        return found.looked if found.kind is not FileKind.FOLDER and age_ns >= _OLD_ENOUGH_NS else None

    def _in_batches(self, steps: Sequence[FolderStep]) -> Iterator[list[FolderStep]]:
        """Steps that are stored together."""
        some: list[FolderStep] = []
        size = 0
        for step in steps:
            found = self._found.get(step.name)
            own = 0 if found is None else found.looked.size
            if some and (len(some) >= self._limits.taken_at_once or size + own > self._limits.taken_bytes):
                yield some
                some, size = [], 0
            some.append(step)
            size += own
        if some:
            yield some

    def _store(self, steps: Sequence[FolderStep], report: RoundReport) -> None:
        """Store what is on disk, and that something is gone, durable before it is noted."""
        kept = self._store_files([step for step in steps if self._is_small(step)], report)
        others = [step for step in steps if not self._is_small(step)]
        with self.lace.batch() as batch:
            for step in others:
                try:
                    tai = self._time_after(step.bases)
                    if step.do is Do.RETRACT:
                        headers = (("Retract", "all"), *base_headers(step.bases))
                        self._put(batch, b"", step.name, tai, headers)
                        kept.append((step, None, None))
                        continue
                    assert step.found is not None
                    found = self._found[step.name]
                    item, version = self._take(batch, step, found, tai)
                    kept.append((step, ShownItem(item, (version,)), found))
                except (OSError, LaceError) as error:
                    report.troubles.append(_trouble(step.name, error))
        for step, shown, found_then in kept:
            self._agree(step.name, shown, found_then)
            if shown is not None:
                self.tree.stored(step.name, shown)
                self._items[step.name] = shown.item
            report.done[step.do] += 1
            report.steps.append(step)

    def _is_small(self, step: FolderStep) -> bool:
        """Whether what is stored is one of many that are stored alike."""
        found = self._found.get(step.name) if step.do is Do.TAKE else None
        is_small = found is not None and found.kind is FileKind.FILE and found.looked.size <= SMALL_BYTES
        return is_small and step.name.isascii()

    def _store_files(self, steps: Sequence[FolderStep], report: RoundReport) -> list[_Kept]:
        """Store the content of files that fit into memory together."""
        taken: list[tuple[FolderStep, Found]] = []
        files: list[SmallFile] = []
        now = TAI.of_unix_ns(self._now_ns())
        for step in steps:
            found = self._found[step.name]
            try:
                data = self.disk.read(path_of(step.name), found)
                tai = self._time_after(step.bases) if step.bases else now
            except (OSError, LaceError) as error:
                report.troubles.append(_trouble(step.name, error))
                continue
            said = Attributes(FileKind.FILE, self._items[step.name].executable, found.looked.mtime_ns)
            headers = (*base_headers(step.bases), *said.headers())
            files.append(SmallFile(self.place.full(step.name), tai, headers, data))
            taken.append((step, found))
        if not files:
            return []
        try:
            records = put_files(self.lace, files, group=self.place.group, app=self.place.app, sign=self._sign)
        except InvalidInput as error:
            if len(taken) > 1:  # one of them cannot be a record
                return [kept for step, _ in taken for kept in self._store_files([step], report)]
            report.troubles.append(Trouble(taken[0][0].name, str(error)))
            return []
        items = [
            ShownItem(Item(content, FileKind.FILE, self._items[step.name].executable), (version,))
            for content, version, (step, _) in zip(records.contents, records.hashes, taken, strict=True)
        ]
        return [(step, item, found) for item, (step, found) in zip(items, taken, strict=True)]

    def _take(self, batch: PutBatch, step: FolderStep, found: Found, tai: str) -> tuple[Item, str]:
        assert step.found is not None
        path, kind = path_of(step.name), found.kind
        is_executable = step.found.executable
        said = Attributes(kind, is_executable, found.looked.mtime_ns if kind is FileKind.FILE else None)
        headers = (*base_headers(step.bases), *said.headers())
        if kind is not FileKind.FILE:
            content = self.disk.link_target(path) if kind is FileKind.LINK else b""
            return step.found, self._put(batch, content, step.name, tai, headers)
        with self.disk.opened(path) as file:
            if file.found != found:
                raise ChangedMeanwhile("the file changed meanwhile")
            hashed = HashedFile(file)
            version = self._put(batch, hashed, step.name, tai, headers, file.size)
        return Item(hashed.blob_id, FileKind.FILE, is_executable), version

    def _put(
        self, to: PutVerbs, content: Content, name: str, tai: str, headers: Iterable[Header], size: int | None = None
    ) -> str:
        group, app, full = self.place.group, self.place.app, self.place.full(name)
        return to.put(
            content,
            group=group,
            app=app,
            name=full,
            tai=tai,
            headers=headers,
            sign=self._sign,
            size=size,
            cut=cut_content,
        )

    def _time_after(self, bases: Iterable[str]) -> str:
        """Now, or just after the newest version that a new one takes the place of (082-BASE-04)."""
        latest = TAI.of_unix_ns(self._now_ns())
        for base in bases:
            record = self.lace.store.get_head(RecordHash(base), 4096)
            if record is not None:
                latest = max(latest, TAI(self.lace.load(RecordHash(base)).parts.tai).plus_ns(1))
        return latest

    # Contested texts

    def _merge(self, report: RoundReport) -> int:
        """Store the merge of each contested text whose two heads go together line by line."""
        if self.tree.contested and not self.lace.tip_policy().may_write(self._next_version()):
            return 0  # nobody would see the merge, and the next round would make another one
        count = 0
        for name, versions in list(self.tree.contested.items()):
            shown = self.tree.shown.get(name)
            beside = [other for other in self.tree.shown.values() if other.beside == name]
            if shown is None or len(beside) != 1 or {shown.item.kind, beside[0].item.kind} != {FileKind.FILE}:
                continue
            pair = sorted([shown, beside[0]], key=lambda one: one.versions[0])
            base = common_base(versions, pair[0].versions[0], pair[1].versions[0])
            if base is None or base.meaning is None:
                continue
            text = self._merged_text(base.hash, pair)
            if text is not None:
                bases = (*shown.versions, *beside[0].versions)
                said = Attributes(FileKind.FILE, any(one.item.executable for one in pair), self._now_ns())
                headers = (*base_headers(bases), *said.headers())
                self._put(self.lace, text, name, self._time_after(bases), headers, len(text))
                count += 1
        return count

    def _merged_text(self, base: str, pair: Sequence[ShownItem]) -> bytes | None:
        hashes = [base, *(one.versions[0] for one in pair)]
        try:
            if any(self.lace.content_length(one) > MIB for one in hashes):
                return None
            return merged(*(self.lace.get(one) for one in hashes))
        except LaceError:
            return None  # a part of it is not here yet


def _beside(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """By contested file the names of those beside it."""
    found: dict[str, list[str]] = {}
    for name, of in names:
        found.setdefault(of, []).append(name)
    return found


class HashedFile:
    """A file on its way into the lace, whose hash is known once it was read."""

    def __init__(self, file: StableFile) -> None:
        self._file = file
        self._hash = hasher()
        self._hash.update(b"Data-Length: %d\n\n" % file.size)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self._hash.update(data)
        return data

    @property
    def blob_id(self) -> str:
        """The hash that the content has as a Blob."""
        return RecordHash.of("B", self._hash.digest())


def _pieces(file: StableFile) -> Iterator[bytes]:
    while data := file.read(4 * MIB):
        yield data


def _is_below(name: str, closed: str) -> bool:
    return not closed or name.startswith(f"{closed}/")


def _trouble(name: str, error: Exception) -> Trouble:
    is_lasting = isinstance(error, InvalidInput) and error.rule in _LASTING
    return Trouble(name, _told(error), isinstance(error, ChangedMeanwhile), is_lasting)


def _told(error: Exception) -> str:
    return in_the_way(error) if isinstance(error, OSError) else str(error)
