"""What exchanges on this side: a lace, or an archive on Spark (`lace serve`, `interlace`, `follow`).

Rule: a missing lace or archive is reported before anything is bound or dialled; Spark starts with the first job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.arguments import not_a_file, opened
from lace.cli.options.spark import spark_options
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import say
from lace.cli.output.words import count_of
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.cli.options.links import LinkChoices
    from lace.cli.options.policies import RuleChoices
    from lace.interlace.host import Host
    from lace.interlace.setup.terms import Terms
    from lace.notation.identifiers import Verifier
    from lace.people.policyrecords import PolicyVersion
    from lace.porcelain.lace import Lace
    from lace.runtime.host.quotas import QuotaGate
    from lace.runtime.node.node import Node, NodeLimits
    from lace.spark.peer.jobs import Read

F = TypeVar("F", bound=Callable[..., Any])
Say = Callable[[str, str], None]
_SCHEMES = ("file:", "viewfs:")
MOST_POLICIES = 3  # that may come in one command, each newer than the one before
ENDED_WELL = (ExitCode.OK, ExitCode.NOTHING, ExitCode.REFUSED, ExitCode.INCOMPLETE)
_POLL_SECONDS = 1.0  # how often an archive is polled for new versions


@dataclass(frozen=True, slots=True)
class Side:
    """What a node exchanges: a store with a cursor and, unless it is a lace's, what makes the hosts over it."""

    store: Any
    make_host: Callable[[Terms, QuotaGate], Host[Any]] | None = None
    lace: Lace | None = None  # None for an archive
    get_ready: Callable[[], None] | None = None  # may be slow; a server calls it before it listens

    policy: list[Any] = field(default_factory=list)  # the policy in force when it was looked at last

    def has_newer_policy(self, chosen: RuleChoices) -> bool:
        """Whether another policy is in force than when this was asked last; then it is told on stderr."""
        now = self.lace.policy() if self.lace is not None else None
        before, self.policy[:] = self.policy[0] if self.policy else None, [now]
        if now is None or not chosen.follows_policy:
            return False
        newer = now.in_force.newer_than(before.in_force if before is not None else None)
        for line in newer_policy_lines(self.lace, newer) if self.lace is not None else ():
            say(line, err=True)
        return bool(newer) or (before is not None and before.in_force.hashes != now.in_force.hashes)

    def with_quotas(self, choices: LinkChoices) -> LinkChoices:
        """The choices with the quotas of the lace's policy, unless options say some."""
        policy = self.lace.policy() if self.lace is not None else None
        return replace(choices, quotas=policy.quotas) if policy is not None and not choices.quotas else choices

    def limits(self, limits: NodeLimits | None = None) -> NodeLimits | None:
        """The limits of its node: an archive is polled less often than a lace."""
        if self.make_host is None:
            return limits
        from lace.runtime.node.node import NodeLimits

        return replace(limits or NodeLimits(), store_poll_s=_POLL_SECONDS)


def is_archive(place: str | Path) -> bool:
    """Whether this names an archive: an address of any filesystem, or a folder with a log of commits in it."""
    text = str(place)
    return "://" in text or text.startswith(_SCHEMES) or (Path(text) / "log").is_dir()


class LaceOrArchive(click.ParamType[Any]):
    """The path of a lace, or the address of an archive."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        if problem := not_a_file(str(value)):
            self.fail(problem, param, ctx)
        return str(value) if is_archive(value) else Path(value)


def side_argument(*, required: bool = True) -> Callable[[F], F]:
    """PATH, a lace or an archive, and `--master` for the latter."""

    def decorate(function: F) -> F:
        master = spark_options("With an archive: Spark master, as in `lace archive`.")
        return click.argument("path", type=LaceOrArchive(), required=required, is_eager=True)(master(function))

    return decorate


@contextmanager
def opened_side(place: str | Path, master: str | None = None, say: Say | None = None) -> Iterator[Side]:
    """The lace or the archive at a place; it must exist."""
    if not is_archive(place):
        if master is not None:
            raise click.UsageError(f"--master needs an archive, and {place} is not one")
        with opened(Path(place), write=True) as lace:
            yield Side(lace.store, lace=lace, policy=[lace.policy()])
        return
    from lace.cli.commands.archive import open_archive
    from lace.spark.peer.peer import ArchivePeer

    archive = open_archive(str(place), master, say, is_served=True)
    peer = ArchivePeer(archive, told=_teller(archive.progress))
    peer.state()
    try:
        yield Side(peer, peer.host, get_ready=peer.get_ready)
    finally:
        peer.close()


@contextmanager
def watching_policy(
    side: Side, chosen: RuleChoices, node: Node, tell: Callable[[Sequence[str]], None], *, has_quotas: bool = False
) -> Iterator[None]:
    """While this lasts, a newer policy of the lace is told, and the links of the node go on under it."""
    lace = side.lace
    if lace is None:
        yield
        return
    from lace.porcelain.policy import LacePolicy, policy_quotas
    from lace.porcelain.policywatch import PolicyWatch

    def take(policy: LacePolicy, newer: list[PolicyVersion]) -> None:
        tell([*newer_policy_lines(lace, newer)])
        if chosen.follows_policy:
            node.change_rules(chosen.rules(lace, is_told=False))
        if not has_quotas:
            node.reload(policy_quotas(policy))

    def members(now: frozenset[Verifier]) -> None:
        ended = node.know_members(now)
        if ended:
            tell([f"{count_of(ended, 'link')} of who left end{'s' if ended == 1 else ''}"])

    task = asyncio.get_running_loop().create_task(PolicyWatch(lace, take, tell_members=members).run())
    try:
        yield
    finally:
        task.cancel()


def newer_policy_lines(lace: Lace, versions: Sequence[PolicyVersion]) -> Iterator[str]:
    """One line for each admin and day: `anna's policy of 18 Nov is newer: select, tip`."""
    from lace.cli.commands.policy import teller

    told, said = teller(lace.store), dict[str, list[str]]()
    for version in versions:
        who = told(version.signer) if version.signer else "nobody"
        said.setdefault(f"{who}'s policy of {day_of(version.tai)}", []).append(str(version.kind))
    for of, kinds in said.items():
        yield f"{of} is newer: {', '.join(kinds)}"


def day_of(tai: str) -> str:
    """The day of a time, as people say it: `18 Nov`; with the year if it is another one."""
    from lace.notation.tai import TAI

    when = datetime.fromtimestamp(TAI(tai).to_unix_ns() // 10**9, UTC)
    year = f" {when.year}" if when.year != datetime.now(UTC).year else ""
    return f"{when.day} {when:%b}{year}"


def _teller(say: Say) -> Callable[[Read], None]:
    def told(read: Read) -> None:
        say(read.what, f"{read.files:,} files, {read.rows:,} rows, {read.bytes / 1e6:,.1f} MB, {read.seconds:.1f} s")

    return told
