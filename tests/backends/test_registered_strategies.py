"""``relay.op.register_strategy``: an operator that a program computes and schedules itself."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te, topi
from slipway.errors import LoweringError
from slipway.ir.op_attrs import OWN, reset_op_attr
from slipway.relay import op_registry
from slipway.relay.interpret import interpret
from slipway.relay.op.strategy import generic

RNG = np.random.default_rng(5)


def array(*shape):
    return RNG.normal(size=shape).astype("float32")


def forget(name):
    """Take a strategy away, and the operator that has it: other tests take all operators."""
    reset_op_attr(name, "FTVMStrategy")
    op_registry.OPS.pop(name + OWN, None)


@pytest.fixture
def register():
    """Return a function that registers a strategy of one way, and lists the calls of its parts."""
    names = []

    def enter(name, compute, schedule, level=11):
        calls = []

        def computed(*args):
            calls.append("compute")
            return compute(*args)

        def scheduled(attrs, outs, target):
            calls.append(("schedule", target.kind.name))
            return schedule(attrs, outs, target)

        @relay.op.register_strategy(name, level=level)
        def strategy(attrs, inputs, out_type, target):
            assert isinstance(out_type, relay.TensorType)
            assert all(isinstance(tensor, te.Tensor) for tensor in inputs)
            made = relay.op.OpStrategy()
            made.add_implementation(computed, scheduled, name="own", plevel=15)
            made.add_implementation(None, None, name="worse")
            return made

        names.append(name)
        return calls

    yield enter
    for name in names:
        forget(name)


def conv1d(data, kernel, strides, padding, dilation, out_dtype):
    batch, channels, width = data.shape
    filters, _, size = kernel.shape
    rc, rx = te.reduce_axis((0, channels), "rc"), te.reduce_axis((0, size), "rx")
    pad, _ = topi.nn.utils.get_pad_tuple1d(padding, (size,))
    padded = topi.nn.pad(data, (0, 0, pad), (0, 0, pad))
    return te.compute(
        (batch, filters, width + 2 * pad - size + 1),
        lambda n, f, x: te.sum(padded[n, rc, x + rx] * kernel[f, rc, rx], axis=[rc, rx]),
        name="own_conv1d",
    )


CASES = {
    "nn.conv1d": (
        generic.wrap_compute_conv1d(conv1d), generic.naive_schedule, [(1, 3, 20), (4, 3, 3)],
        lambda x, w: relay.nn.conv1d(x, w, padding=1, channels=4, kernel_size=3),
    ),
    "nn.conv2d": (
        generic.wrap_compute_conv2d(topi.nn.conv2d_nchw),
        generic.wrap_topi_schedule(topi.generic.schedule_conv2d_nchw),
        [(1, 16, 6, 6), (16, 16, 3, 3)], lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1)),
    ),
    "nn.dense": (
        generic.wrap_compute_dense(topi.nn.dense),
        generic.wrap_topi_schedule(topi.generic.schedule_dense), [(4, 32), (16, 32)],
        relay.nn.dense,
    ),
    "nn.softmax": (
        generic.wrap_compute_softmax(topi.nn.softmax),
        generic.wrap_topi_schedule(topi.generic.schedule_softmax), [(4, 10)], relay.nn.softmax,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("level", "target"), [(0, "llvm"), (3, "llvm"), (3, "c")])
@pytest.mark.parametrize("name", CASES)
def test_no_pass_puts_another_operator_in_its_place(register, name, level, target):
    compute, schedule, (shape, *weights), call = CASES[name]
    x = relay.var("x", shape=shape)
    body = call(x, *(relay.const(array(*w)) for w in weights))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    value = array(*shape)
    calls = register(name, compute, schedule)
    with tvm.transform.PassContext(opt_level=level):
        made = relay.create_executor("graph", mod=mod, target=target).evaluate()(value)
    np.testing.assert_allclose(made.numpy(), interpret(mod, value), rtol=1e-4, atol=1e-5)
    assert set(calls) == {"compute", ("schedule", target)}


def test_the_highest_level_counts_and_a_removed_strategy_is_forgotten(register):
    compute, schedule, ((rows, length), weight), call = CASES["nn.dense"]
    x = relay.var("x", shape=(rows, length))
    mod = tvm.IRModule.from_expr(relay.Function([x], call(x, relay.const(array(*weight)))))
    low = register("nn.dense", compute, schedule, 11)
    high = register("nn.dense", compute, schedule, 12)
    with pytest.raises(LoweringError, match="registered at level 12 already"):
        register("nn.dense", compute, schedule, 12)
    relay.build(mod, "llvm")
    assert high
    forget("nn.dense")
    high.clear()
    relay.build(mod, "llvm")
    assert (low, high) == ([], [])


def test_a_strategy_of_no_way_is_told():
    relay.op.register_strategy("nn.relu", lambda *args: relay.op.OpStrategy(), level=11)
    x = relay.var("x", shape=(4,))
    try:
        with pytest.raises(LoweringError, match=r"nn\.relu offers no implementation: call add_imp"):
            relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm")
    finally:
        forget("nn.relu")
