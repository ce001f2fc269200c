"""A machine becomes a device by ssh, and nothing of that is left when it is removed."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.farm.fake_host import FakeHost

from slipway import rpc
from slipway.errors import (
    ArgumentValueError,
    DeviceError,
    RPCConnectionError,
    RPCTimeoutError,
    ToolchainError,
)
from slipway.farm import known, place, remote
from slipway.farm.ssh import Host
from slipway.toolchain import emulators, native
from slipway.version import VERSION


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = FakeHost(tmp_path)
    monkeypatch.setenv("PATH", f"{made.here}:{os.environ['PATH']}")
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SLIPWAY_RPC_TOKEN", raising=False)
    yield made
    with contextlib.suppress(DeviceError, RPCConnectionError):
        made.refuses("")
        take_away(Host("pi@board"))


def take_away(host):
    for step in remote.removal():
        host.run(step.script)


def add(machine, **options):
    version = options.pop("version", VERSION)
    made = remote.plan(Host("pi@board"), build=lambda _: machine.server(version), **options)
    return made, [step.why for step in made.run()]


@pytest.mark.parametrize("boot", ["systemd", "cron", "none"])
def test_added_again_and_removed(machine, boot):
    if boot != "none":
        getattr(machine, f"has_{boot}")()
    if boot == "cron":
        machine.table.write_text("5 4 * * * backup a\\nb # of one's own\n")
    made, done = add(machine)
    assert made.found.boot == boot
    assert "start it" in done
    assert machine.is_running()
    token = machine.home / ".slipway-server/token.txt"
    assert token.read_text().strip() == made.token
    assert token.stat().st_mode & 0o077 == 0
    assert token.parent.stat().st_mode & 0o077 == 0
    if boot == "cron":
        assert "@reboot" in machine.table.read_text().splitlines()[1]
    if boot == "systemd":
        assert "--user enable slipway-server.service" in machine.systemd_log.read_text()
        assert made.notes  # its loginctl does not let it start before a login
    made.known.save(made.token)
    before = machine.left()

    again, done = add(machine)
    assert done == []
    assert again.token == made.token
    assert machine.left() == before

    take_away(Host("pi@board"))
    assert machine.left() == []
    assert not machine.is_running()
    if boot == "cron":
        assert machine.table.read_text() == "5 4 * * * backup a\\nb # of one's own\n"
    take_away(Host("pi@board"))  # nothing to take away is no error


def test_a_systemctl_that_does_nothing_starts_nothing(machine):
    """As in a chroot, where it agrees to everything: the server was there and never started."""
    machine.program("systemctl", "#!/bin/sh\necho Running in chroot, ignoring command. >&2\n")
    made, _ = add(machine)
    assert made.found.boot == "none"
    assert machine.is_running()
    take_away(Host("pi@board"))
    assert machine.left() == []


def test_advice_for_ssh_has_its_port(machine):
    machine.refuses("Host key verification failed.")
    with pytest.raises(RPCConnectionError, match="`ssh -p 2222 pi@board` once by hand"):
        Host("pi@board", port=2222).run("true")
    machine.refuses("REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.")
    with pytest.raises(RPCConnectionError, match=r"ssh-keygen -R '\[board\]:2222'"):
        Host("pi@board", port=2222).run("true")


def test_a_crontab_of_ours_alone_goes_as_a_whole(machine):
    machine.has_cron()
    add(machine)
    assert len(machine.table.read_text().splitlines()) == 1
    add(machine, key="other")
    assert len(machine.table.read_text().splitlines()) == 1
    take_away(Host("pi@board"))
    assert not machine.table.exists()


def test_the_line_of_the_crontab_starts_it(machine):
    machine.has_cron()
    add(machine)
    line = machine.table.read_text().strip().removeprefix("@reboot ")
    Host("pi@board").run(remote.place.STOPPED)
    assert not machine.is_running()
    environment = {"HOME": str(machine.home), "PATH": os.environ["PATH"]}
    booted = subprocess.Popen(["sh", "-c", line], env=environment)
    deadline = time.monotonic() + 30
    while not machine.is_running():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    Host("pi@board").run(remote.place.STOPPED)
    booted.wait(60)


def test_lingering_that_was_there_stays_and_ours_goes(machine):
    machine.has_systemd()
    log = machine.programs / "linger.log"
    machine.program("loginctl", f'#!/bin/sh\necho "$1" >>{shlex.quote(str(log))}\n')
    made, _ = add(machine)
    assert made.notes == []
    take_away(Host("pi@board"))
    assert log.read_text().split() == ["enable-linger", "disable-linger"]


def test_what_changed_is_done_anew_and_no_more(machine):
    add(machine, token="t")
    _, done = add(machine, key="rpi4", token="t")
    assert "copy the server" not in done
    assert "write how it is started" in done
    assert "--key rpi4" in (machine.home / ".slipway-server/start").read_text()
    (machine.home / ".slipway-server/slipway-server").write_text("cut short")
    _, done = add(machine, key="rpi4", token="t")
    assert "copy the server" in done
    Host("pi@board").run(remote.place.STOPPED)
    _, done = add(machine, key="rpi4", token="t")
    assert done == ["make its folder", "end the one that runs", "start it"]
    assert machine.is_running()


def test_another_version_is_replaced_unless_it_is_newer(machine):
    add(machine, version="0.0.1")
    _, done = add(machine)
    assert "copy the server" in done
    add(machine, version="99.0")
    with pytest.raises(DeviceError, match=r"slipway-server 99.0, which is newer .* --replace"):
        add(machine)
    _, done = add(machine, replace=True)
    assert "copy the server" in done


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        ("ssh: Could not resolve hostname board: Name or service not known", RPCConnectionError,
         "no machine of that name"),
        ("pi@board: Permission denied (publickey,password).", RPCConnectionError,
         "ssh-copy-id pi@board"),
        ("No ED25519 host key is known.\nHost key verification failed.", RPCConnectionError,
         "`ssh pi@board` once by hand"),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
         RPCConnectionError, "ssh-keygen -R board"),
        ("ssh: connect to host board port 22: Connection refused", RPCConnectionError,
         "--ssh-port"),
        ("ssh: connect to host board port 22: Connection timed out", RPCConnectionError,
         "does not answer"),
        ("kex_exchange_identification: read: reset", RPCConnectionError, "read: reset"),
    ],
)  # fmt: skip
def test_no_way_in(machine, said, error, told):
    machine.refuses(said)
    with pytest.raises(error, match="pi@board") as raised:
        add(machine)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("system", "processor", "told"),
    [
        ("Linux", "armv6l", "'armv6l'; there are those for aarch64, armv7"),
        ("Linux", "mips", "no static server is for its processor"),
        ("Darwin", "arm64", "it runs Darwin"),
    ],
)
def test_machines_without_a_server(machine, system, processor, told):
    machine.is_a(system, processor)
    with pytest.raises(DeviceError, match=told):
        add(machine)
    assert machine.left() == []


@pytest.mark.parametrize(
    ("uname", "built"),
    [("armv7l", "armv7-linux"), ("armv8l", "armv7-linux"), ("aarch64", "aarch64-linux"),
     ("riscv64", "riscv64-linux"), ("x86_64", "x86_64-linux")],
)  # fmt: skip
def test_the_server_is_that_of_its_processor(machine, uname, built):
    machine.is_a("Linux", uname)
    requested = []

    def build(triple):
        requested.append(triple)
        return machine.server(VERSION)

    remote.plan(Host("pi@board"), build=build)
    assert requested == [built]
    assert machine.left() == []


def test_a_full_disk_is_told_before_and_while_it_is_written(machine):
    machine.program("df", "#!/bin/sh\necho '/dev/root 100 95 5 95% /'\n")
    with pytest.raises(DeviceError, match=r"is full .5 KB are free"):
        add(machine)
    (machine.programs / "df").unlink()
    machine.program(
        "cat", "#!/bin/sh\necho 'cat: write error: No space left on device' >&2; exit 1"
    )
    with pytest.raises(DeviceError, match=r"pi@board: cat: .* No space left .*\(copy the server\)"):
        add(machine)
    assert machine.left() == [".slipway-server"]


def test_a_server_that_does_not_run_there(machine):
    with pytest.raises(DeviceError, match=r"copy the server"):
        made = remote.plan(Host("pi@board"), build=lambda _: Path("/etc/hostname"))
        list(made.run())
    assert "slipway-server" not in "".join(machine.left()).replace(".slipway-server", "")


def test_a_port_that_is_taken_is_in_its_last_words(machine):
    words = "#!/bin/sh\n[ $1 = --version ] && exit 0\necho 'cannot listen: taken' >&2; exit 2\n"
    machine.program("made", words)
    made = remote.plan(Host("pi@board"), build=lambda _: machine.programs / "made")
    with pytest.raises(DeviceError, match=r"cannot listen: taken \(start it\)"):
        list(made.run())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tracker": "lab:9190"}, "asks devices of a network for its token"),
        ({"port": 0}, "from 1 to 65535"),
        ({"key": ""}, "it is empty"),
        ({"key": "a\nb"}, "printable"),
        ({"tracker": "lab:x"}, "is no port"),
    ],
)
def test_options_that_cannot_be(machine, options, told):
    with pytest.raises(ArgumentValueError, match=told):
        add(machine, **options)
    assert machine.left() == []


@pytest.mark.parametrize("address", ["", "-oProxyCommand=x", "pi@board two", "pi@board:22", "a\tb"])
def test_addresses_that_cannot_be(address):
    with pytest.raises(ArgumentValueError):
        Host(address)


def test_a_tracker_that_is_here_only(machine, monkeypatch):
    monkeypatch.setattr(Host, "network_name", lambda _: "10.0.0.7")
    with pytest.raises(ArgumentValueError, match="this machine only"):
        add(machine, tracker="127.0.0.1:9190")


def test_a_tracker_that_speaks_tls(machine, monkeypatch):
    monkeypatch.setenv("SLIPWAY_RPC_TLS_CA", "system")
    with pytest.raises(ArgumentValueError, match="speaks no TLS"):
        add(machine, tracker="127.0.0.1:9190")


def test_a_tracker_that_is_not_there_is_told_before_anything_is_changed(machine):
    with pytest.raises(RPCConnectionError):
        add(machine, tracker="127.0.0.1:1")
    assert machine.left() == []


def test_without_ssh(machine, monkeypatch):
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(machine.programs))
        with pytest.raises(ToolchainError, match="openssh-client"):
            Host("pi@board").run("true")


def test_a_command_that_does_not_end(machine, monkeypatch):
    from slipway.farm import ssh

    monkeypatch.setattr(ssh, "COMMAND_S", 0.5)
    with pytest.raises(RPCTimeoutError, match="did not end"):
        Host("pi@board").run("exec sleep 60")


def test_names_with_quotes_mean_themselves(machine):
    made, _ = add(machine, key="it's; touch $(x) `y`")
    start = (machine.home / ".slipway-server/start").read_text()
    last = shlex.split(start.splitlines()[-1])
    assert last[last.index("--key") + 1] == "it's; touch $(x) `y`"
    assert made.known.key == "it's; touch $(x) `y`"


def slipway(*words):
    command = [sys.executable, "-m", "slipway", "device", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def emulated_server(machine, kind, monkeypatch):
    """Let `slipway device add` find a program that runs the real server under its emulator."""
    own = native.build_device_server(f"{kind}-linux")
    words = shlex.join([*emulators.find(kind), str(own)])
    return machine.program("emulated", f'#!/bin/sh\nexec {words} "$@" # slipway-server\n')


@pytest.mark.parametrize("kind", ["aarch64", "here"])
def test_it_registers_and_runs(machine, kind, monkeypatch, tmp_path):
    kind = os.uname().machine if kind == "here" else kind
    if emulators.find(kind) is None:
        pytest.skip(emulators.install_hint(kind))
    monkeypatch.delenv("SLIPWAY_CACHE")
    emulated_server(machine, kind, monkeypatch)
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "cache"))
    machine.is_a("Linux", kind)
    with rpc.Tracker("127.0.0.1", 0, silent=True, token="of the lab") as tracker:
        at = f"127.0.0.1:{tracker.port}"
        made = remote.plan(
            Host("pi@board"), tracker=at, token="of the lab", port=9471,
            build=lambda _: machine.programs / "emulated",
        )  # fmt: skip
        list(made.run())
        assert remote.wait_until_it_serves(made) == "free"
        with (
            rpc.connect_tracker("127.0.0.1", tracker.port, token="of the lab") as client,
            client.request(kind, timeout=60) as session,
        ):
            assert kind in session.description
            assert remote.state_of(made.known, "of the lab") == "busy"
        take_away(Host("pi@board"))
        deadline = time.monotonic() + 60
        while remote.state_of(made.known, "of the lab") != "offline":
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert machine.left() == []


def test_the_commands(machine, monkeypatch, tmp_path):
    monkeypatch.delenv("SLIPWAY_CACHE")
    native.build_device_server(f"{os.uname().machine}-linux")
    cache = native.cache_dir()
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "cache"))
    for name in ("server", "runtime"):
        if (cache / name).exists():
            (tmp_path / "cache").mkdir(exist_ok=True)
            (tmp_path / "cache" / name).symlink_to(cache / name)
    shown = slipway("add", "pi@board", "--port", 9472, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    lines = [line for line in shown.stdout.splitlines() if not line.startswith("#")]
    assert all(shlex.split(line)[0] == "ssh" for line in lines)
    assert machine.left() == []
    assert known.every() == []
    made = slipway("add", "pi@board", "--port", 9472, "--json")
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    assert (found["state"], found["changed"], found["boot"]) == ("serves", True, "none")
    token = Path(found["token_file"])
    assert token.stat().st_mode & 0o077 == 0
    assert token.read_text().strip() not in shown.stdout + made.stdout + machine.log.read_text()
    again = json.loads(slipway("add", "pi@board", "--port", 9472, "--json").stdout)
    assert (again["state"], again["changed"]) == ("serves", False)
    (listed,) = json.loads(slipway("list", "--json").stdout)
    assert (listed["device"], listed["state"]) == ("pi@board", "serves")
    assert "pi@board" in slipway("list").stdout
    removed = slipway("remove", "pi@board", "--json")
    assert json.loads(removed.stdout) == {"device": "pi@board", "known": True, "removed": True}
    assert machine.left() == []
    assert json.loads(slipway("list", "--json").stdout) == []
    machine.refuses("ssh: Could not resolve hostname board: Name or service not known")
    assert slipway("add", "pi@board").returncode == 9
    assert slipway("remove", "pi@board").returncode == 9
    assert "was not known" in slipway("remove", "pi@board", "--forget").stdout


def test_a_stopped_server_that_nobody_waits_for_is_not_waited_for(tmp_path):
    """As in a container whose first process does not ask how others ended."""
    folder, tools = tmp_path / place.FOLDER, tmp_path / "tools"
    folder.mkdir()
    tools.mkdir()
    (tools / "sleep").write_text(
        f'#!/bin/sh\necho >>"{tmp_path}/slept"\nexec "{shutil.which("sleep")}" "$@"\n'
    )
    (tools / "sleep").chmod(0o755)
    server = subprocess.Popen(["sh", "-c", "# slipway-server\nread line"], stdin=subprocess.PIPE)
    (folder / "pid").write_text(str(server.pid))
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", place.STOPPED], cwd=tmp_path, env=environment, check=True)
    slept = (tmp_path / "slept").read_text() if (tmp_path / "slept").exists() else ""
    assert len(slept) < 8  # of 10: it was seen to have ended
    server.communicate()
    assert server.returncode == -15  # only now
    assert not (folder / "pid").exists()
