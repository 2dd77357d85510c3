"""Inputs and an inbox over the S3 interface: a server of it on loopback, with an environment of its own (`make s3`)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs
import pytest

from lace.records.frame import split_records
from lace.records.validate import validate
from lace.spark.archive.archive import Archive
from lace.store import open_store
from spark.archives import make_records, write_bundle
from spark.test_cluster import SOURCE, kill, wait_for

MOTO_PYTHON = os.environ.get("LACE_MOTO_PYTHON", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MOTO_PYTHON, reason="LACE_MOTO_PYTHON names no Python with moto (`make s3`)"),
]


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pyarrow.fs.FileSystem]:
    """A bucket; the environment says where it is, as it does to every worker."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "moto.log"
    with log.open("wb") as out:
        command = [MOTO_PYTHON, "-m", "moto.server", "-p", str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    try:
        wait_for("(Running on http)", log)
        system = pyarrow.fs.S3FileSystem(endpoint_override=f"http://127.0.0.1:{port}", allow_bucket_creation=True)
        system.create_dir("inputs")
        yield pyarrow.fs.SubTreeFileSystem("inputs", system)
    finally:
        kill(process)


def put(bucket: pyarrow.fs.FileSystem, path: Path, name: str) -> None:
    bucket.create_dir(name.rpartition("/")[0])
    for source, target in ((path, name), (path.with_name(f"{path.name}.idx"), f"{name}.idx")):
        if source.exists():
            with bucket.open_output_stream(target) as out:
                out.write(source.read_bytes())


def lace(*arguments: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "lace.cli", "archive", *arguments, "--json"],
        capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(said: list[dict[str, object]], table: str) -> object:
    return next((line["rows"] for line in said if line.get("table") == table), 0)


def test_bundles_and_stores_are_added_from_a_bucket_by_this_process_and_by_jobs(
    bucket: pyarrow.fs.FileSystem, tmp_path: Path
) -> None:
    records = make_records(200)
    put(bucket, write_bundle(tmp_path / "a.bundle", records[:80]), "day/a.bundle")
    put(bucket, write_bundle(tmp_path / "b.bundle", records[60:120]), "day/deep/b.bundle")
    with open_store(tmp_path / "notes.lace", create=True) as store:
        store.put(records[100:150])
    put(bucket, tmp_path / "notes.lace", "day/notes.lace")
    for name, ways in (("few", ()), ("jobs", ("--master", "local[1]"))):
        west = str(tmp_path / name)
        subprocess.run([sys.executable, "-m", "lace.cli", "archive", "init", west], check=True, capture_output=True)
        assert rows(lace("add", west, "s3://inputs/day", *ways), "records") == 150
        version = lace("status", west)[0]["version"]
        assert lace("add", west, "s3://inputs/day", *ways)[0]["version"] == version  # nothing is new
    put(bucket, write_bundle(tmp_path / "c.bundle", records[140:]), "day/c.bundle")
    (tmp_path / "bob.rules").write_text("SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n")
    asked = ("--peer", f"bob={tmp_path / 'bob.rules'}", "--expose", "all", "--to", "s3://inputs/out")
    wanted = {valid.hash for valid in records[:150] if valid.parts.group == "u"}
    for name, ways in (("few", ()), ("jobs", ("--master", "local[1]"))):
        lace("publish", str(tmp_path / name), *asked, *ways)
        listed = bucket.get_file_info(pyarrow.fs.FileSelector("out", recursive=True))
        files = [file.path for file in listed if file.is_file]
        assert all(path.startswith("out/bob/") and "/part-" in path for path in files)  # no hidden one is left
        bundles = [path for path in files if path.endswith(".bundle")]
        assert sorted(f"{path}.idx" for path in bundles) == sorted(set(files) - set(bundles))
        found = [validate(s).hash for path in bundles for s in split_records(bucket.open_input_file(path).read())]
        assert sorted(found) == sorted(wanted)
        bucket.delete_dir_contents("out")
    said = lace("follow", str(tmp_path / "few"), "--inbox", "s3://inputs/day", "--once")
    assert [line["records"] for line in said] == [50]
    log = (tmp_path / "few" / "log" / "00000002.json").read_text()
    assert "s3://inputs/day/deep/b.bundle" in log
    assert "SECRET" not in log


def test_the_log_of_an_archive_in_a_bucket_is_read_without_a_jvm(
    bucket: pyarrow.fs.FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    west = tmp_path / "west"
    archive = Archive(str(west))
    archive.init()
    for number in range(20):  # a stretch and what came after it
        archive.add([write_bundle(tmp_path / f"{number}.bundle", make_records(3, seed=number))])
    for path in west.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            put(bucket, path, f"deep/west/{path.relative_to(west)}")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for address in ("s3://inputs/deep/west", "s3a://inputs/deep/west"):
        assert lace("status", address) == lace("status", str(west))
        assert lace("status", address, "--as-of", "7") == lace("status", str(west), "--as-of", "7")
        assert lace("log", address, "--limit", "0") == lace("log", str(west), "--limit", "0")
    nothing = subprocess.run(
        [sys.executable, "-m", "lace.cli", "archive", "status", "s3://inputs/deep"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert "there is no archive here" in nothing.stderr


def test_an_address_where_nothing_is_is_said_in_words(bucket: pyarrow.fs.FileSystem, tmp_path: Path) -> None:
    west = str(tmp_path / "west")
    subprocess.run([sys.executable, "-m", "lace.cli", "archive", "init", west], check=True, capture_output=True)
    for address in ("s3://inputs/none", "s3://nowhere/none", "gopher://x/y"):
        done = subprocess.run(
            [sys.executable, "-m", "lace.cli", "archive", "add", west, address],
            capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
        assert done.returncode != 0
        assert address.partition("://")[0] in done.stderr
        assert "Traceback" not in done.stderr
