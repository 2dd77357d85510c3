"""`lace reload PATH`: have the nodes over a lace read their settings again, as SIGHUP does."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say


@click.command("reload")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> ExitCode:
    """Have running nodes read their settings again, without losing links.

    Each `lace serve` over this lace reloads its certificate and the quotas of its lace.toml, as on SIGHUP, and says
    what changed. If one cannot, it goes on as before, and the exit code is 6. The exit code is 1 if none runs. A new
    policy of the lace needs no reload.
    """
    from lace.runtime.node.control import answering, ask_node, no_node

    found = [ask_node(socket, "reload") for socket in answering(path)]
    for one in found:
        if as_json:
            print_json(one)
        else:
            say(f"process {one['process']}: {'; '.join(one['reloaded']) or 'there is nothing to reload'}")
    if not found:
        raise no_node(path)
    return ExitCode.OK
