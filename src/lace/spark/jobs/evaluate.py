"""Evaluate: any lacegram and any exchange plan over an archive; for many peers in one job (030, 040).

Rule: exposure and scopes are gone before Spark sees a rule: the lowered program is the same that the machine runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import Fact, Predicate
from lace.limits import EngineLimits
from lace.policy.lower import LoweredPolicy
from lace.spark.engine.executor import SparkEvaluation, SparkSettings, evaluate
from lace.spark.engine.plans import Sized
from lace.spark.engine.relations import local_relation
from lace.spark.jobs.peer_listing import read_listing
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPolicy:
    """What a job needs of one peer: its name in the tables, the lowered plan and the facts of the exchange."""

    name: str
    policy: LoweredPolicy
    runtime: tuple[Fact, ...] = ()
    advertised: Mapping[Predicate, DataFrame] = field(default_factory=dict)  # what it claims over a link
    listing: Path | None = None  # what it advertises, as a file or an archive (`jobs.peer_listing`)

    @property
    def has_claims(self) -> bool:
        """Whether what it may have and be asked for may depend on what it has itself."""
        return bool(self.advertised) or self.listing is not None

    @property
    def source(self) -> str:
        """The label under which the peer advertises: who it is if that is proven, else its operand's origin (P15)."""
        origin = self.policy.plan.operands[1 - self.policy.local_index].origin
        viewer = self.policy.viewer
        return viewer if viewer is not None and viewer.startswith("V.") else origin


def runtime_relations(spark: SparkSession, peer: PeerPolicy) -> dict[Predicate, Sized]:
    """The facts of the exchange, as relations."""
    rows: dict[Predicate, dict[tuple[str, ...], None]] = {}
    for predicate, values in peer.runtime:
        rows.setdefault(predicate, {})[values] = None
    return {predicate: local_relation(spark, predicate.arity, list(found)) for predicate, found in rows.items()}


def sendable(records: DataFrame, peer: PeerPolicy, limits: EngineLimits, settings: SparkSettings) -> SparkEvaluation:
    """What may go to one peer: its goal is the policy's `sendable`."""
    return _evaluated(records, peer, peer.policy.sendable, limits, settings)


def sendable_hashes(records: DataFrame, peer: PeerPolicy, limits: EngineLimits, settings: SparkSettings) -> DataFrame:
    """(hash): the same as a frame."""
    goal = peer.policy.sendable
    return sendable(records, peer, limits, settings).frame(goal).select(F.col("c0").alias("hash"))


def _evaluated(
    records: DataFrame, peer: PeerPolicy, goal: Predicate, limits: EngineLimits, settings: SparkSettings
) -> SparkEvaluation:
    spark = records.sparkSession
    listed = {} if peer.listing is None else read_listing(spark, peer.listing, peer.source)
    return evaluate(
        peer.policy.program,
        {**runtime_relations(spark, peer), **peer.advertised, **listed},
        spark=spark,
        records=records,
        goals=[goal],
        limits=limits,
        settings=settings,
    )


def requestable_records(
    records: DataFrame, peers: Iterable[PeerPolicy], limits: EngineLimits, settings: SparkSettings
) -> DataFrame:
    """(peer, hash): what may be asked of each peer, of all that its listing advertises and this archive lacks."""
    frames = []
    for peer in peers:
        goal = peer.policy.requestable
        found = _evaluated(records, peer, goal, limits, settings).frame(goal)
        frames.append(found.select(F.lit(peer.name).alias("peer"), F.col("c0").alias("hash")))
    return reduce(DataFrame.unionByName, frames)
