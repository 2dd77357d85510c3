"""Play the sections of demo/*.md: print what they say, run the commands of their console blocks, show what comes out.

A section is Markdown: a heading, plain words, and ```console blocks whose lines begin with `$ `. A command ending in
`\\` goes on in the next line. A command that is meant to fail ends in `  # exits N`. Sections run in the order of
their names, in one folder (demo-out/, or --stage; made anew) and with a key ring of their own, so that a section can
use what an earlier one made. A demo that goes wrong exits 1: `make demo` is also a test.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ROOT / "demo"
COMMAND_TIMEOUT_SECONDS = 600
EXITS = re.compile(r"\s+# exits (\d+)$")
ON_TERMINAL = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if ON_TERMINAL else text


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if ON_TERMINAL else text


def parts(markdown: str) -> Iterator[tuple[str, str]]:
    """("title" | "words" | "command", text) in order."""
    pieces = re.split(r"^```(\w*)\n(.*?)^```\n?", markdown, flags=re.MULTILINE | re.DOTALL)
    for position in range(0, len(pieces), 3):
        for paragraph in re.split(r"\n\s*\n", pieces[position]):
            text = paragraph.strip()
            if text:
                yield ("title", text.lstrip("# ")) if text.startswith("#") else ("words", text)
        if position + 2 < len(pieces) and pieces[position + 1] == "console":
            yield from (("command", command) for command in commands(pieces[position + 2]))


def commands(block: str) -> Iterator[str]:
    """The commands of one console block; a trailing backslash joins lines."""
    joined = re.sub(r"\\\n\s*(>\s+)?", "\\\n    ", block)
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*)$", joined, flags=re.MULTILINE):
        yield match.group(1)


def say(text: str) -> None:
    """Plain words, wrapped; Markdown list items stay items."""
    for item in re.split(r"\n(?=- )", text):
        lead = "- " if item.startswith("- ") else ""
        words = " ".join(item.removeprefix("- ").split()).replace("`", "")
        print(textwrap.fill(words, 92, initial_indent=lead, subsequent_indent=" " * len(lead)))
    print()


def environment(stage: Path) -> dict[str, str]:
    """The commands run with this interpreter's `lace` and a key ring inside the stage."""
    scripts = stage / ".bin"
    scripts.mkdir(parents=True)
    for name, module in (("lace", "-m lace.cli"), ("python", "")):
        script = scripts / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "LACE_HOME": str(stage / ".lace"),
    }


def run(command: str, stage: Path, env: dict[str, str]) -> bool:
    """Show a command, run it on the stage, and tell whether it ended as announced."""
    wanted = int(match.group(1)) if (match := EXITS.search(command)) else 0
    shown = EXITS.sub("", command)
    print(bold(f"  $ {shown}"), flush=True)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{shown}"],
        cwd=stage,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=COMMAND_TIMEOUT_SECONDS,
    )
    if done.stdout:
        print(textwrap.indent(done.stdout.decode("utf-8", "replace").rstrip("\n"), "  ", lambda _: True))
    if wanted:
        print(dim(f"  (exit code {done.returncode})"))
    print()
    if done.returncode != wanted:
        print(f"this command should have ended with {wanted} and ended with {done.returncode}", file=sys.stderr)
    return done.returncode == wanted


def play(section: Path, stage: Path, env: dict[str, str]) -> bool:
    """One section; stops at the first command that goes wrong."""
    for kind, text in parts(section.read_text(encoding="utf-8")):
        if kind == "title":
            print(f"{bold(text)}\n{'─' * len(text)}\n")
        elif kind == "words":
            say(text)
        elif not run(text, stage, env):
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Play the sections of demo/*.md.")
    parser.add_argument("sections", nargs="*", help="a part of a section's file name; without: all of them")
    parser.add_argument("--stage", type=Path, default=ROOT / "demo-out", help="the folder to play in, made anew")
    arguments = parser.parse_args()
    wanted: list[str] = arguments.sections
    stage: Path = arguments.stage.resolve()
    if stage.exists():
        if not (stage / ".bin").is_dir():  # only what a demo made is cleared away
            parser.error(f"{stage} exists and no demo made it")
        shutil.rmtree(stage)
    env = environment(stage)
    started = time.monotonic()
    sections = [path for path in sorted(SECTIONS.glob("*.md")) if not wanted or any(w in path.stem for w in wanted)]
    for section in sections:
        if not play(section, stage, env):
            print(f"the demo stopped in {section.relative_to(ROOT)}", file=sys.stderr)
            return 1
    seconds = time.monotonic() - started
    print(f"Sections played: {len(sections)}, in {seconds:.0f} s. What they made is in {stage.name}/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
