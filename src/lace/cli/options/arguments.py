"""The arguments that commands share: a lace's path, a record's name, NAME=VALUE pairs.

Rule: a malformed argument is a usage error (exit code 2), reported before a store is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lace.errors import InvalidInput, LaceError, NotFound, StoreError
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace
    from lace.store import RecordStore

F = TypeVar("F", bound=Callable[..., Any])


class LacePath(click.Path):
    """The path of a lace, which must be a file: a lace in memory would be gone when the command ends."""

    def __init__(self, *, exists: bool = False, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        problem = not_a_file(str(value))
        if problem:
            self.fail(problem, param, ctx)
        return super().convert(value, param, ctx)


def not_a_file(text: str) -> str:
    """Why a text cannot be the path of a lace that outlives the command; empty if it can.

    >>> not_a_file("notes.lace"), not_a_file("/tmp/:memory:")
    ('', '')
    >>> not_a_file("./:memory:")[:43]
    "'./:memory:' is a lace in memory, gone when"
    """
    if not text.strip():
        return "the path of the lace is empty; name a file."
    is_address = text.lower().startswith("file:") and (":memory:" in text or "mode=memory" in text)
    if is_address or str(Path(text)) == ":memory:":  # `Path` turns `./:memory:` into this too
        return f"{text!r} is a lace in memory, gone when the command ends; name a file."
    return ""


def lace_path(text: str) -> Path:
    """The path of a lace, for a command that takes it among other words."""
    if problem := not_a_file(text):
        raise click.UsageError(problem)
    return Path(text)


def lace_argument(function: F) -> F:
    """PATH: the lace; read before all other words, some of which are names that it knows."""
    return click.argument("path", type=LacePath(), is_eager=True)(function)


LACE_OF_FOLDER = "lace.of-folder"  # where a command about a folder notes its lace


def lace_of(ctx: click.Context | None) -> Path | None:
    """The lace that a command is about, if it is a file; its argument is read before all others."""
    path = None if ctx is None else ctx.params.get("path", ctx.meta.get(LACE_OF_FOLDER))
    return path if isinstance(path, Path) and path.is_file() else None


@contextmanager
def opened(path: Path, *, write: bool = False) -> Iterator[Lace]:
    """The lace at a path, which must exist."""
    from lace.cli.commands.key import user_ring
    from lace.porcelain.lace import open_lace

    with _known(path):
        lace = open_lace(path, read_only=not write, keys=user_ring())
    with lace:
        try:
            yield lace
        except NotFound as missing:
            if missing.place and (near := _near(path, missing.place)):
                missing.add_note(f"did you mean {near}?")
            raise


def _near(path: Path, place: str) -> str:
    """What is spelled most like a coordinate or hash that is not there, as text."""
    from lace.porcelain.nearness import nearest_hashes, nearest_places

    with suppress(LaceError):
        return " or ".join(nearest_places(path, place) if place.startswith("//") else nearest_hashes(path, place))
    return ""


@dataclass(frozen=True, slots=True)
class StoreOnly:
    """The part of a lace that rules need; a developer's verbs and the libraries behind them stay unloaded."""

    store: RecordStore


@contextmanager
def opened_for_rules(path: Path) -> Iterator[StoreOnly]:
    """The store of the lace at a path, which must exist, for rules to read."""
    from lace.store import open_store

    with _known(path):
        store = open_store(path, read_only=True)
    with store:
        yield StoreOnly(store)


@contextmanager
def _known(path: Path) -> Iterator[None]:
    """Raise an error in the words of the command if there is no lace at a path."""
    lace_path(str(path))
    try:
        yield
    except NotFound as missing:
        from lace.porcelain.nearness import nearest_files

        error = StoreError(f"{path}: there is no lace here")
        if near := " or ".join(nearest_files(path)):
            error.add_note(f"did you mean {near}?")
        error.add_note(f"create it with `lace init {path}`")
        raise error from missing


def _now(coordinate: str, ctx: click.Context | None) -> str:
    """Which record a coordinate means now, or what is near if it means none."""
    path = lace_of(ctx)
    if path is None:
        return ""
    with suppress(LaceError, OSError), opened(path) as lace:
        try:
            return f" {coordinate} is {lace.resolve(coordinate)} now."
        except NotFound:
            near = _near(path, coordinate)
            return f" There is none at {coordinate}" + (f"; did you mean {near}?" if near else ".")
    return ""


class Target(click.ParamType[str]):
    """A record's name: a hash, the beginning of one, a hash address or, where that makes sense, a coordinate."""

    name = "target"

    def __init__(self, *, coordinates: bool = True, hashes: bool = True) -> None:
        self.coordinates = coordinates
        self.hashes = hashes

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from lace.porcelain.lace import is_beginning
        from lace.records.coordinate import is_place, parse_address

        if not self.coordinates and is_place(value):
            self.fail(f"name the record by its hash: a coordinate may mean another record tomorrow.{_now(value, ctx)}")
        if not self.hashes and not is_place(value):
            self.fail("name a coordinate: //group//app//name.", param, ctx)
        try:
            if not is_beginning(value.removesuffix("…")):
                parse_address(value if value.startswith("//") else f"////{value}")
        except InvalidInput as error:
            self.fail(f"{error}. `lace help coordinates` explains the ways to name a record.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from lace.cli.options.completing import coordinates

        return coordinates(ctx, param, incomplete)


class PrefixType(click.ParamType[str]):
    """The beginning of a coordinate."""

    name = "prefix"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from lace.records.coordinate import parse_prefix

        try:
            parse_prefix(value)
        except InvalidInput as error:
            self.fail(f"{error}. `lace help coordinates` explains coordinates.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from lace.cli.options.completing import coordinates

        return coordinates(ctx, param, incomplete)


class Pair(click.ParamType[tuple[str, str]]):
    """NAME=VALUE, split at the first equals sign."""

    name = "pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        left, equals, right = str(value).partition("=")
        if not (left and equals and right):
            self.fail(f"{value!r} is not of the form {param.metavar if param else 'NAME=VALUE'}", param, ctx)
        return left, right


class TaiTime(click.ParamType[str]):
    """A time as TAI text, or as a date or time in ISO 8601."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from lace.notation.tai import TAI

        try:
            return TAI.of_text(value)
        except InvalidInput as error:
            self.fail(str(error), param, ctx)


def as_of_option(function: F) -> F:
    """`--as-of TIME`: what was there then."""
    said = "What was there at a time: 2026-11-18 (its first moment, UTC), 2026-11-18T12:00+01:00 or TAI."
    return click.option("--as-of", type=TaiTime(), metavar="TIME", help=said)(function)
