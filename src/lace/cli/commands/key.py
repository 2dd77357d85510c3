"""`lace key new|list|show|import|lock|unlock|backup|restore|rename|rm|know`: the key ring.

Rule: a secret is printed only by `lace key show --secret` and `lace key backup`, and read only
from a file or standard input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.arguments import LacePath
from lace.cli.options.completing import keys
from lace.cli.options.groups import SummaryGroup
from lace.cli.output.output import json_option, print_fields, print_json, say, say_data
from lace.cli.output.qr import qr_code
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible

if TYPE_CHECKING:
    from lace.records.keys import SigningSecret
    from lace.runtime.identity.keyring import KeyEntry, KeyRing

F = TypeVar("F", bound=Callable[..., Any])
MAX_SECRET_BYTES = 1024
_WORDS_A_LINE = 6


def user_ring() -> KeyRing:
    """The user's ring; the passphrase of a locked key is asked for on the terminal, or read from a file."""
    from lace.runtime.identity.keyring import KeyRing

    return KeyRing.of_user(_ask_passphrase)


def ring_names() -> Mapping[str, str]:
    """The name of each verifier whose key is in the ring; empty if the ring cannot be read."""
    from lace.errors import LaceError

    try:
        return {entry.verifier: entry.name for entry in user_ring().entries()}
    except (LaceError, OSError):
        return {}


def _ask_passphrase(name: str) -> str:
    from lace.runtime.identity.keyring import passphrase_of_file

    if os.environ.get("LACE_PASSPHRASE_FILE") or not sys.stdin.isatty():
        return passphrase_of_file(name)
    return str(click.prompt(f"passphrase of the key {name}", hide_input=True, err=True))


def _new_passphrase(name: str, is_wanted: bool) -> str | None:
    if not is_wanted:
        return None
    if os.environ.get("LACE_PASSPHRASE_FILE") or not sys.stdin.isatty():
        return _ask_passphrase(name)
    text = f"new passphrase of the key {name}"
    return str(click.prompt(text, hide_input=True, err=True, confirmation_prompt=True))


def _read_secret(file: str, what: str) -> str:
    """A secret from a file or standard input; on a terminal it is asked for and not shown."""
    if file == "-" and sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, err=True))
    if file == "-":
        return sys.stdin.read(MAX_SECRET_BYTES)
    with Path(file).open(encoding="ascii", errors="replace") as opened:
        return opened.read(MAX_SECRET_BYTES)


def _lock_option(function: F) -> F:
    return click.option("--passphrase", "locked", is_flag=True, help="Lock the key with a passphrase.")(function)


def _print_entry(entry: KeyEntry, as_json: bool) -> None:
    if as_json:
        print_json(_fields(entry))
    else:
        _print_fields(_fields(entry))


def _print_fields(fields: Mapping[str, object]) -> None:
    """For people to copy, so nothing is shortened."""
    print_fields((label, visible(str(value))) for label, value in fields.items())


def _fields(entry: KeyEntry) -> dict[str, object]:
    fields: dict[str, object] = {"name": entry.name, "verifier": entry.verifier}
    return {**fields, "locked": True} if entry.is_locked else fields


@click.group("key", cls=SummaryGroup)
def command() -> None:
    """Create, list, show, import, lock and back up signing keys.

    A key has a name, which only you use, and a verifier (V.….H3), the public key that everybody sees in what you sign.
    Secrets stay in $LACE_HOME/keys, in files that only you can read.
    """


@command.command("new")
@click.argument("name")
@_lock_option
@json_option
def new(name: str, locked: bool, as_json: bool) -> None:
    """Create a signing key and keep it under NAME."""
    from lace.records.keys import SigningSecret

    passphrase = _new_passphrase(name, locked)
    _print_entry(user_ring().add(name, SigningSecret.generate(), passphrase), as_json)


@command.command("lock")
@click.argument("name", shell_complete=keys)
@json_option
def lock(name: str, as_json: bool) -> None:
    """Protect the key NAME with a passphrase, or change its passphrase.

    You are asked for the passphrase on the terminal each time the key is used; for a service, $LACE_PASSPHRASE_FILE
    names a file that holds it.
    """
    _print_entry(user_ring().lock(name, _new_passphrase(name, True)), as_json)


@command.command("unlock")
@click.argument("name", shell_complete=keys)
@json_option
def unlock(name: str, as_json: bool) -> None:
    """Remove the passphrase from the key NAME."""
    _print_entry(user_ring().lock(name, None), as_json)


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the keys, without their secrets."""
    ring = user_ring()
    entries = list(ring.entries())
    if as_json:
        for entry in entries:
            print_json(_fields(entry))
    elif entries:
        rows = [[entry.name, visible(entry.verifier), "locked" if entry.is_locked else ""] for entry in entries]
        has_locked = any(entry.is_locked for entry in entries)
        print_table(["name", "verifier", "passphrase"][: 2 + has_locked], [row[: 2 + has_locked] for row in rows])
    else:
        say(f"no keys in {ring.folder} yet; create one with `lace key new NAME`", err=True)


@command.command("show")
@click.argument("name", shell_complete=keys)
@click.option("--secret", is_flag=True, help="Print the secret. Anybody who reads it can sign in your name.")
@json_option
def show(name: str, secret: bool, as_json: bool) -> None:
    """Show the verifier of the key NAME, and with --secret its secret."""
    ring = user_ring()
    if name.startswith("V."):
        fields: dict[str, object] = {"name": name, "verifier": ring.load(name).verifier}
    else:
        fields = _fields(ring.entry(name))
    if secret:
        fields["secret"] = ring.load_secret(name).reveal()
    if as_json:
        print_json(fields)
    else:
        _print_fields(fields)


@command.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@_lock_option
@json_option
def import_(name: str, file: str, locked: bool, as_json: bool) -> None:
    """Keep an existing secret under NAME.

    The secret (&.….H3) is read from FILE or standard input, never from the command line.
    """
    from lace.errors import InvalidText, KeyUnavailable
    from lace.records.keys import SigningSecret

    text = _read_secret(file, "secret")
    try:
        secret = SigningSecret.parse(text.strip())
    except InvalidText:
        raise KeyUnavailable("this is not a signing secret, which is `&.`, 43 B64A characters and `.H3`") from None
    _print_entry(user_ring().add(name, secret, _new_passphrase(name, locked)), as_json)


@command.command("backup")
@click.argument("name", shell_complete=keys)
@click.option("--qr", is_flag=True, help="Also draw the secret as a QR code.")
@json_option
def backup(name: str, qr: bool, as_json: bool) -> None:
    """Show the key NAME as words to write down.

    Anybody who reads the words can sign in your name: keep the paper as you would keep cash. `lace key restore` makes
    the key from them, on any machine. Backups of laces hold no keys.
    """
    from lace.records.secretwords import words_of

    ring = user_ring()
    entry, secret = ring.entry(ring.named(name)), ring.load_secret(name)
    words = words_of(secret)
    if as_json:
        print_json({**_fields(entry), "words": words})
    else:
        listed = words.split()
        for at in range(0, len(listed), _WORDS_A_LINE):
            row = enumerate(listed[at : at + _WORDS_A_LINE], start=at + 1)
            say_data("   ".join(f"{number:2} {word}" for number, word in row))
        if qr:
            say_data(qr_code(secret.reveal()))
        say(f"the key {entry.name}, {entry.verifier}; `lace key restore {entry.name}` asks for these words", err=True)
    ring.note_backup(entry.name)


@command.command("restore")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@_lock_option
@json_option
def restore(name: str, file: str, locked: bool, as_json: bool) -> None:
    """Make the key NAME from the words of `lace key backup`, or from what its QR code says.

    They are read from FILE or standard input, never from the command line. A mistyped word is found by its checksum.
    """
    ring = user_ring()
    ring.require_free(name)
    secret = _secret_meant(_read_secret(file, f"the words of the key {name}"))
    entry = ring.add(name, secret, _new_passphrase(name, locked))
    ring.note_backup(name)
    _print_entry(entry, as_json)


@command.command("rename")
@click.argument("name", shell_complete=keys)
@click.argument("new_name", metavar="NEW")
@json_option
def rename(name: str, new_name: str, as_json: bool) -> None:
    """Call the key NAME by another name; its verifier stays, and nobody else notices."""
    _print_entry(user_ring().rename(name, new_name), as_json)


@command.command("rotate")
@click.argument("name", shell_complete=keys)
@click.argument("paths", type=LacePath(exists=True), nargs=-1, required=True, metavar="LACE…")
@json_option
def rotate(name: str, paths: Sequence[Path], as_json: bool) -> None:
    """Put the successor of the key NAME in its place, in the laces named.

    A key commits to its successor on the day on which it joins a group, so a thief of the key cannot choose one. What
    the key signed so far stands; nothing else that it signs comes in. Afterwards the new key is called NAME, and the
    old one NAME-old (NAME-old2 if there is one already). If this was interrupted, run it again.
    """
    from lace.cli.options.arguments import opened
    from lace.cli.options.people import successors
    from lace.errors import KeyUnavailable
    from lace.porcelain.rotation import rotate as put_successor
    from lace.porcelain.rotation import use_key

    ring, kept = user_ring(), successors()
    before = ring.own(name)
    successor, aside = kept.find(before), _name_for_old(ring, name)
    if successor is None:
        raise KeyUnavailable(f"there is no successor of {name!r} in {kept.folder}; an admin can `lace member replace`")
    for path in paths:
        with opened(path, write=True) as lace:
            written = put_successor(lace, before, kept)
            use_key(lace, before, successor.key.verifier)
        if not as_json:
            say(f"{path}: {name} signs with a new key; {written.stands} records of the old one stand")
    ring.rename(name, aside)
    entry = ring.add(name, successor.secret)
    _print_entry(entry, as_json)


def _name_for_old(ring: KeyRing, name: str) -> str:
    """A free name for a key that was replaced."""
    aside, number = f"{name}-old", 1
    while ring.has(aside):
        number += 1
        aside = f"{name}-old{number}"
    ring.require_free(aside)  # refuses a name that is too long, before anything is written
    return aside


@command.command("rm")
@click.argument("name", shell_complete=keys)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def rm(name: str, yes: bool, as_json: bool) -> None:
    """Remove the secret of the key NAME from this machine.

    Nobody can sign with it any more, unless it is restored from a backup. What it signed stays valid.
    """
    ring = user_ring()
    verifier = ring.verifier_in_file(name)
    if not yes:
        backed = "" if ring.has_backup(name) else ", and `lace key backup` was never run for it"
        if not sys.stdin.isatty():
            raise click.UsageError(f"this removes the only copy here of the secret of {name}{backed}; --yes does it")
        click.confirm(f"remove the secret of {name} from this machine{backed}?", abort=True, err=True)
    ring.remove(name)
    if as_json:
        print_json({"removed": name, "verifier": verifier})
    else:
        say(f"removed the key {name}" + (f", {verifier}" if verifier else ""))


def _secret_meant(text: str) -> SigningSecret:
    """The secret that a text holds, as words or as `&.….H3`; the error never repeats it."""
    from lace.errors import InvalidText, KeyUnavailable
    from lace.records.keys import SigningSecret
    from lace.records.secretwords import looks_like_words, secret_of_words

    try:
        return secret_of_words(text) if looks_like_words(text) else SigningSecret.parse(text.strip())
    except InvalidText as error:
        raise KeyUnavailable(error.message) from None


@command.command("know")
@click.argument("path", type=LacePath(exists=True), metavar="LACE", is_eager=True)
@click.argument("verifiers", nargs=-1, metavar="[KEY|V…]")
@click.option("--forget", is_flag=True, help="Forget them instead.")
@json_option
def know(path: Path, verifiers: Sequence[str], forget: bool, as_json: bool) -> None:
    """Show or change which keys a lace knows.

    A known key is a hint for people: where several have written, `lace get` and the inspector mark the keys that the
    lace does not know. It changes no answer. A key becomes known when it signs with `lace put --sign`.
    """
    from lace.cli.options.arguments import opened
    from lace.cli.options.links import VerifierType

    context = click.get_current_context()
    named = [VerifierType().convert(word, None, context) for word in verifiers]  # all of them before one is remembered
    with opened(path, write=bool(named)) as lace:
        for verifier in named:
            lace.know_key(verifier, forget=forget)
        for known in lace.known_keys():
            if as_json:
                print_json({"verifier": known})
            else:
                say_data(known)
