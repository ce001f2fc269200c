"""Trackers under hundreds of orders of the same events: who holds what, whatever comes first."""

import asyncio
import contextlib
import random
import struct

import pytest
from tests.rpc.network import shuffled

from slipway.rpc.connections.greeting import introduce, receive_any, send
from slipway.rpc.protocol import Code, Role, read_error
from slipway.rpc.tracker import TrackerServer

KEYS = ("a", "b")


class Lab:
    """A tracker in memory, what is held, and what its devices have promised to whom."""

    def __init__(self, seed):
        self.chooser = random.Random(seed)
        self.tracker = TrackerServer("", "admin")
        self.tasks = set()
        self.taken = {}  # lease: (port, client)
        self.promised = {}  # lease: port, of every lease that a device has accepted
        self.live = {}  # port: lease that its device would serve now
        self.answers = 0
        self.is_over = False  # the clients have left

    async def greet(self, role, key, name, token=""):
        ours, theirs = shuffled.connection()
        task = asyncio.ensure_future(self.tracker.handle(*theirs))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        await introduce(ours, role, key, name, token, "the tracker")
        return ours

    async def pause(self, most=3.0):
        await asyncio.sleep(self.chooser.choice((0, 0, 0, self.chooser.random() * most)))

    def check(self):
        """What has to hold between any two steps."""
        farm = self.tracker.farm
        holders = [d.holder for d in farm.devices.values() if d.holder]
        assert sum(farm._held.values()) == len(holders)
        leases = [d.lease for d in farm.devices.values() if d.lease]
        assert len(leases) == len(set(leases))
        for device in farm.devices.values():
            assert (device.state in ("assigned", "busy")) == bool(device.lease)
            usable = device.state == "free" and not device.is_drained
            assert usable == (device in farm._free.get(device.key, {}))
            assert not (usable and farm.waiting.get(device.key)), "a free device, and one waits"
        for queue in farm.waiting.values():
            assert queue
            assert not any(request.is_over for request in queue)


async def device(lab, port, key):
    """Register; accept or refuse leases; serve, or go idle at once; leave, and come back."""
    choose = lab.chooser
    while not lab.is_over:
        reader, writer = await lab.greet(Role.DEVICE, key, f"device {port}")
        send(writer, Code.REGISTER, 2, struct.pack("<IIII", port, 0, 0, 0) + b"\0\0")
        until = asyncio.get_running_loop().time() + choose.random() * 60
        beating = asyncio.ensure_future(beat(writer, choose.random() < 0.1))
        serving = None
        with contextlib.suppress(EOFError, OSError, TimeoutError):
            async with asyncio.timeout_at(until):
                while True:
                    code, number, payload = await receive_any(reader)
                    lab.check()
                    if code == Code.ASSIGN:
                        await lab.pause(0.5)
                        if choose.random() < 0.05:
                            continue  # it never answers
                        if choose.random() < 0.05:
                            send(writer, Code.ERROR, number, struct.pack("<IIII", 4, 0, 0, 0))
                            continue
                        lease = payload[8:40]
                        lab.promised[lease], lab.live[port] = port, lease
                        send(writer, Code.RETURN, number, b"")
                        serving = asyncio.ensure_future(serve(lab, writer, port, lease))
                    elif code == Code.REVOKE and lab.live.get(port) == payload[8:40]:
                        idle(lab, writer, port, payload[8:40])
        for task in (beating, serving):
            if task is not None:
                task.cancel()
        lab.live.pop(port, None)
        writer.close()
        await lab.pause(10)


async def beat(writer, is_silent):
    while not is_silent:
        send(writer, Code.HEARTBEAT, 0, b"")
        await asyncio.sleep(3)


async def serve(lab, writer, port, lease):
    await asyncio.sleep(lab.chooser.choice((0, 0, 0.001, lab.chooser.random() * 5)))
    idle(lab, writer, port, lease)


def idle(lab, writer, port, lease):
    if lab.live.get(port) == lease:
        del lab.live[port]
        send(writer, Code.IDLE, 0, struct.pack("<II", 32, 0) + lease + b"\0\0")


async def client(lab, number, end):
    """Ask and ask again, some with a deadline; some leave while they wait."""
    choose = lab.chooser
    while asyncio.get_running_loop().time() < end:
        reader, writer = await lab.greet(Role.CLIENT, "", f"client {number % 4}")
        for _ in range(choose.randrange(1, 6)):
            key = choose.choice(KEYS).encode()
            timeout_ms = choose.choice((0, 0, 1, 500, 5000))
            head = struct.pack("<iIII", choose.randrange(2), timeout_ms, 1, 0)
            send(writer, Code.REQUEST, 7, head + key + b"\0")
            if choose.random() < 0.15:
                await lab.pause(2)
                break  # without waiting for the answer
            code, answered, payload = await receive_any(reader)
            lab.check()
            assert answered == 7
            lab.answers += 1
            if code == Code.ERROR:
                assert timeout_ms, read_error(payload)
                continue
            assert code == Code.RETURN
            port, size, _, _ = struct.unpack_from("<IIII", payload)
            lease = payload[16 : 16 + size]
            assert size == 32, "a lease of nothing"
            assert lab.promised[lease] == port, "the lease of another device"
            assert lease not in lab.taken, "one lease, given twice"
            lab.taken[lease] = port, number
            await lab.pause(1)
        writer.close()
        await lab.pause()


async def administrator(lab, end):
    """Drain, resume, end sessions."""
    reader, writer = await lab.greet(Role.ADMIN, "", "admin", "admin")
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(lab.chooser.random() * 8)
        known = list(lab.tracker.farm.devices.values())
        if not known:
            continue
        one = lab.chooser.choice(known)
        if lab.chooser.random() < 0.5 and one.session:
            raw = one.session.encode()
            payload = struct.pack("<II", one.number, len(raw)) + raw + b"\0"
            send(writer, Code.KICK, 3, payload)
        else:
            on = lab.chooser.random() < 0.4
            send(writer, Code.DRAIN, 3, struct.pack("<II", one.number, on))
        await receive_any(reader)
        lab.check()
    for one in [*lab.tracker.farm.devices.values(), *lab.tracker.farm.offline.values()]:
        lab.tracker.farm.resume(one.number)
    writer.close()


async def day(lab):
    """Everything at once; who waits without a deadline is served in the end."""
    devices = [asyncio.ensure_future(device(lab, 1000 + n, KEYS[n % 2])) for n in range(3)]
    async with asyncio.timeout(1000):
        await asyncio.gather(administrator(lab, 25), *(client(lab, n, 20) for n in range(8)))
    lab.is_over = True
    await asyncio.gather(*devices)
    await asyncio.sleep(30)
    lab.check()
    farm = lab.tracker.farm
    assert not farm.devices
    assert not farm.waiting, "somebody was forgotten in the queue"
    assert not farm._held
    assert not lab.tasks, "a connection was never finished"
    assert lab.answers > 20


@pytest.mark.parametrize("block", range(4))
def test_tracker_in_any_order(block):
    for seed in range(block * 25, block * 25 + 25):
        shuffled.run(seed, day(Lab(seed)))


def test_device_that_is_idle_at_once_gives_nobody_the_lease_of_another():
    """Thirty clients, three devices that go idle with the answer still on its way."""

    async def race(lab):
        async def ask(number):
            reader, writer = await lab.greet(Role.CLIENT, "", f"client {number}")
            head = struct.pack("<iIII", 1, 0, 1, 0)
            send(writer, Code.REQUEST, 7, head + b"a\0")
            _, _, payload = await receive_any(reader)
            writer.close()
            return payload[16 : 16 + 32]

        async def hasty(port):
            reader, writer = await lab.greet(Role.DEVICE, "a", "device")
            send(writer, Code.REGISTER, 2, struct.pack("<IIII", port, 0, 0, 0) + b"\0\0")
            while True:
                code, number, payload = await receive_any(reader)
                if code == Code.ASSIGN:
                    send(writer, Code.RETURN, number, b"")
                    idle = struct.pack("<II", 32, 0) + payload[8:40] + b"\0\0"
                    send(writer, Code.IDLE, 0, idle)

        devices = [asyncio.ensure_future(hasty(1000 + n)) for n in range(3)]
        leases = await asyncio.gather(*(ask(n) for n in range(30)))
        assert all(len(lease) == 32 and lease.strip(b"\0") for lease in leases)
        assert len(set(leases)) == 30
        for one in devices:
            one.cancel()
        await asyncio.gather(*devices, return_exceptions=True)

    for seed in range(30):
        shuffled.run(seed, race(Lab(seed)))


@pytest.mark.long
def test_tracker_in_a_thousand_orders():
    for seed in range(1000, 2000):
        shuffled.run(seed, day(Lab(seed)))
