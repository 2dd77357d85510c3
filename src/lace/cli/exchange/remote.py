"""One bounded exchange with a peer elsewhere, and `--from ADDRESS` for the verbs get and ls (110).

Rule: `--from` is not a remote command. A verb contributes a selector, runs ordinary bounded exchanges into the local
lace, and then reads there. Nothing of ours is sent; the peer's rules see manifests whose parts we lack, and nothing
else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.links import LinkChoices, captured, link_options, make_node, make_terms
from lace.cli.options.remotes import RemoteType
from lace.cli.output.failure import ExitCode
from lace.cli.output.interrupts import run_until_interrupted
from lace.cli.output.outcome import exit_code_of, print_left_out, print_outcome
from lace.cli.output.progress import ProgressMeter, metered

if TYPE_CHECKING:
    from lace.interlace.events import Event
    from lace.interlace.host import Host
    from lace.interlace.setup.terms import Terms
    from lace.notation.identifiers import RecordHash
    from lace.policy.operand import Module
    from lace.porcelain.lace import Lace
    from lace.records.model import ValidRecord
    from lace.runtime.host.quotas import QuotaGate
    from lace.runtime.link.session import Outcome
    from lace.runtime.node.node import Hooks
    from lace.store.base import RecordStore

F = TypeVar("F", bound=Callable[..., Any])
HASHES_AT_ONCE = 200  # a selector has at most 256 rules


def exchange_once(
    store: RecordStore,
    address: Any,
    terms: Terms,
    choices: LinkChoices,
    trace: Path | None = None,
    make_host: Callable[[Terms, QuotaGate], Host[Any]] | None = None,
) -> tuple[Outcome, float, tuple[int, int]]:
    """Run one exchange with a progress bar; return its outcome, its seconds, and the stream's bytes in and out."""
    from lace.runtime.node.node import Hooks
    from lace.workers.allocator import keep_freed_memory

    keep_freed_memory()
    started = time.monotonic()
    hooks = Hooks()

    async def run() -> tuple[Outcome, tuple[int, int]]:
        node = make_node(store, choices, hooks, make_host=make_host)
        try:
            outcome = await node.exchange(address, terms)
        finally:
            await node.shutdown()
        return outcome, (node.metrics.get("bytes_received_total"), node.metrics.get("bytes_sent_total"))

    with captured(trace, hooks), metered(f"exchanging with {address}") as meter:
        _show_progress(hooks, meter)
        outcome, moved = run_until_interrupted(run())
    return outcome, time.monotonic() - started, moved


def _show_progress(hooks: Hooks, meter: ProgressMeter) -> None:
    hooks.on_event = lambda _, event: count_moved(meter, event)


def count_moved(meter: ProgressMeter, event: Event) -> None:
    """Count the records that move; both sides say at the beginning of each loop how many they are."""
    from lace.interlace.events import Received, Rejected, Requested, Sent

    match event:
        case Requested(by_us, by_peer):
            meter.expect((meter.total or 0) + by_us + by_peer)
        case Received(hashes) | Sent(hashes):
            meter.advance(len(hashes))
        case Rejected(reasons):
            meter.advance(len(reasons))
        case _:
            pass


def from_options(function: F) -> F:
    """`--from PEER` and how that connection is made."""
    function = link_options(function)
    return click.option(
        "--from", "source", type=RemoteType(), metavar="PEER", help="First fetch it from this address or remote."
    )(function)


def fetch(lace: Lace, address: Any, choices: LinkChoices, wanted: str) -> None:
    """Fetch what a hash, coordinate or prefix names into the lace, including the parts of large content."""
    pull(lace, address, choices, selector_of(wanted))


def pull(lace: Lace, address: Any, choices: LinkChoices, module: Module) -> None:
    """Run one bounded exchange that only receives; anything but a fixed point ends the command.

    Records that were not kept are reported but do not end it: one bad record must not keep all others away.
    """
    outcome, seconds, moved = exchange_once(lace.store, address, make_terms(module, (), is_open=False), choices)
    code = exit_code_of(outcome)
    if code is ExitCode.REFUSED:
        print_left_out(outcome.result)
    elif code not in (ExitCode.OK, ExitCode.NOTHING):  # the caller reports if it misses what was not shown
        print_outcome(outcome, seconds, *moved, as_json=False)
        raise click.exceptions.Exit(code)


def selector_of(wanted: str) -> Module:
    """The selector of a record's name or of a prefix."""
    from lace.policy.select import select_hash, select_word

    return select_word(wanted) or select_hash(wanted)


def pieces_of(lace: Lace, record: ValidRecord) -> Iterator[RecordHash]:
    """Everything that a manifest names, as far down as its nested manifests are stored here."""
    from lace.records.manifest import is_manifest, manifest_pieces

    if not is_manifest(record):
        return
    for piece in manifest_pieces(record):
        yield piece.target
        if piece.target.type == "P" and lace.store.have(piece.target):
            yield from pieces_of(lace, lace.load(piece.target))


def with_pieces(lace: Lace, records: Sequence[RecordHash]) -> list[RecordHash]:
    """Records and everything their manifests name, each once."""
    found: dict[RecordHash, None] = {}
    for record in records:
        found[record] = None
        found.update(dict.fromkeys(pieces_of(lace, lace.load(record))))
    return list(found)
