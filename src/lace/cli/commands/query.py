"""`lace query [PATH] RULES`: derived facts as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.cores import read_ahead, use_two_cores
from lace.cli.options.arguments import StoreOnly, as_of_option, lace_path, opened, opened_for_rules
from lace.cli.options.rules import chosen_limits, limit_option, read_rules, read_text
from lace.cli.options.spark import spark_options, spark_settings
from lace.cli.output.interrupts import leave_when_interrupted
from lace.cli.output.output import json_option, print_json_lines, print_json_pages, print_warning, say
from lace.cli.output.tables import print_table
from lace.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from lace.limits import EngineLimits
    from lace.porcelain.query import Answer

_MOST_ABSENT = 5  # fields that no record has


@click.command("query")
@click.argument("arguments", nargs=-1, metavar="[PATH] RULES")
@click.option("--goal", metavar="ATOM", help='Which facts to show, such as "Selected(P)" or "Path(\'a\',X)".')
@click.option("--facts", "facts_file", metavar="FILE", help="Evaluate over the fact lines of a file instead of a lace.")
@click.option("--columns", metavar="NAME,…", help="Show these fields of the record in the first column.")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="Where to evaluate; with spark, PATH may also be a bundle or a directory of bundles.",
)
@spark_options("Spark master for --engine spark: local[*] (default), spark://… or sc://….")
@click.option(
    "--arrow", "arrow_file", metavar="FILE", help="Write an Arrow stream to a file, or to standard output (-)."
)
@click.option("--parquet", "parquet_file", metavar="FILE", help="Write a Parquet file.")
@as_of_option
@limit_option
@json_option
def command(
    arguments: tuple[str, ...],
    goal: str | None,
    facts_file: str | None,
    columns: str | None,
    engine: str,
    master: str | None,
    arrow_file: str | None,
    parquet_file: str | None,
    as_of: str | None,
    limit_words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the facts that rules derive.

    RULES is a rule file, or the rules themselves. Without --goal, shows the facts of the head that no other rule reads.
    """
    over_facts = facts_file is not None
    if as_of is not None and (over_facts or engine == "spark"):
        raise click.UsageError("--as-of needs a lace and the embedded engine")
    if len(arguments) != (1 if over_facts else 2):
        raise click.UsageError("give --facts FILE and RULES" if over_facts else "give PATH and RULES")
    form = Form(as_json, arrow_file, parquet_file)
    chosen = [column.strip() for column in columns.split(",") if column.strip()] if columns else []
    name, text = read_rules(arguments[-1], None if over_facts else arguments[0])
    limits = chosen_limits(text, limit_words, name)
    if (arrow_file or parquet_file) and (chosen or as_json or engine == "spark" or (arrow_file and parquet_file)):
        raise click.UsageError(
            "--arrow and --parquet cannot be combined with each other, --json, --columns or --engine spark"
        )
    if engine == "spark":
        if chosen:
            raise click.UsageError("--columns needs the embedded engine; read the field in the rules instead")
        _query_on_spark(arguments[0], facts_file, (name, text), goal, master, limits, as_json)
        return
    if master is not None or spark_settings():
        raise click.UsageError("--master and --conf need --engine spark")
    if facts_file is not None:
        from lace.datalog.language.parser import parse_facts
        from lace.porcelain.query import query

        use_two_cores()
        facts = list(parse_facts(read_text(facts_file), name=facts_file, limits=limits))
        _give(query(facts, text, goal, name=name, limits=limits), form, chosen)
        return
    if as_of is not None:
        from warnings import catch_warnings

        from lace.porcelain.misuse import RulesWarning

        with opened(lace_path(arguments[0])) as whole:
            with catch_warnings(action="ignore", category=RulesWarning):
                answer = whole.at(as_of).query(text, goal, limits=limits)
            _give(answer, form, chosen)
            for doubt in answer.doubts:
                print_warning(str(doubt))
        return
    with opened_for_rules(lace_path(arguments[0])) as lace, read_ahead(lace.store.snapshot):
        from lace.porcelain.query import answer_to

        use_two_cores()
        answer = answer_to(lace, text, goal, name=name, limits=limits)
        _give(answer, form, chosen)
        is_for_people = not as_json and not len(answer)
        if is_for_people and answer.names:
            say("no rows", err=True)
        for doubt in answer.doubts:
            print_warning(str(doubt))
        if is_for_people and not answer.doubts:
            _tell_what_matches_nothing(lace, name, text, limits)


def _tell_what_matches_nothing(lace: StoreOnly, name: str, text: str, limits: EngineLimits) -> None:
    """Tell about what no record here has: a mistyped question looks like any."""
    from lace.datalog.language.annotations import read_annotated_all
    from lace.porcelain.nearness import absent_fields

    source, _ = read_annotated_all(text, name=name, limits=limits)
    for absent in islice(absent_fields(lace, source.program, limits), _MOST_ABSENT):
        print_warning(absent)


def _query_on_spark(
    path: str,
    facts_file: str | None,
    rules: tuple[str, str],
    goal: str | None,
    master: str | None,
    limits: EngineLimits,
    as_json: bool,
) -> None:
    from lace.datalog.language.parser import parse_facts
    from lace.spark.engine.query import query_archive, query_facts
    from lace.spark.session.session import spark_session

    name, text = rules
    spark = spark_session(master, app_name="lace query", config=spark_settings())
    leave_when_interrupted()
    if facts_file is not None:
        facts = list(parse_facts(read_text(facts_file), name=facts_file, limits=limits))
        answer = query_facts(spark, facts, text, goal, name=name, limits=limits)
    else:
        answer = query_archive(spark, [Path(path)], text, goal, name=name, limits=limits)
    _print_rows(answer.names, ((row, []) for row in answer.rows()), [], as_json)


@dataclass(frozen=True, slots=True)
class Form:
    """The form in which an answer is written."""

    as_json: bool
    arrow_file: str | None
    parquet_file: str | None


def _give(answer: Answer, form: Form, columns: list[str]) -> None:
    if form.arrow_file is not None:
        _write_arrow(answer.to_arrow(), form.arrow_file)
    elif form.parquet_file is not None:
        from pyarrow import parquet

        parquet.write_table(answer.to_arrow(), form.parquet_file)
    elif form.as_json and not columns:
        print_json_pages(answer.json_lines)
    else:
        _print(answer, columns, form.as_json)


def _write_arrow(table: pa.Table, file: str) -> None:
    import pyarrow

    with click.open_file(file, "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _print(answer: Answer, columns: list[str], as_json: bool) -> None:
    _print_rows(answer.names, _cells(answer, columns), columns, as_json)


def _cells(answer: Answer, columns: list[str]) -> Iterator[Cells]:
    """The rows of an answer with the fields that were asked for, page by page."""
    for page in answer.pages():
        fields = answer.fields((row[0] for row in page if row), columns) if columns else {}
        for row in page:
            yield row, [fields.get((row[0], column), ()) for column in columns] if row else []


Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _shown(values: tuple[str, ...]) -> object:
    """A field: nothing, its value, or several."""
    return list(values) if len(values) > 1 else (values[0] if values else None)


def _print_rows(names: tuple[str, ...], cells: Iterable[Cells], columns: list[str], as_json: bool) -> None:
    if as_json:
        print_json_lines(
            {**dict(zip(names, row, strict=True)), **dict(zip(columns, map(_shown, values), strict=False))}
            for row, values in cells
        )
    elif not names:
        say("true" if any(True for _ in cells) else "false")
    else:
        table = ([*row, *map(", ".join, values)] for row, values in cells)
        print_table([*names, *columns], table)
