"""Small models for the tests of ahead-of-time code, with seeded weights."""

import numpy as np

import slipway as tvm
from slipway import relay


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
