"""The lock file, its audit and the bill of materials."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("supply", ROOT / "tools" / "supply.py")
assert _spec is not None
assert _spec.loader is not None
supply = sys.modules["supply"] = importlib.util.module_from_spec(_spec)  # tools/ is on nobody's path
_spec.loader.exec_module(supply)


def test_every_locked_package_has_hashes() -> None:
    locked = supply.read_lock()
    assert len(locked) > 20
    assert [one.name for one in locked if not one.hashes or any(len(digest) != 64 for digest in one.hashes)] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("click==1.2.3\n", "no hash"),
        (f"click==0.0.1 \\\n    --hash=sha256:{'0' * 64}\n", "0.0.1 is locked"),
    ],
)
def test_a_lock_file_that_does_not_hold_is_told(text: str, wrong: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(text, encoding="utf-8")
    assert wrong in " ".join(supply.wrong_with(supply.read_lock(lock)))


def test_a_line_that_pins_nothing_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("click>=8\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="not a pinned package"):
        supply.read_lock(lock)


def test_an_audit_that_could_not_ask_says_so() -> None:
    command = [sys.executable, str(ROOT / "tools" / "supply.py"), "audit", "--offline"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "KNOWN VULNERABILITIES WERE NOT CHECKED" in done.stdout


def test_the_bill_names_every_locked_package_once_with_its_hashes(tmp_path: Path) -> None:
    assert supply.sbom(tmp_path / "bill.json") == 0
    bill = json.loads((tmp_path / "bill.json").read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(refs) == len(set(refs)) == len(supply.read_lock())
    required = {one["name"] for one in bill["components"] if one["scope"] == "required"}
    assert {"blake3", "click", "websockets", "numpy"} <= required
    assert "pytest" not in required
    again = tmp_path / "again.json"
    supply.sbom(again)
    assert again.read_bytes() == (tmp_path / "bill.json").read_bytes()


def test_the_bill_in_the_wheel_is_of_what_is_locked_now(tmp_path: Path) -> None:
    """After a change of dependencies or of the version: make sbom."""
    supply.sbom(tmp_path / "bill.json", required=True)
    kept = ROOT / "requirements" / "lace.cdx.json"
    assert kept.read_text("utf-8") == (tmp_path / "bill.json").read_text("utf-8")


def test_the_library_needs_neither_click_nor_rich_and_the_command_names_them() -> None:
    """Whoever embeds Lace may leave out what only the command needs."""
    program = (
        "import sys\n"
        "sys.modules['click'] = sys.modules['rich'] = None\n"
        "import lace\n"
        "key = lace.generate_key()\n"
        "notes, other = lace.open(':memory:'), lace.open(':memory:')\n"
        "notes.put(b'x', group='u', app='a', name='n', sign=key)\n"
        "lace.exchange(notes, other, expose='all').raise_for_status()\n"
        "assert [lace.query(other, 'A(P) :- Have(P).').rows()]\n"
        "from lace.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "the command `lace` needs click" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("repository", ["", "https://host.example/lace"])
def test_links_of_the_readme_in_the_wheel_lead_somewhere_or_are_none(repository: str) -> None:
    """As rendered elsewhere, where no file of the sources lies beside it."""
    core = pytest.importorskip("hatchling.metadata.core")
    plugins = pytest.importorskip("hatchling.plugin.manager")
    project = core.ProjectMetadata(str(ROOT), plugins.PluginManager())
    project.config["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"] = repository
    text = project.core.readme
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert text.count("Rules, not a server, decide who gets what") == 1
    version = project.core.version
    base = f"{repository}/blob/v{version}/"
    pages = [target.removeprefix(base).partition("#")[0] for target in targets if target.startswith(base)]
    assert (len(pages) > 20) == bool(repository)
    assert [page for page in pages if not (ROOT / page).exists()] == []
    assert ("Source" in project.core.urls) == bool(repository)
