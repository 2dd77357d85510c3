"""The interlace machine (050): one side of one link. Inputs in, effects out.

Rule: pure. It touches no clock, store or stream; what it needs done it returns as effects, and every change of phase
is a row of `phases.MOVES`. A peer's fault becomes an `Abort` effect, our own misuse a LocalProtocolError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lace.errors import LocalProtocolError
from lace.interlace import inputs as i
from lace.interlace.agreement import Agreement, compile_modules, module_of, own_hello, own_setup, settle
from lace.interlace.blocks import BlockReader
from lace.interlace.config import MachineConfig
from lace.interlace.cursor import AdvertisementCursor, decode_cursor
from lace.interlace.effects import (
    Abort,
    Effect,
    EndBlock,
    Evaluate,
    Finish,
    LoadCursor,
    PreparePolicy,
    Report,
    SaveCursor,
    SendFacts,
    SendResource,
)
from lace.interlace.events import Closed, EpochBegan, Event, FixedPoint, Ticked
from lace.interlace.ledger import Ledger
from lace.interlace.loop import Loop, Purpose
from lace.interlace.negotiate import Hello, read_hello
from lace.interlace.partitions import AdvertisementSet, Changes
from lace.interlace.phases import TIMED, Move, Phase, move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.result import InterlaceResult
from lace.interlace.setup import Setup, read_setup
from lace.interlace.ticks import TickState
from lace.interlace.transfer import RequestBook
from lace.interlace.vocabulary import EXCHANGE_OPERAND, TICK_READY, Block
from lace.notation.fact import Fact
from lace.policy.compile import ExchangePlan
from lace.policy.operand import Module
