"""The contract that every host keeps, kept by the host over an archive, on a real session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from interlace.fakehost import FakeHost
from interlace.pair import ALL, EXPOSE_ALL, hash_of
from lace.interlace import effects as asked
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.host import Call
from lace.interlace.setup.hello import FieldSchema
from lace.interlace.setup.terms import Terms
from lace.policy.operand import Module
from lace.store.memory import MemoryStore
from runtime.test_host_contract import (  # noqa: F401 - the tests of the contract, collected here once more
    RECORDS,
    AnyHost,
    MakeHost,
    evaluate,
    prepare,
    put,
    require_alike,
    test_a_call_that_was_given_up_ends_and_one_that_was_not_is_counted,
    test_a_listing_is_sorted_and_carries_the_fields_of_the_schema,
    test_a_set_keeps_its_number_until_it_changes,
    test_children_that_are_absent_are_forgotten,
    test_claims_are_kept_under_a_key_for_the_same_plan_and_label,
    test_differences_add_up_to_the_listing,
    test_equal_calls_over_equal_views_cost_the_same,
    test_equal_listings_have_equal_fingerprints_where_listings_depend_on_listings,
    test_every_hash_is_loaded_once_and_only_out_of_the_set,
    test_failures_become_the_same_answers_whatever_host_fails,
    test_partitions_are_taken_over_where_they_can_be_named_and_checked_where_not,
    test_requests_are_what_the_peer_claims_and_we_lack_within_the_bounds,
    test_summaries_are_those_of_the_listing,
    test_the_cursor_is_another_one_when_the_store_has_changed,
    test_what_is_not_the_record_it_came_as_is_a_reason_and_the_rest_is_stored,
    test_what_two_listings_lack_of_each_other_is_named_where_sets_are_compared,
)
from spark.archivehost import FilledArchive, TestedHost

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def fill(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[], FilledArchive]]:
    """Makes empty archives."""
    made: list[FilledArchive] = []

    def fresh() -> FilledArchive:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(FilledArchive(spark, folder))
        return made[-1]

    yield fresh
    for archive in made:
        archive.close()


@pytest.fixture
def make_host(fill: Callable[[], FilledArchive]) -> MakeHost:
    """Makes hosts over an archive of its own unless one is given."""

    def fresh(over: FilledArchive | None = None, module: Module = ALL, **terms: Any) -> AnyHost:
        return TestedHost(over or fill(), Terms(module=module, **{"exposures": EXPOSE_ALL, **terms}))

    return fresh


@pytest.mark.parametrize("seed", range(3))
def test_an_archive_answers_as_the_naive_host(seed: int, fill: Callable[[], FilledArchive]) -> None:
    require_alike(seed, lambda terms: TestedHost(fill(), terms), rounds=3)


LOOKS_AT_RECORDS = Module.author(
    "SelectHave(P) :- Have(P).\n"
    "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,G), Field(Q,'Group',_,G), Have(Q).\n"
)


@pytest.mark.clause("050-REQ-02", "050-REQ-03")
@pytest.mark.parametrize("module", [ALL, LOOKS_AT_RECORDS], ids=["by claims alone", "by records of ours"])
def test_what_is_there_but_not_shown_is_not_requested(module: Module, fill: Callable[[], FilledArchive]) -> None:
    terms = Terms(module=module)  # nothing is shown, so nothing may be sent
    grouped = [
        Advertisement(hash_of(record), (FieldClaim("Group", "0", "uv"[number % 2]),))
        for number, record in enumerate(RECORDS[:30])
    ]
    answers = []
    for host in (FakeHost(MemoryStore(), terms), TestedHost(fill(), terms)):
        put(host, *RECORDS[:6:2])  # of group u
        prepare(host, module, module, schema=FieldSchema(frozenset({"Group"})))
        assert evaluate(host).own.count == 0
        host.take_claims(asked.TakeClaims(added=sorted(grouped), is_whole=True), Call())
        answers.append(list(evaluate(host, max_requests=99, max_request_bytes=1 << 20).requests))
    assert answers[0] == answers[1]
    assert not set(answers[0]) & {hash_of(record) for record in RECORDS[:6:2]}
