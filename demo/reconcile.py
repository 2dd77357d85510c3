"""Two processes find out how two files of 32-byte ids differ: python demo/reconcile.py FILE FILE

A child process reads the second file; the two speak over its standard input and output, each message after its length.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from lace.reconcile import Reconciler


def send(stream: BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(4, "big") + message)
    stream.flush()


def receive(stream: BinaryIO) -> bytes:
    return stream.read(int.from_bytes(stream.read(4), "big"))


def reconcile(file: str, incoming: BinaryIO, outgoing: BinaryIO, *, begins: bool) -> str:
    data = Path(file).read_bytes()
    ids = [data[at : at + 32] for at in range(0, len(data), 32)]
    side = Reconciler(ids, nonce=os.urandom(16), begins=begins)
    if begins:
        send(outgoing, side.begin())
    while not side.is_over:
        answer = side.receive(receive(incoming))
        if answer:
            send(outgoing, answer)
    found = side.difference
    return f"{file} lacks {len(found.lacking)} ids, has {len(found.spare)} that the other one lacks"


def main(first: str, second: str) -> None:
    command = [sys.executable, __file__, second]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stdout.fileno()) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        print(reconcile(first, child.stdout, child.stdin, begins=True), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(*sys.argv[1:])
    else:
        print(reconcile(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer, begins=False), file=sys.stderr)
