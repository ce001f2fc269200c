"""Loops over threads whose number of steps differs between blocks: as many threads as the most."""

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import LoweringError
from slipway.script import tir as T
from slipway.target import Target


def built(function, name):
    target, simulator = run_kernels.current
    made = tvm.build(function, target=target, name=name)
    if simulator is not None:
        simulator.learn(made.imported_modules[0])
    return made


def test_each_block_has_the_steps_that_it_says(any_device):
    @T.prim_func
    def stairs(a: T.Buffer((4, 11), "float32"), b: T.Buffer((4, 11), "float32")):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(i * 3 + 2, thread="threadIdx.x"):
                b[i, j] = a[i, j] * T.float32(2)

    x = run_kernels.random(4, 11)
    found = run_kernels.run(built(stairs, "stairs"), any_device, (x,), x.shape)
    for row in range(4):
        steps = row * 3 + 2
        np.testing.assert_array_equal(found[row, :steps], x[row, :steps] * 2)
        assert (found[row, steps:] == 77).all()


def test_loops_beside_each_other_take_the_threads_of_the_longer(any_device):
    @T.prim_func
    def transposed(a: T.Buffer((3, 8), "float32"), b: T.Buffer((3, 8), "float32")):
        for i in T.thread_binding(3, thread="blockIdx.x"):
            kept = T.alloc_buffer((8,), "float32", scope="shared")
            for j in T.thread_binding(8 - i, thread="threadIdx.x"):
                kept[j] = a[i, j]
            for j in T.thread_binding(4, thread="threadIdx.x"):
                b[i, j] = kept[3 - j]

    x = run_kernels.random(3, 8)
    found = run_kernels.run(built(transposed, "transposed"), any_device, (x,), x.shape)
    np.testing.assert_array_equal(found[:, :4], x[:, 3::-1])


def test_steps_that_nobody_knows_are_refused():
    @T.prim_func
    def open_ended(a: T.Buffer((4,), "int32"), b: T.Buffer((4, 64), "int32")):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(a[i], thread="threadIdx.x"):
                b[i, j] = 1

    @T.prim_func
    def grown(n: T.int32, b: T.Buffer((4, 64), "int32")):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(i * n, thread="threadIdx.x"):
                b[i, j] = 1

    for function, steps in ((open_ended, r"a\["), (grown, r"\* n|n \*")):
        with pytest.raises(LoweringError, match=rf"threadIdx\.x has .*({steps}).* steps.*constant"):
            tvm.build(function, target=run_kernels.OPENCL, name="unknown")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 4)])
def test_a_tile_in_two_groups_is_right_where_it_is_asked_for(any_device, layout, rows, columns):
    """Its panels are of one group or of two, which the block's number says."""
    shape, filters = (1, 72, 5, 7), (80, 36, 3, 3)
    if layout == "NHWC":
        shape, filters = (1, 5, 7, 72), (3, 3, 36, 80)
    x, w = relay.var("x", shape=shape), relay.var("w", shape=filters)
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    conv = relay.nn.conv2d(
        x, w, padding=(1, 1), groups=2, channels=80, kernel_size=(3, 3), data_layout=layout,
        kernel_layout=kernel,
    )  # fmt: skip
    mod = tvm.IRModule.from_expr(relay.Function([x, w], conv))
    knobs = {"block_rows": 16, "block_columns": 16, "rows": rows, "columns": columns, "depth": 8}
    whole = {"x": run_kernels.random(*shape) * 3, "w": run_kernels.random(*filters, seed=1) * 3}
    values = {name: v.round() for name, v in whole.items()}  # float32 holds all of their sums

    def result(target, where, force, simulator=None):
        with tvm.transform.PassContext(config={"schedules.force": {"nn.conv2d": force}}):
            made = relay.build(mod, target=target)
        if simulator is not None:
            simulator.learn(made.lib.imported_modules[0])
        module = graph_executor.GraphModule(made["default"](where))
        module.run(**values)
        return module.get_output(0).numpy()

    target, simulator = run_kernels.current
    found = result(target, any_device, {"strategy": "threads.shared", **knobs}, simulator)
    wanted = result(Target("llvm"), tvm.cpu(0), {})
    np.testing.assert_array_equal(found, wanted)
