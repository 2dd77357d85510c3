"""The `lace` command: one file per command, loaded when it is called.

Rule: everything that prints, asks or exits lives here; nothing below this package does.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `lace` command."""
    import atexit
    import gc

    from lace.cli.app import app
    from lace.workers.collector import own_process

    own_process()
    atexit.register(gc.freeze)  # what is left goes with the process: looking for its cycles would only take time
    app(prog_name="lace")
