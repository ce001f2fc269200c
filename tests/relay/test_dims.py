"""Dimensions with names and ranges: arithmetic, what is proved of them, types that carry them."""

import math
import pickle

import numpy as np
import pytest

from slipway import ir, relay, te
from slipway.errors import TypeInferenceError
from slipway.ir import ops
from slipway.ir.ops import as_expr, maximum, minimum
from slipway.relay import dims
from slipway.relay.dims import (
    Dim,
    SymbolDim,
    at,
    dim_of,
    larger,
    largest_divisor,
    padding_of,
    smaller,
    usual,
)

N, M = Dim("n", 1, 8), Dim("m", 2, 5)


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def shape_of(expr):
    return expr.checked_type.shape


def test_one_name_and_range_is_one_dimension():
    assert Dim("n", 1, 8) is N
    assert Dim("n", 1, 9) is not N
    assert Dim("n", 4, 4) == 4
    assert relay.Dim("n", 1, 8) is N
    assert pickle.loads(pickle.dumps(Dim)) is Dim


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("n", 5, 4), "no size is at least 5 and at most 4"),
        (("n", -1, 4), "integers from 0"),
        (("2n", 1, 4), "a word of letters"),
        (("n", 1, 4.5), "integers from 0"),
    ],
)
def test_ranges_and_names_that_are_none(arguments, words):
    with pytest.raises(TypeInferenceError, match=words):
        Dim(*arguments)


def test_equal_formulas_are_one_object():
    assert N + M is M + N
    assert (N + 1) * 2 is 2 * N + 2
    assert (N * 4) // 2 is N * 2
    assert N * M is M * N
    assert -(-(N * 3) // 3) is N
    assert N - N == 0
    assert (N * 6) % 3 == 0
    assert N + 1 is not N
    assert N // 2 + M // 2 is M // 2 + N // 2


def test_what_is_padding_of_is_a_multiple():
    fill = ops.floormod(ops.sub(ops.const(4, "int32"), ops.floormod(N.formula, ops.const(4))), 4)
    full = dim_of(ops.add(N.formula, padding_of(fill)))
    assert full is (N + 3) // 4 * 4
    assert full // 4 * 4 is full
    assert smaller(N, full) is N
    assert dim_of(ops.floordiv(full.formula, (full // 4).formula)) == 4
    assert dim_of(ops.floormod(full.formula, (full // 4).formula)) == 0
    for size in range(1, 9):
        assert at(full, {N.formula: size}) == -(-size // 4) * 4
    other = ops.floormod(N.formula, ops.const(4))
    assert padding_of(other) is other


def test_ranges_follow_from_formulas():
    found = [N, N * 2 + 1, (N + 1) // 2, N * M, N - 1]
    assert [(d.low, d.high) for d in found] == [(1, 8), (3, 17), (1, 4), (2, 40), (0, 7)]
    assert Dim("long", 3).high is None
    assert [usual(d) for d in (7, N, N * M, Dim("long", 3))] == [7, 8, 40, 64]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_formulas_have_the_values_of_numbers(size):
    def of(n):
        return [n + 3, 3 - n + 8, n * 5, (n + 5) // 2, (n * 7) % 4, -(-n // 3), n * n]

    for dim, number in zip(of(N), of(size), strict=True):
        assert at(dim, {N.formula: size}) == number


def test_what_ranges_prove_is_decided_and_nothing_else():
    assert N > 0
    assert N + 2 >= 3
    assert N < 8.5
    assert not N * 2 > 16
    assert max(N, 0) is N
    assert N != 3
    for query in (lambda: N > 1, lambda: N < M, lambda: max(N, M), lambda: N >= 2.5):
        with pytest.raises(TypeInferenceError, match=r"it is not known whether .*n in 1\.\.8"):
            query()
    for compute in (lambda: range(N), lambda: 3 // N, lambda: N / 2, lambda: N // 0):
        with pytest.raises(TypeInferenceError, match="the size of the open dimension n is needed"):
            compute()


def test_numbers_that_no_size_reaches():
    """As exporters write "all of them": they are compared, and not cut to 32 bits."""
    most = (1 << 63) - 1
    assert most >= N
    assert N < 1 << 31
    assert -most < N
    assert not N >= 1 << 32
    assert smaller(N, most) is N
    assert smaller(most, N) is N
    assert larger(N, -most) is N
    assert larger(N, most) == most
    assert N // (1 << 40) == 0
    assert N % (1 << 40) is N
    for compute in (lambda: N + most, lambda: N * (1 << 33), lambda: most - N):
        with pytest.raises(TypeInferenceError, match="open are counted with int32"):
            compute()


def test_the_size_from_which_a_comparison_turns_is_told():
    height = Dim("height", 32, 200)
    with pytest.raises(TypeInferenceError, match=r"it is at height = 32, it is not from 33 on"):
        _ = (height + 31) // 32 < 2
    with pytest.raises(TypeInferenceError, match=r"it is not at n = 1, it is from 3 on"):
        _ = N * 2 > 5
    with pytest.raises(TypeInferenceError, match=r"with n in 1\.\.8, m in [0-9.]+: give"):
        _ = N < M


def test_an_extreme_is_compared_with_what_it_is_of():
    more, less = (dim_of(f(as_expr(5, "int32"), N.formula)) for f in (maximum, minimum))
    assert more - N >= 0
    assert N - less >= 0
    assert not N * 2 - more * 2 > 0
    assert not less < less * 2 - N
    for query in (lambda: more - N > 0, lambda: less - N >= 0, lambda: more - 2 * N >= 0):
        with pytest.raises(TypeInferenceError, match="it is not known whether"):
            query()


def test_types_carry_formulas_through_operators():
    image = var("x", N, 3, Dim("h", 8, 64), 20)
    h = image.checked_type.shape[2]
    convolved = relay.nn.conv2d(image, var("w", 4, 3, 3, 3), strides=2, padding=1)
    assert shape_of(convolved) == (N, 4, (h - 1) // 2 + 1, 10)
    pooled = relay.nn.max_pool2d(image, (2, 2), (2, 2))
    assert shape_of(pooled) == (N, 3, h // 2, 10)
    x, y = var("x", N, 6), var("y", M, 6)
    assert shape_of(relay.concatenate([x, y], 0)) == (N + M, 6)
    assert shape_of(relay.nn.dense(x, var("w", 5, 6))) == (N, 5)
    assert shape_of(relay.reshape(x, (-1, 2, 3))) == (N, 2, 3)
    assert shape_of(relay.transpose(relay.reshape(x, (-1,)))) == (N * 6,)
    assert shape_of(relay.sum(x, axis=0)) == (6,)
    assert str(relay.concatenate([x, y], 0).checked_type) in (
        "Tensor[(n + m, 6), float32]", "Tensor[(m + n, 6), float32]",
    )  # fmt: skip


def test_a_mismatch_names_both_dimensions():
    with pytest.raises(TypeInferenceError) as found:
        _ = (var("x", N, 6) + var("y", M, 6)).checked_type
    assert "n" in str(found.value)
    assert "m" in str(found.value)
    assert "211" not in str(found.value)


def test_te_takes_dimensions_for_extents():
    x = te.placeholder((N, N * 2 + 1), name="x")
    y = te.compute(x.shape, lambda *i: x(*i) + 1.0)
    assert dim_of(y.shape[1]) is N * 2 + 1
    assert isinstance(SymbolDim(N.formula), SymbolDim)
    assert np.prod([at(d, {N.formula: 3}) for d in map(dim_of, y.shape)]) == 21


def test_a_float_has_no_size_in_it():
    """Whoever multiplies by one needs a number, as with a remainder of a division."""
    n = Dim("n", 1, 8)
    for compute in (lambda: n * 0.5, lambda: 2.0 + n, lambda: divmod(n, 4)):
        with pytest.raises(TypeInferenceError, match="the size of the open dimension n is needed"):
            compute()


@pytest.mark.parametrize(
    ("extent", "most", "expected"),
    [
        (24, 100, 24), (24, 7, 6), (7, 6, 1), (0, 4, 1), (N, 8, 1), (N * 12, 100, 12),
        (N * 12, 5, 4), (N * M * 6, 4, 3), (N * 4 + 2, 8, 2), (N * 4 + 3, 8, 1),
        (N // 2 * 8, 64, 8),
    ],
)  # fmt: skip
def test_what_certainly_divides_a_dimension(extent, most, expected):
    assert largest_divisor(extent, most) == expected
    if isinstance(extent, SymbolDim):
        sizes = [{N.formula: n, M.formula: m} for n in range(1, 9) for m in range(2, 6)]
        assert not any(at(extent, size) % expected for size in sizes)


def test_looking_for_a_divisor_keeps_no_formulas():
    """Each kept one is compared with every later one: thousands of remainders took minutes."""
    extent = N * N * M * M
    before = sum(map(len, dims._FORMULAS.values()))
    assert largest_divisor(extent, 100_000) == 1
    assert sum(map(len, dims._FORMULAS.values())) == before


def test_known_dimensions_have_the_value_and_dtype_of_classic_constants():
    call = relay.reshape(var("x", 2, 3), (3, 2))
    shape = shape_of(call)
    assert [d.value for d in shape] == [3, 2]
    assert {d.dtype for d in shape} == {"int32"}
    assert shape == (3, 2)
    assert type(shape[0] + 1) is type(shape[0].value) is int
    assert type(pickle.loads(pickle.dumps(shape))[0]) is int


def test_a_known_dimension_as_an_attribute_is_its_number():
    x = var("x", 2, 3)
    by_type, by_number = relay.reshape(x, x.type_annotation.shape), relay.reshape(x, (2, 3))
    assert ir.structural_equal(by_type, by_number)
    assert ir.structural_hash(by_type) == ir.structural_hash(by_number)


@pytest.mark.parametrize("size", [relay.Any(), N, N * 2 + M], ids=str)
def test_open_dimensions_are_written_as_json_and_pickled(size):
    call = relay.nn.relu(var("x", size, 4))
    for read in (ir.load_json(ir.save_json(call)), pickle.loads(pickle.dumps(call))):
        assert str(read.args[0].type_annotation) == str(call.args[0].type_annotation)
        assert str(shape_of(read)) == str(shape_of(call))


@pytest.mark.parametrize("by", [2, 3, 8])
@pytest.mark.parametrize("make", [lambda n: n, lambda n: (n + 7) // 8, lambda n: 3 * n - 2])
def test_a_quotient_that_is_rounded_up_has_one_form(make, by):
    """Written -(-n // c), as extents with ceil_mode are, or with c - 1 more."""
    n = Dim("rounded", 1, 40)
    assert -(-make(n) // by) is (make(n) + by - 1) // by
    for size in (1, 7, 8, 9, 40):
        assert -(-make(size) // by) == (make(size) + by - 1) // by


def test_who_needs_a_number_is_told_which_size():
    h = Dim("h", 2, 9)
    x = relay.var("x", shape=(1, 3, 2 * h, 8))
    words = r"the size of the open dimension h \* 2 is needed here, with h in 2..9: give the input"
    for compute in (lambda: int(x.tensor_type.shape[2]), lambda: round(2 * h)):
        with pytest.raises(TypeInferenceError, match=words):
            compute()
    with pytest.raises(TypeInferenceError, match=r"the open size h \* 2 by 3.14.*, which is no"):
        relay.nn.upsampling(x, math.pi, math.pi)


@pytest.mark.parametrize("factor", [2.0, 1.5, 3])
def test_enlarging_an_open_size(factor):
    h = Dim("h", 2, 9)
    image = relay.nn.upsampling(relay.var("x", shape=(1, 3, h, 8)), factor, factor)
    volume = relay.nn.upsampling3d(relay.var("x", shape=(1, 3, h, h, 8)), factor, factor, factor)
    for size in range(2, 10):
        wanted = (int(size * factor), int(8 * factor))
        assert tuple(at(d, {h.formula: size}) for d in image.tensor_type.shape[2:]) == wanted
        assert at(volume.tensor_type.shape[3], {h.formula: size}) == wanted[0]


def test_a_number_of_times_a_formula_is_that_often_in_it():
    """Detectors count anchors of all levels, and divide by the cells of all levels."""
    h, w = Dim("h", 1, 9), Dim("w", 1, 9)
    cells = h * w + (h // 2 + 1) * w
    assert (9 * cells) // cells == 9
    assert (9 * cells) % cells == 0
    assert (4 * h + 6) // (2 * h + 3) == 2
    none = Dim("z", 0, 4)
    for divide in (lambda: h // w, lambda: (9 * cells + 1) // cells, lambda: none // none):
        with pytest.raises(TypeInferenceError, match="is needed here"):
            divide()


@pytest.mark.parametrize(
    "shape",
    [(2, 3), [2, 3], (np.int64(2), 3), (True, 3), (2, np.uint8(3)), (), (0, 5), (N, 3), (N, N + 1),
     (te.var("rows"), 3), (relay.Any(), 3), 5, (2**31, 8)],
)  # fmt: skip
def test_what_a_shape_may_be_written_as(shape):
    made = relay.TensorType(shape)
    given = [shape] if isinstance(shape, int) else list(shape)
    assert len(made.shape) == len(given)
    for size, written in zip(made.shape, given, strict=True):
        if dims.is_open(size):
            assert not isinstance(written, int | np.integer)
        else:
            assert type(size) is dims.KnownDim
            assert size == int(written)
            assert size.value == int(written)
    assert made == relay.TensorType(made.shape)
    assert hash(made) == hash(relay.TensorType(made.shape))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((2, -1), "cannot be negative"),
        ((N, -1), "cannot be negative"),
        ((np.int64(-3),), "cannot be negative"),
        ((2**80,), "more elements than any memory"),
        ((2**40, 2**40), "more elements than any memory"),
        ((N, 2**40, 2**40), "more elements than any memory"),
        (("two", 3), "is not a shape"),
        ((1,) * 40, "40 axes"),
        ((N,) * 40, "40 axes"),
    ],
)
def test_what_no_shape_is(shape, words):
    with pytest.raises(TypeInferenceError, match=words):
        relay.TensorType(shape)
