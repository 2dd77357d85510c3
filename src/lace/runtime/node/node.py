"""Many links over one store: accept, dial, keep, and end them cleanly (050 drivers, 060).

Rule: links share the store, the threads, the worker processes and the budgets, and nothing else.
A slow, silent or hostile peer costs its own link; what one link stores, every open link hears of.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from pathlib import Path

from lace.errors import LaceError, TransportError
from lace.iltp.address import Address
from lace.interlace import inputs as given
from lace.interlace.host import Call
from lace.interlace.reasons import AbortReason, ExchangeRefusal
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.terms import MachineConfig, Rules, Terms
from lace.limits import HORIZON_S, SECOND_NS
from lace.notation.identifiers import Verifier
from lace.people.receiving import Receiving
from lace.records.tip import TipPolicy
from lace.runtime.clock import Clock, SteadyTai
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.host import HostBounds
from lace.runtime.host.hosting import Hosting, MakeHost
from lace.runtime.host.quotas import Quotas, horizon_after
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.link.drive import Driver
from lace.runtime.link.session import Outcome, Session
from lace.runtime.loopevents import set_within
from lace.runtime.node.admission import Admission, PeerKind, Standing
from lace.runtime.node.bounds import Budget, DriveLimits
from lace.runtime.node.hookcalls import drop
from lace.runtime.node.links import (
    CurrentTerms,
    Hooks,
    LinkInfo,
    LinkListener,
    LinkTerms,
    NodeLimits,
    OpenLink,
    link_of,
    terms_for_stranger,
)
from lace.runtime.node.metering import AccountBook, LinkRates
from lace.runtime.node.metrics import LinkRow, Metrics, MetricsSink
from lace.runtime.node.pools import NodePools
from lace.runtime.node.pulse import Pulse
from lace.runtime.node.refusing import Refusing
from lace.runtime.node.reports import Reports
from lace.runtime.node.spreading import Spreading
from lace.runtime.node.storewatch import StoreWatch
from lace.runtime.node.waitingroom import WaitingRoom
from lace.runtime.rules.guesthouse import GuestLimits
from lace.runtime.rules.policybook import PolicyBook
from lace.store.base import RecordStore
from lace.transports.base import AcceptedStream, ByteStream, Listener, TransportProof, TurnedAway, TurningStream
from lace.transports.dial import TransportOptions, check_trust, dial, is_local, listen
from lace.transports.proof import ProofMemory

__all__ = ["Hooks", "LinkInfo", "Node", "NodeLimits"]

TermsFor = Callable[[TransportProof], "Terms | Awaitable[Terms | None] | None"]
"""The terms for a peer by what its connection proves, asked again when rules change; None turns it away, and so does an
error."""
PROOFS = "-proofs"  # behind the name of a lace: the proofs that were dated ahead of our clock


class Node:
    """One lace among peers."""

    def __init__(
        self,
        store: RecordStore,
        transport: TransportOptions,
        clock: Clock,
        *,
        here: Verifier | None = None,
        limits: NodeLimits | None = None,
        drive_limits: DriveLimits | None = None,
        rates: LinkRates | None = None,
        guest_limits: GuestLimits | None = None,
        host_bounds: HostBounds | None = None,
        make_host: MakeHost | None = None,
        hooks: Hooks | None = None,
        standard: bool = False,
        takes_from_strangers: bool = False,
        quotas: Quotas | None = None,
        horizon_s: float | None = HORIZON_S,
        logger: logging.Logger | None = None,
        sink: MetricsSink | None = None,
    ) -> None:
        self.store = store
        self._quotas = quotas
        self._takes_from_strangers = takes_from_strangers
        self.pulse: Pulse = Pulse()
        self.metrics: Metrics = Metrics(self._live, sink)
        self._rates, self._accounts = rates or LinkRates(), AccountBook()
        self._clock = clock
        self._time = SteadyTai(clock)  # of accounts: a clock that is set back must not keep them from filling
        self._here = here
        self._limits = limits or NodeLimits()
        self._drive_limits = drive_limits or DriveLimits()
        self._reports = Reports(self.metrics, hooks or Hooks(), self._time, self._retry_after_s, logger)
        self._transport = replace(transport, hears=self._reports, proofs=transport.proofs or _proofs(store, transport))
        self._pools = NodePools(store, self._limits, self._drive_limits.verify_slices, guest_limits)
        self._pools.turns.on_work = self.pulse.wake
        self._policies = PolicyBook(keeps_sets=True)
        self._hosting = Hosting(
            store=store,
            pools=self._pools,
            reports=self._reports,
            policies=self._policies,
            cursors=CursorBook(store, clock.tai, self._limits.cursors),
            bounds=host_bounds,
            make=make_host,
            bodies=None if make_host else RecentBodies(store),
            quotas=lambda: self._quotas,
            is_here=transport.is_here,
            horizon=horizon_after(clock.tai, horizon_s) if horizon_s is not None else None,
            receiving=None if make_host else Receiving(store, lambda: TipPolicy.at(clock.tai(), horizon_s)),
        )
        self._spreading = Spreading(self._pools.evaluators, self._spawn)
        self._rules: Rules | None = None  # of all links that have no terms of their own, once they were changed
        self._rule_changes = 0
        self._standard = standard  # announce no capability (P33)
        self._budget = Budget(self._limits.max_buffered_bytes)
        self.strangers: list[Budget] = [
            Budget(self._limits.max_held_bytes) for _ in range(2)
        ]  # with a key, and without
        self._links: dict[int, OpenLink] = {}
        self._admission = Admission(self._limits, transport.trusted, transport.is_here)
        self.waiting: WaitingRoom = WaitingRoom(self._limits.waiting)
        self._refusing = Refusing(self._limits.refusing)
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._deciding: set[asyncio.Task[None]] = set()  # those of them that ask the application about a peer
        self._numbers = 0
        self._stopping = asyncio.Event()
        self._watch = StoreWatch(store, self._limits.store_poll_s, self._reports.trouble)
        self._is_watching = False
        self._ready_for: list[Rules] = []  # what was worked out for those who come first
        self._readying = Call()

    # --- links -------------------------------------------------------------------------------------------------

    async def get_ready(self, terms: Terms | TermsFor) -> None:
        """Work out what the first peers under these terms will ask for, if that takes long; `listen` does it too.

        Nothing can be foreseen of terms that depend on what a connection proves.
        """
        if not isinstance(terms, Terms) or self._hosting.make is not None or terms.rules in self._ready_for:
            return
        self._ready_for.append(terms.rules)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(
            self._pools.evaluators, self._ready_store, terms, self._clock.tai().to_ns(), self._readying
        )
        await asyncio.wait([work], timeout=self._limits.ready_s)

    def _ready_store(self, terms: Terms, tai_ns: int, call: Call) -> None:
        if self.store.stat().records > self._limits.ready_records:
            self._hosting.get_ready(terms, tai_ns, call, is_standard=self._standard)

    async def listen(self, address: Address, terms: Terms | TermsFor) -> Address:
        """Accept peers from now on; where that is really bound. Terms may depend on what a connection proves."""
        await self.get_ready(terms)
        listener = await listen(address, self._transport)
        self._listeners.append(listener)
        self._spawn(self._accept(listener, terms))
        self._spawn(self._pools.load_engine())
        return listener.address

    async def exchange(
        self,
        address: Address,
        terms: Terms | TermsFor,
        transport: TransportOptions | None = None,
        listener: LinkListener | None = None,
    ) -> Outcome:
        """Dial once and exchange to the end; this peer may ask for other transport options than the node's."""
        stream = await dial(address, transport or self._transport)
        offered = await self._terms_of(terms, stream.proof)
        cursor_key = f"dialled {address}"
        return await self._run_link(stream, offered, dialled=True, cursor_key=cursor_key, listener=listener)

    async def keep(
        self,
        address: Address,
        terms: Terms | TermsFor,
        transport: TransportOptions | None = None,
        listener: LinkListener | None = None,
    ) -> None:
        """Hold an open exchange with an address, dialling again with growing pauses, until the node stops."""
        limits = self._limits
        pause = limits.backoff_first_s
        while not self._stopping.is_set():
            began_ns, told_s = self._now_ns, 0.0
            try:
                outcome = await self.exchange(address, terms, transport, listener)
                if outcome.result.fixed_point and self._now_ns - began_ns > limits.backoff_over_s * SECOND_NS:
                    pause = limits.backoff_first_s
            except TransportError as error:
                self._reports.trouble(str(error))
                if listener is not None:
                    listener.lost(error)
                if isinstance(error, TurnedAway):  # what a stranger says binds us no longer than we would wait anyway
                    told_s = min(error.retry_after_s or 0.0, limits.backoff_most_s)
            if self._stopping.is_set() or (listener is not None and listener.is_over):
                return
            # Of a crowd that lost its server at once, not all are to come back at once.
            await self._pause(max(pause, told_s) * random.uniform(0.75, 1.25))  # noqa: S311 - no secret
            self.metrics.add("reconnects_total")
            pause = min(pause * 2, limits.backoff_most_s)

    def keep_in_background(
        self, address: Address, terms: Terms | TermsFor, transport: TransportOptions | None = None
    ) -> None:
        """`keep`, until the node stops or its store is outdated."""
        self._spawn(self._watch.until_outdated(self.keep(address, terms, transport)))

    def reload(self, quotas: Quotas | None = None) -> list[str]:
        """Read again what listeners took from files, and take these quotas for links from now on, if there are any;
        what was done. Open links stay as they are. TransportError if a certificate is unusable; the old one stays."""
        done = [said for listener in self._listeners for said in listener.reload()]
        if quotas is not None and quotas != self._quotas:
            self._quotas = quotas
            done.append("links from now on have the quotas of the file")
        return done

    async def _pause(self, seconds: float) -> None:
        await set_within(self._stopping, seconds)

    async def attach(self, stream: ByteStream, terms: Terms | TermsFor, dialled: bool) -> Outcome:
        """Exchange over a stream that the application opened; a peer without terms is told that it is refused."""
        try:
            async with asyncio.timeout(self._limits.decide_s):
                offered = await self._terms_of(terms, stream.proof)
        except Exception as error:  # noqa: BLE001 - of the application: whom it cannot decide about is turned away
            self._reports.failed("policy_for", error)
            return await self._refused(stream, ExchangeRefusal.FAILED)
        return await self._run_link(stream, offered, dialled=dialled, cursor_key="")

    # --- people ------------------------------------------------------------------------------------------------

    def know_members(self, members: frozenset[Verifier]) -> int:
        """Who is a member of the group that is served, from now on: not a stranger, and with a quota of its own.

        The links of those who were members and are not any more end at a phase boundary, and are cut if none comes
        soon; how many those are.
        """
        gone = self._admission.know(members)
        ending = [link for link in self._links.values() if link.info.peer in gone]
        for link in ending:
            link.driver.tell(given.CloseRequested())
            self._spawn(self._cut_soon(link))
        return len(ending)

    async def _cut_soon(self, link: OpenLink) -> None:
        """A phase lasts as long as the peer likes: who left is not waited for."""
        if not await set_within(link.driver.over, self._limits.leaving_grace_s):
            link.driver.cut("not a member of the group any more")

    # --- rules -------------------------------------------------------------------------------------------------

    def change_rules(self, rules: Rules | None = None) -> int:
        """What this node selects and shows from now on, on all links, those that are open and those to come; how many
        open ones go on with other rules.

        Terms that an application gives peer by peer are asked for again: without `rules` only that is done. An open
        exchange begins a new epoch when its loop is over (050-OPEN-05), a bounded one ends by the rules with which it
        began, and a peer that no longer has terms loses its link at a phase boundary.
        """
        self._rules = rules or self._rules
        self._rule_changes += 1
        return sum([self._renew(found) for found in list(self._links.values())])

    def _renew(self, link: OpenLink) -> bool:
        try:
            terms = link.terms()
        except Exception as error:  # noqa: BLE001 - of the application: whom it cannot decide about is turned away
            self._reports.failed("policy_for", error)
            terms = None
        if not isawaitable(terms):
            return self._go_on(link, terms)
        self._spawn(self._renew_later(link, terms))
        return False

    async def _renew_later(self, link: OpenLink, coming: Awaitable[Terms | None]) -> None:
        terms: Terms | None = None
        try:
            async with asyncio.timeout(self._limits.decide_s):
                terms = await coming
        except Exception as error:  # noqa: BLE001 - as above
            self._reports.failed("policy_for", error)
        self._go_on(link, terms)

    def _go_on(self, link: OpenLink, terms: Terms | None) -> bool:
        """Have a link go on under these terms, or end; whether its rules change."""
        now = link.driver.session.machine.config.terms
        if terms is None:
            link.driver.tell(given.CloseRequested())
        elif now.is_open:
            proof = link.driver.proof
            link.driver.tell(
                given.RulesChanged(
                    terms.rules,
                    holds_nothing=self._hosting.holds_nothing(terms),
                    takes=self._hosting.takes(terms, proof, self._knows(proof, link.info.dialled)),
                )
            )
            return not terms.rules.are(now.rules)
        return False

    def _asking(self, terms: Terms | TermsFor, proof: TransportProof) -> CurrentTerms:
        """How to hear what the terms of a link are, now and after rules have changed."""
        return partial(self._node_terms, terms) if isinstance(terms, Terms) else partial(terms, proof)

    async def _terms_of(self, terms: Terms | TermsFor, proof: TransportProof) -> LinkTerms:
        ask, changes = self._asking(terms, proof), self._rule_changes
        return LinkTerms(await _settled(ask()), ask, changes)

    def _node_terms(self, terms: Terms) -> Terms:
        return terms if self._rules is None else terms.under(self._rules)

    async def _accept(self, listener: Listener, terms: Terms | TermsFor) -> None:
        while not self._stopping.is_set():
            try:
                stream = await listener.accept()
            except TransportError:
                return
            self.pulse.wake()
            try:
                await asyncio.sleep(0)  # a link begins in every round of the loop, however many have come
            except asyncio.CancelledError:  # the node ends, and nobody else has this stream
                stream.abort()
                raise
            # Who gives terms peer by peer has thought of strangers.
            here = self._terms_for(stream, listener, terms) if isinstance(terms, Terms) else terms
            self._ask_for_terms(stream, self._asking(here, stream.proof))

    def _ask_for_terms(self, stream: AcceptedStream, ask: CurrentTerms) -> None:
        """Let the application decide about a peer; while an answer is awaited, others are accepted."""
        changes = self._rule_changes
        try:
            offered = ask()
        except Exception as error:  # noqa: BLE001 - of the application: whom it cannot decide about is turned away
            self._undecided(stream, error)
            return
        if not isawaitable(offered):
            self._admit(stream, LinkTerms(offered, ask, changes))
        elif len(self._deciding) >= self._limits.max_links:
            drop(offered)
            self._refuse(stream, "too many links")
        else:
            task = self._spawn(self._decide(stream, offered, ask, changes))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)

    async def _decide(
        self, stream: AcceptedStream, coming: Awaitable[Terms | None], ask: CurrentTerms, changes: int
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.decide_s):
                offered = await coming
        except Exception as error:  # noqa: BLE001 - as above
            self._undecided(stream, error)
        except BaseException:  # the node ends
            stream.abort()
            raise
        else:
            self._admit(stream, LinkTerms(offered, ask, changes))

    def _undecided(self, stream: AcceptedStream, error: Exception) -> None:
        self._reports.failed("policy_for", error)
        self._spawn_refusal(stream, ExchangeRefusal.FAILED)

    def _admit(self, stream: AcceptedStream, terms: LinkTerms) -> None:
        if terms.offered is None:
            self._spawn_refusal(stream, ExchangeRefusal.POLICY)
        elif not self._is_trusted(stream):
            self._spawn_refusal(stream, ExchangeRefusal.TRUST)
        elif self._owes_much(stream.proof):
            self._refuse(stream, "used more processor time than a peer may")
        elif self.waiting.is_passed_by(stream.proof.peer) and self._takes_place(stream.proof):
            self._spawn(self._serve(stream, terms))
        else:
            self._spawn(self._serve_in_turn(stream, terms))

    def _spawn_refusal(self, stream: ByteStream, why: ExchangeRefusal) -> None:
        async def tell() -> None:
            await self._refused(stream, why)

        self._spawn(tell())

    async def _refused(self, stream: ByteStream, why: ExchangeRefusal) -> Outcome:
        """Refuse a peer permanently, and tell it why (072)."""
        said = _REFUSALS[why]
        self._reports.refused(stream.proof.address, said)
        await self._refusing.tell(stream, why)
        return Outcome(InterlaceResult(), abort=AbortReason.REFUSED_BY_US.value, detail=said)

    def _refuse(self, stream: ByteStream, reason: str, retry_after_s: float | None = None) -> None:
        self._reports.refused(stream.proof.address, reason)
        if retry_after_s is not None and isinstance(stream, TurningStream):
            stream.turn_away(reason, retry_after_s)
        else:
            stream.abort()

    def _retry_after_s(self, proof: TransportProof) -> float | None:
        """Asked before an upgrade, when a peer can still be told in words: is there a place, or one to wait for it?"""
        admission = self._admission
        is_full = admission.is_full_for(proof) and admission.leaver(self._standings(), proof) is None
        if not is_full and not admission.is_crowd(proof):
            return None
        return None if self.waiting.has_room_for(admission.account(proof)) else self._later_s()

    def _later_s(self) -> float:
        """Not the same for everybody: else all who were turned away would come back at once."""
        return self._limits.retry_after_s * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    async def _serve_in_turn(self, stream: AcceptedStream, terms: LinkTerms) -> None:
        """Wait a moment for a place when there is none."""
        is_crowd = self._admission.is_crowd(stream.proof)
        proof = stream.proof
        takes_place, links = partial(self._takes_place, proof), partial(self._admission.links_of, proof)
        if await self.waiting.wait(self._admission.account(proof), takes_place, links, lambda: stream.is_left):
            await self._serve(stream, terms)
        else:
            reason = "hung up while it waited" if stream.is_left else "too many links"
            self._refuse(stream, "too many links of one peer" if is_crowd else reason, self._later_s())

    def _terms_for(self, stream: ByteStream, listener: Listener, terms: Terms) -> Terms:
        is_here = self._transport.is_here(stream.proof) and is_local(listener.address)
        is_stranger = stream.proof.peer is None and not is_here
        return terms_for_stranger(terms) if is_stranger and not self._takes_from_strangers else terms

    def _is_trusted(self, stream: ByteStream) -> bool:
        try:
            check_trust(stream, self._transport.trusted)
        except TransportError:
            return False
        return True

    def _owes_much(self, proof: TransportProof) -> bool:
        """Whether a peer used more processor time than one may."""
        rates = self._rates_for(proof, dialled=False)
        owed_s = self._accounts.of(self._admission.account(proof), rates, self._now_ns).wait_s(self._now_ns)
        return owed_s > rates.max_wait_s

    def _takes_place(self, proof: TransportProof) -> bool:
        """Take a place if there is one, or somebody leaves for it."""
        if self._stopping.is_set() or not self._admission.lets_in(proof, self._now_ns):
            return False
        if self._admission.is_crowd(proof):
            return False
        if self._admission.is_full_for(proof):
            leaver = self._admission.leaver(self._standings(), proof)
            if leaver is None:
                return False
            self._limit(leaver, "rest", "gave its place to another peer")
        self._admission.enter(proof, self._now_ns)
        return True

    @property
    def _now_ns(self) -> int:
        return self._time.now_ns

    def _standings(self) -> list[Standing]:
        return [found.standing() for found in self._links.values() if not found.is_leaving]

    def _limit(self, number: int, kind: str, why: str) -> None:
        """Cut a link for the good of the others, and say so."""
        found = self._links[number]
        found.is_leaving = True
        self._reports.limited(found.info, kind, why)
        found.driver.cut(why)

    async def _tend(self) -> None:
        """Let those go who cost the others too much."""
        while not self._stopping.is_set():
            await self._pause(self._limits.tend_s)
            for found in list(self._links.values()):
                found.driver.tend()
            for number, why in self._admission.evicted(self._standings()):
                self._limit(number, "rest" if "rested" in why else "memory", why)

    async def _serve(self, stream: ByteStream, terms: LinkTerms) -> None:
        peer = stream.proof.peer
        try:
            await self._run_link(stream, terms, dialled=False, cursor_key=f"accepted {peer}" if peer else "")
        except LaceError as error:
            stream.abort()  # it may have failed before anybody read from it
            self._watch.trouble(error, f"{stream.proof.address}: ")
        except Exception as error:  # noqa: BLE001 - a part that the application gave us, or a bug: the peer need not wait
            stream.abort()
            self._reports.failed(f"the link with {stream.proof.address}", error)
        finally:
            self._admission.leave(stream.proof)

    async def _run_link(
        self,
        stream: ByteStream,
        terms: LinkTerms,
        *,
        dialled: bool,
        cursor_key: str,
        listener: LinkListener | None = None,
    ) -> Outcome:
        proof = stream.proof
        offered = terms.offered if terms.changes == self._rule_changes else await _settled(terms.ask())
        if offered is None:  # the application has none, perhaps only since rules changed while it waited for its place
            return await self._refused(stream, ExchangeRefusal.POLICY)
        self._numbers += 1
        account = self._admission.account(proof)
        info = LinkInfo(self._numbers, str(proof.address), proof.peer, dialled, account)
        driver = self._driver(stream, info, self._config(stream, offered, dialled, cursor_key))
        kind = PeerKind.KNOWN if dialled else self._admission.kind(proof)
        link = self._links[info.number] = OpenLink(info, driver, terms.ask, account, kind)
        self._opened(info)
        if listener is not None:
            listener.opened(info, driver)
        if self._stopping.is_set():
            driver.cut()
        try:
            outcome = await driver.run()
        finally:
            del self._links[info.number]
            self.metrics.put("connections_active", len(self._links))
            link.count(self.metrics)
        self._reports.ended(info, outcome)
        if listener is not None:
            listener.ended(outcome)
        return outcome

    def _config(self, stream: ByteStream, terms: Terms, dialled: bool, cursor_key: str) -> MachineConfig:
        """P7, P8, P24: what the connection makes of our terms."""
        return MachineConfig(
            index=0 if dialled else 1,
            terms=terms,
            link=link_of(stream.proof, self._here),
            cursor_key=cursor_key,
            salt=None if self._standard else secrets.randbits(128),  # 070-CAP-04
            is_empty=self._hosting.is_empty,
            holds_nothing=self._hosting.holds_nothing(terms),
            takes=self._hosting.takes(terms, stream.proof, self._knows(stream.proof, dialled)),
            refusals=not self._standard,
            wants_lengths=self._hosting.wants_lengths(terms, stream.proof, self._knows(stream.proof, dialled)),
        )

    def _driver(self, stream: ByteStream, info: LinkInfo, config: MachineConfig) -> Driver:
        is_known = self._knows(stream.proof, info.dialled)
        account, rates = info.account, self._rates_for(stream.proof, info.dialled)
        return Driver(
            stream,
            Session(config),
            self._hosting.host(config.terms, stream.proof, info, is_known, account),
            self._clock,
            self._pools.threads.of(account),
            judges=self._pools.judges,
            evaluators=self._pools.evaluators,
            limits=self._drive_limits,
            budget=self._budget,
            strangers=None if is_known else self.strangers[stream.proof.peer is None],
            on_event=lambda event: self._reports.event(info, event),
            on_stored=self._watch.changed.set,  # a served archive gives no news of what its links store
            tap=self._reports.tap(info),
            rates=rates,
            peer_account=self._accounts.of(account, rates, self._now_ns),
            accounts_time=self._time,
            on_limited=lambda debt: self._reports.in_debt(info, debt),
            turns=self._pools.turns.of(account),
            hashers=self._pools.threads.of(account, is_long=True),
        )

    def _rates_for(self, proof: TransportProof, dialled: bool) -> LinkRates:
        return self._rates.for_known() if self._knows(proof, dialled) else self._rates

    def _knows(self, proof: TransportProof, dialled: bool) -> bool:
        """Whether we know a link's peer. A proof alone makes nobody known: anybody can make a key."""
        return dialled or self._admission.kind(proof) is PeerKind.KNOWN

    # --- what is told ------------------------------------------------------------------------------------------

    def _opened(self, info: LinkInfo) -> None:
        if not self._is_watching:
            self._is_watching = True
            for work in (self._watch_store(), self._tend(), self.pulse.beat(self._clock.monotonic_ns)):
                self._spawn(work)
        self._reports.opened(info, len(self._links))

    def _live(self) -> Iterable[LinkRow]:
        """Bring what is counted per link up to date, for somebody who reads it now."""
        self.metrics.put("buffered_bytes", self._budget.held)
        pulse = self.pulse
        for name, seconds in (("stall", pulse.stall_s), ("own_stall", pulse.own_s), ("busy", pulse.busy_s)):
            self.metrics.put(f"loop_{name}_seconds", round(seconds, 4))
        for found in self._links.values():
            found.count(self.metrics)
            yield found.row()

    def _watch_store(self) -> Coroutine[None, None, None]:
        """Tell every open link when the store changed, no matter who changed it (050-OPEN-03)."""

        def spread() -> None:
            self._spreading.tell([found.driver for found in self._links.values()])

        return self._watch.run(self._stopping, self._pools.in_thread, spread)

    @property
    def links(self) -> list[OpenLink]:
        """The links that are open now."""
        return list(self._links.values())

    @property
    def pools(self) -> NodePools:
        """The threads and processes that do the work."""
        return self._pools

    @property
    def outdated(self) -> asyncio.Event:
        """Set once the store was compacted, repaired or replaced: it has to be opened again, by another node."""
        return self._watch.outdated

    # --- the end -----------------------------------------------------------------------------------------------

    @property
    def has_workers(self) -> bool:
        """Whether worker processes judge what arrives."""
        return self._pools.workers.is_ready

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the node is ending."""
        return self._stopping

    async def shutdown(self, grace_s: float | None = None) -> bool:
        """Stop accepting, let exchanges end at a phase boundary, cut what is left; whether all work has ended.

        Threads cannot be killed: after `shutdown_most_s` those that still work are left behind (False), and a process
        that wants to end has to go without them. Nothing that was acknowledged hangs on them.
        """
        loop = asyncio.get_running_loop()
        last = loop.time() + self._limits.shutdown_most_s
        self._stopping.set()
        self._readying.cancel()
        self._watch.changed.set()
        for listener in self._listeners:
            await listener.close()
        for found in list(self._links.values()):
            found.driver.tell(given.CloseRequested())
        await self._wait_for_links(self._limits.shutdown_grace_s if grace_s is None else grace_s)
        for found in list(self._links.values()):
            found.driver.cut()
        await self._wait_for_links(max(0.1, last - loop.time()))
        await self._reports.settle(max(0.1, last - loop.time()))
        tasks: Sequence[asyncio.Task[None]] = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.1, last - loop.time()))
        return await self._pools.end(self._policies.keep, last)

    async def _wait_for_links(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._links:
                    await asyncio.sleep(0.01)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


_REFUSALS = {
    ExchangeRefusal.POLICY: "not wanted",
    ExchangeRefusal.TRUST: "not trusted",
    ExchangeRefusal.FAILED: "the application failed to decide",
}


def _proofs(store: RecordStore, transport: TransportOptions) -> ProofMemory:
    """Of a lace that has a file the memory has one too, so that a restart forgets nothing."""
    path, limits = getattr(store, "path", None), transport.limits
    file = Path(f"{path}{PROOFS}") if path is not None else None
    return ProofMemory(limits.proof_window_s, limits.max_remembered_proofs, file)


async def _settled(terms: Terms | Awaitable[Terms | None] | None) -> Terms | None:
    """What an application answers, at once or later."""
    return await terms if isawaitable(terms) else terms
