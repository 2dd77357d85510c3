"""A lace or an archive on this side of an exchange: which it is, and what is told before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.options.side import is_archive, opened_side
from lace.cli.output.failure import ExitCode
from lace.errors import StoreError
from lace.policy.select import select_all
from lace.spark.archive.archive import Archive


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def no_session() -> None:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize("place", ["hdfs://host/a", "s3a://b/c", "viewfs:/a", "file:/a"])
def test_an_address_of_a_filesystem_is_an_archive(place: str) -> None:
    assert is_archive(place)


def test_a_folder_with_a_log_is_an_archive_and_a_file_is_a_lace(tmp_path: Path) -> None:
    Archive(str(tmp_path / "west")).init()
    api.open(tmp_path / "a.lace", create=True).close()
    assert is_archive(tmp_path / "west")
    assert not is_archive(tmp_path / "a.lace")
    assert not is_archive(tmp_path / "nothing")


def test_an_archive_is_opened_and_closed_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Archive(str(tmp_path / "west")).init()
    monkeypatch.setattr("lace.spark.session.session.spark_session", no_session)
    with opened_side(str(tmp_path / "west")) as side:
        moment = side.store.cursor()
        assert moment == side.store.cursor()
        assert side.make_host is not None
        limits = side.limits()
        assert limits is not None
        assert limits.store_poll_s == 1.0


def test_an_archive_that_is_not_there_is_told_before_anything_is_bound(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no archive here"), opened_side(f"file:{tmp_path}/none"):
        pass
    said = lace("serve", f"file:{tmp_path}/none", f"unix:{tmp_path}/s")
    assert said.exit_code == ExitCode.STORE
    assert "lace archive init" in said.output


def test_two_sides_in_one_process_are_laces(tmp_path: Path) -> None:
    Archive(str(tmp_path / "west")).init()
    api.open(tmp_path / "a.lace", create=True).close()
    for command in ("interlace", "follow"):
        said = lace(command, str(tmp_path / "west"), str(tmp_path / "a.lace"))
        assert said.exit_code == ExitCode.USAGE
        assert "lace serve" in said.output


def test_patience_is_the_time_of_a_phase_and_thirty_seconds_without_it() -> None:
    terms = make_terms(select_all(), (), is_open=False)
    assert LinkChoices().patient(terms) == terms
    assert LinkChoices(patience=90.0).patient(terms).limits.phase_timeout_ns == 90 * 10**9
