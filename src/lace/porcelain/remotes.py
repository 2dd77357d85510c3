"""Remotes: the peers that a lace knows by name, where to find them, and how an exchange with each last ended.

Rule: a remote is kept in the settings of its lace, goes with its backup, and is never sent. It names a key by its
verifier, so that renaming the key in the ring changes nothing; it holds no secret.

    with lace.open("notes.lace") as notes:
        add_remote(notes.store, Remote("anna", "wss:anna.example", trust=(verifier,)))
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from lace.errors import InvalidText, NotFound, StoreError
from lace.iltp.address import Address, StdioAddress, parse_address
from lace.notation import b64a
from lace.notation.identifiers import Verifier
from lace.runtime.link.session import Outcome
from lace.store.base import RecordStore
from lace.values import dataclass

NAMESPACE = "remotes"  # of the settings: one entry for each remote
LAST = "remotes-last"  # how the last exchange with each ended
REMOTE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LACE = ".lace"
MOST_REFUSED_KEPT = 1000  # records that were refused, of one exchange


@dataclass(frozen=True, slots=True)
class Remote:
    """A peer under the name that this lace has for it."""

    name: str
    address: str  # as the user wrote it; or the absolute path of a lace on this machine
    key: Verifier | None = None  # prove our identity with this key of the ring
    trust: tuple[Verifier, ...] = ()  # exchange only if the peer proves one of these
    pin: bytes | None = None  # over wss: accept only this certificate
    ca: Path | None = None  # over wss: accept certificates of these CAs

    @property
    def place(self) -> Address | Path:
        """Where to find it: an address, or a lace on this machine."""
        return place_of(self.address)

    def to_json(self) -> dict[str, object]:
        """Everything that is known of it, under names for programs; the same form is stored."""
        return {
            "name": self.name,
            "address": self.address,
            "key": self.key,
            "trust": list(self.trust),
            "pin": None if self.pin is None else b64a.encode(self.pin),
            "ca": None if self.ca is None else str(self.ca),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LastExchange:
    """How an exchange with a remote ended."""

    at: str  # TAI
    ending: str
    detail: str = ""  # why it was aborted, or why there was no connection
    fixed_point_at: str = ""  # the last time that neither wanted more; empty if that never happened
    peer: str = ""  # the verifier that it proved
    received: int = 0
    sent: int = 0
    refused_here: dict[str, str]  # what came and was not kept, with the reason
    refused_there: dict[str, str]
    held_back_here: int = 0  # records that were wanted but not asked for
    held_back_there: int = 0
    incomplete: int = 0  # contents that lack parts
    store_record_id: int = 0  # the newest record here when it ended
    plan: str = ""  # the exchange plan, which says whether both sides brought the same rules

    @property
    def is_equal(self) -> bool:
        """Whether at that time both sides held all that both rules select."""
        unequal = self.refused_here or self.refused_there or self.held_back_here or self.held_back_there
        return self.at == self.fixed_point_at and not unequal and not self.incomplete

    def to_json(self) -> dict[str, object]:
        """Under names for programs; the same form is stored."""
        return {name: getattr(self, name) for name in _LAST_FIELDS}


_LAST_FIELDS = tuple(LastExchange.__dataclass_fields__)


def place_of(text: str) -> Address | Path:
    """The address or the path of a lace that a text spells; InvalidText if neither."""
    if is_lace_path(text):
        return Path(text)
    address = parse_address(text)
    if isinstance(address, StdioAddress):
        raise InvalidText("a remote is an address to dial; stdio needs a command to start", rule="remote", found=text)
    return address


def is_lace_path(text: str) -> bool:
    """Whether a text names a lace on this machine rather than an address."""
    return text.endswith(_LACE) or Path(text).is_file()


def is_remote_name(text: str) -> bool:
    """Whether a remote may have this name: no address and no file of a lace looks like it."""
    return REMOTE_NAME.fullmatch(text) is not None and text != "stdio" and not text.endswith(_LACE)


def add_remote(store: RecordStore, remote: Remote, *, replace: bool = False) -> None:
    """Keep a remote under a name that is free."""
    if not is_remote_name(remote.name):
        what = "the name of a remote is 1 to 64 letters, digits, dots, dashes or underscores and no .lace at its end"
        raise InvalidText(what, rule="remote-name", found=remote.name[:80])
    if isinstance(remote.place, Path) and (remote.key or remote.trust or remote.pin or remote.ca):
        raise InvalidText("a lace on this machine proves nothing and is asked for no proof", rule="remote")
    if not replace and store.get_setting(NAMESPACE, remote.name) is not None:
        error = StoreError(f"there is a remote named {remote.name!r} already; nothing was changed")
        error.add_note("--replace changes it")
        raise error
    store.put_setting(NAMESPACE, remote.name, json.dumps(remote.to_json()).encode())
    if replace:
        store.put_setting(LAST, remote.name, None)


def remove_remote(store: RecordStore, name: str) -> None:
    """Forget a remote; NotFound if there is none of this name. Its records stay."""
    find_remote(store, name)
    store.put_setting(NAMESPACE, name, None)
    store.put_setting(LAST, name, None)


def remotes_of(store: RecordStore) -> list[Remote]:
    """Every remote of a lace, by name."""
    return [_parse(name, kept) for name, kept in store.settings(NAMESPACE).items()]


def find_remote(store: RecordStore, name: str) -> Remote:
    """The remote of a name; NotFound, with the names that are nearest, if there is none."""
    kept = store.get_setting(NAMESPACE, name)
    if kept is not None:
        return _parse(name, kept)
    from lace.policy.lint import nearest  # only who mistyped needs it

    names = list(store.settings(NAMESPACE))
    error = NotFound(f"there is no remote named {name!r}")
    known = f"the remotes are {', '.join(names)}" if names else "`lace remote add` makes one"
    error.add_note(nearest(name, names) or known)
    raise error


def note_exchange(store: RecordStore, name: str, outcome: Outcome, at: str, incomplete: int = 0) -> LastExchange:
    """Remember how an exchange with a remote ended."""
    result, before = outcome.result, last_exchange(store, name)
    there = {**result.refused_hashes, **result.held_back_by_peer.records}
    reached = at if outcome.is_complete and result.fixed_point else (before.fixed_point_at if before else "")
    last = LastExchange(
        at=at,
        ending=outcome.status,
        detail=outcome.detail,
        fixed_point_at=reached,
        peer=result.peer_verifier or "",
        received=len(result.received_hashes),
        sent=len(result.sent_hashes),
        refused_here=_first(result.rejected_hashes.items()),
        refused_there=_first(there.items()),
        held_back_here=sum(result.held_back.values()),
        held_back_there=sum(result.held_back_by_peer.counts.values()),
        incomplete=incomplete,
        store_record_id=store.high_water(),
        plan=result.exchange_plan_id or "",
    )
    store.put_setting(LAST, name, json.dumps(last.to_json()).encode())
    return last


def note_failure(store: RecordStore, name: str, detail: str, at: str) -> None:
    """Remember that there was no exchange with a remote, and why; what was known of its last fixed point stays."""
    before = last_exchange(store, name)
    failed = LastExchange(
        at=at,
        ending="not connected",
        detail=detail,
        fixed_point_at=before.fixed_point_at if before else "",
        peer=before.peer if before else "",
        refused_here=before.refused_here if before else {},
        refused_there=before.refused_there if before else {},
        store_record_id=before.store_record_id if before else 0,
    )
    store.put_setting(LAST, name, json.dumps(failed.to_json()).encode())


def last_exchange(store: RecordStore, name: str) -> LastExchange | None:
    """How the last exchange with a remote ended; None if there was none."""
    kept = store.get_setting(LAST, name)
    return None if kept is None else LastExchange(**json.loads(kept))


def _first(rows: Iterable[tuple[object, object]]) -> dict[str, str]:
    return {str(record): str(reason) for (record, reason), _ in zip(rows, range(MOST_REFUSED_KEPT), strict=False)}


def _parse(name: str, kept: bytes) -> Remote:
    fields = json.loads(kept)
    return Remote(
        name,
        str(fields["address"]),
        key=Verifier.parse(fields["key"]) if fields["key"] else None,
        trust=tuple(map(Verifier.parse, fields["trust"])),
        pin=b64a.decode(fields["pin"]) if fields["pin"] else None,
        ca=Path(fields["ca"]) if fields["ca"] else None,
    )
