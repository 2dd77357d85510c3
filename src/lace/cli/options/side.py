"""What exchanges on this side: a lace, or an archive on Spark (`lace serve`, `interlace`, `follow`).

Rule: a missing lace or archive is reported before anything is bound or dialled; Spark starts with the first job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.arguments import not_a_file, opened
from lace.cli.options.spark import spark_options
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.interlace.host import Host
    from lace.interlace.setup.terms import Terms
    from lace.porcelain.lace import Lace
    from lace.runtime.host.quotas import QuotaGate
    from lace.runtime.node.node import NodeLimits
    from lace.spark.peer.jobs import Read

F = TypeVar("F", bound=Callable[..., Any])
Say = Callable[[str, str], None]
_SCHEMES = ("file:", "viewfs:")
_POLL_SECONDS = 1.0  # how often an archive is polled for new versions


@dataclass(frozen=True, slots=True)
class Side:
    """What a node exchanges: a store with a cursor and, unless it is a lace's, what makes the hosts over it."""

    store: Any
    make_host: Callable[[Terms, QuotaGate], Host[Any]] | None = None
    lace: Lace | None = None  # None for an archive
    get_ready: Callable[[], None] | None = None  # may be slow; a server calls it before it listens

    def limits(self, limits: NodeLimits | None = None) -> NodeLimits | None:
        """The limits of its node: an archive is polled less often than a lace."""
        if self.make_host is None:
            return limits
        from lace.runtime.node.node import NodeLimits

        return replace(limits or NodeLimits(), store_poll_s=_POLL_SECONDS)


def is_archive(place: str | Path) -> bool:
    """Whether this names an archive: an address of any filesystem, or a folder with a log of commits in it."""
    text = str(place)
    return "://" in text or text.startswith(_SCHEMES) or (Path(text) / "log").is_dir()


class LaceOrArchive(click.ParamType[Any]):
    """The path of a lace, or the address of an archive."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        if problem := not_a_file(str(value)):
            self.fail(problem, param, ctx)
        return str(value) if is_archive(value) else Path(value)


def side_argument(*, required: bool = True) -> Callable[[F], F]:
    """PATH, a lace or an archive, and `--master` for the latter."""

    def decorate(function: F) -> F:
        master = spark_options("With an archive: Spark master, as in `lace archive`.")
        return click.argument("path", type=LaceOrArchive(), required=required, is_eager=True)(master(function))

    return decorate


@contextmanager
def opened_side(place: str | Path, master: str | None = None, say: Say | None = None) -> Iterator[Side]:
    """The lace or the archive at a place; it must exist."""
    if not is_archive(place):
        if master is not None:
            raise click.UsageError(f"--master needs an archive, and {place} is not one")
        with opened(Path(place), write=True) as lace:
            yield Side(lace.store, lace=lace)
        return
    from lace.cli.commands.archive import open_archive
    from lace.spark.peer.peer import ArchivePeer

    archive = open_archive(str(place), master, say, is_served=True)
    peer = ArchivePeer(archive, told=_teller(archive.progress))
    peer.state()
    try:
        yield Side(peer, peer.host, get_ready=peer.get_ready)
    finally:
        peer.close()


def _teller(say: Say) -> Callable[[Read], None]:
    def told(read: Read) -> None:
        say(read.what, f"{read.files:,} files, {read.rows:,} rows, {read.bytes / 1e6:,.1f} MB, {read.seconds:.1f} s")

    return told
