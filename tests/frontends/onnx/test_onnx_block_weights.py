"""MatMulNBits and GatherBlockQuantized, against onnxruntime and exact arithmetic."""

import numpy as np
import onnx
import onnxruntime
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import OpNotImplemented
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

RNG = np.random.default_rng(0)


def packed(values, bits):
    """Integers of the last axis in bytes, the lowest bits first."""
    ones = values[..., None] >> np.arange(bits) & 1
    return np.packbits(
        ones.reshape(*values.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little"
    )


def product(bits, size, depth, units, zeros=None, shape=(3,), **attributes):
    """A model of one node, its weight as numbers, and data."""
    blocks = -(-depth // size)
    whole = RNG.integers(0, 1 << bits, (units, blocks, size))
    scales = RNG.uniform(-0.1, 0.1, (units, blocks)).astype(np.float32)
    weights = {"w": packed(whole, bits), "s": scales.reshape(-1)}
    middle = np.full((units, blocks), 1 << bits - 1)
    names = ["x", "w", "s"]
    if zeros == "packed":
        middle = RNG.integers(0, 1 << bits, (units, blocks))
        weights["z"] = packed(middle, bits).reshape(-1)
    elif zeros == "floats":
        middle = RNG.uniform(0, 1 << bits, (units, blocks)).astype(np.float32)
        weights["z"] = middle
    if zeros:
        names.append("z")
    if attributes.pop("bias", False):
        weights["b"] = RNG.standard_normal(units).astype(np.float32)
        names += [""] * (5 - len(names)) + ["b"]
    node = helper.make_node(
        "MatMulNBits", names, ["y"], domain="com.microsoft", K=depth, N=units, bits=bits,
        block_size=size, **attributes,
    )  # fmt: skip
    proto = model([node], {"x": ("float32", (*shape, depth))}, ["y"], weights)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    exact = ((whole - middle[..., None].astype(np.float64)) * scales[..., None]).reshape(units, -1)
    data = RNG.standard_normal((*shape, depth)).astype(np.float32)
    return proto, exact[:, :depth], data, weights.get("b", 0.0)


def session(proto):
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize(
    ("bits", "size", "depth", "zeros"),
    [(4, 32, 64, None), (4, 16, 48, "packed"), (4, 64, 100, "packed"), (8, 32, 64, "packed"),
     (8, 128, 130, None), (4, 32, 96, "floats"), (2, 32, 64, "packed"), (2, 16, 16, None)],
)  # fmt: skip
def test_exact_products(bits, size, depth, zeros):
    proto, exact, data, bias = product(bits, size, depth, 7, zeros, shape=(2, 3), bias=True)
    mod, _ = relay.frontend.from_onnx(proto)
    want = session(proto).run(None, {"x": data})[0]
    found = interpret(mod, x=data)
    np.testing.assert_allclose(found, data.astype(np.float64) @ exact.T + bias, atol=1e-4)
    np.testing.assert_allclose(found, want, atol=1e-4)


@pytest.mark.parametrize(
    ("bits", "size", "depth", "zeros"),
    [(4, 32, 64, None), (4, 16, 48, "packed"), (4, 64, 100, "packed"), (8, 32, 64, "packed"),
     (8, 32, 64, None), (4, 128, 256, "floats"), (5, 32, 64, "packed")],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(1,), (2, 5)])
def test_products_of_bytes(bits, size, depth, zeros, shape):
    """The error is that of the data in int8: half a step of each element."""
    proto, exact, data, _ = product(bits, size, depth, 40, zeros, shape, accuracy_level=4)
    mod, params = relay.frontend.from_onnx(proto)
    library = relay.build(mod, target="llvm -mcpu=native", params=params)
    module = GraphModule(library["default"](cpu()))
    module.run(x=data)
    flat = np.pad(data.reshape(-1, depth), ((0, 0), (0, -depth % 32)))
    step = np.repeat(np.abs(flat).reshape(len(flat), -1, 32).max(-1) / 127, 32, -1)[:, :depth]
    bound = (step / 2 * 1.001 + 1e-5 * np.abs(flat[:, :depth])) @ np.abs(exact).T + 1e-5
    # A minimum and what it is taken from may both be large beside their difference.
    bound = bound + 1e-5 * np.abs(flat).sum(-1, keepdims=True)
    found = module.get_output(0).numpy().reshape(len(flat), -1)
    assert (np.abs(found - flat[:, :depth].astype(np.float64) @ exact.T) <= bound).all()


@pytest.mark.parametrize("level", [0, 4])
def test_weights_stay_in_their_bits(level):
    proto, *_ = product(4, 32, 64, 48, accuracy_level=level, shape=(2, 4))
    mod, params = relay.frontend.from_onnx(proto)
    kinds = {str(node.op) for node in post_order(mod["main"]) if isinstance(node, relay.Call)}
    assert any(("block_dense" if level else "block_take") in kind for kind in kinds)
    library = relay.build(mod, target="llvm -mcpu=cascadelake", params=params)
    assert any("contrib_block_dense" in name for name in library.get_graph_json().split('"'))


@pytest.mark.parametrize(
    ("kind", "axis", "zeros"), [("INT4", 0, False), ("UINT4", 0, True), ("INT8", 1, True)]
)
def test_products_with_dequantised_blocks(kind, axis, zeros):
    """DequantizeLinear with `block_size`, as quantisers of weights write it around a MatMul.

    onnxruntime makes a MatMulNBits of it that rounds the data: it is no reference here.
    """
    low, high = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128)}[kind]
    shape = (64, 48) if axis == 0 else (48, 64)
    counts = (2, 48) if axis == 0 else (48, 2)
    scales = RNG.uniform(0.01, 0.1, counts).astype(np.float32)
    whole, points = RNG.integers(low, high, shape), RNG.integers(low, high, counts)
    number = getattr(onnx.TensorProto, kind)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", *(["z"] if zeros else [])], ["d"],
                         axis=axis, block_size=32),
        helper.make_node("Gemm", ["x", "d"], ["y"], transB=1) if axis else
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": ("float32", (5, 64))}, ["y"], {"s": scales}, opset=21)
    for name, values in (("w", whole), ("z", points)):
        proto.graph.initializer.append(
            helper.make_tensor(name, number, values.shape, values.ravel())
        )
    data = RNG.standard_normal((5, 64)).astype(np.float32)
    step, zero = (np.repeat(a, 32, axis) for a in (scales.astype(np.float64), points * zeros))
    exact = (whole - zero) * step
    want = data @ (exact.T if axis else exact)
    mod, params = relay.frontend.from_onnx(proto)
    library = relay.build(mod, target="llvm -mcpu=native", params=params)
    module = GraphModule(library["default"](cpu()))
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0).numpy(), want, atol=2e-6 * np.abs(want).max())
    sizes = [a.nbytes for a in library.get_params().values() if str(a.dtype) == "uint8"]
    assert sizes == [64 * 48 // (1 if kind == "INT8" else 2)]


def test_columns_with_a_block_of_their_own():
    proto, _, data, _ = product(4, 32, 64, 5)
    order = RNG.permutation(np.arange(64) // 32).astype(np.int32)
    node = proto.graph.node[0]
    node.input.extend(["", "g"])
    proto.graph.initializer.append(onnx.numpy_helper.from_array(order, "g"))
    mod, _ = relay.frontend.from_onnx(proto)
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer}
    scales = weights["s"].reshape(5, 2)[:, order]
    low = np.stack([weights["w"] & 15, weights["w"] >> 4], -1).reshape(5, 64).astype(np.float64)
    want = data @ ((low - 8) * scales).T
    np.testing.assert_allclose(interpret(mod, x=data), want, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [({"bits": 9}, "2 to 8"), ({"block_size": 24}, "power of two"),
     ({"weight_prepacked": 1}, "packed for one device"), ({"N": 6}, "is not 6 rows")],
)  # fmt: skip
def test_what_cannot_be_is_refused(changed, problem):
    proto, *_ = product(4, 32, 64, 5)
    for attribute in list(proto.graph.node[0].attribute):
        if attribute.name in changed:
            proto.graph.node[0].attribute.remove(attribute)
    for name, value in changed.items():
        proto.graph.node[0].attribute.append(helper.make_attribute(name, value))
    with pytest.raises(OpNotImplemented, match=problem):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize(
    ("kind", "bits", "size", "zeros", "axes"),
    [("uint8", 4, 16, True, (0, 1)), ("uint8", 4, 32, False, (0, 1)),
     ("uint8", 8, 32, True, (0, 1)), ("int4", 4, 16, False, (0, 1)),
     ("int4", 4, 16, True, (0, 1)), ("uint4", 4, 32, True, (0, 1)),
     ("int4", 4, 16, True, (1, 0)), ("uint8", 2, 16, True, (0, 1))],
)  # fmt: skip
def test_rows(kind, bits, size, zeros, axes):
    signed = kind == "int4"
    low, high = (-8, 8) if signed else (0, 1 << bits)
    whole = RNG.integers(low, high, (32, 80))
    counts = [-(-n // size) if axis == axes[1] else n for axis, n in enumerate(whole.shape)]
    scales = RNG.uniform(0, 1, counts).astype(np.float32)
    points = RNG.integers(low, high, counts)
    constants = [helper.make_tensor("s", 1, counts, scales.reshape(-1))]
    for name, values in (("d", whole), ("z", points)):
        if kind == "uint8":
            raw = packed(values, bits)
            constants.append(onnx.numpy_helper.from_array(raw, name))
        else:
            number = {"int4": onnx.TensorProto.INT4, "uint4": onnx.TensorProto.UINT4}[kind]
            constants.append(helper.make_tensor(name, number, values.shape, values.reshape(-1)))
    node = helper.make_node(
        "GatherBlockQuantized", ["d", "x", "s", *(["z"] if zeros else [])], ["y"],
        domain="com.microsoft", bits=bits, block_size=size, gather_axis=axes[0],
        quantize_axis=axes[1],
    )  # fmt: skip
    proto = model([node], {"x": ("int64", (2, 3))}, ["y"], {})
    proto.graph.initializer.extend(constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    picked = np.array([[0, 5, -1], [31, 7, 3]], np.int64)
    want = session(proto).run(None, {"x": picked})[0]
    mod, _ = relay.frontend.from_onnx(proto)
    # scale q and scale zero, both below 1 << bits, are rounded before one is taken from the other
    tolerance = 2.0 ** (bits - 23)
    np.testing.assert_allclose(interpret(mod, x=picked), want, rtol=0, atol=tolerance)
