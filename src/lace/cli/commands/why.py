"""`lace why PATH RECORD`: at which gate a record stops on its way to a peer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.exchange.preview import walk_to_peer
from lace.cli.options.arguments import LacePath, Target, lace_argument, opened
from lace.cli.options.links import PinType, VerifierType
from lace.cli.options.names import verifier_named
from lace.cli.options.policies import (
    RuleChoices,
    chosen_exposures,
    expose_option,
    named_selector,
    read_exposures,
    select_options,
)
from lace.cli.options.remotes import RemoteType, dialled
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, GOOD, OPEN, json_option, print_json, say, say_tree, say_verdict
from lace.cli.output.text import for_people
from lace.cli.output.words import shown_hash
from lace.errors import KeyUnavailable
from lace.notation.identifiers import Verifier, is_record_hash

if TYPE_CHECKING:
    from lace.policy.operand import Module
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.lace import Lace
    from lace.porcelain.why import Gate, Walk

MARKS: dict[bool | None, str] = {True: GOOD, False: BAD, None: OPEN}


@click.command("why")
@lace_argument
@click.argument("target", type=Target(), metavar="RECORD")
@click.option(
    "--peer",
    "peers",
    metavar="NAME|V|RULES",
    multiple=True,
    help="What you know about the other side: who it is (V.….H3, or the name of a key of the ring), and its rules "
    "(a file, all, a coordinate or a hash).",
)
@click.option("--with", "their_path", type=LacePath(), metavar="PATH", help="The other side's lace, if you have it.")
@click.option(
    "--their-expose", multiple=True, metavar="all|selected|none|FILE", help="What the other side exposes to you."
)
@click.option("--address", type=RemoteType(), metavar="PEER", help="Ask this address or remote now; no records move.")
@click.option(
    "--key", metavar="KEY|V", help="Who you are to the peer: your verifier or, with --address, a key of the ring."
)
@click.option(
    "--trust", type=VerifierType(), multiple=True, metavar="KEY|V", help="With --address: accept only this peer."
)
@click.option("--pin", type=PinType(), help="With --address over wss: accept only the certificate with this SHA-256.")
@click.option("--proof", "proofs", is_flag=True, help="Also show the rules and facts behind each gate.")
@select_options
@expose_option
@json_option
def command(
    path: Path,
    target: str,
    peers: Sequence[str],
    their_path: Path | None,
    their_expose: Sequence[str],
    address: Any,
    key: str | None,
    trust: Sequence[Any],
    pin: bytes | None,
    proofs: bool,
    sources: Sequence[str],
    coordinates: Sequence[str],
    hashes: Sequence[str],
    expose: Sequence[str],
    as_json: bool,
) -> ExitCode:
    """Show at which gate a record stops on its way to a peer.

    The first line is the verdict. Below it are the gates, in order: is it stored, is it valid, do our rules select it,
    is it exposed to that peer, do their rules select it, would they ask for it. A record that is not here is walked the
    other way, from the lace of --with or the peer of --address to this one. A question mark means that only the other
    side can tell. --proof adds the rules and facts behind each gate. The exit code is 1 if a gate is shut.
    """
    from lace.porcelain.why import WhySide, known_target, walk
    from lace.runtime.clock import SystemClock

    verifier, rules = _peer(peers, path)
    chosen = RuleChoices.of(sources, coordinates, hashes, expose)
    if address is not None and (peers or their_path is not None or their_expose):
        raise click.UsageError(
            "--address asks the peer itself, so it cannot be combined with --peer, --with or --their-expose"
        )
    if address is None and (trust or pin):
        raise click.UsageError("--trust and --pin need --address: they are about its connection")
    with ExitStack() as stack:
        lace = stack.enter_context(opened(path))
        ours = chosen.rules(lace, path)
        known = None if key is None else verifier_named(key, path)
        here = WhySide(called="here", lace=lace, module=ours.module, exposures=ours.exposures, verifier=known)
        if address is not None:
            named = key if key is not None and not key.startswith("V.") else None
            walked = walk_to_peer(here, target, *dialled(address, {"key": named, "trust": trust, "pin": pin}))
            return _tell(walked, target, proofs, _lacking(lace, walked), as_json=as_json)
        theirs = stack.enter_context(opened(their_path)) if their_path is not None else None
        record = known_target(lace, target)
        there = WhySide(
            called="there",
            lace=theirs,
            **_their_rules(theirs, their_path, rules, their_expose),
            verifier=verifier,
        )
        comes = not lace.store.have(record) and theirs is not None and theirs.store.have(record)
        sides = (there, here) if comes else (here, there)
        walked = walk(record, *sides, now=SystemClock().tai())
        found = _lacking(lace, walked)
    return _tell(walked, target, proofs, found, as_json=as_json)


def _their_rules(
    theirs: Lace | None, path: Path | None, module: Module | None, expose: Sequence[str]
) -> dict[str, Any]:
    """What is known of the other side's rules: what was said of them, else the policy that its lace carries."""
    if theirs is None or theirs.policy() is None:
        return {"module": module, "exposures": chosen_exposures(expose, module)}
    said = RuleChoices(module=module, expose=read_exposures(expose)).rules(theirs, str(path))
    return {"module": said.module, "exposures": said.exposures}


def _lacking(lace: Lace, walked: Walk) -> Incomplete | None:
    """Which parts of its content are missing here; None if the record itself is not here."""
    return lace.lacking(walked.record) if lace.store.have(walked.record) else None


def _tell(walked: Walk, target: str, proofs: bool, incomplete: Incomplete | None, *, as_json: bool) -> ExitCode:
    if as_json:
        print_json(_walk_json(walked) | {"incomplete": None if incomplete is None else incomplete.to_json()})
    else:
        _print(walked, target, proofs)
        if incomplete is not None:
            say(f"{incomplete}; ask about each part by its own hash: `lace why … {incomplete.missing[0]}`")
    return ExitCode.BAD if walked.stopped else ExitCode.OK


def _peer(given: Sequence[str], path: Path) -> tuple[Verifier | None, Module | None]:
    verifiers: list[Verifier] = []
    rules: list[str] = []
    for text in given:
        verifier = _named_verifier(text, path)
        if verifier is None:
            rules.append(text)
        else:
            verifiers.append(verifier)
    if len(verifiers) > 1 or len(rules) > 1:
        raise click.UsageError("--peer names one verifier and one set of rules")
    return (verifiers[0] if verifiers else None), (named_selector(rules[0]) if rules else None)


def _named_verifier(text: str, path: Path) -> Verifier | None:
    """The verifier that a word names; None if it names rules. A file always means rules, whatever its name."""
    if Path(text).exists() or text == "all" or text.startswith("//") or is_record_hash(text):
        return None
    try:
        return verifier_named(text, path)
    except KeyUnavailable as error:
        near = " ".join(getattr(error, "__notes__", ()))
        raise click.UsageError(f"--peer {text}: there is neither a file nor a key of that name. {near}") from None


def _print(walked: Walk, target: str, proofs: bool) -> None:
    say_verdict(*_verdict(walked, target if target.startswith("//") else shown_hash(walked.record)))
    way = "from here to there" if walked.sender.called == "here" else "from there to here"
    say_tree(f"{walked.record}, {way}")
    for gate in walked.gates:
        is_last = gate is walked.gates[-1]
        mark = MARKS[gate.passed]
        below = "   " if is_last else "│  "
        say_tree(f"{'└' if is_last else '├'}─ {mark} {gate.side}: {gate.sentence}", mark)
        if gate.remedy and (gate.passed is False or gate.name == "tip"):
            say_tree(f"{below}  → {gate.remedy}")
        if gate.because and proofs:
            for line in gate.because.rstrip("\n").split("\n"):
                say_tree(f"{below}  {line}")
    if not proofs and for_people() and any(gate.because for gate in walked.gates):
        say("--proof shows the rules and facts behind each gate", err=True)


def _verdict(walked: Walk, name: str) -> tuple[str, str]:
    stopped = walked.stopped
    if stopped is not None:
        return BAD, f"{name} stops {stopped.side}: {stopped.sentence}"
    if walked.unknown:
        return OPEN, f"nothing here stops {name}; only the other side can tell about the gates marked {OPEN}"
    return GOOD, f"every gate is open: an exchange would move {name}"


def _walk_json(walked: Walk) -> dict[str, object]:
    stopped = walked.stopped
    return {
        "record": walked.record,
        "from": walked.sender.called,
        "stops": None if stopped is None else {"side": stopped.side, "gate": stopped.name, "said": stopped.said},
        "gates": [_gate_json(gate) for gate in walked.gates],
    }


def _gate_json(gate: Gate) -> dict[str, object]:
    return {
        "side": gate.side,
        "gate": gate.name,
        "passed": gate.passed,
        "said": gate.said,
        "because": gate.because,
        "remedy": gate.remedy,
    }
