"""`lace cert HOST…`: a self-signed certificate for wss."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from lace.cli.output.output import json_option, print_fields, print_json


@click.command("cert")
@click.argument("hosts", nargs=-1, metavar="HOST…")
@click.option(
    "--cert", "certificate", type=click.Path(path_type=Path), default="cert.pem", help="Where to write the certificate."
)
@click.option("--cert-key", "key", type=click.Path(path_type=Path), default="key.pem", help="Where to write its key.")
@click.option(
    "--days", type=click.IntRange(1, 36500), default=825, help="How many days it is valid.", show_default=True
)
@click.option("--renew", is_flag=True, help="Replace the certificate by a new one for the same key; the pin stays.")
@json_option
def command(hosts: Sequence[str], certificate: Path, key: Path, days: int, renew: bool, as_json: bool) -> None:
    """Create a self-signed certificate for wss and print its pin.

    HOST is a name or an IP address that peers dial to reach the server. Peers pass the pin to --pin; they then accept
    only certificates of this key and need no CA. Existing files are never overwritten, except by --renew: it keeps the
    key and, unless HOSTs are given, the hosts, so peers notice nothing. `lace reload` has a running server use it.
    """
    from lace.notation import b64a
    from lace.transports.certificate import renew_self_signed, write_self_signed

    if not hosts and not renew:
        raise click.UsageError("name the HOSTs that peers dial")
    write = renew_self_signed if renew else write_self_signed
    pin = write(certificate, key, hosts, not_before=datetime.now(UTC), valid_days=days)
    fields = {"certificate": str(certificate), "key": str(key), "pin": b64a.encode(pin), "sha256": pin.hex()}
    if as_json:
        print_json(fields)
    else:
        print_fields(fields.items())
