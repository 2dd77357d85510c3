"""What stands nearest to a coordinate at which nothing stands: a listing that is empty says where to look.

Rule: only groups and apps are looked at, never names or records, so that an empty answer costs as little as a full one.
"""

from __future__ import annotations

from contextlib import closing
from difflib import get_close_matches
from pathlib import Path

from lace.records.coordinate import parse_prefix
from lace.store.browsing import Browser

MAX_SPACES = 10_000  # groups and apps that are looked at
_CLOSE = 0.75
_MOST = 3


def nearest_prefixes(path: Path, prefix: str) -> list[str]:
    """Prefixes that hold something and are spelled most like one that holds nothing; what lies below it first."""
    asked = parse_prefix(prefix)
    if asked.group is None:
        return []
    spaces = _spaces(path)
    if asked.app is None:
        wanted, known = f"//{asked.group}", {f"//{group}//" for group, _ in spaces}
        below = any(group.startswith(f"{asked.group}/") for group, _ in spaces)
    else:
        wanted, known = f"//{asked.group}//{asked.app}", {f"//{group}//{app}//" for group, app in spaces}
        below = any(group == asked.group and app.startswith(f"{asked.app}/") for group, app in spaces)
    close = get_close_matches(f"{wanted}//", sorted(known), n=_MOST, cutoff=_CLOSE)
    return [one for one in (*([f"{wanted}/"] if below else []), *close) if one != prefix][:_MOST]


def _spaces(path: Path) -> list[tuple[str, str]]:
    with closing(Browser(path)) as browser:
        return [(space.group, space.app) for space in browser.spaces(limit=MAX_SPACES)]
