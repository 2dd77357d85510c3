"""What the tests of the inspector share: a small world of laces, and a visitor who speaks plain HTTP."""

from __future__ import annotations

import http.client
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import lace
from lace.inspector.serving import Inspector
from lace.porcelain.search import index
from lace.records.keys import SigningKey

HOSTILE_NAME = "<img src=x onerror=alert(1)>"
HOSTILE_TEXT = b"<script>document.title='taken'</script>"


@dataclass(frozen=True)
class World:
    """A lace with something of everything, and the hashes of what is in it."""

    path: Path
    records: Mapping[str, str]
    ann: str
    bob: str


def png(side: int = 8) -> bytes:
    """A small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"".join(bytes([x * 30, y * 30, 120]) for x in range(side)) for y in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_world(path: Path, *, log_entries: int = 5) -> World:
    """Notes by two people, a picture, JSON, bytes, and what somebody with bad intentions would write."""
    ann, bob = SigningKey.generate(), SigningKey.generate()
    notes: dict[str, Any] = {"group": "u", "app": "notes", "name": "books/reading"}
    found: dict[str, str] = {}
    with lace.open(path, create=True) as opened:
        first = opened.put(b"# Reading\n\nSeeing Like a State\n", **notes, sign=ann, tai="1700000037:000000000")
        second = opened.put(
            b"# Reading\n\nSeeing Like a State\nThe Power Broker\n", **notes, sign=ann, tai="1700100037:000000000",
            headers={"Content-Type": "text/markdown"}, links=[("replaces", first)],
        )  # fmt: skip
        third = opened.put(
            b"# Reading\n\nThe Power Broker\nDebt\n", **notes, sign=bob, tai="1700200037:000000000",
            links=[("replaces", second)],
        )  # fmt: skip
        found |= {"first": first, "second": second, "third": third}
        text = json.dumps({"kind": "reading", "values": [1, 2, 3.5]}).encode()
        found["json"] = opened.put(text, group="field", app="sensors/roof", name="2026/11/16", sign=bob,
                                   tai="1700300037:000000000")  # fmt: skip
        found["image"] = opened.put(png(), group="u", app="photos", name="small.png", tai="1700300038:000000000")
        found["bytes"] = opened.put(bytes(range(256)), group="u", app="photos", name="raw", tai="1700300039:000000000")
        found["hostile"] = opened.put(
            HOSTILE_TEXT, group="u", app="notes", name=HOSTILE_NAME, tai="1700300040:000000000",
            headers={"Title": "\u202etxt.exe", "X": "</textarea><script>alert(2)</script>"},
        )  # fmt: skip
        found["svg"] = opened.put(
            b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(3)</script></svg>', group="u", app="photos",
            name="drawing.svg", headers={"Content-Type": "image/svg+xml"}, tai="1700300041:000000000",
        )  # fmt: skip
        for number in range(log_entries):
            opened.put(f"entry {number}\n".encode(), group="u", app="log", name=f"day/{number:04d}", sign=ann,
                       tai=f"{1700400000 + number:010d}:000000000")  # fmt: skip
        index(opened)
    return World(path, found, str(ann.verifier), str(bob.verifier))


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Visitor:
    """One who asks; `cookie` is what it was given."""

    inspector: Inspector
    cookie: str = ""
    host: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    @classmethod
    def admitted(cls, inspector: Inspector) -> Visitor:
        """A visitor who opened the printed address."""
        visitor = cls(inspector)
        answer = visitor.get(f"/?token={inspector.token}")
        assert answer.status == 303
        visitor.cookie = answer.headers["set-cookie"].split(";")[0]
        return visitor

    def get(self, path: str, **headers: str) -> Answer:
        """A plain read."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """A form of our own page."""
        given = {"Origin": self.inspector.plain_address, "Content-Type": "application/x-www-form-urlencoded"} | headers
        return self._ask("POST", path, urlencode(form).encode(), given)

    def page(self, path: str) -> Any:
        """A page as JSON."""
        return self.get(path + ("&" if "?" in path else "?") + "format=json").json()

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.inspector.port, timeout=30)
        given = {key.replace("_", "-"): value for key, value in headers.items() if value} | self.extra
        if self.cookie:
            given["Cookie"] = self.cookie
        if self.host:
            given["Host"] = self.host
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()
