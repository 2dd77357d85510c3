"""`lace top PATH`: the links of the nodes that run over a lace, live.

Rule: nodes are only asked, never changed. A rate is the difference between two answers of one node, measured by the
node's own clock; what is drawn depends on nothing but the answers and the size of the terminal.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from lace.cli.options.arguments import lace_argument, opened_for_rules
from lace.cli.options.names import Namer
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, COLOURS, GOOD, NOTE, json_option, print_json, say
from lace.cli.output.tables import Layout
from lace.cli.output.text import Shown, folded, for_people, shown, styled, terminal_width, visible_line
from lace.cli.output.words import clock, count_of, rate, span
from lace.errors import TransportError
from lace.values import dataclass

COLUMNS = ("peer", "phase", "waits for", "in", "out", "received", "sent", "refused", "open for", "address")
DROPPED = ("address", "open for", "sent", "received", "refused", "waits for", "out", "in")
RIGHT = frozenset(COLUMNS[2:9])
FEWEST_LINKS = 3  # that are shown however low the terminal is
REASONS = 4  # of refusals, and as many of what ended or went wrong
LINES_AROUND = 6  # the verdict, headings, what is left out, the last line


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """What every node over a lace said at one moment, by its process."""

    nodes: Mapping[int, dict[str, Any]]

    def links(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The open links, with the process of each."""
        for process, node in self.nodes.items():
            yield from ((process, link) for link in node["links"] if link["open"])


@click.command("top")
@lace_argument
@click.option(
    "--every", type=click.FloatRange(0.2, 3600), default=1.0, show_default=True, metavar="SECONDS",
    help="How often the nodes are asked.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Measure once, print, and end; so it is where no terminal is.")
@json_option
def command(path: Path, every: float, once: bool, as_json: bool) -> ExitCode:
    """Watch the links of running nodes: phases, rates, what waits, what was refused.

    The first line sums it up. Each row is an open link: the peer, its phase, how many requested records have not
    arrived yet, bytes a second in and out, and the records received, sent and refused since it opened. Asks each
    `lace serve` over this lace, on the socket that it keeps beside the file, like `lace peers`. q or Ctrl-C ends it.
    The exit code is 1 if no node runs.
    """
    with opened_for_rules(path) as lace:
        namer = Namer.of(lace.store)
    answers = _asked(path)
    if not answers.nodes:
        say(f"no node runs over {path}; `lace serve` starts one", err=True)
        return ExitCode.BAD
    if as_json:
        _print_json(path, answers, every, namer, once)
    elif once or not for_people() or not sys.stdin.isatty():
        time.sleep(every)
        for line in screen(path.name, answers, _asked(path), namer, terminal_width(), None):
            say(line)
    else:
        _watch(path, answers, every, namer)
    return ExitCode.OK


def _asked(path: Path) -> NodeAnswers:
    """What the nodes answer now; one that ended meanwhile is left out."""
    from lace.runtime.node.control import answering, ask_node

    nodes = {}
    for socket in answering(path):
        try:
            nodes[int(socket.name.rpartition("-")[2])] = ask_node(socket, "links")
        except TransportError:
            continue
    return NodeAnswers(nodes)


def _print_json(path: Path, before: NodeAnswers, every: float, namer: Namer, once: bool) -> None:
    """One line for each open link, at every moment."""
    while True:
        time.sleep(every)
        now = _asked(path)
        speeds = rates(before, now)
        for process, link in now.links():
            into, out = speeds.get((process, link["link"]), (0.0, 0.0))
            name = namer.name_of(link["peer"])
            print_json({"process": process, "name": name, "bytes_in_s": into, "bytes_out_s": out, **link})
        sys.stdout.flush()
        if once:
            return
        before = now


# --- what is shown


def rates(before: NodeAnswers, now: NodeAnswers) -> dict[tuple[int, int], tuple[float, float]]:
    """Bytes a second in and out of each link that was open at both moments, by process and number."""
    then = {(process, link["link"]): link for process, link in before.links()}
    found = {}
    for process, link in now.links():
        earlier = then.get((process, link["link"]))
        passed = now.nodes[process]["seconds"] - before.nodes[process]["seconds"] if earlier else 0.0
        if earlier and passed > 0:
            moved = (link["bytes_in"] - earlier["bytes_in"], link["bytes_out"] - earlier["bytes_out"])
            found[process, link["link"]] = (moved[0] / passed, moved[1] / passed)
    return found


def screen(
    name: str, before: NodeAnswers, now: NodeAnswers, namer: Namer, columns: int, lines: int | None
) -> list[Shown]:
    """Everything that is drawn: the verdict, the links, what was refused, what ended. `lines` bounds how much."""
    speeds = rates(before, now)
    links = list(now.links())
    told = [*_verdict(name, now, links, list(speeds.values()), columns), Shown()]
    beneath = [*_refusals(links, columns), *_lately(now, namer, columns)]
    room = len(links) if lines is None else max(FEWEST_LINKS, lines - LINES_AROUND - len(beneath))
    rows = [_row(namer, link, speeds.get((process, link["link"]))) for process, link in _busiest(links, speeds)]
    if rows:
        layout = Layout.of(COLUMNS, rows, RIGHT, DROPPED, columns)
        told += [*layout.heading(), *(line for row in rows[:room] for line in layout.lines(row))]
        if len(rows) > room:
            told.append(styled(f"and {count_of(len(rows) - room, 'more link')} with less traffic", dim=True))
    else:
        told.append(styled("nobody is connected", dim=True))
    return [*told, *beneath]


def _busiest(
    links: Sequence[tuple[int, dict[str, Any]]], speeds: Mapping[tuple[int, int], tuple[float, float]]
) -> list[tuple[int, dict[str, Any]]]:
    def order(one: tuple[int, dict[str, Any]]) -> tuple[float, int, int, int]:
        process, link = one
        return -sum(speeds.get((process, link["link"]), (0.0, 0.0))), -link["waits_for"], process, link["link"]

    return sorted(links, key=order)


def _verdict(
    name: str,
    now: NodeAnswers,
    links: Sequence[tuple[int, dict[str, Any]]],
    speeds: Sequence[tuple[float, float]],
    columns: int,
) -> Iterator[Shown]:
    refused = sum(sum(_refused(link).values()) for _, link in links)
    troubles = sum(len(node["troubles"]) for node in now.nodes.values())
    mark = BAD if not now.nodes else NOTE if refused or troubles else GOOD
    if not now.nodes:
        said = "no node runs any more"
    else:
        resting = sum(link["phase"] == "at a fixed point" for _, link in links)
        waits = sum(link["waits_for"] for _, link in links)
        parts = [count_of(len(links), "link"), f"{resting:,} at rest"]
        parts += [f"waiting for {count_of(waits, 'record')}"] if waits else []
        parts += [f"{count_of(refused, 'record')} refused"] if refused else []
        parts += [f"{rate(sum(one[0] for one in speeds), 1)} in", f"{rate(sum(one[1] for one in speeds), 1)} out"]
        longest = span(max(node["seconds"] for node in now.nodes.values()))
        nodes = "the node" if len(now.nodes) == 1 else f"{len(now.nodes):,} nodes"
        said = f"{', '.join(parts)}; {nodes} up for {longest}"
    first, *others = folded(visible_line(f"{name}: {said}"), columns - 2, columns)
    yield shown(styled(mark, fg=COLOURS[mark], bold=True), " ", styled(first, bold=True))
    yield from (styled(line, bold=True) for line in others)


def _row(namer: Namer, link: dict[str, Any], speed: tuple[float, float] | None) -> list[str]:
    who = namer.shown(link["peer"]) if link["peer"] else "(proves no identity)"
    into, out = ("-", "-") if speed is None else (rate(speed[0], 1), rate(speed[1], 1))
    refused = sum(_refused(link).values())
    waits = f"{link['waits_for']:,}" if link["waits_for"] else "-"
    amounts = [waits, into, out, f"{link['received']:,}", f"{link['sent']:,}", f"{refused:,}" if refused else "-"]
    return [who, link["phase"], *amounts, span(link["seconds"]), link["address"]]


def _refused(link: Mapping[str, Any]) -> Counter[str]:
    """Records of one link that one of the two sides refused, by who and why."""
    ours = Counter(f"refused here: {why}" for why in link["rejected"].values())
    return ours + Counter({f"refused by the peer: {why}": n for why, n in link.get("refused_by_peer", {}).items()})


def _refusals(links: Sequence[tuple[int, dict[str, Any]]], columns: int) -> Iterator[Shown]:
    total: Counter[str] = Counter()
    for _, link in links:
        total += _refused(link)
    if total:
        yield Shown()
        for why, count in total.most_common(REASONS):
            yield from _labelled(f"{count:>7,}", why, columns)


def _lately(now: NodeAnswers, namer: Namer, columns: int) -> Iterator[Shown]:
    """What limits, endings and troubles the nodes told of last."""
    said = []
    for node in now.nodes.values():
        for link in node["links"]:
            who = namer.shown(link["peer"]) if link["peer"] else link["address"]
            said += [f"{who}: {limit}" for limit in link["limits"]]
            if not link["open"] and link["ending"]:
                said.append(f"{who}: ended: {link['ending']}")
        said += [trouble["text"] for trouble in node["troubles"]]
    if said:
        yield Shown()
        for text in said[-REASONS:]:
            yield from _labelled(NOTE, text, columns)


def _labelled(label: str, text: str, columns: int) -> Iterator[Shown]:
    beside = len(label) + 2
    pieces = folded(visible_line(text), columns - beside, columns - beside)
    for number, piece in enumerate(pieces):
        yield shown(" " * beside if number else styled(f"{label}  ", fg=COLOURS[NOTE]), piece)


# --- the terminal


def _watch(path: Path, before: NodeAnswers, every: float, namer: Namer) -> None:
    """Draw until q, Ctrl-C or the end of the process is asked for; the terminal is as before then."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with _ends_quietly(), _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        earlier = now = before
        while True:
            size = console.size
            lines = screen(path.name, earlier, now, namer, size.width, size.height)
            hint = styled(f"{clock()}  every {every:g} s; q ends", dim=True)
            shown_lines = [*lines[: max(1, size.height - 1)], hint]
            live.update(Text.from_ansi("\n".join(shown_lines), no_wrap=True, overflow="crop"), refresh=True)
            if pressed(every):
                return
            earlier, now = now, _asked(path)


@contextmanager
def _ends_quietly() -> Iterator[None]:
    """Ctrl-C and a request to end leave through the same door, so that the terminal is given back."""

    def end(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Waits so many seconds, and says whether q was pressed meanwhile."""
    import termios
    import tty

    saved = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)

    def pressed(seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            ready, _, _ = select.select([sys.stdin], [], [], left)
            if ready and ((typed := os.read(sys.stdin.fileno(), 64)) == b"" or b"q" in typed.lower()):
                return True
        return False

    try:
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
