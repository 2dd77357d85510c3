"""`lace remote add|list|rm`: the peers that a lace knows by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.key import user_ring
from lace.cli.options.arguments import lace_argument, opened, opened_for_rules
from lace.cli.options.completing import keys, remotes
from lace.cli.options.groups import SummaryGroup
from lace.cli.options.links import PinType, VerifierType
from lace.cli.options.names import Namer
from lace.cli.output.output import json_option, print_json, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.errors import InvalidInput

if TYPE_CHECKING:
    from lace.notation.identifiers import Verifier
    from lace.porcelain.remotes import Remote


class PlaceType(click.ParamType[str]):
    """An address to dial, or the path of a lace on this machine, which becomes absolute."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from lace.porcelain.remotes import is_lace_path, place_of

        text = str(value)
        if is_lace_path(text):
            return str(Path(text).absolute())
        try:
            place_of(text)
        except InvalidInput as error:
            self.fail(f"{error}. `lace help addresses` lists the forms.", param, ctx)
        return text


@click.group("remote", cls=SummaryGroup)
def command() -> None:
    """Give names to peers: where they are, and what proves who they are.

    A remote is kept in the lace and its backups, and is never sent. Wherever a command takes the address of a peer, it
    also takes the name of a remote: `lace interlace LACE NAME`, `follow LACE NAME`, `get --from NAME`, `store --to
    NAME`, `browse NAME --lace LACE`, `why --address NAME`.
    """


@command.command("add")
@lace_argument
@click.argument("name")
@click.argument("address", type=PlaceType())
@click.option(
    "--key", metavar="KEY", shell_complete=keys, help="Prove your identity with this key of the ring (over ws and wss)."
)
@click.option(
    "--trust",
    type=VerifierType(),
    multiple=True,
    metavar="KEY|V",
    help="Exchange only with this peer; repeatable.",
)
@click.option("--pin", type=PinType(), help="Over wss: accept only the certificate with this SHA-256.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Over wss: accept certificates of these CAs instead of the system's.",
)
@click.option("--replace", is_flag=True, help="Change the remote of this name.")
@json_option
def add(
    path: Path,
    name: str,
    address: str,
    key: str | None,
    trust: Sequence[Verifier],
    pin: bytes | None,
    ca: Path | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Keep ADDRESS under NAME; nothing is dialled.

    ADDRESS may also be the path of a lace on this machine, such as one on a stick. Of a key only the verifier is kept:
    the secret stays in your ring.
    """
    from lace.porcelain.remotes import Remote, add_remote

    proving = user_ring().own(key) if key else None
    remote = Remote(name, address, key=proving, trust=tuple(trust), pin=pin, ca=ca.absolute() if ca else None)
    with opened(path, write=True) as lace:
        add_remote(lace.store, remote, replace=replace)
    if as_json:
        print_json(remote.to_json())
    else:
        say(f"{name} is {address}; `lace interlace {path} {name}` exchanges with it")


@command.command("list")
@lace_argument
@json_option
def list_(path: Path, as_json: bool) -> None:
    """List the remotes of a lace."""
    from lace.porcelain.remotes import remotes_of

    with opened_for_rules(path) as lace:
        found, namer = remotes_of(lace.store), Namer.of(lace.store)
    if as_json:
        print_json_lines(remote.to_json() for remote in found)
    elif found:
        rows = (_cells(remote, namer) for remote in found)
        print_table(["name", "address", "checked by", "proves"], rows, drop=("proves", "checked by"))
    else:
        say(f"{path} has no remotes; `lace remote add {path} NAME ADDRESS` adds one", err=True)


def _cells(remote: Remote, namer: Namer) -> list[str]:
    checks = [namer.shown(verifier) for verifier in remote.trust]
    checks += ["its certificate"] * (remote.pin is not None) + ["its CA"] * (remote.ca is not None)
    proves = "" if remote.key is None else namer.shown(remote.key)
    return [remote.name, remote.address, ", ".join(checks) or "-", proves or "-"]


@command.command("rm")
@lace_argument
@click.argument("name", shell_complete=remotes)
@json_option
def rm(path: Path, name: str, as_json: bool) -> None:
    """Forget the remote NAME; the records that came from it stay."""
    from lace.porcelain.remotes import remove_remote

    with opened(path, write=True) as lace:
        remove_remote(lace.store, name)
    if as_json:
        print_json({"removed": name})
    else:
        say(f"removed the remote {name}")
