"""`lace serve PATH ADDRESS…`: a node that accepts peers until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.options.amounts import QuotaType
from lace.cli.options.links import (
    AddressType,
    LinkChoices,
    PinType,
    ProxyType,
    captured,
    link_options,
    make_node,
    trace_option,
)
from lace.cli.options.names import verifier_named
from lace.cli.options.policies import RuleChoices, expose_option, named_selector, read_exposures, select_options
from lace.cli.options.side import Side, opened_side, side_argument, watching_policy
from lace.cli.output.failure import ExitCode
from lace.cli.output.interrupts import done_or_stopped, first_of, leave_at_once, over_or_stopped
from lace.cli.output.logbook import Logbook
from lace.cli.output.output import say
from lace.cli.output.text import visible
from lace.limits import HORIZON_S
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.cli.options.nodefile import NodeFile, PolicyWords
    from lace.iltp.address import Address
    from lace.interlace.setup.terms import Terms
    from lace.limits import EngineLimits
    from lace.notation.identifiers import Verifier
    from lace.porcelain.lace import Lace
    from lace.runtime.link.session import Outcome
    from lace.runtime.node.node import Hooks, LinkInfo, Node, NodeLimits, TermsFor
    from lace.runtime.node.watching import Orders
    from lace.transports.dial import TransportOptions

SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True)
class KeptPeer:
    """A peer to keep an open exchange with."""

    address: Address
    rules: RuleChoices | None  # None: the rules of the node
    transport: TransportOptions | None


@dataclass(frozen=True, slots=True)
class Serving:
    """What a serve command is to do."""

    store: Path | str
    listen: Sequence[Address]
    rules: RuleChoices
    choices: LinkChoices
    kept: Sequence[KeptPeer]
    limits: NodeLimits | None
    metrics_port: int | None
    log: Logbook
    config: Path | None = None  # the file that all of this was read from


@click.command("serve")
@side_argument(required=False)
@click.argument("addresses", type=AddressType(listening=True), nargs=-1, metavar="ADDRESS…")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read all settings from a lace.toml."
)
@select_options
@expose_option
@link_options
@click.option("--cert", "certificate", type=click.Path(exists=True, path_type=Path), help="For wss: certificate chain.")
@click.option("--cert-key", "certificate_key", type=click.Path(exists=True, path_type=Path), help="For wss: its key.")
@click.option("--name", "names", type=AddressType(), multiple=True, help="For ws: another address that peers dial.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="For ws: allow web pages of this origin.")
@click.option(
    "--proxy",
    "proxies",
    type=ProxyType(),
    multiple=True,
    metavar="ADDRESS",
    help="A proxy in front of this server, by its IP address or `unix`: it says who dialled (PROXY header, or over ws "
    "X-Forwarded-For). Peers behind it never count as local.",
)
@click.option(
    "--loopback-is-network",
    is_flag=True,
    help="Treat peers on this machine as strangers too, for a local proxy that cannot say who dialled.",
)
@click.option(
    "--take-from-strangers",
    "takes_from_strangers",
    is_flag=True,
    help="Also request records from peers elsewhere that prove no identity.",
)
@click.option(
    "--quota",
    "quotas",
    type=QuotaType(),
    multiple=True,
    metavar="WHAT=AMOUNT",
    help="How much may be stored for each: peer, strangers, known_peer, signer, group or total, such as peer=64MiB; "
    "repeatable.",
)
@click.option(
    "--horizon",
    "horizon_s",
    type=click.FloatRange(min=0),
    default=HORIZON_S,
    show_default=True,
    metavar="SECONDS",
    help="Refuse records dated further ahead than this.",
)
@click.option(
    "--metrics", "metrics_port", type=click.IntRange(1, 65535), help="Serve counters for Prometheus on this port."
)
@click.option(
    "--watch", type=click.Path(path_type=Path), metavar="SOCKET", help="Create this socket for `lace inspect --node`."
)
@click.option("--log", "log_format", type=click.Choice(["text", "json"]), default="text", help="How to log.")
@click.option("--events", "every_event", is_flag=True, help="Log everything that happens on a link.")
@trace_option
@click.option(
    "--check", "is_check", is_flag=True, help="Only check: settings, key, certificate, lace and rules; serve nothing."
)
def command(
    path: Path | str | None,
    master: str | None,
    addresses: Sequence[Any],
    config: Path | None,
    sources: Sequence[str],
    coordinates: Sequence[str],
    hashes: Sequence[str],
    expose: Sequence[str],
    metrics_port: int | None,
    log_format: str,
    every_event: bool,
    trace: Path | None,
    watch: Path | None,
    is_check: bool,
    **links: Any,
) -> ExitCode:
    """Accept peers and exchange with each of them until stopped.

    Runs in the foreground, logs to stderr, tells systemd when it is ready, and ends cleanly on SIGTERM or Ctrl-C. On
    SIGHUP it reloads its certificate and the quotas of a lace.toml without dropping links.

    A lace that carries a policy is served by it; when a newer one arrives, open links continue under that. Links stay
    open: what arrives from one peer goes on to the others as the rules allow. PATH is a lace, or an archive
    (`lace archive`), which is served by Spark jobs. With --config all settings come from a lace.toml, including the
    peers to keep an exchange with.
    """
    if config is not None:
        if path is not None:
            raise click.UsageError("with --config, the file names the lace and its addresses")
        serving = _from_file(config, every_event)
    else:
        if path is None or not addresses:
            raise click.UsageError("name a lace and the addresses to listen on, or give --config")
        rules = RuleChoices.of(sources, coordinates, hashes, expose)
        log = Logbook(as_json=log_format == "json", every_event=every_event)
        serving = Serving(path, addresses, rules, LinkChoices(**links), (), None, metrics_port, log)
    _require_sense(serving)
    if is_check:
        return _check(serving, master)
    from lace.workers.allocator import give_back
    from lace.workers.collector import collecting_briefly

    give_back()
    with collecting_briefly():
        asyncio.run(_serve(serving, trace, watch, master))
    return ExitCode.OK


def _check(serving: Serving, master: str | None) -> ExitCode:
    """Do everything that comes before the first address is bound, and tell what would be served."""
    from lace.cli.commands.policy import findings
    from lace.transports.tls import server_context

    options, here = serving.choices.transport()
    if options.server_tls is not None:
        server_context(options.server_tls)
    found: list[str] = []
    by = "its options"
    with opened_side(serving.store, master) as side:
        terms = _terms(serving, serving.rules, side.lace)
        for peer in serving.kept:
            _peer_terms(serving, peer, side, terms)
        if side.lace is not None and side.lace.policy() is not None:
            found = list(findings(side.lace, Path(serving.store)))
            by = "the policy of the lace" if serving.rules.follows_policy else by
    for one in found:
        say(visible(one), err=True)
    where = ", ".join(map(str, serving.listen)) or "no address"
    say(f"{serving.store}: would serve at {where}, by {by}{f', as {here}' if here else ''}")
    return ExitCode.BAD if found else ExitCode.OK


def _terms(serving: Serving, rules: RuleChoices, lace: Lace | None, *, is_told: bool = True) -> Terms:
    """The terms of the node, or of a peer with rules of its own, over a lace or an archive (None)."""
    from lace.cli.options.links import make_terms

    said = rules.rules(lace, serving.store, is_told=is_told)
    terms = serving.choices.patient(make_terms(said.module, said.exposures, is_open=True))
    return replace(terms, engine_limits=rules.limits)


def _require_sense(serving: Serving) -> None:
    """Refuse what could never work before anything is bound."""
    from lace.iltp.address import TcpAddress, WebSocketAddress

    serving.choices.require_use_of_key([*serving.listen, *(kept.address for kept in serving.kept)])
    for address in serving.listen:
        if serving.choices.trust and isinstance(address, TcpAddress):
            raise click.UsageError(f"{address} proves no identity, so --trust would refuse everybody there")
        if isinstance(address, WebSocketAddress) and address.secure and serving.choices.certificate is None:
            raise click.UsageError(f"{address} needs --cert and --cert-key; create them with `lace cert`")


def _from_file(config: Path, every_event: bool) -> Serving:
    from lace.cli.options.nodefile import read_node_file

    file = read_node_file(config)
    choices = file_choices(file)
    rules = word_rules(file.policy, file.rule_limits)
    base, _ = choices.transport()
    named = _named_in(file)
    kept = []
    for peer in file.peers:
        own = word_rules(peer.policy, file.rule_limits) if peer.policy.select or peer.policy.expose else None
        transport = base
        if peer.trust or peer.pin or peer.ca:
            from lace.transports.tls import ClientTls

            pin = PinType().convert(peer.pin, None, None) if peer.pin else None
            trusted = tuple(map(named, peer.trust)) or base.trusted
            transport = replace(base, client_tls=ClientTls(pin=pin, ca_file=peer.ca), trusted=trusted)
        kept.append(KeptPeer(peer.address, own, transport))
    log = Logbook(as_json=file.log == "json", every_event=every_event)
    limits = file.node_limits()
    return Serving(file.store, file.listen, rules, choices, kept, limits, file.metrics_port, log, config)


def _named_in(file: NodeFile) -> Callable[[str], Verifier]:
    """Names of keys in a node file are those of its lace."""
    return partial(verifier_named, path=file.store if file.store.is_file() else None)


def file_choices(file: NodeFile) -> LinkChoices:
    from lace.iltp.address import WebSocketAddress

    named = _named_in(file)
    return LinkChoices(
        key=file.key,
        trust=[named(text) for text in file.trust],
        uids=[(uid, named(text)) for uid, text in file.uids.items()],
        certificate=file.certificate,
        certificate_key=file.certificate_key,
        names=[name for name in file.names if isinstance(name, WebSocketAddress)],
        origins=file.origins,
        takes_from_strangers=file.takes_from_strangers,
        proxies=file.proxies,
        loopback_is_network=file.loopback_is_network,
        unix_mode=file.unix_mode,
        quotas=list(file.quotas.items()),
        horizon_s=file.horizon_s,
        standard=file.speaks == "standard",
    )


def word_rules(words: PolicyWords, limits: EngineLimits) -> RuleChoices:
    """The rules of a node file; they are read and run under the limits of that file."""
    from lace.policy.compose import union

    parts = [named_selector(word, limits) for word in words.select]
    module = union(parts, limits=limits) if parts else None
    return RuleChoices(module=module, expose=read_exposures(words.expose, limits), limits=limits)


async def _serve(serving: Serving, trace: Path | None, watch: Path | None, master: str | None) -> None:
    # While threads compute, the event loop waits this long for the interpreter each time it has something to do.
    sys.setswitchinterval(SWITCH_S)
    from lace.runtime.node.control import BESIDE, control_path
    from lace.runtime.node.node import Hooks
    from lace.runtime.node.watching import watched

    orders: Orders = {}
    log = serving.log
    hooks = Hooks(on_open=log.opened, on_event=log.event, on_end=log.ended, on_trouble=log.trouble)
    hooks.on_limited = log.limited

    def say(step: str, what: str) -> None:
        log.say("archive", f"{step}: {what}", step=step)

    with ExitStack() as opened_first:  # a missing lace is reported before anything else is created
        side = opened_first.enter_context(opened_side(serving.store, master, say))
        with captured(trace, hooks):
            async with (
                watched(watch, hooks) as heard,
                watched(control_path(serving.store), heard, limits=BESIDE, orders=orders) as told,
            ):
                going = await _serve_side(serving, side, told, orders)
                opened_first.close()
                while going is not None:
                    with opened_side(serving.store, master, say) as side:
                        going = await _serve_side(going, side, told, orders)
    log.say("stopped", "stopped")


async def _serve_side(serving: Serving, side: Side, hooks: Hooks, orders: Orders) -> Serving | None:
    """Serve until somebody ends it (None), or until the lace must be reopened: then what to serve next."""
    from lace.runtime.node.metrics import serve_metrics

    stop = asyncio.Event()
    limits = side.limits(serving.limits)
    has_quotas = bool(serving.choices.quotas)
    node = make_node(side.store, side.with_quotas(serving.choices), hooks, limits, make_host=side.make_host)
    terms = _terms(serving, serving.rules, side.lace)
    if _is_stdio(serving):
        _end_with_parent(hooks, stop)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, node, serving, "SIGHUP")
    orders["reload"] = partial(_reload, node, serving, "lace reload")
    is_ready = asyncio.Event()
    metrics = None
    if serving.metrics_port:
        metrics = await serve_metrics(node.metrics, serving.metrics_port, is_ready.is_set)
    try:
        if side.get_ready is not None:
            await done_or_stopped(side.get_ready, stop)
        await over_or_stopped(node.get_ready(terms), stop)
        if stop.is_set():
            return None
        with watching_policy(side, serving.rules, node, serving.log.policy, has_quotas=has_quotas):
            bound = await _begin(node, serving, side, terms)
            is_ready.set()
            notify_systemd("READY=1")
            await first_of(stop, node.outdated)
    finally:
        goes_on = node.outdated.is_set() and not stop.is_set() and not _is_stdio(serving)
        if goes_on:
            serving.log.say("reopening", f"{serving.store} was rewritten: reopening it")
        else:
            notify_systemd("STOPPING=1")
            serving.log.say("stopping", "stopping")
        if metrics is not None:
            metrics.close()
        if not await node.shutdown():
            code = ExitCode.STORE if goes_on else ExitCode.OK  # a supervisor starts it again
            leave_at_once("abandoned an evaluation that was still running", code)
    return replace(serving, listen=bound) if goes_on else None


def _reload(node: Node, serving: Serving, asked_by: str) -> dict[str, Any]:
    """SIGHUP or `lace reload`: reload what can be reloaded without losing a link, and log what happened."""
    from lace.errors import LaceError

    notify_systemd(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        quotas = None
        if serving.config is not None:
            from lace.cli.options.nodefile import read_node_file
            from lace.runtime.host.quotas import quotas_with

            quotas = quotas_with(list(read_node_file(serving.config).quotas.items()))
        done = node.reload(quotas)
        text = "; ".join(done) or "there is nothing to reload"
        serving.log.say("reloaded", f"{asked_by}: {text}; everything else needs a restart")
        return {"reloaded": list(done), "process": os.getpid()}
    except (LaceError, OSError) as error:
        serving.log.say("trouble", f"{asked_by}: nothing was changed: {error}")
        return {"error": f"nothing was changed: {error}"}
    finally:
        notify_systemd("READY=1")


async def _begin(node: Node, serving: Serving, side: Side, terms: Terms) -> list[Address]:
    found = []
    for address in serving.listen:
        bound = await node.listen(address, terms)
        serving.log.say("listening", f"listening on {bound}", address=str(bound))
        found.append(bound)
    for peer in serving.kept:
        node.keep_in_background(peer.address, _peer_terms(serving, peer, side, terms), peer.transport)
        serving.log.say("keeping", f"keeping an exchange with {peer.address}", address=str(peer.address))
    return found


def _peer_terms(serving: Serving, peer: KeptPeer, side: Side, terms: Terms) -> Terms | TermsFor:
    """The node's terms for a peer, or those of its own rules, which are asked for again when the policy changes."""
    rules = peer.rules
    if rules is None:
        return terms
    _terms(serving, rules, side.lace)
    return lambda _: _terms(serving, rules, side.lace, is_told=False)


def _is_stdio(serving: Serving) -> bool:
    """Whether there is one peer, the parent, and never another."""
    from lace.iltp.address import StdioAddress

    return bool(serving.listen) and all(isinstance(address, StdioAddress) for address in serving.listen)


def _end_with_parent(hooks: Hooks, stop: asyncio.Event) -> None:
    """When the parent is gone there is nothing left to serve."""
    told = hooks.on_end

    def end(info: LinkInfo, outcome: Outcome) -> None:
        if told is not None:
            told(info, outcome)
        stop.set()

    hooks.on_end = end


def notify_systemd(message: str) -> None:
    """Tell the service manager, if one is listening (sd_notify)."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.sendto(message.encode(), address)
