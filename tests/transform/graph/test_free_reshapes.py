"""Reshapes at the ends of kernels: moved out where they would cost divisions, and only there."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.relay_build import kernel_graph
from slipway.contrib import graph_executor
from slipway.relay.dims import Dim
from slipway.target import Target
from slipway.transform.graph.free_reshapes import is_finer

N, H = Dim("n", 1, 4), Dim("h", 4, 9)


@pytest.mark.parametrize(
    ("fine", "coarse", "expected"),
    [
        ((2, 3, 4), (2, 12), True),
        ((2, 3, 4), (6, 4), True),
        ((2, 3, 4), (24,), True),
        ((2, 12), (2, 3, 4), False),
        ((4, 6), (6, 4), False),
        ((2, 1, 3), (2, 3), True),
        ((2, 3), (1, 2, 1, 3, 1), True),
        ((2, 3, 1), (2, 3), True),
        ((), (1,), True),
        ((N, 3, 5), (N, 15), True),
        ((N, 15), (N, 3, 5), False),
        ((N, 5), (N * 5,), True),
        ((2, H), (H, 2), False),
    ],
)
def test_which_axes_are_finer(fine, coarse, expected):
    assert is_finer(fine, coarse) == expected


def built(body, *inputs):
    mod = tvm.IRModule.from_expr(relay.Function(list(inputs), body))
    graph = kernel_graph(mod, Target("llvm"))
    called = [n.function.partition("fused_")[2] for n in graph.nodes if n.calls_kernel]
    return mod, called


def shuffled(x, groups):
    """Channel shuffle: every reshape of it is finer on one side."""
    n, c, h, w = x.type_annotation.shape
    apart = relay.reshape(x, (n, groups, c // groups, h, w))
    return relay.reshape(relay.transpose(apart, (0, 2, 1, 3, 4)), (n, c, h, w))


def test_a_shuffle_is_a_transpose():
    x = relay.var("x", shape=(2, 12, 5, 7))
    mod, called = built(shuffled(x, 3), x)
    assert called == ["reshape_transpose"]  # its loops have the finer axes of the first reshape
    data = np.random.default_rng(0).random((2, 12, 5, 7), "float32")
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(x=data)
    want = data.reshape(2, 3, 4, 5, 7).transpose(0, 2, 1, 3, 4).reshape(2, 12, 5, 7)
    np.testing.assert_array_equal(module.get_output(0).numpy(), want)


def test_what_reads_a_merged_axis_reads_it_outside():
    x = relay.var("x", shape=(4, 6, 5))
    mod, called = built(relay.transpose(relay.reshape(x, (24, 5)), (1, 0)), x)
    assert called == ["transpose"]
    data = np.arange(120, dtype="float32").reshape(4, 6, 5)
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(x=data)
    np.testing.assert_array_equal(module.get_output(0).numpy(), data.reshape(24, 5).T)


def test_finer_axes_at_the_end_stay_in_the_kernel():
    x = relay.var("x", shape=(24, 5))
    _, called = built(relay.reshape(relay.exp(x), (4, 6, 5)), x)
    assert called == ["exp_reshape"]


@pytest.mark.parametrize("rows", [3, N])
def test_open_rows(rows):
    x = relay.var("x", shape=(rows, 5, 6))
    body = relay.reshape(relay.transpose(x, (0, 2, 1)), (-1, 30))
    mod, called = built(body, x)
    assert called == ["transpose"]
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    data = np.random.default_rng(0).random((3, 5, 6), "float32")
    module.run(x=data)
    np.testing.assert_array_equal(
        module.get_output(0).numpy(), data.transpose(0, 2, 1).reshape(3, 30)
    )


def test_two_readers_of_an_input_and_results_of_one_kernel_twice():
    x = relay.var("x", shape=(4, 6))
    flat = relay.reshape(x, (24,))
    once = relay.reshape(relay.exp(relay.transpose(x, (1, 0))), (24,))
    mod, _ = built(relay.Tuple([once + flat, once]), x)
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    data = np.random.default_rng(0).random((4, 6), "float32")
    module.run(x=data)
    want = np.exp(data.T.reshape(-1))
    np.testing.assert_allclose(module.get_output(0).numpy(), want + data.reshape(-1), 1e-6)
    np.testing.assert_allclose(module.get_output(1).numpy(), want, 1e-6)


def test_a_result_under_another_shape_is_the_callers_own():
    """Zero-copy outputs write into the caller's array, whatever shape the kernel has."""
    x = relay.var("x", shape=(4, 6))
    mod, called = built(relay.reshape(relay.transpose(x, (1, 0)), (24,)), x)
    assert called == ["transpose"]
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    data = np.random.default_rng(0).random((4, 6), "float32")
    mine = tvm.nd.array(np.zeros(24, "float32"))
    module.set_input("x", data)
    module.set_output_zero_copy(0, mine)
    module.run()
    np.testing.assert_array_equal(mine.numpy(), data.T.reshape(-1))
