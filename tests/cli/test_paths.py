"""A command refuses a path that can hold nothing once it has ended: `:memory:`, its other spellings, no text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import lace
from lace.cli.app import app
from lace.cli.catalogue import CATALOGUE
from lace.cli.options.arguments import LacePath
from lace.cli.options.side import LaceOrArchive

FORGOTTEN = (":memory:", "./:memory:", "file::memory:", "file::memory:?cache=shared", "file:x?mode=memory", "", " ")
RULES = "Out(P) :- Have(P)."


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _commands(found, (*words, name))
    else:
        yield words, command


def _takers() -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    for entry in CATALOGUE:
        found = app.get_command(click.Context(app), entry.name)
        assert found is not None
        for words, command in _commands(found, (entry.name,)):
            for parameter in command.params:
                if isinstance(parameter.type, LacePath | LaceOrArchive):
                    yield words, parameter


TAKERS = list(_takers())


def test_every_command_over_a_lace_is_among_them() -> None:
    named = {words[0] for words, _ in TAKERS}
    over_a_lace = {
        "put", "get", "checkout", "ls", "cat", "facts", "find", "log", "diff", "revert", "retract", "undo",
        "forget", "gc", "rm", "init", "import",
        "export", "stat", "quota",
        "backup", "restore", "compact", "repair", "verify", "index", "inspect", "key", "interlace", "follow", "serve",
        "browse", "why", "store", "view", "remote", "status", "peers", "reload", "name", "doctor", "upgrade", "policy",
        "invite", "join", "member", "device", "admin", "mount", "free", "top",
    }  # fmt: skip
    assert named == over_a_lace
    assert sum(words == ("backup",) for words, _ in TAKERS) == 2  # its target, too


@pytest.mark.parametrize("text", FORGOTTEN)
@pytest.mark.parametrize(("words", "parameter"), TAKERS, ids=lambda part: getattr(part, "name", None) or " ".join(part))
def test_a_path_that_forgets_is_refused(words: tuple[str, ...], parameter: click.Parameter, text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"a lace in memory|is empty"):
        parameter.type.convert(text, parameter, None)


@pytest.mark.parametrize("text", FORGOTTEN)
@pytest.mark.parametrize(
    "words",
    [
        ("init", "PATH"),
        ("put", "PATH", "--group", "u", "--app", "d", "--name", "n", "-"),
        ("query", "PATH", RULES),
        ("explain", "PATH", RULES, "Out('x')"),
        ("backup", "x.lace", "PATH"),
        ("interlace", "PATH", "x.lace"),
        ("interlace", "x.lace", "PATH"),
    ],
    ids=" ".join,
)
def test_the_command_says_so_and_writes_nothing(
    words: tuple[str, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lace.open("x.lace", create=True).close()
    before = sorted(tmp_path.iterdir())
    result = CliRunner().invoke(app, [text if word == "PATH" else word for word in words], input="x")
    assert result.exit_code == 2, result.output
    assert sorted(tmp_path.iterdir()) == before


def test_a_node_file_says_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lace.toml").write_text('store = ":memory:"\nlisten = ["unix:s.sock"]\n')
    result = CliRunner().invoke(app, ["serve", "--config", "lace.toml"])
    assert result.exit_code == 1
    assert "a lace in memory" in result.output


def test_a_file_of_that_name_elsewhere_is_a_file(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["init", str(tmp_path / ":memory:")]).exit_code == 0
    assert (tmp_path / ":memory:").exists()
