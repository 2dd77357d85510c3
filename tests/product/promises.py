"""What an exchange promises to people, looked at from outside: by reading both laces, not by asking the machine.

Rule: an outcome that says "converged" is believed to the letter. Whatever it does not name as missing must be readable
on both sides, with the same bytes, the same tip and the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from interop.harness import PATIENCE_S
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of, incomplete_after
from lace.errors import IncompleteContent, LaceError, NotFound
from lace.iltp.address import parse_address
from lace.interlace.result import InterlaceResult
from lace.notation.identifiers import RecordHash
from lace.porcelain.exchange import local_parties
from lace.porcelain.lace import Lace
from lace.porcelain.why import WhySide, walk
from lace.records.manifest import is_manifest
from lace.runtime.link.session import Outcome
from lace.runtime.local.local import ExchangeAborted, exchange
from lace.runtime.node.node import Hooks, Node
from lace.transports.dial import TransportOptions
from product.worlds import SideOfWorld, World

INCOMPLETE = "incomplete"
ALL_NAMES = "Seen(P,G,A,N,T) :- Field(P,'Group',_,G), Field(P,'App',_,A), Field(P,'Name',_,N), Field(P,'TAI',_,T)."


@dataclass
class Met:
    """One exchange: how it ended for each side."""

    outcomes: tuple[Outcome, Outcome]

    @property
    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        return self.outcomes[0].result, self.outcomes[1].result

    @property
    def moved(self) -> int:
        """Records whose bytes crossed in either direction, kept or not."""
        return sum(len(one.received_hashes) + len(one.rejected_hashes) for one in self.results)

    @property
    def is_final(self) -> bool:
        """Whether both sides came to a fixed point, so that nothing is left to move."""
        return all(not outcome.abort and outcome.result.fixed_point for outcome in self.outcomes)

    def is_named(self, record: str) -> bool:
        """Whether an outcome names this record as refused, rejected or not available."""
        return any(
            record in one.rejected_hashes
            or record in one.not_available_hashes
            or record in one.refused_hashes
            or record in one.held_back_by_peer.records
            for one in self.results
        )


def exit_codes(world: World, met: Met, one: Lace, two: Lace) -> tuple[ExitCode, ExitCode]:
    """What `lace interlace` would exit with on each side."""
    codes = [
        exit_code_of(outcome, incomplete_after(opened, side.module))
        for outcome, opened, side in zip(met.outcomes, (one, two), world.sides, strict=True)
    ]
    return codes[0], codes[1]


def names_what_is_missing(outcome: Outcome) -> bool:
    """Whether an outcome that is not 'converged' says in which way."""
    result = outcome.result
    return bool(
        outcome.abort
        or result.limit_reached
        or result.closed_by_peer
        or result.has_refusals
        or result.unconfirmed_hashes
    )


def meet(world: World, one: Lace, two: Lace, folder: Path) -> Met:
    """One bounded exchange of a world, by its own way."""
    if world.way == "process":
        return _meet_in_process(world, one, two)
    return asyncio.run(_meet_by_wire(world, one, two, folder))


def _meet_in_process(world: World, one: Lace, two: Lace) -> Met:
    first, second = ((side.module, side.exposures) for side in world.sides)
    parties = local_parties(one, two, first, second)
    try:
        results = exchange(*parties, clock=world.clock)
    except ExchangeAborted as abort:
        told = tuple(Outcome(result, abort.reason.value, abort.detail) for result in abort.results)
        return Met((told[0], told[1]))
    return Met((Outcome(results[0]), Outcome(results[1])))


async def _meet_by_wire(world: World, one: Lace, two: Lace, folder: Path) -> Met:
    ended: asyncio.Queue[Outcome] = asyncio.Queue()
    hooks = Hooks(on_end=lambda _, outcome: ended.put_nowait(outcome))
    transport = TransportOptions(clock=world.clock.tai)
    serving = Node(two.store, transport, world.clock, hooks=hooks, quotas=world.sides[1].quotas)
    dialling = Node(one.store, transport, world.clock, quotas=world.sides[0].quotas)
    address = f"unix:{folder}/s{world.seed}" if world.way == "unix" else f"{world.way}:127.0.0.1:0"
    try:
        bound = await serving.listen(parse_address(address, listening=True), world.sides[1].terms(world.thresholds))
        outcome = await asyncio.wait_for(
            dialling.exchange(bound, world.sides[0].terms(world.thresholds)), PATIENCE_S * 3
        )
        other = await asyncio.wait_for(ended.get(), PATIENCE_S)
    finally:
        await dialling.shutdown()
        await serving.shutdown()
    return Met((outcome, other))


# --- what is promised ----------------------------------------------------------------------------------------------


def broken_promises(world: World, met: Met, one: Lace, two: Lace) -> Iterator[str]:
    """Every sentence of the promise that does not hold of two laces after an exchange that says it converged."""
    yield from _lacking(world, met, one, two)
    yield from _differing(world, one, two)
    yield from _incomplete(world, met, one, two)


def _hashes(lace: Lace) -> set[str]:
    return {str(record) for _, record in lace.store.records_since()}


def _fields(lace: Lace, record: str) -> dict[str, str]:
    fields = dict.fromkeys(("Group", "App", "Name", "Signed-By"), "")
    fields |= {fact.values[1]: fact.values[3] for fact in lace.facts(record) if fact.predicate.name == "Field"}
    return fields


def _lacking(world: World, met: Met, one: Lace, two: Lace) -> Iterator[str]:
    """What one side has, both rules select and its holder shows, the other has too, or the outcome names it."""
    for (here, mine), (there, other) in (
        ((world.sides[0], one), (world.sides[1], two)),
        ((world.sides[1], two), (world.sides[0], one)),
    ):
        from_here, to_there = _why(here, mine), _why(there, other)
        is_gated = _is_gated(world, there)
        is_walked = False
        for record in sorted(_hashes(mine) - _hashes(other)):
            if met.is_named(record):
                continue
            if _is_plainly_selected(here, there, mine, record):
                yield f"{record} is selected by both sides and shown, but only {here.path.name} has it"
            if is_gated and is_walked:
                continue  # where records are turned away unasked the walk proves only that it comes to its end: once
            is_walked = True
            walked = walk(RecordHash(record), from_here, to_there, now=world.clock.instant)
            if walked.stopped is None and not walked.unknown and not is_gated:
                yield f"{record} passes every gate from {here.path.name} to {there.path.name}, but did not arrive"


def _is_gated(world: World, side: SideOfWorld) -> bool:
    """Whether this side turns records away before it asks for them: then nobody names what was not asked for."""
    return side.quotas is not None or world.way != "process"


def _is_plainly_selected(here: SideOfWorld, there: SideOfWorld, mine: Lace, record: str) -> bool:
    rules = here.rules.selects, there.rules.selects
    if rules[0] is None or rules[1] is None or here.expose == "none" or there.quotas is not None:
        return False
    if record.startswith("B."):
        return here.rules.is_everything and there.rules.is_everything
    fields = _fields(mine, record)
    if not (rules[0](fields) and rules[1](fields)):
        return False
    return not _is_far_ahead(mine, fields)


def _is_far_ahead(lace: Lace, fields: Mapping[str, str]) -> bool:
    horizon = lace.tip_policy().until
    return horizon is not None and fields.get("TAI", "") > str(horizon)


def _why(side: SideOfWorld, opened: Lace) -> WhySide:
    return WhySide(called=side.path.name, lace=opened, module=side.module, exposures=side.exposures, verifier=None)


def _differing(world: World, one: Lace, two: Lace) -> Iterator[str]:
    """A coordinate with the same versions on both sides reads the same on both."""
    listed = [_by_coordinate(lace) for lace in (one, two)]
    for coordinate in sorted(listed[0].keys() & listed[1].keys()):
        if listed[0][coordinate] != listed[1][coordinate]:
            continue
        read = [_read(lace, coordinate) for lace in (one, two)]
        if INCOMPLETE in (*read[0], *read[1]) and not _both_select(*world.sides, one, read[0][0]):
            continue  # a part of it was removed before, and nobody's rules ask for it
        if read[0] != read[1]:
            yield f"{coordinate} has the same versions on both sides and reads {read[0]!r} here and {read[1]!r} there"
    both = _hashes(one) & _hashes(two)
    seen = [{row for row in lace.query(ALL_NAMES).rows() if row[0] in both} for lace in (one, two)]
    if seen[0] != seen[1]:
        yield f"the same question about records of both sides has different answers: {seen[0] ^ seen[1]}"


def _by_coordinate(lace: Lace) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in lace.list("//"):
        found.setdefault(row.coordinate, set()).add(str(row.hash))
    return {coordinate: frozenset(hashes) for coordinate, hashes in found.items()}


def _read(lace: Lace, coordinate: str) -> tuple[str, ...]:
    """The tip of a coordinate, as `get` and `ls` show it."""
    try:
        tip = str(lace.resolve(coordinate))
    except NotFound:
        return ("no tip",)
    shown = [str(row.hash) for row in lace.list(coordinate, tips=True) if row.coordinate == coordinate]
    try:
        content = lace.get(coordinate).hex()
    except LaceError as error:
        content = INCOMPLETE if isinstance(error, IncompleteContent) else str(error)
    return (tip, *shown, content)


def _incomplete(world: World, met: Met, one: Lace, two: Lace) -> Iterator[str]:
    """Content that arrived is whole wherever the other side has all of it and nothing was refused."""
    for (here, mine), (there, other) in (
        ((world.sides[0], one), (world.sides[1], two)),
        ((world.sides[1], two), (world.sides[0], one)),
    ):
        if here.expose == "none":
            continue
        for record in sorted(_hashes(mine) & _hashes(other)):
            if record.startswith("B.") or not is_manifest(mine.record(record)):
                continue
            if not _both_select(here, there, mine, record):
                continue
            if _content(mine, record) is not None and _content(other, record) is None:
                lost = [part for part in _parts(mine, record) if part not in _hashes(other) and not met.is_named(part)]
                if lost and there.quotas is None:
                    yield f"{record} lacks {lost} at {there.path.name}, though {here.path.name} has all of it"


def _both_select(here: SideOfWorld, there: SideOfWorld, mine: Lace, record: str) -> bool:
    fields = _fields(mine, record)
    return all(side.rules.selects is not None and side.rules.selects(fields) for side in (here, there))


def _parts(lace: Lace, record: str) -> list[str]:
    return [fact.values[4] for fact in lace.facts(record) if fact.predicate.name == "RecordLink"]


def _content(lace: Lace, record: str) -> bytes | None:
    try:
        return lace.get(record)
    except LaceError:
        return None
