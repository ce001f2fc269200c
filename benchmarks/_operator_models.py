"""Models of one operator, or of a short chain, in the sizes that networks have them in.

`CASES` maps "class/name" to a function that adds the operators to a `Graph`; `make_model` writes
the ONNX model.  Constant operands are weights of the model, everything else is an input.
"""

from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
OPSET = 18


class Graph:
    """Collects nodes, weights and inputs; values are names."""

    def __init__(self):
        self.nodes, self.weights, self.inputs = [], [], []
        self.rng = np.random.default_rng(0)

    def fresh(self):
        return f"v{len(self.nodes) + len(self.weights) + len(self.inputs)}"

    def input(self, *shape, kind=F32):
        self.inputs.append(helper.make_tensor_value_info(self.fresh(), kind, shape))
        return self.inputs[-1].name

    def constant(self, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), self.fresh()))
        return self.weights[-1].name

    def scalar(self, value):
        return self.constant(np.float32(value))

    def ints(self, *values):
        return self.constant(np.array(values, "int64"))

    def weight(self, *shape, fan_in=None):
        """Random weights, scaled so that sums over `fan_in` of them stay near one."""
        scale = (fan_in or prod(shape[1:])) ** -0.5
        return self.constant((self.rng.standard_normal(shape) * scale).astype("float32"))

    def positive(self, *shape):
        return self.constant(self.rng.uniform(0.5, 1.5, shape).astype("float32"))

    def __call__(self, op, *args, outputs=1, **attrs):
        names = [f"{self.fresh()}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(args), names, **attrs))
        return names[0] if outputs == 1 else names


def make_model(build):
    """Return the checked ONNX model of one of the `CASES`."""
    graph = Graph()
    results = build(graph)
    results = [results] if isinstance(results, str) else results
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    made = helper.make_graph(graph.nodes, "g", graph.inputs, outputs, graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    return model


def conv(g, shape, filters, kernel, stride=1, pad=None, dilation=1, groups=1, relu=True):
    """A convolution of any number of dimensions with bias and ReLU; "same" padding by default."""
    rank = len(shape) - 2
    kernel = (kernel,) * rank if isinstance(kernel, int) else kernel
    if pad is None:
        pad = [dilation * (k - 1) // 2 for k in kernel] * 2
    made = g(
        "Conv", g.input(*shape), g.weight(filters, shape[1] // groups, *kernel),
        g.weight(filters, fan_in=100), strides=[stride] * rank, pads=pad,
        dilations=[dilation] * rank, group=groups,
    )  # fmt: skip
    return g("Relu", made) if relu else made


def bottleneck(g, shape, width, groups):
    """The middle of a ResNeXt block: 1x1, 3x3 in groups, 1x1."""
    x = conv(g, shape, width, 1)
    for shape_in, filters, kernel, parts in ((width, width, 3, groups), (width, shape[1], 1, 1)):
        weight = g.weight(filters, shape_in // parts, kernel, kernel)
        x = g("Conv", x, weight, pads=[kernel // 2] * 4, group=parts)
        x = g("Relu", x)
    return x


def deconv(g, shape, filters, kernel, stride, pad=0, more=0):
    """A transposed convolution with bias."""
    rank = len(shape) - 2
    weight = g.weight(shape[1], filters, *[kernel] * rank, fan_in=shape[1])
    return g(
        "ConvTranspose", g.input(*shape), weight, g.weight(filters, fan_in=100),
        strides=[stride] * rank, pads=[pad] * 2 * rank, output_padding=[more] * rank,
    )  # fmt: skip


def dense(g, rows, depth, units, **attrs):
    """Gemm with constant weights and a bias."""
    shape = (units, depth) if attrs.get("transB") else (depth, units)
    data = (depth, rows) if attrs.get("transA") else (rows, depth)
    weight = g.weight(*shape, fan_in=depth)
    return g("Gemm", g.input(*data), weight, g.weight(units, fan_in=100), **attrs)


def product(g, left, right, transpose=False):
    """A product of two inputs; with `transpose` the right one is stored transposed."""
    b = g.input(*right)
    if transpose:
        order = [*range(len(right) - 2), len(right) - 1, len(right) - 2]
        b = g("Transpose", b, perm=order)
    return g("MatMul", g.input(*left), b)


def norm(g, shape, op, *sizes, **attrs):
    """A normalisation with scale and shift (and mean and variance, where `op` has them)."""
    x = g.input(*shape)
    statistics = [g.weight(*sizes), g.positive(*sizes)] if op == "BatchNormalization" else []
    return g(op, x, g.positive(*sizes), g.weight(*sizes), *statistics, **attrs)


def group_norm(g, shape, groups):
    """GroupNorm as exporters write it: InstanceNormalization of reshaped data, then an affine."""
    x = g("Reshape", g.input(*shape), g.ints(shape[0], groups, -1))
    x = g("InstanceNormalization", x, g.positive(groups), g.weight(groups))
    x = g("Reshape", x, g.ints(*shape))
    affine = (shape[1], *(1,) * (len(shape) - 2))
    return g("Add", g("Mul", x, g.positive(*affine)), g.weight(*affine))


def rms_norm(g, shape):
    x = g.input(*shape)
    mean = g("ReduceMean", g("Mul", x, x), g.ints(-1))
    root = g("Sqrt", g("Add", mean, g.scalar(1e-5)))
    return g("Mul", g("Div", x, root), g.positive(shape[-1]))


def reduce(g, op, shape, *axes, keep=1):
    return g(op, g.input(*shape), g.ints(*axes), keepdims=keep)


def resize(g, shape, size, mode, coordinates="half_pixel", **attrs):
    """Resize to the spatial `size`."""
    sizes = g.ints(*shape[:2], *size)
    how = {"mode": mode, "coordinate_transformation_mode": coordinates, **attrs}
    return g("Resize", g.input(*shape), "", "", sizes, **how)


def gelu(g, shape):
    x = g.input(*shape)
    erf = g("Add", g("Erf", g("Div", x, g.scalar(1.41421356))), g.scalar(1))
    return g("Mul", g("Mul", x, erf), g.scalar(0.5))


def gelu_tanh(g, shape):
    x = g.input(*shape)
    cube = g("Mul", g("Pow", x, g.scalar(3)), g.scalar(0.044715))
    inner = g("Tanh", g("Mul", g("Add", x, cube), g.scalar(0.7978845608)))
    return g("Mul", g("Mul", x, g("Add", inner, g.scalar(1))), g.scalar(0.5))


def times(g, shape, op, **attrs):
    """x * op(x): silu, mish and their like."""
    x = g.input(*shape)
    return g("Mul", x, g(op, x, **attrs))


def with_other(g, op, shape, *other):
    return g(op, g.input(*shape), g.input(*other))


def alone(g, op, shape, **attrs):
    return g(op, g.input(*shape), **attrs)


def positive_alone(g, op, shape):
    return g(op, g("Add", g("Abs", g.input(*shape)), g.scalar(0.1)))


def shuffle(g, shape, groups):
    """The channel shuffle of ShuffleNet."""
    n, c, h, w = shape
    x = g("Reshape", g.input(*shape), g.ints(n, groups, c // groups, h, w))
    return g("Reshape", g("Transpose", x, perm=[0, 2, 1, 3, 4]), g.ints(*shape))


def recurrent(g, op, steps, batch, size, hidden, bidirectional=False):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
    ways = 2 if bidirectional else 1
    w, r = (g.weight(ways, gates, n, fan_in=n) for n in (size, hidden))
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    direction = "bidirectional" if bidirectional else "forward"
    x = g.input(steps, batch, size)
    bias = g.weight(ways, 2 * gates, fan_in=100)
    return g(op, x, w, r, bias, outputs=2, hidden_size=hidden, direction=direction, **more)[0]


def quantized(g, value, scale, zero=0):
    """`value` rounded to int8 and back, as quantised models have it."""
    zero = g.constant(np.int8(zero))
    step = g.scalar(scale)
    return g("DequantizeLinear", g("QuantizeLinear", value, step, zero), step, zero)


def dense_int8(g, rows, depth, units):
    weight = g.constant(g.rng.integers(-127, 128, (depth, units)).astype("int8"))
    w = g("DequantizeLinear", weight, g.scalar(0.01), g.constant(np.int8(0)))
    x = quantized(g, g.input(rows, depth), 0.03)
    return quantized(g, g("MatMul", x, w), 0.3)


def typed(g, kind, build, *sizes):
    """A product of two inputs of another type, converted on the way in and out."""
    a, b = (g("Cast", g.input(*s), to=kind) for s in sizes)
    return g("Cast", g(build, a, b), to=F32)


def split(g, shape, parts, axis):
    x = g.input(*shape)
    sizes = g.ints(*[shape[axis] // parts] * parts)
    return g("Split", x, sizes, outputs=parts, axis=axis)


def sliced(g, shape, starts, ends, axes, steps):
    return g("Slice", g.input(*shape), *(g.ints(*v) for v in (starts, ends, axes, steps)))


def padded(g, shape, pads, mode="constant"):
    return g("Pad", g.input(*shape), g.ints(*pads), mode=mode)


def gather(g, table, count, axis=0):
    """Rows (or columns) of a constant table by input indices below 100."""
    return g("Gather", g.weight(*table), g.input(*count, kind=I64), axis=axis)


def top_k(g, shape, k):
    return g("TopK", g.input(*shape), g.ints(k), outputs=2, axis=-1)


def pool(g, op, shape, kernel, stride, pad=0, **attrs):
    rank = len(shape) - 2
    attrs = {"strides": [stride] * rank, "pads": [pad] * 2 * rank, **attrs}
    return g(op, g.input(*shape), kernel_shape=[kernel] * rank, **attrs)
