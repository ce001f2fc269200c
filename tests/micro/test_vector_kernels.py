"""The hand-written kernels with vectors on their core, on layers of every form at once."""

import re

import numpy as np
from aot_models import build
from firmware_tools import needs
from tests.micro.test_aot_boards import bench_inputs

import slipway as tvm
from slipway import micro, relay
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.relay.op_registry import get
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, IntegerDenseAttrs
from slipway.relay.ops.qnn.rescale import rescale
from slipway.runtime.graph.graph_executor import GraphModule

SHAPES = {
    # data (height, width, channels), kernel, strides, dilation, padding (top, left, bottom, right)
    "depthwise": [
        ((7, 6, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((6, 7, 40), (3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
        ((9, 9, 3), (4, 2), (3, 4), (1, 1), (0, 3, 2, 0)),
        ((8, 8, 19), (3, 3), (1, 1), (2, 1), (2, 1, 2, 1)),
        ((8, 8, 19), (3, 2), (1, 1), (1, 3), (1, 3, 1, 3)),
        ((7, 7, 24), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
        ((12, 1, 33), (10, 1), (1, 1), (1, 1), (2, 0, 0, 0)),
        ((1, 20, 5), (1, 17), (1, 2), (1, 1), (0, 8, 0, 8)),
        ((5, 5, 16), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ],
    "convolution": [
        ((5, 5, 16), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((6, 5, 48), (1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
        ((6, 6, 3), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((7, 9, 5), (3, 2), (2, 1), (1, 2), (0, 1, 2, 1)),
        ((9, 8, 1), (7, 8), (2, 2), (1, 1), (3, 3, 3, 3)),
    ],
    "product": [((1, 1, 1),), ((1, 1, 37),), ((1, 1, 128),)],
}
UNITS = (1, 4, 7, 10, 16)


def layer(kind, seed, shape, kernel=(1, 1), strides=(1, 1), dilation=(1, 1), padding=(0,) * 4):
    """A quantised layer as importers write it, of random weights, -128 among them."""
    rng = np.random.default_rng(seed)
    attrs = {"strides": strides, "dilation": dilation, "padding": padding, "pad_value": -7}
    data = relay.var("data", shape=(1, *shape), dtype="int8")
    units = shape[2] if kind == "depthwise" else UNITS[seed % len(UNITS)]
    size = (*kernel, units) if kind == "depthwise" else (*kernel, shape[2], units)
    weight = rng.integers(-128, 128, size[-2:] if kind == "product" else size).astype("int8")
    name = {"depthwise": "depthwise_conv2d_nhwc", "convolution": "conv2d_nhwc"}.get(kind)
    if name is None:
        data = relay.var("data", shape=(1, shape[2]), dtype="int8")
        x = get("qnn.dense_packed")(data, relay.const(weight), attrs=IntegerDenseAttrs())
    else:
        x = get(f"qnn.{name}")(data, relay.const(weight), attrs=IntegerConvAttrs(**attrs))
    count = units if seed % 3 else 1
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, count).astype("int32")
    shift = rng.integers(-13, -6, count).astype("int32")
    if count == 1:
        multiplier, shift = multiplier.reshape(()), shift.reshape(())
    x = relay.add(x, relay.const(rng.integers(-30000, 30001, units).astype("int32")))
    x = rescale(x, relay.const(multiplier), relay.const(shift))
    x = relay.add(x, relay.const(np.int32(rng.integers(-128, 128))))
    low, high = ((-128, 127), (-100, 90))[seed % 2]
    return data, relay.cast(relay.clip(x, low, high), "int8")


def everything():
    """One model of all layers, each with an input of its own."""
    cases = [(kind, case) for kind, cases in SHAPES.items() for case in cases]
    inputs, outputs = [], []
    for seed, (kind, case) in enumerate(cases):
        data, x = layer(kind, seed, *case)
        named = relay.var(f"data{seed}", type_annotation=data.type_annotation)
        outputs.append(relay.bind(x, {data: named}))
        inputs.append(named)
    return tvm.IRModule.from_expr(relay.Function(inputs, relay.Tuple(outputs))), {}


def test_layers_of_all_forms_are_bit_exact_with_vectors(tmp_path):
    board = find_board("mps3-an547")
    needs(board)
    model = everything()
    lib = build(model, target=board.target)
    assert [k.family for k in lib.library.values()] == ["mve"] * len(lib.program.inputs)
    project = micro.generate_project(
        "baremetal", lib, tmp_path / "p", {"board": board.name, "project_type": "bench"}
    )
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    found = re.findall(r"OUT (\w+)", text)
    with tvm.transform.PassContext(opt_level=0):
        host = GraphModule(relay.build(model[0], target="llvm")["default"](tvm.cpu(0)))
    count = len(lib.program.inputs)
    for seed in range(1, 11):
        for name, data in bench_inputs(lib, seed).items():
            host.set_input(name, data)
        host.run()
        for i in range(count):
            wanted = host.get_output(i).numpy().tobytes().hex()
            assert found[(seed - 1) * count + i] == wanted, (i, seed)
