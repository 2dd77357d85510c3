"""News of a folder: what people do is news, what the folder does for itself is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace
from lace.folder.watching import watched


@pytest.mark.long
def test_what_the_folder_writes_for_itself_is_no_news_however_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one" / ".lace").mkdir(parents=True)
    with lace.open("one/.lace/notes.lace", create=True) as notes, watched(Path("one"), notes) as news:
        told = []
        monkeypatch.setattr(news, "tell", lambda: told.append(1))
        for number in range(200):  # until the watcher is at work
            (tmp_path / "one" / f"f{number}").touch()
            news.stopped.wait(0.05)
            if told:
                break
        assert told
        news.stopped.wait(0.5)
        told.clear()
        (tmp_path / "one" / ".lace" / "clock").touch()
        (tmp_path / "one" / ".lace-1.part").touch()
        news.stopped.wait(0.7)
        assert not told
