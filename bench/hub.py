"""One server and many followers: what each further one costs, how soon a record is at all of them, what stays behind.

    python bench/hub.py [--quick] [--count=1000000] [--followers=100] [--exchanges=1000] [--stores=FOLDER]
                        [--only=further,crowd,office,short]

The server is `lace serve` with its default limits, in a process of its own; the followers are tcp links of this
process, or, where they are many, of four others, with ten rule sets among them: a crowd comes from an address each, an
office from one address, as behind a router or a proxy. The
server's processor time and memory are those of its process and everything it started. The lace is made once; with
--stores it stays and is used again.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from hubs.crowds import PROCESSES, Crowd
from hubs.followers import Follower
from hubs.stores import RULE_SETS, Hub, make_hub, rules
from network import free_port, served
from report import Report

FURTHER = 12  # followers with rules that the server knows
KNOWN = 4  # rule sets of short exchanges: as many as a server keeps for links to come
OFFICE = "127.0.9.9"
MB = 1e6


class Server:
    """What a server's process and its children have used."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    @property
    def cpu_s(self) -> float:
        return sum(sum(member.cpu_times()[:2]) for member in self._family())

    @property
    def memory(self) -> float:
        """In MB; pages that processes share count once."""
        return float(sum(member.memory_full_info().pss for member in self._family())) / MB


async def further(report: Report, hub: Hub, port: int, server: Server) -> None:
    """Followers one after the other, all with the rules of the first, which is not counted."""
    followers = [Follower(number, rules(0), hub.selected[0]) for number in range(FURTHER + 1)]
    costs: list[tuple[float, float]] = []
    for follower in followers:
        cpu_s, memory = server.cpu_s, server.memory
        await follower.open(port)
        await asyncio.sleep(0.2)  # what a link does after its fixed point is its own cost too
        costs.append((server.cpu_s - cpu_s, server.memory - memory))
    first, rest = costs[0], costs[1:]
    report.row("first follower: CPU of the server", first[0], "s", f"{first[1]:.0f} MB")
    cpus, memories = ([cost[side] for cost in rest] for side in (0, 1))
    told = f"mean of {len(rest)}; most {max(cpus):.3f} s, {max(memories):.2f} MB"
    report.row("further follower with known rules: CPU of the server", statistics.mean(cpus), "s", told)
    report.row("the same: memory of the server", statistics.mean(memories), "MB", "")
    report.at_most("further follower: CPU of the server, mean", wanted=0.05, got=statistics.mean(cpus), unit=" s")
    report.at_most("further follower: memory of the server, mean", wanted=1, got=statistics.mean(memories), unit=" MB")
    for follower in followers:
        await follower.close()


async def crowd(report: Report, followers: Crowd, server: Server, count: int, rounds: int) -> None:
    """Many at once; then nothing; then news of one that all the others may have."""
    started, cpu_s = time.perf_counter(), server.cpu_s
    await followers.open()
    seconds = time.perf_counter() - started
    report.row(f"{count} followers, {RULE_SETS} rule sets: all at a fixed point", seconds, "s", "")
    report.row("the same: CPU of the server", server.cpu_s - cpu_s, "s", "")
    await asyncio.sleep(3)
    seconds = 5 if report.quick else 20
    cpu_s = server.cpu_s
    await asyncio.sleep(seconds)
    idle = (server.cpu_s - cpu_s) / seconds
    report.row(f"{count} followers at rest: share of a core", idle, "", "")
    spent = server.cpu_s, await followers.cpu_s()
    late = [one for number in range(rounds) for one in await followers.news(number)]
    spent = server.cpu_s - spent[0], await followers.cpu_s() - spent[1]
    late.sort()
    p99 = late[int(len(late) * 0.99)]
    told = f"{rounds} records, {len(late)} arrivals; median {statistics.median(late):.3f} s, last {late[-1]:.3f} s"
    report.row("a new record of one at each of the others, p99", p99, "s", told)
    report.row("the same: CPU of the server for each", spent[0] / rounds, "s", f"followers {spent[1] / rounds:.3f} s")
    cpu_s, burst = server.cpu_s, 200 if report.quick else 1000
    seconds = await followers.burst(1_000_000, burst)
    deliveries = burst * (count - 1)
    spent_each = (server.cpu_s - cpu_s) / deliveries * 1e6
    report.row(f"{burst} records of one at each of the others: deliveries a second", deliveries / seconds, "", "")
    report.row("the same: CPU of the server for each", spent_each, "µs", "")
    report.row("memory of the server", server.memory, "MB", "")
    report.at_most(f"{count} followers: a new record at each of them, p99", wanted=0.5, got=p99, unit=" s")
    report.at_most(
        f"{count} followers: CPU of the server for a new record", wanted=0.1, got=spent[0] / rounds, unit=" s"
    )
    report.at_least(
        f"{burst} records to {count} followers: deliveries a second", wanted=20_000, got=deliveries / seconds
    )
    report.at_most(
        f"{burst} records to {count} followers: server's CPU for each", wanted=20, got=spent_each, unit=" µs"
    )
    report.at_most(f"{count} followers: memory of the server", wanted=1500, got=server.memory, unit=" MB")
    report.at_most(f"{count} followers at rest: share of a core", wanted=0.05, got=idle)


async def in_a_crowd(report: Report, folder: Path, records: int, port: int, server: Server, count: int) -> None:
    """The followers stand in processes of their own."""
    async with Crowd(folder, records, port, count) as followers:
        await crowd(report, followers, server, count, 10 if report.quick else 50)


async def in_an_office(report: Report, folder: Path, records: int, port: int, server: Server, count: int) -> None:
    """The same behind one address: all are served by the links that they began with, and nobody leaves for another."""
    async with Crowd(folder, records, port, count, source=OFFICE) as followers:
        started, cpu_s, rounds = time.perf_counter(), server.cpu_s, 5 if report.quick else 20
        await followers.open()
        seconds = time.perf_counter() - started
        told = f"CPU of the server {server.cpu_s - cpu_s:.1f} s"
        report.row(f"{count} followers of one address: all at a fixed point", seconds, "s", told)
        late = sorted([one for number in range(rounds) for one in await followers.news(number)])
        p99 = late[int(len(late) * 0.99)]
        report.row("the same: a new record of one at each of the others, p99", p99, "s", f"{len(late)} arrivals")
        kept = await followers.linked()
        report.at_least(f"{count} followers of one address: first links that still stand", wanted=count, got=kept)


async def short(report: Report, hub: Hub, port: int, server: Server, count: int) -> None:
    """Exchanges to the end, one after the other, with nothing new."""
    memory: dict[int, float] = {}
    cpu_s = server.cpu_s
    for number in range(1, count + 1):
        which = number % KNOWN
        follower = Follower(number % 200, rules(which), hub.selected[which], is_open=False)
        outcome = await follower.exchange(port)
        if outcome.abort or not outcome.result.fixed_point:
            raise RuntimeError(f"exchange {number}: {outcome}")
        await follower.close()
        if number in (10, count // 10, count):
            await asyncio.sleep(1)
            memory[number] = server.memory
            report.row(f"memory of the server after {number} short exchanges", memory[number], "MB", "")
    report.row("a short exchange with nothing new: CPU of the server", (server.cpu_s - cpu_s) / count, "s", "")
    grown = memory[count] - memory[10]
    report.at_most(f"{count} short exchanges: memory beyond what 10 left", wanted=5, got=grown, unit=" MB")


def option(name: str, otherwise: str) -> str:
    return next((text.partition("=")[2] for text in sys.argv[1:] if text.startswith(f"--{name}=")), otherwise)


def main() -> None:
    report = Report.start("hub", "One server and many followers", columns=["what", "figure", "unit", "more"])
    quick = report.quick
    count = int(option("count", "20000" if quick else "1000000"))
    followers = int(option("followers", "20" if quick else "100"))
    exchanges = int(option("exchanges", "60" if quick else "1000"))
    only = option("only", "further,crowd,office,short").split(",")
    with tempfile.TemporaryDirectory(prefix="lace-hub-") as made:
        folder = Path(option("stores", "") or made).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        hub = make_hub(folder, count)
        parts = {
            "further": lambda port, server: further(report, hub, port, server),
            "crowd": lambda port, server: in_a_crowd(report, folder, count, port, server, followers),
            "office": lambda port, server: in_an_office(report, folder, count, port, server, followers),
            "short": lambda port, server: short(report, hub, port, server, exchanges),
        }
        for name in only:
            port, used = free_port(), Path(shutil.copy(hub.path, Path(made) / f"{name}.lace"))
            with served(used, f"tcp:127.0.0.1:{port}", Path(made)) as child:
                asyncio.run(parts[name](port, Server(child.pid)))
            used.unlink()
    report.note(
        f"a lace of {count:,} records; the first rule set selects all of them, each other one a tenth and the news"
    )
    report.note(f"the followers of a crowd are in {PROCESSES} processes, as they would be on machines of their own")
    report.note("server and followers share the machine's cores; the server has its default limits")
    report.finish()


if __name__ == "__main__":
    main()
