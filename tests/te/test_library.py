"""Tensors that a library's functions compute, and functions of other frameworks' tensors."""

import subprocess
import sys

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.contrib import cblas, random
from slipway.errors import ExecutionError

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
def test_products_with_an_epilogue(transa, transb):
    n, m, k = 5, 7, 3
    a_np = RNG.normal(size=(k, n) if transa else (n, k)).astype("float32")
    b_np = RNG.normal(size=(m, k) if transb else (k, m)).astype("float32")
    bias = te.var("bias", dtype="float32")
    A, B = (te.placeholder(v.shape, name=name) for name, v in (("A", a_np), ("B", b_np)))
    C = cblas.matmul(A, B, transa, transb)
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    f = tvm.build(te.create_schedule(D.op), [A, B, D, bias], "llvm")
    d = tvm.nd.empty((n, m))
    f(tvm.nd.array(a_np), tvm.nd.array(b_np), d, 10.0)
    wanted = (a_np.T if transa else a_np) @ (b_np.T if transb else b_np) + 10
    tvm.testing.assert_allclose(d.numpy(), wanted, rtol=1e-5)


def test_stacks_of_products():
    a_np, b_np = (RNG.normal(size=s).astype("float64") for s in ((2, 3, 4), (2, 5, 4)))
    A, B = (te.placeholder(v.shape, "float64") for v in (a_np, b_np))
    C = cblas.batch_matmul(A, B, transb=True)
    f = tvm.build(te.create_schedule(C.op), [A, B, C])
    c = tvm.nd.empty((2, 3, 5), "float64")
    f(tvm.nd.array(a_np), tvm.nd.array(b_np), c)
    np.testing.assert_allclose(c.numpy(), a_np @ b_np.swapaxes(1, 2), rtol=1e-12)


def test_the_function_is_found_by_its_name_and_checks_shapes():
    product = tvm.get_global_func("tvm.contrib.cblas.matmul")
    a, b = tvm.nd.array(np.ones((2, 3), "float32")), tvm.nd.array(np.ones((4, 2), "float32"))
    with pytest.raises(ExecutionError, match=r"a product of \[2, 3\] and \[4, 2\]"):
        product(a, b, tvm.nd.empty((2, 2)), False, False)
    assert tvm.get_global_func("tvm.contrib.no.such", allow_missing=True) is None


def test_a_script_that_calls_by_name_alone_finds_the_function():
    script = """
import numpy as np
import slipway as tvm
from slipway import te
A, B = te.placeholder((2, 3), name="A"), te.placeholder((3, 2), name="B")
C = te.extern((2, 2), [A, B], lambda i, o: tvm.tir.call_packed(
    "tvm.contrib.cblas.matmul", i[0], i[1], o[0], False, False), name="C")
c = tvm.nd.empty((2, 2))
tvm.build(te.create_schedule(C.op), [A, B, C])(
    tvm.nd.array(np.ones((2, 3), "float32")), tvm.nd.array(np.ones((3, 2), "float32")), c)
assert c.numpy().tolist() == [[3, 3], [3, 3]]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_random_tensors_lie_where_they_should():
    I = random.randint(3, 9, (1000,))  # noqa: E741
    U = random.uniform(-2, 5, (50, 20))
    N = random.normal(4, 0.5, (1000,))
    f = tvm.build(te.create_schedule([I.op, U.op, N.op]), [I, U, N])
    i, u, n = tvm.nd.empty((1000,), "int32"), tvm.nd.empty((50, 20)), tvm.nd.empty((1000,))
    f(i, u, n)
    assert set(i.numpy()) == set(range(3, 9))
    assert -2 <= u.numpy().min() < -1.5
    assert 4.5 < u.numpy().max() < 5
    assert abs(n.numpy().mean() - 4) < 0.1
    first = u.numpy()
    f(i, u, n)
    assert not np.array_equal(first, u.numpy())


def test_functions_take_the_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    from slipway.contrib.dlpack import to_pytorch_func

    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] * 3.0, name="B")
    f = to_pytorch_func(tvm.build(te.create_schedule(B.op), [A, B]))
    x, y = torch.arange(6.0), torch.zeros(6)
    f(x, y)
    assert y.tolist() == [0, 3, 6, 9, 12, 15]
