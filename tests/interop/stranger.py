"""A peer that somebody else might have written: 050, 060 and 070 by their documents, over a plain socket.

Nothing of ours is imported: bytes in, bytes out, numbers from `differences.onpaper`. It wants everything that is
listed, gives everything that it has, and knows the one selector that does so. It keeps which predicates were spoken, so
that a test can tell by which way two sides found out how they differ.
"""

from __future__ import annotations

import re
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from blake3 import blake3

from differences.onpaper import (
    Key,
    Summary,
    Symbol,
    b64a,
    estimate,
    minus,
    short_ids_of,
    short_ids_text,
    summary_of,
    symbols_of,
    symbols_text,
)

SELECTOR: Final = "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P)."
KNOT, PIECE, RECORD, PACKED = "🪢: ".encode(), "🧩: ".encode(), "🖧: ".encode(), "🗜: ".encode()
PATIENCE_S = 30.0
Line = tuple[str, ...]  # predicate and arguments
DROP, ASK = [("DifferenceDrop",)], [("DifferenceAsk",)]


def said_as(line: Line) -> str:
    """A fact line without its LF."""
    values = ",".join(f"'{value}'" for value in line[1:])
    return f"{line[0]}({values})"


def understood(text: str) -> Line:
    """What a fact line says. None of those that are heard here needs an escape."""
    found = re.fullmatch(r"([A-Za-z]\w*)\(((?:'[^'\\]*'(?:,'[^'\\]*')*)?)\)", text)
    assert found, text
    return (found[1], *re.findall(r"'([^']*)'", found[2]))


def of(lines: Iterable[Line], predicate: str) -> list[str]:
    """The first argument of every line of a predicate."""
    return [line[1] for line in lines if line[0] == predicate]


def told_in(lines: Iterable[Line]) -> Summary:
    """The sums in a block."""
    (told,) = [line for line in lines if line[0] == "DifferenceSummary"]
    return summary_of(*told[1:])


class Dropped(Exception):
    """The comparison was given up by either side."""


@dataclass
class Stranger:
    """One side of one exchange."""

    records: dict[str, bytes]
    index: int  # 0: it dialled, and asks; 1: it was dialled, and tells
    capabilities: Sequence[tuple[str, str]] = (("x_differences", "1"), ("x_differences_salt", "90210"))
    per_line: int = 56  # symbols
    lie: Callable[[list[Line]], list[Line]] = list  # what it says instead
    said: list[str] = field(default_factory=list)  # predicates, in order
    heard: list[str] = field(default_factory=list)

    # --- 060 -----------------------------------------------------------------------------------------------------

    def meet(self, connection: socket.socket, *, after: Callable[[], bool] = lambda: False) -> None:
        """A whole exchange; `after` a fixed point says whether to wait for the peer's next loop."""
        connection.settimeout(PATIENCE_S)
        with connection, connection.makefile("rb") as stream:
            self._out, self._in, self._unpacked = connection, stream, list[bytes]()
            self._exchange(after)

    def _exchange(self, after: Callable[[], bool]) -> None:
        self._base: set[str] | None = None
        self._before: set[str] = set()
        self._given, self._got = set[str](), set[str]()
        self._is_packing = False
        self._open()
        while True:
            while not self._loop():
                pass
            if not after():
                return

    def _say(self, lines: list[Line]) -> None:
        lines = self.lie(lines)
        self.said += [line[0] for line in lines]
        text = "".join(f"{said_as(line)}\n" for line in lines).encode()
        small = zlib.compress(text)
        if self._is_packing and len(small) < len(text) < 1 << 20:
            text = PACKED + b"%d %d\n" % (len(text), len(small)) + small
        self._out.sendall(text + b"\n")

    def _line(self) -> bytes:
        if self._unpacked:
            return self._unpacked.pop(0)
        line = self._in.readline()
        assert line.endswith(b"\n"), f"the stream ended in the middle: {line!r}"
        if not line.startswith(PACKED):
            return line
        assert self._is_packing
        whole, size = map(int, line[len(PACKED) :].split(b" "))
        inflating = zlib.decompressobj()
        text = inflating.decompress(self._in.read(size), whole + 1)
        assert len(text) == whole
        assert inflating.eof
        self._unpacked = text.splitlines(keepends=True)
        return self._unpacked.pop(0)

    def _hear(self) -> list[Line]:
        """A fact block; resources before it are passed over."""
        lines: list[Line] = []
        while (line := self._line()) != b"\n":
            if line.startswith(PIECE):
                while self._line() != b"\n":
                    pass
                continue
            lines.append(understood(line[:-1].decode()))
        self.heard += [line[0] for line in lines]
        return lines

    # --- setup and hello (050, P3, P8) ---------------------------------------------------------------------------

    def _open(self) -> None:
        module = f"R.{b64a(blake3(SELECTOR.encode()).digest())}"
        digests = []
        for index in "01":
            texts = ["lace-opaque-origin/v1", index, "", "", "selector", module, module[2:]]
            digests.append(b64a(blake3("\n".join(texts).encode()).digest()))
        at = next(at for at in range(43) if digests[0][at] != digests[1][at])
        sources = [f"Opq_{digest[at]}" for digest in digests]
        self._source = sources[self.index]
        own = ("ExchangeOperand", str(self.index), module, f"Opq_{digests[self.index][0]}", "selector")
        self._out.sendall(KNOT + f"iltp/1\n🧩: {module} lacegram\n{SELECTOR}\n\n{said_as(own)}\n\n".encode())
        assert self._line() == KNOT + b"iltp/1\n"
        (theirs,) = self._hear()
        assert theirs[:3] == ("ExchangeOperand", str(1 - self.index), module), "a selector that this peer does not know"
        runtime = {"Here": 1, "Peer": 1, "Transport": 1, "TransportEncrypted": 0, "StartTAI": 1, "TickTAI": 1}
        plan = [("ExchangePlanLowering", "standard-v1")]
        plan += [("ExchangePlanOperand", str(n), "selector", module) for n in (0, 1)]
        plan += [("ExchangePlanOperandOrigin", str(n), sources[n]) for n in (0, 1)]
        plan += [("ExchangePlanRuntime", n, str(a)) for n, a in (runtime | {"ClockSkewSeconds": 1}).items()]
        plan.sort(key=lambda line: (line[0], said_as(line)))
        transcript = "\n".join(map(said_as, [("ExchangePlanProfile", "lace-040-exchange-plan-v1"), *plan]))
        seconds, nanoseconds = divmod(time.time_ns() + 37 * 10**9, 10**9)
        mine = [
            ("HelloExchangePlan", "E." + b64a(blake3(f"lace-exchange-plan/v1{transcript}".encode()).digest())),
            ("HelloTAI", f"{seconds:010}:{nanoseconds:09}"),
            ("HelloTickInterval", "10000000000"),
            ("HelloRecordFormat", "H3"),
            *(("HelloLimit", name, value) for name, value in self.capabilities),
        ]
        self._say(mine)
        other = self._hear()
        assert of(other, "HelloExchangePlan") == of(mine, "HelloExchangePlan")
        hellos = [[said_as(line) for line in hello] for hello in (mine, other)]
        self._key = Key(*(hellos if self.index == 0 else hellos[::-1]))
        self.is_comparing, self._is_packing = (
            all(("HelloLimit", name, "1") in hello for hello in (mine, other))
            for name in ("x_differences", "x_compression")
        )

    # --- a loop --------------------------------------------------------------------------------------------------

    def _loop(self) -> bool:
        """Whether it was quiet."""
        own = set(self.records)
        self._listed: list[str] = []  # by us, of what differs
        try:
            theirs = self._reconcile(own)
        except Dropped:
            theirs = self._listings(own)
        is_quiet = theirs == own and self.is_comparing
        self._base, self._before = theirs, own
        self._given, self._got = set(), set()
        return is_quiet or self._transfer(own, theirs)

    def _reconcile(self, own: set[str]) -> set[str]:
        """What the peer's set is."""
        if not self.is_comparing:
            return self._listings(own)
        mine = self._key.summary(own)
        if self._base is None:
            root = ("DifferenceRoot", str(len(own)), self._key.root(own))
            self._say([root, *([("DifferenceSummary", *mine.texts())] if self.index == 0 else [])])
            adv = self._hear_adv()
            if "DifferenceRoot" not in {line[0] for line in adv}:
                self._list(own)  # it listed, so its listing is all there is to hear
                return set(of(adv, "Advertised"))
            if root in adv:
                return own
            if self.index == 1:
                self._told = told_in(adv)
            return self._sketch(own, mine)
        came = own - self._before
        if came >= self._got:
            came -= self._got
        withdrawn: list[Line] = [("DifferenceWithdrawn", record) for record in sorted(self._before - own)]
        self._listed = sorted(came)
        self._say([*self._claims(came), *withdrawn, ("DifferenceSummary", *mine.texts())])
        adv = self._hear_adv()
        if "DifferenceSummary" not in {line[0] for line in adv}:
            self._list(own)
            return set(of(adv, "Advertised"))
        self._told = told_in(adv)
        changed = (self._base - set(of(adv, "DifferenceWithdrawn"))) | set(of(adv, "Advertised"))
        for made_up in (own, changed | self._given, changed - self._given):
            if self._key.summary(made_up).agrees(self._told):
                return made_up
        self._say(ASK)
        self._require_no_drop(self._hear())
        return self._sketch(own, mine)

    def _hear_adv(self) -> list[Line]:
        """A block of ticks alone begins no loop (P19)."""
        while (adv := self._hear()) and {line[0] for line in adv} == {"TickReady"}:
            pass
        return adv

    def _claims(self, records: Iterable[str]) -> list[Line]:
        return [("Advertised", record, self._source) for record in sorted(records)]

    def _list(self, own: set[str]) -> None:
        self._say(self._claims(own))

    def _listings(self, own: set[str]) -> set[str]:
        self._listed = []
        self._list(own)
        return set(of(self._hear_adv(), "Advertised"))

    def _require_no_drop(self, lines: list[Line]) -> list[Line]:
        if lines == DROP:
            raise Dropped
        return lines

    def _doubt(self) -> None:
        self._say(DROP)
        raise Dropped

    # --- the sketch ----------------------------------------------------------------------------------------------

    def _sketch(self, own: set[str], mine: Summary) -> set[str]:
        names = {self._key.keyed_id(record)[0]: record for record in own}
        return self._ask(own, names) if self.index == 0 else self._tell(own, names, mine)

    def _ask(self, own: set[str], names: dict[int, str]) -> set[str]:
        symbols: list[Symbol] = []
        while True:
            block = self._require_no_drop(self._hear())
            if not symbols:
                self._told = told_in(block[:1])
                block = block[1:]
            for _, start, text in block:
                assert start == str(len(symbols))
                symbols += symbols_of(text)
            found = self._key.decode(list(map(minus, self._key.symbols(own, len(symbols)), symbols)))
            if found is not None:
                break
            self._say([("DifferenceMore", str(len(symbols) * 3 // 2 + 1))])
        absent, lacking = found
        if not absent <= names.keys():
            self._doubt()
        ascending = sorted(lacking)
        texts = [short_ids_text(ascending[at : at + 90]) for at in range(0, len(ascending), 90)]
        lacks: list[Line] = [("DifferenceLacks", text) for text in texts]
        self._listed = sorted(names[short] for short in absent)
        self._say([*lacks, *self._claims(self._listed)])
        listed = of(self._require_no_drop(self._hear()), "Advertised")
        theirs = (own - set(self._listed)) | set(listed)
        if not self._key.summary(theirs).agrees(self._told):
            self._say(DROP)
            self._hear()  # its requests, forgotten
            raise Dropped
        return theirs

    def _tell(self, own: set[str], names: dict[int, str], mine: Summary) -> set[str]:
        start, end = 0, 24 + int(1.75 * estimate(mine, self._told))
        first: list[Line] = [("DifferenceSummary", *mine.texts())]
        while True:
            symbols = self._key.symbols(own, end)
            self._say([*first, *self._symbol_lines(symbols, start)])
            reply = self._require_no_drop(self._hear())
            if not of(reply, "DifferenceMore"):
                break
            first, start, end = [], end, int(of(reply, "DifferenceMore")[0])
        named = [short for text in of(reply, "DifferenceLacks") for short in short_ids_of(text)]
        assert named == sorted(set(named))
        if not names.keys() >= set(named):
            self._doubt()
        self._listed = sorted(names[short] for short in named)
        theirs = (own - set(self._listed)) | set(of(reply, "Advertised"))
        if not self._key.summary(theirs).agrees(self._told):
            self._doubt()
        self._say(self._claims(self._listed))
        return theirs

    def _symbol_lines(self, symbols: Sequence[Symbol], start: int) -> list[Line]:
        return [
            ("DifferenceSymbols", str(at), symbols_text(symbols[at : at + self.per_line]))
            for at in range(start, len(symbols), self.per_line)
        ]

    # --- requests and records ------------------------------------------------------------------------------------

    def _transfer(self, own: set[str], theirs: set[str]) -> bool:
        """Whether neither asked for anything."""
        wanted = sorted(theirs - own)
        self._say([("MayRequest", record) for record in wanted])
        asked = self._hear()
        if asked == ASK:
            self._base = self._sketch(own, self._key.summary(own))
            return self._transfer(own, self._base)
        if asked == DROP:
            self._base = self._listings(own)
            return self._transfer(own, self._base)
        requested = of(asked, "MayRequest")
        if counts := of(asked, "DifferenceAll"):
            assert counts == [str(len(self._listed))]
            requested = self._listed
        if not wanted and not requested:
            return True
        sent = [self.records[record] for record in requested if record in self.records]
        gone: list[Line] = [("NotAvailable", record) for record in requested if record not in self.records]
        self._out.sendall(b"".join(sent) + b"\n")
        self._say(gone)
        self._given = set(requested)
        self._take(wanted)
        return False

    def _take(self, wanted: Sequence[str]) -> None:
        """Blobs and what embeds them: a record ends where the data of its Blob does."""
        while (line := self._line()) != b"\n":
            assert line.startswith(RECORD)
            name, whole = line[len(RECORD) : -1].decode(), line
            while (line := self._line()) != b"\n":
                whole += line
            size = int(re.findall(rb"^Data-Length: (\d+)$", whole, re.MULTILINE)[-1])
            whole += b"\n" + self._in.read(size)
            assert name in wanted
            payload = whole[whole.index(b"\n") + 1 :]
            assert name[2:-3] == b64a(blake3(payload).digest())
            self.records[name] = whole
            self._got.add(name)
        assert not set(of(self._hear(), "NotAvailable")) - set(wanted)
