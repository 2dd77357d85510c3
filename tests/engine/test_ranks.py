"""Ranks against counting pairs: of columns at once, and kept in order while candidates come and go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.rank_counts import ranked_counts
from lace.datalog.engine.ranking_state import RankState, RankStates
from lace.datalog.engine.runs import CodeRow, Run
from lace.datalog.engine.table import Table
from lace.datalog.engine.tombstones import run_of
from lace.datalog.engine.verdicts import Verdicts
from lace.datalog.language.comparisons import compare
from lace.datalog.language.syntax import OPERATORS, Operator, Predicate
from lace.datalog.planning.plan import Rank, Scan
from lace.limits import EngineLimits

POST = Predicate("Post", 4)  # identity, group, key, kind: ranked are those of kind "k"
Post = tuple[str, str, str, str]


def order(
    kind: str, operator: Operator, tie: Operator | None = None, *, others_only: bool = False, grouped: bool = False,
    by_identity: bool = False,
) -> Rank:  # fmt: skip
    places = {0: "Id"} | ({1: "Group1"} if grouped else {}) | ({} if by_identity else {2: "Key"})
    return Rank(
        candidates=Scan(POST, tuple(places.items()), ((3, "k"),)),
        kind=kind,
        operator=operator,
        tie_kind="lex" if tie else "",
        tie_operator=tie or operator,
        groups=("Group1",) if grouped else (),
        others_only=others_only,
    )


def every_order() -> Iterator[Rank]:
    for operator, others_only, grouped in product(OPERATORS, (False, True), (False, True)):
        yield order("lex", operator, others_only=others_only, grouped=grouped)
        yield order("int", operator, others_only=others_only, grouped=grouped)
        yield order("lex", operator, others_only=others_only, grouped=grouped, by_identity=True)
    for operator, tie, grouped in product(("<", ">"), OPERATORS, (False, True)):
        yield order("lex", operator, tie, grouped=grouped)
        if tie in ("<", ">"):
            yield order("lex", operator, tie, grouped=grouped, others_only=True)


def counted(rank: Rank, x: str, posts: list[Post]) -> int:
    """The pairs that the rules behind a rank derive for x."""
    key_at = {name: place for place, name in rank.candidates.variables}.get("Key", 0)
    ranked = [post for post in posts if post[3] == "k"]
    found = set()
    for mine, other in product([post for post in ranked if post[0] == x], ranked):
        if rank.groups and mine[1] != other[1]:
            continue
        beyond = compare(rank.kind, other[key_at], rank.operator, mine[key_at])
        if beyond and not (rank.others_only and x == other[0]):
            found.add(other[0])
        if rank.tie_kind and mine[2] == other[2] and compare("lex", other[0], rank.tie_operator, x):
            found.add(other[0])
    return len(found)


TABLES: list[list[Post]] = [
    [],
    [("a", "g", "1", "k")],
    [("a", "g", "5", "k"), ("b", "g", "3", "k"), ("c", "g", "5", "k"), ("d", "g", "4", "k"), ("e", "g", "3", "k")],
    [("d", "g", "x", "k"), ("b", "h", "2", "k"), ("a", "g", "2", "k"), ("c", "g", "10", "k"), ("e", "h", "2", "k")],
    [("c", "g", "1", "k"), ("a", "h", "3", "k"), ("a", "h", "1", "k"), ("b", "h", "2", "k"), ("b", "h", "3", "k"),
     ("z", "g", "9", "other"), ("d", "g", "1", "k"), ("e", "g", "01", "k"), ("f", "h", "y", "k"), ("f", "h", "3", "k")],
    [("b", "g", "1", "k"), ("a", "g", "1", "k"), ("a", "g", "2", "k"), ("c", "g", "2", "k"), ("b", "g", "0", "k")],
    [("a", "g", "x", "k"), ("b", "h", "y", "k")],
    [("a", "g", "1", "k"), ("a", "g", "3", "k"), ("b", "g", "2", "k"), ("c", "g", "2", "k")],
]  # fmt: skip


class Coded:
    """Posts as rows of codes."""

    def __init__(self, *, in_order: bool) -> None:
        self.dictionary = Dictionary(EngineLimits())
        texts = {text for posts in TABLES for post in posts for text in post}
        for text in sorted(texts, reverse=not in_order):  # so that codes do not happen to be in the order of texts
            self.dictionary.code(text)
        self.dictionary.settle()

    def rows(self, posts: list[Post]) -> list[CodeRow]:
        return self.dictionary.codes(posts)

    def run(self, posts: list[Post]) -> Run:
        return run_of(self.rows(posts), 4, self.dictionary.size)


@pytest.mark.parametrize("room", [0, 5_000])
@pytest.mark.parametrize("in_order", [False, True])
def test_a_rank_of_columns_is_the_number_of_pairs(in_order: bool, room: int) -> None:
    """With room for more codes than rows a place is searched for, otherwise it is looked up."""
    coded = Coded(in_order=in_order)
    verdicts, size = Verdicts(coded.dictionary), coded.dictionary.size + room
    kind = coded.dictionary.code("k")
    for rank, posts in product(every_order(), TABLES):
        selected = coded.run(posts).select((((3, kind),), ()))
        halves = [coded.run(half).select((((3, kind),), ())) for half in (posts[::2], posts[1::2])]
        for views in ([selected], halves, [view for view in halves if view.rows]):
            counts = ranked_counts(rank, views, verdicts, size)
            assert counts is not None
            assert (len(counts), counts.dtype) == (size, np.int64)
            for code in range(size - room):
                x = coded.dictionary.text(code)
                assert counts[code] == counted(rank, x, posts), (str(rank), rank.others_only, rank.groups, posts, x)


TWO_GROUPS: list[Post] = [("a", "g", "1", "k"), ("b", "g", "2", "k"), ("a", "h", "2", "k")]


def test_a_candidate_of_two_groups_has_no_rank() -> None:
    coded = Coded(in_order=True)
    verdicts, size = Verdicts(coded.dictionary), coded.dictionary.size
    for kind in ("lex", "int"):
        assert ranked_counts(order(kind, "<", grouped=True), [coded.run(TWO_GROUPS)], verdicts, size) is None
    uncompared = [TWO_GROUPS[0], TWO_GROUPS[1], ("a", "h", "x", "k")]  # in one of the groups it cannot be compared
    found = ranked_counts(order("int", "<", grouped=True), [coded.run(uncompared)], verdicts, size)
    assert found is not None
    assert [found[code] for code in coded.dictionary.codes([("a", "b")])[0]] == [0, 1]


def can_follow(rank: Rank) -> bool:
    """An order is one list only if ties stand on the same side of it as keys."""
    return not rank.tie_kind or rank.tie_operator[0] == rank.operator[0]


def edits(posts: list[Post]) -> Iterator[tuple[list[Post], list[Post]]]:
    """What goes and what comes, one after the other."""
    for post in posts[1::2]:
        yield [post], []
    yield [], posts[1::2]
    yield posts[:2], [("f", "g", "4", "k"), ("q", "g", "7", "other")] if posts else []
    yield [], [("e", "g", "8", "k")]


@pytest.mark.parametrize("number", range(1, len(TABLES)))
def test_an_order_that_follows_its_candidates_knows_every_rank_and_whose_may_have_crossed_a_bound(number: int) -> None:
    coded = Coded(in_order=False)
    for text in ("q", "7", "4", "8", "other"):
        coded.dictionary.code(text)
    names = sorted({post[0] for post in TABLES[number]} | {"f", "q", "e"})
    codes = dict(zip(names, coded.dictionary.codes([names])[0], strict=True))
    for rank in every_order():
        posts = list(TABLES[number])
        table = Table(POST, coded.run(posts))
        state = RankState(rank, table, coded.dictionary)
        assert state.usable is can_follow(rank)
        if not state.usable:
            continue
        before = {name: counted(rank, name, posts) for name in names}
        assert {name: state.count(codes[name]) for name in names} == before
        for went, came in edits(posts):
            posts = [post for post in posts if post not in went]
            came = [post for post in came if post not in posts]
            posts += came
            table.take(coded.rows(went))
            table.put(dict.fromkeys(coded.rows(came), 0))
            state.move([*coded.rows(came), *coded.rows(went)])
            table.commit()
            if not state.usable:
                assert rank.groups
                break
            now = {name: counted(rank, name, posts) for name in names}
            assert {name: state.count(codes[name]) for name in names} == now, (str(rank), posts)
            for bound in range(-1, 6):
                doubtful = set(state.doubtful(bound))
                crossed = {
                    name for name in names for operator in OPERATORS
                    if compare("int", str(before[name]), operator, str(bound))
                    != compare("int", str(now[name]), operator, str(bound))
                }  # fmt: skip
                assert {codes[name] for name in crossed} <= doubtful, (str(rank), before, now, bound)
            before = now


def test_few_of_many_are_looked_at_again_when_one_more_comes() -> None:
    coded = Coded(in_order=True)
    many: list[Post] = [(f"id{n:03}", "g", f"{n:03}", "k") for n in range(200)]
    for operator, near in ((">", range(177, 183)), ("<", range(17, 23))):
        rank = order("lex", operator)
        table = Table(POST, coded.run(many))
        state = RankState(rank, table, coded.dictionary)
        newcomer: Post = ("new", "g", "100", "k")
        table.put(dict.fromkeys(coded.rows([newcomer]), 0))
        state.move(coded.rows([newcomer]))
        looked_at = {coded.dictionary.text(code) for code in state.doubtful(20)}
        assert looked_at == {"new", *(f"id{n:03}" for n in near)}
        for far in (10_000, -10_000):
            assert list(state.doubtful(far)) == [coded.dictionary.code("new")]


def test_candidates_in_two_groups_end_an_order() -> None:
    coded = Coded(in_order=True)
    rank = order("lex", "<", grouped=True)
    assert RankState(rank, Table(POST, coded.run(TWO_GROUPS)), coded.dictionary).usable is False
    table = Table(POST, coded.run(TWO_GROUPS[:2]))
    state = RankState(rank, table, coded.dictionary)
    assert state.usable
    table.put(dict.fromkeys(coded.rows(TWO_GROUPS[2:]), 0))
    state.move(coded.rows(TWO_GROUPS[2:]))
    assert state.usable is False


def test_orders_are_made_once_moved_once_a_change_and_forgotten_when_they_should_have_moved() -> None:
    coded, posts = Coded(in_order=True), TABLES[2]
    table = Table(POST, coded.run(posts))
    states = RankStates(lambda _: table, coded.dictionary)
    rank, other = order("lex", ">"), order("lex", "<")
    state, second = states.state(rank), states.state(other)
    assert states.state(rank) is state
    assert states.count(rank, coded.dictionary.code("b")) == 3
    asked: list[Predicate] = []
    (newcomer,) = coded.rows([("f", "h", "9", "k")])
    table.add(newcomer)

    def delta(predicate: Predicate) -> tuple[list[CodeRow], list[CodeRow]]:
        asked.append(predicate)
        return [newcomer], []

    assert states.follow(rank, delta) is states.follow(rank, delta) is state
    assert asked == [POST]
    assert states.count(rank, coded.dictionary.code("b")) == 4
    states.settle(delta)
    assert states.state(rank) is state
    assert states.state(other) is not second
    table.commit()
    states.settle(lambda _: ([], []))
    assert states.state(rank) is state
    asked.clear()
    states.follow(rank, lambda predicate: asked.append(predicate) or ([], [newcomer]))  # type: ignore[func-returns-value]
    assert asked == [POST]  # a new change
    states.forget()
    assert (again := states.state(rank)) is not state
    states.settle(lambda _: ([], [newcomer]))
    assert states.state(rank) is not again
