"""Hello facts and what two hellos agree on (050, negotiation).

Rule: `agree` is a pure function of our hello, the peer's hello and the plan; both sides get the same answer from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace

from lace.errors import InvalidText, excerpt
from lace.facts.predicates import DATA_LENGTH
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import (
    HELLO_ADVERTISED_FIELD,
    HELLO_ALL_ADVERTISED_FIELDS,
    HELLO_EXCHANGE_PLAN,
    HELLO_LIMIT,
    HELLO_RECORD_FORMAT,
    HELLO_SIGNER,
    HELLO_TAI,
    HELLO_TICK_INTERVAL,
    require_at_most_once,
)
from lace.limits import SECOND_NS, ExchangeLimits
from lace.notation.decimal import is_decimal
from lace.notation.digest import digest
from lace.notation.fact import Fact, Predicate
from lace.notation.factline import format_fact
from lace.notation.identifiers import ExchangePlanId, Verifier
from lace.notation.tai import TAI
from lace.values import dataclass

# P17: the names in HelloLimit are the fields of ExchangeLimits; the phase timeout is not negotiated (050-HLIM-06).
LIMIT_NAMES = tuple(field.name for field in fields(ExchangeLimits) if field.name != "phase_timeout_ns")
PARTITION_LIMIT = "max_partition_summaries"
# P33: capabilities are limits by name; the salt of 070 and its word of having nothing are none, but travel as such.
DIFFERENCES = "x_differences"
SALT = "x_differences_salt"
HOLDS_NOTHING = "x_differences_nothing"
TAKE = "x_differences_take"
COMPRESSION = "x_compression"
REFUSALS = "x_refusals"
MOST_REFUSALS = 2  # the newest version of 071 that we speak
AGREES_LENGTHS = 2  # the version from which on lengths are left out where nobody wants them
LENGTHS = "x_refusals_lengths"  # no capability: the sender wants to be told how long records are (071-LEN-01)
# Which names belong to which capability: where it is not offered they are unknown limits like any other.
CAPABILITIES: dict[str, tuple[str, ...]] = {
    DIFFERENCES: (DIFFERENCES, SALT, HOLDS_NOTHING, TAKE),
    COMPRESSION: (COMPRESSION,),
    REFUSALS: (REFUSALS, LENGTHS),
}
_CAPABILITY_NAMES = tuple(name for names in CAPABILITIES.values() for name in names)
MAX_SALT = (1 << 128) - 1


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """Which field names are advertised; `names` is None for all of them."""

    names: frozenset[str] | None

    def meet(self, other: FieldSchema) -> FieldSchema:
        """What both sides can do (050-SCHEMA-01 to 050-SCHEMA-04)."""
        if self.names is None:
            return other
        if other.names is None:
            return self
        return FieldSchema(self.names & other.names)

    def without_spare_lengths(self, required: frozenset[str] | None) -> FieldSchema:
        """Without lengths, if the plan can do without them (071-LEN-02)."""
        if self.names is None or required is None or DATA_LENGTH in required:
            return self
        return FieldSchema(self.names - {DATA_LENGTH})

    def allows(self, name: str) -> bool:
        """Whether a field of this name is advertised."""
        return self.names is None or name in self.names


ALL_FIELDS = FieldSchema(None)
NO_FIELDS = FieldSchema(frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """One side's hello block as values."""

    plan: ExchangePlanId
    tai: TAI
    tick_interval_ns: int
    record_formats: frozenset[str]
    schema: FieldSchema
    signer: Verifier | None = None
    limits: tuple[tuple[str, int], ...] = ()  # recognised names only, repeats allowed (050-HLIM-02)
    capabilities: tuple[tuple[str, int], ...] = ()  # P33

    def facts(self) -> Iterator[Fact]:
        """The block, in the order of the table."""
        yield Fact(HELLO_EXCHANGE_PLAN, (self.plan,))
        if self.signer is not None:
            yield Fact(HELLO_SIGNER, (self.signer,))
        yield Fact(HELLO_TAI, (self.tai,))
        yield Fact(HELLO_TICK_INTERVAL, (str(self.tick_interval_ns),))
        for record_format in sorted(self.record_formats):
            yield Fact(HELLO_RECORD_FORMAT, (record_format,))
        if self.schema.names is None:
            yield Fact(HELLO_ALL_ADVERTISED_FIELDS, ())
        else:
            for name in sorted(self.schema.names, key=str.encode):
                yield Fact(HELLO_ADVERTISED_FIELD, (name,))
        for limit, value in (*self.limits, *self.capabilities):
            yield Fact(HELLO_LIMIT, (limit, str(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """What holds for this epoch, the same on both sides."""

    plan: ExchangePlanId
    start: TAI
    skew_seconds: int
    tick_interval_ns: int
    record_formats: frozenset[str]
    schema: FieldSchema
    limits: ExchangeLimits
    partitions: bool  # P16
    differences: bool  # 070
    compression: bool  # 070
    refusals: int = 0  # 071: the version; 0 is off
    takes: int = 0  # 070: so many records cross without a request list where whole listings tell what is lacking


def says_it_holds_nothing(hello: Hello) -> bool:
    """Whether there is nothing that the sender of a hello could compare a listing with (070-CAP-05)."""
    return _announces(hello.capabilities, HOLDS_NOTHING)


def offered_limits(limits: ExchangeLimits, partitions: bool) -> tuple[tuple[str, int], ...]:
    """Our limits as HelloLimit values; without partitions their limit is 0 (P17)."""
    values = ((name, getattr(limits, name)) for name in LIMIT_NAMES)
    return tuple((name, value if partitions or name != PARTITION_LIMIT else 0) for name, value in values)


def offered_capabilities(
    *,
    differences: bool,
    compression: bool,
    salt: int | None,
    holds_nothing: bool = False,
    takes: int = 0,
    refusals: int = 0,
    wants_lengths: bool = False,
) -> tuple[tuple[str, int], ...]:
    """The capabilities that we announce (P33, 070-CAP-04), that there is nothing to compare (070-CAP-05), how many
    records we take that we lack and do not name (070-TAKE-01), and whether lengths would help us (071-LEN-01)."""
    differences, compression = differences and salt is not None, compression and salt is not None
    offered = (
        (DIFFERENCES, 1, differences),
        (SALT, salt or 0, differences),
        (HOLDS_NOTHING, 1, differences and holds_nothing),
        (TAKE, takes, differences and takes > 0),
        (COMPRESSION, 1, compression),
        (REFUSALS, refusals, refusals > 0),
        (LENGTHS, 1, refusals > 0 and wants_lengths),
    )
    return tuple((name, value) for name, value, is_offered in offered if is_offered)


def hello_text(facts: Iterable[Fact]) -> bytes:
    """A hello block as both sides write it when they make keys of it (070-KEY-01)."""
    return "".join(sorted({f"{format_fact(fact)}\n" for fact in facts}, key=str.encode)).encode()


def read_hello(facts: Sequence[Fact], max_tick_interval_ns: int, offered: Collection[str] = _CAPABILITY_NAMES) -> Hello:
    """The peer's hello; anything missing, doubled or malformed aborts. Vocabulary was checked.

    `offered` are the capabilities that we announce: what the peer says of others is ignored, right or wrong (P33).
    """
    understood = tuple(name for offer, names in CAPABILITIES.items() if offer in offered for name in names)
    require_at_most_once(facts, HELLO_SIGNER)
    said: _Said = {}
    for predicate, values in facts:
        said.setdefault(predicate, []).append(values)
    plan = _one(said, HELLO_EXCHANGE_PLAN, "050-PLAN-03")
    tai = _one(said, HELLO_TAI, "050-TAI-01")
    interval = _one(said, HELLO_TICK_INTERVAL, "050-TAI-02")
    signers = said.get(HELLO_SIGNER)
    try:
        return Hello(
            plan=ExchangePlanId.parse(plan),
            tai=TAI.parse(tai),  # 050-TAI-11
            tick_interval_ns=_tick_interval(interval, max_tick_interval_ns),
            record_formats=frozenset(values[0] for values in said.get(HELLO_RECORD_FORMAT, ())),
            schema=_schema(said),
            signer=Verifier.parse(signers[0][0]) if signers else None,
            limits=tuple(_limits(said.get(HELLO_LIMIT, ()), LIMIT_NAMES)),
            capabilities=_capabilities(_limits(said.get(HELLO_LIMIT, ()), understood)),
        )
    except InvalidText as error:
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"hello: {error}") from None


def agree(ours: Hello, theirs: Hello, limits: ExchangeLimits, required: frozenset[str] | None) -> Negotiated:
    """What two hellos come to; `required` are the plan's field names, None for all fields."""
    if ours.plan != theirs.plan:  # 050-PLAN-02
        raise ProtocolAbort(
            AbortReason.EXCHANGE_PLAN_MISMATCH, f"ours is {ours.plan}, theirs {theirs.plan}", "050-PLAN-02"
        )
    formats = ours.record_formats & theirs.record_formats
    if not formats:  # 050-FMT-02
        raise ProtocolAbort(AbortReason.UNSUPPORTED_RECORD_FORMAT, "no record format in common", "050-FMT-02")
    refusals = min(_told(ours.capabilities, REFUSALS), _told(theirs.capabilities, REFUSALS), MOST_REFUSALS)
    wants_lengths = any(_announces(hello.capabilities, LENGTHS) for hello in (ours, theirs))
    schema = ours.schema.meet(theirs.schema)
    if refusals >= AGREES_LENGTHS and not wants_lengths:
        schema = schema.without_spare_lengths(required)
    _require_schema(schema, required)
    differences = _announces(ours.capabilities, DIFFERENCES) and _announces(theirs.capabilities, DIFFERENCES)
    return Negotiated(
        plan=ours.plan,
        start=max(ours.tai, theirs.tai),  # 050-TAI-03: TAI text sorts as time does
        skew_seconds=abs(ours.tai.to_ns() - theirs.tai.to_ns()) // SECOND_NS,  # 050-TAI-04
        tick_interval_ns=max(ours.tick_interval_ns, theirs.tick_interval_ns),  # 050-TAI-07
        record_formats=formats,
        schema=schema,
        limits=_effective_limits(limits, (*ours.limits, *theirs.limits)),
        partitions=_announces(ours.limits, PARTITION_LIMIT) and _announces(theirs.limits, PARTITION_LIMIT),
        differences=differences,
        compression=_announces(ours.capabilities, COMPRESSION) and _announces(theirs.capabilities, COMPRESSION),
        refusals=refusals,
        takes=min(_told(ours.capabilities, TAKE), _told(theirs.capabilities, TAKE)) if differences else 0,
    )


def link_id(first: Verifier, second: Verifier, plan: ExchangePlanId) -> str:
    """The Link-Id of two proven verifiers, as hexadecimal text (050-LINK-01, 050-LINK-02)."""
    low, high = sorted((first.encode(), second.encode()))
    return digest(low + high + plan.encode()).hex()


def _announces(limits: Sequence[tuple[str, int]], wanted: str) -> bool:
    return _told(limits, wanted) > 0


def _told(limits: Sequence[tuple[str, int]], wanted: str) -> int:
    """The least value of a name; 0 where it is not told."""
    return min((value for name, value in limits if name == wanted), default=0)


def _effective_limits(local: ExchangeLimits, announced: Iterable[tuple[str, int]]) -> ExchangeLimits:
    lowest: dict[str, int] = {}
    for name, value in announced:
        lowest[name] = min(value, lowest.get(name, value))
    # 050-HLIM-02: the minimum of the local limit and every announced value
    return replace(local, **{name: min(value, getattr(local, name)) for name, value in lowest.items()})


def _require_schema(schema: FieldSchema, required: frozenset[str] | None) -> None:
    if schema.names is None:
        return
    if required is None:  # 050-SCHEMA-08
        raise ProtocolAbort(
            AbortReason.UNSUPPORTED_FIELD_SCHEMA, "the plan reads all fields, the schema names some", "050-SCHEMA-08"
        )
    missing = sorted(required - schema.names)
    if missing:  # 050-SCHEMA-07
        raise ProtocolAbort(
            AbortReason.UNSUPPORTED_FIELD_SCHEMA, f"the plan needs {', '.join(missing)[:200]}", "050-SCHEMA-07"
        )


_Said = dict[Predicate, list[tuple[str, ...]]]


def _one(said: _Said, predicate: Predicate, clause: str) -> str:
    values = said.get(predicate, [])
    if len(values) != 1:  # P18: at most once, even if identical
        raise ProtocolAbort(
            AbortReason.MALFORMED_FACT_BLOCK, f"{predicate} stands {len(values)} times in hello", clause
        )
    return values[0][0]


def is_canonical_decimal(text: str) -> bool:
    """Whether a text is a natural number without leading zeros (P17)."""
    return len(text) <= 40 and is_decimal(text)


def _tick_interval(text: str, maximum: int) -> int:
    if not is_canonical_decimal(text) or not 0 < int(text) <= maximum:  # 050-TAI-08 to 050-TAI-10
        raise ProtocolAbort(
            AbortReason.MALFORMED_FACT_BLOCK, f"tick interval {excerpt(text)} is not 1 to {maximum} ns", "050-TAI-08"
        )
    return int(text)


def _schema(said: _Said) -> FieldSchema:
    if HELLO_ALL_ADVERTISED_FIELDS in said:  # 050-HELF-07: beside explicit names it still means all
        return ALL_FIELDS
    return FieldSchema(frozenset(values[0] for values in said.get(HELLO_ADVERTISED_FIELD, ())))


def _capabilities(announced: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """070-CAP-04: who announces differences also announces one salt, of the size of a salt."""
    found = tuple(announced)
    salts = {value for name, value in found if name == SALT}
    if len(salts) > 1 or any(salt > MAX_SALT for salt in salts) or (_announces(found, DIFFERENCES) and not salts):
        told = ", ".join(map(str, sorted(salts))) or "none"
        raise ProtocolAbort(
            AbortReason.MALFORMED_FACT_BLOCK,
            f"{DIFFERENCES} takes one {SALT} below 2^128, not {told[:200]}",
            "070-CAP-04",
        )
    return found


def _limits(values: Iterable[tuple[str, ...]], known: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for name, text in values:
        if name not in known:  # 050-HLIM-03
            continue
        may_be_zero = name == PARTITION_LIMIT or name in _CAPABILITY_NAMES
        if not is_canonical_decimal(text) or (text == "0" and not may_be_zero):  # 050-HLIM-04, 050-HLIM-05
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"limit {name} = {excerpt(text)}", "050-HLIM-04")
        yield name, int(text)
