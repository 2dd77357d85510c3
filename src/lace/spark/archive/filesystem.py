"""The driver's own files of an archive (log, reports), on this machine or on any filesystem that Hadoop reaches.

Rule: `publish` is all or nothing and never replaces: of two writers of one name exactly one is told that it won.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from lace.errors import InvalidInput, StoreError
from lace.spark.source.places import RemoteFile, local_path, remote_files
from lace.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HIDDEN = (".", "_")
_IF_ABSENT = "fs.option.create.conditional.overwrite"  # of Hadoop: the check is made when the file is closed


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file under a folder: its name from the root, its length, and when it was last written (unix time)."""

    name: str
    size: int
    modified_s: float = 0.0


class Files(Protocol):
    """Files under one root, by names with `/` in them."""

    uri: str  # the root, as Spark reads it

    def read(self, name: str) -> bytes:
        """The bytes of a file; FileNotFoundError if there is none."""

    def listing(self, folder: str) -> list[ListedFile]:
        """Every file under a folder, sorted; none if there is no such folder."""

    def publish(self, name: str, data: bytes | memoryview) -> bool:
        """Make a file with all of its bytes; False, and nothing done, if one of that name is there."""

    def replace(self, name: str, data: bytes | memoryview) -> None:
        """Make a file or put another in its place, in one move."""

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all in it; nothing happens if there is none."""

    @property
    def folder(self) -> Path | None:
        """Where the root is on this machine, if it is."""


def open_files(uri: str, spark: SparkSession | None = None) -> Files:
    """The files under an address: a path, `file:…`, or any address that the session's Hadoop reaches."""
    scheme = urlsplit(uri).scheme
    if scheme in ("", "file"):
        return LocalFiles(local_path(uri).absolute())
    if spark is None:
        from lace.spark.session.session import spark_session

        spark = spark_session()
    if not hasattr(spark, "_jsparkSession"):
        raise InvalidInput(
            "over Spark Connect an archive stands where the client sees it too: a path or file:",
            rule="archive-address",
            found=uri,
        )
    return HadoopFiles(spark, uri)


_STORES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfs": "abfs", "abfss": "abfss"}  # as pyarrow calls them


def log_files(uri: str) -> Files | None:
    """The files under an address, to read the log of an archive on an object store without a JVM; None elsewhere."""
    scheme, separator, rest = uri.partition("://")
    return StoreFiles(f"{_STORES[scheme]}://{rest}") if separator and scheme in _STORES else None


class StoreFiles:
    """A folder of an object store, read without a JVM. Archives there are changed through Hadoop, which gives names."""

    def __init__(self, uri: str) -> None:
        self.uri: str = uri.rstrip("/")

    @property
    def folder(self) -> Path | None:
        return None

    def read(self, name: str) -> bytes:
        with RemoteFile(f"{self.uri}/{name}").open("rb") as file:
            return file.read()

    def listing(self, folder: str) -> list[ListedFile]:
        root = f"{self.uri}/"
        listed = remote_files(RemoteFile(f"{root}{folder}".rstrip("/")))
        found = ((str(file).removeprefix(root), stat) for file, stat in listed)
        shown = (ListedFile(name, stat.st_size, stat.st_mtime) for name, stat in found if _is_shown(name))
        return sorted(shown, key=lambda listed: listed.name)

    def publish(self, name: str, data: bytes | memoryview) -> bool:
        raise self._read_only()

    def replace(self, name: str, data: bytes | memoryview) -> None:
        raise self._read_only()

    def remove(self, name: str) -> None:
        raise self._read_only()

    def _read_only(self) -> StoreError:
        return StoreError(f"{self.uri}: archives on object stores are changed through Spark")


class LocalFiles:
    """A folder of this machine, without a JVM."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uri: str = str(root)

    @property
    def folder(self) -> Path | None:
        return self.root

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def listing(self, folder: str) -> list[ListedFile]:
        return sorted(self._files(self.root / folder), key=lambda listed: listed.name)

    def _files(self, folder: Path) -> Iterator[ListedFile]:
        for path in folder.rglob("*"):
            if path.is_file() and _is_shown(path.relative_to(folder).as_posix()):
                stat = path.stat()
                yield ListedFile(path.relative_to(self.root).as_posix(), stat.st_size, stat.st_mtime)

    def publish(self, name: str, data: bytes | memoryview) -> bool:
        hidden, shown = self._written(name, data)
        try:
            os.link(hidden, shown)  # unlike a rename, a link fails if the name is taken
        except FileExistsError:
            return False
        finally:
            hidden.unlink()
        _sync(shown.parent)
        return True

    def replace(self, name: str, data: bytes | memoryview) -> None:
        hidden, shown = self._written(name, data)
        hidden.replace(shown)
        _sync(shown.parent)

    def _written(self, name: str, data: bytes | memoryview) -> tuple[Path, Path]:
        shown = self.root / name
        shown.parent.mkdir(parents=True, exist_ok=True)
        hidden = shown.with_name(f".{shown.name}.{uuid.uuid4().hex}")
        with hidden.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return hidden, shown

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir():
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _is_shown(name: str) -> bool:
    return not any(part.startswith(_HIDDEN) for part in name.split("/"))


def _sync(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class HadoopFiles:
    """A folder of any Hadoop filesystem, through the session's own settings.

    A rename that refuses an existing name is one step on HDFS and on the stores that are made like it. On object stores
    it is several; those that create only what is absent (S3 through `s3a:` since Hadoop 3.4.2) declare that, and are
    asked to. On a scheme that only stands for a folder of this machine (viewfs), that machine itself gives the names.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri: str = uri.rstrip("/")
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._system: Any = self._path("").getFileSystem(self._conf)
        self._system.mkdirs(self._path(""))
        resolved = str(self._system.resolvePath(self._path("")).toString())
        self._beneath = LocalFiles(local_path(resolved)) if urlsplit(resolved).scheme == "file" else None
        self._creates_if_absent = bool(self._system.hasPathCapability(self._path(""), _IF_ABSENT))

    @property
    def folder(self) -> Path | None:
        return None if self._beneath is None else self._beneath.root

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.uri}/{name}" if name else self.uri)

    def read(self, name: str) -> bytes:
        if not self._system.exists(self._path(name)):
            raise FileNotFoundError(f"{self.uri}/{name}")
        stream = self._system.open(self._path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def listing(self, folder: str) -> list[ListedFile]:
        if not self._system.exists(self._path(folder)):
            return []
        inside = folder.rstrip("/") + "/" if folder else ""
        root = str(self._system.makeQualified(self._path("")).toUri().getPath())
        found, each = [], self._system.listFiles(self._path(folder), True)
        while each.hasNext():
            status = each.next()
            name = str(status.getPath().toUri().getPath())[len(root) :].lstrip("/")
            if _is_shown(name.removeprefix(inside)):
                found.append(ListedFile(name, status.getLen(), status.getModificationTime() / 1000))
        return sorted(found, key=lambda listed: listed.name)

    def publish(self, name: str, data: bytes | memoryview) -> bool:
        if self._beneath is not None:
            return self._beneath.publish(name, data)
        if self._creates_if_absent:
            return self.publish_by_create(name, data)
        return self.publish_by_rename(name, data)

    def publish_by_create(self, name: str, data: bytes | memoryview) -> bool:
        """`publish` where the store gives the name when the file is closed.

        A request whose answer was lost is sent again, and then finds the file that it made itself: so who won is read
        from what is there.
        """
        from py4j.protocol import Py4JJavaError

        builder = self._system.createFile(self._path(name)).overwrite(False).recursive()
        try:
            asked = builder.must if self._creates_if_absent else builder.opt
            stream = asked(_IF_ABSENT, True).build()
            stream.write(bytearray(data))
            stream.close()  # after a failure it stays open: a store would keep half a file
        except Py4JJavaError:
            try:
                return self.read(name) == bytes(data)
            except FileNotFoundError:
                pass
            raise
        return True

    def publish_by_rename(self, name: str, data: bytes | memoryview) -> bool:
        """`publish` where Hadoop gives the name: a rename that does not replace."""
        from py4j.protocol import Py4JJavaError

        hidden = self._written(name, data)
        try:
            self._rename(hidden, name, "NONE")
        except Py4JJavaError as error:
            self._system.delete(hidden, False)
            if "FileAlreadyExistsException" in str(error.java_exception):
                return False
            raise
        return True

    def replace(self, name: str, data: bytes | memoryview) -> None:
        if self._beneath is not None:
            self._beneath.replace(name, data)
            return
        self.replace_by_rename(name, data)

    def replace_by_rename(self, name: str, data: bytes | memoryview) -> None:
        """`replace` where Hadoop gives the name: a rename that takes the place of what is there."""
        self._rename(self._written(name, data), name, "OVERWRITE")

    def _rename(self, hidden: Any, name: str, how: str) -> None:
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._path("").toUri(), self._conf)
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        options = self._gateway.new_array(rename, 1)
        options[0] = getattr(rename, how)
        context.rename(hidden, self._path(name), options)

    def _written(self, name: str, data: bytes | memoryview) -> Any:
        folder, _, last = name.rpartition("/")
        hidden = self._path(f"{folder}/.{last}.{uuid.uuid4().hex}" if folder else f".{last}.{uuid.uuid4().hex}")
        stream = self._system.create(hidden, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        return hidden

    def remove(self, name: str) -> None:
        self._system.delete(self._path(name), True)
