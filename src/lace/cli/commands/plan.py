"""`lace plan A B`: the exchange plan of two selectors, and the rules that one side evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.links import ViewerType
from lace.cli.options.policies import RuleChoices, chosen_exposures, expose_option, is_lace, named_selector
from lace.cli.output.output import json_option, print_fields, print_json, print_warning, say, say_data
from lace.cli.output.text import styled

if TYPE_CHECKING:
    from lace.interlace.setup.terms import Rules
    from lace.policy.compile import ExchangePlan
    from lace.policy.lower import LoweredPolicy
    from lace.policy.notice import Notice
    from lace.policy.provenance import LoweredRule


@click.command("plan")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--side", type=click.IntRange(0, 1), default=0, help="Whose rules to show: 0 is A, 1 is B.")
@expose_option
@click.option(
    "--viewer",
    type=ViewerType(),
    metavar="KEY|V",
    help="The other side's proven verifier, or the name of a key; by default its opaque label.",
)
@click.option("--send-gate/--no-send-gate", default=True, help="Send only what the peer may query (the default).")
@click.option("--require-encrypted", is_flag=True, help="A plan that sends over encrypted transports only.")
@click.option("--from-peer", is_flag=True, help="A plan that requests only what the proven peer itself advertises.")
@click.option("--transcript", "transcript_only", is_flag=True, help="Print the canonical transcript and nothing else.")
@json_option
def command(
    first: str,
    second: str,
    side: int,
    expose: Sequence[str],
    viewer: str | None,
    send_gate: bool,
    require_encrypted: bool,
    from_peer: bool,
    transcript_only: bool,
    as_json: bool,
) -> None:
    """Show the exchange plan of two selectors and the rules one side runs.

    A and B are rule files that define SelectHave and SelectAdvertised, or `all`, a coordinate such as //u//ding//, a
    hash, or a lace: then its policy. A is the side that dials. Both sides compute the same plan; the rules shown are
    those of --side, with the peer's record atoms resolved in the view that --expose gives it.
    """
    from lace.policy.compile import agree
    from lace.policy.lower import LoweringOptions, lower
    from lace.policy.notice import exposure_notices
    from lace.policy.origin import Viewer
    from lace.policy.transcript import Lowering

    ours, theirs = _operand(first), _operand(second)
    modules = ours.module, theirs.module
    lowering = Lowering.of(require_encrypted=require_encrypted, peer_must_be_source=from_peer)
    plan = agree(*modules, lowering=lowering)
    if transcript_only:
        say_data(plan.transcript, nl=False)
        return
    options = LoweringOptions(send_gate=send_gate)
    exposures = chosen_exposures(expose, modules[side]) if expose else (ours, theirs)[side].exposures
    seen_by = Viewer(viewer or plan.operands[1 - side].origin)
    policy = lower(plan, local_index=side, viewer=seen_by, exposures=exposures, options=options)
    notices = exposure_notices(policy, options)
    if as_json:
        print_json({**_plan_json(plan), **_rules_json(policy, notices)})
    else:
        _print_plan(plan, (first, second))
        _print_rules(policy, notices)


def _operand(text: str) -> Rules:
    """The rules that a word names: those of a lace's policy, or a selector that shows nothing."""
    from lace.cli.options.arguments import opened
    from lace.interlace.setup.terms import Rules

    path = Path(text)
    if path.is_file() and is_lace(path):
        with opened(path) as lace:
            if lace.policy() is not None:
                return RuleChoices().rules(lace, path)
    return Rules(named_selector(text))


def _print_plan(plan: ExchangePlan, names: tuple[str, str]) -> None:
    needs = plan.requirements
    fields = "all" if needs.all_fields else ", ".join(sorted(needs.names)) or "none"
    rows: list[tuple[str, object]] = [("plan", plan.id)]
    for operand, name in zip(plan.operands, names, strict=True):
        rows.append((f"operand {operand.index}", f"{operand.origin}  {operand.module.id}  {name}"))
    print_fields([*rows, ("lowering", plan.lowering), ("advertised fields required", fields)])
    say("\ntranscript")
    for line in plan.contents.lines:
        say_data(f"  {line}")


def _print_rules(policy: LoweredPolicy, notices: Sequence[Notice]) -> None:
    say(f"\nrules on side {policy.local_index}; rules of {policy.viewer} see {policy.view}")
    for rule in policy.provenance.rules:
        say_data(f"  {rule.line}")
        say(styled(f"    {_whence(rule)}", dim=True))
    for notice in notices:
        print_warning(str(notice))


def _whence(rule: LoweredRule) -> str:
    parts = [rule.stage, rule.detail, rule.origin]
    if rule.source is not None:
        parts.append(f"from {rule.source[1]}")
    return "  ".join(part for part in parts if part)


def _plan_json(plan: ExchangePlan) -> dict[str, object]:
    return {
        "plan": plan.id,
        "transcript": plan.contents.lines,
        "operands": [
            {
                "index": operand.index,
                "facet": operand.facet,
                "module": operand.module.id,
                "origin": operand.origin,
                "rules": operand.module.text.split("\n"),
            }
            for operand in plan.operands
        ],
        "lowering": plan.lowering,
        "required_fields": sorted(plan.requirements.names),
        "requires_all_fields": plan.requirements.all_fields,
    }


def _rules_json(policy: LoweredPolicy, notices: Sequence[Notice]) -> dict[str, object]:
    return {
        "side": policy.local_index,
        "viewer": policy.viewer,
        "view": policy.view,
        "rules": [
            {
                "rule": rule.line,
                "id": rule.id,
                "stage": rule.stage,
                "detail": rule.detail,
                "origin": rule.origin or None,
                "source": rule.source and {"module": rule.source[0], "rule": rule.source[1]},
            }
            for rule in policy.provenance.rules
        ],
        "notices": [{"code": notice.code, "text": notice.text, "remedy": notice.remedy} for notice in notices],
    }
