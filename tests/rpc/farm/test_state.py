"""The tracker's state by itself: hand-outs, queues, drained and offline devices."""

import json
import random

import pytest

from slipway.rpc.farm.devices import session_name
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.view import classic_summary, history, snapshot, take_sample, why_not


class Link:
    """What the farm asks of a device."""

    def __init__(self):
        self.leases, self.released, self.is_closed = [], [], False

    def assign(self, lease):
        self.leases.append(lease)

    def release(self, lease, reason):
        self.released.append((lease, reason))

    def close(self):
        self.is_closed = True


@pytest.fixture
def farm():
    return Farm()


def add(farm, port=1, key="board", lease=""):
    return farm.add(key, "10.0.0.1", port, "a board", Link(), lease)


def hand_out(farm, holder="me", key="board"):
    """Ask, let the device accept, return it."""
    got = []
    farm.request(key, 1, holder, got.append)
    for device in list(farm.devices.values()):
        farm.answered(device, device.lease, True)
    return got[0].device


def devices(grants):
    return [grant.device for grant in grants]


def states(farm):
    return [device["state"] for device in snapshot(farm)["devices"]]


def test_device_goes_from_hand_to_hand(farm):
    device = add(farm)
    first, second = [], []
    farm.request("board", 1, "me", first.append)
    assert device.state == "assigned"
    farm.answered(device, device.link.leases[0], True)
    assert devices(first) == [device]
    farm.request("board", 1, "you", second.append)
    assert not second
    farm.idle(device, device.lease)
    farm.answered(device, device.link.leases[1], True)
    assert devices(second) == [device]
    assert device.link.leases[0] != device.link.leases[1]


def test_idle_of_another_lease_frees_nothing(farm):
    device = add(farm)
    hand_out(farm)
    farm.idle(device, "f" * 32)
    assert device.state == "busy"


def test_client_that_left_has_its_lease_taken_back(farm):
    device = add(farm)
    request = farm.request("board", 1, "me", lambda _: pytest.fail("it has left"))
    farm.withdraw(request, "withdrawn")
    farm.answered(device, device.lease, True)
    assert device.link.released[0][0] == device.lease
    farm.idle(device, device.lease)
    assert device.state == "free"


def test_device_that_refuses_loses_its_connection_and_the_request_goes_on(farm):
    got = []
    device, other = add(farm), add(farm, 2)
    farm.request("board", 1, "me", got.append)
    farm.answered(device, device.lease, False, "in use")
    assert device.link.is_closed
    farm.answered(other, other.lease, True)
    assert devices(got) == [other]
    assert snapshot(farm)["errors"][0]["text"] == "in use"


def test_device_that_goes_while_assigned_gives_the_request_back(farm):
    got = []
    device = add(farm)
    farm.request("board", 1, "me", got.append)
    farm.remove(device, "it closed its connection")
    again = add(farm)
    farm.answered(again, again.lease, True)
    assert devices(got) == [again]


@pytest.mark.parametrize("was_used", [False, True])
def test_why_a_device_is_offline_stands_beside_it(farm, was_used):
    """Of one that nobody used, the list of errors alone told it."""
    device = add(farm)
    if was_used:
        hand_out(farm)
    farm.remove(device, "it closed its connection")
    (shown,) = snapshot(farm)["devices"]
    assert (shown["state"], shown["last_error"]) == ("offline", "it closed its connection")


def test_device_that_comes_back_is_the_same_one(farm):
    device = add(farm)
    hand_out(farm)
    farm.remove(device, "it was silent for 12 s")
    assert states(farm) == ["offline"]
    assert classic_summary(farm)["server_info"] == []
    again = add(farm)
    assert again.number == device.number
    assert (again.sessions, again.failures) == (1, 1)
    assert states(farm) == ["free"]
    totals = snapshot(farm)["totals"]
    assert totals["sessions"] == {"lost": 1}
    assert totals["registrations"] == {"new": 1, "lost": 1, "returned": 1}


def test_second_registration_replaces_the_first(farm):
    """A device that lost its network connects again before the tracker misses it."""
    first = add(farm)
    link = first.link
    hand_out(farm)
    second = add(farm, lease=first.lease)
    assert link.is_closed
    assert len(farm.devices) == 1
    assert second.state == "busy"
    assert second is first
    farm.remove(first, "its connection broke", link)  # the old one is noticed late
    assert states(farm) == ["busy"]


def test_drained_device_finishes_and_gets_no_other(farm):
    device = add(farm)
    hand_out(farm)
    assert farm.drain(device.number)
    assert states(farm) == ["busy"]
    farm.idle(device, device.lease)
    assert states(farm) == ["drained"]
    farm.request("board", 1, "me", lambda _: None)
    assert device.state == "free"
    assert "taken out of service: 1" in why_not(farm, "board")
    farm.remove(device, "gone")
    again = add(farm)
    assert states(farm) == ["drained"]
    assert farm.resume(again.number)
    assert states(farm) == ["assigned"]
    assert not farm.drain(77)


def test_kick_needs_the_session_of_now(farm):
    device = add(farm)
    hand_out(farm)
    assert not farm.kick(device.number, session_name("another"))
    assert not farm.kick(device.number, "")
    assert farm.kick(device.number, device.session)
    assert device.link.released[0][0] == device.lease
    farm.idle(device, device.lease, "ended by an administrator")
    assert snapshot(farm)["totals"]["sessions"] == {"kicked": 1}
    assert device.last_error == "ended by an administrator"


def test_no_secret_and_no_control_character_is_shown(farm):
    device = farm.add("board", "10.0.0.1", 1, "a\x1b[31m board\n", Link())
    hand_out(farm, "some\nbody" + "x" * 500)
    shown = json.dumps(snapshot(farm)) + json.dumps(classic_summary(farm))
    assert device.lease
    assert device.lease not in shown
    assert device.session in shown
    assert "\\n" not in shown
    assert "\\u001b" not in shown
    assert len(device.holder) <= 120


def test_kinds_that_nobody_has_are_counted_under_one_name(farm):
    """Else any client could make the tracker's memory grow."""
    for number in range(50):
        farm.withdraw(farm.request(f"kind {number}", 1, "me", lambda _: None), "timeout")
    assert list(farm.journal.requests) == [("", "timeout")]
    assert farm.waiting == {}


def test_offline_devices_are_forgotten_in_the_end(farm):
    for port in range(1, 1200):
        farm.remove(add(farm, port), "gone")
    assert len(farm.offline) == 1000
    assert ("board", "10.0.0.1", 1) not in farm.offline


def test_devices_of_ever_new_kinds_do_not_fill_the_memory(farm):
    for number in range(1500):
        farm.remove(add(farm, 1, f"kind {number}"), "gone")
    counts = farm.journal.registrations
    assert len(counts) <= 1002
    assert sum(counts.values()) == 3000
    assert len(farm.offline) == 1000


def test_history(farm):
    add(farm)
    hand_out(farm)
    farm.request("board", 1, "you", lambda _: None)
    take_sample(farm)
    assert history(farm)[-1][1:] == [1, 1, 1, 0]
    farm.idle(farm.devices[1], "")
    take_sample(farm)
    assert history(farm)[-1][1:] == [1, 1, 0, 1]


def test_nobody_is_starved(farm):
    """Ten clients of one priority; one of them asks ten times as often: all are served alike."""
    for port in range(1, 5):
        add(farm, port)
    chooser = random.Random(7)
    served = dict.fromkeys(range(10), 0)

    def ask(who):
        def granted(given):
            served[who] += 1
            running.append((given.device, given.lease))
            ask(who)

        farm.request("board", 1, f"client {who}", granted)

    running = []
    for who in range(10):
        for _ in range(10 if who == 0 else 1):
            ask(who)
    for _ in range(2000):
        for device in list(farm.devices.values()):
            if device.state == "assigned":
                farm.answered(device, device.lease, True)
        device, lease = running.pop(chooser.randrange(len(running)))
        farm.idle(device, lease)
    assert min(served.values()) > 100
    assert served[0] < 4 * min(served.values())


def test_random_histories_keep_one_holder_for_each_device(farm):
    """Any order of events: a device has one holder, a request one answer, nothing is lost."""
    chooser = random.Random(20)
    granted, over, held = [], set(), {}
    requests = []

    def grant_to(index):
        def grant(given):
            device = given.device
            assert index not in over
            assert device.number not in held, "handed out twice"
            over.add(index)
            granted.append(index)
            held[device.number] = given.lease

        return grant

    links = {}
    for step in range(20_000):
        act = chooser.randrange(10)
        live = list(farm.devices.values())
        if act == 0 and len(live) < 20:
            port = chooser.randrange(1, 30)
            if all(device.port != port for device in live):
                device = add(farm, port, chooser.choice("ab"))
                links[device.number] = device.link
        elif act == 1 and live and chooser.random() < 0.3:
            device = chooser.choice(live)
            held.pop(device.number, None)
            farm.remove(device, "gone")
        elif act in (2, 3) and len(requests) - len(over) < 40:
            index = len(requests)
            requests.append(None)
            requests[index] = farm.request(
                chooser.choice("ab"), chooser.randrange(3), f"c{step % 7}", grant_to(index)
            )
        elif act == 4 and requests:
            index = chooser.randrange(len(requests))
            if index not in over:
                over.add(index)
            farm.withdraw(requests[index], "withdrawn")
        elif act in (5, 6, 7):
            for device in live:
                if device.state == "assigned" and chooser.random() < 0.5:
                    farm.answered(device, device.lease, chooser.random() < 0.95)
                    if device.link.is_closed:
                        farm.remove(device, "closed")
        elif act == 8 and live:
            device = chooser.choice(live)
            if device.number in held and device.lease == held[device.number]:
                del held[device.number]
                farm.idle(device, device.lease)
        elif act == 9 and live:
            device = chooser.choice(live)
            if not chooser.choice((farm.drain, farm.resume))(device.number):
                pytest.fail("a live device is known")
            if device.state == "assigned" and device.link.released:
                farm.idle(device, device.lease)
        waiting = {id(r) for queue in farm.waiting.values() for r in queue}
        assigned = {id(d.request) for d in farm.devices.values() if d.request is not None}
        for index, request in enumerate(requests[-60:], max(0, len(requests) - 60)):
            assert (id(request) in waiting or id(request) in assigned) == (index not in over) or (
                index in over and id(request) in assigned
            )
    assert len(granted) > 500
