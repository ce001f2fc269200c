"""Bring your own code generator: 1x1 convolutions go to a matrix unit, the rest stays as it is.

`matrix_unit.c` stands for the accelerator.  This file tells Slipway three things: what the
accelerator takes (a table of patterns), how a model is cut for it (`partition_for_matrix_unit`),
and what C is to be compiled for a part (``relay.ext.matrix_unit``).  The C goes into the same
library as the other kernels, for whatever target the model is built::

    python matrix_unit.py model.onnx
"""

import math
import sys
from pathlib import Path

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.dataflow_pattern import is_constant, is_op, wildcard

NAME = "matrix_unit"
DRIVER = (Path(__file__).parent / "matrix_unit.c").read_text()


def conv1x1(expr):
    """Return whether a match is what the unit computes: one image, windows of one pixel."""
    while expr.op.name != "nn.conv2d":
        expr = expr.args[0]
    data, weight = (a.checked_type for a in expr.args)
    attrs = expr.attrs
    return (
        data.dtype == "float32"
        and attrs.data_layout == "NCHW"
        and attrs.kernel_layout == "OIHW"
        and data.shape[0] == 1
        and weight.shape[2:] == (1, 1)
        and attrs.groups == 1
        and tuple(attrs.strides) == (1, 1)
        and not any(attrs.padding)
    )


def has_channel_bias(expr):
    """Return whether the sum after the convolution has one value for each channel."""
    total = expr if expr.op.name == "add" else expr.args[0]
    bias = next(a for a in total.args if isinstance(a, relay.Constant))
    channels = total.checked_type.shape[1]
    return conv1x1(expr) and bias.checked_type.shape in ((channels, 1, 1), (1, channels, 1, 1))


@relay.op.contrib.register_pattern_table(NAME)
def pattern_table():
    """Return a convolution, with a bias and a limit where there are any; the largest first."""
    plain = is_op("nn.conv2d")(wildcard(), wildcard())
    biased = is_op("add")(plain, is_constant().has_dtype("float32"))
    return [
        (f"{NAME}.conv_bias_clip", is_op("clip")(biased), has_channel_bias),
        (f"{NAME}.conv_bias", biased, has_channel_bias),
        (f"{NAME}.conv", plain, conv1x1),
    ]


def partition_for_matrix_unit(mod, params=None):
    """Return the module with a function for each part that the unit computes."""
    if params:
        mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    t = relay.transform
    passes = t.Sequential(
        [
            t.InferType(), t.SimplifyInference(), t.FoldConstant(), t.FoldScaleAxis(),
            t.FoldConstant(), t.MergeComposite(relay.op.contrib.get_pattern_table(NAME)),
            t.AnnotateTarget(NAME), t.MergeCompilerRegions(),
            t.PartitionGraph(bind_constants=False),
        ]
    )  # fmt: skip
    with tvm.transform.PassContext(opt_level=3):
        return passes(mod)


@tvm.register_func(f"relay.ext.{NAME}", override=True)
def generate(function):
    """Return the C of one part: calls of the unit in order, with what lies between in buffers."""
    symbol = function.attrs["global_symbol"]
    names = {p: f"in{i}" for i, p in enumerate(function.params)}
    fields = getattr(function.body, "fields", (function.body,))
    for i, value in enumerate(fields):
        names[value] = f"out{i}"
    constants, lines = [], []
    for call in relay.analysis.post_order(function.body, into_functions=False):
        if not isinstance(call, relay.Call):
            continue
        if call not in names:
            names[call] = f"{symbol}_between{len(lines)}"
            size = math.prod(call.checked_type.shape)
            constants.append(f"static float {names[call]}[{size}];")
        lines.append(one_call(call, names, constants, symbol))
    given = [f"const float *in{i}" for i in range(len(function.params))]
    given += [f"float *out{i}" for i in range(len(fields))]
    body = "\n".join(f"  if ({line}) return -1;" for line in lines)
    head = f"int32_t {symbol}({', '.join(given)})"
    return "\n".join([DRIVER, *constants, f"{head};", f"{head} {{\n{body}\n  return 0;\n}}\n"])


def one_call(call, names, constants, symbol):
    """Return the C expression that computes one composite function."""
    inside = call.op.body
    low, high = "-__FLT_MAX__", "__FLT_MAX__"
    if inside.op.name == "clip":
        low, high = (f"{float(v)!r}f" for v in (inside.attrs.a_min, inside.attrs.a_max))
        inside = inside.args[0]
    bias = "0"
    if inside.op.name == "add":
        values = next(a for a in inside.args if isinstance(a, relay.Constant)).data.numpy()
        inside = next(a for a in inside.args if isinstance(a, relay.Call))
        bias = f"{symbol}_bias{len(constants)}"
        text = ", ".join(f"{float(v).hex()}f" for v in values.reshape(-1))
        constants.append(f"static const float {bias}[] = {{{text}}};")
    where = dict(zip(call.op.params, call.args, strict=True))
    data, weight = (names[where[a]] for a in inside.args)
    _, channels, height, width = inside.args[0].checked_type.shape
    filters = inside.checked_type.shape[1]
    return (
        f"matrix_unit_conv1x1({data}, {weight}, {bias}, {low}, {high}, {height * width}, "
        f"{channels}, {filters}, {names[call]})"
    )


def main(path):
    """Compile a model of images for the unit and for the processor, and compare."""
    mod, params = relay.frontend.from_onnx(path)
    cut = partition_for_matrix_unit(mod, params)
    parts = [f for _, f in cut.items() if f.attr("Compiler") == NAME]
    print(f"{len(parts)} parts go to the matrix unit")
    results = []
    rng = np.random.default_rng(0)
    feeds = {
        p.name: rng.standard_normal(p.checked_type.shape).astype("float32")
        for p in cut["main"].params
    }
    for module in (mod, cut):
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(module, target="llvm", params=params)
        run = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
        run.run(**feeds)
        results.append(run.get_output(0).numpy())
    print("largest difference:", np.abs(results[0] - results[1]).max())


if __name__ == "__main__":
    main(sys.argv[1])
