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
    Entry("Records", "put", "lace.cli.put", "Store a file, a directory or standard input under a coordinate."),
    Entry("Records", "get", "lace.cli.get", "Write the content of a record to standard output or a file."),
    Entry("Records", "ls", "lace.cli.ls", "List records, by coordinate, oldest first."),
    Entry("Records", "cat", "lace.cli.cat", "Write the stored bytes of records, headers and all."),
    Entry("Records", "facts", "lace.cli.facts", "Print the facts of one record or of all, one a line."),
    Entry("Records", "find", "lace.cli.find", "Find records by the words of their names, headers and text."),
    Entry("Records", "rm", "lace.cli.rm", "Remove records and their facts."),
    Entry("Stores", "init", "lace.cli.init", "Create an empty lace."),
    Entry("Stores", "import", "lace.cli.import_", "Store the records of bundles, refusing the bad ones."),
    Entry("Stores", "export", "lace.cli.export", "Write records to a bundle."),
    Entry("Stores", "stat", "lace.cli.stat", "Show how much a lace holds."),
    Entry("Stores", "quota", "lace.cli.quota", "Show what peers have brought into a lace, by account."),
    Entry("Stores", "backup", "lace.cli.backup", "Copy a lace whole, also while it is in use."),
    Entry("Stores", "restore", "lace.cli.restore", "Make a lace from a backup."),
    Entry("Stores", "compact", "lace.cli.compact", "Write a lace anew without what was removed from it."),
    Entry("Stores", "repair", "lace.cli.repair", "Save all that can be read of a damaged lace."),
    Entry("Stores", "verify", "lace.cli.verify", "Re-hash every record, re-verify every signature."),
    Entry("Stores", "index", "lace.cli.index", "Let a lace be searched by words."),
    Entry("Stores", "inspect", "lace.cli.inspect", "Look into laces, archives and captured streams from a browser."),
    Entry("Keys", "key", "lace.cli.key", "Make, list, show, import and lock signing keys."),
    Entry("Exchange", "interlace", "lace.cli.interlace", "Exchange records with a peer until neither wants more."),
    Entry("Exchange", "follow", "lace.cli.follow", "Keep an exchange with a peer open and print what happens."),
    Entry("Exchange", "serve", "lace.cli.serve", "Accept peers and exchange with each of them until stopped."),
    Entry("Exchange", "browse", "lace.cli.browse", "List what a peer offers to us, to pick from."),
    Entry("Exchange", "why", "lace.cli.why", "Say at which gate a record stops on its way to a peer."),
    Entry("Exchange", "store", "lace.cli.store", "Send records of a lace to a peer."),
    Entry("Exchange", "tap", "lace.cli.tap", "Show a stream decoded, with sizes and times."),
    Entry("Exchange", "cert", "lace.cli.cert", "Make a self-signed certificate for wss and print its pin."),
    Entry("Rules", "check", "lace.cli.check", "Check rule files and show every error."),
    Entry("Rules", "explain", "lace.cli.explain", "Show why a fact holds, or why it does not."),
    Entry("Rules", "fmt", "lace.cli.fmt", "Write rule files in canonical order and spacing."),
    Entry("Rules", "id", "lace.cli.id", "Print the identifier of a rule file."),
    Entry("Rules", "rules", "lace.cli.templates", "List and write rule files to start from."),
    Entry("Rules", "test", "lace.cli.test", "Test rules against cases: given records, expected rows."),
    Entry("Rules", "query", "lace.cli.query", "Show the facts that rules derive."),
    Entry("Pipeline", "archive", "lace.cli.archive", "Keep archives of any size: add, look up, evaluate, compact."),
    Entry("Pipeline", "pipeline", "lace.cli.pipeline", "Validate, index, evaluate and reconcile archives on Spark."),
    Entry("Exchange", "plan", "lace.cli.plan", "Show the exchange plan of two selectors and the rules one side runs."),
    Entry("Exchange", "view", "lace.cli.view", "Show exactly what a peer's rules could see of a lace."),
    Entry("More", "completion", "lace.cli.completion", "Print the shell completion script for bash, zsh or fish."),
    Entry("More", "help", "lace.cli.help", "Explain a command or a topic."),
)

SECTIONS = ("Records", "Stores", "Keys", "Rules", "Exchange", "Pipeline", "More")
BY_NAME = {entry.name: entry for entry in CATALOGUE}
