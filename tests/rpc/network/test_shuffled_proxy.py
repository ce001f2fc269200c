"""Proxies under many orders of the same events: no connection is forgotten, no lease used twice."""

import asyncio
import contextlib
import random
import struct

import pytest
from tests.rpc.network import shuffled

from slipway.errors import RPCError
from slipway.rpc.connections.greeting import introduce, receive_any, send
from slipway.rpc.protocol import Code, Role, hello_payload, read_error, welcome_payload
from slipway.rpc.proxy import ProxyServer


class Lab:
    """A proxy in memory that hands its devices out itself."""

    def __init__(self, seed):
        self.chooser = random.Random(seed)
        self.proxy = ProxyServer()
        self.proxy._port = 9091  # it does not listen
        self.proxy._connect_tracker = self.connect_tracker
        self.tasks = set()
        self.served = []
        self.problems = []
        self.is_over = False

    def start(self, handle):
        ours, theirs = shuffled.connection()
        task = asyncio.ensure_future(handle(*theirs))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return ours

    async def connect_tracker(self, role, key, name):
        streams = self.start(self.proxy._own.handle)
        await introduce(streams, role, key, name, "", "the tracker")
        return streams

    async def pause(self, most):
        await asyncio.sleep(self.chooser.choice((0, 0, self.chooser.random() * most)))


async def device(lab, number):
    """Bring a connection for each client, some late, some never; serve one at a time."""
    while not lab.is_over:
        reader, writer = lab.start(lab.proxy._handle)
        await introduce((reader, writer), Role.DEVICE, "board", f"device {number}", "", "the proxy")
        send(writer, Code.REGISTER, 2, struct.pack("<IIII", 5, 0, 0, 0) + b"\0\0")
        state = {"lease": b"", "is_used": False}
        until = asyncio.get_running_loop().time() + lab.chooser.random() * 60
        beating = asyncio.ensure_future(beat(writer))
        carriers = []
        with contextlib.suppress(EOFError, OSError, TimeoutError):
            async with asyncio.timeout_at(until):
                while True:
                    code, request, payload = await receive_any(reader)
                    if code == Code.ASSIGN:
                        state.update(lease=payload[8:40], is_used=False)
                        send(writer, Code.RETURN, request, b"")
                        give_up = asyncio.ensure_future(unused(writer, state, payload[8:40]))
                        carriers.append(give_up)
                    elif code == Code.REVOKE and state["lease"] == payload[8:40]:
                        idle(writer, state)
                    elif code == Code.OPEN and lab.chooser.random() < 0.9:
                        ticket = payload[8:40].decode()
                        bringing = carry(lab, ticket, writer, state)
                        carriers.append(asyncio.ensure_future(bringing))
        writer.close()
        for task in (beating, *carriers):
            task.cancel()
        await asyncio.gather(beating, *carriers, return_exceptions=True)
        await lab.pause(5)


async def beat(writer):
    while True:
        send(writer, Code.HEARTBEAT, 0, b"")
        await asyncio.sleep(3)


async def unused(writer, state, lease):
    await asyncio.sleep(15)
    if state["lease"] == lease and not state["is_used"]:
        idle(writer, state)


def idle(writer, state):
    lease, state["lease"] = state["lease"], b""
    send(writer, Code.IDLE, 0, struct.pack("<II", 32, 0) + lease + b"\0\0")


async def carry(lab, ticket, control, state):
    await lab.pause(10)
    reader, writer = lab.start(lab.proxy._handle)
    try:
        await introduce((reader, writer), Role.CARRIER, ticket, "carrier", "", "the proxy")
        code, number, payload = await receive_any(reader)
        if code == Code.ERROR:
            assert read_error(payload)[2] == "the client has left"
            return
        assert code == Code.HELLO
        key_size = struct.unpack_from("<H", payload, 32)[0]
        key, _, lease = payload[40 : 40 + key_size].partition(b":")
        assert key == b"board"
        if lease != state["lease"] or state["is_used"]:
            return  # as a server would refuse it
        state["is_used"] = True
        assert lease not in lab.served
        lab.served.append(lease)
        send(writer, Code.WELCOME, number, welcome_payload(0, bytes(32), "a device"))
        with contextlib.suppress(EOFError, OSError):
            while True:
                code, number, payload = await receive_any(reader)
                send(writer, Code.RETURN, number, payload)
        if state["lease"] == lease:
            idle(control, state)
    except (EOFError, OSError):
        pass
    except (AssertionError, RPCError) as error:
        if "the client has left" not in str(error):
            lab.problems.append(error)
    finally:
        writer.close()


async def client(lab, end):
    choose = lab.chooser
    got = 0
    while asyncio.get_running_loop().time() < end:
        reader, writer = lab.start(lab.proxy._handle)
        send(writer, Code.HELLO, 1, hello_payload(Role.SESSION, b"board", b"a client"))
        if choose.random() < 0.2:
            await lab.pause(6)  # it leaves before it is served
        else:
            with contextlib.suppress(EOFError, OSError):
                code, _, payload = await receive_any(reader)
                if code == Code.WELCOME:
                    got += 1
                    for number in range(1, choose.randrange(2, 5)):
                        text = b"%08d" % choose.randrange(10**8)
                        send(writer, Code.PING, number, text)
                        assert (await receive_any(reader))[1:] == (number, text)
                        await lab.pause(1)
                else:
                    assert code == Code.ERROR, code
                    assert read_error(payload)[2]
        writer.close()
        await lab.pause(2)
    return got


async def day(lab):
    devices = [asyncio.ensure_future(device(lab, n)) for n in range(2)]
    async with asyncio.timeout(2000):
        got = await asyncio.gather(*(client(lab, 60) for _ in range(5)))
    lab.is_over = True
    await asyncio.gather(*devices)
    await asyncio.sleep(60)
    proxy, farm = lab.proxy, lab.proxy._own.farm
    assert not lab.problems
    assert sum(got) > 5
    assert not lab.tasks, "a connection was never finished"
    assert not proxy._tickets
    assert not proxy._leases
    assert not proxy._devices
    assert not farm.devices
    assert not farm.waiting
    assert not farm._held


@pytest.mark.parametrize("block", range(3))
def test_proxy_in_any_order(block):
    for seed in range(block * 20, block * 20 + 20):
        shuffled.run(seed, day(Lab(seed)))


def test_connection_that_comes_with_the_deadline_is_not_forgotten():
    """A device's connection, and the client's giving up, in one turn of the loop."""

    async def scenario(lab):
        lab.proxy._leases["f" * 32] = held = type("Held", (), {})()
        ours, theirs = shuffled.connection()
        held.key, held.writer = "board", theirs[1]
        opening = asyncio.ensure_future(lab.proxy._open(held))
        _, _, payload = await receive_any(ours[0])
        waiting = lab.proxy._tickets[payload[8:40].decode()]
        carrier = type("Carrier", (), {"over": asyncio.Event()})()
        for act in lab.chooser.sample([opening.cancel, lambda: waiting.set_result(carrier)], 2):
            act() if not waiting.done() else None
        with contextlib.suppress(asyncio.CancelledError):
            assert await opening is carrier
            return
        assert not waiting.done() or waiting.cancelled() or carrier.over.is_set()

    for seed in range(50):
        shuffled.run(seed, scenario(Lab(seed)))
