"""Candidates that are loaded into a running board's RAM and timed there."""

import re
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway as tvm
from slipway import micro, relay
from slipway.cli.app import app
from slipway.errors import RPCTimeoutError, TuningError
from slipway.micro.board import find_board
from slipway.micro.emulator import emulator_command
from slipway.tuning.boards import cable_bench
from slipway.tuning.boards.cable_bench import CLOCK_NOISE, LOADED_LEVELS, CableBench
from slipway.tuning.boards.search import LayerChoice, LinkedNeed, search_board

BOARD = find_board("mps2-an386")


class FakeSession:
    """A board whose models take the time, the bytes and the outputs that they are made of."""

    def __init__(self, fault=None):
        self.fault, self.used = fault, 0
        self.rpc = SimpleNamespace(code_space=lambda: SimpleNamespace(address=self.used))
        self.device = None

    def __enter__(self):
        if self.fault:
            raise self.fault
        return self

    def __exit__(self, *exception):
        self.used = 0

    def load(self, library):
        self.used += library["bytes"]
        return {"default": lambda device: library}


class FakeModel:
    def __init__(self, library):
        self.library, self.module = library, self
        self.set_input = self.run = lambda *given: None

    def get_num_outputs(self):
        return 1

    def get_output(self, index):
        return SimpleNamespace(numpy=lambda: np.int8(self.library["output"]))

    def time_evaluator(self, name, device, number, repeat):
        seconds = self.library["seconds"]
        return lambda: SimpleNamespace(results=[seconds * f for f in (1.01, 1.0, 1.02)])


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A bench of a fake board; `made` is what the compiler returns next."""
    x = relay.var("x", shape=(1, 4))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    monkeypatch.setattr(cable_bench, "GraphModule", FakeModel)
    found = CableBench(module, {}, replace(BOARD, emulator=None), tmp_path, FakeSession)
    found.made = {"seconds": 1e-5, "bytes": 100, "output": 1}
    monkeypatch.setattr(found, "compiled", lambda interface: found.made)
    monkeypatch.setattr(found, "linked", lambda *given: LinkedNeed(Path("f.elf"), 5000, 700))
    return found


def test_bytes_are_those_of_the_image_and_what_is_loaded_more(bench):
    before = bench([], "-O2")
    assert (before.instructions, before.flash_bytes, before.ram_bytes) == (10_000, 5000, 700)
    bench.made = {"seconds": 8e-6, "bytes": 140, "output": 1}
    after = bench([], "-O2")
    assert (after.instructions, after.flash_bytes) == (8_000, 5040)
    assert after.outputs == before.outputs


def test_a_board_that_does_not_answer_is_said(bench):
    bench._open_session = lambda: FakeSession(RPCTimeoutError("the board did not answer"))
    with pytest.raises(TuningError, match=r"did not answer.*Does it run resident firmware\?"):
        bench([], "-O2")


def test_a_clock_that_stands_is_said(bench):
    bench.made["seconds"] = 0.0
    with pytest.raises(TuningError, match=r"a run took 0\.0 seconds"):
        bench([], "-O2")


def test_what_a_clock_cannot_tell_is_no_gain():
    class Layer:
        families = ("x", "slightly", "better")

    cost = {"slightly": 9_990, "better": 9_000}

    def measure(choices, level):
        times = [cost[c.family] for c in choices]
        return cable_bench.BoardCost(min([10_000, *times]), 100, 50, ("right",))

    found = search_board([Layer()], measure, 1000, 1000, levels=LOADED_LEVELS, noise=CLOCK_NOISE)
    assert [c.family for c in found.chosen] == ["better"]
    assert [c.saved for c in found.tried] == [0, 1000]


def test_a_port_needs_a_board(tmp_path):
    model = tmp_path / "m.tflite"
    model.write_bytes(b"")
    done = CliRunner().invoke(app, ["tune", str(model), "--port", "/dev/ttyACM0"])
    assert done.exit_code != 0
    assert "--port needs --board" in str(done.exception) + done.output


@contextmanager
def at_a_cable(folder):
    """Start resident firmware in the board's emulator; yield the serial port that it is at."""
    project = micro.generate_firmware("baremetal", folder, {"board": BOARD.name})
    project.build()
    command = emulator_command(BOARD, folder / "build/firmware.elf")
    command[command.index("-serial") + 1] = "pty"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True,
    ) as emulator:  # fmt: skip
        try:
            yield re.search(r"redirected to (\S+)", emulator.stdout.readline())[1]
        finally:
            emulator.kill()
            project.close()


@pytest.mark.long
def test_a_model_in_the_ram_of_an_emulated_board(tmp_path, shared):
    """The times are those of the image in flash: an instruction takes a nanosecond there."""
    model = (shared / "models" / "tflite" / "hello_world_int8.tflite").read_bytes()
    module, params = relay.frontend.from_tflite(model)
    with at_a_cable(tmp_path / "firmware") as port:
        bench = CableBench(
            module, params, BOARD, tmp_path, lambda: micro.Session(micro.SerialPort(port, 115200))
        )
        layer = bench.layers()[0]
        before = bench([], "-O2")
        wide = bench([LayerChoice(layer, "dsp_wide", 0, 0)], "-O2")
    assert 500 < before.instructions < 3000
    assert wide.outputs == before.outputs
    assert wide.flash_bytes > before.flash_bytes
    assert before.flash_bytes < 10_000
