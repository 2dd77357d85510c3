"""What holds for any bytes at all: the promises that fuzzing and the corpus check."""

from __future__ import annotations

from iltp.stream_samples import read_in_pieces
from interlace.pair import START_NS, blob, config_of
from interop.harness import filled
from lace.limits import SECOND_NS
from lace.policy.select import select_all
from runtime.memory_link import End

MAX_BYTES_OUT = 1 << 20  # what a session may say to a peer of a few bytes
MODULE = select_all()
RECORD = blob(b"data!")


def check_codec(data: bytes) -> None:
    """Items or one stream error, the same whole, in sevens and byte by byte."""
    whole = read_in_pieces([data], eof=True)
    assert read_in_pieces([data[at : at + 7] for at in range(0, len(data), 7)], eof=True) == whole
    if len(data) <= 2000:
        assert read_in_pieces([data[at : at + 1] for at in range(len(data))], eof=True) == whole


def check_session(data: bytes) -> None:
    """A session that is fed anything comes to an end, says little, keeps its store, and ends in time if left alone."""
    end = End(config_of(1, MODULE), filled([RECORD]))
    end.session.start(START_NS)
    end.perform(START_NS)
    for at in range(0, len(data), 4096):
        end.session.receive_data(data[at : at + 4096], START_NS)
        end.perform(START_NS)
    if end.session.outcome is None and end.session.next_timer is not None:
        later = START_NS + 31 * SECOND_NS
        end.session.handle_timer(later)
        end.perform(later)
    if end.session.outcome is None:
        end.session.receive_eof(START_NS + 32 * SECOND_NS)
        end.perform(START_NS + 32 * SECOND_NS)
    assert end.session.outcome is not None
    assert len(end.sent) < MAX_BYTES_OUT
    assert end.session.buffered <= len(data)
    for record in end.have:
        assert end.store.get(record) is not None  # type: ignore[arg-type]  # a stored hash
