"""What a tracker knows: its devices, who waits for them, who has them.  No input or output.

A lease (a random text) names each hand-out: it goes to the device first, then to the client, who
shows it to the device.  Nothing else in the tracker changes this state, and all that is said
about it (summary, page, metrics) is read from `slipway.rpc.farm.view`.
"""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from slipway.rpc.farm.clock import Clock
from slipway.rpc.farm.devices import (
    ASSIGNED,
    BUSY,
    FREE,
    OFFLINE,
    DeviceIdentity,
    DeviceLink,
    FarmDevice,
    Grant,
    Request,
)
from slipway.rpc.farm.journal import Journal
from slipway.rpc.farm.remarks import Remarks, remarks_of

_MAX_OFFLINE = 1000  # devices remembered after they have gone
_OFFLINE_KEPT_S = 24 * 3600.0
_MAX_TEXT = 120


def clean_text(text: str, longest: int = _MAX_TEXT) -> str:
    """Return a peer's words on one line and of bounded length, for logs and pages."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


class Farm:
    """Devices and requests; every method keeps: one device, at most one holder."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.follow(self._clock_was_set)
        self.journal = Journal(self.clock)
        self.devices: dict[int, FarmDevice] = {}  # those connected
        self.offline: dict[DeviceIdentity, FarmDevice] = {}
        self.waiting: dict[str, list[Request]] = {}
        self._connected: dict[DeviceIdentity, FarmDevice] = {}  # of the connected
        self._remarks: dict[DeviceIdentity, Remarks] = {}  # of devices that have not come yet
        self.keep: Callable[[DeviceIdentity, Remarks], None] = lambda identity, remarks: None
        self._free: dict[str, dict[FarmDevice, None]] = {}  # the longest free one first
        self._held: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    # Devices

    def add(
        self,
        key: str,
        address: str,
        port: int,
        description: str,
        link: DeviceLink,
        lease: str = "",
        behind: str = "",
    ) -> FarmDevice:
        """Take a device in; with `lease` it is busy with a session of before.

        `behind` tells the devices behind one proxy, which share its address, apart.
        A device that was here before keeps its number, its counts, and whether it is drained.
        """
        identity = key, address, port, behind
        other = self._connected.get(identity)
        if other is not None:
            if other.link is not None:
                other.link.close()  # what is left of a connection that broke
            self.remove(other, "it registered again")
        device = self.offline.pop(identity, None)
        returns = device is not None
        if device is None:
            number, since = next(self._numbers), self.clock.now()
            description = clean_text(description)
            device = FarmDevice(number, key, address, port, description, link, since, behind)
            device.remarks = self._remarks.pop(identity, device.remarks)
        device.link = link
        self.devices[device.number] = self._connected[identity] = device
        self.journal.registered(device, returns)
        if lease:
            self._become(device, BUSY, lease, "a client of before the tracker's restart")
        else:
            self._become(device, FREE)
        self._match(key)
        return device

    def remove(self, device: FarmDevice, reason: str, link: DeviceLink | None = None) -> None:
        """A device's connection is over: free it, remember it as offline.

        With `link`, only if that is its connection still, and it has not registered anew.
        """
        if link not in (None, device.link) or self.devices.pop(device.number, None) is None:
            return
        del self._connected[device.identity]
        request = device.request
        self.journal.lost(device, reason, had_session=device.state == BUSY)
        self._become(device, OFFLINE)
        device.link = None
        self._remember(device)
        if request is not None and not request.is_over:
            self._enqueue(request)

    def idle(self, device: FarmDevice, lease: str, reason: str = "") -> None:
        """The device says that the session of `lease` is over; `reason` says what went wrong."""
        if device.state not in (ASSIGNED, BUSY) or (lease and lease != device.lease):
            return
        if device.state == BUSY:
            result = "kicked" if device.kicked == device.lease else "failed" if reason else "ok"
            self.journal.session_ended(device, result, clean_text(reason))
        request = device.request
        self._become(device, FREE)
        if request is not None and not request.is_over:
            self._enqueue(request, look=False)  # it gave the lease back instead of an answer
        self._match(device.key)

    def _clock_was_set(self, moved_s: float) -> None:
        requests = [request for queue in self.waiting.values() for request in queue]
        for device in (*self.devices.values(), *self.offline.values()):
            device.since, device.view = device.since + moved_s, None
            if device.request is not None and device.request not in requests:
                requests.append(device.request)
        for request in requests:
            request.since += moved_s

    # Requests

    def request(
        self,
        key: str,
        priority: int,
        holder: str,
        grant: Callable[[Grant], None],
        is_there: Callable[[], bool] = lambda: True,
    ) -> Request:
        """Enter the queue for a device of kind `key`; `grant` is called once, with a lease of it.

        `is_there` is asked before that: false for somebody who has left and not yet withdrawn.
        """
        holder = clean_text(holder)
        number, since = next(self._numbers), self.clock.now()
        request = Request(key, priority, number, holder, grant, is_there, since)
        self._enqueue(request)
        return request

    def withdraw(self, request: Request, result: str) -> None:
        """Leave the queue; `result` is "timeout" or "withdrawn".  Nothing if it was granted."""
        if request.is_over:
            return
        request.is_over = True
        queue = self.waiting.get(request.key, [])
        if request in queue:
            queue.remove(request)
            if not queue:
                del self.waiting[request.key]
        self.journal.request_ended(request, result, self._is_known(request.key))

    def answered(self, device: FarmDevice, lease: str, accepted: bool, reason: str = "") -> None:
        """A device answered, or did not answer, to a lease."""
        if device.state != ASSIGNED or device.lease != lease:
            return
        request, device.request = device.request, None
        if not accepted:
            self.journal.refused(device, reason or "it did not take a lease")
            if request is not None and not request.is_over:
                self._enqueue(request, look=False)
            if device.link is not None:
                device.link.close()  # it does not do what it should: it may register again
            if request is not None:
                self._match(request.key)
        elif request is None or request.is_over or not request.is_there():
            if request is not None:
                self.withdraw(request, "withdrawn")
            if device.link is not None:
                device.link.release(lease, "the client left before it got the device")
        else:
            request.is_over = True
            self._become(device, BUSY, lease, request.holder)
            device.sessions += 1
            device.view = None
            self.journal.granted(request, device)
            request.grant(Grant(device, lease, device.address, device.port))

    # An administrator's acts

    def drain(self, number: int) -> bool:
        """Let the device finish its session and get no other; False if it is not known."""
        return self._set_drained(number, True)

    def resume(self, number: int) -> bool:
        """Hand a drained device out again; False if it is not known."""
        return self._set_drained(number, False)

    def kick(self, number: int, session: str) -> bool:
        """Ask the device to end `session`; False if that is not its session now."""
        device = self.devices.get(number)
        if device is None or device.link is None or not session or device.session != session:
            return False
        device.kicked = device.lease
        self.journal.administered(device, "kick")
        device.link.release(device.lease, "an administrator of the tracker ended the session")
        return True

    def describe(self, number: int, note: str, tags: tuple[str, ...]) -> bool:
        """Say what people should know of a device; False if it is not known."""
        return self._remark(number, "describe", note=note, tags=tags)

    def reserve(self, number: int, who: str, until: float) -> bool:
        """Keep a device for a person until then; "" ends that.  False if it is not known.

        A session of somebody else goes on to its end.
        """
        until = until if who else 0.0
        return self._remark(number, "reserve", reserved_for=who, reserved_until=until)

    def end_reservations(self) -> None:
        """Hand out what nobody has reserved any longer; to be called every few seconds."""
        for device in (*self.devices.values(), *self.offline.values()):
            if device.remarks.reserved_for and not device.remarks.is_reserved:
                self._remark(device.number, "reserve", reserved_for="", reserved_until=0.0)

    def device_of(self, number: int) -> FarmDevice | None:
        """Return a device by its number, also one that is offline."""
        gone = (d for d in self.offline.values() if d.number == number)
        return self.devices.get(number) or next(gone, None)

    def remember_remarks(self, identity: DeviceIdentity, said: Any) -> None:
        """Take what was said of a device before the tracker's start."""
        self._remarks[identity] = remarks_of(said)

    def _remark(self, number: int, act: str, **changes: Any) -> bool:
        device = self.device_of(number)
        if device is None:
            return False
        device.remarks, device.view = replace(device.remarks, **changes), None
        self.journal.administered(device, act)
        self.keep(device.identity, device.remarks)
        if device.state == FREE:
            self._become(device, FREE)
            self._match(device.key)
        return True

    # Matching

    def _enqueue(self, request: Request, look: bool = True) -> None:
        self.waiting.setdefault(request.key, []).append(request)
        if look:
            self._match(request.key)

    def _match(self, key: str) -> None:
        """Hand free devices of a kind to those who wait for it."""
        free = self._free.get(key)
        while free and (queue := self.waiting.get(key)):
            pair = self._pair(free, queue)
            if pair is None:
                break  # what is free is kept for others
            device, request = pair
            queue.remove(request)
            if not queue:
                del self.waiting[key]
            device.request = request
            self._become(device, ASSIGNED, secrets.token_hex(16), request.holder)
            if device.link is not None:
                device.link.assign(device.lease)

    def _pair(
        self, free: Iterable[FarmDevice], queue: Iterable[Request]
    ) -> tuple[FarmDevice, Request] | None:
        """Return who is served next, and with what: a device kept for them before another."""
        reserved = [device for device in free if device.remarks.is_reserved]
        if not reserved:
            return next(iter(free)), min(queue, key=self._rank)
        others = [device for device in free if not device.remarks.is_reserved]
        for request in sorted(queue, key=self._rank):
            own = (d for d in reserved if d.remarks.allows(request.holder))
            device = next(own, None) or next(iter(others), None)
            if device is not None:
                return device, request
        return None

    def _rank(self, request: Request) -> tuple[int, int, int]:
        """Highest priority; among equals who holds the fewest devices, then who came first."""
        return -request.priority, self._held[request.holder], request.number

    def _become(self, device: FarmDevice, state: str, lease: str = "", holder: str = "") -> None:
        if device.holder:
            self._held[device.holder] -= 1
            if not self._held[device.holder]:
                del self._held[device.holder]
        if holder:
            self._held[holder] += 1
        if device.state != state or lease != device.lease:
            device.since = self.clock.now()
        device.state, device.lease, device.holder = state, lease, holder
        device.view = None
        free = self._free.setdefault(device.key, {})
        free.pop(device, None)
        if state == FREE and not device.is_drained:
            free[device] = None
        elif not free:
            del self._free[device.key]
        if state not in (ASSIGNED, BUSY):
            device.request, device.kicked = None, ""

    def _set_drained(self, number: int, is_drained: bool) -> bool:
        act = "drain" if is_drained else "resume"
        return self._remark(number, act, is_drained=is_drained)

    def _remember(self, device: FarmDevice) -> None:
        self.offline[device.identity] = device
        oldest = self.clock.now() - _OFFLINE_KEPT_S
        for identity, other in list(self.offline.items()):
            if other.since >= oldest and len(self.offline) <= _MAX_OFFLINE:
                break  # they are in the order of their going
            del self.offline[identity]

    def _is_known(self, key: str) -> bool:
        return any(d.key == key for d in self.devices.values()) or any(
            identity[0] == key for identity in self.offline
        )
