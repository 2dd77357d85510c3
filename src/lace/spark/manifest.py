"""The manifest beside a pipeline's outputs: what went in, what came out, and which steps are done.

Rule: a step is done when the manifest says so, and the manifest is replaced in one move after the step's tables are
whole. So a crash leaves either a finished step or one that is run again from its start.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path

from lace.errors import StoreError
from lace.notation import b64a
from lace.notation.digest import digest, hasher
from lace.notation.jsontext import read_json
from lace.values import dataclass

FORMAT = 1
NAME = "manifest.json"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One input, by content: the same bytes under another name are no new input."""

    path: str
    bytes: int
    blake3: str
    batch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A finished step: what it depended on, what it counted, how long it took."""

    fingerprint: str
    counts: dict[str, int]
    seconds: float


@dataclass(slots=True)
class Manifest:
    """All that is known about one output directory."""

    inputs: dict[str, InputFile] = field(default_factory=dict)  # by content
    steps: dict[str, StepRecord] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def batches(self) -> list[str]:
        """Batches of input, in the order in which they came."""
        return list(dict.fromkeys(item.batch for item in self.inputs.values()))

    def is_done(self, step: str, fingerprint: str) -> bool:
        """Whether a step ran for exactly these inputs."""
        found = self.steps.get(step)
        return found is not None and found.fingerprint == fingerprint

    def write(self, directory: Path) -> None:
        """Replace the manifest on disk."""
        body = json.dumps({"format": FORMAT, **asdict(self)}, indent=2)  # in the order in which batches came
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as file:
            file.write(body + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, directory / NAME)


def read_manifest(directory: Path) -> Manifest:
    """The manifest of an output directory; a new one where there is none."""
    path = directory / NAME
    if not path.exists():
        return Manifest(versions=_versions())
    try:
        body = read_json(path.read_text(encoding="utf-8"))
        if body.pop("format") != FORMAT:
            raise StoreError(f"{path}: written by another version of the pipeline; use a new output directory")
        inputs = {key: InputFile(**value) for key, value in body["inputs"].items()}
        steps = {key: StepRecord(**value) for key, value in body["steps"].items()}
        return Manifest(inputs, steps, body["plans"], _versions())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: not a pipeline manifest ({error})") from None


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("lace-protocol", "pyspark", "pyarrow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree"
    return found


def file_digest(path: Path) -> str:
    """BLAKE3 of a file, read in pieces."""
    running = hasher()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            running.update(piece)
    return b64a.encode(running.digest())


def fingerprint(parts: Mapping[str, object]) -> str:
    """A short name for everything that a step's result depends on."""
    return b64a.encode(digest(json.dumps(parts, sort_keys=True).encode()))[:22]
