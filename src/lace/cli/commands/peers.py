"""`lace peers PATH`: who is connected to the nodes that run over a lace, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lace.cli.options.arguments import lace_argument, opened_for_rules
from lace.cli.options.names import Namer
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import span


@click.command("peers")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> ExitCode:
    """Show who is connected to the nodes that run over a lace.

    Asks each `lace serve` over this lace, on the socket that it keeps beside the file. The exit code is 1 if none runs.
    """
    from lace.runtime.node.control import answering, ask_node, no_node

    with opened_for_rules(path) as lace:
        namer = Namer.of(lace.store)
    nodes = {socket: ask_node(socket, "links") for socket in answering(path)}
    if not nodes:
        raise no_node(path)
    links = [(socket, link) for socket, found in nodes.items() for link in found["links"] if link["open"]]
    if as_json:
        for socket, link in links:
            print_json({"process": _process(socket), "name": namer.name_of(link["peer"]), **link})
    elif links:
        right = frozenset({"received", "sent", "open for"})
        rows = (_cells(namer, link) for _, link in links)
        print_table(["peer", "address", "dialled by", "state", "received", "sent", "open for"], rows, right=right)
    else:
        say("nobody is connected", err=True)
    return ExitCode.OK


def _process(socket: Path) -> int:
    return int(socket.name.rpartition("-")[2])


def _cells(namer: Namer, link: dict[str, Any]) -> list[str]:
    who = namer.shown(link["peer"]) if link["peer"] else "(proves no identity)"
    numbers = [f"{link['received']:,}", f"{link['sent']:,}", span(link["seconds"])]
    return [who, link["address"], "us" if link["dialled"] else "the peer", link["phase"], *numbers]
