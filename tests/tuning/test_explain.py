"""Why a kernel is computed the way it is: said in numbers that can be checked."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway as tvm
from slipway import relay
from slipway.cli.app import app
from slipway.errors import ArgumentValueError
from slipway.tuning.database import Database
from slipway.tuning.explain import explain_model, neighbours
from slipway.tuning.measure import Measured
from slipway.tuning.space import Space, candidate_of
from slipway.tuning.task import extract_tasks

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"


@pytest.fixture(scope="module")
def model():
    x, w = relay.var("x", shape=(1, 37, 29, 29)), relay.var("w", shape=(96, 37, 1, 1))
    body = relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=96)
    params = {"w": np.ones((96, 37, 1, 1), "float32")}
    return tvm.IRModule.from_expr(relay.Function([x, w], body)), params


def point(found):
    return next(e for e in found if "conv2d" in e.task.op)


def test_the_limit_is_that_of_the_core(model):
    each = point(explain_model(model[0], TARGET, model[1]))
    products = 96 * 37 * 29 * 29
    assert each.flops == 2 * products
    assert each.arithmetic_cycles == products / 16  # two vectors of eight lanes a cycle
    assert each.limit == "arithmetic"
    assert each.cycles >= each.arithmetic_cycles
    assert f"{products / 16:,.0f} cycles at least" in each.paragraph
    assert each.chosen.strategy in each.paragraph
    assert "Nothing was measured: the first strategy that applies was taken" in each.paragraph
    ratios = [ratio for _, ratio in each.others]
    assert ("lower does not overrule" in each.paragraph) == (min(ratios) < 0.98)
    other = next(c for c, _ in each.others if c.strategy == each.chosen.strategy)
    wish = {each.task.op: {"strategy": other.strategy, **dict(other.knobs)}}
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": wish}):
        forced = point(explain_model(model[0], TARGET, model[1]))
    assert forced.chosen == other
    assert "Nothing was measured here: a record or an option decided" in forced.paragraph


def test_a_kernel_that_joins_tensors_is_explained():
    """The operand of a concatenation is a tuple."""
    x, y = (relay.var(name, shape=(1, 5, 9), dtype="int8") for name in "xy")
    module = tvm.IRModule.from_expr(relay.concatenate([x, y], axis=1))
    (found,) = explain_model(module, TARGET, {})
    assert "It multiplies nothing: the 0.2 KB that it reads and writes take" in found.paragraph


def test_what_was_measured_is_told_with_the_steps_beside_the_winner(model, tmp_path):
    database = Database(tmp_path / "t.sqlite")
    task = next(t for t in extract_tasks(model[0], TARGET, model[1]) if "conv2d" in t.op)
    default = task.space.default
    better = next(iter(task.space.neighbours(default)))
    (name,) = [n for n, v in dict(better.knobs).items() if v != dict(default.knobs)[n]]
    database.add(task, "local", [Measured(default, [1.0], 1.0)])
    database.add(task, "local", [Measured(better, [0.8], 0.8)], verified=better)
    wrong = candidate_of(better.strategy, {**dict(better.knobs), name: 99})
    database.add(task, "local", [Measured(wrong, kind="wrong", error="off")])
    with database:
        each = point(explain_model(model[0], TARGET, model[1], database))
    assert each.chosen == better
    assert "Measured were 3 choices, 1 failed; it takes 0.80 of the time" in each.paragraph
    assert f"{name} {dict(default.knobs)[name]} 1.25 times its time" in each.paragraph
    assert [text for text, _ in neighbours(each.trials[0], each.trials[:2])] == [
        f"{name} {dict(default.knobs)[name]}"
    ]


def test_the_command_prints_a_paragraph_for_each_and_json(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(np.ones((40, 30), "float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="head")], "g",
        [helper.make_tensor_value_info("x", kind, [5, 40])],
        [helper.make_tensor_value_info("y", kind, [5, 30])], [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=9), tmp_path / "m.onnx")
    arguments = ["explain", str(tmp_path / "m.onnx"), "--target", TARGET, "--kernel", "head"]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert found["layers"] == ["head"]
    assert found["limit"] in ("arithmetic", "traffic")
    done = CliRunner().invoke(app, arguments)
    assert found["strategy"] in done.stdout
    assert "cycles at least" in " ".join(done.stdout.split())
    done = CliRunner().invoke(app, [*arguments[:-1], "tail"])
    assert isinstance(done.exception, ArgumentValueError)
    assert "'tail'" in str(done.exception)
    assert "head for example" in str(done.exception)


@pytest.mark.parametrize("channels", [260, 65])
@pytest.mark.parametrize("cpu", ["cortex-a53", "cortex-a72", "neoverse-n1"])
def test_the_default_is_in_its_own_space(channels, cpu):
    """A winograd tile of 5 vectors was chosen where 1 to 4 were legal: no search could begin."""
    x = relay.var("x", shape=(1, channels, 7, 7))
    w = relay.var("w", shape=(channels, channels, 3, 3))
    body = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=channels, padding=(1, 1))
    params = {"w": np.ones((channels, channels, 3, 3), "float32")}
    module = tvm.IRModule.from_expr(relay.Function([x, w], body))
    tasks = extract_tasks(module, f"llvm -mtriple=aarch64-linux-gnu -mcpu={cpu}", params)
    assert tasks
    for task in tasks:
        space = Space(task.problem)
        for name, default in space.defaults.items():
            forced = {k: v for k, v in default.knobs if k in space.values[name]}
            assert all(v in space.values[name][k] for k, v in forced.items())
            assert space.strategies[name].knobs_for(task.problem, forced) is not None


def test_loops_without_tiles_and_tiles_that_spill_are_not_predicted_to_be_fast(model):
    task = next(t for t in extract_tasks(model[0], TARGET, model[1]) if "conv2d" in t.op)
    space, default = task.space, task.space.predicted(task.space.default)
    loops = space.predicted(space.defaults["loops.sums"])
    assert loops > 1.5 * default
    spilled = space.with_values(space.default, rows=16, vectors=4)  # 64 sums in 16 registers
    assert space.predicted(spilled) > 1.5 * default
