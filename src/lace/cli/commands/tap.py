"""`lace tap`: watch what two peers say to each other."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.words import human_size, short_hash

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
    answer. The bytes pass unchanged, but a proof of identity is bound to its connection and does not survive the relay.
    """
    from lace.runtime.trace.trace import TraceReader

    printer = _Printer(show_facts=show_facts, as_json=as_json)
    if target is None:
        return _show_file(Path(source), TraceReader(), printer)
    from lace.cli.options.links import AddressType

    addresses = [AddressType().convert(text, None, None) for text in (source, target)]
    asyncio.run(_relay(addresses[0], addresses[1], printer))
    return ExitCode.OK


class _Printer:
    """Prints one line per item."""

    def __init__(self, *, show_facts: bool, as_json: bool) -> None:
        self._show_facts = show_facts
        self._as_json = as_json
        self.faults = 0

    def show(self, told: Told, link: int = 1) -> None:
        """One item."""
        self.faults += told.kind == "fault"
        if self._as_json:
            row: dict[str, object] = {"link": link, "seconds": told.ns / 1e9, "way": told.way, "offset": told.offset}
            row |= {"size": told.size, "kind": told.kind, "text": told.text}
            if self._show_facts:
                row["lines"] = list(told.facts)
            print_json(row)
            return
        text = short_hash(told.text) if told.kind in ("record", "resource") else told.text
        moment = f"{told.ns / 1e9:10.6f}"
        say(f"{moment} {link:>3} {ARROW[told.way]} {human_size(told.size):>10}  {told.kind:<8} {text}")
        if self._show_facts:
            for line in told.facts:
                say(f"{'':>30}{line}")


def _show_file(path: Path, reader: TraceReader, printer: _Printer) -> ExitCode:
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


async def _relay(listen_on: Any, pass_to: Any, printer: _Printer) -> None:
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


async def _pass_both(near: ByteStream, far: ByteStream, link: int, printer: _Printer) -> None:
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
