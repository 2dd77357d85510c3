"""Setup, hello and the local policy: how an epoch begins, the first one and every later one (050, P20).

Rule: an epoch begins with a setup block of either side where an `adv` could start; whatever crosses it is forgotten.
"""

from __future__ import annotations

from lace.interlace.agreement import compile_modules, module_of, own_hello, own_setup, settle
from lace.interlace.blocks import BlockReader
from lace.interlace.config import MachineConfig
from lace.interlace.cursor import decode_cursor
from lace.interlace.effects import EndBlock, LoadCursor, PreparePolicy, SendFacts, SendResource
from lace.interlace.events import EpochBegan
from lace.interlace.loop import LoopPhases
from lace.interlace.negotiate import Hello, read_hello
from lace.interlace.partitions import AdvertisementSet, Changes
from lace.interlace.phases import Move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup import Setup, read_setup
from lace.interlace.ticks import TickState
from lace.interlace.vocabulary import EXCHANGE_OPERAND, require_at_most_once
from lace.policy.compile import ExchangePlan
from lace.policy.operand import Module

LACEGRAM = "lacegram"


class EpochPhases(LoopPhases):
    """The phases SETUP to PREPARE."""

    def __init__(self, config: MachineConfig) -> None:
        super().__init__(config)
        self._module = config.module
        self._next_module: Module | None = None
        # Every module that we announced: the peer may take one later and, by P22, leave out the bytes that it had
        # from us. They go out as resources or came as such, so the resource limits of both directions bound them.
        self._modules_announced: dict[str, Module] = {}
        self._modules_shared: set[str] = set()  # that the peer announced or was sent
        self._modules_received: dict[str, bytes] = {}
        self._peer_setup: Setup | None = None
        self._plan: ExchangePlan | None = None
        self._hello: Hello | None = None
        self._restarting = False
        self._forgot = False

    # --- setup -------------------------------------------------------------------------------------------------

    def _send_setup(self) -> None:
        module = self._module
        self._modules_announced[module.id] = module
        if module.id not in self._modules_shared:  # P22
            self._modules_shared.add(module.id)
            self._emit(SendResource(module.id, LACEGRAM, module.text.encode()))
        self._emit(SendFacts([own_setup(self.config, module).fact()]))
        self._emit(EndBlock())
        self._sent = True
        self._setup_done()

    def _receive_setup(self, block: BlockReader) -> None:
        require_at_most_once(block.facts, EXCHANGE_OPERAND)
        self._peer_setup = read_setup(block.facts, self.config.index, self.config.link.here)
        self._modules_shared.add(self._peer_setup.module)
        self._received = True

    def _setup_done(self) -> None:
        if not (self._sent and self._received) or self._peer_setup is None:
            return
        known = (*self._modules_announced.values(), *self.config.known_modules)
        peer = module_of(self._peer_setup.module, self._modules_received, known)
        self._plan = compile_modules(self.config, self._module, peer)
        self._hello = own_hello(self.config, self._plan, self._now_ns)
        self._enter(Move.AGREED)
        self._emit(SendFacts(list(self._hello.facts())))
        self._emit(EndBlock())
        self._sent = True

    # --- hello -------------------------------------------------------------------------------------------------

    def _receive_hello(self, block: BlockReader) -> None:
        if self._plan is None or self._hello is None or self._peer_setup is None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "hello before setup", "050-SETUP-01")
        theirs = read_hello(block.facts, self.config.max_tick_interval_ns)
        agreement = settle(self.config, self._plan, self._hello, theirs, self._peer_setup.claimed)
        same_plan = self._agreement is not None and self._agreement.plan.id == agreement.plan.id
        self._agreement = agreement
        self._epochs += 1
        self._ticks = TickState(agreement.negotiated.start, agreement.negotiated.tick_interval_ns)
        self._shown_tick = self._ticks.tick
        self._enter(Move.AGREED)
        self._report(EpochBegan(agreement.plan.id, self._epochs))
        self._begin_epoch(same_plan)

    def _begin_epoch(self, same_plan: bool) -> None:
        """The evaluator starts anew; the peer's state is kept only under the same plan (050-OPEN-13)."""
        self._own = AdvertisementSet(self.config.max_line_bytes)
        self._book.reset()
        self._unsent.clear()
        self._sent_whole = False
        self._advertised_version = -1
        self._seen_listings.clear()
        self._fixed_point = False
        self._ledger.begin_round()
        if same_plan:
            self._pending = Changes(self._held.listing(), [])
            self._prepare()
            return
        self._held = AdvertisementSet(self.config.max_line_bytes)
        self._pending = Changes([], [])
        self._saved_version = 0
        key = self._cursor_key()
        if key:
            self._emit(LoadCursor(key))
        else:
            self._prepare()

    def _take_cursor(self, data: bytes | None) -> None:
        """050-SEND-02: the first evaluation uses the stored peer advertisement state of the link."""
        source = self.agreement.peer_source
        cursor = None
        if data is not None:
            cursor = decode_cursor(data, self.agreement.plan.id, source, self.config.max_cursor_bytes)
        if cursor is not None:
            self._pending = self._held.replace_all(cursor.claims)
            self._held.remember(source, cursor.partitions)
            self._saved_version = self._held.version
        self._prepare()

    def _prepare(self) -> None:
        agreement = self.agreement
        self._emit(
            PreparePolicy(
                plan=agreement.plan,
                local_index=self.config.index,
                viewer=agreement.viewer,
                schema=agreement.negotiated.schema,
                send_gate=self.config.send_gate,
            )
        )

    # --- later epochs ------------------------------------------------------------------------------------------

    def _start_epoch(self) -> None:
        """Our operand changed: our setup block stands where an adv could start (050-OPEN-06)."""
        self._renew()
        self._peer_setup = None
        self._send_setup()

    def _answer_epoch(self, block: BlockReader) -> None:
        """The peer's operand changed; our own adv, if it crossed, is forgotten (050-OPEN-11)."""
        self._renew()
        self._receive_setup(block)
        self._send_setup()

    def _renew(self) -> None:
        if self._next_module is not None:
            self._module, self._next_module = self._next_module, None
        self._enter(Move.OPERAND)
        self._restarting = True
        self._forgot = False

    def _forget_crossing(self, block: BlockReader) -> None:
        """What the peer said before it saw our setup: ticks, and at most one adv."""
        if block.is_tick:
            return
        if self._forgot:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "an advertisement instead of setup", "050-OPEN-11")
        self._forgot = True
