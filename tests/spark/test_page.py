"""The report page: one file, no script, foreign text that can only show itself, laid out for any width."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest

from lace.notation.b64a import ALPHABET
from lace.spark.jobs.page import page
from lace.spark.jobs.report import ArchiveReport, ChangeRow, InputRow, PeerRow, QuarantineRow, StepRow, TableRow

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; background: url(//evil)",
    "$sections ${title} {sections} %s",
    "\u202eright to left\u202c",
    "line\nbreak\x00null",
    "</title></style><b>",
    "x" * 10_000,
]


def report(text: str = "plain") -> ArchiveReport:
    return ArchiveReport(
        records=1234, data_bytes=10**10, quarantined=2, by_type=[("B", 3), (text, 1)], by_coordinate=[(text, 9)],
        rejected_by_rule=[(text, 2)], growth_by_month=[("2025-01", 4)], selected_by_peer=[(text, 8)],
        selected_by_coordinate=[(text, 7)], by_signer=[(text, 5)],
        by_partition=[("00", 1), ("~~", 80), ("<>", 3)], missing_by_archive={text: [("0A", 200)]},
        quarantine_rows=[
            QuarantineRow(rule=text, reason=text, file=text, offset=5, hash=text, length=9, begins=text),
        ],
        inputs=[InputRow(when=text, files=1, bytes=2, counts={text: 3})],
        peers=[
            PeerRow(name=text, may_have=100, given=80, lacks=20, partitions=64),
            PeerRow(name="up to date", may_have=50, given=50, lacks=0, partitions=9),
        ],
        steps=[StepRow(step=text, seconds=[1.0, 2.0], result={text: 4})],
        tables=[TableRow(name=text, rows=1, files=1, bytes=1, link="data/records/")],
        since=text, changes=[ChangeRow(name=text, before=1, now=3)], steps_behind=[text],
        facts={"archive": text, text: text},
    )  # fmt: skip


class Outline(HTMLParser):
    """The tags of a page and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_foreign_text_shows_itself_and_nothing_else(text: str) -> None:
    plain, hostile = Outline(page(report())), Outline(page(report(text)))
    assert hostile.tags == plain.tags
    assert {name for name, _ in hostile.attributes} == {name for name, _ in plain.attributes}
    assert not any(name.startswith("on") for name, _ in hostile.attributes)
    styles = [value for name, value in hostile.attributes if name == "style"]
    assert all(re.fullmatch(r"(width|height):[0-9.]+%", str(value)) for value in styles)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", page(report(text)))
    assert len(page(report(text))) < 40_000


def test_the_page_needs_nothing_from_elsewhere() -> None:
    outline = Outline(page(report()))
    assert "script" not in outline.tags
    assert [value for name, value in outline.attributes if name in ("src", "href")] == ["data/records/"]
    assert "default-src 'none'" in page(report())


def test_an_empty_archive_has_a_page() -> None:
    bare = ArchiveReport(**{f.name: 0 if f.type == "int" else [] for f in fields(ArchiveReport) if f.name in {
        "records", "data_bytes", "quarantined", "by_type", "by_coordinate", "rejected_by_rule", "growth_by_month",
        "selected_by_peer", "selected_by_coordinate"}})  # fmt: skip
    html = page(bare)
    assert "Archive report" in html
    assert "Quarantine" not in html


def test_each_peer_shows_what_it_may_have_and_lacks() -> None:
    html = page(report())
    head, first, second = re.findall(r"<tr>.*?</tr>", html[html.index("What each peer may have and lacks") :])[:3]
    assert re.findall(r">([^<>]+)</th>", head) == [
        "peer",
        "given of all",
        "may have",
        "was given",
        "lacks",
        "partitions",
    ]
    assert re.findall(r"<td class=n>(.*?)</td>", first) == ["100", "80", "<strong>20</strong>", "64"]
    assert re.findall(r"<td class=n>(.*?)</td>", second) == ["50", "50", "0", "9"]
    assert re.findall(r"width:([0-9.]+)%", first + second) == ["100.0", "80.0", "50.0", "50.0"]
    assert "plain lacks 200" in html  # and where: a map of its own


def test_every_partition_has_its_cell() -> None:
    cells = [(first + second, 1 + 9 * at) for at, first in enumerate(ALPHABET) for second in ALPHABET]
    html = page(ArchiveReport(
        records=1, data_bytes=1, quarantined=0, by_type=[], by_coordinate=[], rejected_by_rule=[], growth_by_month=[],
        selected_by_peer=[], selected_by_coordinate=[], by_partition=cells,
    ))  # fmt: skip
    assert html.count("<rect") == 4096
    assert {f"class=h{step}" for step in (1, 2, 3, 4)} <= set(re.findall(r"class=h\d", html))


@pytest.mark.parametrize(
    ("counts", "shades"), [([70, 70, 70], "444"), ([70, 140], "24"), ([1, 25, 26, 75, 100], "11234")]
)
def test_the_fullest_partition_is_darkest_and_others_by_quarters_of_it(counts: list[int], shades: str) -> None:
    cells = [(f"0{ALPHABET[at]}", count) for at, count in enumerate(counts)]
    html = page(replace(report(), by_partition=cells, missing_by_archive={}))
    assert "".join(re.findall(r"class=h(\d)", html)) == shades


def evenly(count: int, seed: int) -> list[tuple[str, int]]:
    """Records by partition, as hashes fall."""
    random = Random(seed)
    return sorted(Counter("".join(random.choices(ALPHABET, k=2)) for _ in range(count)).items())


@pytest.mark.parametrize("count", [1, 63, 64, 500, 20_000])
def test_a_map_that_would_say_nothing_is_left_out(count: int) -> None:
    """Hashes are spread evenly, so how many begin with which characters is noise, however many there are."""
    for seed in range(5):
        even = evenly(count, seed)
        assert "<rect" not in page(replace(report(), by_partition=even, missing_by_archive={"west": even}))
    skewed = [*evenly(count, 9), ("zz", 300)]
    assert "<rect" in page(replace(report(), by_partition=skewed, missing_by_archive={}))


def growth(*months: str) -> list[tuple[str, str]]:
    html = page(replace(report(), growth_by_month=[(month, 2) for month in months]))
    card = html.partition("<h2>Growth")[2].partition("</section>")[0]
    return re.findall(r"title=\"([^\"]+)\".*?<td class=n>([0-9]+)</td>", card)


def test_growth_has_no_gaps() -> None:
    assert growth("2025-11", "2026-02") == [("2025-11", "2"), ("2025-12", "0"), ("2026-01", "0"), ("2026-02", "2")]
    assert growth("2017-01", "2021-05", "2021-06")[1:] == [("2018", "0"), ("2019", "0"), ("2020", "0"), ("2021", "4")]
    assert growth("1971-01", "9999-12") == [("1971", "2"), ("9999", "2")]  # clocks that are centuries apart
    assert growth("2026-02") == [("2026-02", "2")]
    assert growth() == []


def peer_row(name: str, behind: int) -> PeerRow:
    return PeerRow(name=name, may_have=9, given=9 - behind, lacks=0, partitions=1, behind=behind)


@pytest.mark.parametrize(
    ("peers", "more", "said"),
    [
        ([], {}, "1,234 records, 2 refused"),
        ([], {"records": 1, "quarantined": 0}, "1 record, none refused"),
        ([peer_row("ann", 0)], {}, "1,234 records, 2 refused, every peer has what it may have"),
        ([peer_row("ann", 1), peer_row("bob", 7)], {}, "1,234 records, 2 refused, bob is 7 behind, ann is 1 behind"),
        (
            [peer_row(name, 2) for name in "vwxyz"],
            {"steps_behind": ["facts"]},
            "1,234 records, 2 refused, v is 2 behind, w is 2 behind, x is 2 behind, 2 more peers behind, "
            "1 step to run again for what came since",
        ),
    ],
)
def test_the_verdict_stands_first_and_in_the_json(peers: list[PeerRow], more: dict[str, object], said: str) -> None:
    made = replace(report(), **({"peers": peers, "steps_behind": []} | more))  # type: ignore[arg-type]
    assert made.as_json()["verdict"] == said
    html = page(made)
    assert html.index(f">{said}</p>") < html.index("<h2")
    assert 'class="verdict warn"' in html or not any(row.behind for row in peers)


def test_what_changed_is_told_with_before_and_now() -> None:
    html = page(report())
    card = html[html.index("What changed") :].partition("</section>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", card) == ["plain", "1", "3", "+2"]
    assert "nothing that the log counts" in page(replace(report(), changes=[]))
    assert "What changed" not in page(replace(report(), since="", changes=[]))


def test_small_files_are_told_with_what_to_do() -> None:
    tables = [TableRow(name="records", rows=9, files=5, bytes=5_000, link="data/records/", small_files=4)]
    html = page(replace(report(), tables=tables))
    assert "4 of 5 files are small: `lace archive compact`" in html
    assert ">1,000 B</td>" in html  # a file, on average
    assert "none that compacting would write together" in page(report())


def test_a_refused_record_has_file_offset_and_reason_in_columns() -> None:
    html = page(report())
    card = html[html.index("<h2>Quarantine") :].partition("</section>")[0]
    assert re.findall(r"<th scope=col[^>]*>([^<]*)</th>", card) == ["file", "byte", "rule", "reason"]
    assert re.findall(r"<td[^>]*>(?:<details><summary>)?([^<]+)", card)[-4:] == ["plain", "5", "plain", "plain"]


def test_what_takes_less_than_a_second_is_not_said_to_take_none() -> None:
    html = page(replace(report(), steps=[StepRow(step="add", seconds=[61.25, 0.036], result={})]))
    assert ">36 ms</td>" in html
    assert re.findall('title="([0-9.]+ m?s)"', html) == ["61.2 s", "36 ms"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [380, 1400, 3000])
def test_a_browser_lays_it_out_without_scrolling_sideways(tmp_path: Path, width: int) -> None:
    """The page itself must not scroll; what a browser makes of it is asked by a frame around it."""
    (tmp_path / "page.html").write_text(page(report("x" * 300)), encoding="utf-8")
    (tmp_path / "frame.html").write_text(
        f"<iframe src=page.html style='width:{width}px;height:900px;border:0'></iframe><script>onload=()=>{{"
        "const d=frames[0].document.documentElement;document.title='laid out';"
        "document.body.dataset.over=d.scrollWidth-d.clientWidth;"
        "document.body.dataset.cards=frames[0].document.querySelectorAll('.card').length;"
        "const seen=[...frames[0].document.querySelectorAll('.share b,.heat rect,.spark i,.bars i')];"
        "const area=e=>{const b=e.getBoundingClientRect();return b.width*b.height};"
        "document.body.dataset.unseen=seen.filter(e=>!area(e)).length;"
        "document.body.dataset.seen=seen.length}</script>"
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command = ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files"]
    command += ["--virtual-time-budget=3000", "--dump-dom", (tmp_path / "frame.html").as_uri()]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    assert 'data-over="0"' in told, told[-400:]
    assert re.search(r'data-cards="1[0-9]"', told)
    assert 'data-unseen="0"' in told  # every bar and every cell of a map has an area on the screen
    assert re.search(r'data-seen="[1-9][0-9]"', told)
