"""What every parser promises for any bytes: a value or one of its own errors, and the same by every way of reading.

Rule: a target takes bytes and raises nothing but AssertionError, and that only where a promise is broken.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress

from websockets.exceptions import WebSocketException
from websockets.http11 import Request
from websockets.server import ServerProtocol

from iltp.promises import check_codec, check_session
from interlace.pair import START_NS, blob, config_of
from interop.harness import filled
from lace.datalog.language.formatting import format_program
from lace.datalog.language.parser import parse_all_errors, parse_facts, parse_program
from lace.differences import wire
from lace.errors import InvalidInput, InvalidRecord, LaceError, LimitExceeded
from lace.iltp.address import WebSocketAddress
from lace.iltp.packed import parse_head, unpack
from lace.limits import SECOND_NS, EngineLimits, RecordLimits
from lace.notation.factline import format_fact, parse_fact, parse_plain_run
from lace.policy.select import select_all
from lace.policy.transcript import read_transcript, write_transcript
from lace.records.headpattern import parse_common
from lace.records.model import Parts
from lace.records.parse import parse_record
from lace.records.partcolumns import parse_alike
from lace.records.validate import validate
from lace.store.bundle import Frame, RejectedBytes, read_frames
from lace.transports.upgraderequest import Refused, RequestCheck
from runtime.memory_link import End

LIMITS = RecordLimits()
LINE_BYTES = 1024
BOUND = WebSocketAddress("127.0.0.1", 4790, secure=False)
SALT = 0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0
RULES = EngineLimits()


def check_record(data: bytes) -> None:
    """One reading is the reference of the other: the quick one may decline, never disagree."""
    quick = parse_common(data, LIMITS)
    try:
        slow = parse_record(data, LIMITS)
    except InvalidRecord:
        slow = None
    assert quick is None or quick == slow
    together = parse_alike([data, data], LIMITS)
    assert together is None or list(map(Parts._make, zip(*together, strict=True))) == [slow, slow]
    try:
        valid = validate(data, verify_signature=False)
    except InvalidRecord:
        assert slow is None
        return
    assert valid.parts == slow
    assert valid.stored == data


def check_bundle(data: bytes) -> None:
    """Every byte is in one record or in one rejected piece, in order; a record is what `validate` reads."""
    pieces = list(read_frames(io.BytesIO(data), 0, len(data), LIMITS))
    assert b"".join(piece.data for piece in pieces) == data
    at = 0
    for piece in pieces:
        assert isinstance(piece, Frame | RejectedBytes)
        assert piece.offset == at
        at += len(piece.data)


def check_factline(data: bytes) -> None:
    """Lines read at once are the lines read one by one, and what is written is read again as it was."""
    lines = data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n")
    facts = []
    for line in lines:
        try:
            facts.append(parse_fact(line, LINE_BYTES))
        except InvalidInput:
            facts.append(None)
    for fact in facts:
        if fact is not None:
            again = format_fact(fact)
            assert parse_fact(again, len(again.encode())) == fact
    run = b"".join(line + b"\n" for line in lines)
    at_once = parse_plain_run(run) if run and max(map(len, lines)) <= LINE_BYTES else None
    assert at_once is None or list(at_once) == facts


def check_rules(data: bytes) -> None:
    """A program, or errors with their lines; what is formatted is the same program."""
    text = data.decode("utf-8", "replace")
    try:
        program, errors = parse_all_errors(text, limits=RULES)
    except LimitExceeded:
        return
    lines = text.count("\n") + 1
    assert all(1 <= (error.line or 1) <= lines for error in errors)
    with suppress(InvalidInput, LimitExceeded):
        list(parse_facts(text, limits=RULES))
    if not errors:
        written = format_program(program)
        assert format_program(parse_program(written, limits=RULES)) == written


def check_transcript(data: bytes) -> None:
    """Only the one canonical text of a plan is read."""
    with suppress(InvalidInput, LimitExceeded):
        found = read_transcript(data)
        assert write_transcript(found.operands, found.requirements, found.lowering) == found
        assert found.text.encode() == data


def check_handshake(data: bytes) -> None:
    """A request is answered or refused, the same whole and byte by byte."""
    whole = _handshake([data])
    if len(data) <= 2000:
        assert _handshake([data[at : at + 1] for at in range(len(data))]) == whole


def _handshake(pieces: list[bytes]) -> str:
    protocol = ServerProtocol()
    for piece in pieces:
        protocol.receive_data(piece)
    requests = [event for event in protocol.events_received() if isinstance(event, Request)]
    if not requests:
        failed = protocol.handshake_exc
        assert failed is None or isinstance(failed, WebSocketException | EOFError | ValueError)
        return type(failed).__name__
    try:
        return str(RequestCheck((), ()).check(requests[0], BOUND, "127.0.0.1"))
    except Refused as refusal:
        return f"{refusal.status} {refusal}"


def check_differences(data: bytes) -> None:
    """070's values: what is read is written as it was; packed lines inflate to what was told, or not at all."""
    texts = data.decode("latin-1").split("\n")
    with suppress(LaceError):
        assert wire.encode_summary(wire.decode_summary(*[*texts, "", "", ""][:3])) == tuple(texts[:3])
    with suppress(LaceError):
        assert wire.encode_root(*wire.decode_root(*[*texts, "", ""][:2])) == tuple(texts[:2])
    with suppress(LaceError):
        short = wire.decode_short_ids(texts)
        assert list(wire.decode_short_ids(list(wire.encode_short_ids(short)))) == list(short)
    with suppress(LaceError):
        read = wire.decode_symbols([("0", texts[0])], 0)
        assert list(wire.encode_symbols(read)) == texts[:1]
    head, _, packed = data.partition(b"\n")
    with suppress(LaceError):
        told, size = parse_head(head)
        assert len(unpack(packed[:size], told)) == told


def check_compared(data: bytes) -> None:
    """A session that offers 070, fed anything after its hello, ends in time and says little."""
    end = End(config_of(1, select_all(), salt=SALT, is_open=False), filled([blob(b"%d" % n) for n in range(40)]))
    end.session.start(START_NS)
    end.perform(START_NS)
    for at in range(0, len(data), 4096):
        end.session.receive_data(data[at : at + 4096], START_NS)
        end.perform(START_NS)
    for later in (31, 62):
        if end.session.outcome is None and end.session.next_timer is not None:
            end.session.handle_timer(START_NS + later * SECOND_NS)
            end.perform(START_NS + later * SECOND_NS)
    if end.session.outcome is None:
        end.session.receive_eof(START_NS + 90 * SECOND_NS)
        end.perform(START_NS + 90 * SECOND_NS)
    assert end.session.outcome is not None
    assert len(end.sent) < 1 << 20


TARGETS: dict[str, Callable[[bytes], None]] = {
    "record": check_record,
    "bundle": check_bundle,
    "factline": check_factline,
    "rules": check_rules,
    "transcript": check_transcript,
    "handshake": check_handshake,
    "differences": check_differences,
    "codec": check_codec,
    "session": check_session,
    "compared": check_compared,
}
FOLDERS = {"codec": "iltp", "session": "iltp"}
"""Where the corpus of a target stands, if not under its own name."""
