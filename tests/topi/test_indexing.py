"""Elements moved, chosen, sorted and summed, against NumPy."""

import numpy as np
import pytest
from tests.topi.checks import check, given

from slipway import te, topi


def test_elementwise_functions_of_all_kinds():
    for name in ["sinh", "cosh", "tan", "asinh", "sign", "trunc"]:
        check(
            getattr(topi, name), {"asinh": np.arcsinh}.get(name) or getattr(np, name), given(3, 5)
        )
    for name in ["log2", "log10", "acosh"]:
        numpy = {"acosh": np.arccosh}.get(name) or getattr(np, name)
        check(getattr(topi, name), numpy, np.abs(given(7)) + 1)
    special = np.array([np.nan, np.inf, -np.inf, 1], "float32")
    for name in ["isnan", "isinf", "isfinite"]:
        check(getattr(topi, name), getattr(np, name), special, dtype="bool")
    x, y = given(3, 1, 4, dtype="int32"), given(5, 1, dtype="int32")
    y[y == 0] = 4
    for name, numpy in {
        "floor_divide": np.floor_divide,
        "floor_mod": np.mod,
        "mod": np.fmod,
        "bitwise_and": np.bitwise_and,
        "bitwise_xor": np.bitwise_xor,
        "not_equal": np.not_equal,
        "less_equal": np.less_equal,
        "logical_xor": np.logical_xor,
        "broadcast_sub": np.subtract,
    }.items():
        check(getattr(topi, name), numpy, x, y)
    check(topi.left_shift, np.left_shift, np.abs(x), np.abs(y))
    check(lambda *t: topi.elemwise_sum(t), lambda *t: sum(t), given(4, 3), given(4, 3), given(4, 3))
    with pytest.raises(topi.InvalidShapeError, match="one shape"):
        topi.elemwise_sum([te.placeholder((3,)), te.placeholder((4,))])


def test_a_reduction_of_everything_is_a_scalar():
    check(topi.sum, np.sum, given(3, 4), rtol=1e-4)
    check(lambda a: topi.add(topi.mean(a), 1.0), lambda a: np.mean(a) + 1, given(3, 4), rtol=1e-4)
    check(topi.argmax, np.argmax, given(3, 4))
    check(topi.all, np.all, np.array([[1, 1], [0, 1]], "int32"))
    check(lambda a: topi.any(a, 1), lambda a: np.any(a, 1), np.array([[0, 1], [0, 0]], "int32"))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_parts_of_tensors(target):
    x = given(4, 6, 5)
    for begin, end, strides in [
        ((1, 0), (4, 6), None),
        ((-3, 5, 4), (10, -7, 0), (1, -2, -1)),
        ((2,), (1,), None),
    ]:
        numpy = tuple(
            slice(b, e, s) for b, e, s in zip(begin, end, strides or (1,) * len(begin), strict=True)
        )
        if np.prod(x[numpy].shape):
            check(
                lambda a, b=begin, e=end, s=strides: topi.strided_slice(a, b, e, s),
                lambda a, n=numpy: a[n],
                x,
                target=target,
            )
    check(
        lambda a: topi.strided_slice(a, [1, 2], [2, -1], axes=[0, 2], slice_mode="size"),
        lambda a: a[1:3, :, 2:],
        x,
        target=target,
    )
    check(lambda a: topi.split(a, 3, 1), lambda a: np.split(a, 3, 1), x, target=target)
    check(lambda a: topi.split(a, (1, 2), -1), lambda a: np.split(a, (1, 2), -1), x)
    check(lambda a: topi.tile(a, (2, 1, 3)), lambda a: np.tile(a, (2, 1, 3)), given(2, 3))
    check(lambda a: topi.tile(a, (2,)), lambda a: np.tile(a, (2,)), given(2, 3))
    check(lambda a: topi.repeat(a, 3, 1), lambda a: np.repeat(a, 3, 1), given(2, 3))
    with pytest.raises(topi.InvalidShapeError, match="equal parts"):
        topi.split(te.placeholder((7,)), 2)


def test_take_and_gather():
    x, index = given(4, 5, 6), np.array([[0, 3], [7, -2]], "int32")
    check(lambda a, i: topi.take(a, i, 1), lambda a, i: a.take(i, 1, mode="clip"), x, index)
    check(
        lambda a, i: topi.take(a, i, -1, mode="wrap"),
        lambda a, i: a.take(i, 2, mode="wrap"),
        x,
        index,
    )
    check(topi.take, lambda a, i: a.take(i, mode="clip"), x, index)
    rows = np.array([[0, 2], [1, 1], [3, 0], [2, 2]], "int32")
    check(
        lambda a, i: topi.take(a, i, 1, batch_dims=1),
        lambda a, i: np.stack([p.take(q, 0) for p, q in zip(a, i, strict=True)]),
        x,
        rows,
    )
    indices = np.random.default_rng(1).integers(-5, 5, (4, 3, 6))
    check(lambda a, i: topi.gather(a, 1, i), lambda a, i: np.take_along_axis(a, i, 1), x, indices)
    points = np.array([[0, 3, 1], [4, 0, 2]], "int64")
    check(topi.gather_nd, lambda a, i: a[tuple(i)], x, points)
    check(
        lambda a, i, j: topi.adv_index(a, [i, j]),
        lambda a, i, j: a[i, j],
        x,
        np.array([[1], [3]], "int32"),
        np.array([0, 4, 2], "int32"),
    )
    check(
        lambda i: topi.one_hot(i, 2.0, -1.0, 5, 1, "float32"),
        lambda i: np.where(np.arange(5)[None, :] == i[:, None], 2.0, -1.0),
        np.array([0, 4, 9], "int32"),
    )


def test_tensors_made_of_indices():
    check(lambda _: topi.arange(2, 9, 3, "int32"), lambda _: np.arange(2, 9, 3), given(1))
    check(lambda _: topi.arange(5), lambda _: np.arange(5.0), given(1), dtype="float32")
    for how in ("ij", "xy"):
        check(
            lambda *v, how=how: topi.meshgrid(v, how),
            lambda *v, how=how: np.meshgrid(*v, indexing=how),
            given(2),
            given(3),
            given(4),
        )
    check(
        lambda i: topi.unravel_index(i, (3, 4, 5)),
        lambda i: np.stack(np.unravel_index(i, (3, 4, 5))),
        np.array([0, 59, 27], "int32"),
    )
    check(lambda a: topi.trilu(a, 1, True), lambda a: np.triu(a, 1), given(2, 4, 5))
    check(lambda a: topi.trilu(a, -1, False), lambda a: np.tril(a, -1), given(4, 5))
    check(topi.shape, lambda a: np.array(a.shape), given(2, 4, 5))
    check(topi.ndarray_size, lambda a: np.array(a.size), given(2, 4, 5))
    data, lengths = given(4, 3, 2), np.array([1, 0, 4], "int32")
    check(
        lambda a, n: topi.sequence_mask(a, n, -5.0, 0),
        lambda a, n: np.where(np.arange(4)[:, None, None] < n[None, :, None], a, -5),
        data,
        lengths,
    )
    check(
        lambda a, n: topi.reverse_sequence(a, n, 0, 1),
        lambda a, n: np.stack(
            [np.concatenate([a[:k, j][::-1], a[k:, j]]) for j, k in enumerate(n)], 1
        ),
        data,
        lengths,
    )


def test_products_of_tensors():
    check(topi.matmul, np.matmul, given(3, 4), given(4, 5), rtol=1e-4)
    check(
        lambda a, b: topi.tensordot(a, b, 2),
        np.tensordot,
        given(3, 4, 5),
        given(4, 5, 2),
        rtol=1e-4,
    )
    axes = ([2, 0], [1, 2])
    check(
        lambda a, b: topi.tensordot(a, b, axes),
        lambda a, b: np.tensordot(a, b, axes),
        given(3, 4, 5),
        given(2, 5, 3),
        rtol=1e-4,
    )
    check(
        lambda a, b: topi.tensordot(a, b, 0), lambda a, b: np.tensordot(a, b, 0), given(3), given(2)
    )
    with pytest.raises(topi.InvalidShapeError, match="4 and 3 differ"):
        topi.matmul(te.placeholder((2, 4)), te.placeholder((3, 5)))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_sorting_keeps_the_order_of_equals_and_knows_what_is_no_number(target):
    x = np.round(given(3, 9, 2)).astype("float32")
    x[1, 4, 0] = np.nan
    rising = np.argsort(x, 1, kind="stable")
    check(lambda a: topi.argsort(a, axis=1, dtype="int32"), lambda a: rising, x, target=target)
    check(lambda a: topi.sort(a, 1), lambda a: np.sort(a, 1), x, target=target)
    whole = given(4, 8, dtype="int32")
    falling = np.argsort(-whole, -1, kind="stable")
    check(
        lambda a: topi.topk(a, 3),
        lambda a: [np.take_along_axis(a, falling, 1)[:, :3], falling[:, :3]],
        whole,
        target=target,
    )
    check(
        lambda a: topi.topk(a, 0, ret_type="indices", dtype="float32"),
        lambda a: falling,
        whole,
        dtype="float32",
    )
    counts = np.array([8, 0, 3, 1], "int32")
    want = [
        [*np.argsort(row[:n], kind="stable"), *range(n, 8)]
        for row, n in zip(whole, counts, strict=True)
    ]
    check(
        lambda a, n: topi.argsort(a, n, dtype="int32"), lambda a, n: np.array(want), whole, counts
    )


def test_running_sums():
    x = given(3, 5)
    check(lambda a: topi.cumsum(a, 1), lambda a: np.cumsum(a, 1), x)
    check(topi.cumsum, np.cumsum, x)
    check(lambda a: topi.cumprod(a, 0), lambda a: np.cumprod(a, 0), x)
    check(lambda a: topi.cumsum(a, -1, exclusive=True), lambda a: np.cumsum(a, -1) - a, x)


def test_shapes_can_be_open():
    n = te.var("n")
    x = te.placeholder((n, 4), name="x")
    s = topi.strided_slice(topi.tile(x, (1, 2)), [1], [3], axes=[1])
    assert [str(d) for d in s.shape] == ["n", "2"]
