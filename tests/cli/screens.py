"""What every command writes to a real terminal: prepared files, scenes for each command, and a pseudo-terminal.

Rule: a scene is the command itself, in a process of its own whose terminal has a size and a kind. So that hundreds of
them are quick, the processes are forks of one that has loaded the command.

    .venv/bin/python tests/cli/screens.py why --columns 60        shows scenes as a person sees them
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.records.keys import SigningKey

HOSTILE = "evil\u202eboat\u200b\xad\x9b2J"  # turns and hides text, clears the screen; lines of records hold no C0
HOSTILE_CONTENT = f"{HOSTILE}\x1b[2J\x1b]0;title\x07\r\n"
RULES = """Titled(P,T) :- Field(P,'Title',_,T).
Old(P) :- Field(P,'TAI',_,T), LexCompare(T,'<','1700000000:000000000').
Linked(A,B) :- RecordLink(A,_,_,_,B), Titled(B,_).
"""
CASES = """[[case]]
name = "a title is found"
given = "Field('a','Title','0','x')"
expect = "Titled('a','x')"

[[case]]
name = "a title that is not there, told in a name that is longer than a narrow terminal is wide, as names are"
given = "Field('a','Title','0','x')"
expect = '''
Titled('a','x')
Titled('b','a title that is much longer than a narrow terminal is wide, as titles are')
'''
absent = "Titled('a','x')"
"""
ALL = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
SOUP = {"group": "club", "app": "recipes", "name": "soup", "text": "Leeks.", "signer": "Ada", "minute": 480}
SCENE = {"laces": [{"records": [SOUP], "select": ALL}, {"select": ALL}]}
SCENE_SECONDS = 60  # only a scene that hangs takes so long, however busy the machine is


@dataclass(frozen=True)
class Scene:
    """One command line; `until` ends a command that goes on by itself, as Ctrl-C does."""

    words: tuple[str, ...]
    typed: str = ""
    until: str = ""
    exits: tuple[int, ...] = (0,)
    is_silent: bool = False
    wraps: bool = False  # whether it prints bytes, facts or hashes as they are, of any length


@dataclass(frozen=True)
class Screen:
    """A kind of terminal."""

    columns: int
    settings: dict[str, str] = field(default_factory=dict)  # of the environment


@dataclass(frozen=True)
class Shot:
    """What a scene wrote, and how it ended."""

    scene: Scene
    screen: Screen
    written: str
    exit_code: int


# Wide and narrow, with colour and without. What the night adds is more of the same: width and colour do not meet.
SCREENS = [Screen(100), Screen(60), Screen(60, {"NO_COLOR": "1"})]
MORE_SCREENS = [Screen(100, {"NO_COLOR": "1"}), Screen(60, {"FORCE_COLOR": "1"})]


def scene(line: str, *more: str, **given: object) -> Scene:
    """A scene by its words; words with spaces come after the line."""
    return Scene((*line.split(), *more), **given)  # type: ignore[arg-type]


# By command of the catalogue. `{…}` stands for what `prepare` made.
SCENES: dict[str, list[Scene]] = {
    "put": [
        scene("put notes.lace --group u --app ding --name typed -", typed="hello\n\x04\x04\x04", wraps=True),
        scene("put notes.lace --group u --app folder folder", wraps=True),
        scene("put notes.lace //u//ding//elsewhere folder/a.txt", wraps=True),
        scene("put notes.lace --group u --app ding --name x missing.txt", exits=(2,)),
    ],
    "get": [
        scene("get notes.lace //u//ding//plain"),
        scene("get notes.lace {hostile}"),
        scene("get notes.lace //u//dnig//plain", exits=(1,)),
        scene("get other.lace --from unix:{socket} //u//ding//plain"),
    ],
    "checkout": [
        scene("checkout notes.lace //u//ding out", exits=(0, 1)),
        scene("checkout notes.lace out", exits=(1,)),
    ],
    "sync": [
        scene("sync folder --at //u//files --once", exits=(0, 1)),
        scene("sync folder --once", exits=(0, 1, 2)),
        scene("sync nowhere --once", exits=(2,)),
    ],
    "conflicts": [scene("conflicts folder", exits=(0, 1, 2))],
    "ls": [
        scene("ls notes.lace"),
        scene("ls notes.lace --columns Title,Content-Type"),
        scene("ls notes.lace --json", wraps=True),
        scene("ls notes.lace --all"),
        scene("ls notes.lace //nowhere"),
        scene("ls empty.lace"),
    ],
    "gc": [
        scene("gc notes.lace --keep rules.lace", exits=(1,)),
        scene("gc notes.lace", exits=(2,)),
    ],
    "log": [scene("log notes.lace //u//ding//plain"), scene("log notes.lace //u//ding//missing", exits=(1,))],
    "diff": [
        scene("diff notes.lace //u//ding//plain //u//many//007", wraps=True),
        scene("diff notes.lace //u//ding//plain", exits=(0, 1), wraps=True),
    ],
    "revert": [scene("revert notes.lace //u//ding//plain --as-of 2100-01-01", exits=(0, 1), wraps=True)],
    "retract": [
        scene("retract notes.lace //u//ding//plain", wraps=True),
        scene("retract notes.lace //u//ding//missing", exits=(1,)),
    ],
    "undo": [scene("undo notes.lace //u//ding//plain", exits=(0, 1), wraps=True)],
    "forget": [
        scene("forget notes.lace P.svyLzSM7ffc91i~XDbkMnuOsdjsw_6GrXpTSckqHlpO.H3", wraps=True),
        scene("forget notes.lace --list", wraps=True),
        scene("forget notes.lace", exits=(2,)),
    ],
    "cat": [scene("cat notes.lace {hostile}", wraps=True)],
    "facts": [scene("facts notes.lace {hostile}", wraps=True)],
    "find": [
        scene("find notes.lace boat"),
        scene("find notes.lace nothing", exits=(1,)),
        scene("find empty.lace x", exits=(3,)),
    ],
    "rm": [scene("rm notes.lace {removed}"), scene("rm notes.lace {removed}", exits=(1,))],
    "init": [scene("init fresh.lace"), scene("init notes.lace", exits=(0, 3))],
    "import": [scene("import other.lace notes.bundle"), scene("import other.lace broken.bundle", exits=(1,))],
    "export": [scene("export notes.lace", wraps=True), scene("export notes.lace -o out.bundle")],
    "stat": [scene("stat notes.lace"), scene("stat nothing.lace", exits=(3,))],
    "quota": [
        scene("quota notes.lace"),
        scene("quota other.lace"),
        scene("quota notes.lace --forget", HOSTILE, exits=(0, 1, 2)),
    ],
    "backup": [scene("backup notes.lace copy.lace"), scene("backup notes.lace copy.lace", exits=(3,))],
    "restore": [scene("restore copy.lace restored.lace")],
    "compact": [scene("compact notes.lace")],
    "repair": [scene("repair restored.lace")],
    "verify": [scene("verify notes.lace"), scene("verify folder/a.txt", exits=(3,))],
    "index": [scene("index other.lace")],
    "inspect": [
        scene("inspect notes.lace --no-open", until="token=", exits=(0, 130)),
        scene("inspect notes.lace --html out.html"),
    ],
    "key": [
        scene("key list"),
        scene("key show me", wraps=True),
        scene("key new another", wraps=True),
        scene("key know notes.lace"),
        scene("key show nobody", exits=(7,)),
    ],
    "interlace": [
        scene("interlace other.lace unix:{socket}"),
        scene("interlace other.lace peer.lace --expose all"),
        scene("interlace empty.lace notes.lace --dry-run --expose all"),
        scene("interlace other.lace unix:/nowhere/s.sock", exits=(6,)),
    ],
    "follow": [scene("follow other.lace unix:{socket}", until="point after", wraps=True)],
    "serve": [
        scene("serve notes.lace unix:{folder}/scene.sock --expose all", until="listening", wraps=True),
        scene("serve notes.lace unix:{folder}/scene.sock --expose all --check", wraps=True),
    ],
    "browse": [scene("browse unix:{socket}"), scene("browse unix:{socket} --lace notes.lace")],
    "why": [
        scene("why notes.lace {hostile} --with other.lace --expose all --proof", exits=(0, 1)),
        scene("why notes.lace {plain} --peer //nowhere//", exits=(0, 1)),
        scene(
            "why notes.lace {plain} --address unix:{socket} --select rules/select.lace --expose selected", exits=(0, 1)
        ),
        scene("why notes.lace {signed} --peer rules/select.lace --expose all --proof", exits=(0, 1)),
    ],
    "store": [scene("store notes.lace {plain} --to unix:{socket}", exits=(0, 1, 8))],
    "tap": [scene("tap trace.jsonl"), scene("tap trace.jsonl --facts", exits=(0, 2))],
    "status": [
        scene("status notes.lace --expose all", exits=(0, 1, 6, 8, 9, 10)),
        scene("status notes.lace --offline", exits=(0, 1, 10)),
        scene("status other.lace", exits=(1,)),
    ],
    "peers": [scene("peers served/far.lace", exits=(1, 3)), scene("peers notes.lace", exits=(1,))],
    "mount": [scene("mount notes.lace missing", exits=(1, 2)), scene("mount missing.lace folder", exits=(1, 2, 3))],
    "free": [
        scene("free notes.lace //u//many --from other.lace", exits=(0, 1)),
        scene("free notes.lace //u//many --from notes.lace", exits=(1, 2)),
    ],
    "simulate": [
        scene("simulate scene.json"),
        scene("simulate scene.json --seeds 2"),
        scene("simulate rules.lace", exits=(1, 2)),
    ],
    "top": [
        scene("top ../served/peer.lace --once --every 0.2"),
        scene("top ../served/peer.lace --once --every 0.2 --json", is_silent=True),
        scene("top notes.lace", exits=(1,)),
    ],
    "reload": [scene("reload notes.lace", exits=(1,))],
    "name": [
        scene("name add notes.lace anna me"),
        scene("name list notes.lace"),
        scene("name list notes.lace --full", wraps=True),
        scene("name rm notes.lace ana", exits=(7,)),
    ],
    "doctor": [scene("doctor notes.lace", exits=(0, 1)), scene("doctor nothing.lace", exits=(3,))],
    "upgrade": [scene("upgrade notes.lace --check"), scene("upgrade nothing.lace", exits=(3,))],
    "remote": [
        scene("remote add notes.lace server unix:{socket} --key me"),
        scene("remote list notes.lace"),
        scene("remote rm notes.lace sever", exits=(1,)),
    ],
    "cert": [scene("cert localhost --cert c.pem --cert-key k.pem", wraps=True)],
    "invite": [
        scene("invite guild.lace bob --address ws:127.0.0.1:4799", wraps=True),
        scene("invite guild.lace --list"),
        scene("invite guild.lace bob --withdraw"),
        scene("invite guild.lace --expires soon", exits=(2,)),
        scene("invite notes.lace bob", exits=(1,)),
    ],
    "join": [
        scene("join lace1.not-an-invitation", exits=(1,)),
    ],
    "member": [
        scene("member add guild.lace me carla"),
        scene("member list guild.lace"),
        scene("member list guild.lace --all --json", wraps=True),
        scene("member leave guild.lace carlo", exits=(1,)),
        scene("member list notes.lace", exits=(1,)),
    ],
    "admin": [
        scene("admin rm guild.lace nobody", exits=(7,)),
    ],
    "device": [
        scene("device add guild.lace phone --address ws:127.0.0.1:4799", wraps=True),
        scene("device list guild.lace"),
        scene("device rm guild.lace phone"),
        scene("device rm guild.lace phone", exits=(1,)),
    ],
    "policy": [
        scene("policy set club.lace members --group club --app notes,photos --admin me"),
        scene("policy set club.lace members --group klub --app notes", exits=(2,)),
        scene("policy set club.lace memers --app notes", exits=(1,)),
        scene("policy show club.lace"),
        scene("policy show club.lace tip"),
        scene("policy log club.lace"),
        scene("policy check club.lace"),
        scene("policy check notes.lace", exits=(1,)),
        scene("policy show notes.lace", exits=(1,)),
    ],
    "check": [
        scene("check rules/select.lace", exits=(1,)),
        scene("check", "Bad(X) :- Fild(X,'Nme',_,V).", exits=(1,)),
        scene("check", "Bad(X) :-", exits=(1,)),
    ],
    "explain": [
        scene("explain notes.lace rules.lace", "Titled(P,T)"),
        scene("explain notes.lace rules.lace", "Linked(A,B)"),
        scene("explain --not notes.lace rules.lace", "Titled('P.nothing','x')"),
        scene("explain notes.lace rules.lace", "Titled('P.nothing','x')", exits=(1,)),
        scene("explain notes.lace rules.lace --plan", wraps=True),
    ],
    "fmt": [scene("fmt rules.lace", is_silent=True)],
    "id": [scene("id rules/select.lace", wraps=True)],
    "rules": [scene("rules list"), scene("rules new members --admin me")],
    "test": [scene("test rules.lace cases.toml", exits=(1,))],
    "query": [
        scene("query notes.lace rules.lace --goal", "Titled(P,T)"),
        scene("query notes.lace rules.lace --goal", "Titled(P,T)", "--columns", "Name"),
        scene("query notes.lace rules.lace --goal", "Titeld(P,T)", exits=(1,)),
        scene("query notes.lace", "Never(P) :- Field(P,'Titel',_,V)."),
    ],
    "archive": [scene("archive --help"), scene("archive status nowhere", exits=(1, 2, 3))],
    "pipeline": [scene("pipeline --help"), scene("pipeline init project --declarative --inbox folder")],
    "plan": [scene("plan all rules/select.lace", exits=(0, 1))],
    "view": [scene("view notes.lace --expose all --viewer Opq_A", wraps=True)],
    "completion": [scene("completion bash", wraps=True)],
    "help": [
        scene("help"),
        scene("help exit-codes"),
        scene("help limits"),
        scene("help why"),
        scene("help coordinates"),
    ],
}


def prepare(folder: Path) -> dict[str, str]:
    """Files for the scenes; the names that they use."""
    import lace
    from lace.porcelain.search import index
    from lace.runtime.identity.keyring import KeyRing

    os.environ["LACE_HOME"] = str(folder / "home")
    secret = lace.SigningSecret.generate()
    KeyRing.of_user().add("me", secret)
    key = lace.SigningKey.from_secret(secret)
    (folder / "folder").mkdir()
    (folder / "folder" / "a.txt").write_text("a")
    (folder / "folder" / "b b.txt").write_text("b")
    (folder / "rules.lace").write_text(RULES)
    (folder / "cases.toml").write_text(CASES)
    (folder / "scene.json").write_text(json.dumps(SCENE))
    (folder / "rules").mkdir()
    rules = "SelectHave(P) :- Field(P,'Title',_,T), Field(P,'Group',_,'u').\n"
    rules += "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Title',_,T), AdvertisedField(P,S,'Group',_,'u').\n"
    (folder / "rules" / "select.lace").write_text(rules)
    place = {"group": "u", "app": "ding"}
    with lace.open(folder / "notes.lace", create=True) as notes:
        plain = notes.put(b"hello\n", **place, name="plain")
        titles = {"Title": f"{HOSTILE} and a title that goes on and on", "Content-Type": "text/plain"}
        hostile = notes.put(HOSTILE_CONTENT.encode(), **place, name=f"a/{HOSTILE}", headers=titles)
        long = "a/very/long/name/as/paths/of/files/in/deep/folders/are/when/people/keep/everything.txt"
        signed = notes.put(b"signed", **place, name=long, headers={"Title": "t"}, links=[("cites", hostile)], sign=key)
        removed = notes.put(b"gone", **place, name="removed")
        for number in range(30):
            notes.put(b"x" * number, group="u", app="many", name=f"{number:03d}", headers={"Title": f"number {number}"})
        index(notes)
        notes.export(folder / "notes.bundle")
    for name in ("other", "empty", "peer", "club", "guild"):
        with lace.open(folder / f"{name}.lace", create=True) as one:
            if name == "peer":
                one.put(b"hello\n", **place, name="plain", headers={"Title": "of the peer"})
                one.put(b"evil", **place, name=f"peer/{HOSTILE}")
    _found(folder / "guild.lace", key)
    broken = (folder / "notes.bundle").read_bytes()
    (folder / "broken.bundle").write_bytes(broken[:200] + b"damage" + broken[200:])
    subprocess.run(
        [
            sys.executable,
            "-m",
            "lace.cli",
            "interlace",
            "other.lace",
            "stdio",
            "--trace",
            "trace.jsonl",
            "--",
            sys.executable,
            "-m",
            "lace.cli",
            "serve",
            "peer.lace",
            "stdio",
            "--expose",
            "all",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "other.lace").unlink()
    lace.open(folder / "other.lace", create=True).close()
    return {"plain": plain, "hostile": hostile, "signed": signed, "removed": removed}


def _found(path: Path, key: SigningKey) -> None:
    """A group with its founder as its only member."""
    import lace
    from lace.people.root import Root
    from lace.people.wording import TemplateWords
    from lace.porcelain.membership import admit
    from lace.porcelain.policy import set_policy, template_policy

    root = Root("guild", key.verifier)
    with lace.open(path) as guild:
        set_policy(guild, template_policy("members", TemplateWords(root=root, apps=("notes",))), root, key)
        admit(guild, key.verifier, key, called="carla")


def play(scenes: Sequence[Scene], screen: Screen, folder: Path, names: dict[str, str]) -> Iterator[Shot]:
    """Scenes one after another in one folder."""
    for one in scenes:
        words = [word.format(**names, folder=folder) if "{" in word else word for word in one.words]
        written, code = _on_a_terminal(words, one, screen, folder)
        yield Shot(one, screen, written, code)


def _on_a_terminal(words: list[str], one: Scene, screen: Screen, folder: Path) -> tuple[str, int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, screen.columns, 0, 0))
    child = os.fork()
    if child == 0:
        os.close(ours)
        _be_the_command(words, theirs, screen, folder)
    os.close(theirs)
    written, is_ending, ends = b"", False, time.monotonic() + SCENE_SECONDS
    if one.typed:
        os.write(ours, one.typed.encode())
    while True:
        ready, _, _ = select.select([ours], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # a terminal whose last user is gone gives an error
            break
        if not piece:
            break
        written += piece
        if one.until and one.until.encode() in written and not is_ending:
            is_ending = True
            os.kill(child, signal.SIGINT)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    return written.decode("utf-8", "backslashreplace"), os.waitstatus_to_exitcode(status)


def _be_the_command(words: list[str], terminal: int, screen: Screen, folder: Path) -> None:
    code = 70
    try:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(terminal, number)
        os.chdir(folder)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color", **screen.settings})
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for good
        from lace.cli.app import app

        try:
            app.main(words, prog_name="lace")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def load_everything() -> None:
    """Import what the commands import, so that a fork has it."""
    import importlib

    from lace.cli.catalogue import CATALOGUE

    for entry in CATALOGUE:
        importlib.import_module(entry.module)
    for name in (
        "lace.runtime.node.node",
        "lace.datalog.engine",
        "lace.porcelain.exchange",
        "rich.console",
        "rich.table",
        "rich.text",
    ):
        importlib.import_module(name)


def film(screens: Sequence[Screen], commands: Sequence[str]) -> Iterator[Shot]:
    """Every scene of some commands on every screen; the screens side by side, each with files of its own."""
    scenes = [one for command in commands for one in SCENES[command]]
    with tempfile.TemporaryDirectory(prefix="lace-") as place:
        stage = Path(place)
        names = prepare_in(stage / "stage")
        load_everything()
        with _served(stage) as socket:
            waiting = list(enumerate(screens))
            running: list[tuple[int, int]] = []
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    number, screen = waiting.pop(0)
                    running.append((number, _film_one(stage, number, screen, scenes, {**names, "socket": socket})))
                _, child = running.pop(0)
                os.waitpid(child, 0)
            for number, screen in enumerate(screens):
                for row in json.loads((stage / f"{number}.json").read_text()):
                    yield Shot(Scene(**_tuples(row["scene"])), screen, row["written"], row["exit_code"])


def _tuples(row: dict[str, object]) -> dict[str, object]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def prepare_in(folder: Path) -> dict[str, str]:
    """`prepare` in a folder that is made, by a process of its own: what it starts stays out of those that fork."""
    folder.mkdir()
    out = subprocess.run(
        [sys.executable, __file__, "--prepare", str(folder)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    names: dict[str, str] = json.loads(out)
    return names


def _film_one(stage: Path, number: int, screen: Screen, scenes: Sequence[Scene], names: dict[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        folder = stage / f"screen{number}"
        shutil.copytree(stage / "stage", folder)
        os.environ["LACE_HOME"] = str(folder / "home")
        shots = [asdict(shot) for shot in play(scenes, screen, folder, names)]
        (stage / f"{number}.json").write_text(json.dumps(shots))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


class _served:  # noqa: N801 - a context
    """A server of the peer's lace."""

    def __init__(self, stage: Path) -> None:
        self._folder = stage / "served"
        self._folder.mkdir()
        shutil.copy(stage / "stage" / "peer.lace", self._folder)

    def __enter__(self) -> str:
        command = [
            sys.executable,
            "-m",
            "lace.cli",
            "serve",
            "peer.lace",
            f"unix:{self._folder}/s.sock",
            "--expose",
            "all",
        ]
        self._server = subprocess.Popen(command, cwd=self._folder, stderr=subprocess.PIPE, text=True)
        assert self._server.stderr is not None
        for line in self._server.stderr:
            if "listening" in line:
                break
        return str(self._folder / "s.sock")

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.communicate()


def main() -> None:
    """Show scenes, or film them for a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*", default=[])
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="with NO_COLOR")
    parser.add_argument("--prepare", type=Path)
    parser.add_argument("--film", type=Path, help="write every shot to this file")
    parser.add_argument("--more", action="store_true", help="on the screens that only the night looks at")
    given = parser.parse_args()
    if given.prepare:
        sys.stdout.write(json.dumps(prepare(given.prepare)))
        return
    commands = given.commands or list(SCENES)
    if given.film:
        given.film.write_text(
            json.dumps([asdict(shot) for shot in film(MORE_SCREENS if given.more else SCREENS, commands)])
        )
        return
    screen = Screen(given.columns or shutil.get_terminal_size().columns, {"NO_COLOR": "1"} if given.plain else {})
    for shot in film([screen], commands):
        sys.stdout.write(f"\x1b[7m$ lace {' '.join(shot.scene.words)}   [{shot.exit_code}]\x1b[0m\n")
        sys.stdout.write(shot.written.replace("\r\n", "\n"))


if __name__ == "__main__":
    main()
