"""Where an operand comes from, who looks through a view, who says an advertisement (040, P7, P8, P9, P15).

Rule: an origin is computed by the receiver from both operands; nothing that a peer or a rule text says becomes one.

Origin, viewer and source are three types although each may spell the same text: an origin names an operand inside
one exchange plan, a viewer is the principal a query view is computed for, a source stands in advertisements.
"""

from __future__ import annotations

from typing import Self

from lace.errors import InvalidExchangePlan, InvalidText, excerpt
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import LacegramId, Verifier
from lace.values import dataclass

OPAQUE_PREFIX = "Opq_"
_DIGEST_HEADING = "lace-opaque-origin/v1"


class Origin(str):
    """`Opq_<char>`: where an operand came from, for one exchange only (040-OPQ-01, 040-OPQ-09)."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The opaque label that `text` spells, or InvalidText."""
        if not is_opaque(text):
            raise InvalidText(
                "an origin label is Opq_ and one B64A character", rule="origin-label", found=excerpt(text)
            )
        return cls(text)


class Viewer(str):
    """The principal whose query view a peer's rules are evaluated in (040-TERM-07)."""

    __slots__ = ()


class Source(str):
    """The label under which a side advertises (P15)."""

    __slots__ = ()


def is_opaque(text: str) -> bool:
    """Whether a text is an opaque origin label."""
    character = text[len(OPAQUE_PREFIX) :]
    return text.startswith(OPAQUE_PREFIX) and len(character) == 1 and character in b64a.ALPHABET


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandIdentity:
    """What an opaque origin is computed from: all of it is known to both sides."""

    index: int
    facet: str
    module: LacegramId
    nonce: str = ""  # P8: empty on ILTP
    verifier: str = ""  # P8: empty on ILTP

    def digest_text(self) -> str:
        """The full opaque origin digest as 43 B64A characters (040-OPQ-02, 040-OPQ-03)."""
        lines = (
            _DIGEST_HEADING,
            str(self.index),
            self.nonce,
            self.verifier,
            self.facet,
            self.module,
            self.module.payload,
        )
        return b64a.encode(digest("\n".join(lines).encode()))  # P8: no final LF


def assign_origins(first: OperandIdentity, second: OperandIdentity) -> tuple[Origin, Origin]:
    """The labels of two operands: their characters where the full digests first differ (040-OPQ-04, 040-OPQ-11)."""
    return labels_of(first.digest_text(), second.digest_text())


def labels_of(first: str, second: str) -> tuple[Origin, Origin]:
    """Two digests as two different labels; equal digests have none (040-OPQ-05, 040-OPQ-06)."""
    for mine, theirs in zip(first, second, strict=True):
        if mine != theirs:
            return Origin(OPAQUE_PREFIX + mine), Origin(OPAQUE_PREFIX + theirs)
    raise InvalidExchangePlan(
        "the two operands have the same opaque origin digest", rule="origin-equal", found=f"digest {first}"
    )


def wire_origin(operand: OperandIdentity, verifier: Verifier | None) -> str:
    """What a sender writes as Origin: the verifier that it will prove, else its own digest's first label (P8)."""
    return str(verifier) if verifier is not None else OPAQUE_PREFIX + operand.digest_text()[0]


def read_claim(text: str, *, own: Verifier | None = None) -> Verifier | None:
    """What a received Origin claims: a verifier that must be proven by the end of hello, or nothing.

    An opaque claim is replaced by the computed label without a look at its character (040-ORIGIN-05); a claim of
    the receiver's own verifier is a claim of local origin.
    """
    if is_opaque(text):
        return None
    try:
        claimed = Verifier.parse(text)
    except InvalidText:
        raise InvalidExchangePlan(
            "an operand's origin is a verifier or an opaque label", rule="origin-claim", found=excerpt(text)
        ) from None
    if own is not None and claimed == own:
        raise InvalidExchangePlan("the peer's operand claims our own origin", rule="origin-local", found=claimed)
    return claimed


def require_proven(claimed: Verifier | None, proven: Verifier | None) -> None:
    """Raise unless a claimed verifier is the one that was proven (040-ORIGIN-06, 040-ORIGIN-08)."""
    if claimed is None or claimed == proven:
        return
    if proven is None:
        raise InvalidExchangePlan(
            "the origin claims a verifier that was not proven by the end of hello",
            rule="origin-unproven",
            found=claimed,
        )
    raise InvalidExchangePlan(
        f"the origin claims another verifier than the proven {proven}", rule="origin-disagrees", found=claimed
    )


def viewer_of(origin: Origin, proven: Verifier | None) -> Viewer:
    """Whose view a peer's rules get once its identity is settled (P9); before that there is no viewer at all."""
    return Viewer(proven if proven is not None else origin)


def source_of(origin: Origin, signer: Verifier | None) -> Source:
    """The label S of a side's advertisements (P15)."""
    return Source(signer if signer is not None else origin)
