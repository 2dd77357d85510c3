"""Lace syncs signed records between machines. Rules, not a server, decide who gets what.

    import lace

    key = lace.generate_key()
    with lace.open("notes.lace", create=True) as notes:
        record = notes.put(b"hello", group="u", app="ding", name="links/1", sign=key)
        assert notes.get("//u//ding//links/1") == b"hello"

Names are imported on first use, so that `import lace` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lace.errors import (
        CursorExpired,
        EvaluationStopped,
        IncompleteContent,
        InvalidExchangePlan,
        InvalidInput,
        InvalidLacegram,
        InvalidRecord,
        InvalidStream,
        InvalidText,
        KeyUnavailable,
        LaceError,
        LimitExceeded,
        LocalProtocolError,
        MissingExtra,
        NotConverged,
        NotFound,
        RemoteProtocolError,
        StoreError,
        TransportError,
    )
    from lace.intake.batch import BatchLimits
    from lace.intake.bundles import ImportReport
    from lace.interlace.result import ExchangeStatus, InterlaceResult
    from lace.interlace.setup.terms import Rules
    from lace.limits import EngineLimits, RecordLimits
    from lace.notation.fact import Fact, Predicate
    from lace.notation.identifiers import RecordHash, Verifier
    from lace.notation.tai import TAI
    from lace.porcelain.changes import Change, ChangeStream
    from lace.porcelain.checkout import CheckedOut
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.exchange import Exchanged, fetch, follow, publish, selector
    from lace.porcelain.exchange import interlace as exchange
    from lace.porcelain.explain import Explanation, explain
    from lace.porcelain.following import FollowedLink, LinkState
    from lace.porcelain.lace import Lace, generate_key
    from lace.porcelain.lace import open_lace as open  # noqa: A004  (lace.open is the point)
    from lace.porcelain.listing import Row
    from lace.porcelain.network import connect, relay, serve
    from lace.porcelain.node import LaceNode as Node
    from lace.porcelain.node import LinkEvent, LinkEvents, NodeOptions, Policy
    from lace.porcelain.policy import LacePolicy
    from lace.porcelain.preview import browse, preview
    from lace.porcelain.putting import FileState, PutBatch, TreeResult
    from lace.porcelain.query import Answer, query
    from lace.porcelain.ruleviews import RuleChanges, RuleSnapshot, RuleView, follow_rules
    from lace.porcelain.tips import Tip
    from lace.porcelain.upkeep import Compacted, backup, compact, repair, restore
    from lace.porcelain.verify import Damage
    from lace.porcelain.visibility import NotExposed
    from lace.records.keys import Signer, SigningKey, SigningSecret
    from lace.records.model import Blob, Plex, Seal, ValidRecord
    from lace.records.tip import CoordinateVersion, JudgedVersion, TipPolicy, VersionState
    from lace.records.validate import validate
    from lace.runtime.clock import Clock
    from lace.runtime.host.quotas import Allowance, Quotas
    from lace.runtime.identity.keyring import KeyEntry, KeyRing
    from lace.runtime.link.session import Outcome
    from lace.runtime.local.follow import LocalFollow
    from lace.runtime.local.preview import Preview
    from lace.runtime.node.links import LinkInfo
    from lace.runtime.node.metrics import MetricsSink
    from lace.runtime.node.node import Hooks, NodeLimits
    from lace.store.base import StoreStat
    from lace.store.columns.repair.salvage import RepairReport
    from lace.transports.base import ByteStream, TransportProof
    from lace.transports.tls import ClientTls, ServerTls

__all__ = [
    "TAI",
    "Allowance",
    "Answer",
    "BatchLimits",
    "Blob",
    "ByteStream",
    "Change",
    "ChangeStream",
    "CheckedOut",
    "ClientTls",
    "Clock",
    "Compacted",
    "CoordinateVersion",
    "CursorExpired",
    "Damage",
    "EngineLimits",
    "EvaluationStopped",
    "ExchangeStatus",
    "Exchanged",
    "Explanation",
    "Fact",
    "FileState",
    "FollowedLink",
    "Hooks",
    "ImportReport",
    "Incomplete",
    "IncompleteContent",
    "InterlaceResult",
    "InvalidExchangePlan",
    "InvalidInput",
    "InvalidLacegram",
    "InvalidRecord",
    "InvalidStream",
    "InvalidText",
    "JudgedVersion",
    "KeyEntry",
    "KeyRing",
    "KeyUnavailable",
    "Lace",
    "LaceError",
    "LacePolicy",
    "LimitExceeded",
    "LinkEvent",
    "LinkEvents",
    "LinkInfo",
    "LinkState",
    "LocalFollow",
    "LocalProtocolError",
    "MetricsSink",
    "MissingExtra",
    "Node",
    "NodeLimits",
    "NodeOptions",
    "NotConverged",
    "NotExposed",
    "NotFound",
    "Outcome",
    "Plex",
    "Policy",
    "Predicate",
    "Preview",
    "PutBatch",
    "Quotas",
    "RecordHash",
    "RecordLimits",
    "RemoteProtocolError",
    "RepairReport",
    "Row",
    "RuleChanges",
    "RuleSnapshot",
    "RuleView",
    "Rules",
    "Seal",
    "ServerTls",
    "Signer",
    "SigningKey",
    "SigningSecret",
    "StoreError",
    "StoreStat",
    "Tip",
    "TipPolicy",
    "TransportError",
    "TransportProof",
    "TreeResult",
    "ValidRecord",
    "Verifier",
    "VersionState",
    "backup",
    "browse",
    "compact",
    "connect",
    "exchange",
    "explain",
    "fetch",
    "follow",
    "follow_rules",
    "generate_key",
    "open",
    "preview",
    "publish",
    "query",
    "relay",
    "repair",
    "restore",
    "selector",
    "serve",
    "validate",
]

_HOMES = {
    "lace.errors": (
        "CursorExpired EvaluationStopped InvalidExchangePlan InvalidInput InvalidLacegram InvalidRecord InvalidStream"
        " InvalidText KeyUnavailable LaceError LimitExceeded LocalProtocolError MissingExtra NotConverged NotFound"
        " IncompleteContent RemoteProtocolError StoreError TransportError"
    ),
    "lace.intake.batch": "BatchLimits",
    "lace.intake.bundles": "ImportReport",
    "lace.interlace.result": "ExchangeStatus InterlaceResult",
    "lace.interlace.setup.terms": "Rules",
    "lace.limits": "EngineLimits RecordLimits",
    "lace.notation.fact": "Fact Predicate",
    "lace.notation.identifiers": "RecordHash Verifier",
    "lace.notation.tai": "TAI",
    "lace.porcelain.changes": "Change ChangeStream",
    "lace.porcelain.verify": "Damage",
    "lace.porcelain.completeness": "Incomplete",
    "lace.porcelain.ruleviews": "RuleChanges RuleSnapshot RuleView follow_rules",
    "lace.porcelain.lace": "Lace generate_key",
    "lace.porcelain.network": "connect relay serve",
    "lace.porcelain.following": "FollowedLink LinkState",
    "lace.porcelain.node": "LinkEvent LinkEvents NodeOptions Policy",
    "lace.runtime.node.links": "LinkInfo",
    "lace.runtime.node.metrics": "MetricsSink",
    "lace.porcelain.listing": "Row",
    "lace.porcelain.explain": "Explanation explain",
    "lace.porcelain.exchange": "Exchanged fetch follow publish selector",
    "lace.porcelain.visibility": "NotExposed",
    "lace.porcelain.policy": "LacePolicy",
    "lace.porcelain.preview": "browse preview",
    "lace.porcelain.checkout": "CheckedOut",
    "lace.porcelain.putting": "FileState PutBatch TreeResult",
    "lace.porcelain.query": "Answer query",
    "lace.porcelain.tips": "Tip",
    "lace.porcelain.upkeep": "Compacted backup compact repair restore",
    "lace.records.keys": "Signer SigningKey SigningSecret",
    "lace.records.model": "Blob Plex Seal ValidRecord",
    "lace.records.tip": "CoordinateVersion JudgedVersion TipPolicy VersionState",
    "lace.records.validate": "validate",
    "lace.runtime.clock": "Clock",
    "lace.runtime.local.follow": "LocalFollow",
    "lace.runtime.identity.keyring": "KeyEntry KeyRing",
    "lace.runtime.node.node": "Hooks NodeLimits",
    "lace.runtime.host.quotas": "Allowance Quotas",
    "lace.runtime.local.preview": "Preview",
    "lace.runtime.link.session": "Outcome",
    "lace.store.base": "StoreStat",
    "lace.store.columns.repair.salvage": "RepairReport",
    "lace.transports.base": "ByteStream TransportProof",
    "lace.transports.tls": "ClientTls ServerTls",
}
_NAMES = {name: (module, name) for module, names in _HOMES.items() for name in names.split()}
_NAMES["open"] = ("lace.porcelain.lace", "open_lace")
_NAMES["exchange"] = ("lace.porcelain.exchange", "interlace")
_NAMES["Node"] = ("lace.porcelain.node", "LaceNode")


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it, and keep it here."""
    if name == "__version__":
        from importlib.metadata import version

        return version("lace-protocol")
    if name not in _NAMES:
        raise AttributeError(f"module 'lace' has no attribute {name!r}")
    module, own = _NAMES[name]
    value = globals()[name] = getattr(import_module(module), own)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
