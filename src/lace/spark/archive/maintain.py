"""Keep what rules derive up to date where they look at several records: joins, negation, counting, recursion.

Rule: after a change the stored relations are those of an evaluation from scratch. Strata are gone through in order; one
whose inputs did not change costs nothing, the others follow what came and went (`changes`). Star relations, which one
record decides, are never stored: they are read from the records themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import Predicate, Program
from lace.datalog.language.validate import RAW_PROFILE, rewritten
from lace.datalog.planning.ranking import ranked_predicates
from lace.datalog.planning.stratify import Stratum, read_atom, strata
from lace.datalog.planning.unfold import unfold
from lace.datalog.source import Row
from lace.limits import EngineLimits
from lace.spark.archive import in_process, rewrite, tables
from lace.spark.archive.changes import Changed, came, doubted, ever, maintenance, was, went
from lace.spark.archive.executors import Need, is_for_process
from lace.spark.archive.versions import DataFile
from lace.spark.engine.executor import MAX_UNFOLDED_BODY, SparkEvaluation, SparkSettings, evaluate, is_star
from lace.spark.engine.pivot import UNIT, relation_columns, star_relation
from lace.spark.engine.plans import Sized, supported
from lace.spark.engine.relations import held_apart, local_relation, union
from lace.spark.engine.stars import Constellation, Star, split
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive

Base = Mapping[Predicate, Sized]


class KeptProgram(NamedTuple):
    """A program whose relations can be kept: unfolded, and the same over stars."""

    program: Program
    parts: Constellation

    @property
    def derived(self) -> list[Predicate]:
        return sorted({rule.head.predicate for rule in self.program.rules})


def maintainable(program: Program, goal: Predicate) -> KeptProgram | None:
    """A program as it is kept; None where only a whole evaluation is right or cheap.

    A counted order (P31) is never materialised, so there is nothing to keep; and a goal that other rules read would
    have to be stored twice, since removed records are taken out of what is selected at once.
    """
    flat = unfold(program, {goal}, is_star, MAX_UNFOLDED_BODY)
    parts = split(flat)
    if any(supported(rank) for rank in ranked_predicates(parts.program, {goal}).values()):
        return None
    read = {
        found[0].predicate for rule in parts.program.rules for x in rule.body if (found := read_atom(x)) is not None
    }
    return None if goal in read else KeptProgram(flat, parts)


@dataclass(frozen=True, slots=True)
class Shift:
    """What came and went in a relation."""

    came: Sized
    went: Sized


@dataclass(slots=True)
class Records:
    """The records as wide tables: all there are, those that are new, those that went (None where there are none)."""

    now: DataFrame
    new: DataFrame | None
    gone: DataFrame | None


@dataclass
class Maintainer:
    """The relations of one set of rules. Nothing is committed here: files come and go in `added` and `dropped`."""

    archive: Archive
    mark: str
    rules: KeptProgram
    goal: Predicate
    base: Base
    limits: EngineLimits
    settings: SparkSettings
    held: Callable[[str], list[DataFile]]  # files of `selected` or `relations` that belong to these rules
    batch: str
    added: list[DataFile] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    _caches: list[DataFrame] = field(default_factory=list)

    def _evaluated(
        self, program: Program, given: Base, goals: Sequence[Predicate], records: DataFrame | None = None
    ) -> SparkEvaluation:
        checked = rewritten(program, RAW_PROFILE)
        return evaluate(
            checked,
            given,
            spark=self.archive.spark,
            records=records,
            goals=goals,
            limits=self.limits,
            settings=self.settings,
        )

    # From scratch

    def derive(self, records: Records) -> list[DataFile]:
        """Derive everything from nothing; the files of the goal."""
        derived = self.rules.derived
        found = self._evaluated(self.rules.program, self.base, derived, records.now)
        made = {predicate: self._store(predicate, found.relations[predicate]) for predicate in derived}
        found.release()
        return made[self.goal]

    # By what changed

    def follow(self, records: Records) -> tuple[list[DataFile], Sized]:
        """Bring every relation up to date; the files with what the goal gained, and what it lost."""
        shifts = self._star_shifts(records)
        known: dict[Predicate, Sized] = dict(self.base)
        known |= {star.predicate: self._star(records.now, star) for star in self.rules.parts.stars}
        gained: list[DataFile] = []
        lost = local_relation(self.archive.spark, 1, [])
        for stratum in strata(self.rules.parts.program):
            changed = self._changed(stratum, shifts, records)
            if changed.touches(stratum):
                new = self._maintain(stratum, changed, known, shifts, records)
                gained += new.get(self.goal, [])
            for predicate in stratum.predicates:
                known[predicate] = self._stored(predicate)
                if predicate == self.goal and predicate in shifts:
                    lost = shifts[predicate].went
        return gained, lost

    def release(self) -> None:
        """Give back what is held on the cluster."""
        for frame in self._caches:
            frame.unpersist()

    def _changed(self, stratum: Stratum, shifts: Mapping[Predicate, Shift], records: Records) -> Changed:
        doubts = {self.goal} & set(stratum.predicates) if records.gone is not None else set()
        return Changed(
            grown=frozenset(predicate for predicate, shift in shifts.items() if shift.came.rows),
            shrunk=frozenset(predicate for predicate, shift in shifts.items() if shift.went.rows),
            in_doubt=frozenset(doubts),
        )

    def _maintain(
        self,
        stratum: Stratum,
        changed: Changed,
        known: Mapping[Predicate, Sized],
        shifts: dict[Predicate, Shift],
        records: Records,
    ) -> dict[Predicate, list[DataFile]]:
        plan = maintenance(stratum, changed)
        self.ways.append(plan.how)
        given = dict(known)
        for predicate, shift in shifts.items():
            given |= {came(predicate): shift.came, went(predicate): shift.went}
            if shift.went.rows:
                given[ever(predicate)] = Sized(union([known[predicate].frame, shift.went.frame]))
        given |= {was(predicate): self._stored(predicate) for predicate in stratum.predicates}
        if records.gone is not None:
            given[doubted(self.goal)] = Sized(records.gone.select(F.col("hash").alias("c0")).distinct())
        goals = [head for p in stratum.predicates for head in (came(p), went(p))]
        found = self._evaluated(plan.program, given, goals)
        self._caches += found.held
        new: dict[Predicate, list[DataFile]] = {}
        for predicate in stratum.predicates:
            shift = Shift(
                self._measured(found.relations[came(predicate)]), self._measured(found.relations[went(predicate)])
            )
            shifts[predicate] = shift
            if shift.went.rows:
                self._take_out(predicate, shift.went.frame, shift.went.rows)
            new[predicate] = self._store(predicate, shift.came) if shift.came.rows else []
        return new

    # Stars

    def _star(self, records: DataFrame, star: Star) -> Sized:
        found = star_relation(records, star)
        return Sized(found.frame, repeating=found.repeating)

    def _star_shifts(self, records: Records) -> dict[Predicate, Shift]:
        """What the new and the gone records say of each star; all of the short ones by one job."""
        sides = [(side, frame) for side, frame in (("new", records.new), ("gone", records.gone)) if frame is not None]
        stars = self.rules.parts.stars
        frames = {(side, star.predicate): self._star(frame, star) for side, frame in sides for star in stars}
        few = self._collected(frames)
        sized = few if few is not None else {key: self._measured(found) for key, found in frames.items()}
        nothing = {star.predicate: local_relation(self.archive.spark, star.predicate.arity, []) for star in stars}
        return {
            star.predicate: Shift(
                sized.get(("new", star.predicate), nothing[star.predicate]),
                sized.get(("gone", star.predicate), nothing[star.predicate]),
            )
            for star in stars
        }

    def _collected(self, frames: Mapping[tuple[str, Predicate], Sized]) -> dict[tuple[str, Predicate], Sized] | None:
        """Short relations on the driver, all by one job; None if they are not short."""
        most = min(self.settings.lookup_rows, self.settings.small_rows)
        if not frames or most == 0:
            return None
        keys = list(frames)
        parts = [
            frames[key].frame.select(F.lit(place).alias("place"), _terms(key[1]).alias("terms"))
            for place, key in enumerate(keys)
        ]
        table = union(parts).limit(most + 1).toArrow()
        if table.num_rows > most:
            return None
        rows: dict[tuple[str, Predicate], list[tuple[str, ...]]] = {key: [] for key in keys}
        for place, terms in zip(table["place"].to_pylist(), table["terms"].to_pylist(), strict=True):
            rows[keys[place]].append(tuple(terms))
        return {key: local_relation(self.archive.spark, key[1].arity, found) for key, found in rows.items()}

    def _measured(self, sized: Sized) -> Sized:
        """A relation whose length is known."""
        if sized.rows is not None:
            return sized
        frame = held_apart(sized.frame)
        self._caches.append(frame)
        return Sized(frame, frame.count())

    # Stored relations

    def _files(self, predicate: Predicate) -> list[DataFile]:
        gone = set(self.dropped)
        table = "selected" if predicate == self.goal else "relations"
        files = [file for file in (*self.held(table), *self.added) if file.table == table and file.path not in gone]
        return (
            files if predicate == self.goal else [file for file in files if file.low["predicate"] == _name(predicate)]
        )

    def _stored(self, predicate: Predicate) -> Sized:
        files = self._files(predicate)
        if predicate == self.goal:
            frame = tables.read(self.archive.spark, self.archive.files, "selected", files)
            return Sized(frame.select(F.col("hash").alias("c0")), sum(file.rows for file in files))
        frame = tables.read(self.archive.spark, self.archive.files, "relations", files)
        names = relation_columns(predicate.arity)
        columns = [F.element_at("terms", place + 1).alias(name) for place, name in enumerate(names)]
        shown = columns if predicate.arity else [F.lit(True).alias(UNIT)]
        return Sized(frame.select(*shown), sum(file.rows for file in files))

    def _store(self, predicate: Predicate, rows: Sized) -> list[DataFile]:
        made = self._store_here(predicate, rows.values) if rows.values is not None else None
        if made is None:
            made = self._store_by_job(predicate, rows.frame)
        self.added += made
        return made

    def _store_here(self, predicate: Predicate, rows: Sequence[Row]) -> list[DataFile] | None:
        """Rows that the driver has need no job to be written; None if they do."""
        if not is_for_process(self.archive, Need()):
            return None
        if predicate == self.goal:
            return in_process.write_selected(self.archive.files, self.mark, sorted(row[0] for row in rows), self.batch)
        return in_process.write_relation(self.archive.files, self.mark, _name(predicate), sorted(rows))

    def _store_by_job(self, predicate: Predicate, rows: DataFrame) -> list[DataFile]:
        rules = F.lit(self.mark).alias("rules")
        if predicate == self.goal:
            batch = F.lit(self.batch).alias("batch")
            table, frame = "selected", rows.select(rules, F.col("c0").alias("hash"), batch)
        else:
            name = F.lit(_name(predicate)).alias("predicate")
            table, frame = "relations", rows.select(rules, name, _terms(predicate).alias("terms"))
        return tables.write(self.archive.spark, self.archive.files, table, frame)

    def _take_out(self, predicate: Predicate, rows: DataFrame, count: int) -> None:
        """Files that hold rows which are derived no more are written without them."""
        if predicate == self.goal:
            table, key, gone = "selected", "hash", rows.select(F.col("c0").alias("hash"))
        else:
            table, key, gone = "relations", "terms", rows.select(_terms(predicate).alias("terms"))
        new, old = rewrite.cut(self.archive, table, self._files(predicate), gone, key, count)
        self.added = [file for file in self.added if file.path not in set(old)] + new
        self.dropped += old


def _name(predicate: Predicate) -> str:
    return f"{predicate.name}/{predicate.arity}"


def _terms(predicate: Predicate) -> Column:
    """The columns of a relation as one list."""
    columns: Sequence[str] = relation_columns(predicate.arity) if predicate.arity else ()
    return F.array(*(F.col(name) for name in columns)).cast("array<string>")
