"""Discrete Fourier transforms: one product or two, forward and back, and open rows."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.contrib.graph_executor import GraphModule
from slipway.frontends.fourier import fourier
from slipway.relay.visit import post_order

CASES = {  # rows, length, parts, inverse, onesided
    "real": (5, 2048, 1, False, True),
    "thousand": (3, 1000, 1, False, True),
    "complex": (2, 512, 2, False, False),
    "back": (2, 512, 2, True, False),
    "prime": (3, 257, 1, False, True),
    "whole": (4, 300, 1, False, False),
    "short": (4, 60, 1, False, True),
}


def transformed(rows, length, parts, inverse, onesided):
    x = relay.var("x", shape=(rows, length, parts))
    return slipway.IRModule.from_expr(relay.Function([x], fourier(x, length, inverse, onesided)))


def wanted(values, inverse, onesided):
    exact = values.astype(np.float64)
    whole = exact[..., 0] + 1j * exact[..., 1] if values.shape[-1] == 2 else exact[..., 0]
    transform = np.fft.rfft if onesided else np.fft.ifft if inverse else np.fft.fft
    return transform(whole)


def check(module, values, inverse, onesided):
    module.run(x=values)
    found, want = module.get_output(0).numpy(), wanted(values, inverse, onesided)
    assert found.shape == (*want.shape, 2)
    error = np.abs(found[..., 0] + 1j * found[..., 1] - want).max()
    assert error < 1e-6 * np.abs(want).max()


def compiled(mod):
    return GraphModule(relay.build(mod, target="llvm")["default"](slipway.cpu(0)))


@pytest.mark.parametrize("name", CASES)
def test_a_transform_is_that_of_numpy(name):
    rows, length, parts, inverse, onesided = CASES[name]
    values = np.random.default_rng(0).standard_normal((rows, length, parts)).astype("float32")
    check(compiled(transformed(*CASES[name])), values, inverse, onesided)


def test_as_many_rows_as_a_run_has():
    module = compiled(transformed(relay.Dim("n", 1, 9), 1024, 1, False, True))
    for rows in (1, 9, 4):
        values = np.random.default_rng(rows).standard_normal((rows, 1024, 1)).astype("float32")
        check(module, values, False, True)


def test_long_transforms_have_small_matrices():
    """2,048 elements took 511 products of 2,048 by 2,050: 421 ms in place of about 30."""
    mod = transformed(511, 2048, 1, False, True)
    constants = [e for e in post_order(mod["main"].body) if isinstance(e, relay.Constant)]
    assert sum(c.array.size for c in constants) < 2048 * 2050 / 10
