"""Text of others as people may see it: every character that hides, steers or moves other text is spelled out.

Rule: whatever shows what a record or a peer holds, on a terminal or a page, shows it through `spell_out`. Nothing is
taken away, and a text of ordinary characters stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import category

# Controls (Cc), formats (Cf: directions, joiners, soft hyphens, tags), separators of lines and paragraphs (Zl, Zp) and
# lone surrogates (Cs), written out because asking about every character takes a tenth of a second; a test compares them
# with the tables of the interpreter. Then letters and marks without any shape, and the variations that carry bytes.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)
_IN_TEXT = re.compile(f"[{_HIDDEN}]")
_IN_LINE = re.compile(f"[{_HIDDEN}\t\n]")

Spell = Callable[[str], str]


def escaped(character: str) -> str:
    """A character as Python spells it.

    >>> escaped("\\x1b"), escaped("\\u202e"), escaped("\\U000e0041")
    ('\\\\x1b', '\\\\u202e', '\\\\U000e0041')
    """
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def named(character: str) -> str:
    """A character as pages spell it.

    >>> named("\\u202e")
    '⟨U+202E⟩'
    """
    return f"\u27e8U+{ord(character):04X}\u27e9"


def spell_out(text: str, spell: Spell = escaped, *, one_line: bool = False, goes_on: bool = False) -> str:
    """Text with its hidden characters spelled out, and marks that would sit on whatever comes before the text.

    Line ends and tabs stay unless it is to be one line. A text that goes on from another may begin with a mark.

    >>> spell_out("a\\u202eb\\u00adc"), spell_out("\\u0301 a")
    ('a\\\\u202eb\\\\xadc', '\\\\u0301 a')
    """
    if text.isascii() and text.isprintable():
        return text
    shown = (_IN_LINE if one_line else _IN_TEXT).sub(lambda found: spell(found[0]), text)
    if text.isascii():
        return shown
    first, *others = shown.split("\n")
    return "\n".join([first if goes_on else _alone(first, spell), *(_alone(line, spell) for line in others)])


def _alone(line: str, spell: Spell) -> str:
    """A line whose first marks have nothing of its own to sit on."""
    count = 0
    while count < len(line) and category(line[count])[0] == "M":
        count += 1
    return "".join(map(spell, line[:count])) + line[count:]
