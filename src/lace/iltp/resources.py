"""Resource text blocks: their marker line, and whether a body is what its name claims (060).

Rule: a received resource is validated as it is and never repaired; what passes is byte for byte the canonical text
whose hash is its name.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NoReturn

from lace.datalog.language.canonical import Lacegram
from lace.errors import InvalidInput, InvalidStream, LimitExceeded, excerpt
from lace.iltp.items import Resource
from lace.limits import KIB, MIB, EngineLimits
from lace.notation.identifiers import ExchangePlanId, Identifier, LacegramId
from lace.notation.text import decode_text
from lace.policy.transcript import read_transcript
from lace.values import dataclass

_REMEMBERED_BYTES = 8 * KIB


class ResourceKind(StrEnum):
    """The standard kinds."""

    LACEGRAM = "lacegram"
    EXCHANGE_PLAN = "exchange-plan"


ID_SHAPES: dict[ResourceKind, type[Identifier]] = {
    ResourceKind.LACEGRAM: LacegramId,  # 060-RES-08
    ResourceKind.EXCHANGE_PLAN: ExchangePlanId,  # 060-RES-09
}


@dataclass(frozen=True, slots=True)
class ResourceName:
    """What a marker line announces."""

    id: Identifier
    kind: ResourceKind


def parse_marker_line(line: bytes) -> ResourceName:
    """What follows `🧩: ` on a marker line: id, one space, kind; anything else is a stream error."""
    try:
        tokens = decode_text(line, "resource marker").split(" ")
    except InvalidInput as error:
        raise InvalidStream(error.message, rule="resource-marker-text", found=error.found) from None
    # 060-RES-03 to 060-RES-06: one space between two tokens, so an empty token is a space too many.
    if len(tokens) != 2 or not all(tokens) or any(c in token for token in tokens for c in "\t\r"):
        _refuse("a resource marker line is `🧩: <id> <kind>`", "resource-marker-form", line)
    identifier, word = tokens
    try:
        kind = ResourceKind(word)
    except ValueError:
        _refuse("the resource kinds are lacegram and exchange-plan", "resource-kind", line)  # 060-RES-34
    try:
        return ResourceName(ID_SHAPES[kind].parse(identifier), kind)
    except InvalidInput:
        _refuse(f"the id does not have the shape of a {kind}", "resource-id", line)  # 060-RES-35


def check_resource(resource: Resource, limits: EngineLimits | None = None) -> None:
    """Raise InvalidStream unless the bytes are canonical as they stand and hash to the announced id."""
    identified = _identify_again if len(resource.text) <= _REMEMBERED_BYTES else identify
    try:
        found = identified(resource, limits or EngineLimits())
    except InvalidInput as error:  # 060-RES-25, 060-RES-36: nothing is made canonical after receipt
        raise InvalidStream(error.message, rule="resource-body", place=resource.id, found=error.found) from error
    except LimitExceeded as error:
        raise InvalidStream(str(error), rule="resource-body", place=resource.id) from error
    if found != resource.id:  # 060-RES-37
        raise InvalidStream(
            "the body is not what the id names", rule="resource-mismatch", place=resource.id, found=found
        )


def identify(resource: Resource, limits: EngineLimits) -> str:
    """The id that canonical bytes have; raises if they are not canonical."""
    if resource.kind == ResourceKind.LACEGRAM:  # 060-RES-26
        return str(Lacegram.parse_canonical(resource.text, limits=limits, name=resource.id).id)
    return str(read_transcript(resource.text).id)  # 060-RES-29


@lru_cache(maxsize=64)  # the same few small texts come over many links; what is refused is raised and not kept
def _identify_again(resource: Resource, limits: EngineLimits) -> str:
    return identify(resource, limits)


def fault_of(resource: Resource, limits: EngineLimits | None = None) -> InvalidStream | None:
    """What is wrong with a received resource, None if nothing is."""
    try:
        check_resource(resource, limits or EngineLimits())
    except InvalidStream as fault:
        return fault
    return None


class ResourceBook:
    """The canonical texts that a link knows, each checked by `check_resource` before it is kept (060-AVAIL-04).

    The oldest received ones make room for new ones, so that a peer cannot fill the memory with unused text.
    """

    def __init__(self, max_kept_bytes: int = 8 * MIB) -> None:
        self._max_kept_bytes = max_kept_bytes
        self._kept_bytes = 0
        self._texts: dict[str, bytes] = {}

    def knows(self, resource: Resource) -> bool:
        """Whether this is an identical repeat, which changes nothing (060-RES-31)."""
        return self._texts.get(resource.id) == resource.text

    def keep(self, resource: Resource) -> None:
        """Keep a resource that was checked."""
        if resource.id in self._texts:  # 060-RES-32: out of reach for honest hashes, and still not believed
            raise InvalidStream("another text is known under this id", rule="resource-conflict", place=resource.id)
        self._texts[resource.id] = resource.text
        self._kept_bytes += len(resource.text)
        while self._kept_bytes > self._max_kept_bytes and len(self._texts) > 1:
            oldest = next(iter(self._texts))
            self._kept_bytes -= len(self._texts.pop(oldest))

    def text(self, identifier: str) -> bytes | None:
        """The canonical bytes under an id, if they are here."""
        return self._texts.get(identifier)


def _refuse(message: str, rule: str, found: bytes) -> NoReturn:
    raise InvalidStream(message, rule=rule, place="resource marker", found=excerpt(found))
