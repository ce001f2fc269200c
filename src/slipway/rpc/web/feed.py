"""The page's live data: the whole picture once, then what has changed, as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.view import history, sample_values, snapshot

PERIOD_S = 1.0
MAX_READERS = 64
_BACKLOG = 8  # messages that a slow reader may be behind before it is dropped
_SILENCE = 15  # periods without a change before a comment shows that the line is up


class Feed:
    """Compares the farm with what it was a second ago, once for all readers."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._readers: dict[asyncio.Queue[str], str] = {}  # the oldest first, and whence they are
        self._wake = asyncio.Event()
        self._before: dict[str, Any] = {}
        self._times_set = 0  # of the farm's clock, when `_before` was taken

    def enter(self, origin: str = "") -> asyncio.Queue[str] | None:
        """Return the place of one more reader, to be left by `leave`; None where all are taken.

        The oldest reader of the origin that has most gives its place to one of an origin with
        fewer: nobody's pages keep those of others out.
        """
        if len(self._readers) >= MAX_READERS and not self._make_room(origin):
            return None
        if not self._readers:
            self._before = self._now()
        queue: asyncio.Queue[str] = asyncio.Queue(_BACKLOG)
        self._readers[queue] = origin
        self._wake.set()
        return queue

    def leave(self, queue: asyncio.Queue[str]) -> None:
        """Give a reader's place back; again is nothing."""
        self._readers.pop(queue, None)

    def _make_room(self, origin: str) -> bool:
        counts = Counter(self._readers.values())
        ((most, count),) = counts.most_common(1)
        if count <= counts[origin] + 1:
            return False
        oldest = next(queue for queue, whence in self._readers.items() if whence == most)
        self.leave(oldest)
        if oldest.full():
            oldest.get_nowait()
        oldest.put_nowait("")  # its answer ends
        return True

    async def run(self) -> None:
        """Send changes until cancelled; does nothing while nobody reads."""
        quiet = 0
        while True:
            if not self._readers:
                self._wake.clear()
                await self._wake.wait()
            await asyncio.sleep(PERIOD_S)
            message = self._change()
            quiet = 0 if message else quiet + 1
            if message:
                self._send(message)
            elif quiet % _SILENCE == 0:
                self._send(": still here\n\n")

    async def read(self, queue: asyncio.Queue[str]) -> AsyncIterator[str]:
        """Yield the events for one reader that has entered."""
        # What the next change is measured against, so that none is missed or doubled.
        while not queue.empty():
            queue.get_nowait()
        yield self._whole(self._before)
        while queue in self._readers and (text := await queue.get()):
            yield text

    def close(self) -> None:
        """End what everybody reads."""
        for queue in self._readers:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait("")
        self._readers.clear()

    def _now(self) -> dict[str, Any]:
        state = snapshot(self._farm)
        self._times_set = self._farm.clock.times_set
        state["devices"] = {device["id"]: device for device in state["devices"]}
        return state

    def _whole(self, state: dict[str, Any]) -> str:
        return _event("farm", {**_unfold(state), "history": history(self._farm)})

    def _change(self) -> str:
        before, times_set = self._before, self._times_set
        self._before = now = self._now()
        if self._times_set != times_set:
            return self._whole(now)  # somebody set the clock: every time is another
        old = before["devices"]
        devices = [d for number, d in now["devices"].items() if old.get(number) is not d]
        removed = [number for number in old if number not in now["devices"]]
        message = {
            name: now[name]
            for name in ("kinds", "waiting", "queue", "totals", "errors", "jobs")
            if now[name] != before[name]
        }
        samples = self._farm.journal.samples
        if samples and samples[-1].at > before["now"]:
            message["sample"] = sample_values(samples[-1])
        if not (message or devices or removed):
            return ""
        return _event(
            "change", {"now": now["now"], "devices": devices, "removed": removed, **message}
        )

    def _send(self, text: str) -> None:
        for queue in list(self._readers):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                self.leave(queue)  # it connects again, and gets the whole picture


def _unfold(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "devices": list(state["devices"].values())}


def _event(name: str, content: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n"
