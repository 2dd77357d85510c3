"""`lace top`: what is drawn of the answers of nodes."""

from __future__ import annotations

import re
from typing import Any

from lace.cli.commands.top import NodeAnswers, rates, screen
from lace.cli.options.names import Namer

BOB = "V.HX0R6Vtno54Z4i1Vame1U7V1P_ocQFC3Sf5XAvcMeD0.H3"


def link(number: int, **what: Any) -> dict[str, Any]:
    return {
        "link": number, "address": f"unix:/tmp/{number}", "peer": "", "phase": "at a fixed point", "seconds": 90.0,
        "open": True, "ending": "", "received": 0, "sent": 0, "bytes_in": 0, "bytes_out": 0, "waits_for": 0,
        "rejected": {}, "refused_by_peer": {}, "limits": [],
    } | what  # fmt: skip


def node(seconds: float, *links: dict[str, Any], troubles: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"seconds": seconds, "links": list(links), "troubles": [{"seconds": 1.0, "text": one} for one in troubles]}


def drawn(before: NodeAnswers, now: NodeAnswers, columns: int = 120, lines: int | None = None) -> list[str]:
    told = screen("club.lace", before, now, Namer(None), columns, lines)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in told]


def test_a_rate_is_measured_by_the_clock_of_the_node_and_only_between_two_answers() -> None:
    before = NodeAnswers({7: node(10.0, link(1, bytes_in=1000)), 8: node(50.0, link(1, bytes_in=5))})
    now = NodeAnswers(
        {7: node(12.0, link(1, bytes_in=5000, bytes_out=400), link(2, bytes_in=9)), 9: node(1.0, link(1))}
    )
    assert rates(before, now) == {(7, 1): (2000.0, 200.0)}


def test_the_first_line_sums_up_what_the_rows_show() -> None:
    moving = link(2, peer=BOB, phase="transferring records", bytes_in=30_720, waits_for=12, received=3)
    before = NodeAnswers({7: node(3600.0, link(1), link(2, peer=BOB))})
    now = NodeAnswers({7: node(3602.0, link(1), moving)})
    first, gap, heading, *rows = drawn(before, now)
    assert first == (
        "✓ club.lace: 2 links, 1 at rest, waiting for 12 records, 15.0 KiB/s in, 0 B/s out; the node up for 1 h 0 min"
    )
    assert gap == ""
    assert heading.split()[:4] == ["peer", "phase", "waits", "for"]
    assert re.split(r"\s{2,}", rows[0])[1:5] == ["transferring records", "12", "15.0 KiB/s", "0 B/s"]
    assert rows[1].startswith("(proves no identity)")


def test_refusals_of_both_sides_are_counted_by_reason_and_what_ended_is_told() -> None:
    refusing = link(1, rejected={"P.a": "mark-hash", "P.b": "mark-hash"}, refused_by_peer={"quota": 5})
    ended = link(2, open=False, ending="limit: too many facts")
    now = NodeAnswers({7: node(5.0, refusing, ended, troubles=("cannot listen\x1b[2J",))})
    told = drawn(now, now)
    assert told[0].startswith("· club.lace: 1 link, 1 at rest, 7 records refused")
    assert told[-6:] == [
        "",
        "      5  refused by the peer: quota",
        "      2  refused here: mark-hash",
        "",
        "·  unix:/tmp/2: ended: limit: too many facts",
        "·  cannot listen\\x1b[2J",
    ]


def test_on_a_low_terminal_the_busiest_links_stay_and_the_others_are_counted() -> None:
    before = NodeAnswers({7: node(10.0, *(link(number) for number in range(40)))})
    now = NodeAnswers({7: node(11.0, *(link(number, bytes_in=number * 1024) for number in range(40)))})
    told = drawn(before, now, columns=60, lines=20)
    assert len(told) <= 20
    assert all(len(line) <= 60 for line in told)
    assert "39.0 KiB/s" in told[4] or "39.0 KiB/s" in told[3]
    assert told[-1] == "and 26 more links with less traffic"


def test_a_screen_says_when_the_last_node_ended() -> None:
    assert drawn(NodeAnswers({7: node(1.0, link(1))}), NodeAnswers({}))[0] == "✗ club.lace: no node runs any more"
