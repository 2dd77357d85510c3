"""`lace join LINE [PATH]`: join a group by an invitation, on a machine that has nothing yet.

Rule: nothing is typed back. The line says whom to trust; everything else follows from records that the founder's key
vouches for. Running it twice does the same as running it once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.arguments import LacePath
from lace.cli.options.completing import keys
from lace.cli.options.links import LinkChoices, make_terms
from lace.cli.output.failure import ExitCode
from lace.cli.output.outcome import exit_code_of
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.text import visible_line
from lace.cli.output.words import count_of
from lace.errors import InvalidText, TransportError

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Terms
    from lace.people.roster import Person
    from lace.porcelain.invitations import InviteLine
    from lace.porcelain.lace import Lace
    from lace.records.keys import SigningKey
    from lace.runtime.link.session import Outcome

REMOTE = "home"  # the name of the remote that a line says


@click.command("join")
@click.argument("line")
@click.argument("path", type=LacePath(), required=False)
@click.option("--name", metavar="NAME", help="What the others call you; by default as the invitation says.")
@click.option(
    "--key",
    "key_name",
    metavar="KEY",
    shell_complete=keys,
    help="Join with this key of the ring; by default your only one.",
)
@json_option
def command(line: str, path: Path | None, name: str | None, key_name: str | None, as_json: bool) -> ExitCode:
    """Join a group by an invitation: make the lace and a key if there is none, and sync for the first time.

    LINE is what `lace invite` or `lace device add` printed. PATH is the lace; by default GROUP.lace here. The line pins
    the founder, the address and the certificate there, so the server is trusted with nothing. Afterwards `lace
    interlace PATH home` and `lace follow PATH home` need no options.
    """
    from lace.porcelain.invitations import InviteLine, LineKind, accept
    from lace.porcelain.lace import open_lace
    from lace.porcelain.rotation import commit_successor

    said = InviteLine.parse(line)
    where = path or Path(f"{said.root.group.rsplit('/', 1)[-1]}.lace")
    signing, called = _key_for(said, key_name, name)
    is_new = not where.exists()
    with open_lace(where, create=is_new, keys=user_ring()) as lace:
        accept(lace, said, signing, called=called)
        _remember(lace, said, signing)
        if said.kind is not LineKind.DEVICE:
            from lace.cli.options.people import successors

            commit_successor(lace, signing, successors())
        before = lace.stat().records
        outcome = _first_exchanges(lace, said, signing) if said.address else None
        received = lace.stat().records - before  # by all of them: the last one alone mostly finds nothing to do
        person = _me(lace, signing)
        policy = lace.policy()
    has_policy = policy is not None and not policy.is_waiting
    return _tell(where, said, person, outcome, received=received, has_policy=has_policy, as_json=as_json)


def _key_for(said: InviteLine, key_name: str | None, name: str | None) -> tuple[SigningKey, str]:
    """The key to join with, made if there is none; and the name to be known by, which is never that of the key."""
    from lace.porcelain.invitations import LineKind
    from lace.records.keys import SigningKey, SigningSecret

    ring = user_ring()
    names = {called: verifier for verifier, called in ring_names().items()}
    if said.kind is LineKind.DEVICE:
        own = SigningKey.from_secret(said.secret)
        if own.verifier not in names.values():
            ring.add(_free(said.called or said.root.group, names), said.secret)
        return own, said.called
    if key_name is not None:
        return ring.load(key_name), name or said.called
    if len(names) > 1:
        raise click.UsageError(f"you have several keys: choose one with --key ({', '.join(sorted(names))})")
    if names:
        (only,) = names
        return ring.load(only), name or said.called
    called = name or said.called
    entry = ring.add(_free(called or said.root.group, names), SigningSecret.generate())
    return ring.load(entry.name), called


def _free(wanted: str, taken: object) -> str:
    """A name for a key made here, from the name of a person."""
    from lace.runtime.identity.keyring import KEY_NAME

    base = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in wanted)
    base = base.lower().strip("-._")[:40] or "me"
    assert KEY_NAME.fullmatch(base)
    number, found = 2, base
    while found in taken:  # type: ignore[operator]
        number, found = number + 1, f"{base}-{number}"
    return found


def _remember(lace: Lace, said: InviteLine, signing: SigningKey) -> None:
    from lace.porcelain.remotes import Remote, add_remote, remotes_of

    if said.address and all(one.name != REMOTE for one in remotes_of(lace.store)):
        add_remote(lace.store, Remote(REMOTE, said.address, key=signing.verifier, pin=said.pin))


def _first_exchanges(lace: Lace, said: InviteLine, signing: SigningKey) -> Outcome | TransportError:
    """First as the holder of the one-time key, who learns who is who and brings our record; then as ourselves."""
    from lace.porcelain.invitations import LineKind
    from lace.porcelain.policy import people_exposure, people_selector
    from lace.records.keys import SigningKey

    try:
        if said.kind is not LineKind.DEVICE and not _is_member(lace, signing):
            guest = SigningKey.from_secret(said.secret)
            terms = make_terms(people_selector(said.root), (people_exposure(said.root),), is_open=False)
            outcome = _exchange(lace, said, guest, terms)
            if not outcome.is_complete:
                return outcome
        outcome = _exchange(lace, said, signing, _own_terms(lace))
        policy = lace.policy()
        if said.kind is LineKind.DEVICE and policy is not None and not policy.is_waiting:
            outcome = _exchange(lace, said, signing, _own_terms(lace))  # the first one brought the policy
        return outcome
    except TransportError as error:
        return error


def _own_terms(lace: Lace) -> Terms:
    policy = lace.policy()
    assert policy is not None  # the root is pinned
    return make_terms(policy.module, policy.exposures, is_open=False)


def _exchange(lace: Lace, said: InviteLine, signer: SigningKey, terms: Terms) -> Outcome:
    from lace.cli.exchange.remote import exchange_once
    from lace.iltp.address import TcpAddress, parse_address

    address = parse_address(said.address)
    proves = None if isinstance(address, TcpAddress) else signer
    outcome, _, _ = exchange_once(lace.store, address, terms, LinkChoices(pin=said.pin, signer=proves))
    return outcome


def _me(lace: Lace, signing: SigningKey) -> Person | None:
    from lace.porcelain.membership import roster

    everybody = roster(lace)
    found = everybody.of_key(signing.verifier)
    return found if found is not None and signing.verifier in found.acting else None


def _is_member(lace: Lace, signing: SigningKey) -> bool:
    return _me(lace, signing) is not None


def _tell(
    path: Path,
    said: InviteLine,
    person: Person | None,
    outcome: Outcome | TransportError | None,
    *,
    received: int,
    has_policy: bool,
    as_json: bool,
) -> ExitCode:
    if as_json:
        print_json(
            {
                "path": str(path),
                "group": said.root.group,
                "is_member": person is not None,
                "called": person.called if person else None,
                "verifier": person.verifier if person else None,
                "received": received,
                "has_policy": has_policy,
            }
        )
    if isinstance(outcome, TransportError):
        outcome.add_note(f"{path} is made and your place is signed; `lace interlace {path} {REMOTE}` goes on from here")
        raise outcome
    if outcome is not None and not outcome.is_complete:
        say(f"the exchange with {said.address} was cut off: {outcome.detail or outcome.abort}", err=True)
        return exit_code_of(outcome)
    if person is None and outcome is not None:
        error = InvalidText("the invitation lets nobody in any more", rule="invite")
        error.add_note("it was withdrawn, is over, or has let in as many as it is for; ask for another one")
        raise error
    if not as_json:
        who = visible_line(person.called) if person is not None and person.called else "you"
        verb = "are" if who == "you" else "is"
        say(f"{who} {verb} in //{said.root.group}: {path}, {count_of(received, 'record')} came from {said.address}")
        if outcome is None:
            say("the line names no address: exchange with somebody of the group to be let in", err=True)
    return ExitCode.OK
