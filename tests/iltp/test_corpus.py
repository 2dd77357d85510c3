"""Every input that fuzzing began with or found keeps its promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iltp.promises import check_codec, check_session
from iltp.stream_samples import PREFACE
from tries import tries

CORPUS = sorted((Path(__file__).parents[1] / "corpus" / "iltp").iterdir())
STREAMS = [path.read_bytes() for path in CORPUS]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_corpus_keeps_the_promises(path: Path) -> None:
    check_codec(path.read_bytes())
    check_session(path.read_bytes())


@given(st.sampled_from(STREAMS), st.integers(0, 3000), st.integers(0, 60), st.binary(max_size=12))
def test_edited_streams_keep_the_promises_of_the_codec(stream: bytes, at: int, cut: int, inserted: bytes) -> None:
    check_codec(stream[:at] + inserted + stream[at + cut :])


@tries(25)
@given(st.sampled_from(STREAMS), st.integers(0, 3000), st.integers(0, 60), st.binary(max_size=12))
def test_edited_streams_keep_the_promises_of_a_session(stream: bytes, at: int, cut: int, inserted: bytes) -> None:
    check_session(stream[:at] + inserted + stream[at + cut :])


@tries(25)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_after_the_preface_end_a_session_cleanly(data: bytes) -> None:
    check_session(PREFACE + data)
