"""The search for a board: what is taken, what the budget leaves out, what is never taken."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slipway as tvm
from slipway import relay
from slipway.backends.choices import FORCE
from slipway.cli.app import app
from slipway.errors import ScheduleError, TuningError
from slipway.micro.board import find_board
from slipway.transform.context import PassContext
from slipway.tuning.boards.search import BoardBench, BoardCost, search_board

BOARD = find_board("mps2-an386")
needs_emulator = pytest.mark.skipif(
    not (shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc")),
    reason="needs QEMU and gcc for Arm",
)


class Layer:
    """Stands for a layer with some kernels; the first is the default."""

    def __init__(self, *families):
        self.families = families


class FakeBoard:
    """Images whose instructions and bytes are sums over their choices."""

    def __init__(self, saved, more, wrong=(), level=0):
        self.saved, self.more, self.wrong, self.level = saved, more, wrong, level
        self.images = []

    def __call__(self, choices, level):
        choices = list(choices)
        self.images.append((tuple(c.family for c in choices), level))
        count = 1000 - sum(self.saved[c.family] for c in choices) - self.level * (level == "-O3")
        outputs = ("other",) if any(c.family in self.wrong for c in choices) else ("right",)
        return BoardCost(count, 100 + sum(self.more[c.family] for c in choices), 50, outputs)


SAVED = {"a": 100, "b": 300, "c": 90, "loops": -500}
MORE = {"a": 50, "b": 300, "c": 10, "loops": -20}


def found(flash, wrong=(), level=0):
    board = FakeBoard(SAVED, MORE, wrong, level)
    layers = [Layer("x", "a", "loops"), Layer("x", "b"), Layer("x", "c")]
    return search_board(layers, board, flash, 1000), board


def test_everything_that_gains_is_taken_where_it_fits():
    result, _ = found(10_000)
    assert {c.family for c in result.chosen} == {"a", "b", "c"}
    assert result.after.instructions == 1000 - 490
    assert result.level == "-O2"
    assert len(result.tried) == 4


@pytest.mark.parametrize(("flash", "taken"), [(170, {"a", "c"}), (115, {"c"}), (100, set())])
def test_a_small_board_gets_the_most_for_each_byte(flash, taken):
    result, _ = found(flash)
    assert {c.family for c in result.chosen} == taken
    assert result.after.flash_bytes <= flash


def test_what_computes_something_else_is_never_taken():
    result, _ = found(10_000, wrong=["b"])
    assert {c.family for c in result.chosen} == {"a", "c"}
    assert [c.family for c in result.tried if c.error] == ["b"]
    assert result.after.outputs == result.before.outputs


def test_a_level_of_the_compiler_is_taken_where_it_gains():
    assert found(10_000, level=20)[0].level == "-O3"
    assert found(10_000, level=-20)[0].level == "-O2"


def test_layers_that_gain_together_only_are_taken_together():
    def measure(choices, level):
        wide = sum(c.family == "wide" for c in choices)
        return BoardCost({0: 1000, 1: 1010}.get(wide, 800), 100 + 10 * wide, 50, ("right",))

    result = search_board([Layer("x", "wide"), Layer("x", "wide")], measure, 10_000, 1000)
    assert [c.family for c in result.chosen] == ["wide", "wide"]
    assert search_board([Layer("x", "wide"), Layer("x", "wide")], measure, 115, 1000).chosen == ()


def test_an_image_that_fails_is_that_choice_alone():
    def measure(choices, level):
        if any(c.family == "a" for c in choices):
            raise TuningError("it does not link")
        return FakeBoard(SAVED, MORE)(choices, level)

    result = search_board([Layer("x", "a"), Layer("x", "c")], measure, 10_000, 1000)
    assert {c.family for c in result.chosen} == {"c"}
    assert "does not link" in result.tried[0].error


def test_a_board_without_an_emulator_is_said(tmp_path):
    with pytest.raises(TuningError, match="no emulator"):
        BoardBench(None, {}, replace(BOARD, emulator=None), tmp_path)


@needs_emulator
def test_a_model_on_an_emulated_cortex_m4(tmp_path, shared):
    """Weights of 16 bits: fewer instructions, more flash, the same bytes."""
    model = shared / "models" / "tflite" / "hello_world_int8.tflite"
    module, params = relay.frontend.from_tflite(model.read_bytes())
    bench = BoardBench(module, params, BOARD, tmp_path)
    layers = bench.layers()
    assert layers
    assert all(each.families[:3] == ("dsp_folded", "dsp", "dsp_wide") for each in layers)
    result = search_board(layers[:1], bench, BOARD.flash_bytes, BOARD.ram_bytes)
    assert result.after.instructions <= result.before.instructions
    assert result.after.outputs == result.before.outputs
    assert result.before.outputs
    result.write_records(tmp_path / "r.records")
    for line in (tmp_path / "r.records").read_text().splitlines():
        assert json.loads(line)["op"].startswith("written:")


@needs_emulator
def test_the_command_writes_records_that_compile_takes(tmp_path, shared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = shared / "models" / "tflite" / "hello_world_int8.tflite"
    done = CliRunner().invoke(app, ["tune", str(model), "--board", "mps2-an386", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["after"]["instructions"] <= said["before"]["instructions"]
    assert Path(said["records"]).exists()
    again = ["compile", str(model), "--target", BOARD.target, "--output", "m.tar"]
    done = CliRunner().invoke(app, [*again, "--tuning-records", said["records"]])
    assert done.exit_code == 0, done.output


def test_an_unknown_family_is_said(tmp_path, shared):
    model = shared / "models" / "tflite" / "hello_world_int8.tflite"
    module, params = relay.frontend.from_tflite(model.read_bytes())
    with (
        pytest.raises(ScheduleError, match="Did you mean 'dsp_wide'"),
        PassContext(opt_level=3, config={FORCE: {"written:qnn.dense_packed": "dsp_wid"}}),
    ):
        lib = relay.build(
            module,
            tvm.target.Target(BOARD.target),
            params=params,
            executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
        )
        assert lib.program


def test_layers_that_gain_less_than_noise_together_are_left():
    def measure(choices, level):
        count = len(list(choices)) + (level != "-O2")
        return BoardCost(1_000_000 - count, 1000, 1000, ("right",))

    layers = [Layer("x", "wide"), Layer("x", "wide")]
    result = search_board(layers, measure, 10**6, 10**6, noise=0.002)
    assert (result.chosen, result.level) == ((), "-O2")
    assert search_board(layers, measure, 10**6, 10**6).level == "-O3"
