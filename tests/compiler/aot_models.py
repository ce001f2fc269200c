"""Small models for the tests of ahead-of-time code, with seeded weights."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.compiler.open_sizes import largest_bytes
from slipway.frontends.steps import run_steps
from slipway.relay.op_registry import get
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, IntegerDenseAttrs
from slipway.relay.ops.qnn.rescale import rescale


def weight(rng, *shape):
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")


def keyword_net():
    """Conv, depthwise, pool, dense, softmax: the shape of seed 001's keyword spotter, smaller."""
    rng = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 1, 25, 10), dtype="float32")
    x = relay.nn.conv2d(
        data, relay.var("w1", shape=(8, 1, 3, 3)), padding=(1, 1), channels=8, kernel_size=(3, 3)
    )
    x = relay.nn.relu(x)
    x = relay.nn.conv2d(
        x, relay.var("w3", shape=(8, 1, 3, 3)), padding=(1, 1), channels=8, groups=8,
        kernel_size=(3, 3),
    )  # fmt: skip
    x = relay.nn.global_avg_pool2d(x)
    x = relay.nn.dense(relay.nn.batch_flatten(x), relay.var("w2", shape=(12, 8)))
    mod = tvm.IRModule.from_expr(relay.nn.softmax(x))
    params = {
        "w1": weight(rng, 8, 1, 3, 3),
        "w2": weight(rng, 12, 8),
        "w3": weight(rng, 8, 1, 3, 3),
    }
    return mod, params


def recurrent_net():
    """An LSTM as a loop, x to its rows; returns the model, data, and NumPy's own result."""
    rng = np.random.default_rng(2)
    steps, units, given = 9, 6, 5
    wx, wh = weight(rng, 4 * units, given), weight(rng, 4 * units, units)
    x = relay.var("x", shape=(steps, 1, given))
    zeros = [relay.const(np.zeros((1, units), "float32")) for _ in range(2)]

    def step(states, slices):
        h, c = states
        total = relay.nn.dense(slices[0], relay.const(wx)) + relay.nn.dense(h, relay.const(wh))
        i, f, g, o = relay.split(total, 4, axis=1)
        c = relay.sigmoid(f) * c + relay.sigmoid(i) * relay.tanh(g)
        h = relay.sigmoid(o) * relay.tanh(c)
        return [h, c], [h]

    _, (rows,) = run_steps(step, zeros, [x])
    data = rng.standard_normal((steps, 1, given)).astype("float32")
    h, c, wanted = np.zeros((1, units)), np.zeros((1, units)), []
    for row in data:
        i, f, g, o = np.split(row @ wx.T + h @ wh.T, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        wanted.append(h)
    mod = tvm.IRModule.from_expr(relay.Function([x], rows))
    return mod, data, np.stack(wanted).astype("float32")


def residual_net():
    """Two inputs, two outputs, a skip connection, a reshape of an input as an output."""
    rng = np.random.default_rng(1)
    a, b = relay.var("a", shape=(4, 16)), relay.var("b.1", shape=(4, 16))
    hidden = relay.nn.relu(relay.nn.dense(a, relay.const(weight(rng, 16, 16))))
    total = relay.add(relay.nn.dense(hidden, relay.const(weight(rng, 16, 16))), b)
    return tvm.IRModule.from_expr(
        relay.Function([a, b], relay.Tuple([relay.tanh(total), relay.reshape(a, (8, 8))]))
    ), {}


def build(model, target="c -keys=arm_cpu -mcpu=cortex-m4", interface="c", config=None, **kwargs):
    mod, params = model
    with tvm.transform.PassContext(opt_level=3, config=config or {}):
        return relay.build(
            mod,
            target=tvm.target.Target(target),
            params=params,
            executor=relay.backend.Executor(
                "aot", {"unpacked-api": True, "interface-api": interface}
            ),
            runtime=relay.backend.Runtime("crt"),
            **kwargs,
        )


def check_program(lib):
    """Follow every byte of the workspace through the calls of a program.

    An operand must hold, byte for byte, what the kernel that computed it wrote; nothing is taken
    from the plan but the locations.
    """
    graph, program = lib.graph, lib.program
    owner, root = {}, {}

    def span(argument):
        location = argument.location
        if location.space != "workspace":
            return []
        assert location.offset + argument.type.size_bytes <= program.plan.pool_bytes(location.index)
        return [(location.index, location.offset + i) for i in range(largest_bytes(argument.type))]

    for port in program.inputs:
        if port.location is not None:
            number = next(i for i, n in enumerate(graph.nodes) if n.name == port.name)
            owner |= dict.fromkeys(span(port), (number, 0))
    calls = iter(program.calls)
    for number, node in enumerate(graph.nodes):
        for position in range(len(node.types)):
            alias = node.function == "__nop"
            first = (node.inputs[0].node, node.inputs[0].index) if alias else None
            root[number, position] = root[first] if alias else (number, position)
        if node.function in ("", "__nop"):
            continue
        call = next(calls)
        assert call.kernel == node.function
        for ref, argument in zip(node.inputs, call.arguments, strict=False):
            for byte in span(argument):
                assert owner.get(byte) == root[ref.node, ref.index], (call.name, byte)
        for position in range(len(node.types)):
            written = span(call.arguments[len(node.inputs) + position])
            owner |= dict.fromkeys(written, (number, position))
    for call in calls:  # copies of outputs that no kernel computes
        source, target = (span(a) for a in call.arguments)
        owner |= {to: owner.get(at) for at, to in zip(source, target, strict=False)}
    for port, ref in zip(program.outputs, graph.outputs, strict=True):
        if port.location is not None:
            for byte in span(port):
                assert owner.get(byte) == root[ref.node, ref.index], port.name


def quantized_net():
    """Convolution, depthwise convolution and product of int8, as importers write them."""
    rng = np.random.default_rng(2)
    data = relay.var("data", shape=(1, 6, 6, 3), dtype="int8")
    conv = IntegerConvAttrs(strides=(1, 1), padding=(1, 1, 1, 1), pad_value=-3)
    x = data
    for name, shape, attrs in (
        ("qnn.conv2d_nhwc", (3, 3, 3, 8), conv),
        ("qnn.depthwise_conv2d_nhwc", (3, 3, 8), conv),
        ("qnn.dense_packed", (6 * 6 * 8, 5), IntegerDenseAttrs()),
    ):
        if name == "qnn.dense_packed":
            x = relay.reshape(x, (1, shape[0]))
        weights = relay.const(rng.integers(-127, 128, shape).astype("int8"))
        sums = get(name)(x, weights, attrs=attrs)
        biased = relay.add(sums, relay.const(rng.integers(-999, 999, shape[-1]).astype("int32")))
        multiplier = rng.integers(1 << 30, (1 << 31) - 1, shape[-1]).astype("int32")
        shift = np.full(shape[-1], -9, "int32")
        scaled = rescale(biased, relay.const(multiplier), relay.const(shift))
        shifted = relay.add(scaled, relay.const(np.int32(4)))
        x = relay.cast(relay.clip(shifted, -128, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}
