"""The daemon that forks Spark's Python workers, without its noise.

Rule: it is PySpark's own daemon. Only one thing is not said: that a task's reader has gone, which is how every `limit`
and `show` ends.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any


def main() -> None:
    """Run the daemon; tracebacks of broken pipes are left out."""
    from pyspark.daemon import manager

    say = traceback.print_exc

    def say_unless_broken_pipe(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            say(*arguments, **named)

    traceback.print_exc = say_unless_broken_pipe
    manager()


if __name__ == "__main__":
    main()
