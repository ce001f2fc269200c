"""Programs with sizes that values decide: the run finds them, checks them and tells its caller."""

import ctypes

import numpy as np
import pytest
from tests.compiler.aot.test_aot import compile_shared
from tests.compiler.aot.test_aot_open_sizes import compiled, pointers, run_name
from tests.compiler.test_told_sizes import ROOM, finder

from slipway import relay
from slipway.ir.function import IRModule
from slipway.runtime.load import load_module
from slipway.runtime.ndarray import array


def counted():
    """As many of x as inputs say, one of which must say 2, beside a size of the input's own."""
    x = relay.var("x", shape=(relay.Dim("n", 3, 9), 2))
    count, two = relay.var("c", shape=(), dtype="int64"), relay.var("t", shape=(1,), dtype="int32")
    first = relay.sized(x, count, relay.Dim("many", 1, 3)) * relay.const(2.0)
    total = relay.sum(relay.sized(x, two, 2, name="two"), 0)
    return relay.Function([x, count, two], relay.Tuple([first, total]))


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_the_run_tells_what_it_found(target, tmp_path):
    lib = compiled(IRModule.from_expr(finder(relay.Dim("n", 1, ROOM), 9)), target)
    run = getattr(compile_shared(lib, tmp_path), run_name(lib))
    assert [size.name for size in lib.program.sizes] == ["n", "found"]
    assert "int32_t found; /* 0..9, which the run finds */" in lib.sources.header
    for seed, n in enumerate((ROOM, 1, 7, 5)):
        x = np.random.default_rng(seed).standard_normal(n, dtype=np.float32)
        x[:9] = -x[:9] if seed == 2 else x[:9]
        want = np.flatnonzero(x > 0)
        made = [np.empty((2, len(want)), "float32"), np.empty(len(want), "int32"),
                np.empty(len(want), "float32"), np.empty((), "float32")]  # fmt: skip
        sizes = (ctypes.c_int32 * 2)(n, -1)
        assert run(pointers([x]), pointers(made), sizes) == 0
        assert list(sizes) == [n, len(want)]
        for found, wanted in zip(made, (1, want, 2 * x[want], x[want].sum()), strict=True):
            np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-5)
    x, room = np.ones(ROOM, np.float32), [np.zeros(2 * ROOM, np.float32) for _ in made]
    assert run(pointers([x]), pointers(room), (ctypes.c_int32 * 2)(ROOM, 0)) == -3  # 12 found
    assert run(pointers([x]), pointers(room), (ctypes.c_int32 * 2)(0, 0)) == -3


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_the_calling_convention_gives_the_sizes_last(target, tmp_path):
    lib = compiled(IRModule.from_expr(counted()), target, "packed")
    compile_shared(lib, tmp_path)
    run = load_module(tmp_path / "model.so")[run_name(lib)]
    for rows, many in ((9, 3), (4, 1)):
        x = np.random.default_rng(many).standard_normal((rows, 2), dtype=np.float32)
        kinds = ((3, 2), "float32"), (2, "float32"), (2, "int64")
        made = [array(np.zeros(shape, dtype)) for shape, dtype in kinds]
        run(array(x), array(np.int64(many)), array(np.int32([2])), *made)
        doubled, total, sizes = (one.numpy() for one in made)
        assert list(sizes) == [many, 2]
        np.testing.assert_array_equal(doubled[:many], 2 * x[:many])
        np.testing.assert_array_equal(doubled[many:], 0)
        np.testing.assert_allclose(total, x[:2].sum(0), rtol=1e-5)
    for many, two in ((0, 2), (4, 2), (1 << 32, 2), (3, 1), (3, 3)):
        with pytest.raises(ValueError, match=r"range: many from 1 to 3, two from 2 to 2"):
            run(array(x), array(np.int64(many)), array(np.int32([two])), *made)
