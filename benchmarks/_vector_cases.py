"""One small model for each class of operator, and the fewest instructions it can take.

A `Case` has a unit of work (a multiply-add, an element) and a function from what a processor has
(`Machine`) to the fewest instructions for a unit: what a loop of whole vectors executes that loads
its operands, does the arithmetic and stores, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from slipway import relay
from slipway.relay.interpret import interpret
from slipway.runtime.ndarray import numpy_dtype


@dataclass(frozen=True)
class Machine:
    """What counts for the fewest instructions.

    `lanes` of float32 in a vector, `registers` of vectors; `product` instructions for a
    multiply-add (before AVX a copy of the operand that is overwritten, a product, a sum);
    `reads_memory`: arithmetic takes one operand from memory; `lane_fma`: a multiply-add takes one
    lane of a vector for all, so that a load brings `lanes` values of data; `dot`: multiply-adds of
    bytes for each 32-bit lane, by `dot_cost` instructions.
    """

    lanes: int
    registers: int
    product: int = 1
    reads_memory: bool = False
    lane_fma: bool = False
    dot: float = 1
    dot_cost: int = 1

    def tile(self, product: float, macs: float) -> float:
        """The fewest instructions for a multiply-add of a tile of registers."""
        row = 1 / self.lanes if self.lane_fma else 1
        best = min(
            (product * r * v + v + r * row) / (r * v)
            for v in range(1, 5)
            for r in range(1, self.registers)
            if r * v + v + 1 <= self.registers
        )
        return best / self.lanes / macs

    def function(self, multiply_adds: float, others: float) -> float:
        """For an element of a function of one value that is loaded and stored."""
        return self.vector(self.product * multiply_adds + others, 1, 1)

    def vector(self, arithmetic: float, loads: float = 0, stores: float = 0) -> float:
        """For an element: arithmetic (a load is part of one of it where that may be), stores."""
        if self.reads_memory:
            loads = max(0, loads - min(loads, arithmetic))
        return (arithmetic + loads + stores) / self.lanes


@dataclass(frozen=True)
class Case:
    """A model of one operator, the number of its units, and their fewest instructions."""

    name: str
    unit: str
    work: float
    minimum_cycles: Callable[[Machine], float]
    body: relay.Expr
    integer: bool = False


def var(name: str, *shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


class Maker:
    """Makes constants, the same ones each time."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def const(self, *shape: int, scale: float = 0.1) -> relay.Expr:
        return relay.const((self.rng.standard_normal(shape) * scale).astype("float32"))

    def weights(self, *shape: int) -> relay.Expr:
        """Constant int8 weights, one scale for each of the first axis."""
        whole = self.rng.integers(-127, 128, shape).astype("int8")
        scale = self.rng.uniform(0.002, 0.01, shape[0]).astype("float32")
        zero = np.zeros(shape[0], "int32")
        return relay.qnn.op.dequantize(relay.const(whole, "int8"), scale, zero, 0)


def again(real: relay.Expr, scale: float = 0.05, zero: int = 3) -> relay.Expr:
    """Quantise to int8 and return to real numbers."""
    q = relay.qnn.op.quantize(real, scale, zero, out_dtype="int8")
    return relay.qnn.op.dequantize(q, scale, zero)


def products(m: Machine) -> float:
    """A tile of float32 sums in registers."""
    return m.tile(m.product, 1)


def matrix_by_vector(m: Machine) -> float:
    """Every weight is loaded for one multiply-add."""
    return m.vector(m.product, 1)


def bytes_products(m: Machine) -> float:
    """A tile of int32 sums; without an instruction for bytes, one multiply-add a lane."""
    return m.tile(m.dot_cost, m.dot)


def window(m: Machine) -> float:
    """Depthwise: weights stay in registers, each datum is loaded for its multiply-add."""
    return m.vector(m.product, 1)


def elementwise(
    arithmetic: float, loads: float = 1, stores: float = 1
) -> Callable[[Machine], float]:
    return lambda m: m.vector(arithmetic, loads, stores)


def float_cases() -> list[Case]:
    """Operators on float32."""
    mk = Maker()
    nn = relay.nn
    cases: list[Case] = []

    def add(
        name: str, unit: str, work: float, minimum: Callable[[Machine], float], body: relay.Expr
    ):
        cases.append(Case(name, unit, work, minimum, body))

    x = var("x", 1, 32, 28, 28)
    conv = nn.conv2d(x, mk.const(32, 32, 3, 3), padding=(1, 1))
    add("conv 3x3 (Winograd)", "MAC", 32 * 32 * 9 * 784, products, nn.relu(conv))
    body = nn.conv2d(x, mk.const(32, 32, 3, 3), strides=(2, 2), padding=(1, 1))
    add("conv 3x3, stride 2", "MAC", 32 * 32 * 9 * 196, products, nn.relu(body))
    body = nn.conv2d(var("x", 1, 3, 48, 48), mk.const(16, 3, 3, 3), strides=(2, 2), padding=(1, 1))
    add("conv 3x3 of an image", "MAC", 3 * 16 * 9 * 576, products, nn.relu(body))
    body = nn.conv2d(var("x", 1, 64, 14, 14), mk.const(64, 64, 1, 1))
    add("conv 1x1", "MAC", 64 * 64 * 196, products, nn.relu(body))
    body = nn.conv2d(x, mk.const(32, 32, 3, 3), padding=(2, 2), dilation=(2, 2))
    add("conv 3x3, dilated", "MAC", 32 * 32 * 9 * 784, products, nn.relu(body))
    body = nn.conv2d(x, mk.const(32, 8, 3, 3), padding=(1, 1), groups=4)
    add("conv 3x3, 4 groups", "MAC", 32 * 8 * 9 * 784, products, nn.relu(body))
    body = nn.conv2d(x, mk.const(32, 1, 3, 3), padding=(1, 1), groups=32)
    add("conv depthwise 3x3", "MAC", 32 * 9 * 784, window, nn.relu(body))
    body = nn.conv2d(x, mk.const(32, 1, 5, 5), padding=(2, 2), strides=(2, 2), groups=32)
    add("conv depthwise 5x5, stride 2", "MAC", 32 * 25 * 196, window, nn.relu(body))
    body = nn.conv2d_transpose(var("x", 1, 32, 14, 14), mk.const(32, 16, 2, 2), strides=(2, 2))
    add("conv transposed 2x2, stride 2", "MAC", 32 * 16 * 4 * 196, products, body)
    body = nn.conv2d_transpose(
        var("x", 1, 32, 14, 14), mk.const(32, 16, 3, 3), strides=(2, 2), padding=(1, 1),
        output_padding=(1, 1),
    )  # fmt: skip
    add("conv transposed 3x3, stride 2", "MAC", 32 * 16 * 9 * 196, products, body)
    body = nn.conv1d(var("x", 1, 32, 128), mk.const(32, 32, 3), padding=(1,))
    add("conv 1-D", "MAC", 32 * 32 * 3 * 128, products, nn.relu(body))
    body = nn.conv3d(var("x", 1, 8, 8, 8, 8), mk.const(16, 8, 3, 3, 3), padding=(1, 1, 1))
    add("conv 3-D", "MAC", 8 * 16 * 27 * 512, products, nn.relu(body))
    add("dense, 1 row", "MAC", 256 * 512, matrix_by_vector,
        nn.dense(var("x", 1, 512), mk.const(256, 512)))  # fmt: skip
    add("dense, 32 rows", "MAC", 32 * 128 * 256, products,
        nn.dense(var("x", 32, 256), mk.const(128, 256)))  # fmt: skip
    add("dense of two variables", "MAC", 32 * 128 * 256, products,
        nn.dense(var("x", 32, 256), var("w", 128, 256)))  # fmt: skip
    add("batched product", "MAC", 4 * 64 * 64 * 32, products,
        nn.batch_matmul(var("x", 4, 64, 32), var("y", 4, 64, 32), transpose_b=True))  # fmt: skip
    add("max pool 3x3", "tap", 9 * 32 * 169, elementwise(1),
        nn.max_pool2d(x, (3, 3), (2, 2)))  # fmt: skip
    conv = nn.relu(nn.conv2d(var("x", 1, 4, 28, 28), mk.const(32, 4, 1, 1)))
    add("conv 1x1, max pool 3x3", "tap", 9 * 32 * 169 + 4 * 32 * 784, elementwise(1),
        nn.max_pool2d(conv, (3, 3), (2, 2)))  # fmt: skip
    add("average pool 2x2", "tap", 32 * 784, elementwise(1), nn.avg_pool2d(x, (2, 2), (2, 2)))
    add("global average pool", "tap", 32 * 784, elementwise(1, 1, 0), nn.global_avg_pool2d(x))
    rows = var("x", 256, 256)
    add("softmax", "element", 256 * 256, lambda m: m.vector(m.product * 9 + 13, 3, 2),
        nn.softmax(rows))  # fmt: skip
    add("layer norm", "element", 256 * 256, elementwise(8, 3, 1),
        nn.layer_norm(rows, mk.const(256), mk.const(256)))  # fmt: skip
    add("sum of rows", "element", 256 * 256, elementwise(1, 1, 0), relay.sum(rows, axis=1))
    add("sum of columns", "element", 256 * 256, elementwise(1, 1, 0), relay.sum(rows, axis=0))
    add("mean of middle axis", "element", 16 * 64 * 64, elementwise(1, 1, 0),
        relay.mean(var("x", 16, 64, 64), axis=1))  # fmt: skip
    add("argmax of rows", "element", 256 * 256, elementwise(3, 1, 0), relay.argmax(rows, axis=1))
    small = var("x", 1, 32, 28, 28)
    add("resize nearest x2", "element", 32 * 56 * 56, elementwise(1, 1, 1),
        relay.image.resize2d(small, (56, 56), method="nearest_neighbor",
                             coordinate_transformation_mode="asymmetric"))  # fmt: skip
    add("resize linear x2", "element", 32 * 56 * 56, elementwise(8, 4, 1),
        relay.image.resize2d(small, (56, 56), method="linear",
                             coordinate_transformation_mode="half_pixel"))  # fmt: skip
    add("transpose of a matrix", "element", 192 * 128, elementwise(2, 1, 1),
        relay.transpose(var("x", 192, 128), (1, 0)))  # fmt: skip
    add("NCHW to NHWC", "element", 32 * 784, elementwise(2, 1, 1), relay.transpose(x, (0, 2, 3, 1)))
    add("swap of heads", "element", 128 * 4 * 64, elementwise(0, 1, 1),
        relay.transpose(var("x", 1, 128, 4, 64), (0, 2, 1, 3)))  # fmt: skip
    flat = var("x", 256, 516)
    add("add, relu", "element", 256 * 516, elementwise(2, 2, 1),
        nn.relu(relay.add(flat, var("y", 256, 516))))  # fmt: skip
    add("add a row, multiply a column", "element", 256 * 516, elementwise(2, 2, 1),
        relay.multiply(relay.add(flat, var("y", 516)), var("z", 256, 1)))  # fmt: skip
    for name, multiply_adds, others, body in (
        ("exp", 9, 9, relay.exp(flat)),
        ("sigmoid", 9, 13, relay.sigmoid(flat)),
        ("tanh", 9, 16, relay.tanh(flat)),
        ("erf", 16, 10, relay.erf(flat)),
        ("sqrt, divide", 0, 3, relay.divide(flat, relay.sqrt(relay.abs(flat)))),
        ("log", 10, 12, relay.log(relay.abs(flat))),
    ):
        minimum = partial(Machine.function, multiply_adds=multiply_adds, others=others)
        add(name, "element", 256 * 516, minimum, body)
    add("concatenate", "element", 2 * 32 * 784, elementwise(0, 1, 1),
        relay.concatenate([small, var("y", 1, 32, 28, 28)], 1))  # fmt: skip
    return cases


def integer_cases() -> list[Case]:
    """Quantised operators: int8 in and out, requantisation behind."""
    mk = Maker()
    nn = relay.nn
    cases: list[Case] = []

    def add(
        name: str, unit: str, work: float, minimum: Callable[[Machine], float], body: relay.Expr
    ):
        stored = relay.qnn.op.quantize(body, 0.05, -3, out_dtype="int8")
        cases.append(Case("int8 " + name, unit, work, minimum, stored, True))

    def given(*shape: int) -> relay.Expr:
        x = var("x", *shape, dtype="int8")
        return relay.qnn.op.dequantize(x, 0.05, 3)

    x = given(1, 32, 28, 28)
    body = nn.conv2d(x, mk.weights(32, 32, 3, 3), padding=(1, 1))
    add("conv 3x3", "MAC", 32 * 32 * 9 * 784, bytes_products, nn.relu(body))
    body = nn.conv2d(given(1, 64, 14, 14), mk.weights(64, 64, 1, 1))
    add("conv 1x1", "MAC", 64 * 64 * 196, bytes_products, nn.relu(body))
    body = nn.conv2d(x, mk.weights(32, 8, 3, 3), padding=(1, 1), groups=4)
    add("conv 3x3, 4 groups", "MAC", 32 * 8 * 9 * 784, bytes_products, nn.relu(body))
    body = nn.conv2d(x, mk.weights(32, 1, 3, 3), padding=(1, 1), groups=32)
    add("conv depthwise 3x3", "MAC", 32 * 9 * 784, window, nn.relu(body))
    add("dense, 1 row", "MAC", 256 * 512, lambda m: m.vector(1, 1) / m.dot,
        nn.dense(given(1, 512), mk.weights(256, 512)))  # fmt: skip
    add("dense, 32 rows", "MAC", 32 * 128 * 256, bytes_products,
        nn.dense(given(32, 256), mk.weights(128, 256)))  # fmt: skip
    add(
        "add",
        "element",
        32 * 784,
        elementwise(10, 0.5, 0.25),
        relay.add(x, relay.qnn.op.dequantize(var("y", 1, 32, 28, 28, dtype="int8"), 0.02, 3)),
    )
    add(
        "max pool 3x3",
        "tap",
        9 * 32 * 169,
        elementwise(0.25, 0.25, 0),
        nn.max_pool2d(x, (3, 3), (2, 2)),
    )
    return cases


def inputs_of(case: Case) -> tuple[relay.Function, list[np.ndarray]]:
    """The case as a function, and random inputs."""
    function = case.body.as_function()
    rng = np.random.default_rng(1)
    arrays = []
    for param in function.params:
        kind = param.checked_type if hasattr(param, "checked_type") else param.type_annotation
        if kind.dtype == "int8":
            arrays.append(rng.integers(-128, 128, kind.shape).astype("int8"))
        else:
            arrays.append(rng.standard_normal(kind.shape).astype(numpy_dtype(kind.dtype)))
    return function, arrays


def expected(function: relay.Function, arrays: list[np.ndarray]) -> np.ndarray:
    """What NumPy makes of the inputs."""
    return np.asarray(interpret(function, *arrays))
