"""Exchanges as commands run them: with a peer elsewhere, between two laces here, between two peers, or as a preview."""
