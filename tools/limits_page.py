"""Write docs/limits.md: every limit that can be handed in, with its default and what it bounds.

usage: python tools/limits_page.py [--write]     (without --write: say whether the page is what the sources say)
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
PAGE = ROOT / "docs" / "limits.md"

from lace.cli.commands.help import _LIMIT_MEANINGS  # noqa: E402  (after the path is set, so that a plain checkout works)

# Which tables there are, and where a user says another value.
TABLES = (
    ("lace.limits", "RecordLimits", "`lace.open(limits=…)`"),
    ("lace.limits", "JudgingLimits", "`Archive(judging=…)`, `PipelineSettings(judging=…)`"),
    ("lace.limits", "EngineLimits", "`--limit`, rule files, `[rule_limits]`, `lace.query(limits=…)`"),
    ("lace.limits", "ExplainLimits", "`lace.porcelain.explain.Explainer`"),
    ("lace.limits", "ExchangeLimits", "`Terms(limits=…)`; each side tells the other its own, the smaller one holds"),
    ("lace.limits", "StreamLimits", "`Terms(stream_limits=…)`"),
    ("lace.limits", "StoreLimits", "`lace.open(store_limits=…)`"),
    ("lace.runtime.node.admission", "AdmissionLimits", "`[limits]` in a node file, `lace.Node(limits=…)`"),
    ("lace.runtime.node.links", "NodeLimits", "`[limits]` in a node file, `lace.Node(limits=…)`"),
    ("lace.runtime.node.metering", "LinkRates", "`lace.runtime.node.node.Node(rates=…)`"),
    ("lace.runtime.rules.guesthouse", "GuestLimits", "`lace.runtime.node.node.Node(guest_limits=…)`"),
    ("lace.spark.peer.peer", "PeerBounds", "`lace.spark.peer.peer.ArchivePeer(bounds=…)`"),
    ("lace.runtime.host.quotas", "Quotas", "`--quota`, `[quotas]` in a node file, `lace.Node(quotas=…)`"),
)


def rows(module: str, name: str) -> Iterator[tuple[str, str, str]]:
    """(limit, default, what it bounds) of a dataclass, in the order of its source."""
    loaded = import_module(module)
    comments = _comments(Path(str(loaded.__file__)), name)
    own = getattr(loaded, name).__annotations__
    for field in fields(getattr(loaded, name)):
        if field.name in own:
            yield field.name, _default(field), comments[field.name] or _LIMIT_MEANINGS.get(field.name, "")


def _default(field: Any) -> str:
    value = field.default if field.default is not MISSING else field.default_factory()
    if hasattr(value, "per_s"):
        return f"{value.per_s:,} a second, {value.burst:,} at once"
    if isinstance(value, bool) or value is None or not isinstance(value, int | float):
        return "none" if value is None or getattr(value, "is_limited", True) is False else str(value)
    return f"{value:,}"


def _comments(path: Path, name: str) -> dict[str, str]:
    """The remark beside each field, or the words of its docstring-like line above."""
    text = path.read_text(encoding="utf-8")
    remarks = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    found = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef) and node.name == name)
    places = {node.target.id: node for node in found.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    return {field: remarks.get(node.end_lineno or 0, "") for field, node in places.items()}


def page() -> str:
    """The whole page."""
    parts = [
        "# Limits",
        "",
        "Made from the sources by `python tools/limits_page.py --write`; do not edit.",
        "",
        "Every loop, buffer, table and queue has a limit that is handed in from outside.",
        "`lace help limits` explains those of rules; [the threat model](threat-model.md) what each protects.",
    ]
    for module, name, place in TABLES:
        summary = (getattr(import_module(module), name).__doc__ or "").split("\n")[0]
        parts += ["", f"## {name}", "", summary, "", f"To say another value: {place}.", ""]
        parts += ["| limit | default | what it bounds |", "|---|---|---|"]
        parts += [f"| `{limit}` | {default} | {meaning} |" for limit, default, meaning in rows(module, name)]
    return "\n".join(parts) + "\n"


def main() -> int:
    text = page()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/limits.md is not what the sources say: python tools/limits_page.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
