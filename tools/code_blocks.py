"""Code blocks of the documentation as HTML with colours, by their language.

Rule: what somebody copies is what they type: of a console block the commands, of everything else the text.
"""

from __future__ import annotations

import re
from html import escape

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import RegexLexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Operator, Punctuation, String, Text

PROMPT = re.compile(r"([a-z]*\$ )(.*)")


class RuleLexer(RegexLexer):
    """The rule language (docs/rules.md)."""

    name = "lace"
    tokens = {  # noqa: RUF012  (as pygments wants it)
        "root": [
            (r"#.*$", Comment),
            (r"'(?:\\.|[^'\\\n])*'", String),
            (r":-", Operator.Word),
            (r"\b(?:not|true)\b", Keyword),
            (r"[A-Za-z][\w~-]*(?=\()", Name.Function),
            (r"[A-Z_]\w*", Name),
            (r"[(),.]", Punctuation),
            (r"\s+|.", Text),
        ]
    }


_FORMATTER = HtmlFormatter(nowrap=True)


def highlighted(info: str, code: str, facts: str = "") -> str:
    """One block; the first word of `info` is its language. Rules may carry the facts that they are asked over."""
    language = info.split()[0] if info else "text"
    if language == "console" or (language == "text" and PROMPT.match(code)):
        return _console(code)
    if language == "text":
        inner = escape(code)
    else:
        lexer = RuleLexer() if language == "lace" else get_lexer_by_name(language)
        inner = highlight(code, lexer, _FORMATTER)
    given = f' data-facts="{escape(facts, quote=True)}"' if facts else ""
    return f'<div class="code" data-language="{escape(language)}"{given}><pre><code>{inner}</code></pre></div>\n'


def _console(code: str) -> str:
    """Commands stand out from what they print, and are what is copied."""
    lines, typed, continues = [], [], False
    for line in code.rstrip("\n").split("\n"):
        found = PROMPT.fullmatch(line)
        if found is not None or continues:
            prompt, command = (found[1], found[2]) if found is not None else ("", line)
            words, comment, remark = command.partition("   #")
            lines.append(
                f'<span class="gp">{escape(prompt)}</span><span class="typed">{escape(words)}</span>'
                f'<span class="c">{escape(comment + remark)}</span>'
            )
            typed.append(words.rstrip())
            continues = command.endswith("\\")
        else:
            lines.append(f'<span class="go">{escape(line)}</span>')
    copied = escape("\n".join(typed), quote=True)
    inner = "\n".join(lines)
    return f'<div class="code" data-language="console" data-typed="{copied}"><pre><code>{inner}\n</code></pre></div>\n'
