"""Pictures of the faces for people: the site at three sizes, and the inspector and the playground for the guides.

usage: python tools/pictures.py faces FOLDER | docs

`faces` keeps every kind of page of site-out, and the report of an archive, at 1280, 390 and dark.
`docs` renews docs/images/inspector.png and playground.png: a real inspector over the lace below, and playground-out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playground_server import server

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
sys.path.append(str(ROOT / "tests"))

from inspector.browser import find_chromium, running_browser  # noqa: E402  (found by now)

SIZES = {
    "1280": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "390": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}
PAGES = ("index", "tutorial", "howto/revoking", "rules", "benchmarks", "inspector", "playground", "decisions/index")
SHOWN = {"viewport": {"width": 1100, "height": 680}, "color_scheme": "light", "reduced_motion": "reduce"}
SETTLE_MS = 8000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on loopback."""
    serving = server(folder)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{serving.server_address[1]}"
    finally:
        serving.shutdown()


def picture(browser: Any, address: str, to: Path, how: dict[str, Any], *, whole: bool = False, press: str = "") -> None:
    """One page as it is when nothing moves any more."""
    context = browser.new_context(**how)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    if press:
        page.get_by_role("button", name=press, exact=True).click()
        page.wait_for_timeout(SETTLE_MS)
    to.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=to, full_page=whole)
    context.close()
    print(to)


def faces(browser: Any, folder: Path) -> None:
    """Every kind of page of the built site, and a report."""
    from lace.spark.jobs.page import page as report_page
    from spark.test_page import report

    with served(ROOT / "site-out") as base, tempfile.TemporaryDirectory(prefix="lace-") as place:
        (Path(place) / "report.html").write_text(report_page(report("club")), encoding="utf-8")
        for size, how in SIZES.items():
            made = (Path(place) / "report.html").as_uri()
            picture(browser, made, folder / f"report-{size}.png", how, whole=True)
            for page in PAGES:
                to = folder / f"site-{page.replace('/', '-')}-{size}.png"
                picture(browser, f"{base}/{page}.html", to, {**how, "reduced_motion": "reduce"}, whole=True)


@contextmanager
def inspected() -> Iterator[str]:
    """A real inspector over a small lace, as its own address."""
    import lace
    from lace.runtime.identity.keyring import KeyRing

    with tempfile.TemporaryDirectory(prefix="lace-") as place:
        surroundings = {**os.environ, "LACE_HOME": f"{place}/home"}
        os.environ["LACE_HOME"] = surroundings["LACE_HOME"]
        secrets = {name: lace.SigningSecret.generate() for name in ("anna", "bob")}
        for name, secret in secrets.items():
            KeyRing.of_user().add(name, secret)
        anna, bob = map(lace.SigningKey.from_secret, secrets.values())
        with lace.open(Path(place) / "club.lace", create=True) as club:
            for number, (name, key) in enumerate(
                [("boat", anna), ("oars", bob), ("minutes/october", anna), ("minutes/november", bob), ("boat", bob)]
            ):
                club.put(f"Note {number}\n".encode(), group="club", app="notes", name=name, sign=key)
            club.put(b"diary", group="private", app="diary", name="monday")
        command = [sys.executable, "-m", "lace.cli", "inspect", "club.lace", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place, env=surroundings) as running:
            assert running.stdout is not None
            try:
                yield running.stdout.readline().strip()
            finally:
                running.terminate()


def docs(browser: Any) -> None:
    """What the guides show of the inspector and the playground."""
    with inspected() as address:
        picture(browser, address, IMAGES / "inspector.png", SHOWN)
    if (ROOT / "playground-out/index.html").exists():
        with served(ROOT / "playground-out") as base:
            picture(browser, f"{base}/index.html", IMAGES / "playground.png", SHOWN, press="Exchange")


def main() -> int:
    executable = find_chromium()
    if executable is None or sys.argv[1:2] not in (["faces"], ["docs"]):
        print(__doc__ if executable else "there is no Chromium here: make chromium", file=sys.stderr)
        return 1
    with running_browser(executable) as browser:
        if sys.argv[1] == "faces":
            faces(browser, Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "screenshots-out"))
        else:
            docs(browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
