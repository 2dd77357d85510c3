"""Let each file operation of each command fail once, or from then on: is a lace locked out, or anything lost?

python tools/faults.py [--most 12] [--command put] [--reads] [--seed N] [--json]

A library that stands before the system's (tests/faults/shim.c, built with cc, preloaded) counts what a command does to
the files of a lace, and lets the n-th operation fail: EIO once, as of a failing fsync, or ENOSPC from then on, as of a
full disk. The command runs in a forked process to its ordinary end. Afterwards the lace must open, be whole and hold
everything acknowledged; a name in the file without a log beside it, or a lace called damaged, is a problem. Without
--most every operation fails in turn. Exit code 1 if anything is wrong, 77 if there is no cc or no way to preload.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks has one thread

import argparse
import ctypes
import errno
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]  # in place of tools/

KINDS = {"once EIO": (errno.EIO, 0), "from then on ENOSPC": (errno.ENOSPC, 1)}
CANNOT = 77
COMMANDS: dict[str, list[str]] = {
    "init": ["init", "new.lace"],
    "put": ["put", "a.lace", "note", "--group", "u", "--app", "ding", "--name", "note"],
    "import": ["import", "a.lace", "more.bundle"],
    "rm": ["rm", "a.lace", "$FIRST"],
    "rm secure": ["rm", "a.lace", "$FIRST", "--secure"],
    "compact": ["compact", "a.lace"],
    "backup": ["backup", "a.lace", "copy.lace"],
    "backup replace": ["backup", "a.lace", "b.lace", "--replace"],
    "restore": ["restore", "b.lace", "restored.lace"],
    "repair": ["repair", "a.lace"],
    "index": ["index", "a.lace"],
    "interlace": ["interlace", "a.lace", "b.lace", "--expose", "all"],
}
REMOVING = {"rm", "rm secure"}


def prepare(folder: Path) -> None:
    """Two laces, a bundle and a note."""
    from kills.plays import SUPPLY
    from lace.store import open_store

    for name, numbers in (("a.lace", range(40)), ("b.lace", range(30, 60))):
        with open_store(folder / name, create=True) as store:
            for at in numbers[::10]:
                store.put([SUPPLY[number] for number in numbers if at <= number < at + 10])
            store.delete(SUPPLY[numbers[5]].hash)
    (folder / "more.bundle").write_bytes(b"".join(record.stored for record in SUPPLY[100:160]))
    (folder / "note").write_text("a note", encoding="utf-8")


def run(words: list[str], folder: Path, library: ctypes.CDLL, number: int, kind: str, reads: bool) -> int:
    """A command with a fault, as if it were the whole program; never returns in the process that does it."""
    from kills.plays import SUPPLY
    from lace.cli import main

    os.chdir(folder)
    words = [SUPPLY[0].hash if word == "$FIRST" else word for word in words]
    quiet = os.open(folder.parent / "said", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.argv = ["lace", *words]
    error, lasting = KINDS[kind]
    library.faults_arm(str(folder).encode(), number, error, lasting, int(reads))
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)  # type: ignore[arg-type]
    return 0


def problems_of(command: str, folder: Path, code: int, said: str) -> list[str]:
    """What is wrong after a command that may have failed."""
    from kills.judge import _whole
    from kills.plays import SUPPLY
    from lace.errors import LaceError
    from lace.store import open_store

    problems = ["a traceback"] if "Traceback" in said or code == 70 else []
    before = {"a.lace": {*range(40)} - {5}, "b.lace": {*range(30, 60)} - {35}}
    if command == "backup replace":
        before["b.lace"] = before["a.lace"] & before["b.lace"]  # one or the other, see below
    for path in sorted(folder.glob("*.lace")):
        if path.name not in COMMANDS[command]:
            continue
        names = _names_without_log(path)
        if names:
            problems.append(f"{path.name}: a name in the file and no log")
        try:
            with open_store(path, create=path.name == "new.lace") as store:
                problems += [f"{path.name}: {problem}" for problem in _whole(store)]
                held = {record for _, record in store.records_since()}
        except LaceError as error:
            problems.append(str(error))
            continue
        due = {SUPPLY[number].hash for number in before.get(path.name, ())}
        due -= {SUPPLY[0].hash} if command in REMOVING else set()
        if due - held:
            problems.append(f"{path.name}: lost {len(due - held)}")
        if code == 0 and path.name == "a.lace":
            if command in REMOVING and SUPPLY[0].hash in held:
                problems.append("removed, and still there")
            if command == "import" and not {record.hash for record in SUPPLY[100:160]} <= held:
                problems.append("imported, and not there")
            if command == "put" and len(held) != 40:
                problems.append("put, and not there")
            if command == "interlace" and len(held) < 58:
                problems.append("exchanged, and not there")
    for command_of, name in (("backup", "copy.lace"), ("restore", "restored.lace"), ("init", "new.lace")):
        if command == command_of and code == 0 and not (folder / name).exists():
            problems.append(f"done, and there is no {name}")
    if not (folder / "a.lace").exists():
        problems.append("there is no a.lace")
    return problems


def _names_without_log(path: Path) -> int:
    """How many names stand in a file that has no log."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return 0
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM openers").fetchone()[0])
    except sqlite3.Error:
        return 0  # a file that was only begun
    finally:
        connection.close()


def build(folder: Path) -> Path | None:
    """The library; None if it cannot be built here."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "shim.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(ROOT / "tests" / "faults" / "shim.c"), "-ldl"]
    return library if subprocess.run(words, capture_output=True, check=False).returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--most", type=int, default=0, help="operations of each command and kind that fail; 0: all")
    parser.add_argument("--command", choices=COMMANDS, action="append")
    parser.add_argument("--reads", action="store_true", help="reading fails too")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", action="store_true", dest="as_json")
    chosen = parser.parse_args()
    if "LACE_FAULTS" not in os.environ:
        folder = Path(
            tempfile.mkdtemp(prefix="lace-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        )
        library = build(folder)
        if library is None:
            print("FAULTS WERE NOT INJECTED: no cc, or not Linux", file=sys.stderr)
            shutil.rmtree(folder)
            return CANNOT
        environment = {**os.environ, "LACE_FAULTS": str(folder), "LD_PRELOAD": str(library), "LACE_HOME": str(folder)}
        done = subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=environment, check=False)
        if done.returncode == 0:
            shutil.rmtree(folder)
        return done.returncode
    return try_all(chosen, Path(os.environ["LACE_FAULTS"]))


def try_all(chosen: argparse.Namespace, folder: Path) -> int:
    """Every command, every kind of fault, at the operations that were chosen."""
    from lace.cli.catalogue import CATALOGUE

    library = ctypes.CDLL(str(folder / "shim.so"))
    library.faults_seen.restype = ctypes.c_long
    library.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    for verb in CATALOGUE:  # here once, and not in every worker
        if verb.name in {words[0] for words in COMMANDS.values()}:
            import_module(verb.module)
    template, place = folder / "template", folder / "at"
    template.mkdir()
    prepare(template)
    draw = random.Random(chosen.seed)
    rows: list[dict[str, object]] = []
    for command in chosen.command or COMMANDS:
        for kind in KINDS:
            count = 0
            numbers = [0]  # without a fault: how many operations there are
            wrong: list[str] = []
            while numbers:
                number = numbers.pop(0)
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(template, place)
                reading, writing = os.pipe()
                worker = os.fork()
                if worker == 0:
                    os.close(reading)
                    code = run(COMMANDS[command], place, library, number, kind, chosen.reads)
                    os.write(writing, b"%d" % library.faults_seen())
                    sys.exit(code)  # the end of the interpreter closes what is open, with the fault
                os.close(writing)
                _, status = os.waitpid(worker, 0)
                with os.fdopen(reading, "rb") as pipe:
                    seen = int(pipe.read() or 0)
                if number == 0:
                    numbers = list(range(1, seen + 4))  # and some at the very end, when the interpreter goes
                    if chosen.most and len(numbers) > chosen.most:
                        numbers = sorted(draw.sample(numbers, chosen.most))
                count += number > 0
                said = (folder / "said").read_text(encoding="utf-8", errors="replace")
                found = problems_of(command, place, os.waitstatus_to_exitcode(status), said)
                if number == 0 and status:
                    found.append(f"it fails without a fault: {said}")
                wrong += [f"operation {number}: {one}; it said {said.strip()[-300:]!r}" for one in found]
            rows.append({"command": command, "kind": kind, "faults": count, "problems": wrong})
            if not chosen.as_json:
                print(f"{command:15} {kind:20} {count:5} faults, {len(wrong)} problems", flush=True)
                for one in wrong[:5]:
                    print(f"  {one}", flush=True)
    if chosen.as_json:
        print(json.dumps({"seed": chosen.seed, "rows": rows}))
    return 1 if any(row["problems"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
