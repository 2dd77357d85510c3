"""Progress of slow work: a bar on stderr, with a total wherever one is known.

Rule: nothing is drawn in the first two seconds, nor where stderr is not a terminal, and the bar leaves no trace.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from lace.cli.output.text import NARROWEST, for_people, terminal_width, visible_line
from lace.cli.output.words import ELLIPSIS, human_size
from lace.values import dataclass

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRESS_AFTER_SECONDS = 2.0
_BESIDE_LABEL = 44  # columns for the bar, the amounts and the time


@dataclass(slots=True)
class ProgressMeter:
    """Counts work and, once it has taken two seconds on a terminal, shows a bar on stderr.

    Without a total there is no end to measure against: what is done and the time that passed are shown.
    """

    label: str
    total: int | None
    in_bytes: bool
    after_s: float = PROGRESS_AFTER_SECONDS
    done: int = 0
    bar: Progress | None = None
    task: TaskID | None = None
    is_over: bool = False

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer: threading.Timer | None = None

    def start(self) -> None:
        """From now on it is counted; where people watch, a bar comes up by itself once it takes long."""
        if for_people(err=True):
            self._timer = threading.Timer(max(0.0, self.after_s), self._show)
            self._timer.daemon = True
            self._timer.start()

    def expect(self, total: int) -> None:
        """The total is known now, or more of it than before."""
        self.total = total
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, total=total, said=self._said())

    def advance(self, amount: int) -> None:
        """Count this much more as done."""
        self.done += amount
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=self.done, said=self._said())

    def stop(self) -> None:
        """The work is over: the bar goes, and comes up no more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self.is_over = True
            if self.bar is not None:
                self.bar.stop()

    def _show(self) -> None:
        with self._lock:
            if self.is_over:
                return
            bar = self._made_bar()
            self.task = bar.add_task(self._label(), total=self.total, completed=self.done, said=self._said())
            bar.start()
            self.bar = bar

    def _said(self) -> str:
        amount = human_size if self.in_bytes else "{:,}".format
        return amount(self.done) if self.total is None else f"{amount(self.done)} of {amount(self.total)}"

    def _label(self) -> str:
        room = max(NARROWEST, terminal_width() - _BESIDE_LABEL)
        text = visible_line(self.label)
        return text if len(text) <= room else f"{text[: room - 1]}{ELLIPSIS}"

    def _made_bar(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        is_known = self.total is not None
        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16) if is_known else SpinnerColumn("line"),
            TextColumn("{task.fields[said]}", markup=False),
            TimeRemainingColumn() if is_known else TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )


@contextmanager
def metered(
    label: str, total: int | None = None, *, in_bytes: bool = False, after_s: float = PROGRESS_AFTER_SECONDS
) -> Iterator[ProgressMeter]:
    """A meter around slow work; its bar disappears at the end."""
    meter = ProgressMeter(label, total, in_bytes, after_s)
    meter.start()
    try:
        yield meter
    finally:
        meter.stop()
