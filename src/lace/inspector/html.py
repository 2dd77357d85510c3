"""HTML as values.

Rule: everything that is not `Markup` is escaped on insertion, so text from records can never become HTML. Only this
module creates Markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from lace.notation.visible import named, spell_out

_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta"))
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child = "Markup | str | int | Iterable[Child] | None"
NOTHING = Markup("")


def visible(text: str) -> str:
    """Text with characters that hide or reorder others spelled out."""
    return spell_out(text, named)


def text(value: object) -> Markup:
    """Any value as escaped text."""
    return value if isinstance(value, Markup) else Markup(escape(visible(str(value)), quote=True))


def join(*children: object) -> Markup:
    """Join children; None is left out, and lists are flattened."""
    return Markup("".join(_parts(children)))


def _parts(children: Iterable[object]) -> Iterable[str]:
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, str | int | float):
            yield text(child)
        elif isinstance(child, Iterable):
            yield from _parts(child)
        else:
            yield text(child)


def tag(element: str, *children: object, **attributes: object) -> Markup:
    """One element. An attribute's name may end in `_` and has `-` for `_`; None and False leave it out.

    >>> print(tag("a", "<b>", href="/?a=1&b=2", class_="name"))
    <a href="/?a=1&amp;b=2" class="name">&lt;b&gt;</a>
    """
    if _NAME.fullmatch(element) is None:
        raise ValueError(f"{element!r} is not an element")
    written = "".join(map(_attribute, attributes, attributes.values()))
    if element in _VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{join(*children)}</{element}>")


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    spelled = name.removesuffix("_").replace("_", "-")
    if _NAME.fullmatch(spelled) is None:
        raise ValueError(f"{name!r} is not an attribute")
    return f" {spelled}" if value is True else f' {spelled}="{escape(str(value), quote=True)}"'


def raw_text_element(element: str, content: str) -> Markup:
    """`style` or `script` with our own text inside; refuses a text that could end it."""
    if "</" in content or "<!--" in content:
        raise ValueError(f"a {element} cannot contain this text")
    return Markup(f"<{element}>{content}</{element}>")
