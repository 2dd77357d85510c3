"""The verbs over a peer: get, ls and store contribute selectors and drive exchanges; the stream holds nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from interlace.pair import plex
from interop.test_processes import hashes, lace, make_lace, served
from lace.cli.output.failure import ExitCode
from lace.iltp.items import FactLines, RecordItem, Resource
from lace.iltp.reader import StreamReader
from lace.interlace.vocabulary import Block

ALLOWED = frozenset().union(*(block.value for block in Block))


class Relay:
    """Passes bytes between two unix sockets and keeps them, direction by direction."""

    def __init__(self, listen: Path, target: Path) -> None:
        self.heard: list[bytearray] = []
        self._target = str(target)
        self._sockets = [socket.socket(socket.AF_UNIX)]
        self._sockets[0].bind(str(listen))
        self._sockets[0].listen()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._sockets[0].accept()
                far = socket.socket(socket.AF_UNIX)
                self._sockets += (near, far)
                far.connect(self._target)
                for source, sink in ((near, far), (far, near)):
                    self.heard.append(bytearray())
                    self._start(self._pump, source, sink, self.heard[-1])

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)


@contextmanager
def relayed(tmp_path: Path, far: Path, *options: str) -> Iterator[tuple[str, Relay]]:
    with served(tmp_path, str(far), f"unix:{tmp_path}/far.sock", *options):
        relay = Relay(tmp_path / "relay.sock", tmp_path / "far.sock")
        try:
            yield f"unix:{tmp_path}/relay.sock", relay
        finally:
            relay.close()


@pytest.mark.long
@pytest.mark.clause("110-VERB-04", "110-VERB-05", "040-EXPOSE-04")
def test_verbs_over_a_peer_are_selectors_and_exchanges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    wanted, other = plex("links/2", data=b"two"), plex("notes/1", data=b"not asked for")
    near = make_lace(tmp_path / "near.lace", [plex("links/1", data=b"one")])
    far = make_lace(tmp_path / "far.lace", [wanted, other])
    exposure = tmp_path / "exposure.rules"
    exposure.write_text("AllowQueryRecord(V,P) :- Have(P), Field(P,'App',_,A), A != 'a-name-that-stays-at-home'.\n")
    with relayed(tmp_path, far, "--expose", str(exposure)) as (address, relay):
        before = hashes(near)
        got = lace("get", str(near), "//u//ding//links/2", "--from", address)
        assert (got.exit_code, got.stdout_bytes) == (ExitCode.OK, b"two")
        assert len(hashes(near) - before) == 1  # nothing came that the verb did not select
        listed = lace("ls", str(near), "//u//ding//", "--from", address)
        assert "notes/1" in listed.stdout
        mine = next(iter(before))
        stored = lace("store", str(near), mine, "--to", address)
        assert stored.exit_code == ExitCode.OK, stored.output
    assert mine in hashes(far)
    assert len(relay.heard) >= 6
    for stream in relay.heard:
        check_stream(bytes(stream))
        assert b"a-name-that-stays-at-home" not in stream


def check_stream(stream: bytes) -> None:
    """Facts of 050, resources that are selectors, and records: no command is among them."""
    reader = StreamReader()
    items = reader.feed(stream)
    assert any(isinstance(item, Resource) for item in items)
    for item in items:
        if isinstance(item, FactLines):
            assert {fact.predicate for fact in item.facts} <= ALLOWED
        elif isinstance(item, Resource):
            assert item.id.startswith(("R.", "E."))
        elif isinstance(item, RecordItem):
            assert item.data
