"""How much of a lace was brought by whom: accounts that last as long as the lace does.

Rule: an account changes in the transaction that stores or removes what it counts, so it is never off by a crash. Only
records that came from peers are counted, and only on the accounts that were kept when they came. Accounts are kept
among the settings; which accounts a record was charged to is kept by runs of record ids, for records come in runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

USAGE = "usage"  # the settings namespaces: account → records and bytes
BROUGHT = "brought"  # first record of a run → its last one, and what it was charged to
SIGNER, GROUP = "signer", "group"  # kinds of accounts that each record names itself


class Usage(NamedTuple):
    """What stands on an account."""

    records: int = 0
    bytes: int = 0

    def plus(self, records: int, size: int) -> Usage:
        """So much more; never below nothing."""
        return Usage(max(0, self.records + records), max(0, self.bytes + size))


class Settings(Protocol):
    """The part of a store that is needed here."""

    def get_setting(self, namespace: str, key: str) -> bytes | None: ...
    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None: ...
    def settings(self, namespace: str) -> dict[str, bytes]: ...
    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None: ...


class Brought(NamedTuple):
    """A record that is charged or given back."""

    size: int
    group: str
    signer: str


def account(kind: str, name: str) -> str:
    """The name of an account."""
    return f"{kind} {name}"


def usage(store: Settings, name: str) -> Usage:
    """What stands on one account."""
    kept = store.get_setting(USAGE, name)
    return Usage(*json.loads(kept)) if kept is not None else Usage()


def all_usage(store: Settings) -> dict[str, Usage]:
    """Every account with something on it."""
    return {name: Usage(*json.loads(kept)) for name, kept in store.settings(USAGE).items()}


def forget(store: Settings, name: str) -> bool:
    """Reset an account; whether there was one."""
    was_kept = store.get_setting(USAGE, name) is not None
    if was_kept:
        store.put_setting(USAGE, name, None)
    return was_kept


def charge(
    store: Settings, run: range, records: Iterable[Brought], accounts: Sequence[str], kinds: Sequence[str]
) -> None:
    """New records under a run of ids: on these accounts, and on those that they name by themselves."""
    given = list(records)
    sums = dict.fromkeys(accounts, Usage(len(given), sum(record.size for record in given)))
    for record in given:
        for name in named_accounts(record, kinds):
            sums[name] = sums.get(name, Usage()).plus(1, record.size)
    _move(store, sums, 1)
    _note_run(store, run, [list(accounts), list(kinds)])


def give_back(store: Settings, removed: Mapping[int, Brought]) -> None:
    """Records are gone: what they were charged to has room again."""
    sums: dict[str, Usage] = {}
    for number, record in removed.items():
        row = store.last_setting(BROUGHT, _key(number))
        if row is None:
            continue
        last, (accounts, kinds) = json.loads(row[1])
        if number > last:
            continue
        for name in [*accounts, *named_accounts(record, kinds)]:
            sums[name] = sums.get(name, Usage()).plus(1, record.size)
    _move(store, sums, -1)


def named_accounts(record: Brought, kinds: Sequence[str]) -> list[str]:
    """The accounts of some kinds that a record belongs to by what it says."""
    said = {SIGNER: record.signer, GROUP: record.group}
    return [account(kind, said[kind]) for kind in kinds if said[kind]]


def _move(store: Settings, sums: Mapping[str, Usage], sign: int) -> None:
    for name, moved in sums.items():
        now = usage(store, name).plus(sign * moved.records, sign * moved.bytes)
        store.put_setting(USAGE, name, json.dumps(now).encode() if now.records else None)


def _note_run(store: Settings, run: range, charged: list[list[str]]) -> None:
    """Runs that follow each other and were charged alike are one."""
    if not len(run):
        return
    first, last = run[0], run[-1]
    before = store.last_setting(BROUGHT, _key(first))
    if before is not None and json.loads(before[1]) == [first - 1, charged]:
        first = int(before[0])
    store.put_setting(BROUGHT, _key(first), json.dumps([last, charged]).encode())


def _key(number: int) -> str:
    return f"{number:019d}"  # sorts as numbers do
