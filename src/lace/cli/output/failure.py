"""How a command fails: the exit codes of `lace`, and what stderr says: what failed, where, and what to do.

Rule: a failure prints once, on stderr, in one block or, under --json, in one line of JSON; a script can tell failures
apart by the number from ExitCode.
"""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from enum import IntEnum

from lace.cli.output.output import json_line, say, say_begun, say_labelled, wants_json
from lace.errors import (
    IncompleteContent,
    InvalidExchangePlan,
    InvalidInput,
    InvalidLacegram,
    KeyUnavailable,
    LaceError,
    LimitExceeded,
    LocalProtocolError,
    NotFound,
    RemoteProtocolError,
    StoreError,
    TransportError,
    missing_extra,
)
from lace.limits import EngineLimits


class ExitCode(IntEnum):
    """The exit codes of `lace`; `lace help exit-codes` prints what each means."""

    OK = 0
    BAD = 1
    USAGE = 2
    STORE = 3
    LIMIT = 4
    PROTOCOL = 5
    CONNECTION = 6
    KEY = 7
    NOTHING = 8
    REFUSED = 9
    INCOMPLETE = 10
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANING = {
    ExitCode.OK: "done",
    ExitCode.BAD: "what you asked about is bad, missing or different (an invalid record, no such hash, damage found)",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.STORE: "a file or store cannot be read or written (missing, read-only, full, damaged)",
    ExitCode.LIMIT: "a limit was reached; nothing beyond it was done",
    ExitCode.PROTOCOL: "an exchange was aborted because one side broke the protocol",
    ExitCode.CONNECTION: "a connection could not be made or was lost",
    ExitCode.KEY: "a signing key is missing or cannot be used",
    ExitCode.NOTHING: "the exchange ended well, but nothing was allowed: neither side showed the other a record",
    ExitCode.REFUSED: "the exchange ended well, but one side did not keep, or confirm, all that both rules select",
    ExitCode.INCOMPLETE: "some content lacks parts: nothing is damaged, but a peer has to send the rest",
    ExitCode.BUG: "a bug in lace; run again with --debug and report what it prints",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
    ExitCode.BROKEN_PIPE: "the program reading the output stopped reading",
}

_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (InvalidInput, ExitCode.BAD),
    (IncompleteContent, ExitCode.INCOMPLETE),
    (NotFound, ExitCode.BAD),
    (KeyUnavailable, ExitCode.KEY),
    (LimitExceeded, ExitCode.LIMIT),
    (StoreError, ExitCode.STORE),
    (LocalProtocolError, ExitCode.PROTOCOL),
    (RemoteProtocolError, ExitCode.PROTOCOL),
    (TransportError, ExitCode.CONNECTION),
    (LaceError, ExitCode.BAD),
    (OSError, ExitCode.STORE),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def exit_code(error: BaseException) -> ExitCode:
    """The exit code of a failure."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.BUG)


def explain_failure(error: BaseException) -> ExitCode:
    """Print the block for a failure on stderr and return its exit code."""
    error = (missing_extra(error) if isinstance(error, ImportError) else None) or error
    code = exit_code(error)
    if wants_json() and code is not ExitCode.INTERRUPTED:
        print_json_failure(_headline(error, code), _details(error), code)
        return code
    if code is ExitCode.INTERRUPTED:
        say("interrupted", err=True)
        return code
    print_failure(_headline(error, code), _details(error))
    return code


def print_json_failure(headline: str, details: list[tuple[str, str]], code: int | None = None) -> None:
    """Print one JSON object on stderr, under `error`, with what the block for people says."""
    known: dict[str, object] = {"message": headline}
    if code is not None:
        known |= {"code": int(code), "name": ExitCode(code).name}
    for label, text in details:
        if text:
            known[label] = [*known.get(label, ()), text] if label == "try" else text  # type: ignore[misc]
    say(json_line({"error": known}), err=True)


def print_failure(headline: str, details: list[tuple[str, str]]) -> None:
    """Print one block: what went wrong, then the known details with their labels; under --json, a line of JSON."""
    if wants_json():
        print_json_failure(headline, details)
        return
    say_begun(headline, "error", fg="red", bold=True)
    width = max((len(label) for label, _ in details), default=0)
    for label, text in details:
        say_labelled(f"  {label.ljust(width)}", "\n".join(text.splitlines()), err=True)


def _headline(error: BaseException, code: ExitCode) -> str:
    if isinstance(error, InvalidInput):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if code is ExitCode.BUG:
        return f"unexpected failure: {type(error).__name__}: {error}"
    if isinstance(error, LimitExceeded):
        return f"limit {error.limit} exceeded" + (f": {error.detail}" if error.detail else "")
    return str(error)


def _details(error: BaseException) -> list[tuple[str, str]]:
    details: list[tuple[str, str]] = []
    if isinstance(error, InvalidInput):
        details = [("where", error.place), ("found", error.found), ("rule", error.rule)]
        if isinstance(error, InvalidExchangePlan):
            details += [("reason", str(finding)) for finding in error.findings]
        if isinstance(error, InvalidLacegram):
            details += [("shown", error.picture), ("try", error.advice)]
    elif isinstance(error, OSError) and error.filename is not None:
        details = [("file", os.fsdecode(error.filename))]
    elif isinstance(error, LimitExceeded):
        details = [("limit", f"{error.limit} = {error.allowed:,}"), ("rule", error.rule), ("try", error.advice)]
        if any(field.name == error.limit for field in fields(EngineLimits)):
            details.append(("see", "`lace help limits` for what it bounds and how to allow more"))
    if exit_code(error) is ExitCode.BUG:
        details.append(("try", "the same command with --debug: `lace --debug …` shows where it failed"))
    notes: list[str] = getattr(error, "__notes__", [])
    details += [("try", note) for note in notes]
    return [(label, text) for label, text in details if text]


def leave_quietly() -> None:
    """After a broken pipe: let the interpreter flush into nothing instead of complaining at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
