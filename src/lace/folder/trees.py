"""What is at a path, as the three trees know it.

Rule: plain values. Two items that mean the same are the same to people, whoever wrote them and whenever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lace.records.fileform import FileKind


class Item(NamedTuple):
    """What is at a path."""

    content: str  # the hash that the content has as a Blob
    kind: FileKind = FileKind.FILE
    executable: bool = False


class ShownItem(NamedTuple):
    """An item that the lace says should be in the folder, or that was there when both agreed."""

    item: Item
    versions: tuple[str, ...]  # the heads that mean this, the newest first
    beside: str = ""  # the name of the contested file that this one shows another head of
    is_withdrawn: bool = False  # by a newer deletion that did not know it


Disk = Mapping[str, Item]
Tree = Mapping[str, ShownItem]
