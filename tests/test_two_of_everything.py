"""Two of everything: which pairs of things that people do at once, or one after the other, are tried, and where.

Rule: a row names a pair and the tests that try it. The seams between parts are where faults were, so a pair without a
test is a row with none, and this file fails.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

PAIRS: dict[str, tuple[str, ...]] = {
    "two handles: one closes while another writes": (
        "store/test_openers.py::test_who_closes_while_another_writes_leaves_no_name_when_that_one_has_closed",
    ),
    "two processes: one imports, others open, put and close": (
        "store/test_openers.py::test_many_open_put_and_close_beside_an_import",
    ),
    "two upkeep commands on one lace": (
        "store/test_upkeep_at_once.py::test_one_at_a_time_does_upkeep_to_a_lace",
        "store/test_upkeep_at_once.py::test_two_compacts_at_once_lose_nothing",
    ),
    "two upkeep commands on two laces": ("store/test_upkeep_at_once.py::test_two_laces_are_looked_after_at_once",),
    "compacting beside a writer": (
        "store/test_upkeep_at_once.py::test_compacting_ends_beside_writers_who_never_pause",
        "store/test_upkeep_at_once.py::test_records_that_come_and_go_while_a_lace_is_compacted_are_as_they_are",
    ),
    "repairing beside a writer": (
        "store/test_upkeep_at_once.py::test_what_is_written_while_a_lace_is_repaired_is_not_lost",
    ),
    "two backups to one target, or over another lace": (
        "store/test_upkeep_at_once.py::test_a_backup_never_becomes_a_mixture_with_what_it_replaces",
        "store/test_upkeep_at_once.py::test_what_appears_meanwhile_is_not_overwritten",
    ),
    "two followers of one address, and a hundred": (
        "interop/test_doors.py::test_a_hundred_followers_behind_one_address_are_all_served_and_stay",
    ),
    "two members who write one name": (
        "porcelain/test_tips.py::test_members_who_put_one_name_read_the_same_everywhere",
        "porcelain/test_tips.py::test_the_same_records_give_the_same_answers_to_every_holder",
    ),
    "two members under one quota": (
        "refusals/test_processes.py::test_two_members_are_both_held_back_by_a_quota_of_their_group",
    ),
    "two links that were refused something": (
        "refusals/test_here.py::test_two_links_remember_together_and_the_table_has_an_end",
    ),
    "two contents that share a part": (
        "porcelain/test_parts.py::test_a_part_that_two_contents_share_moves_once_and_stays_while_one_needs_it",
    ),
    "two sides that change their rules at once, and twice": (
        "interop/test_changed_rules.py::test_both_nodes_change_at_once_and_twice",
        "interop/test_changed_rules.py::test_rules_change_between_two_processes",
    ),
    "a put and a delete in an open exchange": (
        "differences/test_deletes.py::test_both_modes_end_alike_whatever_is_put_and_removed_at_rest",
    ),
    "the second run of an exchange": (
        "product/test_product.py::test_whoever_is_told_converged_can_read_everything_that_both_select",
        "refusals/test_exchange.py::test_sent_is_kept_converged_is_equal_and_the_second_time_nothing_moves",
        "porcelain/test_parts.py::test_over_tcp_the_parts_come_too_and_the_second_run_moves_nothing",
    ),
    "the second run after a restart: a proof is used again": (
        "transports/test_door.py::test_a_proof_that_was_used_before_a_restart_is_refused_after_it_however_it_is_dated",
    ),
    "two batches of an archive, in any split": (
        "spark/test_few.py::test_whatever_the_batches_few_records_end_as_an_evaluation_from_scratch_does",
    ),
    "two writers of an archive": (
        "spark/test_few.py::test_writers_that_describe_an_archive_at_once_all_succeed_and_leave_the_newest_version",
    ),
    "two processes of a peer's rules, one killed from outside": (
        "runtime/test_guests.py::test_a_kill_from_outside_is_no_fault_of_the_rules_and_they_are_tried_once_more",
    ),
    "two invitations, two pastes, two devices, two admins, and leaving, coming back and rotating twice": (
        "cli/test_people.py::test_a_name_is_invited_twice_a_line_pasted_twice_devices_come_two_at_once_and_a_member_leaves_twice",
        "cli/test_people.py::test_two_admins_who_set_the_policy_at_once_go_by_the_same_one",
        "cli/test_people.py::test_an_admin_rotates_twice_stays_one_person_and_can_be_dismissed",
        "cli/test_people.py::test_a_key_is_rotated_twice_and_goes_on_as_a_device_and_an_invitation_would_have_it",
        "cli/test_people.py::test_what_was_said_before_is_not_written_twice",
    ),
    "two empty laces": ("cli/test_local_exchange.py::test_two_empty_laces_are_equal",),
}


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_is_tried_by_tests_that_exist(pair: str) -> None:
    assert PAIRS[pair], f"{pair}: no test tries it"
    for test in PAIRS[pair]:
        file, _, name = test.partition("::")
        assert (TESTS / file).is_file(), f"{pair}: there is no {file}"
        assert name in _tests_of(file), f"{pair}: {file} has no {name}"
