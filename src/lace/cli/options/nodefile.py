"""`lace.toml`: a node with its listeners, its peers and what each of them gets.

Rule: an unknown name, a wrong type or a missing value is reported with its place in the file; paths are relative to it.

    store = "notes.lace"
    listen = ["unix:/run/lace/notes.sock", "wss:0.0.0.0:4790"]
    select = ["//u//"]                 # all, a coordinate, a hash or a rule file; several join
    expose = ["selected"]              # all, selected, none or a rule file; several narrow each other
    key = "me"
    trust = ["V.….H3"]
    certificate = "cert.pem"
    certificate_key = "key.pem"
    names = ["wss:notes.example.com"]
    origins = ["https://notes.example.com"]
    proxies = ["10.0.0.1"]             # these may say who dialled; "unix" is a proxy in front of our unix socket
    metrics_port = 9464
    log = "json"

    [uids]
    1000 = "V.….H3"

    [limits]
    max_links = 64

    [quotas]
    peer = "64MiB, 10000 records"

    [rule_limits]
    max_tuple_arity = 14

    [[peer]]
    address = "wss:other.example.com"
    select = ["//u//ding//"]
    pin = "…"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lace.cli.options.arguments import not_a_file
from lace.datalog.language.limiting import limits_with
from lace.errors import InvalidInput, InvalidText
from lace.limits import HORIZON_S, EngineLimits
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.iltp.address import Address
    from lace.runtime.node.node import NodeLimits

LIMITS = (
    "max_links",
    "max_links_per_peer",
    "reserved_links",
    "yield_after_s",
    "retry_after_s",
    "max_rest_s",
    "max_held_bytes",
    "max_buffered_bytes",
    "threads",
    "store_poll_s",
    "shutdown_grace_s",
    "shutdown_most_s",
    "backoff_first_s",
    "backoff_most_s",
    "backoff_over_s",
    "max_cursors",
    "max_kept_cursor_bytes",
    "max_cursor_age_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWords:
    """A selector and an exposure as the file spells them."""

    select: Sequence[str] = ()
    expose: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerEntry:
    """One `[[peer]]`."""

    address: Address
    policy: PolicyWords
    trust: Sequence[str] = ()
    pin: str | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFile:
    """A whole file."""

    store: Path
    listen: Sequence[Address] = ()
    policy: PolicyWords = field(default_factory=PolicyWords)
    key: str | None = None
    trust: Sequence[str] = ()
    certificate: Path | None = None
    certificate_key: Path | None = None
    names: Sequence[Address] = ()
    origins: Sequence[str] = ()
    proxies: Sequence[str] = ()
    loopback_is_network: bool = False
    takes_from_strangers: bool = False
    metrics_port: int | None = None
    log: str = "text"
    speaks: str = "all"  # or "standard": no capability is announced (P33)
    unix_mode: int = 0o600
    uids: Mapping[int, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    quotas: Mapping[str, str] = field(default_factory=dict)
    horizon_s: float = HORIZON_S
    rule_limits: EngineLimits = field(default_factory=EngineLimits)
    peers: Sequence[PeerEntry] = ()

    def node_limits(self) -> NodeLimits:
        """The default limits, overridden by those of the file."""
        from lace.runtime.host.cursors import CursorLimits
        from lace.runtime.node.node import NodeLimits

        cursors = {name: value for name, value in self.limits.items() if "cursor" in name}
        others = {name: value for name, value in self.limits.items() if "cursor" not in name}
        # Names and number types were checked.
        return NodeLimits(cursors=CursorLimits(**cursors), **others)  # type: ignore[arg-type]


def read_node_file(path: Path) -> NodeFile:
    """The node that a file describes."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidText(f"not a TOML file: {error}", rule="config", place=str(path)) from error
    return _TableReader(path, table).node()


class _TableReader:
    """Takes values of the right type out of a table, and reports what is left."""

    def __init__(self, path: Path, table: dict[str, Any], place: str = "") -> None:
        self._path = path
        self._table = dict(table)
        self._place = place

    def node(self) -> NodeFile:
        store = self._file("store")
        if store is None:
            self._refuse("store", "the path of the lace is missing")
        if problem := not_a_file(str(store)):
            self._refuse("store", problem)
        found = NodeFile(
            store=store,
            listen=self._addresses("listen"),
            policy=self._policy(),
            key=self._text("key"),
            trust=self._texts("trust"),
            certificate=self._file("certificate"),
            certificate_key=self._file("certificate_key"),
            names=self._addresses("names"),
            origins=self._texts("origins"),
            proxies=self._proxies(),
            loopback_is_network=self._flag("loopback_is_network"),
            takes_from_strangers=self._flag("take_from_strangers"),
            metrics_port=self._number("metrics_port"),
            log=self._choice("log", ("text", "json")),
            speaks=self._choice("speaks", ("all", "standard")),
            unix_mode=self._mode("unix_mode"),
            uids=self._uids(),
            limits=self._limits(),
            quotas=self._quotas(),
            horizon_s=self._seconds("horizon_s", HORIZON_S),
            rule_limits=limits_with(EngineLimits(), self._take("rule_limits", dict, {}), str(self._path)),
            peers=[self._peer(number, table) for number, table in enumerate(self._take("peer", list, []), start=1)],
        )
        self._require_empty()
        if (found.certificate is None) != (found.certificate_key is None):
            self._refuse("certificate", "certificate and certificate_key must be given together")
        return found

    def _peer(self, number: int, table: object) -> PeerEntry:
        if not isinstance(table, dict):
            self._refuse("peer", "peers are written as [[peer]] tables")
        reader = _TableReader(self._path, table, f"peer {number}: ")
        address = reader._address("address", reader._text("address") or "")
        entry = PeerEntry(
            address=address,
            policy=reader._policy(),
            trust=reader._texts("trust"),
            pin=reader._text("pin"),
            ca=reader._file("ca"),
        )
        reader._require_empty()
        return entry

    def _policy(self) -> PolicyWords:
        return PolicyWords(select=self._words("select"), expose=self._words("expose"))

    def _words(self, name: str) -> list[str]:
        """Policy words; the name of a file is relative to the configuration."""
        beside = self._path.parent
        return [str(beside / word) if (beside / word).is_file() else word for word in self._texts(name)]

    def _proxies(self) -> list[str]:
        from lace.transports.proxied import proxy_name

        try:
            return [proxy_name(text) for text in self._texts("proxies")]
        except InvalidText as error:
            self._refuse("proxies", str(error))

    def _uids(self) -> dict[int, str]:
        table = self._take("uids", dict, {})
        if not all(uid.isdigit() and isinstance(verifier, str) for uid, verifier in table.items()):
            self._refuse("uids", "each line must be a user id and a verifier")
        return {int(uid): verifier for uid, verifier in table.items()}

    def _limits(self) -> dict[str, float]:
        table: dict[str, Any] = self._take("limits", dict, {})
        for name, value in table.items():
            if name not in LIMITS:
                self._refuse(f"limits.{name}", f"the limits are {', '.join(LIMITS)}")
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if (not is_number and not (name.endswith("_s") and isinstance(value, float))) or value <= 0:
                self._refuse(f"limits.{name}", "a limit is a number above 0")
        return dict(table)

    def _quotas(self) -> dict[str, str]:
        from lace.runtime.host.quotas import FORM, quotas_with

        table: dict[str, Any] = self._take("quotas", dict, {})
        for name, text in table.items():
            if not isinstance(text, str):
                self._refuse(f"quotas.{name}", f"this must be a text: {FORM}")
            try:
                quotas_with([(name, text)])
            except InvalidText as error:
                self._refuse(f"quotas.{name}", str(error))
        return dict(table)

    def _seconds(self, name: str, default: float) -> float:
        value = self._table.pop(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            self._refuse(name, "this must be a number of seconds")
        return float(value)

    def _take(self, name: str, kind: type, default: Any) -> Any:
        value = self._table.pop(name, default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            self._refuse(name, f"this must be a {kind.__name__}")
        return value

    def _flag(self, name: str) -> bool:
        value = self._table.pop(name, False)
        if not isinstance(value, bool):
            self._refuse(name, "this must be true or false")
        return value

    def _text(self, name: str) -> str | None:
        text = self._take(name, str, None)
        return None if text is None else str(text)

    def _texts(self, name: str) -> list[str]:
        values = self._take(name, list, [])
        if not all(isinstance(value, str) for value in values):
            self._refuse(name, "this must be a list of texts")
        return list(values)

    def _number(self, name: str) -> int | None:
        value = self._take(name, int, None)
        return None if value is None else int(value)

    def _choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self._text(name) or choices[0]
        if value not in choices:
            self._refuse(name, f"this must be one of {', '.join(choices)}")
        return value

    def _mode(self, name: str) -> int:
        text = self._text(name) or "600"
        if len(text) > 4 or not all(digit in "01234567" for digit in text):
            self._refuse(name, 'a mode is an octal text such as "660"')
        return int(text, 8)

    def _file(self, name: str) -> Path | None:
        text = self._text(name)
        return None if text is None else self._path.parent / text

    def _addresses(self, name: str) -> list[Address]:
        return [self._address(name, text) for text in self._texts(name)]

    def _address(self, name: str, text: str) -> Address:
        from lace.iltp.address import parse_address

        try:
            return parse_address(text)
        except InvalidInput as error:
            self._refuse(name, str(error))

    def _require_empty(self) -> None:
        for name in self._table:
            self._refuse(name, "there is no such setting")

    def _refuse(self, name: str, message: str) -> NoReturn:
        raise InvalidText(message, rule="config", place=f"{self._path}: {self._place}{name}")
