"""Lace: two machines converge on a set of signed records by rules, not by endpoints."""
