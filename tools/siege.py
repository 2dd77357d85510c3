"""Hostile peers against a real `lace serve`: is a good peer served, and what does it cost?

python tools/siege.py [--only TEXT] [--scheme tcp|ws] [--seconds 2] [--seed N] [--links N] [--list] [--publish]

Every play (see tests/siege) runs over tcp and WebSocket; a server goes through several of them and is relieved when a
bound broke. Meanwhile a good peer comes again and again. Measured: its time from connecting to the fixed point,
attacked (the 99th percentile) and before and after that (the slowest); the longest that the server's event loop was
held; memory of the server and all its processes; processor time that goes on after the attackers are gone; the time
from SIGTERM to the end. Exit code 1 if a bound is broken. `--publish` writes bench/results/siege.json.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siege.fortress import Fortress

ROOT = Path(__file__).resolve().parent.parent
# In place of tools/, where this file itself is called siege.
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "bench")]

MIB = 1 << 20
SLOWER, STALL_S, GROWTH_MB, AFTER_S, END_S = 5.0, 0.05, 256, 0.2, 5.0
PLAYS_A_SERVER = 10
LEAST_TIME_S = 0.1  # below this a ratio says more of the machine than of the server


@dataclass(frozen=True)
class Found:
    """What one play did to a server."""

    name: str
    scheme: str
    served: int
    tried: int
    calm_s: float
    worst_s: float
    busy_s: float
    stall_s: float
    grown_mb: float
    after_s: float  # processor seconds a second, from one second after the attackers were gone
    end_s: float
    code: int
    limited: int

    def broken(self) -> list[str]:
        """The bounds that do not hold."""
        found = []
        if self.served < self.tried:
            found.append(f"served {self.served} of {self.tried}")
        if self.worst_s > SLOWER * max(self.calm_s, LEAST_TIME_S):
            found.append(f"good peer {self.worst_s / self.calm_s:.0f} times slower")
        if self.busy_s > STALL_S:
            found.append(f"loop held {self.busy_s * 1000:.0f} ms")
        if self.grown_mb > GROWTH_MB:
            found.append(f"memory +{self.grown_mb:.0f} MB")
        if self.after_s > AFTER_S:
            found.append(f"{self.after_s:.1f} CPU s a second after the cut")
        if self.end_s > END_S or self.code != 0:
            found.append(f"SIGTERM took {self.end_s:.1f} s, code {self.code}")
        return found


class Watch(threading.Thread):
    """Looks at the memory of a server all the time."""

    def __init__(self, fortress: Fortress) -> None:
        super().__init__(daemon=True)
        self._fortress = fortress
        self.most = 0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            self.most = max(self.most, self._fortress.memory())
            time.sleep(0.05)


class Garrison:
    """A server that goes through several plays, as servers do; relieved when a bound broke or after some of them.

    The longest that its loop was held is of its whole life: for one play that is an upper bound.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._found: list[Found] = []
        self.fortress: Fortress | None = None

    def ready(self) -> Fortress:
        from siege.fortress import Fortress

        if self.fortress is None:
            self._folder = tempfile.TemporaryDirectory(prefix="lace-siege-")
            self.fortress = Fortress(Path(self._folder.name))
            self.fortress.start()
        return self.fortress

    def note(self, found: Found) -> list[Found]:
        """Keep what was found until the server has ended; all of it, if it has."""
        self._found.append(found)
        return self.relieve() if found.broken() or len(self._found) >= PLAYS_A_SERVER else []

    def relieve(self) -> list[Found]:
        """SIGTERM; what was found, with how the server ended."""
        if self.fortress is None or self._folder is None:
            return []
        code, end_s = self.fortress.stop()
        self._folder.cleanup()
        found, self._found, self.fortress = self._found, [], None
        return [replace(one, code=code, end_s=end_s) for one in found]


def besieged(name: str, scheme: str, fortress: Fortress, chosen: argparse.Namespace) -> Found:
    """One play against a server; the unattacked exchange is measured before and after, for machines change."""
    from lace.errors import LaceError
    from siege.fortress import army
    from siege.scenes import repertoire

    calm = [fortress.good_exchange(scheme)[1] for _ in range(4)]
    start_bytes, limited = fortress.memory(), fortress.metrics().get("lace_limited_total", 0)
    watch = Watch(fortress)
    watch.start()
    served, times = 0, []
    with army(name, scheme, fortress.ports[scheme], chosen.links or repertoire()[name].links, chosen.seed):
        until = time.monotonic() + chosen.seconds
        while time.monotonic() < until or len(times) < 3:
            started = time.monotonic()
            with suppress(LaceError):
                outcome, _ = fortress.good_exchange(scheme)
                served += outcome.is_complete
            times.append(time.monotonic() - started)
            if "records go" in name:
                remove_one(fortress.folder / "fortress.lace")
    time.sleep(1.0)
    before, looked = fortress.cpu_s(), time.monotonic()
    time.sleep(1.0)
    after = (fortress.cpu_s() - before) / (time.monotonic() - looked)
    watch.is_over = True
    watch.join()
    calm += [fortress.good_exchange(scheme)[1] for _ in range(3)]
    metrics = fortress.metrics()
    return Found(
        name=name,
        scheme=scheme,
        served=served,
        tried=len(times),
        calm_s=max(calm),
        worst_s=sorted(times)[-1 - len(times) // 100],
        busy_s=metrics.get("lace_loop_busy_seconds", 0.0),
        stall_s=metrics.get("lace_loop_stall_seconds", 0.0),
        grown_mb=(watch.most - start_bytes) / MIB,
        after_s=after,
        end_s=0.0,
        code=0,
        limited=int(metrics.get("lace_limited_total", 0) - limited),
    )


def remove_one(path: Path) -> None:
    """What the owner does meanwhile."""
    import lace

    with lace.open(path) as opened:
        record = next((record for _, record in opened.store.records_since()), None)
        if record is not None:
            opened.delete(record)


def show(found: Found) -> None:
    broken = "; ".join(found.broken()) or "holds"
    print(
        f"{found.scheme:3} {found.name:64} {found.served:3}/{found.tried:<3} calm {found.calm_s * 1000:4.0f} ms "
        f"worst {found.worst_s * 1000:5.0f} ms  loop {found.busy_s * 1000:4.0f}/{found.stall_s * 1000:4.0f} ms "
        f"+{found.grown_mb:4.0f} MB  after {found.after_s:4.2f}  limited {found.limited:4}  "
        f"{broken}",
        flush=True,
    )


def publish(results: list[Found]) -> None:
    from report import Report

    columns = ["play", "over", "good peer", "slower", "loop held", "memory", "CPU after", "SIGTERM", "verdict"]
    report = Report.start("siege", "A good peer among 32 hostile links", columns=columns)
    for found in results:
        report.row(
            found.name,
            found.scheme,
            f"{found.served} of {found.tried}",
            f"{found.worst_s / max(found.calm_s, 1e-9):.1f}x",
            f"{found.busy_s * 1000:.0f} ms",
            f"+{found.grown_mb:.0f} MB",
            f"{found.after_s:.2f}",
            f"{found.end_s:.1f} s",
            "; ".join(found.broken()) or "holds",
        )
    report.at_least("plays", wanted=40, got=len({found.name for found in results}))
    report.at_least("share of plays that break no bound", wanted=1.0, got=share(results))
    report.note("loop held: processor time of the loop's own thread between two beats 10 ms apart, the longest")
    report.note("slower: p99 of the good peer's exchanges against the slowest of seven before and after it")
    report.finish()


def share(results: list[Found]) -> float:
    return round(sum(not found.broken() for found in results) / max(1, len(results)), 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="plays whose name contains this")
    parser.add_argument("--scheme", choices=["tcp", "ws"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--links", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.attack:
        from siege.soldiers import attack

        attack(chosen.attack, chosen.scheme, chosen.port, chosen.links, chosen.seed)
        return 0
    from siege.scenes import repertoire

    wanted = [scene for scene in repertoire().values() if chosen.only in scene.name]
    if chosen.list:
        print("\n".join(scene.name for scene in wanted))
        return 0
    print(f"{len(wanted)} plays, seed {chosen.seed}")
    results = []
    for scheme in ("tcp", "ws"):
        garrison = Garrison()
        for scene in wanted:
            if chosen.scheme in (None, scheme) and scene.only in ("", scheme):
                found = besieged(scene.name, scheme, garrison.ready(), chosen)
                show(found)
                results += garrison.note(found)
        results += garrison.relieve()
    broken = sum(bool(found.broken()) for found in results)
    print(f"{len(results)} sieges, {broken} broke a bound")
    if chosen.publish:
        publish(results)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
