"""TVMScript: read, printed, read again, computed; and what is no part of it."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import CodegenError, LoweringError, ModelError
from slipway.ir import structural_equal
from slipway.script import from_source, ir_module
from slipway.script import tir as T

RNG = np.random.default_rng(1)
ROWS = 6


@ir_module
class Product:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": T.bool(True)})
        A = T.match_buffer(a, (ROWS, 5), "float32")
        B = T.match_buffer(b, [5, 8], dtype="float32")
        C = T.match_buffer(c, (ROWS, 8))
        D = T.alloc_buffer((ROWS, 8), "float32")
        for i, j, k in T.grid(ROWS, 8, 5):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(D[vi, vj])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] += A[vi, vk] * B[vk, vj]
        for i in T.parallel(ROWS):
            for j in T.vectorized(8):
                with T.block("C"):
                    vi = T.axis.spatial(ROWS, i)
                    vj = T.axis.S(8, j)
                    T.where(i * 8 + j < 45)
                    C[vi, vj] = T.max(D[vi, vj], 0.0) if vi < 3 and 0 <= vj < 4 else -D[vi, vj]


@T.prim_func
def scalars(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int64"), n: T.int32):
    """Statements without blocks."""
    for i in range(2, 14):
        x: T.int32 = A[i] // 3
        if x % 2 == 0 or not i < n:
            B[i] = T.cast(x, "int64") * T.int64(5)
        else:
            y = T.truncmod(A[i], 7)
            B[i] = T.Select(y > 0, T.cast(y, "int64"), T.int64(-1)) + T.int64(1)
    for k in T.serial(2):
        assert n >= 0, "n must not be negative"
        B[k] = T.if_then_else(k == 0, T.int64(1), T.int64(2))
        while B[14 + k] < T.int64(50):
            B[14 + k] = B[14 + k] + T.int64(20)


def wanted_scalars(a, b, n):
    out = b.copy()
    for i in range(2, 14):
        x = a[i] // 3
        y = int(np.fmod(a[i], 7))
        out[i] = x * 5 if x % 2 == 0 or i >= n else (y if y > 0 else -1) + 1
    out[:2] = [1, 2]
    for k in (14, 15):
        while out[k] < 50:
            out[k] += 20
    return out


def products():
    a = RNG.normal(size=(ROWS, 5)).astype("float32")
    b = RNG.normal(size=(5, 8)).astype("float32")
    d = a @ b
    wanted = -d
    wanted[:3, :4] = np.maximum(d[:3, :4], 0)
    wanted.reshape(-1)[45:] = 7
    return a, b, wanted


def test_a_module_of_blocks_computes():
    a, b, wanted = products()
    c = tvm.nd.array(np.full((ROWS, 8), 7, "float32"))
    tvm.build(Product, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_statements_compute(target):
    a, b = RNG.integers(-50, 50, 16).astype("int32"), RNG.integers(-50, 50, 16)
    given = tvm.nd.array(b)
    f = tvm.build(scalars, target=target)
    f(tvm.nd.array(a), given, 9)
    np.testing.assert_array_equal(given.numpy(), wanted_scalars(a, b, 9))
    with pytest.raises(Exception, match="n must not be negative"):
        f(tvm.nd.array(a), given, -1)


def symbolic():
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((n,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="B")
    C = te.compute((n,), lambda i: te.if_then_else(B[i] > 1.0, B[i], -te.const(1, "float32")))
    return te.create_prim_func([A, C])


def two_results():
    A = te.placeholder((3, 9), name="A")
    k = te.reduce_axis((0, 9), "k")
    pick = te.comm_reducer(
        lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
    )
    I, V = te.compute((3,), lambda i: pick((k.var, A[i, k]), axis=k), name="P")  # noqa: E741
    return te.create_prim_func([A, I, V])


def lowered():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 0.5, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(s[B].split(B.op.axis[0], 4)[0])
    return tvm.lower(s, [A, B], simple_mode=True)["main"]


@pytest.mark.parametrize(
    "make", [lambda: Product["main"], lambda: scalars, symbolic, two_results, lowered]
)
def test_what_is_printed_is_read_back(make):
    func = make()
    again = from_source(func.script())
    assert structural_equal(func, again)
    assert again.script() == func.script()


def test_blocks_of_tensor_expressions_compute():
    a = RNG.normal(size=(5, 8)).astype("float32")
    c = tvm.nd.empty((5,))
    tvm.build(symbolic())(tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), np.exp(a).sum(1), rtol=1e-5)
    v = RNG.permutation(27).reshape(3, 9).astype("float32")
    i, m = tvm.nd.empty((3,), "int32"), tvm.nd.empty((3,))
    tvm.build(two_results())(tvm.nd.array(v), i, m)
    np.testing.assert_array_equal(i.numpy(), v.argmax(1))
    np.testing.assert_array_equal(m.numpy(), v.max(1))


def test_a_module_is_made_of_a_dictionary():
    mod = tvm.IRModule({"main": symbolic()})
    assert "class Module:" in mod.script()
    assert structural_equal(from_source(mod.script()), mod)


HEAD = 'from slipway.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    A[0, 1] = 1.0", r"line 4: buffer 'A' has 1 dimensions, but is indexed with 2"),
        ("    for i in [1, 2]:\n        A[i] = 0.0", "line 4: a loop runs over range"),
        ("    A[0] = x", "line 4: x: NameError: name 'x' is not defined"),
        ("    vi = T.axis.spatial(8, 0)", "line 4: the axis 'vi' stands outside of any block"),
        ("    for i, j in T.grid(8):\n        A[i] = 0.0", "line 4: 1 loops for 2 variables"),
        ("    del A", "line 4: `del A` is no statement"),
        ("    with open('x'):\n        A[0] = 1.0", "line 4: open"),
        ("    A[0] = 'text'\n", "line 4|no value"),
        ("    B = T.match_buffer(A, (4,))", "line 4: T.match_buffer takes a parameter"),
        ("    for i in range(8):\n        with T.block('b'):\n            v, w = T.axis.remap('S', "
         "[i])\n            A[v] = 0.0", "line 6: T.axis.remap"),
        ("    T.func_attr\n", "says nothing"),
        ("    while A:\n        pass", "line 4"),
    ],
)  # fmt: skip
def test_what_is_no_script_is_named_with_its_line(body, words):
    with pytest.raises(ModelError, match=words):
        from_source(HEAD + body)


def test_what_makes_nothing_is_an_error():
    with pytest.raises(ModelError, match="makes neither"):
        from_source("x = 1")
    with pytest.raises(ModelError, match="line 1"):
        from_source("def f(:")
    with pytest.raises(ModelError, match="has no function"):
        ir_module(type("Empty", (), {}))
    x = tvm.relay.var("x", shape=(2,))
    with pytest.raises(LoweringError, match="'main' is a graph"):
        tvm.IRModule.from_expr(tvm.relay.Function([x], x)).script()


def test_calls_that_name_the_dtype_of_their_result():
    """As `mod.script()` of TVM 0.8 to 0.10 writes them."""

    @T.prim_func
    def main(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, [8], dtype="float32")
        B = T.match_buffer(b, [8], dtype="float32")
        for i in T.serial(8):
            B[i] = T.if_then_else(
                i >= 3 and i < 6,
                T.max(T.exp(A[i], dtype="float32"), T.sqrt(4, dtype="float32")),
                T.float32(0),
                dtype="float32",
            )

    x = np.linspace(-1, 1, 8, dtype="float32")
    out = tvm.nd.empty((8,))
    tvm.build(main, target="llvm")(tvm.nd.array(x), out)
    wanted = np.where((np.arange(8) >= 3) & (np.arange(8) < 6), np.maximum(np.exp(x), 2), 0)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-6)


def test_halves_of_a_vector_name_their_dtype():
    """As the intrinsics of Arm's dot product in TVM 0.10 write them."""

    @T.prim_func
    def main(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, [8], dtype="int8")
        B = T.match_buffer(b, [8], dtype="int8")
        low = T.vectorlow(A[T.ramp(0, 1, 8)], dtype="int8x4")
        high = T.vectorhigh(A[T.ramp(0, 1, 8)], dtype="int8x4")
        B[T.ramp(0, 1, 8)] = T.vectorcombine(high, low, dtype="int8x8")

    out = tvm.nd.empty((8,), "int8")
    tvm.build(main, target="llvm")(tvm.nd.array(np.arange(8, dtype="int8")), out)
    np.testing.assert_array_equal(out.numpy(), [4, 5, 6, 7, 0, 1, 2, 3])


def test_programs_of_matrix_units_are_read_and_scheduled_and_not_compiled():
    @T.prim_func
    def fragments(a: T.Buffer((64,), "float16"), b: T.Buffer((64,), "float16")):
        for i, j in T.grid(2, 2):
            with T.block("fill"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.writes(b[0:64])
                T.evaluate(T.tvm_fill_fragment(b.data, 4, 4, 4, vi * 2 + vj, T.float16(0),
                                               dtype="handle"))  # fmt: skip
        for i in range(64):
            with T.block("copy"):
                vi = T.axis.spatial(64, i)
                b[vi] = a[vi]

    s = tir.Schedule(fragments)
    i, j = s.get_loops("fill")
    s.reorder(j, i)
    assert "tvm_fill_fragment(b" in str(s.mod)
    for target in ("llvm", "c"):
        with pytest.raises(CodegenError, match="tvm_fill_fragment is of a GPU's matrix unit"):
            tvm.build(s.mod, target=target)
    pointer = T.tvm_access_ptr(T.type_annotation("float16"), te.var("p", "handle"), 8, 16, 1)
    assert (pointer.op, [str(x) for x in pointer.args]) == ("access_ptr", ["p", "8", "1"])
