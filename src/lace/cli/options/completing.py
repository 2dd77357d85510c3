"""What a shell may complete: keys of the ring, names of people, remotes, coordinates.

Rule: a shell asks while somebody types, so nothing here fails, waits for a passphrase or writes: what cannot be read
completes to nothing. Everything is looked up in the lace that stands earlier on the same line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from lace.cli.options.arguments import lace_of, opened_for_rules
from lace.errors import LaceError

if TYPE_CHECKING:
    from lace.store.browsing import Browser

MOST = 200  # suggestions


def keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the keys in the ring."""
    from lace.cli.commands.key import ring_names

    return _items(sorted(ring_names().values()), incomplete)


def names(ctx: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Every name that a key has: in the ring, and in the lace of the command."""
    from lace.cli.commands.key import ring_names
    from lace.cli.options.names import name_book

    found = set(ring_names().values())
    path = _lace(ctx)
    if path is not None:
        with suppress(LaceError, OSError), opened_for_rules(path) as lace:
            found.update(name_book(lace.store).words())
    return _items(sorted(found), incomplete)


def remotes(ctx: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """The remotes of the lace of the command."""
    from lace.porcelain.remotes import remotes_of

    path = _lace(ctx)
    if path is None:
        return []
    with suppress(LaceError, OSError), opened_for_rules(path) as lace:
        return _items(sorted(remote.name for remote in remotes_of(lace.store)), incomplete)
    return []


def coordinates(ctx: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Coordinates of the lace of the command, a part at a time: groups, apps, then names folder by folder."""
    path = _lace(ctx)
    if path is None or not "//".startswith(incomplete[:2]):
        return []
    with suppress(LaceError, OSError):
        from lace.store.browsing import Browser

        with closing(Browser(path)) as browser:
            return _items(list(_coordinates(browser, incomplete)), incomplete)
    return []


def _lace(ctx: click.Context) -> Path | None:
    """The lace of a line; where the option before the cursor still lacks its value, its words were not matched yet."""
    return lace_of(ctx) or next((path for path in map(Path, ctx.args) if path.is_file()), None)


def _coordinates(browser: Browser, incomplete: str) -> Iterator[str]:
    group, in_group, rest = incomplete[2:].partition("//")
    app, in_app, name = rest.partition("//")
    spaces = browser.spaces(limit=MOST) if not in_group else browser.spaces(group=group, start=(group, ""), limit=MOST)
    if not in_group:
        yield from dict.fromkeys(f"//{space.group}//" for space in spaces)
    elif not in_app:
        yield from (f"//{space.group}//{space.app}//" for space in spaces)
    else:
        space = browser.space(group, app)
        if space is not None:
            under = name[: name.rfind("/") + 1]
            page = browser.children(space, under, start=name, limit=MOST, count_to=1)
            yield from (f"//{group}//{app}//{child.name}" for child in page.rows)


def _items(words: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete) and "\n" not in word][:MOST]
