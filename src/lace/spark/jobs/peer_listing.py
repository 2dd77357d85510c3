"""A peer's listing: what it advertises, as its machine would send it (050), read into advertisement facts.

Rule: a listing is judged whole before any of it is believed. Lines are read by the parser of the wire; a listing with
one bad line is refused, with the line.

A listing is a text file of fact lines, `Advertised('P','S')` and `AdvertisedField('P','S','Name','Index','Value')` in
any order, or a Parquet table of advertisements (a column `text`), or an archive of the peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import Predicate
from lace.errors import InvalidInput
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD
from lace.interlace.claims.advertisement import is_index, is_record_id
from lace.limits import StreamLimits
from lace.notation.factline import parse_fact
from lace.spark.archive import tables
from lace.spark.archive.filesystem import open_files
from lace.spark.archive.log import FOLDER, Log
from lace.spark.jobs.facts import field_facts

_CLAIM = ("hash", "source", "name", "index", "value")
_PARSED = ", ".join(f"{name} string" for name in (*_CLAIM, "problem"))
_PARSED_ARROW = pa.schema([(name, pa.string()) for name in (*_CLAIM, "problem")])
_Row = tuple[str | None, ...]


def read_listing(spark: SparkSession, path: Path, source: str) -> dict[Predicate, DataFrame]:
    """The advertisement facts of a listing.

    A label in a listing holds for the one exchange it was made in, so a listing says one label throughout and gets the
    `source` of the plan at hand in its place.
    """
    if (path / FOLDER).is_dir():
        return archive_relations(_records_of_archive(spark, path), source)
    if path.is_dir():
        text = spark.read.parquet(str(path)).select(F.explode(F.split("text", "\n")).alias("value"))
    else:
        require_utf8(path)
        text = spark.read.text(str(path), lineSep="\n")
    claims = parsed_lines(text.where("value != ''"))
    require_sound(claims, path)
    return listing_relations(claims, source)


def _records_of_archive(spark: SparkSession, path: Path) -> DataFrame:
    files = open_files(str(path))
    return tables.as_wide(tables.read(spark, files, "records", Log(files).state().table("records")))


def require_utf8(path: Path) -> None:
    """Raise InvalidInput at the first line that is no text: Spark would put other characters in its place."""
    longest = StreamLimits().max_fact_line_bytes
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(longest + 2), b""), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                if len(line) <= longest + 1:  # a longer one is cut here, and refused for its length later
                    raise InvalidInput(
                        "a listing is UTF-8", rule="listing-utf8", place=f"{path}:{number}", found=repr(line[:80])
                    ) from error


def parsed_lines(lines: DataFrame) -> DataFrame:
    """(hash, source, name, index, value, problem) of each line in the column `value`; no name for `Advertised`."""
    longest = StreamLimits().max_fact_line_bytes

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [_parsed(line, longest) for line in batch["value"].to_pylist()]
            columns = zip(*rows, strict=True) if rows else ((),) * len(_PARSED_ARROW)
            yield pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=_PARSED_ARROW)

    return lines.select("value").mapInArrow(parse, _PARSED)


def _parsed(line: str, longest: int) -> _Row:
    try:
        predicate, values = parse_fact(line, longest)
    except InvalidInput as error:
        return (*(None,) * len(_CLAIM), f"{error}: {line[:80]}")
    problem = _problem(predicate, values)
    if problem is not None:
        return (*(None,) * len(_CLAIM), f"{problem}: {line[:80]}")
    return (*values, *(None,) * (len(_CLAIM) - len(values)), None)


def _problem(predicate: Predicate, values: tuple[str, ...]) -> str | None:
    if predicate not in (ADVERTISED, ADVERTISED_FIELD):
        return "a listing holds Advertised and AdvertisedField"
    if not is_record_id(values[0]):  # 050-ADVF-15
        return "not a record id"
    if predicate == ADVERTISED_FIELD and not is_index(values[3]):  # 050-ADVF-08
        return "not a field index"
    return None


def require_sound(claims: DataFrame, path: Path) -> None:
    """Raise InvalidInput unless every line was read, one source speaks, and it contradicts itself nowhere."""
    sources = F.collect_set("source").alias("sources")
    found = claims.agg(F.min("problem").alias("problem"), sources).first()
    assert found is not None
    if found["problem"] is not None:
        raise InvalidInput(found["problem"], rule="listing-line", place=str(path))
    if len(found["sources"]) > 1:  # 050-ADVF-06
        labels = ", ".join(sorted(found["sources"])[:3])
        raise InvalidInput(f"a listing has one source, not {labels}", rule="listing-source", place=str(path))
    fields = claims.where("name is not null")
    orphan = fields.join(claims.where("name is null"), on="hash", how="left_anti").first()
    if orphan is not None:  # 050-ADVF-13
        raise InvalidInput(f"a field of {orphan['hash']}, which is not listed", rule="listing-orphan", place=str(path))
    key = ("hash", "name", "index")
    twice = fields.groupBy(*key).agg(F.countDistinct("value").alias("values")).where("values > 1").first()
    if twice is not None:  # 050-ADVREC-08
        what = f"two values for {twice['name']} {twice['index']} of {twice['hash']}"
        raise InvalidInput(what, rule="listing-contradiction", place=str(path))


def listing_relations(claims: DataFrame, source: str) -> dict[Predicate, DataFrame]:
    """Claims as the facts that rules read."""
    label = F.lit(source).alias("source")
    fields = claims.where("name is not null").select("hash", label, "name", "index", "value")
    return {ADVERTISED: claims.where("name is null").select("hash", label), ADVERTISED_FIELD: fields}


def archive_relations(records: DataFrame, source: str) -> dict[Predicate, DataFrame]:
    """A peer's wide table of records as the facts that its machine would send if it exposed all of it."""
    label = F.lit(source).alias("source")
    fields = field_facts(records).select("hash", label, "name", "index", "value")
    return {ADVERTISED: records.select("hash", label), ADVERTISED_FIELD: fields}
