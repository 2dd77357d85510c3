"""The key ring and the passphrases that lock its keys."""
