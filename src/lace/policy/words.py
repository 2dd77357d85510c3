"""Words that stand for a policy, and what is wrong with one that stands for none.

Rule: rules have an atom, which has parentheses. A text of one word without any was meant as a name.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.errors import InvalidExchangePlan


def refuse_unknown_word(text: str, words: Sequence[str], *others: str, rule: str) -> None:
    """Refuse a text that is one bare word, with the words that are spelled most like it."""
    word = text.strip()
    if not word or len(word.split()) > 1 or "(" in word or word.startswith("#"):
        return
    from lace.policy.lint import nearest  # which knows exposures, and those know words

    kinds = ", ".join((*words, *others))
    meant = nearest(word, words)
    message = f"this is neither rules nor one of {kinds}{f'; {meant}' if meant else ''}"
    raise InvalidExchangePlan(message, rule=rule, found=repr(word[:80]))
