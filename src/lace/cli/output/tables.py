"""Tables: on a terminal laid out for its width, elsewhere aligned plain text with nothing cut.

Rule: on a narrow terminal whole columns go, the ones that the command names, and one line says which; what is left
keeps its cells, and only a long text continues below itself. Rows beyond the first page are laid out like it, so that
their number is not limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from lace.cli.output.output import echo_lines, say
from lace.cli.output.text import Shown, cells, folded, for_people, shown, styled, terminal_width, visible_line
from lace.cli.output.words import HASH, PLACE, coloured, shortened_cell
from lace.values import dataclass

PAGE_ROWS = 1000
_GAP = "  "
_ENOUGH = 26  # columns for a text that continues below itself
_LEAST = 8
_NEVER_FOLDED = 19  # columns: a time, a hash, an amount
_DIM = frozenset(("time (UTC)", "since", "until"))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[str] = frozenset(),
    drop: Sequence[str] = (),
    page_rows: int = PAGE_ROWS,
) -> None:
    """Print a table; the columns of `drop` go first, from the left, where a terminal is too narrow for all."""
    coming = iter(rows)
    page = list(islice(coming, page_rows))
    if not for_people():
        _print_plain(columns, page, coming, right)
        return
    if not page:
        return
    layout = Layout.of(columns, page, right, drop, terminal_width())
    echo_lines(chain(layout.heading(), *map(layout.lines, page)))
    echo_lines(line for row in coming for line in layout.lines(row))
    if layout.dropped:
        left_out = f"(too narrow for {', '.join(layout.dropped)}; --json shows everything)"
        say(styled(left_out, dim=True), err=True)


def _print_plain(
    columns: Sequence[str], page: list[Sequence[str]], coming: Iterator[Sequence[str]], right: frozenset[str]
) -> None:
    widths = [max([len(column), *(len(row[i]) for row in page)]) for i, column in enumerate(columns)]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        return _GAP.join(padded).rstrip()

    echo_lines(map(line, chain([columns], page, coming)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns a terminal shows, and how wide each is."""

    columns: Sequence[str]
    kept: tuple[int, ...]
    widths: tuple[int, ...]  # of those kept
    right: frozenset[str]

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        page: Sequence[Sequence[str]],
        right: frozenset[str],
        drop: Sequence[str],
        width: int,
    ) -> Layout:
        """For the rows of the first page."""
        natural = [
            max(map(cells, (column, *(_shown_cell(row[i]) for row in page)))) for i, column in enumerate(columns)
        ]
        folds = [_may_fold(i, page, natural[i]) for i in range(len(columns))]
        least = [min(wide, _ENOUGH) if may else wide for wide, may in zip(natural, folds, strict=True)]
        kept = list(range(len(columns)))
        for name in drop:
            if _taken(least, kept) <= width:
                break
            if name in columns:
                kept.remove(columns.index(name))
        return cls(columns, tuple(kept), _fitted(natural, least, folds, kept, width), right)

    @property
    def dropped(self) -> list[str]:
        """The columns that are not shown."""
        return [column for i, column in enumerate(self.columns) if i not in self.kept]

    def heading(self) -> Iterator[Shown]:
        """The names of the columns."""
        titles = [self._padded(self.columns[i], i, width) for i, width in zip(self.kept, self.widths, strict=True)]
        yield styled(_GAP.join(titles).rstrip(), bold=True)

    def lines(self, row: Sequence[str]) -> Iterator[Shown]:
        """One row: a line, or several where a text continues below itself."""
        stacked = [folded(_shown_cell(row[i]), width, width) for i, width in zip(self.kept, self.widths, strict=True)]
        for number in range(max(map(len, stacked), default=0)):
            parts: list[str] = []
            for i, width, pieces in zip(self.kept, self.widths, stacked, strict=True):
                piece = pieces[number] if number < len(pieces) else ""
                is_last = i == self.kept[-1]
                space = " " * (width - cells(piece))
                painted = self._painted(piece, i, row[i])
                before, after = (space, "") if self.columns[i] in self.right else ("", "" if is_last else space)
                parts += [before, painted, after, "" if is_last else _GAP]
            yield Shown(shown(*parts))

    def _padded(self, text: str, column: int, width: int) -> str:
        space = " " * (width - cells(text))
        return space + text if self.columns[column] in self.right else text + space

    def _painted(self, piece: str, column: int, whole: str) -> Shown:
        if not piece:
            return Shown()
        if whole.startswith("//"):
            return styled(piece, **PLACE)
        if self.columns[column] in _DIM or piece == "-":
            return styled(piece, **HASH)
        return coloured(piece)


def _shown_cell(text: str) -> str:
    return visible_line(shortened_cell(text))


def _may_fold(column: int, page: Sequence[Sequence[str]], natural: int) -> bool:
    """Whether a column holds texts; hashes, times and amounts are never cut."""
    if natural <= _LEAST:
        return False
    texts = (row[column] for row in page if row[column])
    return natural > _NEVER_FOLDED or any(" " in text and not text[0].isdigit() for text in texts)


def _taken(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[i] for i in kept) + len(_GAP) * (len(kept) - 1)


def _fitted(
    natural: Sequence[int], least: Sequence[int], folds: Sequence[bool], kept: Sequence[int], width: int
) -> tuple[int, ...]:
    """Widths that fit: texts share what the others leave, and a text that needs less leaves it to the rest."""
    if _taken(natural, kept) <= width:
        return tuple(natural[i] for i in kept)
    texts = sorted((i for i in kept if folds[i]), key=lambda i: natural[i])
    found = {i: least[i] for i in kept}
    room = width - _taken([0 if folds[i] else least[i] for i in range(len(least))], kept)
    for position, i in enumerate(texts):
        share = max(_LEAST, room // (len(texts) - position))
        found[i] = min(natural[i], share)
        room -= found[i]
    over = sum(found.values()) + len(_GAP) * (len(kept) - 1) - width
    for i in sorted(kept, key=lambda i: -found[i]):  # nothing but narrow columns: cut the widest
        if over > 0:
            less = min(over, found[i] - _LEAST)
            found[i] -= max(0, less)
            over -= max(0, less)
    return tuple(found[i] for i in kept)
