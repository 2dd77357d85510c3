"""The `lace` command: one file per command, loaded when it is called.

Rule: everything that prints, asks or exits lives here; nothing below this package does.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `lace` command."""
    from lace.cli.app import app

    app(prog_name="lace")
