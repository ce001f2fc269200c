"""Kernels that find their weights in no cache: by choice, here and on devices."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway as tvm
from slipway import auto_scheduler, autotvm, meta_schedule, relay
from slipway.cli.app import app
from slipway.errors import TuningError
from slipway.rpc.local import PopenSession
from slipway.toolchain import native
from slipway.tuning.builders import InLibrary
from slipway.tuning.database import Database
from slipway.tuning.measure import kernel_bench
from slipway.tuning.runner import DeviceRunner, LocalRunner, TrackerRunner
from slipway.tuning.session import COLD_RUNS, FIRST_RUNS, FLUSH, MeasuringSession
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks

WEIGHTS = 700  # rows and columns: two megabytes


def product(target="llvm -mcpu=native"):
    """A product with one row, which does little but read its weights."""
    x = relay.var("x", shape=(1, WEIGHTS))
    w = relay.var("w", shape=(WEIGHTS, WEIGHTS))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return next(t for t in extract_tasks(module, target) if "dense" in t.op)


def default_seconds(task, runner, folder):
    with kernel_bench(task, runner, folder, rounds=5) as bench:
        return min(bench.measure([])[0].seconds)  # other work only lengthens a round


def test_weights_that_lie_in_no_cache_take_longer(tmp_path):
    task = product()
    warm, cold = LocalRunner(), LocalRunner(is_cold=True)
    # The shortest of three rounds: what else runs on the machine makes any of them longer.
    rounds = [[default_seconds(task, r, tmp_path) for r in (cold, warm)] for _ in range(3)]
    of_cold, of_warm = (min(seconds) for seconds in zip(*rounds, strict=True))
    assert of_cold > 1.2 * of_warm
    # What was measured so is no trial of the other.
    database = Database(tmp_path / "t.sqlite")
    assert not database.trials(task, cold.device)
    assert cold.device != warm.device


def test_one_run_is_timed_after_each_flush():
    calls = []

    def evaluator(function, device, number=10, repeat=1, f_preproc=""):
        calls.append((number, repeat, f_preproc))
        return lambda *arguments: SimpleNamespace(mean=0.5, median=1e-5)

    tensor = SimpleNamespace(copyfrom=lambda array: array)
    device = SimpleNamespace(
        has_exact_clock=False,
        device=lambda kind: SimpleNamespace(empty=lambda shape, dtype: tensor),
        get_function=lambda name: name,
        upload=lambda path: None,
        load_module=lambda name: SimpleNamespace(time_evaluator=evaluator),
    )
    session = MeasuringSession(device, [np.zeros(3)], [np.zeros(3)], is_cold=True)
    one = candidate_of("a", {})
    path = Path("library.tar")
    assert session.times({one: InLibrary(path, "a")}, 3) == {one: [1e-5] * 3}
    assert calls == [*[(1, 1, FLUSH)] * FIRST_RUNS, *[(1, COLD_RUNS, FLUSH)] * 3]


@pytest.mark.parametrize(
    ("triple", "emulator"),
    [
        ("x86_64-linux-gnu", None),
        ("aarch64-linux-gnu", "qemu-aarch64"),
        ("armv7a-linux-gnueabihf", "qemu-arm"),
    ],
)
def test_a_static_server_flushes(triple, emulator):
    """By an instruction of its processor, or by writing other bytes."""
    if emulator is not None and shutil.which(emulator) is None:
        pytest.skip(f"{emulator} (apt install qemu-user) is missing")
    server = str(native.build_device_server(triple))
    with PopenSession([*([emulator] if emulator else []), server, "--stdio"]) as remote:
        device = remote.cpu()
        values = np.arange(100, dtype="float32")
        arrays = [device.empty((100,), "float32").copyfrom(values) for _ in range(2)]
        remote.get_function(FLUSH)(*arrays, 3, "text")
        remote.get_function(FLUSH)()
        assert all((a.numpy() == values).all() for a in arrays)


def test_the_classic_name_is_there_for_time_evaluator():
    n = 64
    a = tvm.te.placeholder((n,), name="a")
    b = tvm.te.compute((n,), lambda i: a[i] + 1.0, name="b")
    library = tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm", name="add")
    arrays = [tvm.nd.array(np.ones(n, "float32")) for _ in range(2)]
    timer = library.time_evaluator("add", tvm.cpu(), number=1, repeat=4, f_preproc=FLUSH)
    assert len(timer(*arrays).results) == 4
    np.testing.assert_array_equal(arrays[1].numpy(), 2.0)


def test_what_cannot_be_flushed_is_said():
    class Old:
        has_exact_clock = False

        def device(self, kind):
            return kind

        def get_function(self, name):
            raise AttributeError(f"no global function {name!r}")

    with pytest.raises(TuningError, match="start a newer server there, or measure warm"):
        MeasuringSession(Old(), [], [], is_cold=True)
    MeasuringSession(Old(), [], [], "opencl", is_cold=True)  # as classic scripts say it of a GPU
    Old.has_exact_clock = True
    with pytest.raises(TuningError, match="modelled core"):
        MeasuringSession(Old(), [], [], is_cold=True)


def test_the_command_line_refuses_it_for_a_gpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(b"not read")
    options = ["tune", "model.onnx", "--target", "opencl", "--cold-caches"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code != 0
    assert "--cold-caches flushes a processor's, and opencl has none" in str(done.exception)


def test_classic_scripts_choose_it():
    flush = {"enable_cpu_cache_flush": True}
    evaluator = meta_schedule.runner.EvaluatorConfig(**flush)
    here = meta_schedule.runner.LocalRunner(evaluator_config=evaluator)
    config = meta_schedule.runner.RPCConfig("farm", 9190, "rpi4")
    there = meta_schedule.runner.RPCRunner(config, evaluator)
    builder = auto_scheduler.measure.LocalBuilder()
    runners = [
        here, there, autotvm.LocalRunner(**flush).runner(),
        autotvm.RPCRunner("rpi4", "farm", 9190, **flush).runner(),
        auto_scheduler.LocalRunner(**flush).option(builder).runner.runner(),
        auto_scheduler.RPCRunner("rpi4", "farm", 9190, **flush).option(builder).runner.runner(),
    ]  # fmt: skip
    assert [runner.is_cold for runner in runners] == [True] * 6
    assert {runner.device for runner in runners} == {"local, cold caches", "rpi4, cold caches"}
    plain = [LocalRunner(), DeviceRunner("pi"), TrackerRunner("farm", 9190, "rpi4"),
             autotvm.LocalRunner().runner(), meta_schedule.runner.LocalRunner()]  # fmt: skip
    assert not any(runner.is_cold for runner in plain)
