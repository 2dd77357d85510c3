"""Two laces in a process of their own, each with an open link to one address: what one stores comes to the other.

Every line of the input is the content of a record for the first; its answer is a line once the second has it.
"""

from __future__ import annotations

import asyncio
import sys

from interlace.pair import blob
from interop.harness import filled, make_node, terms_of
from lace.iltp.address import parse_address
from lace.records.validate import validate


async def main(address: str) -> None:
    first, last = filled([]), filled([])
    nodes = [make_node(store) for store in (first, last)]
    for node in nodes:
        node.keep_in_background(parse_address(address), terms_of())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        record = validate(blob(line.strip().encode()))
        first.put([record])
        while not last.have(record.hash):
            await asyncio.sleep(0.005)
        sys.stdout.write("there\n")
        sys.stdout.flush()
    for node in nodes:
        await node.shutdown()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
