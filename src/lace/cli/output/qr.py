"""Texts as QR codes, for a terminal.

Rule: drawn from half blocks, light on dark, so that a camera reads it on any background.
"""

from __future__ import annotations

import io


def qr_code(text: str) -> str:
    """A text as a QR code."""
    import segno

    drawn = io.StringIO()
    segno.make(text, error="l").terminal(out=drawn, compact=True, border=2)
    return drawn.getvalue().rstrip("\n")
