"""Bytes from one connection to another and back, no faster than the slower one takes them."""

from __future__ import annotations

import asyncio
import contextlib

from slipway.rpc.connections.reception import Streams

READ_AHEAD_BYTES = 1 << 20  # held for each direction at most, besides the system's buffers
LINGER_S = 2.0  # for the last bytes to the side that did not close


async def join(first: Streams, second: Streams) -> None:
    """Pass bytes both ways until one side ends; what it sent last still arrives."""
    there = asyncio.ensure_future(_pass_on(first[0], second[1]))
    back = asyncio.ensure_future(_pass_on(second[0], first[1]))
    try:
        await asyncio.wait({there, back}, return_when="FIRST_COMPLETED")
        await asyncio.wait({there, back}, timeout=LINGER_S)
    finally:
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        for _, writer in (first, second):
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(READ_AHEAD_BYTES):
            writer.write(content)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
