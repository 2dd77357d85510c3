"""`lace gc`: what no rule keeps goes, what belongs to what is kept stays, and each decision can be explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import lace as api
from lace.cli.app import app
from lace.porcelain.keeping import PART_OF, WITHDRAWS, collect, decide

NEWEST = """At(P,N,T) :- Field(P,'Name',_,N), Field(P,'TAI',_,T).
Newer(P,Q) :- At(P,N,T), At(Q,N,U), LexCompare(U,'>',T).
Keep(P) :- Have(P), Field(P,'Name',_,_), Cardinality(Newer(P,Q),'<','1').
"""
FAMILY = "Keep(P) :- Field(P,'Group',_,'family').\n"
EVIDENCE = "Keep(E) :- Keep(P), RecordLink(P,_,_,'evidence',E).\n"


def put(lace: api.Lace, name: str, second: int, group: str = "club", **more: Any) -> str:
    tai = f"17000000{second:02}:000000000"
    return lace.put(b"%d" % second, group=group, app="notes", name=name, tai=tai, **more)


def command(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done


def test_the_newest_a_group_and_the_evidence_of_what_is_kept_stay() -> None:
    with api.open(":memory:") as lace:
        evidence = put(lace, "seen", 1)
        put(lace, "seen", 2)
        old = put(lace, "x", 3)
        newest = put(lace, "x", 4, links=[("evidence", evidence)])
        family = [put(lace, "y", second, "family") for second in (5, 6)]
        found = decide(lace, NEWEST + FAMILY + EVIDENCE)
        assert [record for record, _, _ in found.lines] == [old]
        assert [rule.keeps for rule in found.rules] == [3, 2, 1]
        told = {
            fate.hash: [rule.place for rule in fate.kept_by] for fate in found.fates([old, newest, evidence, *family])
        }
        assert told == {
            old: [], newest: ["<rules>:3"], evidence: ["<rules>:5"], family[0]: ["<rules>:4"],
            family[1]: ["<rules>:3", "<rules>:4"],
        }  # fmt: skip
        assert collect(lace, found) == 1
        assert decide(lace, NEWEST + FAMILY + EVIDENCE).lines == []


def test_parts_of_content_stay_with_it_and_go_with_it() -> None:
    with api.open(":memory:", limits=api.RecordLimits(max_data_bytes=1000)) as lace:
        for second, name in ((1, "kept"), (2, "kept"), (3, "gone")):
            content = b"".join(b"%s %d %d\n" % (name.encode(), second, number) for number in range(400))
            lace.put(content, group="club", app="notes", name=name, tai=f"170000000{second}:000000000")
        rules = "Keep(P) :- Field(P,'Name',_,'kept'), Field(P,'TAI',_,T), LexCompare(T,'>','1700000001:500000000').\n"
        found = decide(lace, rules)
        assert set(found.belongs.values()) == {PART_OF}
        collect(lace, found)
        assert [row["Name"] for row in lace.list()] == ["kept"]
        assert len(lace.get("//club//notes//kept")) > 4000
        assert lace.unlinked_blobs() == []


def test_a_kept_version_does_not_stand_again_because_its_retraction_went() -> None:
    with api.open(":memory:") as lace:
        record = put(lace, "x", 1)
        lace.retract("//club//notes//x", tai="1700000002:000000000")
        lace.undo("//club//notes//x", tai="1700000003:000000000")
        lace.retract(record, tai="1700000004:000000000")
        found = decide(lace, "Keep(P) :- Field(P,'Data-Length',_,'1').")
        assert list(found.belongs.values()) == [WITHDRAWS]
        collect(lace, found)
        with pytest.raises(api.NotFound, match="was withdrawn"):
            lace.get("//club//notes//x")


def test_the_command_shows_first_and_removes_when_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with api.open("a.lace", create=True) as lace:
        old, new = put(lace, "x", 1), put(lace, "x", 2)
    Path("keep.lace").write_text(NEWEST)
    for _ in range(2):
        lines = [
            json.loads(line)
            for line in command("gc", "a.lace", "--keep", "keep.lace", "--why", new, "--json").stdout.splitlines()
        ]
        assert lines[0] == {"kept": 1, "removed": 1, "applied": False}
        assert lines[2] == {"asked": new, "here": True, "kept_by": ["keep.lace:3"], "because": ""}
        assert lines[3]["hash"] == old
    assert "nothing was removed" in command("gc", "a.lace", "--keep", "keep.lace", "--dry-run").stderr
    assert "removed 1 record" in command("gc", "a.lace", "--keep", "keep.lace", "--apply").stderr
    assert "removed 0 records" in command("gc", "a.lace", "--keep", "keep.lace", "--apply").stderr
    Path("nothing.lace").write_text("Keep(P) :- Field(P,'Group',_,'nowhere').")
    assert "keep no record at all" in command("gc", "a.lace", "--keep", "nothing.lace", "--apply", code=1).stderr
    Path("other.lace").write_text("Kept(P) :- Have(P).")
    command("gc", "a.lace", "--keep", "other.lace", code=1)
    command("gc", "a.lace", code=2)
