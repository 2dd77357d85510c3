"""What is known to work where, and what is refused where it cannot work.

Rule: Linux is what every test runs on. A command that needs what a system lacks is refused before it is loaded.
"""

from __future__ import annotations

NEEDS_UNIX = frozenset(
    ("serve", "follow", "tap", "peers", "top", "reload", "key", "invite", "join", "member", "device", "admin")
)
"""Commands that need signals, unix sockets, locks of files or owners of files, as key rings and nodes do."""


def refusal(platform: str, command: str) -> str:
    """Why a command cannot run on a platform, as `sys.platform` names it; empty if it may.

    >>> refusal("linux", "serve"), refusal("darwin", "serve"), refusal("win32", "check")
    ('', '', '')
    >>> refusal("win32", "serve")[:36]
    '`lace serve` does not run on Windows'
    """
    if platform != "win32" or command not in NEEDS_UNIX:
        return ""
    needs = "it needs signals, unix sockets and files with owners"
    return f"`lace {command}` does not run on Windows: {needs}. Run it under WSL, where lace is a Linux program."
