"""What may go wrong with a node that runs for years, looked for before it does.

Rule: a check only looks. It says what it found, whether that has to be mended, and by which command.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from lace.errors import LaceError
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.transcript import Lowering
from lace.porcelain.lace import Lace
from lace.porcelain.remotes import last_exchange, remotes_of
from lace.store.version import schema_of
from lace.values import dataclass

SOON_DAYS = 30  # before its end, a certificate is due
LITTLE_SPACE = 1 << 30  # bytes
LARGE_LOG = 1 << 30  # bytes of a log that nobody has put into its file
CLOCK_SLACK_S = 60  # as far as proofs of identity allow
_SOME = 3  # that a sentence names
_GROUP_AND_OTHERS = 0o077


class Urgency(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"  # worth knowing
    MEND = "mend"  # something does not work, or will not for long


@dataclass(frozen=True, slots=True)
class CheckUp:
    """What a check found."""

    check: str
    level: Urgency
    said: str
    advice: str = ""

    def to_json(self) -> dict[str, str | None]:
        """Under names for programs."""
        return {"check": self.check, "level": self.level, "said": self.said, "try": self.advice or None}


def examine(lace: Lace, path: Path, keys: Mapping[str, str], backed_up: Collection[str], now: TAI) -> Iterator[CheckUp]:
    """Everything about a lace, for the owner of these keys (verifier: name)."""
    yield from _permissions(path)
    yield from _schema(path)
    yield from _disk(path)
    yield from _clock(lace, now)
    yield from _remotes(lace, keys)
    yield from _rules(lace)
    yield from _content(lace)
    yield from _keys(keys, backed_up)


def examine_machine() -> Iterator[CheckUp]:
    """What matters of the interpreter and its libraries."""
    version = sys.version_info
    text = ".".join(map(str, version[:3]))
    if (3, 11) <= version < (3, 11, 8) or (3, 12) <= version < (3, 12, 2):
        said = f"Python {text} keeps some 100 KiB for each TLS handshake that fails (fixed in 3.11.8 and 3.12.2)"
        yield CheckUp("interpreter", Urgency.NOTE, said, "a server of wss should run on a newer Python")
    else:
        yield CheckUp("interpreter", Urgency.OK, f"Python {text}")
    if sys.platform == "win32":
        said = "on Windows nothing is tested: unix sockets, SIGHUP and modes of files are missing there"
        yield CheckUp("platform", Urgency.NOTE, said, "run it under WSL")
    elif sys.platform == "darwin":
        yield CheckUp("platform", Urgency.NOTE, "on macOS the tests are not run regularly")
    else:
        yield CheckUp("platform", Urgency.OK, sys.platform)


def examine_certificate(path: Path, ends: float, now: float) -> CheckUp:
    """How long a certificate is valid yet; both moments in seconds since 1970."""
    days = int((ends - now) // 86_400)
    advice = "`lace cert --renew` makes a new one for the same key, `lace reload` has a running server use it"
    if days < 0:
        return CheckUp("certificate", Urgency.MEND, f"{path} ended {-days:,} days ago", advice)
    if days < SOON_DAYS:
        return CheckUp("certificate", Urgency.MEND, f"{path} ends in {days} days", advice)
    return CheckUp("certificate", Urgency.OK, f"{path} is valid for {days:,} days")


def _permissions(path: Path) -> Iterator[CheckUp]:
    if sys.platform == "win32":
        return
    mode = path.stat().st_mode & 0o777
    if mode & 0o022:
        said = f"others may write {path} (mode {mode:o})"
        yield CheckUp("permissions", Urgency.MEND, said, f"chmod 600 {path}")
    elif mode & _GROUP_AND_OTHERS:
        said = f"others on this machine may read {path} (mode {mode:o})"
        yield CheckUp("permissions", Urgency.NOTE, said, f"chmod 600 {path}, unless that is wanted")
    else:
        yield CheckUp("permissions", Urgency.OK, f"only its owner may read {path}")


def _schema(path: Path) -> Iterator[CheckUp]:
    version = schema_of(path)
    if version.is_old:
        said = f"the file has schema {version.found}; this version writes {version.current}"
        yield CheckUp("schema", Urgency.NOTE, said, f"`lace upgrade {path}` brings it up to date")
    else:
        yield CheckUp("schema", Urgency.OK, f"schema {version.found}, the newest")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size > LARGE_LOG:
        said = f"the log {log} has {log.stat().st_size:,} bytes: a process that reads for long holds it up"
        yield CheckUp("log", Urgency.NOTE, said, "end the process that has the lace open, and open the lace once")


def _disk(path: Path) -> Iterator[CheckUp]:
    free, size = shutil.disk_usage(path.absolute().parent).free, path.stat().st_size
    if free < LITTLE_SPACE:
        said = f"{free:,} bytes are free on the disk of {path}"
        yield CheckUp("disk", Urgency.MEND, said, "make room: a full disk takes no records")
    elif free < size:
        said = f"{free:,} bytes are free, fewer than the {size:,} that a backup or `lace compact` needs"
        yield CheckUp("disk", Urgency.NOTE, said)
    else:
        yield CheckUp("disk", Urgency.OK, f"{free:,} bytes are free")


def _clock(lace: Lace, now: TAI) -> Iterator[CheckUp]:
    newest = max((entry.tai for entry in lace.store.entries()), default="")
    ahead = (TAI(newest).to_ns() - now.to_ns()) // 1_000_000_000 if newest else 0
    if ahead > CLOCK_SLACK_S:
        said = f"the newest record is dated {ahead:,} s ahead of this clock: this one is slow, or its author's was fast"
        yield CheckUp("clock", Urgency.NOTE, said, "compare this clock with another")
    else:
        yield CheckUp("clock", Urgency.OK, "no record is dated ahead of this clock")


def _remotes(lace: Lace, keys: Mapping[str, str]) -> Iterator[CheckUp]:
    found = remotes_of(lace.store)
    for remote in found:
        about = f"remote {remote.name}"
        last = last_exchange(lace.store, remote.name)
        if remote.key is not None and remote.key not in keys:
            said = f"{about} proves {remote.key}, which is not in your key ring"
            yield CheckUp("remotes", Urgency.MEND, said, "`lace key restore`, or `lace remote add --replace`")
        elif isinstance(remote.place, Path) and not remote.place.is_file():
            advice = f"`lace remote rm LACE {remote.name}`, or put the lace there"
            yield CheckUp("remotes", Urgency.NOTE, f"{about}: there is no lace at {remote.place}", advice)
        elif remote.ca is not None and not remote.ca.is_file():
            yield CheckUp("remotes", Urgency.MEND, f"{about}: its CA file {remote.ca} is missing")
        elif last is None:
            yield CheckUp("remotes", Urgency.NOTE, f"{about}: there was no exchange yet")
        elif not last.fixed_point_at or last.fixed_point_at != last.at:
            why = f"{last.ending}: {last.detail}" if last.detail else last.ending
            yield CheckUp("remotes", Urgency.MEND, f"{about}: the last exchange reached no fixed point ({why})")
        else:
            yield CheckUp("remotes", Urgency.OK, f"{about}: the last exchange reached a fixed point")


def _rules(lace: Lace) -> Iterator[CheckUp]:
    """Whether the remotes went by the policy of this lace when they were met last."""
    policy = lace.policy()
    if policy is None or policy.is_waiting:
        return
    since = max(version.tai for version in policy.in_force.versions.values())
    shared = {agree(policy.module, policy.module, lowering=lowering).id for lowering in Lowering}
    met = [(remote.name, last_exchange(lace.store, remote.name)) for remote in remotes_of(lace.store)]
    plans = {name: last.plan for name, last in met if last is not None and last.plan and last.at > since}
    others = sorted(name for name, plan in plans.items() if plan not in shared)
    if others:
        said = f"in the last exchange with {', '.join(others)} the rules were not those of the policy on both sides"
        yield CheckUp("rules", Urgency.NOTE, said, "`lace status` compares; `lace policy log` there shows its policy")
    elif plans:
        yield CheckUp("rules", Urgency.OK, "all remotes went by the policy in the last exchange")


def _content(lace: Lace) -> Iterator[CheckUp]:
    lacking = list(lace.incomplete())
    if lacking:
        named = ", ".join(one.coordinate for one in lacking[:_SOME])
        said = f"{len(lacking):,} contents lack parts: {named}{' …' if len(lacking) > _SOME else ''}"
        yield CheckUp("content", Urgency.NOTE, said, "a peer has to send the rest; `lace status` says who has it")
    else:
        yield CheckUp("content", Urgency.OK, "all content is complete")


def _keys(keys: Mapping[str, str], backed_up: Collection[str]) -> Iterator[CheckUp]:
    missing = sorted(name for name in keys.values() if name not in backed_up)
    if missing:
        said = f"no backup was made of {', '.join(missing)}"
        yield CheckUp("keys", Urgency.NOTE, said, "`lace key backup` shows a key as words to write down")
    elif keys:
        yield CheckUp("keys", Urgency.OK, "a backup was made of every key")


def checked_safely(findings: Iterator[CheckUp], about: str) -> Iterator[CheckUp]:
    """The findings; a check that fails is itself one, and what came before it stays."""
    try:
        yield from findings
    except (LaceError, OSError) as error:
        yield CheckUp(about, Urgency.MEND, str(error))


def seconds_now() -> float:
    """This moment, for what counts in seconds since 1970."""
    return time.time()
