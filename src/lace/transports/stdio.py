"""Standard streams: a child process as the peer, or being that child (060, P24).

Rule: stdout carries ILTP bytes only; whatever else would be printed goes to stderr. `Peer` is what the parent states.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from lace.errors import TransportError
from lace.iltp.address import StdioAddress
from lace.notation.identifiers import Verifier
from lace.transports.base import READ_BYTES, TransportLimits, TransportProof, reason
from lace.transports.pipe import DEFAULT_LIMITS, PipeStream

STDIO = StdioAddress()


async def spawn_child(
    command: Sequence[str], peer: Verifier | None = None, limits: TransportLimits = DEFAULT_LIMITS
) -> PipeStream:
    """Start a command and speak with it over its standard streams; its stderr is ours."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=READ_BYTES
        )
    except OSError as error:
        raise TransportError(f"cannot start {command[0]!r}: {reason(error)}") from error
    if child.stdin is None or child.stdout is None:
        raise TransportError(f"cannot start {command[0]!r}: no pipes")

    async def reap() -> None:
        """A child whose stdin closed ends by itself; one that does not is ended."""
        try:
            async with asyncio.timeout(limits.close_timeout_s):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()

    return PipeStream(child.stdout, child.stdin, TransportProof(address=STDIO, peer=peer), limits, after_close=reap)


async def open_stdio(peer: Verifier | None = None, limits: TransportLimits = DEFAULT_LIMITS) -> PipeStream:
    """Be the child: take over stdin and stdout of this process."""
    loop = asyncio.get_running_loop()
    incoming, outgoing = _claim_standard_streams()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(outgoing, "wb", 0)
        )
    except (OSError, ValueError) as error:  # ValueError: a file or a terminal, not a pipe
        raise TransportError(f"standard streams cannot carry an exchange: {error}") from error
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    return PipeStream(reader, writer, TransportProof(address=STDIO, peer=peer), limits)


def _claim_standard_streams() -> tuple[int, int]:
    """Own copies of stdin and stdout; what the process prints from now on goes to stderr (060-STDIO-01)."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return incoming, outgoing
