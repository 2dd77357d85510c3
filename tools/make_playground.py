"""Make the playground: a static folder in which two laces exchange in a browser tab (docs/playground.md).

Everything from elsewhere comes from npm, once, by the hashes in playground/package-lock.json; the folder itself asks
nobody for anything. Run with --serve to look at it on this machine.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from npm_packages import NotFetched, packages

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "playground"
STATIC = ROOT / "src/lace/inspector/static"
MAX_FOLDER = 20_000_000  # bytes, all of it
FROM_NPM = {
    "pyodide": "pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json",
    "@noble/hashes": "blake3.js blake2.js _blake.js _md.js _u64.js utils.js LICENSE",
    "@noble/secp256k1": "index.js LICENSE",
}
FROM_INSPECTOR = ("inspector.css", "inspector.js", "icon.svg")
LEFT_OUT = ("spark", "cli", "inspector")  # packages of ours that need what a tab has not
_SOME_DAY = (2026, 1, 1, 0, 0, 0)  # of every member: the same sources give the same archive


def archive() -> bytes:
    """Lace and the playground's own Python as one zip."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for name, path in sorted(_members()):
            info = zipfile.ZipInfo(name, _SOME_DAY)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            zipped.writestr(info, path.read_bytes())
    return data.getvalue()


def _members() -> Iterator[tuple[str, Path]]:
    for base in (ROOT / "src", SOURCE / "python"):
        for path in base.rglob("*"):
            parts = path.relative_to(base).parts
            ours = base.name == "python" or (parts[0] == "lace" and (len(parts) < 2 or parts[1] not in LEFT_OUT))
            if ours and path.is_file() and "__pycache__" not in parts:
                yield "/".join(parts), path


def first_answers() -> str:
    """What the page shows before Python is there: the same answers, given here."""
    sys.path.insert(0, str(SOURCE / "python"))
    from lace_playground.door import Door

    door = Door()
    begun = json.loads(door.answer('{"ask": "begin"}'))
    checked = json.loads(door.answer(json.dumps({"ask": "check", "scene": begun["presets"][0]["scene"]})))
    return json.dumps({"begin": begun, "check": checked}, separators=(",", ":"))


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
    (out / "lace.zip").write_bytes(archive())
    (out / "first.json").write_text(first_answers())
    (out / "third-party.txt").write_text("".join(others))
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


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
