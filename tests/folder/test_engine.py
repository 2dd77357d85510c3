"""Real folders over real laces: what is in one is in the other, and what goes wrong is told and loses nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import lace
from lace.folder.disk import RealDisk
from lace.folder.engine import Folder, FolderLimits, FolderQuestion, RoundReport
from lace.folder.lacetree import FolderPlace
from lace.folder.memory import Memory, Signature
from lace.folder.planner import Do
from lace.folder.trees import Item, ShownItem
from lace.notation.tai import TAI
from lace.people.kinds import PolicyKind
from lace.people.root import Root
from lace.porcelain.exchange import interlace
from lace.porcelain.membership import admit, put_out, roster
from lace.porcelain.policy import set_policy
from lace.records.fileform import FileKind
from lace.records.keys import SigningKey, SigningSecret
from lace.runtime.identity.keyring import KeyRing

PLACE = FolderPlace(group="club", app="files")
Opened = Callable[..., Folder]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:

        def make(name: str = "one", limits: FolderLimits | None = None) -> Folder:
            root = tmp_path / name
            (root / ".lace").mkdir(parents=True, exist_ok=True)
            notes = stack.enter_context(lace.open(root / ".lace" / "notes.lace", create=True))
            disk, memory = stack.enter_context(RealDisk(root)), stack.enter_context(Memory(root / ".lace" / "agreed"))
            return Folder(notes, PLACE, disk, memory, limits=limits, now_ns=time.time_ns)

        yield make


def files_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and ".lace" not in path.relative_to(root).parts
    }


def root_of(folder: Folder) -> Path:
    assert isinstance(folder.disk, RealDisk)
    return folder.disk.root


def put(folder: Folder, files: dict[str, bytes | None]) -> None:
    for name, content in files.items():
        path = root_of(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True) if content is None else path.write_bytes(content)


def together(*folders: Folder) -> list[RoundReport]:
    """Rounds and exchanges until nothing moves."""
    reports: list[RoundReport] = []
    for _ in range(4):
        reports = [folder.rounds() for folder in folders]
        if len(folders) == 2:
            interlace(folders[0].lace, folders[1].lace, expose="all")
    return reports


FILES = {"a": b"a", "deep/er/b": b"b" * 5000, "empty": b"", "big": os.urandom(700_000)}


def test_what_is_put_into_one_folder_comes_out_of_the_other(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, FILES)
    os.chmod(root_of(one) / "a", 0o755)
    os.utime(root_of(one) / "big", ns=(10**18, 10**18))
    (root_of(one) / "hollow").mkdir()
    (root_of(one) / "to").symlink_to("deep/er")
    reports = together(one, other)
    assert files_of(root_of(other)) == FILES
    assert os.access(root_of(other) / "a", os.X_OK)
    assert (root_of(other) / "big").stat().st_mtime_ns == 10**18
    assert (root_of(other) / "hollow").is_dir()
    assert os.readlink(root_of(other) / "to") == "deep/er"
    assert [report.is_at_rest and not report.troubles for report in reports] == [True, True]
    records = one.lace.stat().records
    assert not opened("one").rounds().done
    assert one.lace.stat().records == records


def test_changes_deletions_and_renames_follow(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, FILES)
    together(one, other)
    blobs = {row.hash for row in one.lace.list_blobs()}
    put(one, {"a": b"changed", "empty": None})
    (root_of(one) / "deep").rename(root_of(one) / "moved")
    (root_of(one) / "big").rename(root_of(one) / "bigger")
    together(one, other)
    expected = {"a": b"changed", "moved/er/b": FILES["deep/er/b"], "bigger": FILES["big"]}
    assert files_of(root_of(one)) == files_of(root_of(other)) == expected
    assert not (root_of(other) / "deep").exists()
    assert {row.hash for row in one.lace.list_blobs()} == blobs, "a rename moves no content"


def test_two_who_change_one_file_both_keep_both_and_removing_one_settles_it(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, {"a.txt": b"base\n"})
    together(one, other)
    put(one, {"a.txt": b"mine\n"})
    put(other, {"a.txt": b"theirs\n"})
    reports = together(one, other)
    found = files_of(root_of(one))
    assert found == files_of(root_of(other))
    assert set(found.values()) == {b"mine\n", b"theirs\n"}
    (beside,) = found.keys() - {"a.txt"}
    assert beside.startswith("a (conflict 20")
    assert reports[0].contested == {"a.txt": [beside]}
    put(other, {beside: None})
    reports = together(one, other)
    assert files_of(root_of(one)) == files_of(root_of(other)) == {"a.txt": found["a.txt"]}
    assert reports[0].contested == {}


def test_texts_changed_at_different_places_are_merged(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    lines = [b"%d\n" % number for number in range(20)]
    put(one, {"a.txt": b"".join(lines)})
    together(one, other)
    put(one, {"a.txt": b"".join([b"first\n", *lines[1:]])})
    put(other, {"a.txt": b"".join([*lines[:-1], b"last\n"])})
    together(one, other)
    assert (
        files_of(root_of(one)) == files_of(root_of(other)) == {"a.txt": b"".join([b"first\n", *lines[1:-1], b"last\n"])}
    )


def test_an_edit_outlives_a_deletion_made_elsewhere(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, {"a": b"base"})
    together(one, other)
    put(one, {"a": b"edit"})
    put(other, {"a": None})
    together(one, other)
    assert files_of(root_of(one)) == files_of(root_of(other)) == {"a": b"edit"}
    assert one.lace.get("//club//files//a") == b"edit"


def test_one_byte_inserted_into_much_stores_little(opened: Opened) -> None:
    one = opened()
    content = os.urandom(20_000_000)
    put(one, {"big": content})
    one.rounds()
    before = one.lace.stat().stored_bytes
    put(one, {"big": content[:5_000_000] + b"!" + content[5_000_000:]})
    one.rounds()
    assert one.lace.get("//club//files//big")[5_000_000:5_000_001] == b"!"
    assert one.lace.stat().stored_bytes - before < 1_000_000


def test_a_folder_that_is_gone_deletes_nothing(opened: Opened, tmp_path: Path) -> None:
    one = opened()
    put(one, {"a": b"a"})
    one.rounds()
    root_of(one).rename(tmp_path / "elsewhere")
    root_of(one).mkdir()
    report = one.rounds()
    assert report.stopped is not None
    assert report.stopped.question is FolderQuestion.ROOT_GONE
    (root_of(one)).rmdir()
    (tmp_path / "elsewhere").rename(root_of(one))
    assert one.lace.get("//club//files//a") == b"a"


@pytest.mark.parametrize("side", [0, 1])
def test_a_large_deletion_is_asked_about(opened: Opened, side: int) -> None:
    one, other = opened("one"), opened("other")
    put(one, {f"{number}": b"%d" % number for number in range(20)})
    together(one, other)
    for number in range(15):
        (root_of(one) / str(number)).unlink()
    report = one.rounds()
    assert report.stopped is not None
    assert report.stopped.question is FolderQuestion.MANY_RETRACTED
    assert not report.done
    if side:
        one.rounds(go_on=True)
        interlace(one.lace, other.lace, expose="all")
        report = other.rounds()
        assert report.stopped is not None
        assert report.stopped.question is FolderQuestion.MANY_REMOVED
        assert len(files_of(root_of(other))) == 20
        assert other.rounds(go_on=True).done[Do.REMOVE] == 15


def test_an_old_copy_of_the_lace_is_noticed_and_loses_nothing(opened: Opened, tmp_path: Path) -> None:
    one = opened()
    put(one, {"a": b"old", "b": b"b"})
    one.rounds()
    one.lace.export(tmp_path / "old.bundle")
    put(one, {"a": b"new", "c": b"c"})
    one.rounds()
    one.memory.close()
    one.lace.close()
    for path in (root_of(one) / ".lace").glob("notes.lace*"):
        path.unlink()
    with lace.open(root_of(one) / ".lace" / "notes.lace", create=True) as fresh:
        fresh.import_(tmp_path / "old.bundle")
    again = opened()
    report = again.rounds()
    assert report.stopped is not None
    assert report.stopped.question is FolderQuestion.OLD_LACE
    assert files_of(root_of(one)) == {"a": b"new", "b": b"b", "c": b"c"}
    again.rounds(go_on=True)
    assert {b"new", b"old", b"b", b"c"} == set(files_of(root_of(one)).values())


def test_a_file_that_cannot_be_read_stops_no_other_and_is_not_deleted(opened: Opened) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    one = opened()
    put(one, {"locked": b"x", "a": b"a"})
    one.rounds()
    os.chmod(root_of(one) / "locked", 0)
    put(one, {"b": b"b"})
    report = one.rounds()
    assert [trouble.name for trouble in report.troubles] == ["locked"]
    assert report.done[Do.TAKE] == 1


def test_a_full_disk_is_told_and_writes_nothing(opened: Opened) -> None:
    one, other = opened("one"), opened("other", FolderLimits(min_free_bytes=1 << 60))
    put(one, {"a": b"a"})
    reports = together(one, other)
    assert [trouble.why for trouble in reports[1].troubles] == ["the disk is nearly full"]
    assert files_of(root_of(other)) == {}


def test_names_that_would_lead_out_of_the_folder_are_told_and_not_written(opened: Opened, tmp_path: Path) -> None:
    one = opened()
    link = {"headers": {"File-Kind": "link"}}
    for name, content, more in [
        ("^2E^2E/x", b"evil", {}), ("a^2Fb", b"evil", {}), (".lace/agreed", b"evil", {}), ("out", b"../other", link),
        ("root", b"/etc/passwd", link), ("fine", b"fine", {}), ("d/.lace-1-2.part", b"evil", {}),
    ]:  # fmt: skip
        one.lace.put(content, group="club", app="files", name=name, **more)  # type: ignore[arg-type]
    report = one.rounds()
    assert files_of(root_of(one)) == {"fine": b"fine"}
    assert {trouble.name for trouble in report.troubles} == {
        "^2E^2E/x", "a^2Fb", ".lace/agreed", "out", "root", "d/.lace-1-2.part"}  # fmt: skip
    assert one.lace.stat().records == 7  # and nothing is retracted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]


def test_a_link_put_in_the_way_leads_nowhere(opened: Opened, tmp_path: Path) -> None:
    one, other = opened("one"), opened("other")
    (tmp_path / "outside").mkdir()
    put(one, {"d/a": b"a"})
    together(one, other)
    put(one, {"d/b": b"b", "d/a": b"changed"})
    (root_of(other) / "d" / "a").unlink()
    (root_of(other) / "d").rmdir()
    (root_of(other) / "d").symlink_to(tmp_path / "outside")
    together(one, other)
    assert not list((tmp_path / "outside").iterdir())


def test_a_file_and_a_folder_of_one_name_are_told(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, {"a": b"file"})
    put(other, {"a/b": b"below"})
    reports = together(one, other)
    assert files_of(root_of(one)) == {"a": b"file"}
    assert files_of(root_of(other)) == {"a/b": b"below"}
    assert [[trouble.name for trouble in report.troubles] for report in reports] == [["a/b"], ["a"]]


def test_memory_that_was_cut_short_is_found_out_again(opened: Opened) -> None:
    one = opened()
    put(one, FILES)
    one.rounds()
    one.memory.close()
    path = one.memory.path
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        again = opened()
        assert not again.rounds().done
        again.memory.close()
        again.lace.close()
    assert files_of(root_of(one)) == FILES


def test_versions_of_plain_puts_replace_each_other(opened: Opened) -> None:
    one = opened()
    for content in (b"1", b"2", b"3"):
        one.lace.put(content, group="club", app="files", name="a")
    one.rounds()
    assert files_of(root_of(one)) == {"a": b"3"}
    one.lace.put(b"4", group="club", app="files", name="a")
    assert one.rounds().done == {Do.WRITE: 1}
    assert files_of(root_of(one)) == {"a": b"4"}


@pytest.mark.clause("082-BASE-04")
def test_a_version_is_dated_after_what_it_takes_the_place_of_even_if_the_clock_is_behind(opened: Opened) -> None:
    one = opened()
    ahead = lace.TAI.of_unix_ns(time.time_ns() + 3600 * 10**9)
    one.lace.put(b"ahead", group="club", app="files", name="a", tai=ahead)
    one.rounds()
    put(one, {"a": b"mine"})
    one.rounds()
    assert one.lace.get("//club//files//a") == b"mine"
    assert files_of(root_of(one)) == {"a": b"mine"}


def test_what_a_killed_process_left_half_written_goes_and_harms_no_file_it_is_another_name_of(opened: Opened) -> None:
    one = opened()
    put(one, {"d/a": b"a"})
    one.rounds()
    os.link(root_of(one) / "d" / "a", root_of(one) / "d" / f".lace-{os.getpid()}.part")
    one.lace.put(b"b", group="club", app="files", name="d/b")
    one.rounds()
    assert files_of(root_of(one)) == {"d/a": b"a", "d/b": b"b"}


def test_a_file_in_the_place_of_one_that_is_shown_beside_another_comes_and_goes(opened: Opened) -> None:
    one, other = opened("one"), opened("other")
    put(one, {"a": b"base"})
    together(one, other)
    put(one, {"a": b"mine"})
    put(other, {"a": b"theirs"})
    together(one, other)
    (beside,) = files_of(root_of(one)).keys() - {"a"}
    put(one, {beside: b"own"})
    together(one, other)
    put(one, {beside: None})
    together(one, other)
    put(one, {"a": b"last"})
    together(one, other)
    assert files_of(root_of(one)) == files_of(root_of(other))
    assert files_of(root_of(one))["a"] == b"last"


@pytest.mark.clause("082-HEAD-05")
def test_a_file_of_somebody_who_may_not_write_stays_on_the_disk_and_comes_in_when_they_may(
    opened: Opened, tmp_path: Path
) -> None:
    """Nobody sees a version that the policy bars: stored, it would look deleted elsewhere, and go from the disk."""
    founder, bob = SigningKey.generate(), SigningSecret.generate()
    KeyRing(tmp_path).add("bob", bob)
    member = SigningKey.from_secret(bob)
    with lace.open(tmp_path / "club.lace", create=True, keys=KeyRing(tmp_path)) as club:
        root = Root(PLACE.group, founder.verifier)
        set_policy(club, {PolicyKind.TIP: 'writers = "members"\n'}, root, founder)
        folder = Folder(club, PLACE, opened().disk, opened().memory, sign=member.verifier, now_ns=time.time_ns)
        put(folder, {"early": b"early"})
        for _ in range(2):
            report = folder.rounds()
            assert [one.name for one in report.troubles] == ["early"]
            assert "only others" in report.troubles[0].why
            assert report.is_at_rest
        assert files_of(root_of(folder)) == {"early": b"early"}
        assert not list(club.list("//club//files//"))
        admit(club, member.verifier, founder, called="bob")
        put(folder, {"mine": b"mine"})
        assert not folder.rounds().troubles
        assert {row["Name"] for row in club.list("//club//files//")} == {"early", "mine"}
        # What somebody wrote who is put out, and what is not among what stands, is theirs still.
        (bob_here,) = roster(club).named("bob")
        put_out(club, bob_here, founder, since=TAI.of_unix_ns(0))
        put(folder, {"early": None, "late": b"late"})
        report = folder.rounds()
        assert {one.name for one in report.troubles} == {"mine", "late"}
        assert files_of(root_of(folder)) == {"mine": b"mine", "late": b"late"}
        admit(club, member.verifier, founder, called="bob")
        folder.rounds()
        assert files_of(root_of(folder)) == {"mine": b"mine", "late": b"late"}


@pytest.mark.long
def test_a_folder_at_rest_is_seen_to_be_so_still_tells_its_conflicts_and_notices_every_kind_of_change(
    opened: Opened,
) -> None:
    one, other = opened("one"), opened("other")
    put(one, FILES | {"c": b"base"})
    (root_of(one) / "hollow").mkdir()
    together(one, other)
    put(one, {"c": b"mine"})
    put(other, {"c": b"theirs"})
    told = together(one, other)[0].contested
    assert list(told) == ["c"]
    time.sleep(2.1)  # file systems may keep times by two seconds, so what is newer is read again
    assert one.rounds().contested == told
    again = opened("one")
    assert (again.rounds().contested, again.tree.cursor is not None) == (told, True)
    root = root_of(one)
    changes: list[tuple[Callable[[], object], dict[Do, int]]] = [
        (lambda: (root / "a").chmod(0o755), {Do.TAKE: 1}),
        (lambda: (root / "hollow" / "x").write_bytes(b"x"), {Do.TAKE: 1, Do.RETRACT: 1}),
        (lambda: (root / "empty").unlink(), {Do.RETRACT: 1}),
        (lambda: put(one, {"new": b"new"}), {Do.TAKE: 1}),
    ]
    for change, done in changes:
        change()
        report = again.rounds()
        assert (report.done, report.contested) == (done, told)
    again.lace.put(b"from elsewhere", group="club", app="files", name="there")
    assert again.rounds().done == {Do.WRITE: 1}


def test_memory_says_whether_a_file_looks_as_it_did(tmp_path: Path) -> None:
    look = Signature(5, 10**18 + 7, 10**18 + 8, 12)
    with Memory(tmp_path / "agreed") as memory:
        memory.agree("a", ShownItem(Item("B.x", FileKind.FILE, True), ("P.1", "P.2")), look)
        memory.agree("new", ShownItem(Item("B.y"), ("P.3",)), None)  # it may have changed in the same tick
        memory.agree("a (2)", ShownItem(Item("B.z"), ("P.4",), "a"), look)
        memory.agree("hollow", ShownItem(Item("", FileKind.FOLDER), ("P.5",)), None)
        memory.agree("gone", ShownItem(Item("B.y"), ("P.6",)), look)
        memory.agree("gone", None, None)
    with Memory(tmp_path / "agreed") as memory:
        assert memory.is_as("a", FileKind.FILE, True, look)
        assert memory.is_as("a", FileKind.FILE, None, look)  # the disk cannot tell
        assert not memory.is_as("a", FileKind.FILE, False, look)
        assert not memory.is_as("a", FileKind.LINK, True, look)
        for other in [(4, *look[1:]), (5, 4, *look[2:]), (*look[:2], 4, 12), (*look[:3], 4)]:
            assert not memory.is_as("a", FileKind.FILE, True, Signature(*other))
        assert not memory.is_as("new", FileKind.FILE, False, look)
        assert not memory.is_as("gone", FileKind.FILE, False, look)
        assert memory.is_as("hollow", FileKind.FOLDER, None, Signature(0, 0, 0, 0))
        assert list(memory.contested()) == [("a (2)", "a")]
        assert memory.agreed["a"] == ShownItem(Item("B.x", FileKind.FILE, True), ("P.1", "P.2"))
        assert (memory.looked("a"), memory.looked("new"), memory.looked("gone")) == (look, None, None)
        assert set(memory.agreed) == {"a", "new", "a (2)", "hollow"}


def test_a_name_that_only_resembles_one_of_ours_is_somebodys_file(opened: Opened) -> None:
    one = opened()
    put(one, {".lace-notes.part": b"mine", "d/.lace-1.partial": b"mine too", "d/.lace-12-3.part": b"left by a process"})
    assert one.rounds().done == {Do.TAKE: 2}
    assert files_of(root_of(one)) == {".lace-notes.part": b"mine", "d/.lace-1.partial": b"mine too"}
