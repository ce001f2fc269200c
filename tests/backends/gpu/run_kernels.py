"""Building a schedule or a product for a device, and running it."""

import re

import ml_dtypes
import numpy as np

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.target import Target

OPENCL = Target("opencl", host="llvm")
VULKAN = Target("vulkan", host="llvm")
current = (OPENCL, None)  # the target, and what simulates its device


def axis(tag):
    return te.thread_axis(tag)


def built(schedule, args, target=None, name="kernel"):
    chosen, simulator = current
    function = tvm.build(schedule, args, target or chosen, name=name)
    if simulator is not None:
        simulator.learn(function.imported_modules[0])
    return function


def source(function, language="opencl"):
    return function.imported_modules[0].get_source(language)


def run(function, device, inputs, shape, dtype="float32"):
    """Return what `function` computes of arrays on the device."""
    out = tvm.nd.array(np.full(shape, 77, dtype), device)
    function(*(tvm.nd.array(x, device) for x in inputs), out)
    return out.numpy()


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# -- products on matrix units ----------------------------------------------------------------------

DTYPES = {"bfloat16": ml_dtypes.bfloat16}


def array(rng, shape, dtype):
    if "int" in dtype:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(DTYPES.get(dtype, dtype))


def var(name, *shape, dtype):
    return relay.var(name, shape=shape, dtype=dtype)


def model(body, target):
    given = relay.analysis.free_vars(body)
    return relay.build(tvm.IRModule.from_expr(relay.Function(given, body)), target=target)


def run_model(simulator, body, target, device, instruction, language, **inputs):
    """Return what `body` computes on a simulated device, by an instruction that its code has."""
    library = model(body, target)
    code = library.lib.imported_modules[0]
    simulator.learn(code)
    assert re.search(instruction, code.get_source(language))
    module = graph_executor.GraphModule(library["default"](device))
    module.run(**inputs)
    return module.get_output(0).numpy()


def on_processor(body, **inputs):
    """Return what `body` computes on this processor."""
    module = graph_executor.GraphModule(model(body, Target("llvm"))["default"](tvm.cpu(0)))
    module.run(**inputs)
    return module.get_output(0).numpy()


def strided_groups(x, w, layout, kernel, dtype=None):
    """Return a convolution of odd sizes: two groups, strides that differ, padding."""
    return relay.nn.conv2d(
        var("x", *x.shape, dtype=dtype or str(x.dtype)),
        var("w", *w.shape, dtype=dtype or str(w.dtype)),
        padding=(1, 1), strides=(2, 1), groups=2, channels=64, kernel_size=(3, 3),
        data_layout=layout, kernel_layout=kernel,
    )  # fmt: skip


def in_layout(layout, x, w, wanted):
    """Return images and weights (NCHW, OIHW) and a result in a layout, and that of the weights."""
    if layout == "NCHW":
        return x, w, wanted, "OIHW"
    x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
    return x, w, wanted.transpose(0, 2, 3, 1), "HWIO"


def entered(simulators, name):
    """Let a simulated device stand for its driver; a fixture is to `leave` it."""
    found = simulators(name)
    found.enter()
    found.launched.clear()
    return found


def close(found, wanted):
    """Bytes are the same, floats within 2e-6 of the largest."""
    if found.dtype.kind == "i":
        np.testing.assert_array_equal(found, wanted)
    else:
        scale = np.abs(wanted.astype("float32")).max()
        np.testing.assert_allclose(
            found.astype("float32") / scale, wanted.astype("float32") / scale, atol=2e-6
        )
