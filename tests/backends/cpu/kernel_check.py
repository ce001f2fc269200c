"""Compile one fused kernel and compare it with the reference."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.relay.interpret import interpret
from slipway.target import Target

TARGETS = ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"]


def run(body, target):
    """Compile one fused function of `body`'s variables and compare it with the reference."""
    function = body.as_function().with_attr("Primitive", 1)
    chosen = Target(target)
    lowered = lower_kernel("kernel", function, chosen)
    module = OperatorModule(build_module({"kernel": lowered}, chosen))
    rng = np.random.default_rng(0)
    arrays = [_random(rng, p.checked_type) for p in function.params]
    wanted = interpret(function, *arrays)
    out = tvm.nd.empty(wanted.shape, str(wanted.dtype))
    module(*(tvm.nd.array(a) for a in arrays), out)
    # Rounding errors go with the size of the terms of the sums, not with that of each result.
    found, wanted = (np.asarray(a, "float64") for a in (out.numpy(), wanted))
    assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max()
    return schedule_primitive(function, chosen).implementation


def _random(rng, type_):
    if type_.dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, type_.shape).astype(type_.dtype)
    return rng.standard_normal(type_.shape).astype(type_.dtype)


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)
