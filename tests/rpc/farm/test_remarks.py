"""What a tracker keeps: notes, tags, reservations with an end, a day's history, jobs, commands."""

import asyncio
import re
import sqlite3
import sys
import time

import pytest

from slipway.errors import SlipwayError
from slipway.rpc.farm.commands import Command, read_commands, run_command
from slipway.rpc.farm.devices import BUSY, FREE
from slipway.rpc.farm.remarks import Remarks, tags_of, until_text
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.store import POINTS, Store
from slipway.rpc.farm.view import devices_of, snapshot, take_sample, why_not


class Link:
    def __init__(self):
        self.assigned, self.released = [], []

    def assign(self, lease):
        self.assigned.append(lease)

    def release(self, lease, reason):
        self.released.append(lease)

    def close(self):
        pass


def add(farm, port, key="pi"):
    return farm.add(key, "10.0.0.1", port, "a board", Link())


def ask(farm, holder, key="pi"):
    got = []
    farm.request(key, 1, holder, got.append)
    for device in list(farm.devices.values()):
        if device.state == "assigned":
            farm.answered(device, device.lease, accepted=True)
    return got


ANA, BEN = "slipway 0.1.0 ana@here 7 at 10.0.0.9", "slipway 0.1.0 ben@there 9 at 10.0.0.8"


def test_a_reserved_device_goes_to_whom_it_is_kept_for():
    farm = Farm()
    kept = add(farm, 1)
    assert farm.reserve(kept.number, "ana", time.time() + 60)
    assert ask(farm, BEN) == []
    assert re.search(r"reserved for: ana until \w+ \d\d:\d\d \S+ \(in 1 min\)", why_not(farm, "pi"))
    (grant,) = ask(farm, ANA)
    assert grant.device is kept
    farm.idle(kept, kept.lease)
    assert kept.state == FREE  # ben still waits, and gets it when the reservation is ended
    assert farm.reserve(kept.number, "", 0)
    farm.answered(kept, kept.lease, accepted=True)
    assert kept.holder == BEN


def test_her_own_device_goes_before_a_free_one_and_others_get_the_free_one():
    farm = Farm()
    free, kept = add(farm, 1), add(farm, 2)
    farm.reserve(kept.number, "ana@here", time.time() + 60)
    (first,) = ask(farm, ANA)
    (second,) = ask(farm, BEN)
    assert (first.device, second.device) == (kept, free)


def test_a_reservation_ends_by_itself_and_spares_a_running_session():
    farm = Farm()
    device = add(farm, 1)
    (grant,) = ask(farm, BEN)
    farm.reserve(device.number, "ana", time.time() + 0.05)
    assert device.state == BUSY
    assert grant.device is device
    farm.idle(device, device.lease)
    assert ask(farm, BEN) == []
    time.sleep(0.06)
    farm.end_reservations()
    farm.answered(device, device.lease, accepted=True)
    assert (device.holder, device.remarks.reserved_for) == (BEN, "")


@pytest.mark.parametrize(
    ("who", "holder", "allowed"),
    [
        ("ana", ANA, True), ("Ana", ANA, True), ("ana@here", ANA, True), ("an", ANA, False),
        ("ana@there", ANA, False), ("10.0.0.9", ANA, True), ("ana", BEN, False),
        ("ben@there 9", BEN, True),
    ],
)  # fmt: skip
def test_whole_words_name_a_person(who, holder, allowed):
    assert Remarks(reserved_for=who, reserved_until=time.time() + 9).allows(holder) is allowed


def test_tags_are_few_short_and_once():
    assert tags_of(" camera,rack  2,,camera , " + "x" * 50) == ("camera", "rack 2", "x" * 32)
    assert len(tags_of(",".join(map(str, range(100))))) == 12


def test_another_tracker_with_the_same_file_remembers(tmp_path):
    file = tmp_path / "farm.sqlite"
    store, farm = Store(file), Farm()
    farm.keep = store.keep
    device = add(farm, 1)
    farm.describe(device.number, "keep the cable free", ("camera",))
    farm.reserve(device.number, "ana", time.time() + 3600)
    farm.drain(device.number)
    take_sample(farm)
    ask(farm, ANA)
    farm.resume(device.number)
    ask(farm, ANA)
    farm.idle(device, device.lease, "SIGSEGV in conv2d")
    take_sample(farm)
    store.write(farm)
    store.close()

    again, later = Store(file), Farm()
    again.load(later)
    assert [s.total for s in later.journal.samples] == [1, 1]
    (job,) = snapshot(later)["jobs"]
    assert (job["kind"], job["result"], job["text"]) == ("session", "failed", "SIGSEGV in conv2d")
    assert (job["device"], job["who"]) == ("pi at 10.0.0.1:1", ANA)
    add(later, 1)
    (shown,) = devices_of(later)
    assert (shown["note"], shown["tags"], shown["reserved_for"]) == (
        "keep the cable free", ["camera"], "ana",
    )  # fmt: skip
    assert not shown["drained"]
    later.keep = again.keep
    later.describe(shown["id"], "", ())
    later.reserve(shown["id"], "", 0)
    again.close()
    with sqlite3.connect(file) as file_now:
        assert file_now.execute("select count(*) from remarks").fetchone() == (0,)


def test_a_day_is_a_bounded_number_of_points_with_their_maxima(tmp_path):
    store = Store(tmp_path / "farm.sqlite")
    now = time.time()
    with store._file:
        store._file.executemany(
            "insert into samples values (?, 8, ?, ?, 1)",
            [(now - 86400 * 1.5 + 13 * i, i % 7, i % 3) for i in range(int(86400 * 1.5 / 13))],
        )
    day = store.day()
    assert POINTS - 2 <= len(day) <= POINTS + 1
    assert all(now - 86400 < point[0] <= now for point in day)
    assert {tuple(point[1:4]) for point in day[1:-1]} == {(8, 6, 2)}
    assert sum(point[4] for point in day) == pytest.approx(86400 / 13, abs=2)
    store.write(Farm())
    oldest = store._file.execute("select min(at) from samples").fetchone()[0]
    assert oldest > now - 86400 - 1


def test_a_file_that_is_none_is_named(tmp_path):
    (tmp_path / "x").write_text("this is no database, whatever its name is. " * 40)
    with pytest.raises(SlipwayError, match=r"x cannot be the tracker's history.*remove a damaged"):
        Store(tmp_path / "x")
    with pytest.raises(SlipwayError, match="in a folder that may be written"):
        Store(tmp_path / "none/x")
    with sqlite3.connect(tmp_path / "y") as file:
        file.execute("pragma user_version = 99")
    with pytest.raises(SlipwayError, match="another release"):
        Store(tmp_path / "y")


def run(command, **values):
    return asyncio.run(run_command(command, values))


def test_commands_run_without_a_shell_and_say_how_it_went(tmp_path):
    say = Command("say", (sys.executable, "-c", "import sys; print(sys.argv[1:])", "{key}:{port}"))
    assert run(say, key="a b; rm -rf", port="9") == ("ok", "['a b; rm -rf:9']")
    assert run(say, key="-x", port="9") == ("failed", "key is '-x'")
    bad = Command("bad", (sys.executable, "-c", "print('no relay'); raise SystemExit(3)"))
    assert run(bad) == ("failed", "exit code 3: no relay")
    assert run(Command("none", ("no-such-program",)))[0] == "failed"
    slow = Command("slow", (sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=0.2)
    start = time.monotonic()
    assert run(slow)[0] == "timeout"
    assert time.monotonic() - start < 20


def test_a_file_of_commands(tmp_path):
    path = tmp_path / "commands.toml"
    path.write_text(
        '[[command]]\nname = "power cycle"\nrun = "uhubctl -p {port} -a cycle"\nkinds = ["pi"]\n'
        '[[command]]\nname = "one more"\nrun = "start \'a b\'"\nfarm = true\ntimeout_s = 5\n'
    )
    cycle, more = read_commands(path)
    assert cycle.words == ("uhubctl", "-p", "{port}", "-a", "cycle")
    assert (cycle.serves("pi"), cycle.serves("phone"), more.serves("pi")) == (True, False, False)
    assert (more.words, more.timeout_s) == (("start", "a b"), 5)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[[command]]\nrun = 'x'", "needs a name"),
        ("[[command]]\nname = 'a'", "needs run"),
        ("[[command]]\nname = 'a'\nrun = \"'x\"", "No closing quotation"),
        ("[[command]]\nname = 'a'\nrun = 'x'\nkind = 'pi'", "has kind; it knows"),
        ("[[command]]\nname = 'a'\nrun = 'x'\nkinds = 'pi'", "list of names"),
        ("[[command]]\nname = 'a'\nrun = 'x'\ntimeout_s = -1", "seconds"),
        ("[[command]]\nname = 'a'\nrun = 'x'\n" * 2, "two commands are called 'a'"),
        ("command = 3", r"\[\[command\]\]"),
        ("[[command", "cannot be read"),
    ],
)
def test_a_wrong_file_of_commands_says_where(text, match, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(SlipwayError, match=match):
        read_commands(path)
    with pytest.raises(SlipwayError, match="cannot be read"):
        read_commands(tmp_path / "none.toml")


def test_a_history_that_nobody_closed_is_closed_with_its_last_reference(tmp_path):
    store = Store(tmp_path / "history.db")
    connection = store._file
    del store
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")


@pytest.mark.parametrize(
    ("minutes", "length"),
    [(-5, "0 min"), (1, "1 min"), (119, "119 min"), (120, "2 h 0 min"), (150, "2 h 30 min")],
)
def test_an_end_says_how_long_it_is_from_now(monkeypatch, minutes, length):
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    assert until_text(1_000_000.0 + 60 * minutes).endswith(f"(in {length})")
