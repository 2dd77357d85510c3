"""Addresses of records (110): hash addresses, coordinates, version selectors, prefixes, and which version is the tip.

Rule: `parse_address` and `str` are inverses; paths obey the rules of 010.
"""

from __future__ import annotations

from lace.errors import InvalidRecord, InvalidText, excerpt
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.notation.text import require_nfc
from lace.records.grammar import check_controls, check_path
from lace.values import dataclass

_SELECTOR = "/|/"


@dataclass(frozen=True, slots=True)
class HashAddress:
    """`////<hash-text>`: that one record or nothing (110-RES-01)."""

    hash: RecordHash

    def __str__(self) -> str:
        return f"////{self.hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChoice:
    """`/|/plex…` or `/|/seal…`: which of a coordinate's records are meant; what is None is free."""

    sealed: bool
    verifier: Verifier | None = None
    tai: TAI | None = None
    hash: RecordHash | None = None

    def __str__(self) -> str:
        parts = ["seal" if self.sealed else "plex", self.verifier, self.tai, self.hash]
        return _SELECTOR + "/".join(part for part in parts if part is not None)

    def admits(self, record_hash: RecordHash, tai: str, verifier: str | None) -> bool:
        """Whether a record of the coordinate is among those meant."""
        return (
            record_hash.type == ("S" if self.sealed else "P")
            and self.verifier in (None, verifier)
            and self.tai in (None, tai)
            and self.hash in (None, record_hash)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """`//group//app//name`, with a version selector or, without one, the tip (110-VER-01)."""

    group: str
    app: str
    name: str
    version: VersionChoice | None = None

    def __str__(self) -> str:
        return f"//{self.group}//{self.app}//{self.name}{self.version or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What a listing asks for: all, a Group, a Group and App, what lies below one of the three, or one coordinate.

    `under` says that the last path ended in `/`: only paths below it are meant (110-VERB-02).
    """

    group: str | None = None
    app: str | None = None
    name: str | None = None
    under: bool = False
    version: VersionChoice | None = None

    def __str__(self) -> str:
        parts = [part for part in (self.group, self.app, self.name) if part is not None]
        if not parts:
            return "//"
        end = "/" if self.under else "" if len(parts) == 3 else "//"
        return "".join(f"//{part}" for part in parts) + end + str(self.version or "")

    def covers(self, group: str, app: str, name: str) -> bool:
        """Whether a record of these paths is listed."""
        asked = [
            (wanted, found)
            for wanted, found in zip((self.group, self.app, self.name), (group, app, name), strict=True)
            if wanted is not None
        ]
        *exact, last = asked or [("", "")]
        if any(wanted != found for wanted, found in exact):
            return False
        return last[1].startswith(f"{last[0]}/") if self.under else last[0] == last[1]

    @property
    def space(self) -> tuple[str | None, str | None]:
        """The one Group and App that it is in, as far as they are given."""
        group = None if self.under and self.app is None else self.group
        return group, None if self.under and self.name is None else self.app


Address = HashAddress | Coordinate


HASH_ADDRESS = "////"  # 110-ADDR-03


def is_place(text: str) -> bool:
    """Whether a text names the records at a coordinate or below it, and not one record."""
    return text.startswith("//") and not text.startswith(HASH_ADDRESS)


def parse_address(text: str) -> Address:
    """A hash address or a coordinate, or InvalidText."""
    if text.startswith(HASH_ADDRESS):
        return HashAddress(RecordHash.parse(text.removeprefix(HASH_ADDRESS)))
    return parse_coordinate(text)


def parse_coordinate(text: str) -> Coordinate:
    """A coordinate, or InvalidText."""
    path, version = _split_version(text)
    parts = _paths(path, text)
    if len(parts) != 3:  # 110-ADDR-05
        raise _malformed(text, "a coordinate is //group//app//name")
    return Coordinate(group=parts[0], app=parts[1], name=parts[2], version=version)


def parse_prefix(text: str) -> Prefix:
    """What a listing is asked for: `//`, `//g//`, `//g//a//`, a coordinate, or with `/` at its end what lies below."""
    path, version = _split_version(text)
    if path == "//" and version is None:
        return Prefix()
    open_ended = path.endswith("//")
    under = path.endswith("/") and not open_ended
    parts = _paths(path.removesuffix("//") if open_ended else path.removesuffix("/"), text)
    named = len(parts) == 3
    if len(parts) > 3 or (open_ended and named) or (version and (under or not named)):
        raise _malformed(
            text, "a prefix is //, //group//, //group//app//, a coordinate, or one of them below a final /"
        )
    group, app, name = (*parts, None, None)[:3]
    return Prefix(group=group, app=app, name=name, under=under, version=version)


def _split_version(text: str) -> tuple[str, VersionChoice | None]:
    path, bar, _ = text.partition("/|")  # no path holds `|`, so the first one begins the selector
    return (path, _parse_version(text[len(path) :])) if bar else (path, None)


def _paths(path: str, text: str) -> list[str]:
    if not path.startswith("//"):
        raise _malformed(text, "a coordinate begins with //")
    parts = path[2:].split("//")
    for field, part in zip(("Group", "App", "Name"), parts, strict=False):
        require_nfc(part, field)
        try:
            check_controls(part, field)
            check_path(field, part)  # 110-ADDR-06
        except InvalidRecord as error:
            raise InvalidText(error.message, rule="coordinate", place=field, found=excerpt(text)) from None
    return parts


def _parse_version(text: str) -> VersionChoice:
    """The selector that begins with `/|`; any other text there is refused (110-VER-10)."""
    parts = text.removeprefix(_SELECTOR).split("/")
    if not text.startswith(_SELECTOR) or parts[0] not in ("plex", "seal"):
        raise _malformed(text, "a version selector is /|/plex… or /|/seal…")
    sealed = parts[0] == "seal"
    rest = parts[1:]
    verifier = Verifier.parse(rest.pop(0)) if sealed and rest else None
    tai = TAI.parse(rest.pop(0)) if rest else None
    record_hash = RecordHash.parse(rest.pop(0)) if rest else None
    if rest or (record_hash is not None and record_hash.type != ("S" if sealed else "P")):
        raise _malformed(text, "a version selector ends with the hash of a record of its type")
    return VersionChoice(sealed=sealed, verifier=verifier, tai=tai, hash=record_hash)


def _malformed(text: str, message: str) -> InvalidText:
    return InvalidText(message, rule="coordinate", found=excerpt(text))
