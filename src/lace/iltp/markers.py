"""The leading bytes of stream items (060).

Rule: each marker is spelled here once, and readers match all of it: three of them share their first two bytes.
"""

from __future__ import annotations

from lace.records.grammar import MARK as RECORD

KNOT = b"\xf0\x9f\xaa\xa2: "  # 🪢 session preface
PIECE = b"\xf0\x9f\xa7\xa9: "  # 🧩 resource text block
TRAILER = "⋯".encode() + RECORD  # 010 trailer-hash form, which we do not offer (P30)
PREFACE = KNOT + b"iltp/1\n"  # 060-PREF-01
PACKED = "🗜: ".encode()  # packed fact lines, where they are agreed (070)
COMMENT = b"#"
BLANK = b"\n"

MARKERS = (KNOT, PIECE, RECORD, TRAILER)

__all__ = ["BLANK", "COMMENT", "KNOT", "MARKERS", "PACKED", "PIECE", "PREFACE", "RECORD", "TRAILER"]
