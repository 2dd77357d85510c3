"""`--quota WHAT=AMOUNT`, as `lace.runtime.host.quotas` reads amounts.

Rule: a wrong amount is a usage error before anything is opened.
"""

from __future__ import annotations

from typing import Any

import click

from lace.errors import InvalidText


class QuotaType(click.ParamType[tuple[str, str]]):
    """WHAT=AMOUNT."""

    name = "quota"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, sign, text = str(value).partition("=")
        if not sign:
            self.fail(f"{value!r} is not of the form WHAT=AMOUNT, such as peer=64MiB", param, ctx)
        from lace.runtime.host.quotas import quotas_with

        try:
            quotas_with([(name, text)])
        except InvalidText as error:
            self.fail(str(error), param, ctx)
        return name, text
