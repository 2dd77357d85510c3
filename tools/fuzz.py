"""Fuzz every parser: no crash, no hang, no growth, the same answer by every way of reading (tests/fuzz/targets.py).

python tools/fuzz.py TARGET|all [--seconds 60] [--keep FOLDER]
python tools/fuzz.py TARGET|all --worst        worst processor time for each input byte, over the corpus and what grew
python tools/fuzz.py TARGET|all --take 40      the smallest inputs that reached new code go into the corpus

With `atheris` installed the inputs are guided by coverage; without it they are random mutations of the corpus. An
input that breaks a promise is written to FOLDER and ends the run with exit code 1; put it into the corpus, where the
tests play it for ever.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In place of tools/, where this file itself is called fuzz.
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

CORPORA = ROOT / "tests" / "corpus"
NAMES = (
    "record", "bundle", "factline", "rules", "transcript", "handshake", "differences", "codec", "session", "compared",
)  # fmt: skip
LEAST_BYTES = 64
PREFACE = b"\xf0\x9f\xaa\xa2: iltp/1\n"
MAX_BYTES = 1 << 16
HANG_SECONDS = 20
MAX_MEMORY_MB = 1500


def mutate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A few random edits: bits, cuts, repeats, pieces of other inputs."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1:
                del out[at : at + rng.randint(1, 40)]
            case 2:
                out[at:at] = out[at : at + rng.randint(1, 200)]
            case 3:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                out[at:at] = other[start : start + rng.randint(1, 200)]
            case 4:
                out[at:at] = rng.choice([b"\n", b"\n\n", b"#", b"\r", PREFACE, b"'", b"\\", b"Data-Length: 9\n\n"])
            case _:
                out[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(out[:MAX_BYTES])


def run_random(check: Callable[[bytes], None], corpus: list[bytes], seconds: float, keep: Path) -> int:
    """Mutations until the time is up."""
    rng = random.Random()
    pool = list(corpus)
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline:
        data = mutate(rng.choice(pool), pool, rng)
        try:
            check(data)
        except Exception as error:  # noqa: BLE001 - any exception at all is the find
            return report(data, error, keep)
        count += 1
        if count % 50 == 0 and len(pool) < 2000:
            pool.append(data)
    print(f"{count:,} inputs, nothing found")
    return 0


def report(data: bytes, error: Exception, keep: Path) -> int:
    """Keep an input that broke a promise."""
    keep.mkdir(parents=True, exist_ok=True)
    path = keep / f"found-{time.time_ns()}"
    path.write_bytes(data)
    print(f"{type(error).__name__}: {error}\nkept as {path}")
    return 1


def run_guided(target: str, corpus: Path, seconds: float, keep: Path) -> int:
    """Coverage-guided, by atheris; it keeps what broke a promise or took too long, and ends the process."""
    import atheris  # the optional guide

    grown = keep / "grown"  # what reached new code, for the next run to begin with; the corpus is only read
    grown.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["lace", "websockets"]):  # the parsers, not what they stand on
        from fuzz.targets import TARGETS
    options = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-artifact_prefix={keep}/found-",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(grown), str(corpus)], TARGETS[target])
    atheris.Fuzz()
    return 0


def corpus_of(target: str) -> Path:
    from fuzz.targets import FOLDERS

    return CORPORA / FOLDERS.get(target, target)


def show_worst(target: str, keep: Path) -> int:
    """Which input costs most for each of its bytes; short ones cost what a call costs."""
    from fuzz.targets import TARGETS

    check = TARGETS[target]
    inputs = [path for folder in (corpus_of(target), keep / target / "grown") for path in sorted(folder.glob("*"))]
    found = []
    for path in inputs:
        data = path.read_bytes()
        check(data)  # once for what is loaded and compiled on the way
        started = time.thread_time()
        check(data)
        found.append(((time.thread_time() - started) * 1e6 / max(LEAST_BYTES, len(data)), len(data), path.name))
    found.sort()
    worst, size, name = found[-1]
    middle = found[len(found) // 2][0]
    inputs_text = f"{len(found):6,} inputs, median {middle:.2f} us a byte"
    print(f"{target:12} {inputs_text}, worst {worst:.1f} ({size:,} bytes, {name})")
    return 0


def take(target: str, keep: Path, most: int) -> int:
    """Keep what reached new code, the smallest first, under the digest of its bytes."""
    grown = sorted((keep / target / "grown").glob("*"), key=lambda path: path.stat().st_size)
    folder = corpus_of(target)
    folder.mkdir(parents=True, exist_ok=True)
    for path in grown[:most]:
        data = path.read_bytes()
        (folder / f"grown-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
    print(f"{target:12} {len(grown[:most])} of {len(grown)} inputs taken")
    return 0


def fuzz(target: str, chosen: argparse.Namespace) -> int:
    """One target for its time; guided by coverage in a process of its own, which the guide ends."""
    keep, corpus = chosen.keep / target, CORPORA / ("iltp" if target in ("codec", "session") else target)
    try:
        import atheris  # noqa: F401 - only whether it is there
    except ImportError:
        inputs = [path.read_bytes() for path in sorted(corpus.iterdir())]
        print(f"{target}: atheris is not installed: random mutations of {len(inputs)} inputs")
        from fuzz.targets import TARGETS

        return run_random(TARGETS[target], inputs, chosen.seconds, keep)
    return run_guided(target, corpus, chosen.seconds, keep)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("target", choices=["all", *NAMES])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--keep", type=Path, default=ROOT / "fuzz-out")
    parser.add_argument("--worst", action="store_true")
    parser.add_argument("--take", type=int, default=0)
    chosen = parser.parse_args()
    code = 0
    for target in NAMES if chosen.target == "all" else [chosen.target]:
        if chosen.worst:
            code |= show_worst(target, chosen.keep)
        elif chosen.take:
            code |= take(target, chosen.keep, chosen.take)
        elif chosen.target == "all":
            own = [sys.executable, __file__, target, "--seconds", str(chosen.seconds), "--keep", str(chosen.keep)]
            code |= subprocess.run(own, check=False).returncode
        else:
            code |= fuzz(target, chosen)
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
