"""The documentation is true: links lead somewhere, docs/cli.md is what `lace --help` says, examples run."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def test_links_and_the_command_reference_are_right() -> None:
    command = [sys.executable, "tools/check_docs.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "tool", ["api", "decisions", "import_graph", "limits_page", "render_benchmarks --check", "repeated"]
)
def test_what_a_tool_reads_off_the_project_is_what_the_pages_say(tool: str) -> None:
    name, *options = tool.split()
    command = [sys.executable, f"tools/{name}.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_every_clause_is_named_by_a_test_that_is_not_slow() -> None:
    command = [sys.executable, "tools/clauses.py", "--strict", "--short"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_the_examples_of_a_module_run(path: Path) -> None:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.long
def test_the_examples_of_all_pages_are_typed(tmp_path: Path) -> None:
    """What a reader copies passes `mypy --strict`: every verb is a plain, typed function or method."""
    files = []
    for path in PAGES:  # one mypy for all: most of its time goes into reading our sources
        lines = [line[4:] for line in path.read_text(encoding="utf-8").split("\n") if re.match(r">>> |\.\.\. ", line)]
        files.append(f"page_{path.stem}.py")
        (tmp_path / files[-1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", "", *files]
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert len(set(files)) == len(PAGES)
    assert [line for line in done.stdout.split("\n") if line.startswith("page_")] == []


def test_every_page_is_on_the_site_and_can_be_reached() -> None:
    nav = tomllib.loads((ROOT / "docs" / "nav.toml").read_text(encoding="utf-8"))
    listed = ["index.md", *(page for part in nav["section"] for group in part["groups"].values() for page in group)]
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    unlisted = {page for page in there if re.match(r"decisions/\d|benchmarks/", page)}  # those link to each of them
    assert there - unlisted == set(listed)
    assert len(listed) == len(set(listed))


def test_every_key_of_a_node_file_is_explained_and_the_example_is_read(tmp_path: Path) -> None:
    from lace.cli.options.nodefile import LIMITS, read_node_file

    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    source = (SOURCE / "lace" / "cli" / "options" / "nodefile.py").read_text(encoding="utf-8")
    keys = {*re.findall(r'(?:self|reader)\._[a-z]+\(\s*"([a-z_]+)"', source), *LIMITS}
    assert len(keys) > 30
    assert not {key for key in keys if f"`{key}`" not in page and f"[{key}]" not in page}
    (tmp_path / "lace.toml").write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[-1], encoding="utf-8")
    assert read_node_file(tmp_path / "lace.toml").peers[0].policy.select == ["//club//notes"]


def test_every_exit_code_and_error_is_explained() -> None:
    from lace import errors
    from lace.cli.output.failure import MEANING

    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for code, meaning in MEANING.items():
        assert f"| {int(code)} | {code.name} | {meaning} |" in page
    kinds = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.LaceError)
    ]
    assert not [name for name in kinds if f"`{name}`" not in page and name != "LaceError"]


def test_the_threat_model_says_the_limits_that_are_kept() -> None:
    """Each row of its table, with the figures as the code has them."""
    from lace.limits import GIB, HORIZON_S, MIB, StoreLimits
    from lace.runtime.host.quotas import FOR_STRANGERS
    from lace.runtime.node.bounds import DriveLimits
    from lace.runtime.node.links import NodeLimits
    from lace.runtime.node.metering import LinkRates, Rate
    from lace.runtime.rules.guesthouse import GuestLimits
    from lace.transports.base import TransportLimits
    from lace.transports.frames import IDLE_FRAMES, IDLE_FRAMES_PER_S

    page = " ".join((ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8").split())
    node, guests, rates, doors = NodeLimits(), GuestLimits(), LinkRates(), TransportLimits()
    store, strangers = StoreLimits(), FOR_STRANGERS

    def rate(value: Rate) -> str:
        return f"{value.per_s:g}/s ({value.burst:g})"

    held = node.max_held_bytes // MIB
    each = ", ".join(map(rate, (rates.blocks, rates.loops, rates.epochs)))
    for said in (
        f"| {each}, 64 MiB/s (1 GiB), {rate(rates.cpu_s)}; burst in brackets |",
        f"| {rate(rates.peer_cpu_s)} |",
        f"| {node.max_links}, {node.max_links_per_peer}, {node.reserved_links} |",
        f"| {node.unknown_keys_share:g} |",
        f"| {node.calm_links}, {rate(node.newcomers)}; {node.waiting.max_waiting} may wait, "
        f"{node.waiting.max_waiting_per_peer} of one prefix |",
        f"wait up to {node.waiting.patience_s:g} s",
        f"| {node.yield_after_s:g} s, {node.max_rest_s / 3600:g} h |",
        f"| {held} MiB for all unproven links together",
        f"| {strangers.peer.bytes // MIB} MiB a stranger, {strangers.strangers.bytes // GIB} GiB all strangers;",
        f"{store.min_free_bytes // MIB} MiB stay free, {store.min_reserve_bytes // MIB} MiB",
        f"{store.max_reserve_bytes // MIB} MiB at most",
        f"| {node.cursors.max_cursors:,}, {node.cursors.max_kept_cursor_bytes // GIB} GiB, "
        f"{node.cursors.max_cursor_age_s / 86_400:g} days |",
        f"| {doors.max_handshakes}, {doors.max_handshakes_per_prefix} per prefix |",
        f"| {IDLE_FRAMES} at once, {IDLE_FRAMES_PER_S:g}/s;",
        f"| {DriveLimits().leftover_s:g} s, {2 * DriveLimits().leftover_s:g} s at most |",
        f"| {node.shutdown_most_s:g} s |",
        f"2^{guests.first_rows.bit_length() - 1} rows touched and {guests.first_held_bytes // MIB} MiB",
        f"2^{guests.max_rows.bit_length() - 1} rows, {guests.base_held_bytes // MIB} MiB plus 256 bytes for each",
        f"{guests.max_cpu_s:g} s of processor time, nice {guests.yields_by}, two processes in all",
    ):
        assert said in page, said
    assert (HORIZON_S, guests.processes, guests.record_held_bytes, guests.penalty_s) == (86_400, 2, 256, 60)
    assert (rates.bytes.per_s, rates.bytes.burst) == (64 * MIB, GIB)
