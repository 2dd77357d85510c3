"""The `lace` command: one file per command, loaded when it is called.

Rule: everything that prints, asks or exits lives here; nothing below this package does.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `lace` command."""
    import atexit
    import gc

    from lace.cli.app import app
    from lace.runtime.collector import ALLOCATIONS

    # A command makes many values and hardly a cycle, and what is left at the end goes with the process: looking for
    # cycles often, and once more at the end, would only take time.
    gc.set_threshold(ALLOCATIONS)
    atexit.register(gc.freeze)
    app(prog_name="lace")
