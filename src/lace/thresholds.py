"""From which size on another way is taken: one value for each part that has two ways to do a thing.

Rule: a threshold changes how long something takes and never what comes out. They are handed in, so that a test can
have both ways with little data; `docs/ways.md` lists the ways, and what each buys.
"""

from __future__ import annotations

from dataclasses import field

from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedThresholds:
    """When a program that was compiled once answers (`lace.datalog.engine.prepared`)."""

    max_facts: int = 256  # of one question; to plan rules for more does not matter
    max_texts: int = 20_000  # values that questions brought, after which all of them are forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleThresholds:
    """How rules follow a store (`lace.runtime.rules`)."""

    max_followed_facts: int = 1_000  # of one change; more are evaluated as part of the whole
    max_followed_records: int = 50_000  # that came, where each is looked at by itself; of more, the whole is as near
    max_read_records: int = 1_000  # stored records that are read one by one for what claims or parts say of them
    max_short_records: int = 16  # that the thread which stored them evaluates for everybody
    max_shared_claims: int = 64  # for which an answer is kept for the next peer that makes the same claims
    min_columns: int = 64  # records; the fields of more are read from columns instead of from each record
    prepared: PreparedThresholds = field(default_factory=PreparedThresholds)
