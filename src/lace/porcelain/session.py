"""One side of an exchange without a connection: `lace.Session` takes the peer's bytes and gives ours.

    with lace.Session(notes, dialled=True, select="//u//ding//") as session:
        while not session.is_over:
            while data := session.data_to_send():
                connection.sendall(data)
            session.receive_data(connection.recv(65536))

Rule: the same machine, codec, host and rules as on every other link, one step after the other in the caller's thread.
It moves no bytes, waits for nobody and starts no thread; the time is that of the lace's clock. What it reads and
stores, it reads and stores in the lace before a call returns.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from inspect import iscoroutinefunction

from lace.errors import LimitExceeded, LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import Call
from lace.interlace.reasons import ExchangeRefusal
from lace.interlace.setup.terms import MachineConfig
from lace.limits import SECOND_NS
from lace.notation.closing import Closing
from lace.notation.identifiers import Verifier
from lace.people.receiving import Receiving
from lace.porcelain.exchange import Expose, Select
from lace.porcelain.lace import Lace
from lace.porcelain.node import Policy
from lace.porcelain.policy import policy_quotas
from lace.records.tip import TipPolicy
from lace.runtime.clock import SteadyTai
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.host import LocalHost
from lace.runtime.host.quotas import GateRules, QuotaGate, Quotas, horizon_after, quotas_for, wants_lengths
from lace.runtime.link.session import Outcome, Session
from lace.runtime.link.stepper import LinkStepper
from lace.runtime.node.admission import peer_key
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.links import link_of, terms_for_stranger
from lace.runtime.node.refusing import refusal
from lace.store.base import StoreCursor
from lace.transports.base import TransportProof
from lace.transports.dial import is_local

HERE = TransportProof.at("stdio")


class LaceSession(Closing):
    """One side of an exchange, without I/O; its public name is `lace.Session`."""

    def __init__(
        self,
        lace: Lace,
        *,
        dialled: bool,
        select: Select = None,
        expose: Expose | None = None,
        is_open: bool = False,
        proof: TransportProof = HERE,
        here: Verifier | None = None,
        quotas: Quotas | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        """Begin: exactly one of the two sides has `dialled`, and `proof` is what your connection proves of the peer.

        With `is_open` the exchange stays once neither side wants more, until `finish`. `here` is the key that your
        connection proved to the peer. `on_event` hears what happens, in the thread that calls.
        """
        if iscoroutinefunction(on_event):
            raise TypeError("on_event of a session cannot be async, because nobody awaits it")
        store, clock, horizon_s = lace.store, lace.clock, lace.horizon_s
        is_here = is_local(proof.address) and not proof.via_proxy
        terms = Policy(select=select, expose=expose).terms(lace, is_open=is_open)
        if not dialled and not is_here and proof.peer is None:
            terms = terms_for_stranger(terms)
        rules = GateRules(
            quotas=quotas_for(quotas or policy_quotas(lace.policy()), is_known=dialled, is_here=is_here),
            is_known=dialled or is_here,
            peer=peer_key(proof),
            horizon=None if horizon_s is None else horizon_after(clock.tai, horizon_s),
            limits=lace.limits,
            receiving=Receiving(store, lambda: TipPolicy.at(clock.tai(), horizon_s)),
        )
        config = MachineConfig(
            index=0 if dialled else 1,
            terms=terms,
            link=link_of(proof, here),
            cursor_key=f"dialled {proof.address}" if dialled and proof is not HERE else "",
            salt=secrets.randbits(128),
            is_empty=store.cursor() == StoreCursor(),
            refusals=True,
            wants_lengths=terms.max_requests > 0 and wants_lengths(store, rules),
        )
        self._lace = lace
        self._time = SteadyTai(clock)
        self._limits = DriveLimits()
        self._session = Session(config)
        self._host = LocalHost(
            store, terms, gate=QuotaGate(store, rules), cursors=CursorBook(store, clock.tai), guest=peer_key(proof)
        )
        self._link = LinkStepper(self._session, self._host, self._limits, on_event=on_event)
        self._is_closed = self._has_ended = False
        self._session.start(self._time.now_ns)
        self._work()

    # --- what goes in ------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Bytes of the peer, however the connection cut them; empty bytes say that it sends no more.

        A peer that breaks the protocol raises nothing: the exchange is over and `outcome` says why.
        """
        self._usable()
        if self.is_over:
            return
        if not data:
            self._session.receive_eof(self._time.now_ns)
        elif self.wants_data:
            self._session.receive_data(data, self._time.now_ns)
        else:
            bound = self._limits.max_waiting_bytes
            raise LimitExceeded("max_waiting_bytes", bound, "the peer is ahead: give its bytes while `wants_data`")
        self._work()

    def handle_timer(self) -> None:
        """Say that the time that `next_timer` named has come; too early it does nothing."""
        self._usable()
        due = self._session.next_timer
        if due is not None and due <= self._time.now_ns and not self.is_over:
            self._session.handle_timer(self._time.now_ns)
        self._work()

    def lace_changed(self) -> None:
        """Say that records came into the lace or left it, so that an open exchange brings the peer up to date."""
        self._tell(given.LocalChanged())

    def finish(self) -> None:
        """End an open exchange at the next moment at which nothing is under way."""
        self._tell(given.CloseRequested())

    def _tell(self, news: given.LocalChanged | given.CloseRequested) -> None:
        self._usable()
        if not self.is_over:
            self._session.answer(news, self._time.now_ns)
        self._work()

    # --- what comes out ----------------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """The next bytes for the peer, a quarter of a megabyte or less; empty if there are none now."""
        if self._is_closed:
            return b""
        data = self._session.data_to_send()
        self._work()  # records are read from the lace as fast as they are taken here
        return data

    @property
    def wants_data(self) -> bool:
        """Whether to read on from the peer. If not, send first; what the peer says meanwhile waits with you."""
        waiting = self._session.buffered + self._link.storing_bytes
        few_answers = self._session.outbox.blocks <= self._limits.max_unsent_blocks
        return not self.is_over and few_answers and waiting <= self._limits.max_waiting_bytes

    @property
    def next_timer(self) -> float | None:
        """The seconds after which to call `handle_timer` if nothing else happens; None: not at all."""
        due = None if self.is_over else self._link.next_timer
        return None if due is None else max(0.0, (due - self._time.now_ns) / SECOND_NS)

    @property
    def outcome(self) -> Outcome | None:
        """How the exchange ended; None while it goes on."""
        return self._session.outcome

    @property
    def is_over(self) -> bool:
        """Whether it has ended; what `data_to_send` still gives belongs to it and is for the peer."""
        return self._session.outcome is not None or self._is_closed

    @property
    def is_settled(self) -> bool:
        """Whether neither side wants more of an open exchange for now."""
        return not self.is_over and self._session.machine.is_resting

    @staticmethod
    def refusal() -> bytes:
        """What to send to a peer instead of a session: it is told that you have no exchange for it. Then hang up."""
        return refusal(ExchangeRefusal.POLICY)

    def close(self) -> None:
        """Let go of everything, wherever the exchange stands. A second time does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._host.close()
            self._session.close()

    # --- work --------------------------------------------------------------------------------------------------

    def _usable(self) -> None:
        if self._is_closed:
            raise LocalProtocolError("this session is closed; begin another one")

    def _work(self) -> None:
        """Carry out what the exchange asks of our own side, until it waits for the peer or for the time."""
        session, link = self._session, self._link
        while not self._is_closed:
            link.collect()
            if session.outcome is not None and not self._has_ended:
                self._has_ended = True
                link.end()  # what has to be kept or told is still done
            jobs = link.step(self._time.now_ns)
            for job in jobs:
                job.done(job.work(Call()), self._time.now_ns)
            if session.is_behind and not self._has_ended:
                session.go_on(self._time.now_ns)
            elif not jobs and not link.can_step:
                return
