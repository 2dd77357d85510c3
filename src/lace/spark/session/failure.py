"""A job that failed, in words: which step, what was found where, and what to do.

Rule: the first thing a user reads is the reason. Spark's own account of it, thousands of characters of two languages,
stays behind as the cause (`lace --debug` shows it).
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lace.errors import LaceError

_OF_OURS = re.compile(r"^lace\.[\w.]+: (.+)$", re.MULTILINE)
_OF_A_WORKER = re.compile(r"^(?:[\w.]+\.)?(\w*Error): (.+)$", re.MULTILINE)
_CALLED = "An error occurred while calling "
_LONGEST = 400
_ADVICE = (
    (
        re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE),
        "a disk is full: make room where the output or Spark's local files lie (spark.local.dir), and run again",
    ),
    (
        re.compile(r"OutOfMemoryError|MemoryError|Cannot allocate memory", re.IGNORECASE),
        "a task ran out of memory: give Spark more (spark.driver.memory) or smaller shares (--split-mib)",
    ),
    (
        re.compile(r"ExecutorLostFailure|executor \d+ exited", re.IGNORECASE),
        "an executor was lost: run the same command again, it goes on where it was",
    ),
)


class JobFailed(LaceError):
    """A job of Spark's did not end well."""

    def __init__(self, step: str, reason: str, advice: str) -> None:
        super().__init__(f"{step}: {reason}\n{advice}" if advice else f"{step}: {reason}")
        self.step = step
        self.reason = reason
        self.advice = advice


def plainly(step: str, error: Exception) -> JobFailed | None:
    """An error of Spark in words; None for an error of ours."""
    return _failure(step, error) if isinstance(error, PySparkException | Py4JJavaError) else None


def _failure(step: str, error: Exception) -> JobFailed:
    text = str(error)
    return JobFailed(step, reason_of(text), next((said for sign, said in _ADVICE if sign.search(text)), ""))


def reason_of(text: str) -> str:
    """What a worker's own exception says, if there is one, else the first line of Spark's account."""
    if ours := _OF_OURS.findall(text):
        return str(ours[-1])[:_LONGEST]
    if raised := _OF_A_WORKER.findall(text):
        return ": ".join(raised[-1])[:_LONGEST]
    if text.startswith(_CALLED):  # what was called says nothing; the exception is on the next line
        text = text.partition("\n: ")[2] or text
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0][:_LONGEST] if lines else "Spark says no reason"
