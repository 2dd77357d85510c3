"""Make the playground: a static folder in which two laces exchange in a browser tab (docs/playground.md).

Everything from elsewhere comes from npm, once, by the hashes in playground/package-lock.json; the folder itself asks
nobody for anything. Run with --serve to look at it on this machine.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from npm_packages import NotFetched, packages

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "playground"
STATIC = ROOT / "src/lace/inspector/static"
MAX_FOLDER = 8_000_000  # bytes, all of it
PACKED = ("pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "lace.zip", "recorded.json")  # unpacked in the tab
# Of Python's own library: what no program in a tab can use, and encodings of other centuries.
_NOT_IN_A_TAB = """_pyrepl antigravity cProfile curses dbm doctest ensurepip ftplib idlelib imaplib lib2to3 mailbox
    multiprocessing nntplib optparse pdb pickletools poplib profile pstats pydoc pydoc_data smtplib smtpd socketserver
    sqlite3 tabnanny telnetlib this tkinter trace turtle turtledemo unittest venv webbrowser wsgiref xml xmlrpc
    zipapp _pyio"""
NOT_IN_A_TAB = frozenset(_NOT_IN_A_TAB.split())
_ENCODINGS = "__init__ aliases ascii cp437 hex_codec idna latin_1 punycode utf_16 utf_32 utf_8"
ENCODINGS = frozenset(_ENCODINGS.split())
FROM_NPM = {
    "pyodide": "pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json",
    "@noble/hashes": "blake3.js blake2.js _blake.js _md.js _u64.js utils.js LICENSE",
    "@noble/secp256k1": "index.js LICENSE",
}
FROM_INSPECTOR = ("lace.css", "inspector.css", "inspector.js", "icon.svg")
TROUBLES = ("cut", "delay", "corrupt")
LEFT_OUT = ("spark", "cli", "inspector")  # packages of ours that need what a tab has not
_SOME_DAY = (2026, 1, 1, 0, 0, 0)  # of every member: the same sources give the same archive


def archive() -> bytes:
    """Lace and the playground's own Python as one zip."""
    return _zip((name, path.read_bytes()) for name, path in sorted(_members()))


def _zip(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip whose members are not compressed one by one: the whole of it is, which is smaller."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as zipped:
        for name, content in members:
            info = zipfile.ZipInfo(name, _SOME_DAY)
            info.external_attr = 0o644 << 16
            zipped.writestr(info, content)
    return data.getvalue()


def standard_library(whole: bytes) -> bytes:
    """Python's library without what a tab never imports."""
    with zipfile.ZipFile(io.BytesIO(whole)) as zipped:
        return _zip((name, zipped.read(name)) for name in sorted(zipped.namelist()) if _is_needed(name))


def _is_needed(name: str) -> bool:
    first, _, rest = name.partition("/")
    if first == "encodings":
        return rest.partition(".")[0] in ENCODINGS
    return first.removesuffix(".py") not in NOT_IN_A_TAB


def _members() -> Iterator[tuple[str, Path]]:
    for base in (ROOT / "src", SOURCE / "python"):
        for path in base.rglob("*"):
            parts = path.relative_to(base).parts
            ours = base.name == "python" or (parts[0] == "lace" and (len(parts) < 2 or parts[1] not in LEFT_OUT))
            if ours and path.is_file() and "__pycache__" not in parts:
                yield "/".join(parts), path


def recorded() -> tuple[str, str]:
    """What the page shows before Python is there: the same answers, given here.

    The first text is what the page is drawn from; the second has, for every scene to begin with, its first exchanges,
    the first one in each of the troubles, why records are missing before and after it, and its run as a test:
    [kind, question, answer] each.
    """
    sys.path.insert(0, str(SOURCE / "python"))
    from lace_playground.door import Door

    door = Door()
    told: list[list[Any]] = []

    def answer(kind: str, question: dict[str, Any]) -> Any:
        told.append([kind, question, json.loads(door.answer(json.dumps({"ask": kind, **question})))])
        return told[-1][2]

    begun = json.loads(door.answer('{"ask": "begin"}'))
    for preset in begun["presets"]:
        scene = preset["scene"]
        checked = answer("check", {"scene": scene})
        for one in checked, *_exchanges(answer, scene):
            _missing(answer, one)
        for trouble in TROUBLES:
            answer("play", {"scene": {**scene, "weather": {**scene["weather"], trouble: True}}})
        answer("simulate", {"scene": scene})
    first = json.dumps({"begin": begun, "check": told[0][2]}, separators=(",", ":"))
    return first, json.dumps(told, separators=(",", ":"))


def _exchanges(answer: Callable[[str, dict[str, Any]], Any], scene: Any) -> Iterator[Any]:
    """The first exchange; among more than two laces those after it, until nothing moves."""
    played = answer("play", {"scene": scene})
    yield played
    while len(scene["laces"]) > 2 and played["stage"]["runs"][-1]["received"]:
        played = answer("play", {"scene": played["scene"]})


def _missing(answer: Callable[[str, dict[str, Any]], Any], told: Any) -> None:
    """Why a neighbour does not have a record, between two laces."""
    laces = told["stage"]["laces"]
    if len(laces) > 2:
        return
    for sender, receiver in (laces, laces[::-1]):
        there = {record["hash"] for record in receiver["records"]}
        for record in sender["records"]:
            if record["hash"] not in there:
                ends = {"from": sender["name"], "to": receiver["name"]}
                answer("why", {"scene": told["scene"], "record": record["hash"], **ends})


def _recorded_once(kept: Path) -> tuple[str, str]:
    """The recordings; they follow from the archive and this file alone, so they are kept beside npm's packages."""
    made_from = hashlib.sha256(archive() + Path(__file__).read_bytes()).hexdigest()
    path = kept / "recorded.json"
    if path.exists():
        version, first, rest = json.loads(path.read_text())
        if version == made_from:
            return first, rest
    first, rest = recorded()
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps([made_from, first, rest]))
    beside.replace(path)
    return first, rest


def build(out: Path, kept: Path) -> int:
    """Write the folder; how many bytes it has."""
    modules = packages(SOURCE, kept)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    others = ["What this folder holds of others, as npm gave it:\n"]
    for package, names in FROM_NPM.items():
        folder = out / package.removeprefix("@")
        folder.mkdir(parents=True)
        for name in names.split():
            shutil.copy(modules / package / name, folder / name)
        about = json.loads((modules / package / "package.json").read_text())
        others.append(f"{package} {about['version']}, licence {about['license']}\n")
    for path in (*SOURCE.joinpath("web").iterdir(), *(STATIC / name for name in FROM_INSPECTOR)):
        shutil.copy(path, out / path.name)
    lock = json.loads((out / "pyodide/pyodide-lock.json").read_text())
    (out / "pyodide/pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}))  # none of them is loaded
    library = out / "pyodide/python_stdlib.zip"
    library.write_bytes(standard_library(library.read_bytes()))
    (out / "lace.zip").write_bytes(archive())
    first, rest = _recorded_once(kept)
    (out / "first.json").write_text(first)
    (out / "recorded.json").write_text(rest)
    (out / "third-party.txt").write_text("".join(others))
    _pack(out)
    _keep_offline(out)
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def _pack(out: Path) -> None:
    """Put the large files there compressed, and write down how large they are then."""
    sizes = {}
    for name in PACKED:
        path = out / name
        data = gzip.compress(path.read_bytes(), 9, mtime=0)
        path.with_name(f"{path.name}.packed").write_bytes(data)
        path.unlink()
        sizes[name] = len(data)
    (out / "packed.mjs").write_text(f"export const PACKED = {json.dumps(sizes)};\n")


def _keep_offline(out: Path) -> None:
    """Tell the service worker what there is to keep, and a version that changes with any byte of it."""
    worker = out / "sw.js"
    paths = sorted(path for path in out.rglob("*") if path.is_file() and path != worker)
    version = hashlib.sha256()
    for path in paths:
        version.update(path.relative_to(out).as_posix().encode() + b"\0" + path.read_bytes())
    names = ["./", *(path.relative_to(out).as_posix() for path in paths)]
    text = worker.read_text().replace("__VERSION__", version.hexdigest()[:16])
    worker.write_text(text.replace('"__FILES__"', ", ".join(map(json.dumps, names))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "playground-out")
    parser.add_argument("--npm", type=Path, default=ROOT / "build/playground", help="where npm's packages are kept")
    parser.add_argument("--serve", action="store_true", help="serve the folder on this machine and say where")
    chosen = parser.parse_args()
    try:
        size = build(chosen.out, chosen.npm)
    except NotFetched as why:
        print(f"the playground was not made: {why}", file=sys.stderr)
        return 1
    print(f"{chosen.out}: {size / 1e6:.1f} MB")
    if size > MAX_FOLDER:
        print(f"that is more than {MAX_FOLDER / 1e6:.0f} MB", file=sys.stderr)
        return 1
    if chosen.serve:
        from playground_server import serve

        serve(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
