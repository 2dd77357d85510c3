"""The rule language (030): text, tree, canonical form, checks, and what the builtins mean."""
