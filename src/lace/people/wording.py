"""The texts that a policy is made of: the rules of this package with the group and the founder filled in.

Rule: `@group`, `@founder`, `@app` and `@people` are replaced and nothing else is. A line with `@app` is written once
for each app.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from importlib.resources import files

from lace.errors import InvalidText
from lace.people.root import Root
from lace.values import dataclass

_WORD = re.compile(r"@([a-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateWords:
    """What a template of a policy is filled with."""

    root: Root
    apps: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, str]:
        """The words that have one value."""
        return {"group": self.root.group, "founder": self.root.founder, **self.others}


def shipped(folder: str, file: str) -> str:
    """A text of this package."""
    return (files("lace.people") / folder / file).read_text(encoding="utf-8")


def core_rules(root: Root) -> str:
    """The core rules of a group and its founder, to be evaluated or included in a policy."""
    return fill_words(shipped("rules", "core.lace"), TemplateWords(root=root))


def people_rules(root: Root, kind: str) -> str:
    """What `@people` stands for: the core rules and, in a selector, the rules by which people records travel."""
    travel = fill_words(shipped("rules", "travel.lace"), TemplateWords(root=root)) if kind == "select" else ""
    return travel + core_rules(root)


def fill_words(text: str, words: TemplateWords, kind: str = "") -> str:
    """A text with its words filled in; InvalidText for a word that has no value."""
    values = words.values()
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() == "@people":
            lines += people_rules(words.root, kind).splitlines()
        elif "@app" in line:
            if not words.apps:
                raise InvalidText("this template needs the apps it is about: --app", rule="template-words")
            lines += [_filled(line, {**values, "app": app}) for app in words.apps]
        else:
            lines.append(_filled(line, values))
    return "".join(f"{line}\n" for line in lines)


def _filled(line: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        word = match[1]
        if word not in values:
            given = " and ".join(f"@{name}" for name in sorted((*values, "app", "people")))
            raise InvalidText(f"there is no value for @{word}; a policy may say {given}", rule="template-words")
        return refuse_quotes(word, values[word])

    return line if line.lstrip().startswith("#:") else _WORD.sub(value, line)


def refuse_quotes(word: str, value: str) -> str:
    """A word that fits into a constant; paths and verifiers need no escapes, so others are refused."""
    if not value.isprintable() or any(character in value for character in "'\"\\\n@"):
        raise InvalidText(
            f"{word} cannot contain quotes, backslashes or @", rule="template-words", found=repr(value[:60])
        )
    return value
