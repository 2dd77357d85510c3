"""A failed job is told in words."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from lace.spark.session.failure import plainly, reason_of

WORKER = """[PYTHON_EXCEPTION] Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/source.py", line 190, in _fail_on_bad
    raise InvalidRecord(reason, rule="failfast", place=f"{raw.bundle} byte {raw.offset}")
lace.errors.InvalidRecord: hash-digest: the data has another digest (in /data/a.bundle byte 17)

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
"""


def test_what_a_worker_raised_is_the_reason() -> None:
    assert reason_of(WORKER) == "hash-digest: the data has another digest (in /data/a.bundle byte 17)"


def test_of_a_call_into_the_jvm_the_exception_is_the_reason() -> None:
    lost = "org.apache.spark.SparkException: Job aborted: ExecutorLostFailure (executor 10 exited)"
    assert reason_of(f"An error occurred while calling o809.parquet.\n: {lost}\n\tat x.y(Z.scala:1)") == lost


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("java.io.IOException: No space left on device\n\tat x", "No space left on device", "disk is full"),
        ("[TASK] ExecutorLostFailure (executor 1 exited)\nDriver stacktrace:", "ExecutorLostFailure", "run the same"),
        ("java.lang.OutOfMemoryError: Java heap space", "Java heap space", "more"),
        ("[TABLE_NOT_FOUND] The table x cannot be found.\n\tat y", "[TABLE_NOT_FOUND]", ""),
        ("", "no reason", ""),
    ],
)
def test_a_reason_and_what_to_do(text: str, reason: str, advice: str) -> None:
    told = plainly("validate", PySparkException(text))
    assert told is not None
    assert reason in str(told)
    assert str(told).startswith("validate: ")
    assert advice in told.advice
    assert len(str(told)) < 700


def test_errors_of_ours_pass() -> None:
    assert plainly("step", ValueError("ours")) is None
