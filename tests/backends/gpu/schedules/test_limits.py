"""What kernels of models take is what devices of a target have, and is refused elsewhere."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.backends.gpu.limits import most_tensors
from slipway.contrib import graph_executor
from slipway.errors import CodegenError
from slipway.target import Target

SHAPE = (1, 2, 3)


def join_of(count):
    given = [relay.var(f"x{k}", shape=SHAPE) for k in range(count)]
    parts = [relay.nn.relu(x) for x in given]
    return relay.Function(given, relay.concatenate(parts, axis=1))


def sum_of(count):
    given = [relay.var(f"x{k}", shape=SHAPE) for k in range(count)]
    total = given[0]
    for x in given[1:]:
        total = total + relay.exp(x)
    return relay.Function(given, relay.nn.softmax(total))


def built(function, target):
    return relay.build(tvm.IRModule.from_expr(function), target=Target(target, host="llvm"))


@pytest.mark.parametrize("target", ["opencl", "vulkan", "metal", "webgpu", "rocm"])
@pytest.mark.parametrize("make", [join_of, sum_of])
def test_kernels_of_a_model_take_no_more_tensors_than_a_device_has(make, target):
    most = most_tensors(Target(target))
    for count in (7, 9, 31, 45):
        kernels = built(make(count), target).compiled.device.kernels
        assert max(len(kernel.arg_types) for kernel in kernels) <= most


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
@pytest.mark.parametrize("count", [41, 300])
def test_a_join_of_many_is_right(request, kind, count):
    request.getfixturevalue("device" if kind == "opencl" else kind)
    module = graph_executor.GraphModule(built(join_of(count), kind)["default"](tvm.device(kind)))
    rng = np.random.default_rng(count)
    given = [rng.standard_normal(SHAPE).astype("float32") for _ in range(count)]
    module.run(**{f"x{k}": x for k, x in enumerate(given)})
    wanted = np.maximum(np.concatenate(given, axis=1), 0)
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


def block_of(threads, target):
    x = te.placeholder((4096,), name="x")
    y = te.compute((4096,), lambda i: x[i] * 2.0, name="y")
    schedule = te.create_schedule(y.op)
    block, thread = schedule[y].split(y.op.axis[0], factor=threads)
    schedule[y].bind(block, te.thread_axis("blockIdx.x"))
    schedule[y].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(schedule, [x, y], Target(target, host="llvm"))


def test_blocks_of_amds_gpus_have_1024_threads_unless_the_target_says_fewer():
    asm = block_of(1024, "rocm").imported_modules[0].get_source("asm")
    assert ".max_flat_workgroup_size: 1024" in asm
    with pytest.raises(CodegenError, match="2048 threads in a block"):
        block_of(2048, "rocm")
    with pytest.raises(CodegenError, match="512 threads in a block"):
        block_of(512, "rocm -max_threads_per_block=256")
