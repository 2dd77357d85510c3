"""Kill processes at random moments of put, import, exchange, serve and upkeep: is anything lost, invalid or half done?

python tools/kills.py [--kills 200] [--play put|import|exchange|serve|upkeep] [--seed N] [--json]

One prepared process forks a worker for each kill, so that a kill costs a fork and a look at the store. What the worker
said before it died (tests/kills/plays.py) tells what the store must hold: everything acknowledged is there, everything
visible is valid and has exactly its facts, and a change is there whole or not at all. Stores live on through several
kills. Upkeep is done by two processes at once, which die together; the copies that they made must be whole, and what
they left must go when upkeep is done again. Exit code 1 if anything is wrong; the folder of that store is kept.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks has one thread

import argparse
import json
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In place of tools/, where this file itself is called kills.
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

KILLS_A_STORE = 10
SHARES = {
    "put": 0.35,
    "import": 0.25,
    "exchange": 0.15,
    "serve": 0.1,
    "upkeep": 0.15,
}  # of the kills: a server costs the most to start
MOST_LINES = {"put": 24, "import": 14, "exchange": 4, "serve": 5, "upkeep": 12}  # that a worker says before it dies
MOST_PAUSE_S = 0.02  # after the last of them: somewhere in the next change
EARLY = 0.15  # of the workers die before they have said anything, by the clock
PATIENCE_S = 30.0


def live_and_die(play: str, folder: Path, seed: int, lines: int, seconds: float) -> tuple[bytes, int]:
    """Fork a worker and kill it a moment after it has said some lines; what it said, and how it ended."""
    from kills.plays import PLAYS, speaker

    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        try:
            os.setpgid(0, 0)  # whatever it starts dies with it
            sys.stderr = open(folder / "stderr", "w", encoding="utf-8")  # noqa: SIM115  (to the end of the process)
            PLAYS[play](folder, random.Random(seed), speaker(writing))
        except BaseException:  # noqa: BLE001 - told, then the process ends
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(70)
    os.close(writing)
    said = bytearray()
    deadline = time.monotonic() + PATIENCE_S
    while said.count(b"\n") < lines and select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(reading, 65536)
        if not piece:
            break
        said += piece
    time.sleep(seconds)
    try:
        os.killpg(worker, signal.SIGKILL)
    except ProcessLookupError:  # it has not come to have a group of its own
        os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    while piece := os.read(reading, 65536):
        said += piece
    os.close(reading)
    return bytes(said), status


def kill_often(play: str, kills: int, draw: random.Random) -> tuple[int, list[str]]:
    """Many kills of one play; how many records were acknowledged meanwhile, and what is wrong."""
    from kills.judge import Ledger, judge_upkeep
    from kills.plays import ANNOUNCING

    acknowledged = 0
    for first in range(0, kills, KILLS_A_STORE):
        folder = Path(tempfile.mkdtemp(prefix=f"lace-kills-{play}-"))
        ledger = Ledger()
        for _ in range(min(KILLS_A_STORE, kills - first)):
            seed = draw.randrange(1 << 30)
            is_early = draw.random() < EARLY
            lines = 0 if is_early else draw.randint(1, MOST_LINES[play])
            said, status = live_and_die(play, folder, seed, lines, draw.uniform(0, MOST_PAUSE_S * (1 + 4 * is_early)))
            problems = []
            if not os.WIFSIGNALED(status):
                problems.append(f"the worker ended by itself: {(folder / 'stderr').read_text(encoding='utf-8')}")
            pending, sign = ledger.hear(said)
            problems += ledger.judge(folder / "a.lace", pending, sign, announces=play in ANNOUNCING)
            if play == "upkeep":
                problems += judge_upkeep(folder)
            if problems:
                return acknowledged + ledger.acknowledged, [*problems, f"seed {seed}, kept in {folder}"]
        acknowledged += ledger.acknowledged
        shutil.rmtree(folder)
    return acknowledged, []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="of all plays together")
    parser.add_argument("--play", choices=SHARES)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", action="store_true", dest="as_json")
    chosen = parser.parse_args()
    shares = {chosen.play: 1.0} if chosen.play else SHARES
    started = os.times()
    rows, wrong = [], []
    for play, share in shares.items():
        kills = round(chosen.kills * share)
        acknowledged, problems = kill_often(play, kills, random.Random(f"{chosen.seed} {play}"))
        wrong += [f"{play}: {problem}" for problem in problems]
        rows.append({"play": play, "kills": kills, "acknowledged": acknowledged, "problems": problems})
        if not chosen.as_json:
            print(
                f"{play:9} {kills:6,} kills, {acknowledged:8,} records acknowledged, {len(problems)} problems",
                flush=True,
            )
    ended = os.times()
    cpu_s = sum(ended[:4]) - sum(started[:4])
    if chosen.as_json:
        print(json.dumps({"seed": chosen.seed, "cpu_s": round(cpu_s, 1), "plays": rows}))
    else:
        print(f"seed {chosen.seed}, {cpu_s:.1f} CPU s")
        for problem in wrong:
            print(problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
