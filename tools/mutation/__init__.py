"""Mutants of the pure packages: which there are, which tests reach them, and whether one of those notices."""
