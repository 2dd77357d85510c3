"""The rules page: an editor, what is wrong, the rows, why and why not, and how it was evaluated.

Rule: the page is one form. Without a script every button sends it; with one it is sent while somebody types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from lace.datalog.engine.stats import Stats
from lace.datalog.language.syntax import Predicate
from lace.datalog.planning.plan import chain
from lace.errors import InvalidInput, InvalidLacegram, LaceError
from lace.inspector.answers import Answers, Asked
from lace.inspector.browse import crumbs, record_url, summaries
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits, OpenedLace
from lace.inspector.names import speller
from lace.inspector.page import Data, Page
from lace.inspector.prooftree import show_explanation
from lace.inspector.widgets import count, empty, hash_link, link, notice, section, signer, size, table
from lace.notation.decimal import natural
from lace.notation.identifiers import RECORD_HASH_LENGTH, RECORD_TYPES
from lace.notation.text import quote

HERE = "Rules"
_RECORD = re.compile(r"[PSB]\.[A-Za-z0-9_~-]{43}\.H3")
_NAMED = 200  # records of an explanation whose names are looked up
EXAMPLE = """# Which records are signed, and by whom. Edit this: rows follow as you type.
Signed(P,Who) :- Field(P,'Signed-By',_,Who).
Named(P,Name) :- Field(P,'Name',_,Name).
"""


def rules_page(opened: OpenedLace, asked: Mapping[str, str], limits: InspectorLimits, answers: Answers) -> Page:
    """The page with the editor and the results of its rules."""
    rules = asked.get("rules", EXAMPLE).replace("\r\n", "\n")
    answer = answers.ask(opened, rules)
    start = natural(asked.get("start", "")) or 0
    head = answer.head(asked.get("show", ""))
    goal = asked.get("goal", "").strip()
    explained = _explain(opened, answer, goal) if goal and not answer.errors else None
    shown = answer.rows(head, start, limits.page_rows) if head else []
    outcome = join(
        _errors(answer),
        _findings(answer.doubts, "warning"),
        _explanation(goal, explained),
        _rows(opened, answer, head, shown, start, limits),
        _plan(answer.result.stats) if answer.result else None,
    )
    marks = [error_data(error) for error in answer.errors]
    marks += [{**error_data(doubt), "doubt": True} for doubt in answer.doubts]
    fragment = tag("div", outcome, id="outcome", data_errors=json.dumps(marks))
    body = join(tag("h1", "Rules"), _form(opened, rules, goal, fragment))
    data: Data = {
        "rules": rules,
        "errors": [error_data(error) for error in answer.errors],
        "doubts": [error_data(doubt) for doubt in answer.doubts],
        "limit": answer.limit or None,
        "heads": {str(predicate): answer.count(predicate) for predicate in answer.heads} if answer.result else {},
        "head": str(head) if head else None,
        "start": start,
        "rows": [list(row) for row in shown],
        "explanation": explained and explained[1],
        "plan": list(answer.result.stats.lines()) if answer.result else [],
    }
    return Page(title="Rules", data=data, body=body, crumbs=crumbs(opened), here=HERE, fragment=fragment)


def _form(opened: OpenedLace, rules: str, goal: str, outcome: Markup) -> Markup:
    editor = tag(
        "div",
        tag("pre", rules, class_="editor-under", aria_hidden="true"),
        tag(
            "textarea",
            rules,
            name="rules",
            id="rules",
            rows="10",
            spellcheck="false",
            autocomplete="off",
            autocapitalize="off",
            aria_describedby="caret-note",
            data_live=True,
        ),
        class_="editor",
    )
    label = tag("label", "Rules", for_="rules", class_="visually-hidden")
    note = tag("p", "", id="caret-note", class_="caret-note", aria_live="polite")
    ask = tag("label", "Why, or why not", for_="goal")
    box = tag(
        "input",
        name="goal",
        id="goal",
        value=goal,
        placeholder="Signed('P…',Who)",
        spellcheck="false",
        autocomplete="off",
    )
    question = tag("div", ask, box, tag("button", "Explain"), class_="inline")
    row = tag("div", tag("button", "Evaluate", class_="primary"), question, class_="bar")
    return tag("form", label, editor, note, row, outcome, method="post", action=f"{opened.base}/rules", class_="rules")


def error_data(error: InvalidInput) -> Data:
    """An error with its place."""
    found: Data = {"message": error.message, "rule": error.rule, "found": error.found}
    return {**found, **{name: getattr(error, name, 0) for name in ("line", "column", "advice")}}


def _errors(answer: Asked) -> Markup | None:
    if answer.limit:
        return notice(
            "bad", join(tag("strong", "Stopped. "), answer.limit, ". Rules on this page get less room than a node has.")
        )
    return _findings(answer.errors, "bad")


def _findings(found: Sequence[InvalidLacegram], kind: str) -> Markup | None:
    """Errors or likely mistakes, each with the line it is in."""
    if not found:
        return None
    items = [
        tag(
            "li",
            tag("span", f"{one.line}:{one.column} ", class_="faint"),
            one.message,
            one.found and f" (found {one.found})",
            tag("pre", one.picture),
            one.advice and tag("p", one.advice, class_="note"),
        )
        for one in found
    ]
    return tag("div", tag("ul", items, class_="errors"), class_=f"notice {kind}", role="status")


def _rows(
    opened: OpenedLace,
    answer: Asked,
    head: Predicate | None,
    shown: Sequence[tuple[str, ...]],
    start: int,
    limits: InspectorLimits,
) -> Markup | None:
    if answer.errors or answer.limit:
        return None
    if head is None:
        return empty("Write a rule, and its facts appear here.")
    total = answer.count(head)
    heads = [
        tag(
            "li",
            tag(
                "button",
                f"{predicate.name} ",
                tag("span", f"{answer.count(predicate):,}", class_="badge"),
                name="show",
                value=predicate,
                class_="tab",
                aria_pressed="true" if predicate == head else "false",
            ),
        )
        for predicate in answer.heads
    ]
    keep = tag("input", type="hidden", name="show", value=head)
    bar = tag("ul", heads, class_="tabs")
    if not total:
        body = empty(f"No {head.name} fact holds.", "The goal field asks why not: " + _example_goal(head))
    elif not head.arity:
        body = notice("good", f"{head.name} holds.")
    else:
        body = join(
            _row_table(opened, head, answer.names(head), shown), row_pager(start, len(shown), total, limits.page_rows)
        )
    return section("Rows", keep, bar, body, note=count(total, "row"))


def _example_goal(head: Predicate) -> str:
    return f"{head.name}({','.join(f'X{place + 1}' for place in range(head.arity))})"


def _row_table(opened: OpenedLace, head: Predicate, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Markup:
    hashes = [value for row in rows for value in row if _is_hash(value)]
    known = {row["hash"]: row["coordinate"] for row in summaries(opened, hashes)}
    cells = []
    for row in rows:
        goal = f"{head.name}({','.join(map(quote, row))})"
        why = tag("button", "why", name="goal", value=goal, class_="small", aria_label=f"Why {goal}")
        cells.append((*(_value(opened, value, known) for value in row), why))
    columns = (*names, "Why")
    return table(head.name, columns, cells)


def _value(opened: OpenedLace, value: str, known: Mapping[str, str]) -> object:
    if value.startswith("V.") and len(value) == RECORD_HASH_LENGTH:
        return signer(value, opened.names())
    if not _is_hash(value):
        return tag("span", value, class_="value")
    coordinate = known.get(value)
    address = record_url(opened, value)
    return link(coordinate, address, title=value) if coordinate else hash_link(value, address)


def _is_hash(value: str) -> bool:
    return len(value) == RECORD_HASH_LENGTH and value[0] in RECORD_TYPES and value[1] == "." and value.endswith(".H3")


def row_pager(start: int, shown: int, total: int, step: int) -> Markup | None:
    """Buttons of the form that show other rows."""
    if total <= step:
        return None
    buttons = []
    if start:
        buttons.append(tag("button", "Earlier rows", name="start", value=max(0, start - step)))
    if start + shown < total:
        buttons.append(tag("button", "Next rows", name="start", value=start + step))
    where = tag("span", f"{start + 1:,} to {start + shown:,} of {total:,}", class_="note")
    return tag("div", where, buttons, class_="pager")


def _explain(opened: OpenedLace, answer: Asked, goal: str) -> tuple[Markup, object]:
    try:
        found = answer.explain(goal)
    except LaceError as error:
        return notice("bad", tag("pre", str(error))), {"error": str(error)}
    return show_explanation(found, spelled(opened, json.dumps(found.to_json()))), found.to_json()


def spelled(opened: OpenedLace, told: str) -> Callable[[str], Markup]:
    """How facts are shown: keys and the first few records that are told of by name."""
    hashes = list(dict.fromkeys(_RECORD.findall(told)))[:_NAMED]
    known = {row["hash"]: row["name"].rpartition("/")[2] for row in summaries(opened, hashes) if row["name"]}
    return speller(opened.names(), opened.base, known)


def _explanation(goal: str, explained: tuple[Markup, object] | None) -> Markup | None:
    return section("Explanation", explained[0], note=tag("code", goal)) if explained else None


def _plan(stats: Stats) -> Markup:
    """The query plan of each rule with its rows and times."""
    rows = []
    for plan in stats.plans:
        head, *texts = str(plan).split("\n")
        rows.append((tag("code", head), "", ""))
        for text, node in zip(texts, reversed(chain(plan.root)), strict=True):
            figures = stats.of(node)
            rows.append((tag("code", text, class_="plan-node"), f"{figures.rows:,}", f"{figures.seconds * 1000:.2f}"))
    rounds = "; ".join(f"{stratum}: {count(number, 'round')}" for stratum, number in stats.rounds.items())
    figures_note = (
        f"Loaded in {stats.load_seconds * 1000:.1f} ms, evaluated in {stats.seconds * 1000:.1f} ms, "
        f"{size(stats.memory_bytes)} held. {rounds}"
    )
    listing = table("Query plan", ("Step", "Rows", "ms"), rows, right=frozenset({"Rows", "ms"}))
    return tag("details", tag("summary", "Query plan"), tag("p", figures_note, class_="note"), listing, class_="plan")
