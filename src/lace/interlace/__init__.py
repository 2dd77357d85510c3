"""Interlace (050): two laces converge on the records that both select. Pure; knows no streams and no stores.

Names are found when they are asked for: worker processes need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.interlace.advertisement import Advertisement, FieldClaim
    from lace.interlace.cursor import AdvertisementCursor
    from lace.interlace.machine import InterlaceMachine
    from lace.interlace.negotiate import FieldSchema, Hello, Negotiated
    from lace.interlace.phases import Phase
    from lace.interlace.reasons import AbortReason
    from lace.interlace.result import InterlaceResult
    from lace.interlace.runtimefacts import RuntimeFacts
    from lace.interlace.terms import Link, MachineConfig, Terms

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
    "Terms",
]

_HOMES = {
    "AbortReason": "reasons",
    "Advertisement": "advertisement",
    "AdvertisementCursor": "cursor",
    "FieldClaim": "advertisement",
    "FieldSchema": "negotiate",
    "Hello": "negotiate",
    "InterlaceMachine": "machine",
    "InterlaceResult": "result",
    "Link": "terms",
    "MachineConfig": "terms",
    "Negotiated": "negotiate",
    "Phase": "phases",
    "RuntimeFacts": "runtimefacts",
    "Terms": "terms",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
