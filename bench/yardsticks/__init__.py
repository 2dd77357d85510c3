"""Other programs for the same task, to measure ours against."""
