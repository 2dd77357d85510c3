"""A Chromium in build/chromium for machines where nobody may install one (Linux on x86-64).

The package holds the browser for machines with next to nothing: its libraries and a font come along. The browser
stories find it there by themselves; `LACE_CHROMIUM` names another.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tarfile
from pathlib import Path

from npm_packages import NotFetched, node, packages

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "chromium"
UNPACK = (
    "const fs = require('node:fs'), zlib = require('node:zlib'), { pipeline } = require('node:stream/promises');"
    "const [from, to] = process.argv.slice(1);"
    "pipeline(fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to));"
)
RUN = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/al2023/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_FILE="$here/fonts.conf" \\
  exec "$here/chromium" --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader "$@"
"""
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{place}</dir><cachedir>{place}/cache</cachedir></fontconfig>
"""


def fetch(place: Path = PLACE) -> Path:
    """Fetch and unpack it; the program to start."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise NotFetched("this Chromium is for Linux on x86-64")
    unpacker = node()
    source = packages(ROOT / "tools" / "chromium", place / "npm") / "@sparticuz" / "chromium" / "bin"
    _unpack(unpacker, source / "chromium.br", place / "chromium")
    (place / "chromium").chmod(0o755)
    for name, into in (("al2023", place / "al2023"), ("fonts", place / "fonts"), ("swiftshader", place)):
        packed = place / f"{name}.tar"
        _unpack(unpacker, source / f"{name}.tar.br", packed)
        with tarfile.open(packed) as members:
            members.extractall(into, filter="data")
        packed.unlink()
    (place / "fonts.conf").write_text(FONTS.format(place=place / "fonts"))
    run = place / "run"
    run.write_text(RUN)
    run.chmod(0o755)
    return run


def _unpack(unpacker: str, source: Path, target: Path) -> None:
    done = subprocess.run(
        [unpacker, "-e", UNPACK, str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotFetched(f"{source.name} does not unpack: {done.stderr.strip().splitlines()[-1:]}")


if __name__ == "__main__":
    try:
        print(fetch())
    except NotFetched as why:
        sys.exit(f"no Chromium was fetched: {why}")
