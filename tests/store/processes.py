"""Programs that tests run as processes of their own: `python processes.py write|import|limited PATH …`."""

from __future__ import annotations

import os
import resource
import signal
import sys

from lace.errors import StoreError
from lace.limits import StoreLimits
from lace.store import SQLiteStore, open_store
from store.samples import plex


def write(path: str, first: str, batch: str) -> None:
    """Put batches for ever, and say each hash once it is acknowledged."""
    number, size = int(first), int(batch)
    with open_store(path, create=True) as store:
        while True:
            records = [
                plex(f"n/{n}", headers=(("K", f"v{n % 9}"),), data=bytes(200)) for n in range(number, number + size)
            ]
            results = store.put(records)
            if number % 3 == 0:
                store.delete(store.put([plex("passing", at=number)])[0].hash)
            sys.stdout.write("".join(f"{result.hash}\n" for result in results))
            sys.stdout.flush()
            number += size


def limited(path: str, limit: str) -> None:
    """Put records while no file may grow beyond a limit, and say what came of it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = open_store(path, create=True, limits=StoreLimits(checkpoint_bytes=1 << 16))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        for number in range(10_000):
            result = store.put([plex(f"n/{number}", data=bytes(5000))])[0]
            sys.stdout.write(f"{result.hash}\n")
    except StoreError as error:
        sys.stdout.write(f"error {error}\n")
    sys.stdout.flush()


def hold(path: str) -> None:
    """Hold the writer's lock until our input ends."""
    store = open_store(path)
    with store.file.writing():
        sys.stdout.write("holding\n")
        sys.stdout.flush()
        sys.stdin.read()


def put_one(path: str) -> None:
    """Try to put one record without root's rights, and say what came of it."""
    record = plex("refused")
    if os.geteuid() == 0:  # permissions do not bind root
        os.seteuid(65534)
    try:
        with SQLiteStore(path, create=False, read_only=False) as store:  # loaded before the rights went
            store.put([record])
        sys.stdout.write("stored\n")
    except StoreError as error:
        sys.stdout.write(f"error {error}\n")


if __name__ == "__main__":
    {"write": write, "limited": limited, "hold": hold, "put_one": put_one}[sys.argv[1]](*sys.argv[2:])
