"""`python -m lace.cli`: the same command without an installed script."""

from __future__ import annotations

from lace.cli import main

if __name__ == "__main__":
    main()
