"""Checking, copying, compacting and salvaging store files."""
