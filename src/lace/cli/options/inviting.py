"""Lines that let somebody in: where they dial, and how a line is shown.

Rule: a line goes to standard output alone, so that it can be piped; what to do with it, and the QR code, go to stderr.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lace.cli.output.output import print_json, say
from lace.cli.output.qr import qr_code
from lace.errors import InvalidText

if TYPE_CHECKING:
    from lace.porcelain.invitations import InviteLine
    from lace.porcelain.lace import Lace


def place_of_line(lace: Lace, address: str | None, pin: str | None) -> tuple[str, bytes | None]:
    """Where a newcomer dials, and the pin there: as given, as in the last line, or as our only remote says."""
    from lace.cli.options.links import PinType
    from lace.porcelain.invitations import last_place, remember_place
    from lace.porcelain.remotes import is_lace_path, remotes_of

    if address is not None:
        found = address, None if pin is None else PinType().convert(pin, None, None)
        remember_place(lace, *found)
        return found
    kept = last_place(lace)
    if kept is not None:
        return kept
    remotes = [one for one in remotes_of(lace.store) if not is_lace_path(one.address)]
    if len(remotes) == 1:
        return remotes[0].address, remotes[0].pin
    error = InvalidText("where does a newcomer dial?", rule="invite-address")
    error.add_note("name the address of your server once: --address wss:club.example.org")
    raise error


def print_line(line: InviteLine, sentence: str, *, qr: bool, as_json: bool, **fields: object) -> None:
    """A line, with its QR code if somebody looks at it."""
    text = str(line)
    if as_json:
        print_json({"line": text, "address": line.address, "group": line.root.group, **fields})
        return
    say(sentence, err=True)
    say(f"lace join {text}")
    if qr and sys.stderr.isatty():
        say(qr_code(text), err=True)
