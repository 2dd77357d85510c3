"""Where inputs and bundles lie: files of this machine, or of any filesystem that pyarrow knows (`s3://`, `gs://`, …).

Rule: whoever reads a bundle asks a place for its bytes and never for a mount. Credentials and endpoints are those of
the environment, here and on every worker; no address that is kept or shown has a secret in it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from lace.errors import InvalidInput, StoreError
from lace.values import dataclass

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_COPIED_BYTES = 1 << 20


class PlaceStat(NamedTuple):
    """What is known of a file without opening it; named as Python names it."""

    st_size: int
    st_mtime_ns: int

    @property
    def st_mtime(self) -> float:
        return self.st_mtime_ns / 1e9


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file elsewhere, by its address; used as a path is."""

    address: str

    def __str__(self) -> str:
        return self.address

    def __lt__(self, other: Place) -> bool:
        return self.address < str(other)

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    def with_name(self, name: str) -> RemoteFile:
        return RemoteFile(f"{self.address.rpartition('/')[0]}/{name}")

    def exists(self) -> bool:
        return bool(self._info().is_file)

    def stat(self) -> PlaceStat:
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(2, "there is no such file", self.address)
        return _stat(info)

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """The bytes, from any place on."""
        assert mode == "rb"
        system, path = _system(self.address)
        return cast(BinaryIO, system.open_input_file(path))

    def _info(self) -> Any:
        system, path = _system(self.address)
        return system.get_file_info(path)


Place = Path | RemoteFile


def is_remote(address: str | Path | RemoteFile) -> bool:
    """Whether an address is another machine's."""
    return "://" in str(address) and urlsplit(str(address)).scheme != "file"


def local_path(name: str | Path) -> Path:
    """The path that a text or a `file:` address names."""
    text = str(name)
    if not text.startswith("file:"):
        return Path(text)
    return Path(unquote(urlsplit(text).path))


def placed(address: str | Path | RemoteFile) -> Place:
    """The place that an address names."""
    if isinstance(address, RemoteFile):
        return address
    return RemoteFile(str(address).rstrip("/")) if is_remote(address) else local_path(address)


def remote_files(folder: RemoteFile) -> list[tuple[RemoteFile, PlaceStat]]:
    """The files at an address, and in it if it is a folder; none if there is nothing."""
    from pyarrow.fs import FileSelector

    system, path = _system(folder.address)
    try:
        info = system.get_file_info(path)
        if info.is_file:
            return [(folder, _stat(info))]
        inside = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as error:
        raise StoreError(f"{folder}: {error}") from error
    scheme = folder.address.partition("://")[0]
    host = urlsplit(folder.address).netloc if not path.startswith(urlsplit(folder.address).netloc) else ""
    start = f"{scheme}://{host}"
    return [(RemoteFile(f"{start}{one.path}"), _stat(one)) for one in inside if one.is_file]


class TargetFolder:
    """A folder that files are put into, here or elsewhere: those are made on this machine first and then sent."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._here = None if is_remote(address) else Path(address)

    def path_for(self, name: str) -> Path | None:
        """Where a file of that name is written at once; None if it has to be sent."""
        if self._here is None:
            return None
        self._here.mkdir(parents=True, exist_ok=True)
        return self._here / name

    def take(self, file: Path) -> None:
        """Have a file of this machine under its name."""
        if self._here is not None:
            return
        system, folder = _system(self.address)
        system.create_dir(folder)
        with file.open("rb") as source, system.open_output_stream(f"{folder}/{file.name}") as copy:
            while piece := source.read(_COPIED_BYTES):
                copy.write(piece)

    def rename(self, old: str, new: str) -> None:
        """Another name for a file in it; on an object store that is a copy which its server makes."""
        if self._here is not None:
            (self._here / old).rename(self._here / new)
            return
        system, folder = _system(self.address)
        system.move(f"{folder}/{old}", f"{folder}/{new}")

    def names(self) -> list[str]:
        """The files in it that are not hidden."""
        if self._here is not None:
            found = [path.name for path in self._here.iterdir()] if self._here.is_dir() else []
        else:
            found = [file.name for file, _ in remote_files(RemoteFile(self.address))]
        return [name for name in found if not name.startswith(".")]

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self._here is not None:
            (self._here / name).unlink(missing_ok=True)
            return
        system, folder = _system(self.address)
        with suppress(FileNotFoundError):
            system.delete_file(f"{folder}/{name}")

    def clear(self) -> None:
        """Remove it with all that is in it, if it is there."""
        if self._here is not None:
            shutil.rmtree(self._here, ignore_errors=True)
            return
        system, folder = _system(self.address)
        system.delete_dir_contents(folder, missing_dir_ok=True)

    def inside(self, *names: str) -> TargetFolder:
        """A folder in it."""
        return TargetFolder("/".join((self.address, *names)))


def folder_at(address: str | Path | RemoteFile) -> TargetFolder:
    """The folder at an address, which need not be there; of this machine by its absolute path."""
    place = placed(address)
    return TargetFolder(str(place.absolute() if isinstance(place, Path) else place))


@contextmanager
def brought_here(place: Place) -> Iterator[Path]:
    """A file of this machine with the same bytes, for those who cannot do with less."""
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="lace-") as folder:
        here = Path(folder, PurePosixPath(place.name).name)
        with place.open("rb") as source, here.open("wb") as copy:
            while piece := source.read(_COPIED_BYTES):
                copy.write(piece)
        yield here


def _stat(info: FileInfo) -> PlaceStat:
    return PlaceStat(info.size, info.mtime_ns or 0)


def _system(address: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(address)
    except (ValueError, OSError, NotImplementedError) as error:
        raise InvalidInput(f"cannot be read from: {error}", rule="input-path", place=address) from error
    return system, path
