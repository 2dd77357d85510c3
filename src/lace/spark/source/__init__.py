"""Bundles as a Spark data source: read, streamed and written."""
