"""A script's own functions in place of the steps of a run."""

import time
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import rpc
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.meta_schedule.arg_info import TensorInfo
from slipway.meta_schedule.builder import BuilderInput, LocalBuilder
from slipway.meta_schedule.runner import (
    EvaluatorConfig,
    LocalRunner,
    RPCConfig,
    RPCRunner,
    RunnerInput,
    local_runner,
    rpc_runner,
)
from slipway.meta_schedule.utils import get_global_func_with_default_on_worker
from slipway.script import tir as T


@tvm.script.ir_module
class Scaled:
    @T.prim_func
    def main(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (24, 10), "float32")
        B = T.match_buffer(b, (24, 10), "float32")
        for i, j in T.grid(24, 10):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)


QUICK = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)
INFOS = [TensorInfo("float32", (24, 10))] * 2


@pytest.fixture
def built():
    (result,) = LocalBuilder().build([BuilderInput(Scaled, tvm.target.Target("llvm"))])
    assert result.error_msg is None
    return RunnerInput(result.artifact_path, "llvm", INFOS)


def test_a_local_run_has_the_arguments_and_the_clock_of_a_script(built):
    met = {}

    def allocate(device, args_info, alloc_repeat):
        assert args_info[0] == ["TENSOR", "float32", [24, 10]]
        met["lists"] = local_runner.default_alloc_argument(device, args_info, alloc_repeat)
        return met["lists"]

    def evaluate(rt_mod, device, evaluator_config, repeated_args):
        for arguments in repeated_args:
            rt_mod[rt_mod.entry_name](*arguments)
        default = local_runner.default_run_evaluator
        assert len(default(rt_mod, device, evaluator_config, repeated_args)) == 4
        return [0.25, 0.5]

    runner = LocalRunner(
        evaluator_config=QUICK, alloc_repeat=2, f_alloc_argument=allocate,
        f_run_evaluator=evaluate, f_cleanup=lambda: met.setdefault("cleaned", True),
    )  # fmt: skip
    (future,) = runner.run([built])
    assert future.result().run_secs == [0.25, 0.5]
    assert future.result().error_msg is None
    assert met["cleaned"]
    assert len(met["lists"]) == 2
    for a, b in met["lists"]:
        np.testing.assert_allclose(b.numpy(), 3 * a.numpy(), rtol=1e-6)


def test_what_a_step_raises_or_takes_too_long_for_is_the_runs_error(built):
    def fail(*args):
        raise RuntimeError("of its own")

    (future,) = LocalRunner(f_alloc_argument=fail).run([built])
    assert future.result().run_secs is None
    assert future.result().error_msg.startswith("LocalRunner: An exception occurred\n")
    assert "of its own" in future.result().error_msg
    slow = LocalRunner(timeout_sec=0.2, f_alloc_argument=lambda *args: time.sleep(3))
    (future,) = slow.run([built])
    assert future.result().error_msg.startswith("LocalRunner: Timeout, killed after 0.2")


def test_steps_on_a_device(built):
    met = []

    def session(config):
        met.append("session")
        return rpc_runner.default_create_session(config)

    def upload(remote, local_path, remote_path):
        met.append("upload")
        return rpc_runner.default_upload_module(remote, local_path, remote_path)

    def evaluate(remote, rt_mod, device, config, repeated_args):
        times = rpc_runner.default_run_evaluator(remote, rt_mod, device, config, repeated_args)
        ((a, b),) = repeated_args
        np.testing.assert_allclose(b.numpy(), 3 * a.numpy(), rtol=1e-6)
        return times

    def cleanup(remote, path):
        met.append("cleanup")
        rpc_runner.default_cleanup(remote, path)

    with (
        rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="board"),
    ):
        config = RPCConfig("127.0.0.1", tracker.port, "board", session_timeout_sec=60)
        runner = RPCRunner(
            config, QUICK, f_create_session=session, f_upload_module=upload,
            f_run_evaluator=evaluate, f_cleanup=cleanup,
        )  # fmt: skip
        for _ in range(2):  # the first session is given back
            (future,) = runner.run([built])
            assert future.result().error_msg is None
            assert len(future.result().run_secs) == 2
    assert met == ["session", "upload", "cleanup"] * 2


def test_names_are_of_what_the_initializer_registers(built):
    def initializer():
        @tvm.register_func("test_runner_steps.evaluate")
        def evaluate(rt_mod, device, config, repeated_args):
            return [1.5]

    for _ in range(2):  # a second one replaces the function, as in a process of its own
        runner = LocalRunner(initializer=initializer, f_run_evaluator="test_runner_steps.evaluate")
    (future,) = runner.run([built])
    assert future.result().run_secs == [1.5]
    (future,) = LocalRunner(f_run_evaluator="test_runner_steps.none").run([built])
    assert "no function 'test_runner_steps.none' is registered here" in future.result().error_msg
    assert get_global_func_with_default_on_worker(None, 7) == 7
    with pytest.raises(ArgumentValueError, match="registered here"):
        get_global_func_with_default_on_worker("test_runner_steps.none", None)


def test_a_search_takes_a_runner_with_steps(tmp_path):
    """A clock of the script's own decides: the first candidate it has not seen is the fastest."""
    count = []

    def evaluate(rt_mod, device, config, repeated_args):
        count.append(1)
        return local_runner.default_run_evaluator(rt_mod, device, config, repeated_args)

    def space(sch):
        i, _ = sch.get_loops(sch.get_block("scaled"))
        sch.split(i, sch.sample_perfect_tile(i, n=2))

    database = ms.tune_tir(
        Scaled, "llvm", tmp_path / "w", max_trials_global=4, space=space,
        runner=LocalRunner(evaluator_config=QUICK, f_run_evaluator=evaluate),
    )  # fmt: skip
    assert count
    assert len(database) >= 2
    with pytest.raises(NotAvailableError, match="times alone"):
        x = tvm.relay.var("x", shape=(3, 8))
        w = tvm.relay.var("w", shape=(4, 8))
        mod = tvm.IRModule.from_expr(tvm.relay.Function([x, w], tvm.relay.nn.dense(x, w)))
        ms.tune_relay(
            mod, {}, "llvm", tmp_path / "r", 2, runner=LocalRunner(f_run_evaluator=evaluate)
        )


def test_an_mlp_model_ranks_as_trees_do():
    model = ms.cost_model.MLPModel()
    assert isinstance(ms.cost_model.CostModel.create("mlp"), ms.cost_model.MLPModel)
    assert model.data_size == 0


def test_a_built_folder_is_removed_and_a_scripts_own_stays(built, tmp_path):
    remove = get_global_func_with_default_on_worker("meta_schedule.remove_build_dir", None)
    path = Path(built.artifact_path)
    assert path.exists()
    remove(built.artifact_path)
    assert not path.parent.exists()
    own = tmp_path / "lib.so"
    own.write_bytes(b"")
    remove(str(own))
    assert own.exists()
