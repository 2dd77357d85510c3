"""Runs one program on one engine in a process of its own and prints what it took, as JSON.

Rule: making the facts, and for peers writing them as text, is not measured; reading them is `load`, reading the rules
and deriving is `seconds`. A line for each of `ready` and `load` comes as soon as it is known, so that a run that is
ended early still tells them; the last line has all figures.

    cd bench && python -m rulebench.engines ENGINE PROGRAM SIZE      ENGINE: lace, columns, clingo, nemo
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from lace.datalog.engine import Base, evaluate, materialize
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.source import MemorySource
from rulebench.programs import BY_NAME, Question, Row, clingo_text, nemo_import, nemo_variables, write_csv

Figures = dict[str, float]
SIGNER = "V.member.H3"


class Columns(MemorySource):
    """Facts as a store keeps them: columns of codes, fields split by name."""

    def __init__(self, facts: Iterable[tuple[str, Row]]) -> None:
        super().__init__()
        self._codes: dict[str, int] = {}
        self._parts: dict[Predicate, dict[int, list[array[int]]]] = {}
        for name, row in facts:
            codes = [self._codes.setdefault(value, len(self._codes)) for value in row]
            predicate = Predicate(name, len(row))
            key = codes[1] if name == "Field" else -1
            part = self._parts.setdefault(predicate, {}).setdefault(key, [array("I") for _ in row])
            for column, code in zip(part, codes, strict=True):
                column.append(code)
        self._texts = list(self._codes)

    @property
    def code_count(self) -> int:
        return len(self._texts)

    def predicates(self) -> Iterable[Predicate]:
        return self._parts.keys()

    def count(self, predicate: Predicate) -> int:
        return sum(len(part[0]) for part in self._parts.get(predicate, {}).values())

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [self._codes.get(text, -1) for text in texts]

    def texts(self, codes: memoryview) -> list[str]:
        return list(map(self._texts.__getitem__, codes))

    def columns(self, predicate: Predicate) -> Sequence[memoryview]:
        parts = list(self._parts[predicate].values())
        if len(parts) == 1:
            return [memoryview(column) for column in parts[0]]
        return [memoryview(sum((part[n] for part in parts), array("I"))) for n in range(predicate.arity)]

    def slices(self, predicate: Predicate, position: int) -> Mapping[int, Sequence[memoryview]] | None:
        if predicate.name != "Field" or position != 1:
            return None
        return {key: [memoryview(column) for column in part] for key, part in self._parts[predicate].items()}


def peak_bytes() -> float:
    """The most memory this process ever held."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def start_growing() -> float:
    """What this process holds now; from here on its most is counted again (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _of_status("VmRSS")


def grown_bytes(held: float) -> float:
    """What this process held more, at its most, since `start_growing`."""
    return _of_status("VmHWM") - held


def _of_status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return float(line.split()[1]) * 1024


def checked(question: Question) -> CheckedProgram:
    return check_program(parse_program(question.lace), RAW_PROFILE)


def run_lace(question: Question, size: int) -> Figures:
    """Facts handed over as Python objects."""
    named: dict[tuple[str, int], Predicate] = {}
    facts = [
        Fact(named.setdefault((name, len(row)), Predicate(name, len(row))), row) for name, row in question.facts(size)
    ]
    given = _ready()
    gc.freeze()
    started = perf_counter()
    program = checked(question)
    read = perf_counter() - started
    result = evaluate(program, facts)
    total = perf_counter() - started
    seconds = read + result.stats.seconds
    peak = peak_bytes()
    return _figures(result.count(Predicate(*question.answer)), total - seconds, seconds, peak, given)


def run_columns(question: Question, size: int) -> Figures:
    """Facts read from columns: cold, and once more over the same base."""
    source = Columns(question.facts(size))
    given = _ready()
    gc.freeze()
    started = perf_counter()
    program = checked(question)
    read = perf_counter() - started
    base = Base(source)
    result = evaluate(program, base)
    total = perf_counter() - started
    seconds = read + result.stats.seconds
    peak = peak_bytes()
    warm = perf_counter()
    evaluate(checked(question), base)
    figures = _figures(result.count(Predicate(*question.answer)), total - seconds, seconds, peak, given)
    figures |= {"warm": perf_counter() - warm, "held": float(result.stats.memory_bytes)}
    del result, base
    return figures | run_changes(question, source)


def run_changes(question: Question, source: Columns) -> Figures:
    """One record more, one record less."""
    started = perf_counter()
    kept = materialize(checked(question), source)
    full = perf_counter() - started
    kept.apply(added=_one_record("member", "keys", "member", SIGNER))
    gc.freeze()
    added, removed = [], []
    for n in range(220):
        record = _one_record(str(n), "u", "ding", f"links/x{n}", 1_800_000_000 + n)
        started = perf_counter()
        changes = kept.apply(added=record)
        added.append(perf_counter() - started)
        assert changes.added
    for n in range(220):
        record = _one_record(str(n), "u", "ding", f"links/x{n}", 1_800_000_000 + n)
        started = perf_counter()
        kept.apply(removed=record)
        removed.append(perf_counter() - started)
    medians = {"added": statistics.median(added[20:]), "removed": statistics.median(removed[20:])}
    return medians | {"full": full}


def _one_record(label: str, group: str, app: str, name: str, second: int = 0) -> list[Fact]:
    record = f"P.{label:_>43}.H3"
    values = {"Group": group, "App": app, "Name": name, "TAI": f"{second:010}:000000000", "Signed-By": SIGNER}
    fields = [Fact(Predicate("Field", 4), (record, name, "0", value)) for name, value in values.items()]
    link = Fact(Predicate("RecordLink", 5), (record, "+Link", "0", "reply", record))
    return [Fact(Predicate("Have", 1), (record,)), *fields, link]


def run_clingo(question: Question, size: int) -> Figures:
    import clingo

    text = clingo_text(question.facts(size))
    given = _ready()
    started = perf_counter()
    control = clingo.Control(["--warn=none"])
    control.add("facts", [], text)
    control.ground([("facts", [])])
    loaded = perf_counter()
    _tell(load=loaded - started)
    control.add("rules", [], question.clingo)
    control.ground([("rules", [])])
    done = perf_counter()
    name, arity = question.answer
    count = sum(1 for atom in control.symbolic_atoms.by_signature(name.lower(), arity) if atom.is_fact)
    return _figures(count, loaded - started, done - loaded, peak_bytes(), given)


def run_nemo(question: Question, size: int) -> Figures:
    """Facts read from CSV files; nemo reads them while it reasons, so reading alone is measured first."""
    name = question.answer[0].lower()
    with TemporaryDirectory() as folder:
        arities = write_csv(question.facts(size), Path(folder))
        used = {key: arity for key, arity in arities.items() if f"{key}(" in question.nemo}
        imports = "\n".join(nemo_import(Path(folder), key, arity) for key, arity in used.items())
        touch = "\n".join(f'got("{key}") :- {key}({nemo_variables(arity)}).' for key, arity in used.items())
        given = _ready()
        load, _ = _reason(f"{imports}\n{touch}\n@export got :- csv{{}}.")
        _tell(load=load)
        both, engine = _reason(f"{imports}\n{question.nemo}\n@export {name} :- csv{{}}.")
    peak = peak_bytes()
    return _figures(sum(1 for _ in engine.result(name)), load, max(both - load, 1e-6), peak, given)


def _reason(text: str) -> tuple[float, Any]:
    import nmo_python

    started = perf_counter()
    engine = nmo_python.NemoEngine(nmo_python.load_string(text))
    engine.reason()
    return perf_counter() - started, engine


def _tell(**figures: float) -> None:
    print(json.dumps(figures), flush=True)


def _ready() -> float:
    """Facts are made: time counts from here. The memory that they took."""
    held = peak_bytes()
    _tell(ready=held)
    return held


def _figures(count: int, load: float, seconds: float, peak: float, given: float) -> Figures:
    return {"count": count, "load": load, "seconds": seconds, "total": load + seconds, "peak": peak, "given": given}


ENGINES = {
    "lace": run_lace,
    "columns": run_columns,
    "clingo": run_clingo,
    "nemo": run_nemo,
}

if __name__ == "__main__":
    _tell(**ENGINES[sys.argv[1]](BY_NAME[sys.argv[2]], int(sys.argv[3])))
