"""What Lace stands on: check the lock file, ask for known vulnerabilities, write a bill of materials.

python tools/supply.py audit [--offline]     every locked package has hashes, is installed as locked, has no known holes
python tools/supply.py sbom [--required] [--out FILE]   CycloneDX 1.5 JSON of the locked packages, with their hashes

The audit asks osv.dev. Where that cannot be reached it says so in one line that cannot be taken for a clean bill: what
was not asked is not known. Exit code 1: a hash is missing, a version differs, or a hole is known.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.txt"
OSV = "https://api.osv.dev/v1/querybatch"
PATIENCE_S = 15.0
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$")
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Locked:
    """One package of the lock file."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def read_lock(path: Path = LOCK) -> list[Locked]:
    """The packages of a lock file, in order."""
    found: list[Locked] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _PINNED.match(line):
            found.append(Locked(_plain(match[1]), match[2], (match[3] or "").strip(), ()))
        elif (text := line.strip()).startswith("--hash=sha256:") and found:
            last = found.pop()
            digest = text.removeprefix("--hash=sha256:").split()[0]
            found.append(Locked(last.name, last.version, last.marker, (*last.hashes, digest)))
        elif text and not text.startswith("#"):
            raise SystemExit(f"{path.name}: not a pinned package or a hash: {text[:80]!r}")
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed() -> set[str]:
    """The packages that Lace itself needs, extras of its own left out, as far as they are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [_named(text) for text in project.get("dependencies", [])]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        waiting += [_named(text) for text in requires if "extra ==" not in text]
    return found


def _named(requirement: str) -> str:
    match = _NAME.match(requirement)
    return _plain(match[0]) if match else requirement


def wrong_with(locked: list[Locked]) -> list[str]:
    """What does not hold between the lock file and this installation."""
    problems = [f"{one.name} {one.version}: no hash in the lock file" for one in locked if not one.hashes]
    versions: dict[str, list[str]] = {}  # several, where markers tell Pythons and machines apart
    for one in locked:
        versions.setdefault(one.name, []).append(one.version)
    for name, allowed in versions.items():
        try:
            here = version(name)
        except PackageNotFoundError:
            continue  # for another machine, by its marker
        if here not in allowed:
            problems.append(f"{name}: {here} is installed, {' or '.join(allowed)} is locked")
    return problems


def ask_osv(locked: list[Locked]) -> list[str]:
    """Known vulnerabilities; OSError if nobody answers."""
    queries = [{"package": {"name": one.name, "ecosystem": "PyPI"}, "version": one.version} for one in locked]
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(OSV, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        results = json.load(answer)["results"]
    return [
        f"{one.name} {one.version}: {', '.join(hole['id'] for hole in found['vulns'])}"
        for one, found in zip(locked, results, strict=True)
        if found.get("vulns")
    ]


def audit(*, offline: bool) -> int:
    locked = read_lock()
    problems = wrong_with(locked)
    print(f"{len(locked)} packages locked, {sum(len(one.hashes) for one in locked):,} hashes, {len(problems)} problems")
    try:
        if offline:
            raise OSError("--offline was given")
        holes = ask_osv(locked)
        print(f"osv.dev knows {len(holes)} vulnerable packages among them")
        problems += holes
    except (OSError, ValueError, KeyError) as error:
        print(f"KNOWN VULNERABILITIES WERE NOT CHECKED: osv.dev was not asked ({error})")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def bill(locked: list[Locked], own: set[str]) -> dict[str, object]:
    """CycloneDX of the lock file; what only developing needs is marked as left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seed = json.dumps([[one.name, one.version, *one.hashes] for one in locked])
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{one.name}@{one.version}",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:pypi/{one.name}@{one.version}",
            "scope": "required" if one.name in own else "excluded",
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in one.hashes],
        }
        for one in locked
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",  # the same lock file, the same bill
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": f"pkg:pypi/{project['name']}@{project['version']}",
                "name": project["name"],
                "version": project["version"],
            }
        },
        "components": components,
        "dependencies": [
            {
                "ref": f"pkg:pypi/{project['name']}@{project['version']}",
                "dependsOn": [f"pkg:pypi/{one.name}@{one.version}" for one in locked if one.name in own],
            }
        ],
    }


def sbom(out: Path, *, required: bool = False) -> int:
    """Write the bill of everything that is locked, or of what Lace itself needs, which is in its wheel."""
    out.parent.mkdir(parents=True, exist_ok=True)
    own = needed()
    found = bill([one for one in read_lock() if one.name in own or not required], own)
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    components = found["components"]
    print(f"{out}: {len(components) if isinstance(components, list) else 0} components")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["audit", "sbom"])
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--required", action="store_true", help="only what Lace itself needs")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "lace.cdx.json")
    chosen = parser.parse_args()
    return audit(offline=chosen.offline) if chosen.what == "audit" else sbom(chosen.out, required=chosen.required)


if __name__ == "__main__":
    sys.exit(main())
