"""Compositions over tensors: shapes of others, positions, sequences, diagonals, segments."""

import numpy as np
import pytest
from runner import check_all

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule

RNG = np.random.default_rng(7)


def real(*shape):
    return RNG.standard_normal(shape).astype("float32")


def whole(low, high, *shape, dtype="int32"):
    return RNG.integers(low, high, shape).astype(dtype)


def diagonals(data, diagonal, k, align):
    """Diagonal by diagonal: d runs from the highest to the lowest, short ones pushed to a side."""
    out = data.copy()
    low, high = k
    longest = diagonal.shape[-1]
    above, below = align.split("_")
    for row, d in enumerate(range(high, low - 1, -1)):
        length = len(np.diagonal(data[0], d))
        side = above if d >= 0 else below
        start = longest - length if side == "RIGHT" else 0
        for n in range(length):
            r, c = n + max(-d, 0), n + max(d, 0)
            out[:, r, c] = diagonal[:, row, start + n]
    return out


def windows(x, axis, window, strides):
    views = np.lib.stride_tricks.sliding_window_view(x, window, tuple(range(axis, x.ndim)))
    pick = (slice(None),) * axis + tuple(slice(None, None, s) for s in strides)
    return np.ascontiguousarray(views[pick])


def cases():
    a, b = real(2, 3, 4), real(6, 4)
    yield "reshape_like", relay.reshape_like, [a, b], a.reshape(6, 4)
    yield (
        "reshape_like of some axes",
        lambda x, y: relay.reshape_like(x, y, 0, 2, 0, 1), [a, real(6, 9)], a.reshape(6, 4),
    )  # fmt: skip
    yield "slice_like", relay.slice_like, [a, real(1, 2, 4)], a[:1, :2]
    yield "slice_like of fewer axes", relay.slice_like, [a, real(1, 2)], a[:1, :2]
    yield (
        "slice_like of axes",
        lambda x, y: relay.slice_like(x, y, axes=(-2,)), [a, real(9, 2, 9)], a[:, :2],
    )  # fmt: skip
    yield "broadcast_to_like", relay.broadcast_to_like, [b, real(3, 6, 4)], np.stack([b] * 3)
    yield "collapse_sum_like", relay.collapse_sum_like, [a, real(3, 1)], a.sum((0, 2)).reshape(3, 1)
    yield "collapse_sum_to", lambda x: relay.collapse_sum_to(x, (4,)), [a], a.sum((0, 1))
    yield "cast_like", relay.cast_like, [a, whole(0, 9, 1)], a.astype("int32")
    yield "shape_of", lambda x: relay.shape_of(x, "int64"), [a], np.array([2, 3, 4])
    yield "ndarray_size", relay.ndarray_size, [a], np.array(24, "int32")
    yield "reverse_reshape", lambda x: relay.reverse_reshape(x, (-1, 0)), [a], a.reshape(6, 4)
    x = real(5, 2, 3)
    yield "reverse_reshape joins", lambda x: relay.reverse_reshape(x, (0, -3)), [x], x.reshape(5, 6)
    u, v, w = real(3), real(2), real(4)
    for how in ("ij", "xy"):
        yield (
            f"meshgrid {how}",
            lambda *given, how=how: relay.meshgrid(given, how), [u, v, w],
            list(np.meshgrid(u, v, w, indexing=how)),
        )  # fmt: skip
    flat = whole(0, 60, 7)
    yield (
        "unravel_index", lambda i: relay.unravel_index(i, relay.const([3, 4, 5], "int32")), [flat],
        np.stack(np.unravel_index(flat, (3, 4, 5))).astype("int32"),
    )  # fmt: skip
    i, j = whole(-2, 2, 5, 1), whole(0, 3, 2, dtype="int64")
    yield "adv_index", lambda *given: relay.adv_index(given), [a, i, j], a[i, j]
    yield "adv_index of one", lambda *given: relay.adv_index(given), [a, i], a[i]
    x = real(2, 7, 8)
    yield (
        "sliding_window", lambda x: relay.sliding_window(x, 1, [3, 4], [2, 1]), [x],
        windows(x, 1, (3, 4), (2, 1)),
    )  # fmt: skip
    yield (
        "sliding_window of one axis", lambda x: relay.sliding_window(x, -1, [3], [4]), [x],
        windows(x, 2, (3,), (4,)),
    )  # fmt: skip
    lengths = np.array([0, 3, 5], "int32")
    x = real(5, 3, 2)
    masked = np.arange(5)[:, None] >= lengths
    yield (
        "sequence_mask", lambda x, n: relay.sequence_mask(x, n, -1.5), [x, lengths],
        np.where(masked[:, :, None], np.float32(-1.5), x),
    )  # fmt: skip
    x = real(3, 5)
    yield (
        "sequence_mask along 1", lambda x, n: relay.sequence_mask(x, n, 0, 1), [x, lengths],
        np.where(masked.T, np.float32(0), x),
    )  # fmt: skip
    x = real(5, 3, 2)
    turned = x.copy()
    for n, length in enumerate(lengths):
        turned[:length, n] = x[:length, n][::-1]
    yield (
        "reverse_sequence", lambda x, n: relay.reverse_sequence(x, n, 0, 1), [x, lengths], turned,
    )  # fmt: skip
    x, new = real(5, 6), real(2, 3)
    changed = x.copy()
    changed[3:0:-2, 1:6:2] = new
    yield (
        "strided_set",
        lambda x, v: relay.strided_set(x, v, [3, 1], [0, 6], [-2, 2]), [x, new], changed,
    )  # fmt: skip
    order = RNG.permutation(9).astype("int32")
    yield "invert_permutation", relay.invert_permutation, [order], np.argsort(order).astype("int32")
    x, indices, new = real(4, 3), np.array([[0, 2, 1], [3, 0, 2]], "int32"), real(2, 3)
    put, added = x.copy(), x.copy()
    np.put_along_axis(put, indices, new, 0)
    np.add.at(added, (indices, np.arange(3)), new)
    yield "scatter", lambda *given: relay.scatter(*given, 0), [x, indices, new], put
    yield "scatter_add", lambda *given: relay.scatter_add(*given, 0), [x, indices, new], added
    ids, x = np.array([0, 2, 0, 3, 2], "int32"), real(5, 2)
    sums = np.zeros((5, 2), "float32")
    np.add.at(sums, ids, x)
    yield "segment_sum", lambda x, i: relay.segment_sum(x, i, 5), [x, ids], sums
    where = np.array([[0, 1], [2, 0]], "int32")
    dense = np.full((3, 2), 9, "float32")
    values = real(2)
    dense[tuple(where.T)] = values
    yield (
        "sparse_to_dense", lambda i, v: relay.sparse_to_dense(i, (3, 2), v, 9.0), [where, values],
        dense,
    )  # fmt: skip
    x = real(2, 3, 4)
    for k in (-1, 0, 2):
        yield f"triu {k}", lambda x, k=k: relay.trilu(x, k, True), [x], np.triu(x, k)
        yield f"tril {k}", lambda x, k=k: relay.trilu(x, relay.const(k), False), [x], np.tril(x, k)
    one = real(2, 3)
    yield (
        "matrix_set_diag", relay.matrix_set_diag, [x, one], diagonals(x, one[:, None], (0, 0),
                                                                      "LEFT_LEFT"),
    )  # fmt: skip
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        several = real(2, 4, 3)
        yield (
            f"matrix_set_diag {align}",
            lambda x, d, align=align: relay.matrix_set_diag(x, d, (-1, 2), align), [x, several],
            diagonals(x, several, (-1, 2), align),
        )  # fmt: skip
    row = np.sort(whole(0, 6, 9)).astype("float32")
    queries = whole(-1, 8, 2, 3).astype("float32")
    for right in (False, True):
        side = "right" if right else "left"
        yield (
            f"searchsorted {side}",
            lambda s, v, right=right: relay.searchsorted(s, v, right, "int64"), [row, queries],
            np.searchsorted(row, queries, side),
        )  # fmt: skip
    rows = np.sort(real(2, 5), -1)
    queries = real(2, 3)
    found = np.stack([np.searchsorted(r, v) for r, v in zip(rows, queries, strict=True)])
    yield "searchsorted of rows", relay.searchsorted, [rows, queries], found.astype("int32")
    top, low = whole(-20, 20, 9), whole(1, 5, 9) * np.where(np.arange(9) % 2, 1, -1).astype("int32")
    quotient = (np.abs(top) // np.abs(low) * np.sign(top) * np.sign(low)).astype("int32")
    yield "trunc_divide", relay.trunc_divide, [top, low], quotient
    yield "trunc_mod", relay.trunc_mod, [top, low], np.fmod(top, low)
    x, y = real(5) * 9, real(5) + 3
    yield "trunc_divide of reals", relay.trunc_divide, [x, y], np.trunc(x / y)
    wide = whole(-(2**30), 2**30, 9)
    factor, shift = 1518500250, -2
    exact = (wide.astype("int64") * factor + (1 << 32)) >> 33
    yield (
        "fixed_point_multiply", lambda x: relay.fixed_point_multiply(x, factor, shift), [wide],
        exact.astype("int32"),
    )  # fmt: skip
    x = real(3, 8)
    yield (
        "mean_variance", lambda x: relay.mean_variance(x, 1), [x], [x.mean(1), x.var(1)],
    )  # fmt: skip
    yield "mean_std", lambda x: relay.mean_std(x, 0), [x], [x.mean(0), x.std(0)]


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.long)])
def test_they_compute_what_numpy_does(target):
    check_all(list(cases()), target)


X = relay.var("x", shape=(2, 3, 4))
N = relay.var("n", shape=(2,), dtype="int32")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda r: r.reshape_like(X, N), "'shape_like'.*cannot become"),
        (lambda r: r.slice_like(N, X), "'shape_like'.*has more axes than"),
        (lambda r: r.slice_like(X, N, axes=(1,)), "'shape_like'.*lacks an axis"),
        (lambda r: r.collapse_sum_to(X, (5,)), "'shape'"),
        (lambda r: r.meshgrid([N], "yx"), "'indexing'.*'ij' or 'xy'"),
        (lambda r: r.unravel_index(X, (2,)), "'indices' must hold integers"),
        (lambda r: r.unravel_index(N, relay.var("s", shape=(2,), dtype="int32")), "be a constant"),
        (lambda r: r.adv_index([X, N, N, N, N]), "'inputs' has 4 indices"),
        (lambda r: r.sliding_window(X, 1, [3], [1]), "'window_shape'.*one number"),
        (lambda r: r.sliding_window(X, 1, [9, 1], [1, 1]), "does not fit"),
        (lambda r: r.sequence_mask(X, N, axis=2), "'axis' is 2"),
        (lambda r: r.reverse_sequence(X, N, 1, 1), "'batch_axis'"),
        (lambda r: r.strided_set(X, N, [0], [1]), r"'v' must have the shape .*\(1, 3, 4\)"),
        (lambda r: r.sparse_to_dense(N, (2, 2), N), "'sparse_indices'.*2 axes"),
        (lambda r: r.segment_sum(X, r.var("i", shape=(99,), dtype="int32"), 3), "the first axes"),
        (lambda r: r.segment_sum(X, X, 3), "'segment_ids' must hold integers"),
        (lambda r: r.trilu(N, 0), "'data' must have at least 2 axes"),
        (lambda r: r.matrix_set_diag(X, N, 9), "'k' is 9"),
        (lambda r: r.matrix_set_diag(X, N, 0, "UP"), "'align'"),
        (lambda r: r.searchsorted(X, N), "'values'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(build, words):
    with pytest.raises(TypeInferenceError, match=words):
        build(relay)


def test_one_hot_of_values_that_are_computed():
    index = relay.var("index", shape=(3,), dtype="int32")
    on, off = relay.var("on", shape=()), relay.var("off", shape=())
    body = relay.one_hot(index, on, off, 4, 0, "float32")
    func = relay.Function([index, on, off], body)
    given = np.array([2, 0, 3], "int32"), np.float32(5), np.float32(-1)
    found = relay.create_executor("graph", mod=IRModule.from_expr(func)).evaluate()(*given)
    wanted = np.where(np.arange(4)[:, None] == given[0], 5, -1)
    np.testing.assert_array_equal(found.numpy(), wanted)
    half = relay.one_hot(index, on, relay.const(0.0), 4, -1, "float16")
    assert str(half.checked_type) == "Tensor[(3, 4), float16]"
