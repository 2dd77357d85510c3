"""Fuzz the stream codec and the session: no crash, no hang, no growth, the same items for every split.

python tools/fuzz.py codec|session [--seconds 60] [--corpus tests/corpus/iltp] [--keep FOLDER]

With `atheris` installed the inputs are guided by coverage; without it they are random mutations of the corpus. An
input that breaks a promise is written to FOLDER and ends the run with exit code 1; put it into the corpus, where the
tests play it for ever.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from iltp.promises import check_codec, check_session  # noqa: E402  (after the path is set)

TARGETS: dict[str, Callable[[bytes], None]] = {"codec": check_codec, "session": check_session}
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


def run_guided(check: Callable[[bytes], None], corpus: Path, seconds: float, keep: Path) -> int:
    """Coverage-guided, by atheris; it keeps what broke a promise or took too long, and ends the process."""
    import atheris  # the optional guide

    grown = keep / "grown"  # what reached new code, for the next run to begin with; the corpus is only read
    grown.mkdir(parents=True, exist_ok=True)
    atheris.instrument_all()
    options = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-artifact_prefix={keep}/found-",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(grown), str(corpus)], check)
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--corpus", type=Path, default=ROOT / "tests" / "corpus" / "iltp")
    parser.add_argument("--keep", type=Path, default=ROOT / "fuzz-out")
    chosen = parser.parse_args()
    check = TARGETS[chosen.target]
    corpus = [path.read_bytes() for path in sorted(chosen.corpus.iterdir())]
    try:
        import atheris  # noqa: F401 - only whether it is there
    except ImportError:
        print(f"atheris is not installed: random mutations of {len(corpus)} inputs")
        return run_random(check, corpus, chosen.seconds, chosen.keep)
    return run_guided(check, chosen.corpus, chosen.seconds, chosen.keep)


if __name__ == "__main__":
    sys.exit(main())
