"""What the first peer would wait for, done before it comes: a listing for somebody who brings the same rules as we do.

Rule: it changes nothing and decides nothing. What it leaves behind are warm caches of the store and remembered roots,
which are used only where they fit.
"""

from __future__ import annotations

from collections.abc import Callable

from lace.interlace import inputs as given
from lace.interlace.agreement import compile_modules, own_hello, settle
from lace.interlace.config import MachineConfig
from lace.interlace.effects import Evaluate, PreparePolicy, Summarise
from lace.interlace.partitions import AdvertisementSet
from lace.runtime.roots import WorkOut
from lace.runtime.side import PolicyEvaluator


def rehearse(
    config: MachineConfig, evaluator: PolicyEvaluator, summarise: WorkOut, now_ns: int, stopped: Callable[[], bool]
) -> None:
    """Evaluate and summarise what an unknown peer with our own rules would be told, and what it would tell us once it
    has all of that; given up between two steps when `stopped`."""
    plan = compile_modules(config, config.module, config.module)
    hello = own_hello(config, plan, now_ns)
    agreement = settle(config, plan, hello, hello, None)
    prepared = evaluator.prepare(
        PreparePolicy(
            plan=plan,
            local_index=config.index,
            viewer=agreement.viewer,
            schema=agreement.negotiated.schema,
            send_gate=config.send_gate,
        )
    )
    if not isinstance(prepared, given.PolicyPrepared) or stopped():
        return
    runtime = agreement.runtime(config.link, agreement.negotiated.start)
    evaluated = evaluator.evaluate(
        Evaluate(runtime=runtime, source=agreement.peer_source, advertised_added=(), advertised_removed=())
    )
    if not isinstance(evaluated, given.Evaluated):
        return
    listed = AdvertisementSet(config.max_line_bytes)
    listed.put_all(evaluated.send_added)
    for source in (agreement.own_source, agreement.peer_source):
        if stopped():
            return
        parts = listed.unsummarised(source, listed.prefixes())
        if sum(map(len, parts.values())) > config.max_claims_summarised_here:
            summarise(Summarise(source=source, parts=parts, max_line_bytes=config.max_line_bytes))
