"""The `lace` data source reads and writes as Spark users expect."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles
from pyspark.sql.types import StringType, StructField, StructType

import lace
from lace.errors import InvalidInput
from lace.intake.bundles import import_bundles
from lace.records.model import Seal
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.spark.source.schemas import STORED
from lace.spark.source.source import LaceDataSource
from lace.spark.source.stream import LaceStreamReader
from lace.spark.source.writer import LaceWriter
from lace.store import open_store
from lace.store.bundle import BundleReader, Frame
from spark.archives import make_records, write_bundle

pytestmark = pytest.mark.spark


def test_a_bundle_reads_as_one_row_a_record_with_its_fields(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(30)
    write_bundle(tmp_path / "a.bundle", records)
    rows = spark.read.format("lace").load(str(tmp_path)).collect()
    assert {row["hash"] for row in rows} == {str(valid.hash) for valid in records}
    by_hash = {str(valid.hash): valid for valid in records}
    for row in rows:
        valid = by_hash[row["hash"]]
        assert row["_corrupt_record"] is None
        assert row["type"] == valid.type
        assert row["group"] == (valid.parts.group or None)
        assert row["data_length"] == valid.data_length
        assert [(h["name"], h["value"]) for h in row["headers"]] == list(valid.parts.headers)
        assert "data" not in row.asDict()


def test_data_and_stored_bytes_come_only_when_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(10)
    write_bundle(tmp_path / "a.bundle", records)
    asked = spark.read.format("lace").option("data", "true").option("stored", "true").load(str(tmp_path))
    found = {row["hash"]: (bytes(row["data"]), bytes(row["stored"])) for row in asked.collect()}
    assert found == {str(valid.hash): (bytes(valid.data), valid.stored) for valid in records}
    chosen = spark.read.format("lace").schema("hash string, data binary").load(str(tmp_path))
    assert chosen.columns == ["hash", "data"]


def test_a_large_bundle_is_split_across_tasks_with_and_without_an_index(spark: SparkSession, tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "a.bundle", make_records(600))
    for _ in range(2):
        frame = spark.read.format("lace").option("splitBytes", "20000").load(str(tmp_path))
        assert frame.rdd.getNumPartitions() >= 3
        assert frame.select("hash").distinct().count() == 600
        path.with_name(path.name + ".idx").unlink(missing_ok=True)


def damaged(tmp_path: Path) -> tuple[Path, int]:
    """One bit of data flipped, one record cut short at the end, one good header with a wrong signature."""
    records = make_records(20)
    stored = [bytearray(valid.stored) for valid in records]
    longest = max(range(20), key=lambda i: records[i].data_length)
    stored[longest][-1] ^= 1
    path = tmp_path / "bad.bundle"
    path.write_bytes(b"".join(stored) + records[0].stored[:-3])
    return path, 19


def test_permissive_says_why_a_record_is_none(spark: SparkSession, tmp_path: Path) -> None:
    path, good = damaged(tmp_path)
    frame = spark.read.format("lace").load(str(path)).cache()
    assert frame.where("_corrupt_record is null").count() == good
    reasons = {row["_corrupt_record"].split(":")[0] for row in frame.where("_corrupt_record is not null").collect()}
    assert len(reasons) == 2
    assert any("digest" in reason for reason in reasons)


def test_dropmalformed_drops_and_failfast_fails(spark: SparkSession, tmp_path: Path) -> None:
    path, good = damaged(tmp_path)
    dropped = spark.read.format("lace").option("mode", "DROPMALFORMED").load(str(path))
    assert dropped.count() == good
    assert "_corrupt_record" not in dropped.columns
    with pytest.raises(PySparkException, match="digest"):
        spark.read.format("lace").option("mode", "FAILFAST").load(str(path)).collect()


def test_a_bad_option_is_refused_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    write_bundle(tmp_path / "a.bundle", make_records(1))
    with pytest.raises(PySparkException, match="mode is one of"):
        spark.read.format("lace").option("mode", "SOMETIMES").load(str(tmp_path)).collect()


def _sealed_with_wrong_signature(tmp_path: Path) -> Path:
    sealed = next(valid for valid in make_records(30) if valid.type == "S")
    other = next(v for v in make_records(60, seed=2) if v.type == "S" and v.parts.signature != sealed.parts.signature)
    record = sealed.record
    assert isinstance(record, Seal)
    forged = Seal(signed_by=record.signed_by, signature=other.parts.signature, plex=record.plex)
    path = tmp_path / "forged.bundle"
    path.write_bytes(encode_record(forged))
    return path


def test_validate_full_checks_signatures_hash_does_not_none_judges_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = _sealed_with_wrong_signature(tmp_path)
    read = spark.read.format("lace")
    assert "signature" in read.option("validate", "full").load(str(path)).first()["_corrupt_record"]
    assert read.option("validate", "hash").load(str(path)).first()["_corrupt_record"] is None
    bare = read.option("validate", "none").load(str(path)).first()
    assert bare["hash"] is not None
    assert bare["group"] is None


def test_a_store_reads_like_a_bundle(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(40)
    bundle = write_bundle(tmp_path / "a.bundle", records)
    with open_store(tmp_path / "a.lace", create=True) as store:
        import_bundles(store, [bundle])
    for split in ("1000", "1000000"):
        frame = spark.read.format("lace").option("splitBytes", split).load(str(tmp_path / "a.lace"))
        assert {row["hash"] for row in frame.collect()} == {str(valid.hash) for valid in records}


def test_written_bundles_are_imported_by_any_lace(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(50)
    write_bundle(tmp_path / "a.bundle", records)
    frame = spark.read.format("lace").option("stored", "true").load(str(tmp_path / "a.bundle"))
    frame.repartition(3).write.format("lace").mode("append").save(str(tmp_path / "out"))
    frame.write.format("lace").mode("overwrite").save(str(tmp_path / "out"))
    files = sorted((tmp_path / "out").glob("*.bundle"))
    found = [item for file in files for item in BundleReader(file).records()]
    assert all(isinstance(item, Frame) for item in found)
    assert sorted(str(validate(item.data).hash) for item in found) == sorted(str(valid.hash) for valid in records)


def test_rows_that_are_no_records_are_not_written_and_leave_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(bytearray(b"not a record"),)], "stored binary")
    with pytest.raises(PySparkException):
        frame.write.format("lace").mode("append").save(str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("part-*"))


def test_a_stream_reads_each_new_bundle_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "in"
    incoming.mkdir()
    records = make_records(40)
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")

    def run() -> DataFrame:
        stream = spark.readStream.format("lace").load(str(incoming)).select("hash")
        query = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start(table).awaitTermination()
        return spark.read.parquet(table)

    write_bundle(incoming / "b.bundle", records[:20])
    assert run().count() == 20
    write_bundle(incoming / "a.bundle", records[20:])  # sorts before the one that was read
    assert run().count() == 40
    assert run().distinct().count() == 40


def test_a_stream_takes_so_many_files_at_once_oldest_first(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "in"
    incoming.mkdir()
    records = make_records(12)
    for number, age in enumerate((30, 10, 20)):
        path = write_bundle(incoming / f"{number}.bundle", records[4 * number : 4 * number + 4])
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    batches: list[set[str]] = []
    stream = spark.readStream.format("lace").option("maxFilesPerTrigger", "1").load(str(incoming)).select("hash")
    query = stream.writeStream.foreachBatch(lambda frame, _: batches.append({row["hash"] for row in frame.collect()}))
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert batches == [{v.hash for v in records[4 * n : 4 * n + 4]} for n in (0, 2, 1)]


@pytest.mark.parametrize(
    ("limit", "taken"), [(ReadMaxFiles(2), 2), (ReadMaxBytes(1), 1), (ReadMaxBytes(10**9), 3), (ReadAllAvailable(), 3)]
)
def test_a_limit_bounds_a_micro_batch_and_never_stops_it(tmp_path: Path, limit: ReadLimit, taken: int) -> None:
    for number, valid in enumerate(make_records(3)):
        write_bundle(tmp_path / f"{number}.bundle", [valid])
    source = LaceDataSource({"path": str(tmp_path)})
    assert len(source.streamReader(source.schema()).latestOffset({}, limit)) == taken


def stream_over(folder: Path, **options: str) -> LaceStreamReader:
    source = LaceDataSource({"path": str(folder), **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, LaceStreamReader)
    return reader


def test_an_offset_names_only_files_that_are_there(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    reader, offset = stream_over(inbox), {}
    for number, valid in enumerate(make_records(20)):
        bundle = write_bundle(inbox / f"{number}.bundle", [valid])
        before, offset = offset, reader.latestOffset(offset, ReadAllAvailable())
        assert [share.share[0].path for share in reader.partitions(before, offset)] == [str(bundle)]
        bundle.unlink()
    assert list(offset) == [str(inbox / "19.bundle")]
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset  # nothing came: no micro-batch


@pytest.mark.parametrize("cleaning", ["archive", "delete"])
def test_a_stream_cleans_away_what_was_committed_and_never_what_was_not_read(tmp_path: Path, cleaning: str) -> None:
    inbox, done = tmp_path / "in", tmp_path / "done"
    inbox.mkdir()
    reader = stream_over(inbox, cleanSource=cleaning, sourceArchiveDir=str(done))
    records = make_records(3)
    first = write_bundle(inbox / "a.bundle", records[:1])
    offset = reader.latestOffset({}, ReadAllAvailable())
    reader.commit(offset)
    assert list(inbox.iterdir()) == []
    write_bundle(inbox / "a.bundle", records[1:])  # another one under the same name
    reader.commit(offset)  # Spark may say it twice
    assert first.exists()
    after = reader.latestOffset(offset, ReadAllAvailable())
    assert [share.share[0].path for share in reader.partitions(offset, after)] == [str(first)]
    reader.commit(after)
    assert list(inbox.iterdir()) == []
    kept = {path.name for path in done.glob("*.bundle")} if done.exists() else set()
    assert kept == ({"a.bundle", "a~1.bundle"} if cleaning == "archive" else set())


def test_an_archive_for_read_files_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="sourceArchiveDir"):
        stream_over(tmp_path, cleanSource="archive")


def test_names_of_files_are_streamed_without_a_look_into_them(tmp_path: Path) -> None:
    for name in ("a.bundle", "b.bundle"):
        (tmp_path / name).write_bytes(b"whatever")
    source = LaceDataSource({"path": str(tmp_path), "rows": "files"})
    reader = source.streamReader(StructType([StructField("bundle", StringType())]))
    assert isinstance(reader, LaceStreamReader)
    end = reader.latestOffset({}, ReadAllAvailable())
    for path in tmp_path.iterdir():
        path.rename(path.with_suffix(".away"))
    (share,) = reader.partitions({}, end)
    (found,) = reader.read(share)
    assert found["bundle"].to_pylist() == [str(tmp_path / "a.bundle"), str(tmp_path / "b.bundle")]
    assert reader.partitions(end, end) == []
    with pytest.raises(InvalidInput, match="bundle string"):
        source.streamReader(source.schema())


def test_a_micro_batch_that_is_written_twice_leaves_the_bundles_of_one(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(12)
    incoming, out = tmp_path / "in", tmp_path / "out"
    incoming.mkdir()
    for number in range(2):
        write_bundle(incoming / f"{number}.bundle", records[6 * number : 6 * number + 6])

    def copy(checkpoint: str) -> list[str]:
        stream = spark.readStream.format("lace").option("stored", "true").option("maxFilesPerTrigger", "1")
        query = stream.load(str(incoming)).select("stored").writeStream.format("lace")
        query = query.option("checkpointLocation", str(tmp_path / checkpoint)).option("path", str(out))
        query.trigger(availableNow=True).start().awaitTermination()
        return sorted(path.name for path in out.iterdir())

    first = copy("one")
    assert {name[:15] for name in first} == {"batch-00000000-", "batch-00000001-"}
    assert len(copy("two")) == len(first)  # as after a crash between the bundles and the checkpoint
    with lace.open(":memory:") as there:
        assert there.import_(*sorted(out.glob("*.bundle"))).stored == 12


def test_tasks_leave_nothing_of_an_aborted_job_and_bundles_stand_with_their_index(tmp_path: Path) -> None:
    schema = StructType([STORED])
    rows = [pa.record_batch({"stored": [valid.stored]}) for valid in make_records(2)]
    writer = LaceWriter(str(tmp_path / "out"), schema, overwrite=True)
    writer.abort([writer.write(iter(rows[:1])), None])
    assert list((tmp_path / "out").iterdir()) == []
    writer.commit([writer.write(iter(rows[:1])), writer.write(iter(())), None])
    (first,) = (tmp_path / "out").glob("part-*.bundle")
    writer.commit([writer.write(iter(rows[1:]))])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(names) == 2
    assert names[1] == f"{names[0]}.idx"
    assert first.name not in names
