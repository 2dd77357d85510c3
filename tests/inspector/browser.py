"""A real browser for the stories, if this machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURES = os.environ.get("LACE_SCREENSHOTS")  # painting a page without a graphics card takes longer than reading it
FETCHED = Path(__file__).parent.parent.parent / "build" / "chromium" / "run"  # where `make chromium` puts one
TO_GET_ONE = "apt-get install chromium, or without root: make chromium"
LEFT_OUT = f"no Chromium here, so no story of the inspector was clicked through ({TO_GET_ONE})"


def find_chromium() -> str | None:
    """The browser that LACE_CHROMIUM names, one that is installed, or the one that was fetched."""
    installed = os.environ.get("LACE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return installed or (str(FETCHED) if FETCHED.exists() else None)


@contextmanager
def running_browser(executable: str) -> Iterator[Browser]:
    """Chromium without a window, with a profile of its own that nobody keeps."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """Somebody who looks at the pages, and notices what goes wrong on them."""

    def __init__(self, browser: Browser, address: str, **how: Any) -> None:
        self.context: BrowserContext = browser.new_context(**how)
        self.context.set_default_timeout(60_000)  # a browser among tests that keep every core busy
        expect.set_options(timeout=60_000)  # the same for what is expected of a page
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        self.page.on("console", lambda said: said.type == "error" and self.troubles.append(f"console: {said.text}"))
        self.page.on("request", self._require_local)
        self.page.goto(address)
        self.start = "/".join(address.split("/")[:3])  # without the token

    def _require_local(self, request: Any) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            self.troubles.append(f"asked elsewhere: {request.url}")

    def picture(self, name: str) -> None:
        """Keep what is on the screen, if somebody wants to see it."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)

    def leave(self) -> None:
        """Go away; everything that went wrong counts."""
        self.context.close()
        assert not self.troubles, self.troubles
