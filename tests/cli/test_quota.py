"""`lace quota`, `--quota` and `[quotas]`: what may be written, what is shown, how a mistake is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.options.nodefile import read_node_file
from lace.errors import InvalidText
from lace.runtime.host.quotas import FOR_STRANGERS, Allowance, parse_allowance, quotas_with
from lace.store.ledger import Brought, charge


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("text", "allowance"),
    [
        ("64MiB", Allowance(bytes=64 << 20)),
        ("5 records", Allowance(records=5)),
        ("1GiB,7records", Allowance(bytes=1 << 30, records=7)),
        (" 3 KiB , 0 records ", Allowance(bytes=3 << 10, records=0)),
        ("none", Allowance()),
    ],
)
def test_an_amount_is_a_number_with_its_unit(text: str, allowance: Allowance) -> None:
    assert parse_allowance(text) == allowance


@pytest.mark.parametrize("text", ["", "64", "MiB", "-1B", "1.5GiB", "64MB", "1B,2KiB", "1B,", "9" * 16 + "B", "٣B"])
def test_an_amount_that_is_none_is_told(text: str) -> None:
    with pytest.raises(InvalidText, match="an amount"):
        parse_allowance(text)


def test_what_is_not_said_stays_as_it_is_for_strangers() -> None:
    quotas = quotas_with([("group", "1MiB"), ("peer", "none")])
    assert quotas is not None
    assert (quotas.strangers, quotas.group, quotas.peer) == (FOR_STRANGERS.strangers, Allowance(1 << 20), Allowance())
    assert quotas_with([]) is None


@pytest.mark.parametrize("word", ["peer", "cake=1MiB", "peer=1", "peer="])
def test_a_wrong_option_is_a_usage_error_before_anything_is_opened(word: str, tmp_path: Path) -> None:
    result = run("serve", str(tmp_path / "none.lace"), "tcp:127.0.0.1", "--quota", word)
    assert result.exit_code == 2
    assert "--quota" in result.output


def test_a_node_file_says_quotas_and_a_horizon(tmp_path: Path) -> None:
    file = tmp_path / "lace.toml"
    file.write_text('store = "x"\nhorizon_s = 60\n[quotas]\npeer = "1MiB"\n', encoding="utf-8")
    found = read_node_file(file)
    assert (found.quotas, found.horizon_s) == ({"peer": "1MiB"}, 60.0)


@pytest.mark.parametrize(
    ("line", "place"),
    [("peer = 5", "quotas.peer"), ('cake = "1B"', "quotas.cake"), ('total = "much"', "quotas.total")],
)
def test_a_wrong_quota_of_a_node_file_is_told_with_its_place(line: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / "lace.toml"
    file.write_text(f'store = "x"\n[quotas]\n{line}\n', encoding="utf-8")
    with pytest.raises(InvalidText) as refusal:
        read_node_file(file)
    assert place in refusal.value.place


def test_accounts_are_shown_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with api.open(path, create=True) as opened:
        charge(opened.store, range(1, 3), [Brought(100, "", ""), Brought(50, "", "")], ["peer 192.0.2.7"], [])
    shown = run("quota", str(path))
    assert shown.exit_code == 0
    assert "peer 192.0.2.7" in shown.output
    rows = [json.loads(line) for line in run("quota", str(path), "--json").output.splitlines()]
    assert rows[0] == {"account": "peer 192.0.2.7", "records": 2, "bytes": 150}
    assert run("quota", str(path), "--forget", "peer 192.0.2.7").exit_code == 0
    again = run("quota", str(path), "--forget", "peer 192.0.2.7")
    assert again.exit_code == 1
    assert "there is no account" in again.output
