"""The notation of quotas: `peer=64MiB`, `group=5000 records`, in options and in lace.toml.

Rule: an amount is a number with its unit; anything else is refused with what was found, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from lace.errors import InvalidText

if TYPE_CHECKING:
    from lace.runtime.host.quotas import Allowance, Quotas

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "records": 0}
_AMOUNT = re.compile(r"(?P<number>[0-9]{1,15}) *(?P<unit>[A-Za-z]+)")
FORM = f"a number and one of {', '.join(UNITS)}, such as 64MiB, or several of them separated by commas"


def parse_allowance(text: str) -> Allowance:
    """`64MiB`, `5000 records`, `64MiB, 5000 records`, or `none`."""
    from lace.runtime.host.quotas import Allowance

    found: dict[str, int] = {}
    for part in text.split(",") if text.strip() != "none" else ():
        match = _AMOUNT.fullmatch(part.strip())
        if match is None or match["unit"] not in UNITS:
            raise InvalidText(f"an amount is {FORM}", rule="quota", found=repr(text[:80]))
        name = "bytes" if UNITS[match["unit"]] else "records"
        if name in found:
            raise InvalidText(f"an amount may give {name} only once", rule="quota", found=repr(text[:80]))
        found[name] = int(match["number"]) * (UNITS[match["unit"]] or 1)
    return Allowance(**found)


def quotas_with(given: Iterable[tuple[str, str]]) -> Quotas | None:
    """The default quotas with the given ones in their place; None if none was given."""
    from lace.runtime.host.quotas import FOR_STRANGERS

    quotas, said = FOR_STRANGERS, False
    names = [one.name for one in fields(quotas)]
    for name, text in given:
        if name not in names:
            raise InvalidText(f"a quota is one of {', '.join(names)}", rule="quota", found=repr(name[:80]))
        quotas, said = replace(quotas, **{name: parse_allowance(text)}), True
    return quotas if said else None


class QuotaType(click.ParamType[tuple[str, str]]):
    """WHAT=AMOUNT."""

    name = "quota"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, sign, text = str(value).partition("=")
        if not sign:
            self.fail(f"{value!r} is not of the form WHAT=AMOUNT, such as peer=64MiB", param, ctx)
        try:
            quotas_with([(name, text)])
        except InvalidText as error:
            self.fail(str(error), param, ctx)
        return name, text
