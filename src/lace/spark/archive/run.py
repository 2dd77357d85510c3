"""Run the steps of an archive for its peers: what each may have, its listing, its roots. One commit for all of it.

Rule: a step is a function of its previous result and what came and went since. Where the rules add up only new batches
are read; where they look at several records, what they derive is stored and follows (`maintain`); where the rules are
others the result is worked out from nothing and takes the old one's place.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.archive import rewrite, tables
from lace.spark.archive.additive import Additivity, additivity, without_parts
from lace.spark.archive.archive import Archive
from lace.spark.archive.executors import (
    ChangedListing,
    Need,
    RunSettings,
    Step,
    Steps,
    files_bytes,
    files_rows,
    is_for_process,
)
from lace.spark.archive.maintain import KeptProgram, Maintainer, Records, maintainable
from lace.spark.archive.versions import BatchRange, Commit, DataFile, State, StepResult
from lace.spark.engine.executor import limits_on
from lace.spark.engine.plans import Sized
from lace.spark.engine.relations import union
from lace.spark.jobs.evaluate import PeerPolicy, runtime_relations
from lace.spark.source.files import fingerprint, place_mark


def rules_mark(peer: PeerPolicy) -> str:
    """A name for everything that decides what a peer may have: peers with equal marks are evaluated once."""
    rules = sorted(str(rule) for rule in peer.policy.program.program.rules)
    runtime = sorted([str(fact.predicate), *fact.values] for fact in peer.runtime)
    parts: dict[str, object] = {"rules": rules, "goal": str(peer.policy.sendable), "runtime": runtime}
    return fingerprint(parts if peer.listing is None else {**parts, "listing": place_mark(peer.listing)})


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
    return done is not None and done.mark == mark and done.removals == state.removals and done.seen == state.last_batch


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
        self._steps = Steps(archive, state, settings)
        self.added: list[DataFile] = []
        self.dropped: list[str] = []
        self.results: dict[str, StepResult] = {}
        self.fresh: dict[str, list[DataFile]] = {}  # by mark: the files with what was selected now
        self.lost: dict[str, Sized] = {}  # by mark: the hashes that are selected no more, except removed records
        self.replaced: set[str] = set()  # marks whose whole result was replaced
        self.keepers: list[Maintainer] = []  # they hold what `lost` is computed from

    # What a set of rules selects

    def select(self, mark: str, peers: Sequence[PeerPolicy]) -> None:
        key = f"selected:{mark}"
        names = ", ".join(peer.name for peer in peers[:3]) + (" …" if len(peers) > 3 else "")
        name = f"select for {names}"
        if _is_done(self.state, key, mark):
            self.archive.progress(name, "nothing new")
            return
        began = time.monotonic()
        step = self._steps.step(name)
        before = self.state.results.get(key)
        kept = False
        found = self._additivity(step, peers[0], before)
        if found.adds_up:
            self._select_by_batch(step, mark, peers[0], before, found.keyed)
        else:
            kept = self._select_by_change(step, mark, peers[0], before)
        rows = self._rows("selected", "rules", mark)
        step.tell(f"{rows:,} records")
        self._record(key, mark, {f"selected {peer.name}": rows for peer in peers}, began, step, kept=kept)

    def _additivity(self, step: Step, peer: PeerPolicy, before: StepResult | None) -> Additivity:
        """Whether what is new may be looked at by itself; with rules for parts, while nothing new is about parts."""
        program, goal = peer.policy.program.program, peer.policy.sendable
        found = additivity(program, goal)
        if found.adds_up:
            return found
        apart = additivity(without_parts(program), goal)
        return apart if apart.adds_up and not self._is_about_parts(step, before) else found

    def _is_about_parts(self, step: Step, before: StepResult | None) -> bool:
        """Whether a record that came or went is a Blob, or names parts of content."""
        pending = self.state.since(before)
        gone = [] if before is None else self._removed_since(before)
        if gone is None:
            return True
        files = [*self._files_of(pending), *gone]
        return bool(files) and step.do(Need(bytes=files_bytes(files)), lambda by: by.are_about_parts(files))

    def _files_of(self, batches: BatchRange) -> list[DataFile]:
        """The files of `records` with what some batches brought."""
        return [file for file in self.state.table("records") if batches.meets(file)]

    def _select_by_batch(self, step: Step, mark: str, peer: PeerPolicy, before: StepResult | None, keyed: bool) -> None:
        """Rules that add up: only batches that were not seen."""
        gone = before is not None and before.removals != self.state.removals
        if before is not None and (keyed or not gone):
            pending = self.state.since(before)
            self.archive.progress(step.name, f"{self.state.count(pending)} new batches")
        else:
            pending = self.state.every_batch
            self.archive.progress(step.name, "everything")
            self._forget(mark)
        self._drop("relations", "rules", mark)  # of a step that looked at parts: they do not follow this one
        self._selected(step, mark, peer, pending, Need(bytes=files_bytes(self._files_of(pending))), apart=True)

    def _selected(
        self, step: Step, mark: str, peer: PeerPolicy, batches: BatchRange, need: Need, *, apart: bool
    ) -> None:
        """Evaluate the rules over some batches."""
        self.fresh[mark] = step.do(need, lambda by: by.select(peer, mark, batches, apart=apart)) if batches else []
        self.added += self.fresh[mark]

    def _select_by_change(self, step: Step, mark: str, peer: PeerPolicy, before: StepResult | None) -> bool:
        """Rules that look at several records: stored relations follow; whether they are stored now."""
        every = self.state.every_batch
        whole = Need(whole_bytes=files_bytes(self._files_of(every)))
        rules = maintainable(peer.policy.program.program, peer.policy.sendable) if not peer.has_claims else None
        if rules is None or not every or is_for_process(self.archive, whole):
            # Where this process can look at all that there is, that takes less than following what changed.
            self.archive.progress(step.name, "everything")
            self._forget(mark)
            self._selected(step, mark, peer, every, whole, apart=False)
            return False
        step.by_jobs(lambda: self._follow(step, mark, peer, rules, before))
        return True

    def _follow(self, step: Step, mark: str, peer: PeerPolicy, rules: KeptProgram, before: StepResult | None) -> None:
        """Have stored relations follow what came and went, or derive and store them."""
        pending = self.state.since(before)
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
            limits=self.settings.limits or limits_on(self.archive.spark),
            settings=self.settings.executor,
            held=partial(self._held, column="rules", value=mark),
            batch=self.state.last_batch,
        )
        spark, files = self.archive.spark, self.archive.files
        records = Records(
            now=tables.as_wide(self.archive.records_of(self.state, self.state.every_batch)),
            new=tables.as_wide(self.archive.records_of(self.state, pending)) if pending else None,
            gone=tables.as_wide(tables.read(spark, files, "removed", gone)) if gone else None,
        )
        if follows:
            self.archive.progress(step.name, f"{self.state.count(pending)} new batches, {len(gone or ())} removals")
            self.fresh[mark], lost = keeper.follow(records)
            if lost.rows:
                self.lost[mark] = Sized(lost.frame.select(F.col("c0").alias("hash")), lost.rows)
        else:
            self.archive.progress(step.name, "everything")
            self.fresh[mark] = keeper.derive(records)
        self.added += keeper.added
        self.dropped += keeper.dropped
        self.keepers.append(keeper)

    def _removed_since(self, before: StepResult) -> list[DataFile] | None:
        """The files with the records that went since; None if some are not kept any more."""
        return rewrite.removed_since(self.state, before.removals)

    def _forget(self, mark: str) -> None:
        self._drop("selected", "rules", mark)
        self._drop("relations", "rules", mark)
        self.replaced.add(mark)

    # Listings

    def list_for(self, peer: PeerPolicy) -> None:
        key, mark = f"advertise:{peer.name}", listing_mark(peer)
        if _is_done(self.state, key, mark):
            self.archive.progress(f"list for {peer.name}", "nothing new")
            return
        began = time.monotonic()
        step = self._steps.step(f"list for {peer.name}")
        before = self.state.results.get(key)
        rules = rules_mark(peer)
        lags = before is not None and (before.seen, before.removals) != self._seen_before(rules)
        gone = None if before is None else self._removed_since(before)
        is_new = before is None or before.mark != mark or rules in self.replaced or gone is None or lags
        if is_new:
            self._drop("advertisements", "peer", peer.name)
        went = None if is_new else self._unlist(step, peer.name, rules, gone or [])
        chosen = self._held("selected", "rules", rules) if is_new else self.fresh.get(rules, [])
        batches = self.state.since(None if is_new else before)
        new = self._advertise(step, peer, chosen, batches) if chosen else []
        self.added += new
        if is_new and not new:
            self._drop("partitions", "peer", peer.name)
        elif new or went is not None:
            self._summarise(step, peer.name, new, went, is_new)
        counts = {
            f"listed {peer.name}": self._rows("advertisements", "peer", peer.name),
            f"partitions {peer.name}": self._rows("partitions", "peer", peer.name),
        }
        step.tell(", ".join(f"{k} {v:,}" for k, v in counts.items()))
        self._record(key, mark, counts, began, step)

    def _seen_before(self, rules: str) -> tuple[str, int]:
        """What a selection had seen before this run: a listing that saw something else is written from nothing."""
        before = self.state.results.get(f"selected:{rules}")
        return ("", -1) if before is None else (before.seen, before.removals)

    def _unlist(self, step: Step, peer: str, rules: str, gone: Sequence[DataFile]) -> DataFrame | None:
        """Take out of a listing what its peer may have no more; the hashes, None if there are none."""
        if rules not in self.lost and not gone:
            return None

        def cut() -> DataFrame | None:
            lost = self.lost.get(rules)
            parts = [] if lost is None else [lost.frame]
            most = files_rows(gone) + (0 if lost is None else lost.rows or 0)
            if gone:
                parts.append(tables.read(self.archive.spark, self.archive.files, "removed", gone).select("hash"))
            went = union(parts).distinct()
            held = self._held("advertisements", "peer", peer)
            new, old = rewrite.cut(self.archive, "advertisements", held, went, "hash", most)
            self.added += new
            self.dropped += old
            return went if old else None

        return step.by_jobs(cut)

    def _advertise(self, step: Step, peer: PeerPolicy, chosen: list[DataFile], batches: BatchRange) -> list[DataFile]:
        need = Need(bytes=max(files_bytes(chosen), files_bytes(self._files_of(batches))))
        return step.do(need, lambda by: by.advertise(peer, chosen, batches))

    def _summarise(self, step: Step, peer: str, new: list[DataFile], went: DataFrame | None, is_new: bool) -> None:
        """Renew the counts and roots of the partitions that changed; the others stay as they are."""
        held = self._held("advertisements", "peer", peer)
        old = [] if is_new else self._held("partitions", "peer", peer)
        listing = ChangedListing(peer, held, old, new, went)
        # Of the listing this process goes through what is new, and of the rest the digests near it.
        made = step.do(None if went is not None else Need(bytes=files_bytes(new)), lambda by: by.summarise(listing))
        self._drop("partitions", "peer", peer)
        self.added += made

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

    def _record(
        self, key: str, mark: str, counts: dict[str, int], began: float, step: Step, *, kept: bool = False
    ) -> None:
        self.results[key] = StepResult(
            mark=mark,
            seen=self.state.last_batch,
            removals=self.state.removals,
            counts=counts,
            seconds=round(time.monotonic() - began, 3),
            kept=kept,
            way=step.way,
        )


def selected(archive: Archive, peer: PeerPolicy, as_of: int | str | None = None) -> DataFrame:
    """The hashes that a peer may have."""
    return archive.table("selected", as_of).where(F.col("rules") == rules_mark(peer)).select("hash")
