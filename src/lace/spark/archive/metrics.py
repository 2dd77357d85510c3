"""What an archive holds and how far its steps are, as Prometheus text.

Rule: read from one version's state alone; nothing is opened for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from lace.spark.archive.versions import State, step_name

_HELP = {
    "version": "The newest version.",
    "committed_seconds": "When it was committed, in seconds since 1970.",
    "batches": "Additions that brought anything.",
    "rows": "Rows, by table; those of quarantine are what was refused.",
    "files": "Files, by table.",
    "bytes": "Bytes of these files.",
    "step_behind_batches": "Batches that a step has not seen.",
    "step_behind_removals": "Removals that a step has not seen.",
    "step_seconds": "How long a step took the last time.",
}


def prometheus_text(archive: str, state: State) -> str:
    """One gauge a line, each with the archive as a label."""
    lines: list[str] = []
    last = ""
    for name, labels, value in sorted(_gauges(state), key=lambda gauge: list(_HELP).index(gauge[0])):
        if name != last:
            lines += [f"# HELP lace_archive_{name} {_HELP[name]}", f"# TYPE lace_archive_{name} gauge"]
            last = name
        said = ",".join(f'{label}="{_escaped(text)}"' for label, text in {"archive": archive, **labels}.items())
        lines.append(f"lace_archive_{name}{{{said}}} {value:.3f}".removesuffix(".000"))
    return "".join(f"{line}\n" for line in lines)


def _gauges(state: State) -> Iterator[tuple[str, dict[str, str], float]]:
    yield "version", {}, state.version
    yield "committed_seconds", {}, round(datetime.fromisoformat(state.time).timestamp())
    yield "batches", {}, len(state.batches)
    for table in sorted({"records", "quarantine", *(file.table for file in state.files)}):
        files = state.table(table)
        yield "rows", {"table": table}, sum(file.rows for file in files)
        yield "files", {"table": table}, len(files)
        yield "bytes", {"table": table}, sum(file.bytes for file in files)
    for key, result in state.results.items():
        step = {"step": step_name(key, result)}
        yield "step_behind_batches", step, state.count(state.since(result))
        yield "step_behind_removals", step, state.removals - result.removals
        yield "step_seconds", step, result.seconds


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
