"""An asyncio loop whose time is not the clock's, and which runs what is ready in a seeded order.

asyncio promises nothing about the order in which two tasks go on that became ready in the same
turn; this loop takes any, so that each seed is another interleaving of all awaits.  Nothing in it
waits: when no task can go on, time jumps to the next timer.
"""

import asyncio
import random
import selectors
from collections import deque


class _ShuffledQueue(deque):
    def __init__(self, chooser):
        super().__init__()
        self._chooser = chooser

    def popleft(self):
        at = self._chooser.randrange(len(self))
        self.rotate(-at)
        taken = super().popleft()
        self.rotate(at)
        return taken


class _Jump(selectors.SelectSelector):
    """Waits by setting the time forward."""

    now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("every task waits for another one: a deadlock")
        self.now += timeout
        return []


class ShuffledLoop(asyncio.SelectorEventLoop):
    """Only for tasks that talk through memory; sockets rely on the order of callbacks."""

    def __init__(self, seed):
        self._jump = _Jump()
        super().__init__(self._jump)
        self._ready = _ShuffledQueue(random.Random(seed))

    def time(self):
        return self._jump.now


class MemoryWriter:
    """The writing half of a connection in memory."""

    def __init__(self, peer_reader, own_reader, address):
        self._peer_reader, self._own_reader = peer_reader, own_reader
        self._address = address
        self._is_closing = False

    def get_extra_info(self, name, default=None):
        return self._address if name == "peername" else default

    def write(self, content):
        if not self._is_closing and not self._peer_reader.at_eof():
            self._peer_reader.feed_data(content)

    async def drain(self):
        if self._is_closing:
            raise ConnectionResetError("the connection is closed")
        await asyncio.sleep(0)

    def is_closing(self):
        return self._is_closing

    def can_write_eof(self):
        return True

    def write_eof(self):
        self._peer_reader.feed_eof()

    def close(self):
        if not self._is_closing:
            self._is_closing = True
            self._peer_reader.feed_eof()
            self._own_reader.feed_eof()

    async def wait_closed(self):
        await asyncio.sleep(0)


def connection(address=("127.0.0.1", 5)):
    """Return the two ends of a connection in memory, each (reader, writer)."""
    left, right = asyncio.StreamReader(), asyncio.StreamReader()
    return (left, MemoryWriter(right, left, address)), (right, MemoryWriter(left, right, address))


def run(seed, scenario):
    """Run a coroutine under one order of events; what its tasks raise, is raised."""
    loop = ShuffledLoop(seed)
    problems = []
    loop.set_exception_handler(lambda _, context: problems.append(context))

    async def whole():
        try:
            await scenario
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()
    assert not problems, problems
