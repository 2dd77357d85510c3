"""The dictionary of a store file: value texts and their codes."""
