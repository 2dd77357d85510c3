"""Setup and hello: how two sides agree on a plan, identities and limits (050)."""
