"""What a user or a record wants of the layout pass: it happens, and computes the same."""

import json

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.layout_wish import layouts_met
from slipway.compiler.create_executor import create_executor
from slipway.compiler.relay_build import kernel_graph
from slipway.errors import ScheduleError
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.target import Target
from slipway.transform.context import PassContext

TARGET = "llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma"


def conv(shape, weight, groups=1, strides=1, padding=1):
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=shape)
    kernel = relay.const(rng.standard_normal(weight).astype("float32"))
    made = relay.nn.conv2d(x, kernel, strides, padding, groups=groups)
    return IRModule.from_expr(relay.Function([x], relay.nn.relu(made)))


def dense(rows, units):
    weight = np.random.default_rng(0).standard_normal((units, 21)).astype("float32")
    x = relay.var("x", shape=(rows, 21))
    return IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(weight))))


PLAIN = conv((1, 10, 9, 17), (13, 10, 3, 3))
GROUPED = conv((1, 12, 9, 17), (18, 4, 3, 3), groups=3)
DEPTHWISE = conv((1, 13, 9, 17), (13, 1, 3, 3), groups=13)
CASES = [
    (PLAIN, "plain", {}, "nn.conv2d"),
    (PLAIN, "blocked", {"read": 1, "written": 4}, "nn.contrib_conv2d_nchwc"),
    (PLAIN, "blocked", {"read": 8, "written": 8}, "nn.contrib_conv2d_nchwc"),
    (PLAIN, "winograd", {"tile": 2, "read": 4, "written": 8}, "nn.contrib_conv2d_winograd_nchwc"),
    (PLAIN, "winograd", {"tile": 4}, "nn.contrib_conv2d_winograd_nchwc"),
    (GROUPED, "plain", {}, "nn.conv2d"),
    (GROUPED, "blocked", {"read": 8}, "nn.contrib_conv2d_nchwc"),
    (DEPTHWISE, "plain", {}, "nn.conv2d"),
    (DEPTHWISE, "blocked", {"written": 4}, "nn.contrib_depthwise_conv2d_nchwc"),
    (dense(1, 37), "plain", {}, "nn.dense"),
    (dense(5, 37), "panels", {"units": 4}, "nn.contrib_dense_pack"),
    (dense(1, 70), "panels", {"units": 32}, "nn.contrib_dense_pack"),
]


def operators(module, **options):
    with PassContext(opt_level=3, **options):
        kernels = kernel_graph(module, Target(TARGET)).kernels.values()
    return " ".join(str(k.body) for k in kernels)


def op_of(module):
    return "layout:nn.dense" if "nn.dense" in str(module) else "layout:nn.conv2d"


@pytest.mark.parametrize(("module", "strategy", "knobs", "wanted"), CASES)
def test_what_is_wanted_happens_and_is_right(module, strategy, knobs, wanted):
    force = {op_of(module): {"strategy": strategy, **knobs}}
    assert f"{wanted}(" in operators(module, config={"schedules.force": force})
    shape = module["main"].params[0].checked_type.shape
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    with PassContext(opt_level=3, config={"schedules.force": force}):
        got = create_executor("graph", module, target=TARGET).evaluate()(x).numpy()
    np.testing.assert_allclose(got, interpret(module, x), rtol=1e-3, atol=1e-3)


def test_a_record_is_about_one_problem(tmp_path):
    with layouts_met() as met:
        operators(PLAIN)
    (problem,) = [m.problem for m in met]
    record = {
        "op": problem.op, "attrs": str(problem.attrs), "target": str(problem.target),
        "inputs": [str(t) for t in problem.in_types], "strategy": "plain",
    }  # fmt: skip
    path = tmp_path / "model.records"
    path.write_text(json.dumps(record))
    config = {"schedules.records": str(path)}
    assert " nn.conv2d(" in f" {operators(PLAIN, config=config)}"
    assert "nchwc(" in operators(DEPTHWISE, config=config)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("blockd", "Did you mean 'blocked'"),
        ({"strategy": "blocked", "reads": 4}, "no knob 'reads'"),
        ({"strategy": "blocked", "read": 3}, "legal values are 1, 4, 8"),
        ({"strategy": "panels", "units": 8}, "It can be plain, blocked, winograd"),
    ],
)
def test_what_cannot_be_wanted_is_said(wish, words):
    with pytest.raises(ScheduleError, match=words):
        operators(PLAIN, config={"schedules.force": {"layout:nn.conv2d": wish}})


def test_an_unknown_operator_is_said():
    with pytest.raises(ScheduleError, match="no operator"):
        operators(PLAIN, config={"schedules.force": {"layout:nn.conf2d": "plain"}})
