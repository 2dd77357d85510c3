"""How many samples tell a stranger that something is hidden, by the time a real server takes to answer over loopback?

python tools/timing.py [--samples 300] [--hidden 0,1,100,10000] [--shown 300]

Two servers show the same records; one holds others as well that are hidden from strangers. A stranger asks both in
turn, each time with a selector that no server has seen, and takes the time from its last byte to the first line of the
listing. What is printed: both medians, the difference in units of the scatter (Cohen's d, of the fastest three
quarters, as an attacker would take), and how many samples of each tell them apart with 95 % confidence nine times out
of ten. The first row hides nothing: what it shows is the difference between two processes, and a row that shows no more
tells nothing. A machine that does other things scatters more, and hides more, than one that does not.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

EXPOSE = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'u').\n"
Z = 1.645 + 1.282  # 95 % confidence, nine times out of ten
FAST = 0.75  # of the samples that are used


def fill(folder: Path, shown: int, hidden: int) -> None:
    """A lace of which strangers see the group u."""
    import lace
    from interlace.pair import plex
    from lace.records.validate import validate

    with lace.open(folder / "fortress.lace", create=True) as opened:
        opened.store.put(validate(plex(f"r{number}", group="u")) for number in range(shown))
        opened.store.put(validate(plex(f"r{number}", group="hidden")) for number in range(hidden))
    (folder / "expose.lace").write_text(EXPOSE, encoding="utf-8")


async def ask(port: int, question: bytes) -> float:
    """Seconds from the last byte of the question to the first line of the listing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(question)
        await writer.drain()
        started = time.perf_counter()
        seen = b""
        while b"\nAdvertised('" not in seen:
            piece = await reader.read(1 << 16)
            if not piece:
                raise RuntimeError(f"the server said {seen[-200:]!r}")
            seen = seen[-20:] + piece
        return time.perf_counter() - started
    finally:
        writer.transport.abort()


async def compare(ports: tuple[int, int], samples: int) -> tuple[list[float], list[float]]:
    """Times of both servers, asked in turn."""
    from siege import speech

    times: tuple[list[float], list[float]] = ([], [])
    for number in range(samples + 5):
        question = speech.opening(speech.rules(f"Bad(P) :- Have(P), Field(P,'Group',_,'n{number}').\n")) + b"\n\n"
        for which in (0, 1) if number % 2 else (1, 0):
            taken = await ask(ports[which], question)
            if number >= 5:  # what a server loads when it is asked first
                times[which].append(taken)
            await asyncio.sleep(0.03)  # no faster than a stranger may ask for long
    return times


def distance(first: list[float], second: list[float]) -> float:
    """Cohen's d of the fast part of two samples."""
    fast = [sorted(times)[: int(len(times) * FAST)] for times in (first, second)]
    spread = math.sqrt((statistics.variance(fast[0]) + statistics.variance(fast[1])) / 2)
    return (statistics.fmean(fast[1]) - statistics.fmean(fast[0])) / spread


def main() -> int:
    from siege.fortress import Fortress

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--hidden", default="0,1,100,10000")
    parser.add_argument("--shown", type=int, default=300)
    chosen = parser.parse_args()
    for hidden in map(int, chosen.hidden.split(",")):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            servers = []
            for folder, count in ((Path(one), 0), (Path(two), hidden)):
                fill(folder, chosen.shown, count)
                servers.append(Fortress(folder, extra=("--expose", str(folder / "expose.lace"))))
                servers[-1].start()
            first, second = asyncio.run(compare((servers[0].ports["tcp"], servers[1].ports["tcp"]), chosen.samples))
            for server in servers:
                server.stop()
        d = distance(first, second)
        needed = f"some {math.ceil(2 * (Z / d) ** 2):,} samples of each tell" if d > 0 else "the wrong way round"
        print(
            f"{hidden:6,} hidden beside {chosen.shown:,} shown: median {statistics.median(first) * 1000:.2f} and "
            f"{statistics.median(second) * 1000:.2f} ms, d = {d:.2f}, {needed} "
            f"({chosen.samples} were taken)",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
