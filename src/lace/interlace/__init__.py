"""Interlace (050): two laces converge on the records that both select. Pure; knows no streams and no stores."""

from lace.interlace.advertisement import Advertisement, FieldClaim
from lace.interlace.config import Link, MachineConfig
from lace.interlace.cursor import AdvertisementCursor
from lace.interlace.machine import InterlaceMachine
from lace.interlace.negotiate import FieldSchema, Hello, Negotiated
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.interlace.runtimefacts import RuntimeFacts

__all__ = [
    "AbortReason",
    "Advertisement",
    "AdvertisementCursor",
    "FieldClaim",
    "FieldSchema",
    "Hello",
    "InterlaceMachine",
    "InterlaceResult",
    "Link",
    "MachineConfig",
    "Negotiated",
    "Phase",
    "RuntimeFacts",
]
