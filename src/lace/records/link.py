"""Record links (010, P28): headers that point at other records.

Rule: a header is a link or it is not; a malformed one is still a header and no error.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lace.notation import b64a
from lace.records.model import Header

LINK_SUFFIX = "+Link"  # 010-LINK-01
_TARGET = re.compile(rf"[A-Za-z]\.(?!\.){b64a.PATTERN}\.(?s:.+)")  # 010-LINK-03


class LinkWords(NamedTuple):
    """What a well-formed link says."""

    data: str
    target: str


def is_target(text: str) -> bool:
    """Whether a text is `X.<b64a>.<suffix>` with canonical B64A, of any type and suffix (010-LINK-03)."""
    return _TARGET.fullmatch(text) is not None


def parse_link(name: str, value: str) -> LinkWords | None:
    """The link that a header spells, or None (010-LINK-04 to 010-LINK-06)."""
    if not name.endswith(LINK_SUFFIX):
        return None
    data, space, target = value.rpartition(" ")  # P28: the last space splits
    return LinkWords(data, target) if space and data and is_target(target) else None


def link_header(tag: str, target: str) -> Header:
    """The header of a link with data word `tag`."""
    header = (LINK_SUFFIX, f"{tag} {target}")
    if parse_link(*header) is None:
        raise ValueError(f"{header} is not a record link")
    return header
