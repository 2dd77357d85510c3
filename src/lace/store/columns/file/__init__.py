"""A store file: its connection, tables, openers, and how files are put in place."""
