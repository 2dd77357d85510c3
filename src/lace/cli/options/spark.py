"""`--master` and `--conf`, for every command that may start Spark.

Rule: settings are read where a session starts; commands do not hand them on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

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
