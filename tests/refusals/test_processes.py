"""What a peer does not keep, by the command and real processes: told, with an exit code of its own, not sent again."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlace.pair import blob
from interop.test_processes import command, environment, free_port, hashes, make_lace, served
from lace.cli.output.failure import ExitCode
from lace.limits import MIB
from lace.notation.tai import TAI
from refusals.links import hashes_of, plex_at

pytestmark = pytest.mark.long

LATE = plex_at("late", TAI("9999999999:000000000"), b"x" * 500)
SMALL = [blob(bytes([65 + number]) * 3000) for number in range(5)]
LARGE = [blob(random.Random(number).randbytes(3 * MIB)) for number in range(6)]  # which do not shrink on the disk


def ran(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """A command in a process of its own: its exit code, and what it says to programs."""
    done = subprocess.run(
        command(*arguments, "--json"), capture_output=True, text=True, env=environment(home), check=False, timeout=120
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def said(home: Path, *arguments: str) -> str:
    """What it says to people."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(home), check=False, timeout=120
    )
    return done.stdout + done.stderr


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A disk with little room."""
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("A FULL DISK WAS NOT TRIED: mounting a small tmpfs needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=True)


def grow(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], capture_output=True, check=True)


def test_a_server_with_a_quota_takes_what_it_may_and_says_so(tmp_path: Path) -> None:
    near, far = make_lace(tmp_path / "near.lace", SMALL), make_lace(tmp_path / "far.lace", [])
    address = f"tcp:127.0.0.1:{free_port()}"
    arguments = ("interlace", str(near), address, "--expose", "all")
    with served(tmp_path, str(far), address, "--expose", "all", "--quota", "peer=8000B"):
        for turn in (1, 2):
            code, told = ran(tmp_path, *arguments)
            assert code == ExitCode.REFUSED
            assert (told["fixed_point"], told["converged"], told["ending"]) == (True, False, "incomplete")
            assert told["sent"] == (2 if turn == 1 else 0)
            assert (told["record_bytes_sent"] == 0) == (turn == 2)
            assert told["held_back_by_peer"] == {"quota": 3}
            assert set(told["held_back_records"]) == hashes_of(SMALL) - hashes(far)
        text = said(tmp_path, *arguments)
        assert "but not everything was kept" in text
        assert "held back by peer  3 records: 3 quota, not asked for" in text
        wanted = sorted(hashes_of(SMALL) - hashes(far))
        code, told = ran(tmp_path, "store", str(near), *wanted, "--to", address)
        assert code == ExitCode.REFUSED
        assert told["sent"] == 0
        assert told["refused_by_peer"] == dict.fromkeys(wanted, "quota")
        assert "the peer refused 3 records:" in said(tmp_path, "store", str(near), *wanted, "--to", address)
    with served(tmp_path, str(far), address, "--expose", "all", "--quota", "peer=80000B"):
        code, told = ran(tmp_path, *arguments)
        assert (code, told["sent"], told["converged"]) == (ExitCode.OK, 3, True)
    assert hashes(far) == hashes_of(SMALL)


def test_two_members_are_both_held_back_by_a_quota_of_their_group(tmp_path: Path) -> None:
    records = [plex_at(f"n{number}", data=b"x" * 900) for number in range(6)]
    members = [make_lace(tmp_path / f"m{place}.lace", records[place::2]) for place in (0, 1)]
    far = make_lace(tmp_path / "far.lace", [])
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(tmp_path, str(far), address, "--expose", "all", "--quota", "group=2 records"):
        for turn in (1, 2):
            for member in members:
                code, told = ran(tmp_path, "interlace", str(member), address, "--expose", "all")
                assert code == ExitCode.REFUSED
                if turn == 2:
                    assert told["record_bytes_sent"] == 0
                kept = {*told["refused_by_peer"], *told["held_back_records"]}
                assert kept == hashes(member) - hashes(far)
    assert len(hashes(far)) == 2


@pytest.mark.parametrize("receiver", ["server", "dialler"])
def test_a_record_from_the_future_is_refused_once(receiver: str, tmp_path: Path) -> None:
    has, lacks = [LATE, SMALL[0]], list[bytes]()
    near = make_lace(tmp_path / "near.lace", has if receiver == "server" else lacks)
    far = make_lace(tmp_path / "far.lace", lacks if receiver == "server" else has)
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(tmp_path, str(far), address, "--expose", "all"):
        for turn in (1, 2):
            code, told = ran(tmp_path, "interlace", str(near), address, "--expose", "all")
            assert code == ExitCode.REFUSED
            moved = told["record_bytes_sent"] + told["record_bytes_received"]
            assert moved == (len(LATE) + len(SMALL[0]) if turn == 1 else 0)
            if receiver == "server":
                kind = told["refused_by_peer"] if turn == 1 else told["held_back_records"]
                assert kind == {next(iter(hashes_of([LATE]))): "horizon"}
                assert told["sent"] == (1 if turn == 1 else 0)
            elif turn == 1:
                assert set(told["rejected"]) == hashes_of([LATE])
            else:
                assert told["held_back"] == {"horizon": 1}


def test_one_record_that_is_not_kept_does_not_keep_the_others_from_being_fetched(tmp_path: Path) -> None:
    near, far = make_lace(tmp_path / "near.lace", []), make_lace(tmp_path / "far.lace", [LATE, plex_at("now")])
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(tmp_path, str(far), address, "--expose", "all"):
        for told in ("rejected 1 record:", "held back here: 1 record: 1 horizon, not asked for"):
            text = said(tmp_path, "ls", str(near), "//u//", "--from", address)
            assert "//u//a//now" in text
            assert told in text
    assert hashes(near) == hashes_of([plex_at("now")])


@pytest.mark.parametrize("receiver", ["server", "dialler", "first", "second"])
def test_a_full_disk_refuses_until_there_is_room(receiver: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "28m") as disk:
        full = make_lace(disk / "full.lace", [])
        rich = make_lace(tmp_path / "rich.lace", LARGE)
        address = f"tcp:127.0.0.1:{free_port()}"
        first, second = {
            "server": (str(rich), address),
            "dialler": (str(full), address),
            "first": (str(full), str(rich)),
            "second": (str(rich), str(full)),
        }[receiver]
        arguments = ("interlace", first, second, "--expose", "all")

        def tried() -> None:
            last = 0
            while True:  # a process that ends gives room back on the disk, and then a record may fit; six runs at most
                before = hashes(full)
                code, told = ran(tmp_path, *arguments)
                kept = hashes(full)
                assert (code, told["ending"]) == (ExitCode.REFUSED, "incomplete"), told
                assert before <= kept < hashes_of(LARGE)
                if first == str(rich):
                    assert told["sent"] == len(kept - before)
                    reasons = {**told["refused_by_peer"], **told["held_back_records"]}
                    assert reasons == dict.fromkeys(hashes_of(LARGE) - kept, "full")
                else:
                    assert told["received"] == len(kept - before)
                    assert told["held_back"] == {"full": len(LARGE) - len(kept)}
                moved = told["record_bytes_sent"] + told["record_bytes_received"]
                assert moved == len(kept - before) * len(LARGE[0])  # and nothing in vain
                if kept == before:
                    break
                last = moved
            assert last
            grow(disk, "400m")
            code, told = ran(tmp_path, *arguments)
            assert (code, told["ending"]) == (ExitCode.OK, "converged")
            assert hashes(full) == hashes_of(LARGE)

        if address in arguments:
            with served(tmp_path, str(full if receiver == "server" else rich), address, "--expose", "all"):
                tried()
        else:
            tried()


def test_with_a_peer_that_does_not_tell_it_is_sent_and_not_confirmed(tmp_path: Path) -> None:
    near, far = make_lace(tmp_path / "near.lace", SMALL), make_lace(tmp_path / "far.lace", [])
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(tmp_path, str(far), address, "--expose", "all", "--standard"):
        code, told = ran(tmp_path, "interlace", str(near), address, "--expose", "all")
        assert code == ExitCode.REFUSED
        assert (told["sent"], told["sent_not_confirmed"], told["converged"]) == (0, 5, False)
        code, told = ran(tmp_path, "interlace", str(near), address, "--expose", "all")
        assert (code, told["converged"]) == (ExitCode.OK, True)


def test_the_log_of_a_server_and_a_follower_tell_what_is_not_kept(tmp_path: Path) -> None:
    near, far = make_lace(tmp_path / "near.lace", [LATE, *SMALL]), make_lace(tmp_path / "far.lace", [])
    address = f"tcp:127.0.0.1:{free_port()}"
    with served(tmp_path, str(far), address, "--expose", "all") as server:
        follower = subprocess.Popen(
            command("follow", str(near), address, "--expose", "all", "--json"),
            stdout=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
        )
        assert follower.stdout is not None
        events = []
        for line in follower.stdout:
            events.append(json.loads(line))
            if events[-1].get("kind") == "FixedPoint":
                break
        follower.terminate()
        follower.communicate(timeout=60)
        name = next(iter(hashes_of([LATE])))
        assert [one["reasons"] for one in events if one.get("kind") == "RefusedByPeer"] == [{name: "horizon"}]
        assert sum(len(one["hashes"]) for one in events if one.get("kind") == "Taken") == len(SMALL)
        assert server.stderr is not None
        log = ""
        while " closed" not in log:
            log += server.stderr.readline()
    assert "rejected 1" in log
