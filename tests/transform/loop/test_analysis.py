"""tir.analysis: what a function of loops uses, computes, allocates, and whether that is legal."""

import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import LoweringError
from slipway.script import tir as T
from slipway.tir import analysis


def product(rows=16, columns=8, depth=4):
    A, B = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), "k")
    A2 = te.compute((rows, depth), lambda i, j: A[i, j] + 1.0, name="A2")
    C = te.compute((rows, columns), lambda i, j: te.sum(A2[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])


@T.prim_func
def branches(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
    for i in range(16):
        if i % 2 == 0:
            a[i] = b[i]
        else:
            a[i] = T.if_then_else(i > 3, b[i - 1] + b[i - 2] * b[i], b[0])


@T.prim_func
def kernel(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        kept = T.alloc_buffer((16,), "float32", scope="shared")
        own = T.alloc_buffer((2,), "float32", scope="local")
        for j in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(2):
                own[k] = a[i * 16 + j * 2 + k]
                kept[j * 2 + k] = own[k]
                b[i * 16 + j * 2 + k] = kept[j * 2 + k]


def test_operations_are_counted():
    work = 2 * 16 * 8 * 4 + 16 * 4
    assert analysis.estimate_tir_flops(tvm.IRModule({"main": product()})) == work
    assert analysis.estimate_tir_flops(product().with_attr("estimated_flops", 32)) == 32
    assert analysis.estimate_tir_flops(branches) == 16 * 2  # the branch that has more

    @T.prim_func
    def open_ended(n: T.int32, a: T.Buffer((16,), "float32")):
        for i in range(n):
            a[i] = a[i] + T.float32(1)

    with pytest.raises(LoweringError, match="loop 'i' runs n steps"):
        analysis.estimate_tir_flops(open_ended)
    assert analysis.find_anchor_block(product()).name == "C"
    assert analysis.find_anchor_block(branches) is None


def test_memory_is_counted_by_what_is_alive_at_once():
    assert analysis.calculate_workspace_bytes(product(), 1) == 16 * 4 * 4
    assert analysis.calculate_workspace_bytes(product(3, 8, 3), 64) == 64
    assert analysis.calculate_allocated_bytes(kernel) == {"shared": 64, "local": 8}
    mod = tvm.IRModule({"a": product(), "b": kernel})
    assert analysis.calculate_allocated_bytes(mod)["a"] == {"global": 256}


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"max_threads_per_block": 8, "max_thread_x": 8}, True),
        ({"max_threads_per_block": 7}, False),
        ({"max_shared_memory_per_block": 63}, False),
        ({"max_local_memory_per_block": 8, "max_vector_bytes": 4}, True),
        ({"max_kernels": 0}, False),
    ],
)
def test_kernels_keep_to_limits(limits, kept):
    assert analysis.verify_gpu_code(kernel, limits) is kept


def test_what_is_legal():
    with pytest.raises(LoweringError, match="no limit 'max_speed'"):
        analysis.verify_gpu_code(kernel, {"max_speed": 1})
    assert analysis.verify_memory(branches)
    with tvm.target.Target("opencl"):
        assert analysis.verify_memory(kernel)
        assert not analysis.verify_memory(branches)
    assert analysis.verify_ssa(kernel)
    x, y = te.var("x"), te.var("y")
    twice = tir.stmt_seq(*(tir.LetStmt(x, y, tir.Evaluate(x)) for _ in range(2)))
    assert not analysis.verify_ssa(tir.PrimFunc((y,), twice))
    loose = tir.PrimFunc((), tir.Evaluate(x + y))
    assert not analysis.verify_well_formed(loose, assert_mode=False)
    with pytest.raises(LoweringError, match="not legal"):
        analysis.verify_well_formed(loose)
    assert analysis.undefined_vars(twice) == [y]
    assert analysis.undefined_vars(x + y, [x]) == [y]
    assert analysis.expr_deep_equal(x + y, x + y)
    assert not analysis.expr_deep_equal(x + y, y + y)
