"""An archive among peers, over real sockets: it comes to what a lace in its place would have come to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from differences.test_shared import questions
from interlace.pair import ALL, blob, group_module, hash_of, plex
from interop.harness import Serving, filled, hashes, honest_stream, make_node, send_raw, serving, terms_of
from lace.cli.app import app
from lace.iltp.address import Address
from lace.interlace.host import Call
from lace.interlace.setup.terms import Terms
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.link.session import Outcome
from lace.spark.archive.archive import Archive
from lace.store.base import RecordStore
from spark.archivehost import FilledArchive

pytestmark = pytest.mark.spark

PATIENCE_S = 120.0
RECORDS = [plex(f"n{number}", group="uv"[number % 2]) for number in range(90)]
SHARED, OURS, THEIRS = RECORDS[:60], RECORDS[60:75], RECORDS[75:]
JOINED = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'Group',_,G), Field(Q,'Group',_,G), Field(Q,'Name',_,'n1').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S).\n"
)


def archive_of(spark: SparkSession, folder: Path, records: Sequence[bytes]) -> FilledArchive:
    made = FilledArchive(spark, folder)
    made.put([validate(record) for record in records])
    return made


def patient(module: Module = ALL, **options: Any) -> Terms:
    return terms_of(module, timeout_s=PATIENCE_S, **options)


def served(archive: FilledArchive, folder: Path, module: Module = ALL, **options: Any) -> Any:
    return serving(archive.peer, folder, terms=patient(module), make_host=archive.peer.host, **options)  # type: ignore[arg-type]


async def exchange(address: Address, store: RecordStore, module: Module = ALL, **options: Any) -> Outcome:
    node = make_node(store, **options)
    try:
        return await asyncio.wait_for(node.exchange(address, patient(module, is_open=False)), PATIENCE_S)
    finally:
        await node.shutdown()


def names(records: Sequence[bytes]) -> set[str]:
    return {hash_of(record) for record in records}


@pytest.mark.clause("070-END-01", "070-EQUAL-01", "070-BASE-01")
def test_an_archive_and_a_lace_come_to_the_same_and_an_open_link_hears_of_each_new_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = archive_of(spark, tmp_path, [*SHARED, *OURS])
    lace = filled([*SHARED, *THEIRS])

    async def run() -> None:
        async with served(archive, tmp_path) as there:
            first = await exchange(there.address, lace)
            assert first.is_complete, first
            assert hashes(lace) == names(RECORDS)
            assert set(archive.hashes()) == names(RECORDS)
            assert set(first.result.received_hashes) == names(OURS)
            assert set(first.result.sent_hashes) == names(THEIRS)

            await there.next_outcome()  # our side looks whether what it was sent is in its set, and then rests
            await asyncio.to_thread(archive.peer.settle)  # the root of what both hold now
            archive.peer.jobs.reads.clear()
            second = await exchange(there.address, lace)
            assert second.is_complete, second
            assert not second.result.received_hashes
            assert not second.result.sent_hashes
            assert not archive.peer.jobs.reads  # equal sets are seen without a pass over anything

            await follow_a_batch(there, archive, lace)

    asyncio.run(run())
    archive.close()


def test_the_root_of_a_set_is_worked_out_though_the_link_that_left_it_has_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A bounded exchange is over once both sides are at rest; whoever comes next hears the root without a pass."""
    archive = archive_of(spark, tmp_path, SHARED)
    prepared, evaluated = questions(ALL)
    answers = []
    for is_over in (True, False):
        host, call = archive.peer.host(patient()), Call()
        host.prepare(prepared, Call())
        host.evaluate(evaluated, Call())
        if is_over:
            call.cancel()
        archive.peer.jobs.reads.clear()
        host.rest(call)
        archive.peer.settle()
        answers.append([read.what for read in archive.peer.jobs.reads])
    assert answers == [["work out the root"], []]
    archive.close()


async def follow_a_batch(there: Serving, archive: FilledArchive, lace: RecordStore) -> None:
    """An open link: a new batch of the archive is with the lace, a new record of the lace with the archive."""
    node = make_node(lace)
    node.keep_in_background(there.address, patient())
    later, back = plex("later"), plex("back")
    try:
        await until(lambda: bool(there.node.metrics.get("connections_active")))
        await asyncio.to_thread(archive.put, [validate(later)])
        await until(lambda: hash_of(later) in hashes(lace))
        lace.put([validate(back)])
        await until(lambda: archive.peer.landing.landed > 1)
        await until(lambda: hash_of(back) in set(archive.hashes()))
    finally:
        await node.shutdown()


async def until(is_so: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.clause("050-PART-14", "070-CAP-03")
def test_a_peer_that_knows_only_the_standard_gets_the_same_by_rules_that_join_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = archive_of(spark, tmp_path, [*SHARED, *OURS])
    near, far = filled([*SHARED, *THEIRS]), filled([*SHARED, *OURS])
    expected = filled([*SHARED, *THEIRS])

    async def run() -> None:
        async with served(archive, tmp_path, JOINED) as there:
            outcome = await exchange(there.address, near, group_module("v"), standard=True)
            assert outcome.is_complete, outcome
        async with serving(far, tmp_path, terms=patient(JOINED)) as there:
            outcome = await exchange(there.address, expected, group_module("v"), standard=True)
            assert outcome.is_complete, outcome

    asyncio.run(run())
    archive.close()
    assert hashes(near) == hashes(expected)
    assert set(archive.hashes()) == hashes(far)


@pytest.mark.slow
@pytest.mark.clause("050-VALID-05", "050-ERR-12")
def test_a_cut_link_and_a_false_record_lose_nothing_that_was_stored_and_two_writers_both_get_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = archive_of(spark, tmp_path, SHARED)
    honest = honest_stream([*SHARED, *THEIRS], SHARED)

    async def run() -> None:
        async with served(archive, tmp_path) as there:
            await send_raw(there.address, honest[: len(honest) - len(THEIRS[-1]) // 2])
            cut = await asyncio.wait_for(there.outcomes.get(), PATIENCE_S)
            assert cut.abort
            stored = set(cut.result.received_hashes)
            assert stored <= names(THEIRS)
            false = honest.replace(b"n80", b"n8O")
            await send_raw(there.address, false)
            spoilt = await asyncio.wait_for(there.outcomes.get(), PATIENCE_S)
            assert hash_of(RECORDS[80]) not in spoilt.result.received_hashes

            other = Archive(archive.archive.uri, lambda: spark)
            (tmp_path / "more.bundle").write_bytes(b"".join(OURS))
            lace = filled([*SHARED, *THEIRS])
            adding = asyncio.to_thread(other.add, [tmp_path / "more.bundle"])
            both = await asyncio.gather(exchange(there.address, lace), adding)
            assert both[0].is_complete, both[0]

    asyncio.run(run())
    archive.close()
    assert set(archive.hashes()) == names(RECORDS)


def test_what_had_landed_before_a_crash_is_taken_in_by_the_next_that_serves(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = archive_of(spark, tmp_path, SHARED[:5])
    archive.peer.landing.put([blob(b"landed"), blob(b"too")])
    again = FilledArchive(spark, tmp_path, is_new=False)
    assert names([blob(b"landed"), blob(b"too")]) < set(again.hashes())
    archive.peer.landing.take_in()
    assert not archive.archive.files.listing("landing")
    assert len(archive.hashes()) == 7


@pytest.mark.slow
def test_the_command_dials_for_an_archive_as_for_a_lace(spark: SparkSession, tmp_path: Path) -> None:
    archive = archive_of(spark, tmp_path, [*SHARED, *OURS])
    lace = filled([*SHARED, *THEIRS])

    async def run() -> Result:
        async with serving(lace, tmp_path, terms=patient()) as there:
            arguments = ["interlace", archive.archive.uri, str(there.address), "--expose", "all", "--json"]
            return await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--patience", str(PATIENCE_S)])

    said = asyncio.run(run())
    assert said.exit_code == 0, said.output
    assert hashes(lace) == names(RECORDS)
    assert set(archive.hashes()) == names(RECORDS)
    assert "files, " in said.stderr, "what was read is told"
