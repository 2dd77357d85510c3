"""The `lace` command: one file per command, loaded when it is called.

Rule: everything that prints, asks or exits lives here; nothing below this package does.

    commands    one file per command; `catalogue` lists them all, and `app` finds and runs them
    options     options and arguments that several commands share, parsed into values
    exchange    exchanges as commands run them: with a peer, between two laces, between two peers, as a preview
    output      tables, JSON lines, progress, logs, failures and exit codes

The words of this floor:

    verb        one command with its line in `lace --help`
    shown       text in which everything that steers a terminal is spelled out; only `say` writes it
    failure     one block on stderr, with an exit code of its own
    outcome     how an exchange ended: a summary, an exit code, and why nothing moved if nothing did
    side        what exchanges on this side: a lace or an archive
    peer        the other side: an address, or another lace on this machine
    node file   `lace.toml`: a whole node with its listeners and peers

What never happens here: `lace --help` imports no command, no store is opened before every argument was parsed, and text
from records or peers never reaches a terminal as it is.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `lace` command."""
    import atexit
    import gc
    import sys

    try:
        from lace.cli.app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.exit(f"the command `lace` needs {error.name}, which is not installed: pip install click rich")
    from lace.workers.collector import own_process

    own_process()
    atexit.register(gc.freeze)  # what is left goes with the process: looking for its cycles would only take time
    app(prog_name="lace")
