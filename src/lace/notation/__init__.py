"""The small notations every layer writes in: text, B64A, digests, TAI, identifiers, fact lines, byte sources."""
