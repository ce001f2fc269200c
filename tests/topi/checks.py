"""What tests of ready-made expressions share: an expression, compiled, against NumPy."""

import numpy as np

import slipway as tvm
from slipway import te
from slipway.topi.utils import get_const_tuple

RNG = np.random.default_rng(0)


def given(*shape, dtype="float32"):
    """Random numbers in [-2, 2), or integers in [-9, 9]."""
    if "int" in dtype:
        return RNG.integers(-9, 10, shape).astype(dtype)
    return (RNG.random(shape) * 4 - 2).astype(dtype)


def check(function, reference, *arrays, rtol=1e-5, target="llvm", schedule=None, dtype=None):
    """Compare all results of an expression with NumPy's: shape, type if given, and elements."""
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"x{i}") for i, a in enumerate(arrays)]
    made, want = function(*tensors), reference(*arrays)
    made, want = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (made, want))
    assert len(made) == len(want)
    plan = schedule(made) if schedule else te.create_schedule([m.op for m in made])
    got = [tvm.nd.array(np.zeros(get_const_tuple(m.shape), m.dtype)) for m in made]
    tvm.build(plan, [*tensors, *made], target)(*(tvm.nd.array(a) for a in arrays), *got)
    for result, expected in zip(got, want, strict=True):
        assert result.shape == np.shape(expected)
        assert dtype is None or result.dtype == dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=1e-5)
