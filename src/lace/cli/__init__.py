"""The `lace` command: one file per command, loaded when it is called.

Rule: everything that prints, asks or exits lives here; nothing below this package does.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `lace` command."""
    import atexit
    import gc

    from lace.cli.app import app

    # What is left at the end goes with the process; looking through it for cycles once more would take time.
    atexit.register(gc.freeze)
    app(prog_name="lace")
