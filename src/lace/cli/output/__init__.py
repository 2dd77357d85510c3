"""How commands print, report progress, log and fail."""
