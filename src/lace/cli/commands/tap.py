"""`lace tap`: watch what two peers say to each other."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say, say_labelled, say_tree
from lace.cli.output.text import styled
from lace.cli.output.words import human_size

if TYPE_CHECKING:
    from lace.runtime.trace.trace import Told, TraceReader, Way
    from lace.transports.base import ByteStream

ARROW = {"in": "<", "out": ">"}


@click.command("tap")
@click.argument("source", metavar="FILE|ADDRESS")
@click.argument("target", required=False, metavar="[ADDRESS]")
@click.option("--facts", "show_facts", is_flag=True, help="Also print every fact and rule line.")
@json_option
def command(source: str, target: str | None, show_facts: bool, as_json: bool) -> ExitCode:
    """Show a stream decoded, with sizes and times.

    With a FILE: shows a capture made by --trace, or the raw bytes of one direction. With two addresses: listens on the
    first, passes everything on to the second, and shows it as it goes by; > is what the dialling side says, < the
    answer. Items stand under the phase of the exchange in which they were said. The bytes pass unchanged, but a proof
    of identity is bound to its connection and does not survive the relay.
    """
    from lace.runtime.trace.trace import TraceReader

    printer = Printer(show_facts=show_facts, as_json=as_json)
    if target is None:
        return _show_file(Path(source), TraceReader(), printer)
    from lace.cli.options.links import AddressType

    addresses = [AddressType().convert(text, None, None) for text in (source, target)]
    asyncio.run(relay(addresses[0], addresses[1], printer))
    return ExitCode.OK


class Printer:
    """Prints one line per item under the phase that it belongs to.

    The end of a block is not a line of its own, except where a side had nothing to say in its block.
    """

    def __init__(self, *, show_facts: bool, as_json: bool) -> None:
        self._show_facts = show_facts
        self._as_json = as_json
        self._phase: dict[int, str] = {}  # by link
        self._has_said: dict[tuple[int, Way], bool] = {}  # whether the block that is open holds something
        self.faults = 0

    def show(self, told: Told, link: int = 1) -> None:
        """One item."""
        self.faults += told.kind == "fault"
        if self._as_json:
            row: dict[str, object] = {"link": link, "seconds": told.ns / 1e9, "way": told.way, "offset": told.offset}
            row |= {"size": told.size, "kind": told.kind, "text": told.text, "phase": self._enter(told, link)[0]}
            if self._show_facts:
                row["lines"] = list(told.facts)
            print_json(row)
            return
        phase, is_new = self._enter(told, link)
        said = self._has_said.get((link, told.way), False)
        self._has_said[link, told.way] = told.kind != "end"
        if told.kind == "end" and said:
            return
        if is_new:
            beside = f", link {link}" if len(self._phase) > 1 else ""
            say(styled(f"{phase}{beside}", bold=True))
        text = "an empty block" if told.kind == "end" else f"{told.kind} {told.text}"
        say_labelled(f"{told.ns / 1e9:9.3f} s {ARROW[told.way]} {human_size(told.size):>9}", text)
        if self._show_facts:
            for line in told.facts:
                say_tree(f"{'':>14}{line}")

    def _enter(self, told: Told, link: int) -> tuple[str, bool]:
        """The phase of an item, and whether it is another than that of the item before it."""
        before = self._phase.get(link, "")
        phase = phase_of(told) or before or PHASES[0][0]
        self._phase[link] = phase
        return phase, phase != before


PHASES = (
    ("operands", ("ExchangeOperand",)),
    ("hello", ("Hello",)),
    ("requests", ("MayRequest", "DifferenceAsk", "Declined")),  # before the comparison, for DifferenceAsk
    ("comparison", ("Advertise", "Difference", "ListAdvertisement", "NarrowAdvertisement")),
    ("transfer", ("NotAvailable", "Refused")),
)
"""The phases of an exchange by the beginnings of the predicates that are said in them."""


def phase_of(told: Told) -> str:
    """The phase in which an item is said; empty if it may be said in any."""
    match told.kind:
        case "preface" | "resource":
            return "operands"
        case "record":
            return "transfer"
        case "close":
            return "end"
        case "facts":
            said = [part.partition(" ")[2] for part in told.text.split(", ")]
            found = (name for name, starts in PHASES for one in said if one.startswith(starts))
            return next(found, "")
        case _:
            return ""


def _show_file(path: Path, reader: TraceReader, printer: Printer) -> ExitCode:
    from lace.runtime.trace.trace import read_capture

    last = 0
    ways: list[Way] = []
    for passed in read_capture(path):
        last = passed.ns
        if passed.way not in ways:
            ways.append(passed.way)
        for told in reader.feed(passed):
            printer.show(told)
    for way in ways:
        for told in reader.end(last, way):
            printer.show(told)
    return ExitCode.BAD if printer.faults else ExitCode.OK


async def relay(listen_on: Any, pass_to: Any, printer: Printer) -> None:
    from lace.cli.options.links import LinkChoices
    from lace.errors import TransportError
    from lace.transports.dial import dial, listen

    options, _ = LinkChoices().transport()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    links = 0
    running: set[asyncio.Task[None]] = set()
    async with await listen(listen_on, options) as listener:
        say(f"listening on {listener.address}, passing on to {pass_to}", err=True)
        stopping = asyncio.create_task(stop.wait())
        while not stop.is_set():
            accepting = asyncio.create_task(listener.accept())
            await asyncio.wait([accepting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                accepting.cancel()
                break
            near = accepting.result()
            try:
                far = await dial(pass_to, options)
            except TransportError as error:
                say(str(error), err=True)
                near.abort()
                continue
            links += 1
            task = asyncio.create_task(_pass_both(near, far, links, printer))
            running.add(task)
            task.add_done_callback(running.discard)
    for task in list(running):
        task.cancel()


async def _pass_both(near: ByteStream, far: ByteStream, link: int, printer: Printer) -> None:
    from lace.runtime.trace.trace import Passed, TraceReader

    reader, started = TraceReader(), time.monotonic_ns()

    def show(way: Way, data: bytes) -> None:
        now = time.monotonic_ns() - started
        lines = reader.feed(Passed(now, way, data)) if data else reader.end(now, way)
        for told in lines:
            printer.show(told, link)

    await asyncio.gather(_pass(near, far, "out", show), _pass(far, near, "in", show))


async def _pass(source: ByteStream, sink: ByteStream, way: Way, show: Any) -> None:
    from lace.errors import TransportError

    try:
        while data := await source.receive():
            show(way, data)
            await sink.send(data)
    except TransportError as error:
        say(str(error), err=True)
    show(way, b"")
    await sink.close()
