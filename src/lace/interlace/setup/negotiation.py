"""Setup and hello: how an epoch is agreed on, the first one and every later one (050, P20).

Rule: an epoch begins with a setup block of either side where an `adv` could start; whatever crosses it is forgotten.
A negotiation is thrown away when its agreement is made; the modules that both sides have seen outlive it.
"""

from __future__ import annotations

from dataclasses import replace

from lace.differences.keyed import derive_key
from lace.errors import LaceError, excerpt
from lace.interlace.core import Core
from lace.interlace.effects import SendResource
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.phases import Move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.agreement import (
    Agreement,
    compile_modules,
    module_of,
    no_module,
    own_hello,
    own_setup,
    settle,
)
from lace.interlace.setup.hello import Hello, hello_text, read_hello
from lace.interlace.setup.setup import Setup, read_setup
from lace.interlace.vocabulary import EXCHANGE_OPERAND, require_at_most_once
from lace.policy.compile import ExchangePlan
from lace.policy.operand import Module

LACEGRAM = "lacegram"


class Modules:
    """Our operand, and every module that either side has seen of the other (P22)."""

    def __init__(self, own: Module, known: tuple[Module, ...]) -> None:
        self.own = own
        self._known = known
        # Every module that we announced: the peer may take one later and, by P22, leave out the bytes that it had
        # from us. They go out as resources or came as such, so the resource limits of both directions bound them.
        self._announced: dict[str, Module] = {}
        self._shared: set[str] = set()  # that the peer announced or was sent
        self._sent = 0  # texts
        self._received: dict[str, bytes] = {}
        self._read: tuple[str, Module | LaceError] | None = None  # what is known of the last of those as a module

    def may_announce(self, module: Module, max_sent: int) -> bool:
        """Whether it may be our next operand: its text was sent, or one text more may be."""
        return module.id in self._shared or self._sent < max_sent

    def announce(self) -> SendResource | None:
        """Our operand is named now: its text, unless the peer has it."""
        self._announced[self.own.id] = self.own
        if self.own.id in self._shared:
            return None
        self._shared.add(self.own.id)
        self._sent += 1
        return SendResource(self.own.id, LACEGRAM, self.own.text.encode())

    def receive(self, identifier: str, text: bytes, read: Module | LaceError | None = None) -> None:
        """The peer sent a text."""
        if read is not None:
            self._read = identifier, read
        if self._received.setdefault(identifier, text) != text:
            raise ProtocolAbort(AbortReason.MALFORMED_MODULE, f"two texts for {excerpt(identifier)}", "050-ERR-07")

    def named_by_peer(self, setup: Setup) -> None:
        """The peer has the module that it names."""
        self._shared.add(setup.module)

    def of(self, setup: Setup) -> Module:
        """The module that the peer named."""
        known = (*self._announced.values(), *self._known)
        if self._read is not None and self._read[0] == setup.module:
            read = self._read[1]
            if isinstance(read, LaceError):
                raise no_module(read)
            known = (*known, read)
        return module_of(setup.module, self._received, known)


class Negotiation:
    """The phases SETUP and HELLO of one epoch."""

    def __init__(self, core: Core, modules: Modules, *, is_restart: bool) -> None:
        self._core = core
        self._modules = modules
        self.is_restart = is_restart
        self._peer_setup: Setup | None = None
        self._plan: ExchangePlan | None = None
        self._hello: Hello | None = None
        self._forgot = False

    def send_setup(self) -> None:
        """Our operand."""
        core = self._core
        resource = self._modules.announce()
        if resource is not None:
            core.emit(resource)
        core.send_block([own_setup(core.config, self._modules.own).fact()])
        core.sent = True
        self._send_hello()

    def receive_setup(self, block: BlockReader) -> None:
        """The peer's operand."""
        config = self._core.config
        require_at_most_once(block.facts, EXCHANGE_OPERAND)
        self._peer_setup = read_setup(block.facts, config.index, config.link.here)
        self._modules.named_by_peer(self._peer_setup)
        self._core.received = True
        self._send_hello()

    def _send_hello(self) -> None:
        """Both operands are known: compile them."""
        core = self._core
        if self._peer_setup is None or not core.is_phase_done:
            return
        self._plan = compile_modules(core.config, self._modules.own, self._modules.of(self._peer_setup))
        self._hello = own_hello(core.config, self._plan, core.now_ns)
        core.enter(Move.AGREED)
        core.send_block(list(self._hello.facts()))
        core.sent = True

    def receive_hello(self, block: BlockReader) -> Agreement:
        """The peer's hello: what both come to."""
        if self._plan is None or self._hello is None or self._peer_setup is None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "hello before setup", "050-SETUP-01")
        offered = [name for name, _ in self._hello.capabilities]
        theirs = read_hello(block.facts, self._core.terms.max_tick_interval_ns, offered)
        agreement = settle(self._core.config, self._plan, self._hello, theirs, self._peer_setup.claimed)
        if not agreement.negotiated.differences:
            return agreement
        texts = hello_text(self._hello.facts()), hello_text(block.facts)
        first, second = texts if self._core.config.index == 0 else reversed(texts)
        return replace(agreement, difference_key=derive_key(first, second))

    def forget_crossing(self, block: BlockReader) -> None:
        """What the peer said before it saw our setup: ticks, and at most one adv (050-OPEN-11)."""
        if block.is_tick:
            return
        if self._forgot:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "an advertisement instead of setup", "050-OPEN-11")
        self._forgot = True
