"""Followers in several processes, as they are in the world: each has its own interpreter, and none waits for another's.

python -m hubs.crowds FOLDER COUNT PORT [SOURCE]     (started by `Crowd`; spoken to in lines of JSON)
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hubs.followers import Follower
from hubs.stores import NEWS, RULE_SETS, make_hub, record_of, rules

PROCESSES = 4
_WAIT_S = 120.0
_FIRST_NEWS = 10_000_000  # the numbers of new records


class Crowd:
    """Many followers, a share of them in each process."""

    def __init__(self, folder: Path, records: int, port: int, count: int, source: str = "") -> None:
        """From one source, or each from an address of its own."""
        self._arguments = str(folder), str(records), str(port), source
        self._count = count
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        for _ in range(PROCESSES):
            command = (sys.executable, "-m", "hubs.crowds", *self._arguments)
            here = Path(__file__).parents[1]
            pipe = asyncio.subprocess.PIPE
            self._processes.append(
                await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=here, limit=1 << 20)
            )
        await self._ask_all("cpu_s")  # all are there
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    async def _ask(self, place: int, verb: str, *given: object) -> Any:
        process = self._processes[place]
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process without pipes")
        process.stdin.write(json.dumps([verb, *given]).encode() + b"\n")
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError("a process of followers has ended")
        said = json.loads(line)
        if isinstance(said, dict) and "failed" in said:
            raise RuntimeError(said["failed"])
        return said

    async def _ask_all(self, verb: str, *given: object) -> list[Any]:
        return list(await asyncio.gather(*(self._ask(place, verb, *given) for place in range(PROCESSES))))

    async def open(self) -> None:
        """They arrive ten at a time."""
        for start in range(0, self._count, RULE_SETS):
            numbers = range(start, min(start + RULE_SETS, self._count))
            shares = [[n for n in numbers if n % PROCESSES == place] for place in range(PROCESSES)]
            await asyncio.gather(*(self._ask(place, "open", share) for place, share in enumerate(shares)))

    async def cpu_s(self) -> float:
        """Processor time of all of them."""
        return float(sum(await self._ask_all("cpu_s")))

    async def linked(self) -> int:
        """How many still have the link that they began with."""
        return int(sum(await self._ask_all("linked")))

    async def news(self, number: int) -> list[float]:
        """How long after one follower stored a record each of the others had."""
        teller = number % self._count
        told = await self._ask(teller % PROCESSES, "put", teller, number)
        found = [at for times in await self._ask_all("wait", number) for at in times]
        await asyncio.sleep(0.5)
        return [at - told for at in found if at != told]

    async def burst(self, first: int, count: int) -> float:
        """One follower stores so many records, one after the other; seconds until each of the others has all."""
        told = await self._ask(0, "put_all", 0, first, count)
        found = [at for times in await self._ask_all("wait", first, count) for at in times]
        return float(max(found) - told)


class _Share:
    """The followers of one process."""

    def __init__(self, folder: Path, records: int, port: int, source: str) -> None:
        self._source = source or None
        self._hub = make_hub(folder, records)
        self._port = port
        self._followers: dict[int, Follower] = {}

    async def open(self, numbers: Sequence[int]) -> int:
        selected = self._hub.selected
        new = {n: Follower(n, rules(n % RULE_SETS), selected[n % RULE_SETS], source=self._source) for n in numbers}
        await asyncio.gather(*(follower.open(self._port) for follower in new.values()))
        self._followers |= new
        return len(new)

    async def put(self, follower: int, number: int) -> float:
        return self._followers[follower].put(record_of(_FIRST_NEWS + number, NEWS))

    async def put_all(self, follower: int, first: int, count: int) -> float:
        """When the first of them was stored."""
        records = [record_of(_FIRST_NEWS + number, NEWS) for number in range(first, first + count)]
        began = time.perf_counter()
        for record in records:
            self._followers[follower].put(record)
            await asyncio.sleep(0)
        return began

    async def wait(self, number: int, count: int = 1) -> list[float]:
        """When the record of each follower came that came last."""
        records = {str(record_of(_FIRST_NEWS + one, NEWS).hash) for one in range(number, number + count)}
        until = time.monotonic() + _WAIT_S
        while not all(follower.arrived.keys() >= records for follower in self._followers.values()):
            if time.monotonic() > until:
                lost = [one for one, follower in self._followers.items() if not follower.arrived.keys() >= records]
                gone = [number for number in lost if not self._followers[number].is_linked]
                raise RuntimeError(f"after {_WAIT_S:.0f} s the record is not at {lost}; links that ended: {gone}")
            await asyncio.sleep(0.01)
        return [max(follower.arrived[record] for record in records) for follower in self._followers.values()]

    async def cpu_s(self) -> float:
        return time.process_time()

    async def linked(self) -> int:
        return sum(follower.is_linked for follower in self._followers.values())

    async def close(self) -> None:
        for follower in self._followers.values():
            await follower.close()


async def _answer(share: _Share, line: str) -> object:
    verb, *given = json.loads(line)
    try:
        return await getattr(share, verb)(*given)
    except RuntimeError as error:
        return {"failed": str(error)}


async def _serve(folder: Path, records: int, port: int, source: str) -> None:
    share, loop = _Share(folder, records, port, source), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await _answer(share, line)), flush=True)
    await share.close()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
