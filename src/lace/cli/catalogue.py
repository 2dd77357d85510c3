"""Every command of `lace` by section: its name, the module that holds it, and its line in `lace --help`.

Rule: this table is all that `lace --help` reads. A module named here defines `command`, a click command whose own
first help line says the same as this one (a test compares them).
"""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One command: its place in the help page and the file that holds its code."""

    section: str
    name: str
    file: str
    summary: str

    @property
    def module(self) -> str:
        """The module that defines the command."""
        return f"lace.cli.commands.{self.file}"


CATALOGUE = (
    Verb("Records", "put", "put", "Store a file, a directory or standard input under a coordinate."),
    Verb("Records", "get", "get", "Write the content of a record to standard output or a file."),
    Verb("Records", "checkout", "checkout", "Write records as files into a folder."),
    Verb("Records", "sync", "sync", "Keep a folder and a lace the same, and both the same as a peer's."),
    Verb(
        "Records",
        "mount",
        "mount",
        "Show a lace as read-only files in a folder, and fetch content when a file is opened.",
    ),
    Verb("Records", "free", "free", "Remove content that a peer has too; its files stay in sight."),
    Verb("Records", "conflicts", "conflicts", "List the files of a folder that are in conflict."),
    Verb("Records", "ls", "ls", "List records, by coordinate, oldest first."),
    Verb("Records", "cat", "cat", "Write the stored bytes of records, headers and all."),
    Verb("Records", "facts", "facts", "Print the facts of one record or of all, one per line."),
    Verb("Records", "find", "find", "Find records by the words of their names, headers and text."),
    Verb("Records", "log", "log", "Show the versions of a coordinate, and what each counts for."),
    Verb("Records", "diff", "diff", "Show what changed between two versions."),
    Verb("Records", "revert", "revert", "Make an earlier version the tip again."),
    Verb("Records", "retract", "retract", "Withdraw coordinates or versions, for everyone who has them."),
    Verb("Records", "undo", "undo", "Take back a retraction."),
    Verb("Records", "forget", "forget", "Remove records for good: they never come in again."),
    Verb("Records", "rm", "rm", "Remove records and their facts."),
    Verb("Stores", "init", "init", "Create an empty lace."),
    Verb("Stores", "import", "import_", "Store the records of bundles, refusing the bad ones."),
    Verb("Stores", "export", "export", "Write records to a bundle."),
    Verb("Stores", "stat", "stat", "Show how much a lace holds."),
    Verb("Stores", "quota", "quota", "Show how much peers have stored in a lace, by account."),
    Verb("Stores", "backup", "backup", "Copy a whole lace, even while it is in use."),
    Verb("Stores", "restore", "restore", "Create a lace from a backup."),
    Verb("Stores", "compact", "compact", "Rewrite a lace without what was removed from it."),
    Verb("Stores", "gc", "gc", "Remove what no rule keeps."),
    Verb("Stores", "repair", "repair", "Salvage everything readable from a damaged lace."),
    Verb("Stores", "verify", "verify", "Re-hash every record, re-verify every signature."),
    Verb("Stores", "doctor", "doctor", "Look for what may go wrong with a lace and the machine under it."),
    Verb("Stores", "upgrade", "upgrade", "Bring the file of a lace up to date."),
    Verb("Stores", "index", "index", "Make a lace searchable by words."),
    Verb(
        "Stores",
        "inspect",
        "inspect",
        "Look into laces, archives and captured streams from a browser.",
    ),
    Verb("Keys", "key", "key", "Create, list, show, import, lock and back up signing keys."),
    Verb("Keys", "name", "name", "Give names to keys, and show what others call them."),
    Verb("Exchange", "interlace", "interlace", "Exchange records with a peer until neither wants more."),
    Verb("Exchange", "follow", "follow", "Keep an exchange with a peer open and print what happens."),
    Verb("Exchange", "serve", "serve", "Accept peers and exchange with each of them until stopped."),
    Verb("Exchange", "browse", "browse", "List what a peer offers, to pick from."),
    Verb("Exchange", "why", "why", "Show at which gate a record stops on its way to a peer."),
    Verb("Exchange", "store", "store", "Send records of a lace to a peer."),
    Verb("Exchange", "remote", "remote", "Give names to peers: where they are, and what proves who they are."),
    Verb(
        "Exchange",
        "status",
        "status",
        "Show whether a lace and its remotes hold the same, and what is missing where.",
    ),
    Verb("Exchange", "peers", "peers", "Show who is connected to the nodes that run over a lace."),
    Verb("Exchange", "top", "top", "Watch the links of running nodes: phases, rates, what waits, what was refused."),
    Verb("Exchange", "reload", "reload", "Have running nodes read their settings again, without losing links."),
    Verb("Exchange", "tap", "tap", "Show a stream decoded, with sizes and times."),
    Verb("Exchange", "cert", "cert", "Create a self-signed certificate for wss and print its pin."),
    Verb("People", "invite", "invite", "Print a line that lets somebody in."),
    Verb(
        "People",
        "join",
        "join",
        "Join a group by an invitation: make the lace and a key if there is none, and sync for the first time.",
    ),
    Verb("People", "member", "member", "List, add and end memberships, and let people come back."),
    Verb("People", "device", "device", "Add, list and end the devices of a person."),
    Verb("People", "admin", "admin", "Let members be admins, and end that."),
    Verb("People", "policy", "policy", "Set, show, edit and check the policy that a lace carries."),
    Verb("Rules", "check", "check", "Check rule files and show every error."),
    Verb("Rules", "explain", "explain", "Show why a fact holds, or why it does not."),
    Verb("Rules", "fmt", "fmt", "Write rule files in canonical order and spacing."),
    Verb("Rules", "id", "id", "Print the identifier of a rule file."),
    Verb("Rules", "rules", "templates", "List and write rule files to start from."),
    Verb("Rules", "test", "test", "Test rules against cases: given records, expected rows."),
    Verb("Rules", "simulate", "simulate", "Play laces, links and faults from a file as a test."),
    Verb("Rules", "query", "query", "Show the facts that rules derive."),
    Verb(
        "Pipeline",
        "archive",
        "archive",
        "Keep archives of any size: add, look up, evaluate, compact.",
    ),
    Verb(
        "Pipeline",
        "pipeline",
        "pipeline",
        "Validate, index, evaluate and reconcile archives on Spark.",
    ),
    Verb(
        "Exchange",
        "plan",
        "plan",
        "Show the exchange plan of two selectors and the rules one side runs.",
    ),
    Verb("Exchange", "view", "view", "Show exactly what a peer's rules could see of a lace."),
    Verb("More", "completion", "completion", "Print the shell completion script for bash, zsh or fish."),
    Verb("More", "help", "help", "Explain a command or a topic."),
)

SECTIONS = ("Records", "Stores", "Keys", "People", "Rules", "Exchange", "Pipeline", "More")
BY_NAME = {entry.name: entry for entry in CATALOGUE}
