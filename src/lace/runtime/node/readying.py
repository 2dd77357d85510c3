"""What the first peers of a node will ask for, worked out before it listens (050, 070).

Rule: it is asked of a host as a link would ask it, so that links find it ready; nothing is worked out another way.

A link that comes to a fresh node would otherwise evaluate all records and build the tree of its set, while everybody
else waits for the same, and would then count as a link whose work takes long. The roots of its partitions cost as much
again: they are worked out for those that ask for them, or before, by a node that speaks no capability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lace.interlace.host import Call
from lace.interlace.setup.agreement import Agreement, compile_modules, own_hello, settle
from lace.interlace.setup.terms import MachineConfig, Terms
from lace.policy.select import select_all
from lace.runtime.host.host import LocalHost


def get_ready(host: LocalHost, terms: Terms, tai_ns: int, call: Call, *, is_standard: bool) -> None:
    """Work out what peers are served under these terms who bring our rules, or the rules that everybody starts with;
    `is_standard` if we speak no capability."""
    config = MachineConfig(index=1, terms=terms, refusals=True)
    for agreement in _foreseen(config, tai_ns):
        runtime = agreement.runtime(config.link, agreement.negotiated.start)
        host.get_ready(agreement.preparing(config), runtime, call, is_standard=is_standard)


def _foreseen(config: MachineConfig, tai_ns: int) -> Iterator[Agreement]:
    """What will be agreed on with strangers: those that speak the capabilities, and those that do not."""
    own = config.terms.module
    for module in {module.id: module for module in (own, select_all())}.values():
        plan = compile_modules(config, own, module)
        ours = own_hello(config, plan, tai_ns)
        agreed: Agreement | None = None
        for refusals in (True, False):
            peer = MachineConfig(index=0, terms=replace(config.terms, module=module), refusals=refusals)
            before, agreed = agreed, settle(config, plan, ours, own_hello(peer, plan, tai_ns), None)
            if before is None or before.negotiated.schema != agreed.negotiated.schema:
                yield agreed
