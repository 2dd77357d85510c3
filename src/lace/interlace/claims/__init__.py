"""Advertisements: a peer's claims, their partitions and roots, and what is kept of them (050, P14, P16)."""
