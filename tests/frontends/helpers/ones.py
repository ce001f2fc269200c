"""Random ONNX graphs whose extents are mostly 1: batch, channels, space, taps; ranks 0 to 5.

Where a tensor has one element, code that looks at its size takes it for a scalar.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "LeakyRelu", "Identity", "Softplus")
WINDOWS = ("conv", "depthwise", "transposed", "pool", "global_pool", "batch_norm")
SHAPES = ("reshape", "flatten", "squeeze", "unsqueeze", "transpose", "expand", "pad", "slice")
OTHERS = ("gemm", "matmul", "unary", "clip", "binary", "constant", "where", "prelu", "concat")
KINDS = (*WINDOWS, *SHAPES, *OTHERS, "softmax", "reduce", "conv", "conv", "unary", "constant")
MOST_ELEMENTS = 5000


class Graphs:
    """One random graph; with `quantized`, QuantizeLinear and DequantizeLinear around its layers."""

    def __init__(self, seed, quantized=False):
        self.random = np.random.default_rng(seed)
        self.quantized = quantized
        self.nodes, self.initializers, self.shapes, self.count = [], [], {}, 0

    def model(self):
        """Return a ModelProto and its inputs; None when nothing was drawn that computes."""
        infos, inputs = [], {}
        for number in range(self.below(1, 3)):
            rank = int(self.random.choice([2, 3, 4, 4, 4, 4, 5]))
            shape = tuple(self.extent() for _ in range(rank))
            if self.random.random() < 0.7:
                shape = (1, *shape[1:])
            if self.random.random() < 0.4:
                shape = shape[:2] + (1,) * (rank - 2)
            self.shapes[f"x{number}"] = shape
            infos.append(helper.make_tensor_value_info(f"x{number}", TensorProto.FLOAT, shape))
            inputs[f"x{number}"] = self.random.normal(size=shape).astype("float32")
        for _ in range(self.below(2, 11)):
            getattr(self, "add_" + str(self.random.choice(KINDS)))()
        made = [n.output[0] for n in self.nodes if n.output[0] in self.shapes]
        if not made:
            return None
        outputs = dict.fromkeys([made[-1], str(self.random.choice(made))])
        described = [
            helper.make_tensor_value_info(o, TensorProto.FLOAT, self.shapes[o]) for o in outputs
        ]
        graph = helper.make_graph(self.nodes, "ones", infos, described, self.initializers)
        opset = [helper.make_opsetid("", 18)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9), inputs

    # -- parts -----------------------------------------------------------------------------------

    def below(self, low, high):
        return int(self.random.integers(low, high))

    def extent(self):
        return int(self.random.choice([1, 1, 1, 1, 2, 3, 4, 5, 17]))

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def const(self, shape, dtype="float32", values=None):
        values = self.random.normal(size=shape) if values is None else values
        name = self.name()
        array = np.asarray(values, dtype).reshape(shape)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, values):
        return self.const((len(values),), "int64", values)

    def op(self, kind, inputs, shape, hidden=False, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        if not hidden:
            self.shapes[name] = tuple(int(d) for d in shape)
        return name

    def pick(self, fits=lambda shape: True):
        """A tensor, a late one rather than an early one; None where none fits."""
        found = [name for name, shape in self.shapes.items() if fits(shape)]
        weights = np.arange(1, len(found) + 1) ** 2
        return str(self.random.choice(found, p=weights / weights.sum())) if found else None

    def of_rank(self, minimum, most=5):
        return self.pick(lambda shape: minimum <= len(shape) <= most)

    def rounded(self, x):
        """`x` through int8 or uint8, the scale of shape () or (1,)."""
        if not self.quantized or self.random.random() < 0.3:
            return x
        shape = [(), (1,)][self.below(0, 2)]
        scale = self.const(shape, values=0.05)
        zero = self.const(shape, ["uint8", "int8"][self.below(0, 2)], self.below(0, 3))
        held = self.op("QuantizeLinear", [x, scale, zero], (), hidden=True)
        return self.op("DequantizeLinear", [held, scale, zero], self.shapes[x])

    def weight(self, shape, axis=0):
        if not self.quantized:
            return self.const(shape)
        values = self.const(shape, "int8", self.random.integers(-100, 100, size=shape))
        of = [(), (1,), (shape[axis],)][self.below(0, 3)]
        factors = [self.const(of, values=np.full(of, 0.02)), self.const(of, "int8", np.zeros(of))]
        attributes = {"axis": axis} if of == (shape[axis],) else {}
        return self.op("DequantizeLinear", [values, *factors], (), hidden=True, **attributes)

    # -- windows -----------------------------------------------------------------------------------

    def window(self):
        """An operand with spatial axes, its taps, padding and strides."""
        x = self.of_rank(3)
        rank = len(self.shapes[x]) - 2 if x else 0
        taps = [int(self.random.choice([1, 1, 2, 3])) for _ in range(rank)]
        pads = [self.below(0, 2) if t > 1 else 0 for t in taps]
        return x, taps, pads, [int(self.random.choice([1, 1, 2])) for _ in range(rank)]

    def add_conv(self, depthwise=False):
        x, taps, pads, strides = self.window()
        if x is None:
            return
        batch, channels, *sizes = self.shapes[x]
        if any(s + 2 * p < t for s, p, t in zip(sizes, pads, taps, strict=True)):
            return
        moved = zip(sizes, taps, pads, strides, strict=True)
        sizes = [(s + 2 * p - t) // step + 1 for s, t, p, step in moved]
        groups = channels if depthwise else 1
        filters = channels * self.below(1, 3) if depthwise else self.extent()
        x = self.rounded(x)
        inputs = [x, self.weight((filters, channels // groups, *taps))]
        if self.random.random() < 0.6:
            inputs.append(self.const((filters,)))
        options = {"kernel_shape": taps, "pads": pads * 2, "strides": strides, "group": groups}
        self.rounded(self.op("Conv", inputs, (batch, filters, *sizes), **options))

    def add_depthwise(self):
        self.add_conv(depthwise=True)

    def add_transposed(self):
        x, taps, pads, strides = self.window()
        if x is None:
            return
        batch, channels, *sizes = self.shapes[x]
        moved = zip(sizes, taps, pads, strides, strict=True)
        sizes = [(s - 1) * step - 2 * p + t for s, t, p, step in moved]
        if min(sizes) < 1:
            return
        filters = self.extent()
        inputs = [x, self.const((channels, filters, *taps)), self.const((filters,))]
        options = {"kernel_shape": taps, "pads": pads * 2, "strides": strides}
        self.op("ConvTranspose", inputs, (batch, filters, *sizes), **options)

    def add_pool(self):
        x, taps, pads, strides = self.window()
        if x is None:
            return
        batch, channels, *sizes = self.shapes[x]
        if any(s + 2 * p < t for s, p, t in zip(sizes, pads, taps, strict=True)):
            return
        moved = zip(sizes, taps, pads, strides, strict=True)
        sizes = [(s + 2 * p - t) // step + 1 for s, t, p, step in moved]
        kind = ["MaxPool", "AveragePool"][self.below(0, 2)]
        options = {"kernel_shape": taps, "pads": pads * 2, "strides": strides}
        self.op(kind, [x], (batch, channels, *sizes), **options)

    def add_global_pool(self):
        if x := self.of_rank(3):
            shape = self.shapes[x]
            kind = ["GlobalAveragePool", "GlobalMaxPool"][self.below(0, 2)]
            self.op(kind, [x], shape[:2] + (1,) * (len(shape) - 2))

    def add_batch_norm(self):
        if x := self.of_rank(3):
            channels = (self.shapes[x][1],)
            factors = [self.const(channels) for _ in range(3)]
            spread = self.const(channels, values=self.random.random(channels) + 0.5)
            self.op("BatchNormalization", [x, *factors, spread], self.shapes[x])

    # -- products and elementwise operators --------------------------------------------------------

    def add_gemm(self):
        if not (x := self.of_rank(2, 2)):
            return
        (rows, depth), units, turned = self.shapes[x], self.extent(), self.below(0, 2)
        shape = (units, depth) if turned else (depth, units)
        inputs = [self.rounded(x), self.weight(shape, 0 if turned else 1)]
        biases = [(), (1,), (units,), (1, units), (rows, 1)]
        if self.random.random() < 0.7:
            inputs.append(self.const(biases[self.below(0, 5)]))
        self.rounded(self.op("Gemm", inputs, (rows, units), transB=turned))

    def add_matmul(self):
        if x := self.of_rank(1):
            *outer, depth = self.shapes[x]
            units = self.extent()
            self.op("MatMul", [x, self.const((depth, units))], (*outer, units))

    def add_unary(self):
        x = self.pick()
        self.op(str(self.random.choice(UNARY)), [x], self.shapes[x])

    def add_clip(self):
        x = self.pick()
        bounds = [self.const((), values=-0.5), self.const((), values=0.7)]
        self.op("Clip", [x, *bounds], self.shapes[x])

    def add_binary(self):
        x = self.pick()

        def fits(shape):
            pairs = zip(shape[::-1], self.shapes[x][::-1], strict=False)
            return all(a == b or 1 in (a, b) for a, b in pairs)

        operands = [x, self.pick(fits)]
        shape = np.broadcast_shapes(*(self.shapes[o] for o in operands))
        if np.prod(shape) <= MOST_ELEMENTS:
            kind = str(self.random.choice(["Add", "Mul", "Sub", "Max", "Min"]))
            self.op(kind, operands[:: int(self.random.choice([1, -1]))], shape)

    def broadcast(self, shape):
        """A shape of 0 to 5 axes that broadcasts with `shape`."""
        rank = self.below(0, 6)
        whole = ((1,) * rank + shape)[-rank:] if rank else ()
        return tuple(int(self.random.choice([1, extent])) for extent in whole)

    def add_constant(self):
        x = self.pick()
        shape = self.broadcast(self.shapes[x])
        kind = str(self.random.choice(["Add", "Mul", "Sub", "Div"]))
        values = self.random.random(shape) + 0.5
        self.op(
            kind, [x, self.const(shape, values=values)], np.broadcast_shapes(shape, self.shapes[x])
        )

    def add_where(self):
        x = self.pick()
        shape = self.broadcast(self.shapes[x])
        condition = self.const(shape, "bool", self.random.random(shape) < 0.5)
        whole = np.broadcast_shapes(shape, self.shapes[x])
        self.op("Where", [condition, x, self.const(shape)], whole)

    def add_prelu(self):
        if x := self.of_rank(2):
            shape = self.shapes[x]
            slopes = [(1,), shape[1:], (shape[1],) + (1,) * (len(shape) - 2), ()]
            self.op("PRelu", [x, self.const(slopes[self.below(0, 4)])], shape)

    def add_softmax(self):
        if x := self.of_rank(1):
            self.op("Softmax", [x], self.shapes[x], axis=self.below(0, len(self.shapes[x])))

    def add_reduce(self):
        if not (x := self.of_rank(1)):
            return
        shape, keep = self.shapes[x], self.below(0, 2)
        axes = self.some(range(len(shape)))
        left = [1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes]
        kind = str(self.random.choice(["ReduceMean", "ReduceSum", "ReduceMax"]))
        self.op(kind, [x, self.integers(axes)], left, keepdims=keep)

    def some(self, axes):
        return sorted(
            self.random.choice(axes, self.below(1, len(axes) + 1), replace=False).tolist()
        )

    # -- shapes ------------------------------------------------------------------------------------

    def add_reshape(self):
        x = self.pick()
        size = int(np.prod(self.shapes[x]))
        factor = int(self.random.choice([f for f in (1, 2, 3, 4, 5) if size % f == 0]))
        shape = [1] * self.below(0 if size == 1 else 2, 6)
        if len(shape) >= 2:
            one, two = self.random.choice(len(shape), 2, replace=False)
            shape[one], shape[two] = factor, size // factor
        self.op("Reshape", [x, self.integers(shape)], shape)

    def add_flatten(self):
        if x := self.of_rank(1):
            shape, axis = self.shapes[x], self.below(0, len(self.shapes[x]) + 1)
            self.op("Flatten", [x], (np.prod(shape[:axis]), np.prod(shape[axis:])), axis=axis)

    def add_squeeze(self):
        if x := self.pick(lambda shape: 1 in shape):
            shape = self.shapes[x]
            axes = self.some([a for a, d in enumerate(shape) if d == 1])
            left = [d for a, d in enumerate(shape) if a not in axes]
            self.op("Squeeze", [x, self.integers(axes)], left)

    def add_unsqueeze(self):
        if x := self.of_rank(0, 4):
            shape, axis = self.shapes[x], self.below(0, len(self.shapes[x]) + 1)
            self.op("Unsqueeze", [x, self.integers([axis])], (*shape[:axis], 1, *shape[axis:]))

    def add_transpose(self):
        if x := self.of_rank(1):
            order = self.random.permutation(len(self.shapes[x])).tolist()
            self.op("Transpose", [x], [self.shapes[x][a] for a in order], perm=order)

    def add_expand(self):
        x = self.pick()
        whole = (1,) * self.below(0, 6 - len(self.shapes[x])) + self.shapes[x]
        shape = tuple(self.extent() if d == 1 else d for d in whole)
        if np.prod(shape) <= MOST_ELEMENTS:
            self.op("Expand", [x, self.integers(shape)], shape)

    def add_concat(self):
        if not (x := self.of_rank(1)):
            return
        shape = list(self.shapes[x])
        axis = self.below(0, len(shape))

        def fits(other):
            same = len(other) == len(shape)
            return same and all(a == axis or d == shape[a] for a, d in enumerate(other))

        other = self.pick(fits)
        shape[axis] += self.shapes[other][axis]
        self.op("Concat", [x, other], shape, axis=axis)

    def add_pad(self):
        if x := self.of_rank(1):
            rank = len(self.shapes[x])
            widths = self.random.integers(0, 2, size=2 * rank).tolist()
            shape = [d + widths[a] + widths[a + rank] for a, d in enumerate(self.shapes[x])]
            if np.prod(shape) <= MOST_ELEMENTS:
                self.op("Pad", [x, self.integers(widths)], shape)

    def add_slice(self):
        if x := self.of_rank(1):
            shape = list(self.shapes[x])
            axis = self.below(0, len(shape))
            shape[axis] = end = self.below(1, shape[axis] + 1)
            self.op("Slice", [x, *(self.integers([n]) for n in (0, end, axis))], shape)
