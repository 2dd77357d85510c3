"""`--master` and `--conf`, for every command that may start Spark, and inputs wherever they lie.

Rule: settings are read where a session starts; commands do not hand them on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click


class InputPlace(click.ParamType[Any]):
    """A file or folder of this machine, which has to be there, or an address that is asked when it is read."""

    name = "path"

    def __init__(self, *, is_folder: bool = False) -> None:
        self._here: click.ParamType[Any] = click.Path(exists=True, file_okay=not is_folder, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or ":" not in value:
            return self._here.convert(value, param, ctx)
        from lace.spark.source.places import is_remote, placed

        return placed(value) if is_remote(value) else self._here.convert(str(placed(value)), param, ctx)


class OutputFolder(click.ParamType[Any]):
    """A folder of this machine that is made where there is none, or an address."""

    name = "folder"
    _here: click.ParamType[Any] = click.Path(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or ":" not in value:
            return self._here.convert(value, param, ctx)
        from lace.spark.source.places import is_remote, placed

        return placed(value) if is_remote(value) else self._here.convert(str(placed(value)), param, ctx)


F = TypeVar("F", bound=Callable[..., Any])
_KEPT = "lace.spark.conf"


def _kept(context: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    if given:
        from lace.spark.session.session import parse_settings

        context.meta[_KEPT] = parse_settings(given)


def spark_options(master: str) -> Callable[[F], F]:
    """`--master`, which says what is given, and `--conf`."""
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        expose_value=False,
        callback=_kept,
        help="A setting of Spark; wins over spark-defaults.conf.",
    )
    where = click.option("--master", help=master)

    def both(function: F) -> F:
        return where(conf(function))

    return both


def spark_settings() -> dict[str, str]:
    """What `--conf` said to the command that runs."""
    context = click.get_current_context(silent=True)
    found: dict[str, str] = {} if context is None else context.meta.get(_KEPT, {})
    return found
