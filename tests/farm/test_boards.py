"""Virtual microcontrollers of a farm: asked of the tracker, loaded, measured, and gone."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.rpc.faults.waiting import wait_for
from typer.testing import CliRunner

import slipway as tvm
from slipway import rpc, te
from slipway.cli.app import app
from slipway.doctor.device import examine_session
from slipway.doctor.finding import FindingState
from slipway.errors import RPCError, TargetError
from slipway.farm import boards, virtual
from slipway.micro.board import find_board
from slipway.micro.board_tools import missing_for
from slipway.version import VERSION

DIGITS = Path(tvm.__file__).parent / "models" / "digits" / "digits.onnx"
M4 = find_board(boards.BOARDS["cortex-m4"])


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    package = missing_for(M4, emulate=True)
    if package:
        pytest.skip(f"apt-get install {package}")
    folder = tmp_path_factory.mktemp("boards") / "farm"
    yield virtual.up(["cortex-m4"], 1, 0, None, folder)
    virtual.down(folder)


@pytest.fixture
def tracker(farm):
    token = farm.token_file.read_text().strip()
    with rpc.connect_tracker("127.0.0.1", farm.port, token=token, admin_token=None) as found:
        yield found


def emulators_of(farm):
    """Return the numbers of the emulators that run the farm's firmware."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"qemu-system" in command and farm.folder.encode() in command:
                found.append(int(entry.name))
    return found


def twice(target):
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 2.0 + 1.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target, name="twice")


def test_a_requested_board_runs_and_times_what_is_uploaded(farm, tracker, tmp_path):
    twice(M4.target).export_library(tmp_path / "twice.a")
    for _ in range(2):  # the second session finds a board that was reset
        with tracker.request("cortex-m4", session_timeout=120, timeout=60) as session:
            assert session.listdir() == []
            session.upload(tmp_path / "twice.a")
            module = session.load_module("twice.a")
            x = tvm.nd.array(np.arange(64, dtype="float32"), session.cpu())
            y = tvm.nd.array(np.zeros(64, "float32"), session.cpu())
            timer = module.time_evaluator("twice", session.cpu(), number=3, repeat=2)
            assert timer(x, y).mean > 0
            np.testing.assert_array_equal(y.numpy(), np.arange(64) * 2 + 1)
            assert session.key == M4.name
            assert session.description == f"slipway {VERSION} firmware on {M4.name}"
    wait_for(lambda: not emulators_of(farm))  # nobody's board costs no processor


def test_doctor_tries_a_kernel_on_the_board(tracker):
    with tracker.request("cortex-m4", session_timeout=240, timeout=60) as session:
        found = {line.name: line for line in examine_session(session, "the board")}
    assert found["kernel"].state is FindingState.OK, found["kernel"].text
    assert "its 50 numbers are NumPy's" in found["kernel"].text
    assert {line.state for line in found.values()} == {FindingState.OK}


@pytest.mark.parametrize("command", ["profile", "bisect"])
def test_questions_about_a_model_on_the_board(farm, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPWAY_RPC_TOKEN", farm.token_file.read_text().strip())
    line = [command, str(DIGITS), "--target", M4.target, "--json"]
    told = CliRunner().invoke(app, line).exception
    assert "for a microcontroller, which this machine is not" in str(told)
    device = ["--tracker", f"127.0.0.1:{farm.port}", "--rpc-key", "cortex-m4", "--timeout", "60"]
    whole = [sys.executable, "-m", "slipway", *line, *device]  # whose end gives the board back
    done = subprocess.run(whole, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if command == "bisect":
        assert found["agrees"]
    else:
        assert len(found["operators"]) > 5
        assert all(each["seconds"] > 0 for each in found["operators"])


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Samples of the digits with their classes, and a model for the board as a file."""
    folder = tmp_path_factory.mktemp("images")
    with np.load(DIGITS.parent / "digits_test.npz") as stored:
        few = {"image": stored["images"][:3], "labels": stored["labels"][:3]}
        np.savez(folder / "images.npz", **few)
        np.savez(folder / "one.npz", image=stored["images"][:1])
    tvm.compile(DIGITS, M4.target, quiet=True).save(folder / "m4.tar")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "run m4.tar --inputs one.npz --dump-tensors layers --print-time",
        f"validate {DIGITS} --target {{target}} --dataset images.npz --min-top1 1",
        f"validate m4.tar --dataset images.npz --reference {DIGITS} --min-sqnr 90",
        f"report {DIGITS} --target {{target}} -o board.html",
        "compare m4.tar m4.tar",
    ],
)
def test_a_model_of_the_board_where_it_runs(farm, images, monkeypatch, line):
    monkeypatch.setenv("SLIPWAY_RPC_TOKEN", farm.token_file.read_text().strip())
    words = [word.format(target=M4.target) for word in line.split()]
    kind = "--device" if words[0] in ("report", "compare") else "--rpc-key"
    where = ["--tracker", f"127.0.0.1:{farm.port}", kind, "cortex-m4"]
    whole = [sys.executable, "-m", "slipway", *words, *where, "--timeout", "60", "--json"]
    if words[0] == "compare":
        whole.remove("--timeout")
        whole.remove("60")
    done = subprocess.run(
        whole, capture_output=True, text=True, timeout=240, check=False, cwd=images
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if words[0] == "run":
        assert min(found["seconds"]) > 0
        names = {p.name.partition("_")[2] for p in (images / "layers").iterdir()}
        assert {"stem.npy", "block1_depthwise.npy", "classifier.npy"} <= names
    elif words[0] == "validate":
        assert found["outputs"][0]["sqnr_db"] > 90
    elif words[0] == "report":
        assert all(layer["seconds"] > 0 and layer["agrees"] for layer in found["layers"])
        assert found["boards"]
        assert found["flash"]
        assert any("the kernels as they are uploaded" in note for note in found["notes"])
    else:
        assert found["a"]["seconds"]
        assert found["slower"] == pytest.approx(0, abs=0.01)


def test_three_lines_for_a_board(farm, images, monkeypatch):
    monkeypatch.setenv("SLIPWAY_RPC_TOKEN", farm.token_file.read_text().strip())
    image = np.load(images / "one.npz")["image"]
    here = tvm.compile(DIGITS, quiet=True)(image)
    for model in (tvm.load(images / "m4.tar"), tvm.compile(DIGITS, "arm/cortex-m4", quiet=True)):
        with model.on("cortex-m4", tracker=f"127.0.0.1:{farm.port}") as board:
            np.testing.assert_allclose(board(image), here, rtol=1e-4, atol=1e-4)
            assert board.check(DIGITS)
            assert board.benchmark(number=1, repeat=2).mean > 0


def test_the_board_is_for_those_whom_the_tracker_sends(farm, tracker):
    port = tracker.summary()["server_info"][0]["addr"][1]
    token = farm.token_file.read_text().strip()
    for key in ("cortex-m4", f"cortex-m4:{'0' * 32}"):
        with pytest.raises(RPCError, match="handed out by its tracker"):
            rpc.connect("127.0.0.1", port, key, token=token)
    with socket.create_connection(("127.0.0.1", port)) as nonsense:
        nonsense.sendall(b"GET / HTTP/1.0\r\n\r\n" * 4)
        nonsense.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert nonsense.recv(100) == b""
    with tracker.request("cortex-m4", timeout=60) as session:
        assert session.ping(b"x") == b"x"


def test_a_session_ends_with_its_time_or_by_an_administrator(farm, tracker):
    with tracker.request("cortex-m4", session_timeout=1.5, timeout=60) as session:
        time.sleep(2.5)
        with pytest.raises(RPCError, match=r"the session's time, 1\.5 s, is over"):
            session.ping(b"x")
    admin = rpc.connect_tracker(
        "127.0.0.1", farm.port, token="", admin_token=farm.admin_file.read_text().strip()
    )
    with admin, tracker.request("cortex-m4", timeout=60) as session:
        (device,) = tracker.summary()["farm"]["devices"]
        admin.kick(device["id"], device["session"])
        wait_for(lambda: tracker.summary()["queue_info"]["cortex-m4"]["free"] == 1)
        with pytest.raises(RPCError, match="administrator"):
            session.ping(b"x")


def test_an_emulator_that_is_killed_frees_the_board(farm, tracker):
    with tracker.request("cortex-m4", timeout=60) as session:
        (emulator,) = emulators_of(farm)
        os.kill(emulator, signal.SIGKILL)
        with pytest.raises(RPCError):
            session.ping(b"x")
    with tracker.request("cortex-m4", timeout=60) as session:
        assert session.ping(b"y") == b"y"


def test_nothing_is_left_when_a_process_was_killed(farm, tracker):
    """The last test of the farm: it ends it, in the middle of a session."""
    session = tracker.request("cortex-m4", timeout=60)
    assert len(emulators_of(farm)) == 1
    server = next(p for p in farm.processes if p.name == "cortex-m4-0")
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: not emulators_of(farm), 10)
    # The emulator dies with the thread that started it, the server's other threads a bit later.
    wait_for(lambda: not server.is_alive, 10)
    with pytest.raises(RPCError):
        session.ping(b"x")
    session.close()
    assert virtual.down(Path(farm.folder)) == 1  # the tracker
    assert not any(p.is_alive for p in farm.processes)
    assert not Path(farm.folder).exists()


def test_down_in_the_middle_of_a_session_after_the_tracker_was_killed(tmp_path):
    package = missing_for(M4, emulate=True)
    if package:
        pytest.skip(f"apt-get install {package}")
    folder = tmp_path / "farm"
    try:
        farm = virtual.up(["cortex-m4"], 2, 0, None, folder)
        token = farm.token_file.read_text().strip()
        with rpc.connect_tracker("127.0.0.1", farm.port, token=token) as tracker:
            sessions = [tracker.request("cortex-m4", timeout=60) for _ in range(2)]
        assert len(emulators_of(farm)) == 2
        os.kill(farm.processes[0].pid, signal.SIGKILL)
        wait_for(lambda: not farm.processes[0].is_alive)
        for session in sessions:  # they go on without it
            assert session.ping(b"x") == b"x"
    finally:
        ended = virtual.down(folder)
    assert ended == 2
    assert emulators_of(farm) == []
    assert not folder.exists()


def test_a_core_without_a_board_is_told(tmp_path):
    with pytest.raises(TargetError, match=r"cortex-m0: QEMU has no board .* cortex-m4"):
        virtual.up(["cortex-m0"], 1, 0, None, tmp_path / "farm")


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in boards.BOARDS if kind != "cortex-m4"])
def test_every_kind(kind, tmp_path):
    board = find_board(boards.BOARDS[kind])
    package = missing_for(board, emulate=True)
    if package:
        pytest.skip(f"apt-get install {package}")
    try:
        farm = virtual.up([kind], 1, 0, None, tmp_path / "farm")
        token = farm.token_file.read_text().strip()
        with (
            rpc.connect_tracker("127.0.0.1", farm.port, token=token) as tracker,
            tracker.request(kind, timeout=60) as session,
        ):
            module = session.load(twice(board.target))
            x = tvm.nd.array(np.arange(64, dtype="float32"), session.cpu())
            y = tvm.nd.array(np.zeros(64, "float32"), session.cpu())
            module["twice"](x, y)
            np.testing.assert_array_equal(y.numpy(), np.arange(64) * 2 + 1)
    finally:
        virtual.down(tmp_path / "farm")
