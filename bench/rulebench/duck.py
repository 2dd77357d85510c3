"""The closure of all packages by DuckDB's recursive query on one thread, and by Lace; prints JSON.

Rule: both are given the same pairs of names and asked for the same table; both keep it in memory. DuckDB reads a CSV
file, Lace a list of facts; reading counts for both. Seconds are of the processor: other work of the machine would
count more for whoever runs longer.

    cd bench && python -m rulebench.duck lace|duckdb|cores PACKAGES
"""

from __future__ import annotations

import csv
import gc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from rulebench.engines import peak_bytes
from rulebench.packages import dependencies
from rulebench.programs import LACE_CLOSURE

RECURSIVE = (
    "create table path as with recursive path(a, b) as (select a, b from edge"
    " union select path.a, edge.b from path join edge on path.b = edge.a) select * from path"
)


def by_duckdb(packages: int) -> dict[str, float]:
    """A recursive common table expression."""
    import duckdb

    with TemporaryDirectory() as folder:
        file = Path(folder) / "edges.csv"
        with file.open("w", encoding="utf-8") as lines:
            csv.writer(lines).writerows(dependencies(packages, packages * 264 // 63))
        gc.collect()
        given = peak_bytes()
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        started = process_time()
        columns = "{'a': 'varchar', 'b': 'varchar'}"
        connection.execute(f"create table edge as select * from read_csv('{file}', header=false, columns={columns})")
        connection.execute(RECURSIVE)
        seconds = process_time() - started
        peak = peak_bytes()
        (count,) = connection.execute("select count(*) from path").fetchall()[0]
    return {"count": float(count), "seconds": seconds, "peak": peak - given}


def by_lace(packages: int) -> dict[str, float]:
    """The two rules of a closure."""
    from lace.datalog.engine import evaluate
    from lace.datalog.language.parser import parse_program
    from lace.datalog.language.syntax import Fact, Predicate
    from lace.datalog.language.validate import RAW_PROFILE, check_program

    edge = Predicate("Edge", 2)
    facts = [Fact(edge, pair) for pair in dependencies(packages, packages * 264 // 63)]
    gc.collect()
    gc.freeze()
    given = peak_bytes()
    started = process_time()
    result = evaluate(check_program(parse_program(LACE_CLOSURE), RAW_PROFILE), facts)
    seconds = process_time() - started
    return {"count": float(result.count(Predicate("Path", 2))), "seconds": seconds, "peak": peak_bytes() - given}


def on_cores(packages: int) -> dict[str, float]:
    """Seconds by the clock for deriving on one core and on two, in turns, facts loaded before."""
    from lace.cli.cores import run_both
    from lace.datalog.engine import Base, evaluate
    from lace.datalog.engine.sorting import use_both
    from lace.datalog.language.parser import parse_program
    from lace.datalog.language.syntax import Fact, Predicate
    from lace.datalog.language.validate import RAW_PROFILE, check_program

    edge = Predicate("Edge", 2)
    base = Base([Fact(edge, pair) for pair in dependencies(packages, packages * 264 // 63)])
    base.runs(edge)
    checked = check_program(parse_program(LACE_CLOSURE), RAW_PROFILE)
    best = {"one": float("inf"), "two": float("inf")}
    for _ in range(5):
        for name, both in (("one", None), ("two", run_both)):
            use_both(both)
            gc.collect()
            started = perf_counter()
            evaluate(checked, base)
            best[name] = min(best[name], perf_counter() - started)
    return best


WAYS = {"duckdb": by_duckdb, "lace": by_lace, "cores": on_cores}

if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[1]](int(sys.argv[2]))))
