"""The verbs of a developer (110): `lace.open` and the `Lace` it gives."""
