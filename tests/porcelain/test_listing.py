"""A row of a listing is a mapping: it can be listed, asked and turned into a dict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import lace


@pytest.fixture
def row(tmp_path: Path) -> lace.Row:
    with lace.open(tmp_path / "x.lace", create=True) as opened:
        opened.put(b"abc", group="u", app="ding", name="n", headers=[("Tag", "a"), ("Tag", "b")])
        (found,) = opened.list(columns=["Name", "Tag", "Absent"])
        return found


def test_a_row_lists_the_fields_that_its_record_has(row: lace.Row) -> None:
    assert isinstance(row, Mapping)
    assert set(row) == {"Type", "Group", "App", "Name", "TAI", "Data-Length", "Tag"}
    assert len(row) == len(list(row)) == 7
    assert dict(row)["Name"] == "n"
    assert dict(row.items())["Tag"] == "a"  # the first value; `fields` has both
    assert row.fields["Tag"] == ("a", "b")
    assert "n" in row.values()
    assert {**row}["Group"] == "u"


def test_a_field_that_is_not_there_reads_as_empty_and_is_not_in_the_row(row: lace.Row) -> None:
    assert "Name" in row
    assert row["Absent"] == row["Signed-By"] == ""
    assert "Absent" not in row
    assert 7 not in row
    assert row.get("Absent") is None
    assert row.get("Absent", "-") == "-"
    assert row.get("Name", "-") == "n"


def test_rows_of_one_record_are_one(row: lace.Row) -> None:
    again = lace.Row(row.hash, dict(row.fields))
    assert again == row
    assert len({row, again}) == 1
    assert row.coordinate == "//u//ding//n"
    match row:
        case {"Name": name, "Group": "u"}:
            assert name == "n"
        case _:
            pytest.fail("a mapping can be matched")
