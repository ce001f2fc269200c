"""Somebody sets the clock of the tracker's machine: ages stay what they are."""

import asyncio
import json

import pytest

from slipway.rpc.farm import clock
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.store import Store
from slipway.rpc.farm.view import classic_summary, history, snapshot, take_sample, why_not
from slipway.rpc.web.feed import Feed


class Link:
    def assign(self, lease):
        pass

    def release(self, lease, reason):
        pass

    def close(self):
        pass


@pytest.fixture
def times(monkeypatch):
    """What the clock says and what has passed: `times["wall"]` alone is setting the clock."""
    values = {"wall": 1_700_000_000.0, "steady": 50.0}
    monkeypatch.setattr(clock, "wall_s", lambda: values["wall"])
    monkeypatch.setattr(clock, "steady_s", lambda: values["steady"])
    monkeypatch.setattr("slipway.rpc.farm.store.wall_s", lambda: values["wall"])
    return values


def wait(times, seconds):
    times["wall"] += seconds
    times["steady"] += seconds


def busy(farm, port=1):
    device = farm.add("pi", "10.0.0.1", port, "a board", Link())
    farm.request("pi", 1, "ana", lambda grant: None)
    farm.answered(device, device.lease, accepted=True)
    return device


DAY = 86400.0


def test_a_device_that_nobody_asked_for_is_free_since_it_came(times):
    farm = Farm()
    farm.add("pi", "10.0.0.1", 1, "a board", Link())
    wait(times, 7)
    assert classic_summary(farm)["server_info"][0]["since_s"] == 7


@pytest.mark.parametrize("set_s", [-DAY, -3600.0, 90.0, 20000 * DAY])
def test_ages_and_lengths_are_those_that_passed(times, set_s):
    farm = Farm()
    device, gone = busy(farm), farm.add("pi", "10.0.0.1", 2, "a board", Link())
    farm.remove(gone, "its cable")
    farm.request("gpu", 1, "ben", lambda grant: None)
    take_sample(farm)
    wait(times, 30)
    times["wall"] += set_s
    wait(times, 30)

    state = snapshot(farm)
    ages = [state["now"] - each["since"] for each in (*state["devices"], *state["queue"])]
    assert ages == pytest.approx([60, 60, 60], abs=0.01)
    assert state["now"] - state["started"] == pytest.approx(60, abs=0.01)
    assert [state["now"] - error["at"] for error in state["errors"]] == pytest.approx([60], abs=0.1)
    assert [state["now"] - point[0] for point in history(farm)] == pytest.approx([60], abs=0.1)
    assert classic_summary(farm)["server_info"][0]["since_s"] == 60
    assert "10.0.0.1:1 since 60 s" in why_not(farm, "pi")

    farm.idle(device, device.lease)
    assert snapshot(farm)["jobs"][0]["length_s"] == 60
    assert farm.journal.lengths.total_s == pytest.approx(60)
    farm.add("gpu", "10.0.0.2", 1, "a card", Link())
    (card,) = (d for d in farm.devices.values() if d.key == "gpu")
    farm.answered(card, card.lease, accepted=True)
    assert farm.journal.waits.total_s == pytest.approx(60)


def test_a_device_that_left_before_is_remembered_for_its_day(times):
    farm = Farm()
    farm.remove(farm.add("pi", "10.0.0.1", 1, "", Link()), "its cable")
    times["wall"] += 3 * DAY
    farm.remove(farm.add("pi", "10.0.0.1", 2, "", Link()), "its cable")
    assert len(farm.offline) == 2
    wait(times, DAY + 9)
    farm.remove(farm.add("pi", "10.0.0.1", 3, "", Link()), "its cable")
    assert len(farm.offline) == 1


def test_corrections_of_a_time_server_move_nothing(times):
    farm = Farm()
    device = busy(farm)
    since = device.since
    for _ in range(100):
        wait(times, 5)
        times["wall"] += 0.1
        take_sample(farm)
    assert device.since == since
    assert not farm.clock.times_set


def test_the_history_moves_with_the_clock_and_that_of_earlier_runs_stays(times, tmp_path):
    before = Store(tmp_path / "farm.sqlite"), Farm()
    before[0].load(before[1])
    take_sample(before[1])
    before[0].write(before[1])
    before[0].close()
    earlier = times["wall"]
    wait(times, 60)

    store, farm = Store(tmp_path / "farm.sqlite"), Farm()
    store.load(farm)
    take_sample(farm)
    store.write(farm)
    wait(times, 10)
    take_sample(farm)
    times["wall"] += 7200
    wait(times, 10)
    store.write(farm)
    now = times["wall"]
    kept = [row[0] for row in store._file.execute("select at from samples order by at")]
    assert kept == pytest.approx([earlier, now - 20, now - 10])
    store.write(farm)
    assert [row[0] for row in store._file.execute("select at from samples order by at")] == kept
    store.close()


def test_a_run_by_a_clock_that_was_ahead_leaves_nothing_in_the_future(times, tmp_path):
    store, farm = Store(tmp_path / "farm.sqlite"), Farm()
    store.load(farm)
    device = busy(farm)
    take_sample(farm)
    farm.idle(device, device.lease)
    store.write(farm)
    store.close()
    times["wall"] -= 5 * DAY

    again, later = Store(tmp_path / "farm.sqlite"), Farm()
    again.load(later)
    assert [job["at"] for job in snapshot(later)["jobs"]] == [times["wall"]]
    assert history(later) == []
    wait(times, 5)
    take_sample(later)
    again.write(later)
    assert [point[0] for point in again.day()] == [times["wall"]]
    wait(times, DAY + 700)
    again.write(later)
    assert again._file.execute("select count(*) from jobs").fetchone() == (0,)
    again.close()


def test_open_pages_are_told_everything_again(times):
    async def told():
        farm = Farm()
        busy(farm)
        feed = Feed(farm)
        events = feed.read(feed.enter())
        await anext(events)
        times["wall"] -= 3600
        wait(times, 7)
        feed._send(feed._change())
        event = await anext(events)
        assert feed._change() == ""
        return event

    kind, data = asyncio.run(told()).strip().split("\n", 1)
    assert kind == "event: farm"
    state = json.loads(data.removeprefix("data: "))
    assert state["now"] - state["devices"][0]["since"] == pytest.approx(7, abs=0.01)
    assert "history" in state
