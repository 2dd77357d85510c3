"""Reasons and remedies in the words of Python: an argument where the command line would name an option.

Rule: a remedy has one wording, in the core, for people at a terminal; what Python callers get is that wording with the
options replaced. A test finds remedies for which this table lacks a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from lace.policy.notice import Notice

_PYTHON = [
    (re.compile(pattern), said)
    for pattern, said in (
        (r"`--expose (all|selected|none)`", r'`expose="\1"`'),
        (r"`--expose FILE`(?: with rules)?", "`expose=RULES`"),
        (r"`--select-hash (\S+)`", r'`select=[…, "\1"]`'),
        (r"name the lace that has it with --with PATH, or ask a peer with `lace interlace --dry-run`",
         "give the lace that has it as `peer`, or ask a peer with `lace.preview`"),
        (r"have them run `lace why THEIR.lace (\S+)` with our rules as --peer",
         r'have them call `lace.why(theirs, "\1", their_select=OUR_RULES)`'),
        (r"`lace repair` salvages", "`lace.repair(path)` salvages"),
        (r"`lace get (\S+)` shows", r'`notes.get("\1")` shows'),
        (r"prove a key it knows \(--key over ws or wss\)", "prove a key it knows (`key`, over ws or wss)"),
        (r"`lace why` there", "`lace.why` there"),
        (r"`lace check` ", "`lace.check` "),
        (r"`--facts`|--facts|--given", "`given`"),
    )
]  # fmt: skip


def in_python(said: str) -> str:
    """A remedy in the words of Python, where the command line would name an option."""
    for pattern, python in _PYTHON:
        said = pattern.sub(python, said)
    return said


def pythonic(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Notices that name arguments and not options."""
    return tuple(replace(notice, text=in_python(notice.text), remedy=in_python(notice.remedy)) for notice in notices)
