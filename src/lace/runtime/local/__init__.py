"""Both sides of an exchange in one process, previews, and a relay between two peers."""
