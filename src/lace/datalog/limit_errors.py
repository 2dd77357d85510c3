"""A limit of the engine that was reached, as an error that says what to try (030-LIM-01)."""

from __future__ import annotations

from lace.errors import LimitExceeded

_ADVICE = {
    "max_base_facts": "ask over fewer facts",
    "max_runtime_facts": "state fewer facts beside the records",
    "max_rules": "use fewer rules",
    "max_rule_literals": "break the rule into several",
    "max_tuple_arity": "use fewer places",
    "max_value_bytes": "use shorter values",
    "max_derived_facts_per_predicate": "ask for a goal with constants, derive fewer facts",
    "max_stratum_iterations": "let the recursion reach its end in fewer rounds",
    "max_rows_touched": "join on fewer rows (bind a variable by a constant or a smaller predicate)",
    "max_held_bytes": "derive fewer facts or narrower ones",
}
_NOT_OURS = {"max_peer_rows_touched": "the peer's rules ask for more work than it is given"}


def limit_reached(limit: str, allowed: int, detail: str = "", *, rule: str = "", advice: str = "") -> LimitExceeded:
    """The error of a limit that something met; advice of one's own stands in place of the usual.

    >>> print(limit_reached("max_rules", 256, "club.lace:257"))
    limit max_rules = 256 exceeded: club.lace:257 (use fewer rules, or raise the limit)
    """
    usual = f"{_ADVICE[limit]}, or raise the limit" if limit in _ADVICE else _NOT_OURS.get(limit, "")
    return LimitExceeded(limit, allowed, detail, rule=rule, advice=advice or usual)
