"""Run the steps of an archive for its peers: what each may have, its listing, its roots. One commit for all of it.

Rule: a step is a function of its previous result and what came and went since. Where the rules add up only new batches
are read; where they look at several records, what they derive is stored and follows (`maintain`); where the rules are
others the result is worked out anew and takes the old one's place.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.limits import EngineLimits
from lace.records.manifest import CHUNK_LINK
from lace.spark.archive import fewrun, rewrite, tables
from lace.spark.archive.additive import Additivity, additivity, without_parts
from lace.spark.archive.archive import Archive
from lace.spark.archive.choosing import WantedRecords, ends_of, records_for
from lace.spark.archive.fewrun import FewRecords
from lace.spark.archive.log import Commit, DataFile, State, StepResult
from lace.spark.archive.maintain import Maintainer, Records, maintainable
from lace.spark.engine.executor import SparkSettings
from lace.spark.engine.relations import union
from lace.spark.jobs import advertise
from lace.spark.jobs.evaluate import PeerPolicy, runtime_relations, sendable
from lace.spark.jobs.reconcile import partition_prefix
from lace.spark.manifest import fingerprint
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Bounds of a run."""

    limits: EngineLimits = field(default_factory=EngineLimits)
    executor: SparkSettings = field(default_factory=SparkSettings)


def rules_mark(peer: PeerPolicy) -> str:
    """A name for everything that decides what a peer may have: peers with equal marks are evaluated once."""
    rules = sorted(str(rule) for rule in peer.policy.program.program.rules)
    runtime = sorted([str(fact.predicate), *fact.values] for fact in peer.runtime)
    return fingerprint({"rules": rules, "goal": str(peer.policy.sendable), "runtime": runtime})


def listing_mark(peer: PeerPolicy) -> str:
    """A name for everything that a listing for a peer hangs on."""
    plan = peer.policy.plan
    return fingerprint({"rules": rules_mark(peer), "plan": str(plan.id), "side": peer.policy.local_index})


def is_up_to_date(state: State, peers: Sequence[PeerPolicy], *, listings: bool = True) -> bool:
    """Whether a run would find nothing to do; asked without Spark."""
    marks = {f"selected:{rules_mark(peer)}": rules_mark(peer) for peer in peers}
    marks |= {f"advertise:{peer.name}": listing_mark(peer) for peer in peers if listings}
    return all(_is_done(state, key, mark) for key, mark in marks.items())


def _is_done(state: State, key: str, mark: str) -> bool:
    done = state.results.get(key)
    return (
        done is not None
        and done.mark == mark
        and done.removals == state.removals
        and set(done.batches) == set(state.batch_ids)
    )


def run(
    archive: Archive, peers: Sequence[PeerPolicy], settings: RunSettings | None = None, *, listings: bool = True
) -> State:
    """Bring every peer's tables up to the archive's newest batch; without listings only what each may have.

    What peers may have is worked out side by side: a commit between takes nothing from it, unless it took records or
    changed the same result. Records that came meanwhile are left to the next run, which finds them to be new.
    """

    def work(state: State) -> Commit | None:
        if is_up_to_date(state, peers, listings=listings):
            archive.progress("run", "nothing new")
            return None
        change = _ArchiveRun(archive, state, settings or RunSettings())
        for mark, group in _grouped(peers).items():
            change.select(mark, group)
        for peer in peers if listings else ():
            change.list_for(peer)
        for keeper in change.keepers:
            keeper.release()
        return Commit(
            operation="run",
            counts={key: value for result in change.results.values() for key, value in result.counts.items()},
            added=tuple(change.added),
            dropped=(*change.dropped, *rewrite.seen_removals(state, change.results)),
            results=change.results,
        )

    return archive.commit(work, None if listings else _stands)


def _stands(change: Commit, before: State, after: State) -> bool:
    """Whether what was worked out against one version holds after a later one."""
    held = {file.path for file in after.files}
    return (
        before.removals == after.removals
        and held.issuperset(change.dropped)
        and all(before.results.get(key) == after.results.get(key) for key in change.results)
    )


def _grouped(peers: Iterable[PeerPolicy]) -> dict[str, list[PeerPolicy]]:
    groups: dict[str, list[PeerPolicy]] = {}
    for peer in peers:
        groups.setdefault(rules_mark(peer), []).append(peer)
    return groups


class _ArchiveRun:
    """One run against one version; nothing is committed here."""

    def __init__(self, archive: Archive, state: State, settings: RunSettings) -> None:
        self.archive = archive
        self.state = state
        self.settings = settings
        self.added: list[DataFile] = []
        self.dropped: list[str] = []
        self.results: dict[str, StepResult] = {}
        self.fresh: dict[str, list[DataFile]] = {}  # by mark: the files with what was selected now
        self.lost: dict[str, DataFrame] = {}  # by mark: the hashes that are selected no more, except removed records
        self.anew: set[str] = set()  # marks whose whole result was replaced
        self.keepers: list[Maintainer] = []  # they hold what `lost` is computed from
        self.few: dict[str, tuple[FewRecords, list[str]]] = {}  # by mark: what was selected now without Spark

    # What a set of rules selects

    def select(self, mark: str, peers: Sequence[PeerPolicy]) -> None:
        key = f"selected:{mark}"
        names = ", ".join(peer.name for peer in peers[:3]) + (" …" if len(peers) > 3 else "")
        if _is_done(self.state, key, mark):
            self.archive.progress(f"select for {names}", "nothing new")
            return
        began = time.monotonic()
        before = self.state.results.get(key)
        kept = False
        found = self._additivity(peers[0], before)
        if found.adds_up:
            self._select_by_batch(mark, peers[0], names, before, found.keyed)
        else:
            kept = self._select_by_change(mark, peers[0], names, before)
        counts = {f"selected {peer.name}": self._rows("selected", "rules", mark) for peer in peers}
        self._record(key, mark, counts, began, kept=kept)

    def _additivity(self, peer: PeerPolicy, before: StepResult | None) -> Additivity:
        """Whether what is new may be looked at by itself; with rules for parts, while nothing new is about parts."""
        program, goal = peer.policy.program.program, peer.policy.sendable
        found = additivity(program, goal)
        if found.adds_up:
            return found
        apart = additivity(without_parts(program), goal)
        return apart if apart.adds_up and not self._is_about_parts(before) else found

    def _is_about_parts(self, before: StepResult | None) -> bool:
        """Whether a record that came or went is a Blob, or names parts of content."""
        pending = list(self.state.batch_ids) if before is None else self._pending(before)
        gone = [] if before is None else self._removed_since(before)
        if gone is None:
            return True
        wanted = set(pending)
        came = [file for file in self.state.table("records") if wanted & set(file.batches)]
        found = fewrun.are_about_parts(self.archive, [*came, *gone])
        if found is not None:
            return found
        read = [self.archive.records_of(self.state, pending)] if pending else []
        read += [tables.read(self.archive.spark, self.archive.files, "removed", gone)] if gone else []
        named = F.exists("links", lambda link: link["name"] == CHUNK_LINK)
        return any(not frame.where((F.col("type") == "B") | named).isEmpty() for frame in read)

    def _select_by_batch(self, mark: str, peer: PeerPolicy, names: str, before: StepResult | None, keyed: bool) -> None:
        """Rules that add up: only batches that were not seen."""
        gone = before is not None and before.removals != self.state.removals
        if before is not None and (keyed or not gone):
            pending = self._pending(before)
            self.archive.progress(f"select for {names}", f"{len(pending)} new batches")
        else:
            pending = list(self.state.batch_ids)
            self.archive.progress(f"select for {names}", "everything")
            self._forget(mark)
        self._drop("relations", "rules", mark)  # of a step that looked at parts: they do not follow this one
        few = self._few(pending, self.archive.few.bytes) if pending and not peer.advertised else None
        if few is not None:
            self._select_few(mark, peer, few, pending[-1], apart=True)
        else:
            self.fresh[mark] = self._evaluate(mark, peer, pending) if pending else []
            self.added += self.fresh[mark]

    def _select_few(self, mark: str, peer: PeerPolicy, few: FewRecords, batch: str, *, apart: bool) -> None:
        """Evaluate the rules over few records without Spark."""
        hashes = few.select(peer, self.settings.limits, self.settings.executor.engine, apart=apart)
        self.few[mark] = few, hashes
        self.fresh[mark] = fewrun.write_selected(self.archive, mark, hashes, batch)
        self.added += self.fresh[mark]

    def _few(self, batches: Sequence[str], most: int) -> FewRecords | None:
        """The records of some batches, if this process can do without Spark for them."""
        return FewRecords.of(self.archive, self.state, batches, most)

    def _select_by_change(self, mark: str, peer: PeerPolicy, names: str, before: StepResult | None) -> bool:
        """Rules that look at several records: stored relations follow; whether they are stored now."""
        whole = self._few(self.state.batch_ids, self.archive.few.held) if self.state.batch_ids else None
        if whole is not None and not peer.advertised:
            self.archive.progress(f"select for {names}", "everything, which is little")
            self._forget(mark)  # all that there is takes less than following what changed
            self._select_few(mark, peer, whole, self.state.batch_ids[-1], apart=False)
            return False
        rules = maintainable(peer.policy.program.program, peer.policy.sendable) if not peer.advertised else None
        if rules is None or not self.state.batch_ids:
            self.archive.progress(f"select for {names}", "everything")
            self._forget(mark)
            self.fresh[mark] = self._evaluate(mark, peer, self.state.batch_ids) if self.state.batch_ids else []
            self.added += self.fresh[mark]
            return False
        pending = self._pending(before) if before is not None else list(self.state.batch_ids)
        gone = self._removed_since(before) if before is not None else None
        follows = before is not None and before.kept and gone is not None
        if not follows:
            self._forget(mark)
        keeper = Maintainer(
            archive=self.archive,
            mark=mark,
            rules=rules,
            goal=peer.policy.sendable,
            base=runtime_relations(self.archive.spark, peer),
            limits=self.settings.limits,
            settings=self.settings.executor,
            held=partial(self._held, column="rules", value=mark),
            batch=self.state.batch_ids[-1],
        )
        spark, files = self.archive.spark, self.archive.files
        records = Records(
            now=tables.as_wide(self.archive.records_of(self.state, self.state.batch_ids)),
            new=tables.as_wide(self.archive.records_of(self.state, pending)) if pending else None,
            gone=tables.as_wide(tables.read(spark, files, "removed", gone)) if gone else None,
        )
        if follows:
            self.archive.progress(f"select for {names}", f"{len(pending)} new batches, {len(gone or ())} removals")
            self.fresh[mark], lost = keeper.follow(records)
            if lost.rows:
                self.lost[mark] = lost.frame.select(F.col("c0").alias("hash"))
        else:
            self.archive.progress(f"select for {names}", "everything")
            self.fresh[mark] = keeper.derive(records)
        self.added += keeper.added
        self.dropped += keeper.dropped
        self.keepers.append(keeper)
        return True

    def _pending(self, before: StepResult) -> list[str]:
        return [batch for batch in self.state.batch_ids if batch not in before.batches]

    def _removed_since(self, before: StepResult) -> list[DataFile] | None:
        """The files with the records that went since; None if some are not kept any more."""
        return rewrite.removed_since(self.state, before.removals)

    def _forget(self, mark: str) -> None:
        self._drop("selected", "rules", mark)
        self._drop("relations", "rules", mark)
        self.anew.add(mark)

    def _evaluate(self, mark: str, peer: PeerPolicy, pending: Sequence[str]) -> list[DataFile]:
        records = tables.as_wide(self.archive.records_of(self.state, pending))
        found = sendable(records, peer, self.settings.limits, self.settings.executor)
        hashes = found.frame(peer.policy.sendable).select(F.col("c0").alias("hash"))
        frame = hashes.select(F.lit(mark).alias("rules"), "hash", F.lit(pending[-1]).alias("batch"))
        made = tables.write(self.archive.spark, self.archive.files, "selected", frame)
        found.release()
        return made

    # Listings

    def list_for(self, peer: PeerPolicy) -> None:
        key, mark = f"advertise:{peer.name}", listing_mark(peer)
        if _is_done(self.state, key, mark):
            self.archive.progress(f"list for {peer.name}", "nothing new")
            return
        began = time.monotonic()
        before = self.state.results.get(key)
        rules = rules_mark(peer)
        lags = before is not None and (before.batches, before.removals) != self._seen_before(rules)
        gone = None if before is None else self._removed_since(before)
        anew = before is None or before.mark != mark or rules in self.anew or gone is None or lags
        if anew:
            self._drop("advertisements", "peer", peer.name)
        went = None if anew else self._unlist(peer.name, rules, gone or [])
        chosen = self._held("selected", "rules", rules) if anew else self.fresh.get(rules, [])
        new_to_it = self.state.batch_ids if anew or before is None else self._pending(before)
        few = self._few_of(rules, chosen, tuple(new_to_it)) if went is None else None
        new = self._advertisements(peer, chosen, new_to_it) if few is None else self._list_few(peer, *few)
        self.added += new
        if anew and not new:
            self._drop("partitions", "peer", peer.name)
        elif (new or went is not None) and not (few is not None and self._count_few(peer, few[1], anew)):
            self._renew_partitions(peer.name, new, went, anew)
        counts = {
            f"listed {peer.name}": self._rows("advertisements", "peer", peer.name),
            f"partitions {peer.name}": self._rows("partitions", "peer", peer.name),
        }
        self.archive.progress(f"list for {peer.name}", ", ".join(f"{k} {v:,}" for k, v in counts.items()))
        self._record(key, mark, counts, began)

    def _seen_before(self, rules: str) -> tuple[tuple[str, ...], int]:
        """What a selection had seen before this run: a listing that saw something else is made anew."""
        before = self.state.results.get(f"selected:{rules}")
        return ((), -1) if before is None else (before.batches, before.removals)

    def _unlist(self, peer: str, rules: str, gone: Sequence[DataFile]) -> DataFrame | None:
        """Take out of a listing what its peer may have no more; the hashes, None if there are none."""
        parts = [self.lost[rules]] if rules in self.lost else []
        if gone:
            parts.append(tables.read(self.archive.spark, self.archive.files, "removed", gone).select("hash"))
        if not parts:
            return None
        went = union(parts).distinct()
        new, old = rewrite.cut(self.archive, "advertisements", self._held("advertisements", "peer", peer), went, "hash")
        self.added += new
        self.dropped += old
        return went if old else None

    def _advertisements(self, peer: PeerPolicy, chosen: Sequence[DataFile], batches: Sequence[str]) -> list[DataFile]:
        """What some files say is selected, which rules of one record select of some batches."""
        if not chosen:
            return []
        spark, files = self.archive.spark, self.archive.files
        hashes = tables.read(spark, files, "selected", chosen).select("hash")
        ends = ends_of(chosen)
        records = records_for(self.archive, self.state, peer, WantedRecords(hashes, ends, batches))
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        listing = advertise.advertisements(records, source, fields).withColumn("peer", F.lit(peer.name))
        return tables.write(spark, files, "advertisements", listing, by=("hash",), rows=ends.rows, move=False)

    def _few_of(
        self, rules: str, chosen: list[DataFile], batches: tuple[str, ...]
    ) -> tuple[FewRecords, list[str]] | None:
        """What some files say is selected, with the records, if this process has both or can have them."""
        if rules in self.few and chosen == self.fresh[rules]:
            return self.few[rules]
        records = self._few(batches, self.archive.few.bytes) if chosen and batches else None
        if records is None:
            return None
        hashes = fewrun.read_selected(self.archive, rules, chosen)
        # A new record may let an older one go to a peer, which is not among these.
        return (records, hashes) if hashes is not None and records.hold(hashes) else None

    def _list_few(self, peer: PeerPolicy, records: FewRecords, hashes: Sequence[str]) -> list[DataFile]:
        return fewrun.write_listing(self.archive, peer.name, records.listing(peer, hashes)) if hashes else []

    def _count_few(self, peer: PeerPolicy, hashes: Sequence[str], anew: bool) -> bool:
        """Renew counts and roots without Spark; False if that is too much."""
        old = [] if anew else self._held("partitions", "peer", peer.name)
        held = self._held("advertisements", "peer", peer.name)
        touched = sorted({fewrun.prefix_of(text) for text in hashes})
        made = fewrun.write_partitions(self.archive, peer.name, old, held, touched)
        if made is not None:
            self._drop("partitions", "peer", peer.name)
            self.added += made
        return made is not None

    def _renew_partitions(self, peer: str, new: Sequence[DataFile], went: DataFrame | None, anew: bool) -> None:
        """Counts and roots of the partitions that changed; the others stay as they are."""
        spark, files = self.archive.spark, self.archive.files
        held = self._held("advertisements", "peer", peer)
        old = tables.read(spark, files, "partitions", self._held("partitions", "peer", peer))
        self._drop("partitions", "peer", peer)
        if anew:
            frame = advertise.partitions(tables.read(spark, files, "advertisements", held))
        else:
            parts = [tables.read(spark, files, "advertisements", new).select("prefix")]
            parts += [] if went is None else [went.select(partition_prefix())]
            # At most as many as there are partitions (050-PART-03): with their names files and row groups are pruned.
            touched = sorted(row["prefix"] for row in union(parts).distinct().collect())
            chosen = tables.read(spark, files, "advertisements", tables.holding(held, "prefix", touched))
            frame = advertise.partitions(chosen.where(F.col("prefix").isin(touched)))
            frame = frame.unionByName(old.where(~F.col("prefix").isin(touched)).select(*frame.columns))
        shown = frame.withColumn("peer", F.lit(peer)).repartition(1)  # no fewer tasks for the roots: their rows move
        self.added += tables.write(spark, files, "partitions", shown)

    # What is there, this run's changes counted

    def _held(self, table: str, column: str, value: str) -> list[DataFile]:
        gone = set(self.dropped)
        held = (*self.state.table(table), *(file for file in self.added if file.table == table))
        return [file for file in held if file.path not in gone and file.low.get(column) == value]

    def _drop(self, table: str, column: str, value: str) -> None:
        held = self._held(table, column, value)
        self.dropped += [file.path for file in held]
        self.added = [file for file in self.added if file not in held]

    def _rows(self, table: str, column: str, value: str) -> int:
        return sum(file.rows for file in self._held(table, column, value))

    def _record(self, key: str, mark: str, counts: dict[str, int], began: float, *, kept: bool = False) -> None:
        self.results[key] = StepResult(
            mark=mark,
            batches=self.state.batch_ids,
            removals=self.state.removals,
            counts=counts,
            seconds=round(time.monotonic() - began, 3),
            kept=kept,
        )


def selected(archive: Archive, peer: PeerPolicy, as_of: int | str | None = None) -> DataFrame:
    """The hashes that a peer may have."""
    return archive.table("selected", as_of).where(F.col("rules") == rules_mark(peer)).select("hash")
