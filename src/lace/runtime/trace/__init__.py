"""Captured streams, the listeners that capture them, and what each item means in words."""
