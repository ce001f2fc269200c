"""The host drives firmware on emulated boards; lines that lie; boards that stop."""

import os
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from firmware_tools import needs

from slipway import micro
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError
from slipway.micro.board import find_board
from slipway.micro.emulator import EmulatorProcess
from slipway.micro.model_library import ModelLibrary
from slipway.micro.project_api.server import IoTimeoutError
from slipway.micro.serial_link import FAULTS, Kind, Packet, PacketReader, packet
from slipway.runtime.graph.graph_executor import GraphModule

HEADER = """
#include <stdint.h>
struct tvmgen_axpy_inputs { void *x; void *a; };
struct tvmgen_axpy_outputs { void *y; };
int32_t tvmgen_axpy_run(struct tvmgen_axpy_inputs *inputs, struct tvmgen_axpy_outputs *outputs);
"""
SOURCE = """
#include <tvmgen_axpy.h>
int32_t tvmgen_axpy_run(struct tvmgen_axpy_inputs *inputs, struct tvmgen_axpy_outputs *outputs) {
  const float *x = inputs->x, *a = inputs->a;
  float *y = outputs->y;
  if (a[0] < 0.0f) for (;;) {}
  for (int i = 0; i < 300; ++i) y[i] = a[0] * x[i] + 1.0f;
  return a[0] == 9.0f ? -7 : 0;
}
"""
BOARDS = ["mps2-an386", "mps3-an547", "riscv32-virt", "riscv64-virt"]


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("session")
    tensor = {"dtype": "float32"}
    main = {
        "inputs": {
            "x": {"size": 1200, "shape": [3, 100], **tensor},
            "a": {"size": 4, "shape": [1], **tensor},
        },
        "outputs": {"y": {"size": 1200, "shape": [3, 100], **tensor}},
    }
    archive = micro.export_model_library_format(
        ModelLibrary(
            "axpy",
            {"memory": {"functions": {"main": [main]}}},
            {"lib0.c": SOURCE},
            {"tvmgen_axpy.h": HEADER},
        ),
        folder / "m.tar",
    )
    made = {}

    def project(board):
        needs(board)
        if board not in made:
            made[board] = micro.generate_project_from_mlf(
                "baremetal",
                folder / board,
                archive,
                {"board": board, "project_type": "host_driven", "warning_as_error": True},
            )
            made[board].build()
            made[board].flash()
        return made[board]

    project.folder = folder
    yield project
    for each in made.values():
        each.close()


@pytest.mark.parametrize("board", BOARDS)
def test_host_drives_a_model_on_the_board(projects, board):
    x = np.random.default_rng(1).standard_normal((3, 100)).astype("float32")
    with micro.Session(projects(board).transport()) as session:
        assert session.rpc.key == board
        module = GraphModule(session.create_aot_executor())
        module.set_input("x", x)
        module.set_input("a", np.array([2.5], "float32"))
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), 2.5 * x + 1, rtol=1e-6)
        timer = module.module.time_evaluator("run", session.device, number=3, repeat=2)
        instructions = timer().mean * 1e9  # the emulator takes a nanosecond for each
        assert 300 * 3 < instructions < 300 * 400  # riscv imac computes floats in software


def test_tensors_and_errors_of_the_device(projects):
    with micro.Session(projects("mps2-an386").transport()) as session:
        module = GraphModule(session.create_aot_executor())
        with pytest.raises(RPCError, match=r"no such input; its first is 'x'"):
            module.module["get_input"]("z")
        module.set_input("a", np.array([9.0], "float32"))
        with pytest.raises(RPCError, match="the model returned -7"):
            module.run()
        with pytest.raises(Exception, match=r"shape|size"):
            module.set_input("x", np.zeros((2, 100), "float32"))
        with pytest.raises(RPCError, match=r"there is no 'a\.tar' on this device; upload"):
            session.rpc.load_module("a.tar")
        with pytest.raises(AttributeError, match="no global function 'nothing'"):
            session.rpc.get_function("nothing")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs Linux")
@pytest.mark.parametrize("name", BOARDS)
def test_an_emulator_takes_no_time_while_the_host_is_silent(projects, name):
    projects(name)
    ticks = os.sysconf("SC_CLK_TCK")
    line = EmulatorProcess(find_board(name), projects.folder / name / "build/firmware.elf")

    def seconds():
        fields = Path(f"/proc/{line._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    try:
        with micro.Session(line) as session:
            for number in range(3):
                assert session.rpc.ping(b"hello") == b"hello"
                before = seconds()
                time.sleep(0.5)
                assert seconds() - before < 0.05, number
    finally:
        line.close()


def test_sessions_follow_each_other_and_a_second_start_ends_the_first(projects):
    with projects("mps2-an386").transport() as transport:

        class Kept:
            """The same line for two sessions, as a real board's is."""

            read, write = transport.read, transport.write

        for _ in range(2):
            with micro.Session(Kept()) as session:
                assert session.rpc.ping(b"hello") == b"hello"
        first = micro.Session(Kept())
        first.__enter__()
        first._line._closing = True
        first._line._inner.shutdown(socket.SHUT_RDWR)  # the host dies without a word
        first._line._thread.join(60)
        assert not first._line._thread.is_alive()
        with micro.Session(Kept()) as session:
            assert session.rpc.ping(b"again") == b"again"


class Lying:
    """A line that damages or drops one byte, once, after so many."""

    def __init__(self, transport, after, change):
        self.transport, self.left, self.change = transport, after, change

    def read(self, n, timeout_sec):
        return self.transport.read(n, timeout_sec)

    def write(self, data, timeout_sec):
        if 0 <= self.left < len(data):
            data = self.change(data, self.left)
        self.left -= len(data)
        self.transport.write(data, timeout_sec)


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def drop(data, at):
    return data[:at] + data[at + 1 :]


class Noisy:
    """A line that damages or drops a byte every so many, in both directions, by a fixed seed."""

    def __init__(self, transport, every, change, seed=0):
        self.transport, self.every, self.change = transport, every, change
        self.random = np.random.default_rng(seed)
        self.left = [self._next(), self._next()]
        self.count = 0

    def _next(self):
        return int(self.random.integers(1, 2 * self.every))

    def _pass(self, data, way):
        while self.left[way] < len(data):
            data = self.change(data, self.left[way])
            self.left[way] += self._next()
            self.count += 1
        self.left[way] -= len(data)
        return data

    def read(self, n, timeout_sec):
        return self._pass(self.transport.read(n, timeout_sec), 0)

    def write(self, data, timeout_sec):
        self.transport.write(self._pass(data, 1), timeout_sec)


@pytest.mark.parametrize("change", [flip, drop])
def test_what_a_bad_line_damages_or_drops_is_sent_again(projects, change):
    """A model of 2.4 KB of inputs and outputs, run twice over a line that hurts every 900 bytes."""
    x = np.random.default_rng(2).standard_normal((3, 100)).astype("float32")
    with projects("mps2-an386").transport() as transport:
        line = Noisy(transport, 900, change)
        with micro.Session(line) as session:
            module = GraphModule(session.create_aot_executor())
            for factor in (2.5, 3.5):
                module.set_input("x", x)
                module.set_input("a", np.array([factor], "float32"))
                module.run()
                found = module.get_output(0).numpy()
                np.testing.assert_allclose(found, factor * x + 1, rtol=1e-6)
        assert line.count >= 5


@pytest.mark.parametrize("at", [600, 700, 903])
def test_one_damaged_byte_does_no_harm(projects, at):
    with (
        projects("mps2-an386").transport() as transport,
        micro.Session(Lying(transport, at, flip)) as session,
    ):
        for number in range(10):
            assert session.rpc.ping(bytes([number] * 256)) == bytes([number] * 256)


def test_line_that_damages_everything_is_an_error_that_says_so(projects):
    class Wet(Noisy):
        def write(self, data, timeout_sec):
            self.transport.write(data, timeout_sec)

    with (
        projects("mps2-an386").transport() as transport,
        pytest.raises((RPCConnectionError, RPCTimeoutError), match=r"line|answer"),
        micro.Session(Wet(transport, 60, flip), timeout=5.0) as session,
    ):
        for _ in range(50):
            session.rpc.ping(bytes(1024))


def test_line_that_dies_is_an_error_within_the_timeout(projects):
    class Dead:
        def __init__(self, transport):
            self.transport, self.left = transport, 800

        def read(self, n, timeout_sec):
            return self.transport.read(n, timeout_sec)

        def write(self, data, timeout_sec):
            self.left -= len(data)
            if self.left > 0:
                self.transport.write(data, timeout_sec)

    with projects("mps2-an386").transport() as transport:
        begin = time.monotonic()
        with (
            pytest.raises((RPCConnectionError, RPCTimeoutError)),
            micro.Session(Dead(transport), timeout=1.0) as session,
        ):
            session.rpc.begin_step = session.rpc.begin_call
            for _ in range(50):
                session.rpc.ping(bytes(256))
        assert time.monotonic() - begin < 60


def test_board_that_stops_answering_is_a_timeout(projects):
    with (
        projects("mps2-an386").transport() as transport,
        pytest.raises(RPCTimeoutError, match="did not answer CALL within"),
        micro.Session(transport, timeout=0.5) as session,
    ):
        module = GraphModule(session.create_aot_executor())
        module.set_input("a", np.array([-1.0], "float32"))
        session.rpc._call_limit_s = 1.0
        module.run()


class Silent:
    def read(self, n, timeout_sec):
        time.sleep(timeout_sec)
        raise IoTimeoutError()

    def write(self, data, timeout_sec):
        pass

    def timeouts(self):
        return {"session_start_timeout_sec": 0.3}


def test_board_that_never_answers_is_a_timeout():
    with pytest.raises(RPCTimeoutError, match=r"did not answer .* within 0\.3 s"):
        micro.Session(Silent()).__enter__()


def test_packets_survive_any_division_and_noise_around_them():
    packets = [packet(Kind.DATA, i, 7, bytes([i] * i)) for i in range(40)]
    wanted = [Packet(Kind.DATA, i, 7, bytes([i] * i)) for i in range(40)]

    def read(stream):
        reader, found = PacketReader(512), []
        for byte in stream:
            reader.feed(bytes([byte]))
            while (one := reader.take()) is not None:
                found.append(one)
        return found, reader.damages

    assert read(b"".join(packets)) == (wanted, 0)
    found, damages = read(b"boot\x7e!" + b"\x7e~noise".join(packets))
    assert found == wanted
    assert damages > 39
    rng = np.random.default_rng(0)
    for _ in range(200):  # one damaged packet never hides more than itself and its neighbour
        damaged = list(packets)
        at = int(rng.integers(1, 39))
        where = int(rng.integers(0, len(packets[at])))
        damaged[at] = flip(packets[at], where)
        found, _ = read(b"".join(damaged))
        assert [p for p in found if p not in wanted] == []
        assert len(found) >= 38
    assert set(FAULTS) == {2, 4}
