"""Two processes, every transport, both roles: the result of one process, the bytes of the vectors."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from interlace.pair import ALL, blob, config_of, plex
from interop.harness import filled
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.policy.exposure import expose_all
from lace.runtime.local.local import exchange
from lace.runtime.local.party import Party, local_terms
from lace.runtime.trace.trace import read_capture
from runtime.memory_link import End, MemoryLink

pytestmark = pytest.mark.long

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "iltp.json").read_text(encoding="utf-8"))
DIALER = [blob(b"hello world"), plex("links/1", data=b"one")]
ACCEPTOR = [blob(b"data!"), plex("links/2", data=b"two")]
SOURCE = str(Path(api.__file__).parent.parent)
PATIENCE_S = 60.0


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def hashes(path: Path) -> set[str]:
    with api.open(path) as opened:
        return {str(record) for _, record in opened.store.records_since()}


def make_lace(path: Path, records: Sequence[bytes]) -> Path:
    with api.open(path, create=True) as opened:
        for record in records:
            opened.put_stored(record)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lace.cli", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, "LACE_HOME": str(tmp_path / "home")}


@contextmanager
def served(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A `lace serve` in its own process, ready when it says so (sd_notify), ended by SIGTERM."""
    notices = str(tmp_path / f"notify-{time.monotonic_ns()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(notices)
        ready.settimeout(PATIENCE_S)
        child = subprocess.Popen(
            command("serve", *arguments),
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(tmp_path), "NOTIFY_SOCKET": notices},
        )
        try:
            while child.poll() is None:
                if select.select([ready], [], [], 0.1)[0]:
                    assert ready.recv(100) == b"READY=1"
                    break
            else:
                raise AssertionError(child.stderr.read() if child.stderr else "")
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(PATIENCE_S)
            if child.stderr is not None:
                child.stderr.close()
    Path(notices).unlink()
    assert child.returncode == ExitCode.OK


def in_one_process() -> tuple[End, End]:
    ends = tuple(End(config_of(index), filled(records)) for index, records in enumerate((DIALER, ACCEPTOR)))
    MemoryLink(ends).run()
    return ends[0], ends[1]


def without_time(stream: bytes) -> str:
    return re.sub(r"HelloTAI\('[0-9:]+'\)", "HelloTAI('*')", stream.decode())


@pytest.mark.clause("060-TRACE-07", "060-STREAM-02")
def test_the_streams_of_an_exchange_are_the_vectors() -> None:
    dialer, acceptor = in_one_process()
    assert bytes(dialer.sent).decode() == VECTOR["dialer"]
    assert bytes(acceptor.sent).decode() == VECTOR["acceptor"]


def test_the_direct_exchange_gives_the_same_result_as_the_streams() -> None:
    stores = [filled(records) for records in (DIALER, ACCEPTOR)]
    parties = [Party(store=store, terms=local_terms(ALL, (expose_all(),))) for store in stores]
    direct = exchange(parties[0], parties[1])
    streamed = in_one_process()
    for result, end, store in zip(direct, streamed, stores, strict=True):
        over_stream = end.outcome.result
        assert result.exchange_plan_id == over_stream.exchange_plan_id
        assert sorted(result.received_hashes) == sorted(over_stream.received_hashes)
        assert sorted(result.sent_hashes) == sorted(over_stream.unconfirmed_hashes)  # those streams are of 050
        assert {str(record) for _, record in store.records_since()} == end.have


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.clause("060-WSF-02", "060-STDIO-01", "060-TCP-03", "060-UNIX-04", "060-WS-02", "060-STREAM-02")
def test_every_transport_and_role_gives_the_result_of_one_process(home: Path) -> None:
    ws, wss, tcp = free_port(), free_port(), free_port()
    files = ["--cert", f"{home}/c.pem", "--cert-key", f"{home}/k.pem"]
    cert = json.loads(lace("cert", "127.0.0.1", *files, "--json").stdout)
    addresses = [f"unix:{home}/s.sock", f"tcp:127.0.0.1:{tcp}", f"ws:127.0.0.1:{ws}", f"wss:127.0.0.1:{wss}"]
    expected = [end.have for end in in_one_process()]
    plan = in_one_process()[0].outcome.result.exchange_plan_id
    for address in addresses:
        near, far = make_lace(home / "near.lace", DIALER), make_lace(home / "far.lace", ACCEPTOR)
        secure = files if address.startswith("wss") else []
        with served(home, str(far), address, "--expose", "all", "--standard", *secure):
            options = ["--pin", cert["pin"]] if secure else []
            capture = home / "capture"
            done = lace(
                "interlace",
                str(near),
                address,
                "--expose",
                "all",
                "--json",
                "--trace",
                str(capture),
                "--standard",
                *options,
            )
            assert done.exit_code == ExitCode.REFUSED, done.output  # under 050 alone nobody confirms what it kept
            said = json.loads(done.stdout)
            assert (said["received"], said["sent"], said["sent_not_confirmed"]) == (2, 0, 2)
            assert (said["plan"], said["loops"]) == (plan, 2)
        assert [hashes(near), hashes(far)] == expected
        check_capture(capture)
        for path in (near, far):
            path.unlink()


def check_capture(capture: Path) -> None:
    """What went over the wire is the vector, the time of day apart."""
    passed = list(read_capture(capture))
    for way, name in (("out", "dialer"), ("in", "acceptor")):
        stream = b"".join(row.data for row in passed if row.way == way)
        assert without_time(stream) == without_time(VECTOR[name].encode())


@pytest.mark.clause("060-STDIO-01", "060-STDIO-03")
@pytest.mark.parametrize("parent_first", [True, False])
def test_a_child_process_is_a_peer_whichever_side_is_the_parent(parent_first: bool, home: Path) -> None:
    parent = make_lace(home / "parent.lace", DIALER if parent_first else ACCEPTOR)
    child = make_lace(home / "child.lace", ACCEPTOR if parent_first else DIALER)
    capture = home / "capture"
    done = subprocess.run(
        command(
            "interlace", str(parent), "stdio", "--expose", "all", "--json", "--trace", str(capture), "--standard", "--",
            *command("serve", str(child), "stdio", "--expose", "all", "--standard"),
        ),
        env=environment(home), capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == ExitCode.REFUSED, done.stderr  # not confirmed
    assert json.loads(done.stdout)["received"] == 2
    assert hashes(parent) == hashes(child)
    if parent_first:
        check_capture(capture)


@contextmanager
def following(home: Path, near: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    """A `lace follow` that tells as JSON what happens; it has to end well when it is told to."""
    follower = subprocess.Popen(
        command("follow", str(near), address, "--expose", "all", "--json"),
        stdout=subprocess.PIPE, text=True, env=environment(home),
    )  # fmt: skip
    assert follower.stdout is not None
    try:
        yield follower
    finally:
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(PATIENCE_S) == ExitCode.OK
        follower.stdout.close()


def test_a_follower_hears_what_the_server_stores_and_goes_on_after_a_restart(home: Path) -> None:
    near, far = make_lace(home / "near.lace", DIALER), make_lace(home / "far.lace", ACCEPTOR)
    address = f"unix:{home}/s.sock"
    with following(home, near, address) as follower:
        with served(home, str(far), address, "--expose", "all"):
            wait_for(follower, "FixedPoint")
            lace("put", str(far), "-g", "u", "-a", "a", "-n", "later", str(Path(__file__)))
            assert "Received" in wait_for(follower, "Received")
        wait_for(follower, '"end"')
        lace("put", str(near), "-g", "u", "-a", "a", "-n", "meanwhile", str(Path(__file__)))
        with served(home, str(far), address, "--expose", "all"):
            wait_for(follower, "FixedPoint")
            deadline = time.monotonic() + PATIENCE_S
            while hashes(near) != hashes(far) and time.monotonic() < deadline:
                time.sleep(0.1)
        assert hashes(near) == hashes(far)
        assert len(hashes(near)) == 6


def test_a_server_and_a_follower_go_on_when_their_laces_are_compacted(home: Path) -> None:
    near, far = make_lace(home / "near.lace", DIALER), make_lace(home / "far.lace", ACCEPTOR)
    address = f"unix:{home}/s.sock"
    with following(home, near, address) as follower, served(home, str(far), address, "--expose", "all"):
        wait_for(follower, "FixedPoint")
        lace("compact", str(far))
        wait_for(follower, '"end"')
        wait_for(follower, "FixedPoint")
        lace("compact", str(near))
        wait_for(follower, '"end"')
        lace("put", str(far), "-g", "u", "-a", "a", "-n", "later", str(Path(__file__)))
        lace("put", str(near), "-g", "u", "-a", "a", "-n", "there", str(Path(__file__)))
        deadline = time.monotonic() + PATIENCE_S
        while len(hashes(near) & hashes(far)) < 6 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(hashes(near)) == 6
        assert hashes(near) == hashes(far)


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """The next line of a process that holds a text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"the process ended without {text}")


def test_a_lace_toml_describes_a_node_with_a_peer_and_counters(home: Path) -> None:
    near, far = make_lace(home / "near.lace", DIALER), make_lace(home / "far.lace", ACCEPTOR)
    port = free_port()
    (home / "lace.toml").write_text(
        f'store = "{near.name}"\nselect = ["all"]\nexpose = ["all"]\nlog = "json"\nmetrics_port = {port}\n'
        f'listen = ["unix:{home}/near.sock"]\n[[peer]]\naddress = "unix:{home}/far.sock"\n'
    )
    with (
        served(home, str(far), f"unix:{home}/far.sock", "--expose", "all"),
        served(home, "--config", str(home / "lace.toml")) as node,
    ):
        deadline = time.monotonic() + PATIENCE_S
        while hashes(near) != hashes(far) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(hashes(near)) == 4
        with socket.create_connection(("127.0.0.1", port)) as scraper:
            scraper.sendall(b"GET / HTTP/1.1\r\n\r\n")
            page = b"".join(iter(lambda: scraper.recv(65536), b"")).decode()
        assert "lace_connections_active 1" in page
        assert node.stderr is not None
        said = [json.loads(node.stderr.readline()) for _ in range(3)]
        assert [row["event"] for row in said] == ["listening", "keeping", "open"]
