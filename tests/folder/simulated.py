"""Two folders over simulated file systems, clock and wire: everything that happens follows from a seed.

What may happen: a process ends before or after any operation on the disk; the last lines of what was agreed are lost;
records travel in part and in any order; a clock is coarse or wrong; one file system folds case; a lace comes back
from an old copy. The engine, the lace, its records and the agreed tree on disk are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random

from lace.errors import InvalidText, LaceError
from lace.folder.disk import (
    SAME_NAME,
    ChangedMeanwhile,
    DiskScan,
    FilePath,
    FileWrite,
    Found,
    NoteFound,
    StableFile,
)
from lace.folder.engine import Folder, RoundReport
from lace.folder.lacetree import FolderPlace
from lace.folder.memory import Memory, Signature
from lace.notation.tai import TAI
from lace.porcelain.lace import Lace
from lace.porcelain.openfolder import is_ours
from lace.records.fileform import FileKind, name_of, path_of
from lace.records.validate import validate
from lace.runtime.clock import Clock
from lace.store import MemoryStore

START_NS = 1_700_000_000_000_000_000
NAMES = [b"a", b"A", b"b", b"d/x", b"d/y", b"D/x", b"d", b"e/f/g", b"caf\xe9", b"{x}"]
PLACE = FolderPlace(group="club", app="files")


class Crash(BaseException):
    """The process ended here."""


@dataclass
class Node:
    """A file, a link or a folder of a simulated file system."""

    kind: FileKind
    data: bytes
    executable: bool
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass
class SimulatedDisk:
    """A file system in memory whose operations may be the last one of their process."""

    random: Random
    clock: Callable[[], int]
    folds: bool = False
    grain_ns: int = 1
    crash_in: int = -1  # operations until the process ends; negative: it does not
    nodes: dict[FilePath, Node] = field(default_factory=dict)
    inodes: int = 0

    keeps_executable = True

    def tick(self) -> None:
        if self.crash_in == 0:
            self.crash_in = -1
            raise Crash
        self.crash_in -= self.crash_in > 0

    def there(self, path: FilePath) -> FilePath | None:
        """The path as it is spelled here."""
        if path in self.nodes or not self.folds:
            return path if path in self.nodes else None
        return next((other for other in self.nodes if _folded(other) == _folded(path)), None)

    def time(self) -> int:
        return self.clock() // self.grain_ns * self.grain_ns

    def put(self, path: FilePath, kind: FileKind, data: bytes, *, executable: bool, time_ns: int | None) -> None:
        """What both the engine and people do in the end."""
        for depth in range(1, len(path)):
            above = self.there(path[:depth])
            if above is None:
                self.inodes += 1
                self.nodes[path[:depth]] = Node(FileKind.FOLDER, b"", False, 0, 0, self.inodes)
            elif self.nodes[above].kind is not FileKind.FOLDER:
                raise NotADirectoryError(20, "Not a directory")
            else:
                path = (*above, *path[depth:])
        at = self.there(path) or path
        if at in self.nodes and (self.nodes[at].kind is FileKind.FOLDER) != (kind is FileKind.FOLDER):
            raise IsADirectoryError(21, "Is a directory")
        self.inodes += 1
        mtime = self.time() if time_ns is None else time_ns
        self.nodes[at] = Node(kind, data, executable, mtime, self.time(), self.inodes)

    def scan(self, ignored: Callable[[FilePath, bool], bool]) -> DiskScan:
        self.tick()
        full = {path[:-1] for path in self.nodes}
        listed = [path for path in self.nodes if path not in full and not is_ours(path)]
        self.random.shuffle(listed)
        return DiskScan({path: self._found(path) for path in listed if not ignored(path, False)}, {})

    def walk(self, ignored: Callable[[FilePath, bool], bool], note: NoteFound) -> dict[FilePath, str]:
        for path, found in self.scan(ignored).found.items():
            note(path, found)
        return {}

    def _found(self, path: FilePath) -> Found:
        node = self.nodes[path]
        if node.kind is FileKind.FOLDER:
            return Found(FileKind.FOLDER, False, Signature(0, 0, 0, 0))
        return Found(node.kind, node.executable, Signature(len(node.data), node.mtime_ns, node.ctime_ns, node.inode))

    def look(self, path: FilePath) -> Found | None:
        at = self.there(path)
        return None if at is None else self._found(at)

    @contextmanager
    def opened(self, path: FilePath) -> Iterator[StableFile]:
        self.tick()
        at = self.there(path)
        if at is None or self.nodes[at].kind is not FileKind.FILE:
            raise FileNotFoundError(2, "No such file")
        yield StableFile(BytesIO(self.nodes[at].data), lambda: self._found(at))

    def read(self, path: FilePath, expected: Found) -> bytes:
        with self.opened(path) as file:
            if file.found != expected:
                raise ChangedMeanwhile("the file changed while it was read")
            return file.read(1 << 30)

    def link_target(self, path: FilePath) -> bytes:
        return self.nodes[path].data

    def _require(self, path: FilePath, expected: Found | None) -> None:
        at = self.there(path)
        if (None if at is None else self._found(at)) != expected:
            if expected is None and at != path:
                raise InvalidText(SAME_NAME, rule="file-name-folds")
            raise ChangedMeanwhile("the file changed meanwhile")

    def write_each(self, writes: Iterable[FileWrite]) -> Iterator[Found | Exception]:
        """Some of the files are written beside their places before the first of them takes its name."""
        coming = iter(writes)
        while some := list(islice(coming, self.random.choice([1, 2, 5]))):
            datas = [self._write_beside(write, number) for number, write in enumerate(some)]
            for number, (write, data) in enumerate(zip(some, datas, strict=True)):
                yield data if isinstance(data, Exception) else self._put_in_place(write, number, data)

    def _write_beside(self, write: FileWrite, number: int) -> bytes | Exception:
        self.tick()
        try:
            data = b"".join(write.content)
            torn = data[: self.random.randrange(len(data) + 1)]
            self.put(self._beside(write, number), FileKind.FILE, torn, executable=False, time_ns=None)
        except (OSError, LaceError) as error:
            return error
        return data

    def _beside(self, write: FileWrite, number: int) -> FilePath:
        return (*write.path[:-1], b".lace-1-%d.part" % number)

    def _put_in_place(self, write: FileWrite, number: int, data: bytes) -> Found | Exception:
        self.tick()
        beside = self._beside(write, number)
        beside = self.there(beside) or beside
        try:
            self._require(write.path, write.expected)
            self.nodes.pop(beside)
            self.put(write.path, FileKind.FILE, data, executable=write.executable, time_ns=write.time_ns)
        except (OSError, LaceError) as error:
            self.nodes.pop(beside, None)
            return error
        self.tick()
        return self._now(write.path)

    def _now(self, path: FilePath) -> Found:
        found = self.look(path)
        assert found is not None
        return found

    def make_link(self, path: FilePath, target: bytes, expected: Found | None) -> Found:
        self.tick()
        self._require(path, expected)
        self.put(path, FileKind.LINK, target, executable=False, time_ns=None)
        self.tick()
        return self._now(path)

    def make_folder(self, path: FilePath) -> Found:
        self.tick()
        if self.there(path) is None:
            self.put(path, FileKind.FOLDER, b"", executable=False, time_ns=None)
        elif path not in self.nodes:
            raise InvalidText(SAME_NAME)
        return self._now(path)

    def remove(self, path: FilePath, expected: Found) -> None:
        self.tick()
        self._require(path, expected)
        if expected.kind is FileKind.FOLDER and any(other[:-1] == path for other in self.nodes):
            raise OSError(39, "Directory not empty")
        del self.nodes[path]
        self.tick()

    def set_executable(self, path: FilePath, expected: Found, *, executable: bool) -> Found:
        self.tick()
        self._require(path, expected)
        node = self.nodes[path]
        node.executable, node.ctime_ns = executable, self.time()
        return self._now(path)

    def prune(self, path: FilePath) -> None:
        for depth in range(len(path) - 1, 0, -1):
            self.tick()
            above = path[:depth]
            if any(len(other) > depth and other[:depth] == above for other in self.nodes):
                return
            self.nodes.pop(above, None)

    def now_ns(self) -> int:
        return self.time()

    def free_bytes(self) -> int:
        return 1 << 50

    def is_there(self) -> bool:
        return True


def _folded(path: FilePath) -> FilePath:
    return tuple(part.lower() for part in path)


@dataclass
class SimulatedClock(Clock):
    """One site's idea of the time."""

    world: World
    off_ns: int

    def tai(self) -> TAI:
        return TAI.of_unix_ns(self.world.time_ns + self.off_ns)


class Site:
    """A person, a folder and a lace."""

    def __init__(self, world: World, number: int, home: Path) -> None:
        self.world, self.number, self.random = world, number, world.random
        self.off_ns = self.random.choice([0, 0, 0, 30_000_000_000, -3_000_000_000])
        grain = self.random.choice([1, 1, 4_000_000, 2_000_000_000])
        folds = number == 1 and self.random.random() < 0.3
        self.disk = SimulatedDisk(self.random, lambda: world.time_ns, folds, grain)
        self.path = home / f"agreed-{number}"
        self.path.unlink(missing_ok=True)
        self.store = MemoryStore()
        self.folder: Folder | None = None

    def start(self) -> Folder:
        lace = Lace(self.store, clock=SimulatedClock(self.world, self.off_ns))
        memory = Memory(self.path)
        self.folder = Folder(lace, PLACE, self.disk, memory, now_ns=lambda: self.world.time_ns + self.off_ns)
        return self.folder

    def stop(self, *, torn: bool) -> None:
        """The process ends; what it wrote last about what was agreed may be lost."""
        if self.folder is None:
            return
        self.folder.memory.close()
        self.folder = None
        if torn and self.random.random() < 0.5:
            whole = self.path.read_bytes()
            self.path.write_bytes(whole[: self.random.randrange(len(whole) + 1)])

    def rounds(self, crash_in: int = -1) -> RoundReport | None:
        """As the command does; None if it ended half way."""
        folder = self.folder or self.start()
        self.disk.crash_in = crash_in
        try:
            return folder.rounds(go_on=True)
        except Crash:
            self.stop(torn=True)
            return None
        finally:
            self.disk.crash_in = -1

    def edit(self) -> None:
        """Somebody does something in the folder."""
        random, disk = self.random, self.disk
        self.world.time_ns += random.choice([0, 1_000, 5_000_000, 3_000_000_000])
        files = sorted(
            path for path, node in disk.nodes.items() if node.kind is not FileKind.FOLDER and not is_ours(path)
        )
        what = random.random()
        if files and what < 0.25:
            del disk.nodes[random.choice(files)]
        elif files and what < 0.4:
            old = random.choice(files)
            node = disk.nodes.pop(old)
            self._create(tuple(random.choice(NAMES).split(b"/")), node.data)
        elif files and what < 0.5:
            node = disk.nodes[random.choice(files)]
            node.executable, node.ctime_ns = not node.executable, disk.time()
        else:
            path = random.choice(files) if files and what < 0.75 else tuple(random.choice(NAMES).split(b"/"))
            size = random.choice([1, 3, 2_000])
            self._create(path, random.randbytes(1) * size + b"%d" % random.randrange(3))

    def _create(self, path: FilePath, data: bytes) -> None:
        before = self.disk.there(path)
        inode = self.disk.nodes[before].inode if before is not None else 0
        with suppress(OSError):
            self.disk.put(path, FileKind.FILE, data, executable=False, time_ns=None)
            if before is not None and self.random.random() < 0.7:  # some programs write into the file that is there
                self.disk.nodes[before].inode = inode

    def held(self) -> set[bytes]:
        """Every content that the lace can give back."""
        lace = Lace(self.store)
        found = set()
        for entry in self.store.entries():
            found.add(lace.get(entry.hash))
        return found

    def contents(self) -> set[bytes]:
        """Every content in the folder."""
        return {node.data for path, node in self.disk.nodes.items() if node.kind is FileKind.FILE and not is_ours(path)}

    def tree(self) -> dict[FilePath, tuple[bytes, bool]]:
        """The files of the folder."""
        return {
            path: (node.data, node.executable)
            for path, node in self.disk.nodes.items()
            if node.kind is FileKind.FILE and not is_ours(path)
        }


class World:
    """Two sites and what lies between them."""

    def __init__(self, seed: int, home: Path) -> None:
        self.random = Random(seed)
        self.time_ns = START_NS
        self.sites = [Site(self, number, home) for number in (0, 1)]

    def exchange(self, share: float = 1.0) -> None:
        """Records go both ways: all of them, or some in any order."""
        one, other = self.sites
        for source, target in ((one, other), (other, one)):
            bodies = [stored for _, stored in source.store.bodies_since()]
            self.random.shuffle(bodies)
            # A manifest is never there before its parts: an exchange sends the parts of what it sends.
            kept = [validate(stored) for stored in bodies if self.random.random() < share]
            target.store.put([record for record in kept if record.type == "B"])
            parts = {record for _, record in target.store.records_since()}
            target.store.put([record for record in kept if record.type != "B" and _needs(record) <= parts])

    def run(self) -> None:
        """Some hours of two people, and then peace."""
        random = self.random
        seen: set[bytes] = set()
        for _ in range(random.randrange(2, 5)):
            for site in self.sites:
                for _ in range(random.randrange(3)):
                    site.edit()
                self.time_ns += random.choice([0, 10_000_000, 10_000_000_000])
                what = random.random()
                if what < 0.5:
                    site.rounds()
                elif what < 0.8:
                    site.rounds(crash_in=random.randrange(30))
                seen |= site.contents() if what < 0.5 else set()
            if random.random() < 0.7:
                self.exchange(random.choice([1.0, 1.0, 0.5]))
            if random.random() < 0.1:
                self._restore(random.choice(self.sites))
        last = {site.number: site.contents() for site in self.sites}
        reports = self._peace()
        held = [site.held() for site in self.sites]
        for site in self.sites:
            lost = last[site.number] - held[0] - site.contents()
            assert not lost, f"lost {lost}"
        troubled = {trouble.name for report in reports for trouble in report.troubles}
        trees = [{name_of(path): said for path, said in site.tree().items()} for site in self.sites]
        for name in trees[0].keys() | trees[1].keys():
            if trees[0].get(name) != trees[1].get(name):
                folded = {name_of(_folded(path_of(one))) for one in troubled}
                assert name in troubled or any(_related(name_of(_folded(path_of(name))), one) for one in folded), (
                    name, trees[0].get(name), trees[1].get(name), troubled)  # fmt: skip

    def _restore(self, site: Site) -> None:
        """A lace comes back from a copy that lacks its newest records."""
        site.stop(torn=False)
        bodies = [stored for _, stored in site.store.bodies_since()]
        site.store = MemoryStore()
        site.store.put([validate(stored) for stored in bodies[: self.random.randrange(len(bodies) + 1)]])

    def _peace(self) -> list[RoundReport]:
        for _ in range(12):
            self.time_ns += 5_000_000_000
            reports = [report for site in self.sites if (report := site.rounds()) is not None]
            before = [site.store.stat().records for site in self.sites]
            self.exchange()
            is_quiet = before == [site.store.stat().records for site in self.sites]
            if is_quiet and not any(report.done.total() for report in reports):
                break
        else:
            raise AssertionError("not at rest")
        for site in self.sites:
            site.stop(torn=False)
        return reports


def _needs(record: object) -> set[str]:
    from lace.records.manifest import is_manifest, manifest_pieces

    return {piece.target for piece in manifest_pieces(record)} if is_manifest(record) else set()  # type: ignore[arg-type]


def _related(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/") or other.startswith(f"{name}/")


def run_seed(seed: int, home: Path) -> None:
    """One run; an AssertionError names the seed."""
    try:
        World(seed, home).run()
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
