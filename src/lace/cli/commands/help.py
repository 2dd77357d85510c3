"""`lace help [TOPIC]`: a command's help page, or one of the topics that belong to no single command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from lace.cli.output.failure import MEANING
from lace.cli.output.output import say, say_data
from lace.cli.output.text import Shown
from lace.cli.output.words import count_of

COORDINATES = """There are three ways to name a record.

  P.FCj42pghb4H3WYIb~bi89N8AUEgr6iyilDwo8Llxi4O.H3
      its hash: B for a Blob (bytes), P for a Plex (bytes under a coordinate),
      S for a Seal (a signed Plex). The hash address ////P.FCj4….H3 means the
      same. A hash always names the same record.

  //u//ding//links/1
      a coordinate: the group u, the app ding, the name links/1. Many records
      can share it; it names the tip: the newest by TAI, then by hash, of those
      not dated more than a day ahead, no matter who signed it. Everybody who
      holds the same records reads the same tip. If several people have
      written there, `lace get` and `lace ls` say who and when.

  //u//ding//links/1/|/seal/V.OEL2….H3
      a coordinate with a version selector:
        /|/plex                       the newest unsigned record
        /|/plex/TAI                   … of that time
        /|/plex/TAI/HASH              … and that hash
        /|/seal                       the newest signed record
        /|/seal/VERIFIER              … by that key
        /|/seal/VERIFIER/TAI[/HASH]   … of that time, with that hash

The beginning of a hash, P.FCj42pghb4, is enough if only one record has it.
`lace ls` and `lace export` take the beginning of a coordinate: //u, //u//ding,
//u//ding//links/ (everything below links/); //u/ and //u//ding/ mean the groups
below u and the apps below ding. A TAI time is ten digits of seconds, a colon and
nine digits of nanoseconds: 1640995237:000000000."""

ENVIRONMENT = """  LACE_HOME         where keys are kept (default $XDG_DATA_HOME/lace, else ~/.local/share/lace)
  LACE_PURE         set to 1: use the slow hash and curve code in plain Python, no compiled library
  NO_COLOR          set to anything: no colours in tables"""


def _exit_codes() -> str:
    return "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANING.items())


ADDRESSES = """An address names a transport and a place.

  tcp:HOST[:PORT]       port 4790 by default, 0 to serve on any free one; an IPv6 host in brackets
  unix:/PATH            a socket on this machine
  ws:HOST[:PORT]        WebSocket under /interlace; port 80
  wss:HOST[:PORT]       the same over TLS; port 443
  stdio                 a child process, or the parent of this one

TCP proves nothing about who is at the other end. Over ws and wss a peer proves its key (--key, --trust); over unix
sockets, users are mapped to verifiers (--uid). docs/identity.md has the details."""

_LIMIT_MEANINGS = {
    "max_base_facts": "facts of the predicates that a program reads",
    "max_runtime_facts": "of these, the facts that say where and for whom the program runs",
    "max_derived_facts_per_predicate": "facts that rules derive for one predicate",
    "max_rules": "rules in one program",
    "max_stratum_iterations": "rounds of one recursion",
    "max_tuple_arity": "values in one fact",
    "max_value_bytes": "bytes in one value",
    "max_rule_literals": "atoms in one body",
    "max_working_rows": "rows of one join before projection",
    "max_rows_touched": "rows that one evaluation works through",
    "max_peer_rows_touched": "of these, the rows that a peer's rules work through",
    "max_held_bytes": "bytes of derived facts",
}


def _limits() -> str:
    from dataclasses import asdict

    from lace.limits import EngineLimits

    lines = [f"  {name:<32} {value:>15,}  {_LIMIT_MEANINGS[name]}" for name, value in asdict(EngineLimits()).items()]
    return "\n".join(
        [
            "What an evaluation of rules may use. If a rule needs more, the command prints nothing and exits with 4.",
            "",
            *lines,
            "",
            "To change a value: for one command, `lace query --limit tuple-arity=14` (k, M, G, Ki, Mi and Gi are",
            'understood); in a rule file, `#:json {"limits": {"max_tuple_arity": 14}}`; for a node, [rule_limits] in',
            "its file; in Python, `lace.query(…, limits=lace.EngineLimits(max_tuple_arity=14))`.",
        ]
    )


def _write_man_pages(parent: click.Context, folder: Path) -> None:
    from importlib.metadata import PackageNotFoundError, version

    from lace.cli.output.manpages import man_pages

    if not isinstance(parent.command, click.Group):
        raise click.UsageError("help belongs to lace", parent)
    try:
        release = f"lace {version('lace-protocol')}"
    except PackageNotFoundError:
        release = "lace"
    folder.mkdir(parents=True, exist_ok=True)
    pages = list(man_pages(parent.command, parent, release))
    for name, text in pages:
        (folder / name).write_text(text, encoding="utf-8")
    say(f"wrote {count_of(len(pages), 'man page')} into {folder}; `man lace` shows the first")


TOPICS: dict[str, tuple[str, Callable[[], str]]] = {
    "addresses": ("How to address a peer.", lambda: ADDRESSES),
    "limits": ("What rules may use, and how to allow more.", _limits),
    "coordinates": ("How to name a record.", lambda: COORDINATES),
    "environment": ("The environment variables that lace reads.", lambda: ENVIRONMENT),
    "exit-codes": ("What the exit codes mean.", _exit_codes),
}


@click.command("help")
@click.argument("topic", required=False)
@click.option(
    "--man", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Write a man page of each command into a folder, such as ~/.local/share/man/man1.",
)  # fmt: skip
@click.pass_context
def command(ctx: click.Context, topic: str | None, folder: Path | None) -> None:
    """Explain a command or a topic.

    Topics: addresses, coordinates, environment, exit-codes, limits.
    """
    parent = ctx.parent
    if parent is None:
        raise click.UsageError("help belongs to lace", ctx)
    if folder is not None:
        _write_man_pages(parent, folder)
        return
    if topic is None:
        say(Shown(parent.get_help()))
        return
    if topic in TOPICS:
        summary, text = TOPICS[topic]
        say_data(f"{summary}\n\n{text()}")
        return
    group = parent.command
    found = group.get_command(parent, topic) if isinstance(group, click.Group) else None
    if found is None:
        raise click.UsageError(f"There is no command or topic {topic!r}. Topics: {', '.join(TOPICS)}.", ctx)
    say(Shown(found.get_help(click.Context(found, info_name=topic, parent=parent))))
