"""The facts of runs of records as columns of codes."""
