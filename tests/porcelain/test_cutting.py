"""Where content is cut: pinned, and whatever is read in whichever portions."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from pathlib import Path

import pytest

import lace
from lace.porcelain.cutting import INLINE_BYTES, cut_content

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "folder.json").read_text(encoding="utf-8"))


class Dribble(BytesIO):
    """Gives less than was asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 7_777) if size and size > 0 else size)


@pytest.mark.clause("082-CUT-01")
@pytest.mark.parametrize("source", [BytesIO, Dribble])
@pytest.mark.parametrize("vector", VECTORS["cuts"], ids=lambda vector: str(vector["bytes"]))
def test_the_vectors_of_cuts(vector: dict, source: type[BytesIO]) -> None:  # type: ignore[type-arg]
    data = hashlib.shake_128(vector["shake_128_of"].encode()).digest(vector["bytes"])
    chunks = list(cut_content(source(data)))
    assert [len(chunk) for chunk in chunks] == vector["chunks"]
    assert b"".join(chunks) == data


@pytest.mark.clause("082-CUT-01")
@pytest.mark.parametrize(("size", "blobs"), [(0, 0), (INLINE_BYTES, 0), (INLINE_BYTES + 1, 1)])
def test_short_content_is_in_its_record_and_the_same_content_is_shared(tmp_path: Path, size: int, blobs: int) -> None:
    with lace.open(tmp_path / "notes.lace", create=True) as notes:
        content = b"x" * size
        for name in ("a", "b"):
            notes.put(BytesIO(content), group="u", app="f", name=name, size=size, cut=cut_content)
            assert notes.get(f"//u//f//{name}") == content
        assert len(list(notes.list_blobs())) == blobs
