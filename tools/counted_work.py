"""Write tests/engine/counted_work.txt: what work each change is counted as (P36).

.venv/bin/python tools/counted_work.py            says which lines would change
.venv/bin/python tools/counted_work.py --write    writes them; read the diff before you commit it
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]


def main() -> int:
    """Compare, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    from engine.test_counted_work import PROGRAMS, TEXT, WRITTEN, lines

    found = [line for name in PROGRAMS for line in lines(name)]
    changed = [line for line in found if line not in WRITTEN]
    for line in changed:
        print(line)
    if given.write:
        TEXT.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    return bool(changed) and not given.write


if __name__ == "__main__":
    sys.exit(main())
