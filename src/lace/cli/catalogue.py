"""Every command of `lace` by section: its name, the module that holds it, and its line in `lace --help`.

Rule: this table is all that `lace --help` reads. A module named here defines `command`, a click command whose own
first help line says the same as this one (a test compares them).
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One command: where it stands in the help page and where its code is."""

    section: str
    name: str
    module: str
    summary: str


CATALOGUE = (
    Entry("Keys", "key", "lace.cli.key", "Make, list, show and import signing keys."),
    Entry("More", "completion", "lace.cli.completion", "Print the shell completion script for bash, zsh or fish."),
    Entry("More", "help", "lace.cli.help", "Explain a command or a topic."),
)

SECTIONS = ("Records", "Stores", "Keys", "Rules", "Exchange", "Pipeline", "More")
BY_NAME = {entry.name: entry for entry in CATALOGUE}
