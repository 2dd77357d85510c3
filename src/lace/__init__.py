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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.datalog.explain.absence import Absence
    from lace.datalog.explain.explanation import Explanation
    from lace.datalog.explain.proof import Proof
    from lace.datalog.source import FactSource
    from lace.errors import (
        CallStopped,
        CursorExpired,
        EvaluationStopped,
        IncompleteContent,
        InvalidExchangePlan,
        InvalidInput,
        InvalidLacegram,
        InvalidRecord,
        InvalidSignature,
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
        StoreDamaged,
        StoreError,
        StoreFull,
        StoreReplaced,
        TransportError,
    )
    from lace.intake.batch import BatchLimits
    from lace.intake.bundles import ImportReport
    from lace.interlace.claims.advertisement import Advertisement
    from lace.interlace.events import (
        Advertising,
        Closed,
        Deferred,
        EpochBegan,
        Event,
        FixedPoint,
        HoldingBack,
        NotAvailable,
        Received,
        RefusedByPeer,
        Rejected,
        Requested,
        Sent,
        Taken,
        Ticked,
        Unwanted,
    )
    from lace.interlace.loop.refusals import HeldBack
    from lace.interlace.result import ExchangeStatus, InterlaceResult
    from lace.interlace.setup.terms import Rules
    from lace.limits import EngineLimits, ExchangeLimits, ExplainLimits, RecordLimits, StoreLimits
    from lace.notation.fact import Fact, Predicate
    from lace.notation.identifiers import ExchangePlanId, LacegramId, RecordHash, RuleId, Verifier
    from lace.notation.tai import TAI
    from lace.policy.exposure import Exposure
    from lace.policy.notice import Notice
    from lace.policy.operand import Module
    from lace.porcelain.changes import Change, ChangeStream
    from lace.porcelain.checkout import CheckedOut
    from lace.porcelain.completeness import Incomplete
    from lace.porcelain.content import ByteReader, Content, Cut
    from lace.porcelain.diagnosis import Finding, LaceStatus, PeerView, PlanShown, check, plan, status, view, why
    from lace.porcelain.exchange import Exchanged, Expose, Select, fetch, follow, publish, selector
    from lace.porcelain.exchange import interlace as exchange
    from lace.porcelain.explain import explain
    from lace.porcelain.export import Writable
    from lace.porcelain.following import FollowedLink, LinkState
    from lace.porcelain.forgetting import Forgotten
    from lace.porcelain.lace import Lace, generate_key, open_lace
    from lace.porcelain.listing import Row
    from lace.porcelain.misuse import RulesWarning, When
    from lace.porcelain.network import connect, relay, serve
    from lace.porcelain.node import LaceNode as Node
    from lace.porcelain.node import LinkEvent, LinkEvents, NodeOptions, Policy, PolicyFor
    from lace.porcelain.policy import LacePolicy
    from lace.porcelain.preview import browse, preview
    from lace.porcelain.putting import FileState, PutBatch, TreeResult
    from lace.porcelain.query import Answer, query
    from lace.porcelain.remotes import LastExchange, Remote
    from lace.porcelain.ruleviews import RuleChanges, RuleSnapshot, RuleView, follow_rules
    from lace.porcelain.session import LaceSession as Session
    from lace.porcelain.status import Missing, RemoteStatus
    from lace.porcelain.tips import Tip
    from lace.porcelain.upkeep import Compacted, Restored, backup, compact, repair, restore
    from lace.porcelain.verify import Damage
    from lace.porcelain.visibility import NotExposed
    from lace.porcelain.why import Gate, Walk
    from lace.records.coordinate import Coordinate
    from lace.records.keys import Signer, SigningKey, SigningSecret
    from lace.records.model import Blob, Parts, Plex, Seal, ValidRecord
    from lace.records.tip import CoordinateVersion, JudgedVersion, TipPolicy, VersionState
    from lace.records.validate import validate
    from lace.runtime.clock import Clock
    from lace.runtime.host.cursors import CursorLimits
    from lace.runtime.host.quotas import Allowance, Quotas
    from lace.runtime.identity.keyring import KeyEntry, KeyRing
    from lace.runtime.link.session import Outcome
    from lace.runtime.local.follow import LocalFollow
    from lace.runtime.local.preview import Preview
    from lace.runtime.node.links import LinkInfo
    from lace.runtime.node.metering import Rate
    from lace.runtime.node.metrics import MetricsSink
    from lace.runtime.node.node import Hooks, NodeLimits
    from lace.runtime.node.refusing import RefusingLimits
    from lace.runtime.node.waitingroom import WaitingLimits
    from lace.runtime.trace.tap import Tap
    from lace.store.base import Entry, StoreStat
    from lace.store.columns.repair.salvage import Lost, RepairReport
    from lace.store.ledger import Usage
    from lace.transports.base import ByteStream, TransportProof
    from lace.transports.tls import ClientTls, ServerTls

    open = open_lace  # noqa: A001  (lace.open is the point)
    __version__: str

__all__ = [  # all but `open`: `from lace import *` must not replace Python's own
    "TAI",
    "Absence",
    "Advertisement",
    "Advertising",
    "Allowance",
    "Answer",
    "BatchLimits",
    "Blob",
    "ByteReader",
    "ByteStream",
    "CallStopped",
    "Change",
    "ChangeStream",
    "CheckedOut",
    "ClientTls",
    "Clock",
    "Closed",
    "Compacted",
    "Content",
    "Coordinate",
    "CoordinateVersion",
    "CursorExpired",
    "CursorLimits",
    "Cut",
    "Damage",
    "Deferred",
    "EngineLimits",
    "Entry",
    "EpochBegan",
    "EvaluationStopped",
    "Event",
    "ExchangeLimits",
    "ExchangePlanId",
    "ExchangeStatus",
    "Exchanged",
    "ExplainLimits",
    "Explanation",
    "Expose",
    "Exposure",
    "Fact",
    "FactSource",
    "FileState",
    "Finding",
    "FixedPoint",
    "FollowedLink",
    "Forgotten",
    "Gate",
    "HeldBack",
    "HoldingBack",
    "Hooks",
    "ImportReport",
    "Incomplete",
    "IncompleteContent",
    "InterlaceResult",
    "InvalidExchangePlan",
    "InvalidInput",
    "InvalidLacegram",
    "InvalidRecord",
    "InvalidSignature",
    "InvalidStream",
    "InvalidText",
    "JudgedVersion",
    "KeyEntry",
    "KeyRing",
    "KeyUnavailable",
    "Lace",
    "LaceError",
    "LacePolicy",
    "LaceStatus",
    "LacegramId",
    "LastExchange",
    "LimitExceeded",
    "LinkEvent",
    "LinkEvents",
    "LinkInfo",
    "LinkState",
    "LocalFollow",
    "LocalProtocolError",
    "Lost",
    "MetricsSink",
    "Missing",
    "MissingExtra",
    "Module",
    "Node",
    "NodeLimits",
    "NodeOptions",
    "NotAvailable",
    "NotConverged",
    "NotExposed",
    "NotFound",
    "Notice",
    "Outcome",
    "Parts",
    "PeerView",
    "PlanShown",
    "Plex",
    "Policy",
    "PolicyFor",
    "Predicate",
    "Preview",
    "Proof",
    "PutBatch",
    "Quotas",
    "Rate",
    "Received",
    "RecordHash",
    "RecordLimits",
    "RefusedByPeer",
    "RefusingLimits",
    "Rejected",
    "Remote",
    "RemoteProtocolError",
    "RemoteStatus",
    "RepairReport",
    "Requested",
    "Restored",
    "Row",
    "RuleChanges",
    "RuleId",
    "RuleSnapshot",
    "RuleView",
    "Rules",
    "RulesWarning",
    "Seal",
    "Select",
    "Sent",
    "ServerTls",
    "Session",
    "Signer",
    "SigningKey",
    "SigningSecret",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLimits",
    "StoreReplaced",
    "StoreStat",
    "Taken",
    "Tap",
    "Ticked",
    "Tip",
    "TipPolicy",
    "TransportError",
    "TransportProof",
    "TreeResult",
    "Unwanted",
    "Usage",
    "ValidRecord",
    "Verifier",
    "VersionState",
    "WaitingLimits",
    "Walk",
    "When",
    "Writable",
    "backup",
    "browse",
    "check",
    "compact",
    "connect",
    "exchange",
    "explain",
    "fetch",
    "follow",
    "follow_rules",
    "generate_key",
    "plan",
    "preview",
    "publish",
    "query",
    "relay",
    "repair",
    "restore",
    "selector",
    "serve",
    "status",
    "validate",
    "view",
    "why",
]

_HOMES = {
    "lace.datalog.explain.absence": "Absence",
    "lace.datalog.explain.explanation": "Explanation",
    "lace.datalog.explain.proof": "Proof",
    "lace.datalog.source": "FactSource",
    "lace.errors": (
        "CursorExpired EvaluationStopped InvalidExchangePlan InvalidInput InvalidLacegram InvalidRecord"
        " InvalidStream InvalidText KeyUnavailable LaceError LimitExceeded LocalProtocolError"
        " MissingExtra NotConverged NotFound IncompleteContent RemoteProtocolError StoreError"
        " TransportError CallStopped StoreReplaced StoreDamaged StoreFull InvalidSignature"
    ),
    "lace.intake.batch": "BatchLimits",
    "lace.intake.bundles": "ImportReport",
    "lace.interlace.claims.advertisement": "Advertisement",
    "lace.interlace.events": (
        "EpochBegan Advertising Requested Received Rejected Unwanted HoldingBack Taken RefusedByPeer Sent"
        " NotAvailable Deferred FixedPoint Ticked Closed Event"
    ),
    "lace.interlace.loop.refusals": "HeldBack",
    "lace.interlace.result": "ExchangeStatus InterlaceResult",
    "lace.interlace.setup.terms": "Rules",
    "lace.limits": "EngineLimits RecordLimits StoreLimits ExplainLimits ExchangeLimits",
    "lace.notation.fact": "Fact Predicate",
    "lace.notation.identifiers": "RecordHash Verifier ExchangePlanId RuleId LacegramId",
    "lace.notation.tai": "TAI",
    "lace.policy.exposure": "Exposure",
    "lace.policy.notice": "Notice",
    "lace.policy.operand": "Module",
    "lace.porcelain.changes": "Change ChangeStream",
    "lace.porcelain.checkout": "CheckedOut",
    "lace.porcelain.completeness": "Incomplete",
    "lace.porcelain.content": "ByteReader Content Cut",
    "lace.porcelain.diagnosis": "Finding LaceStatus PlanShown PeerView check plan status view why",
    "lace.porcelain.exchange": "Exchanged fetch follow publish selector Select Expose",
    "lace.porcelain.explain": "explain",
    "lace.porcelain.export": "Writable",
    "lace.porcelain.following": "FollowedLink LinkState",
    "lace.porcelain.forgetting": "Forgotten",
    "lace.porcelain.lace": "Lace generate_key",
    "lace.porcelain.listing": "Row",
    "lace.porcelain.misuse": "RulesWarning When",
    "lace.porcelain.network": "connect relay serve",
    "lace.porcelain.node": "LinkEvent LinkEvents NodeOptions Policy PolicyFor",
    "lace.porcelain.policy": "LacePolicy",
    "lace.porcelain.preview": "browse preview",
    "lace.porcelain.putting": "FileState PutBatch TreeResult",
    "lace.porcelain.query": "Answer query",
    "lace.porcelain.remotes": "Remote LastExchange",
    "lace.porcelain.ruleviews": "RuleChanges RuleSnapshot RuleView follow_rules",
    "lace.porcelain.status": "Missing RemoteStatus",
    "lace.porcelain.tips": "Tip",
    "lace.porcelain.upkeep": "Compacted Restored backup compact repair restore",
    "lace.porcelain.verify": "Damage",
    "lace.porcelain.visibility": "NotExposed",
    "lace.porcelain.why": "Gate Walk",
    "lace.records.coordinate": "Coordinate",
    "lace.records.keys": "Signer SigningKey SigningSecret",
    "lace.records.model": "Blob Plex Seal ValidRecord Parts",
    "lace.records.tip": "CoordinateVersion JudgedVersion TipPolicy VersionState",
    "lace.records.validate": "validate",
    "lace.runtime.clock": "Clock",
    "lace.runtime.host.cursors": "CursorLimits",
    "lace.runtime.host.quotas": "Allowance Quotas",
    "lace.runtime.identity.keyring": "KeyEntry KeyRing",
    "lace.runtime.link.session": "Outcome",
    "lace.runtime.local.follow": "LocalFollow",
    "lace.runtime.local.preview": "Preview",
    "lace.runtime.node.links": "LinkInfo",
    "lace.runtime.node.metering": "Rate",
    "lace.runtime.node.metrics": "MetricsSink",
    "lace.runtime.node.node": "Hooks NodeLimits",
    "lace.runtime.node.refusing": "RefusingLimits",
    "lace.runtime.node.waitingroom": "WaitingLimits",
    "lace.runtime.trace.tap": "Tap",
    "lace.store.base": "StoreStat Entry",
    "lace.store.columns.repair.salvage": "RepairReport Lost",
    "lace.store.ledger": "Usage",
    "lace.transports.base": "ByteStream TransportProof",
    "lace.transports.tls": "ClientTls ServerTls",
}
_NAMES = {name: (module, name) for module, names in _HOMES.items() for name in names.split()}
_NAMES["open"] = ("lace.porcelain.lace", "open_lace")
_NAMES["exchange"] = ("lace.porcelain.exchange", "interlace")
_NAMES["Node"] = ("lace.porcelain.node", "LaceNode")
_NAMES["Session"] = ("lace.porcelain.session", "LaceSession")


if not TYPE_CHECKING:  # a type checker reads the imports above, so that it finds a name that is misspelt

    def __getattr__(name):
        """Import a public name from the module that defines it, and keep it here."""
        if name == "__version__":
            from importlib.metadata import version

            return version("lace-protocol")
        if name not in _NAMES:
            raise AttributeError(_no_such(name))
        module, own = _NAMES[name]
        value = globals()[name] = getattr(import_module(module), own)
        return value


def home_of(name: str) -> str:
    """The module that defines a public name; the others are ours to move and rename."""
    return _NAMES[name][0]


def _no_such(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _NAMES, 1)
    return f"module 'lace' has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
