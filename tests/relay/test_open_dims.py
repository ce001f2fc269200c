"""Open dimensions: types found by example, fixed again, run for each size."""

import numpy as np
import pytest

from slipway import relay, te
from slipway.errors import ExecutionError, LoweringError, TypeInferenceError
from slipway.ir.function import IRModule
from slipway.relay import transform
from slipway.relay.dims import Dim, at
from slipway.relay.interpret import interpret
from slipway.relay.text.printer import astext

RNG = np.random.default_rng(3)
ANY = relay.Any()


def weights(*shape):
    return relay.const(RNG.standard_normal(shape).astype(np.float32))


def network():
    x = relay.var("x", shape=(ANY, 3, 8, 8))
    y = relay.nn.relu(relay.nn.conv2d(x, weights(4, 3, 3, 3), padding=1))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    return IRModule.from_expr(relay.nn.softmax(relay.nn.dense(y, weights(5, 4))))


def shape_of(expr):
    return expr.checked_type.shape


def test_there_is_one_open_dimension():
    assert relay.Any() is relay.Any()
    assert relay.TensorType((ANY, 2)) == relay.TensorType((relay.Any(), 2))
    assert relay.TensorType((ANY, 2)) != relay.TensorType((1, 2))
    assert str(relay.TensorType((ANY, 2))) == "Tensor[(?, 2), float32]"
    with pytest.raises(TypeInferenceError, match="the size of an open dimension is needed"):
        _ = relay.TensorType((ANY, 2)).size


def test_types_follow_through_operators():
    x, y = relay.var("x", shape=(ANY, 6)), relay.var("y", shape=(1, 6))
    assert shape_of(x + y) == (ANY, 6)
    assert shape_of(relay.transpose(x)) == (6, ANY)
    assert shape_of(relay.sum(x, axis=0)) == (6,)
    assert shape_of(relay.concatenate([x, y], 0)) == (ANY, 6)
    assert shape_of(relay.reshape(x, (-1, 2, 3))) == (ANY, 2, 3)
    assert shape_of(relay.reshape(x, (ANY, 3, 2))) == (ANY, 3, 2)
    assert [shape_of(p) for p in relay.split(x, 2, 1)] == [(ANY, 3)] * 2
    image = relay.var("i", shape=(1, 3, ANY, 20))
    pooled = relay.nn.max_pool2d(image, (3, 3), (2, 2), padding=1)
    assert shape_of(pooled) == (1, 3, ANY, 10)


@pytest.mark.parametrize("size", [ANY, Dim("n", 1, 9)])
def test_what_needs_no_size_takes_an_open_one(size):
    """One section is all there is, and a batch beside one of 1 is the product's."""
    x = relay.var("x", shape=(size, 6, 2))
    assert [shape_of(p) for p in relay.split(x, 1, 0)] == [(size, 6, 2)]
    w, v = relay.var("w", shape=(1, 2, 3)), relay.var("v", shape=(1, 4, 2))
    assert shape_of(relay.nn.batch_matmul(x, w, transpose_b=False)) == (size, 6, 3)
    assert shape_of(relay.nn.batch_matmul(v, x, transpose_b=True)) == (size, 4, 6)


def test_what_is_fixed_only_for_great_sizes_stays_open():
    x = relay.var("x", shape=(ANY, 6))
    assert shape_of(relay.strided_slice(x, [0], [100], axes=[0])) == (ANY, 6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: relay.reshape(x, (1, 24)), r"reshape: it does not allow the open dimension"),
        (lambda x: relay.split(x, 2, 0), r"the size of an open dimension is needed"),
        (lambda x: x + relay.var("y", shape=(4, 5)), r"add: it does not allow .*211"),
    ],
)
def test_operators_that_do_not_allow_it(make, words):
    with pytest.raises(TypeInferenceError, match=words):
        make(relay.var("x", shape=(ANY, 6)))


def test_text_is_read_back():
    text = astext(network(), show_meta_data=True)
    assert "%x: Tensor[(?, 3, 8, 8), float32]" in text
    assert "-> Tensor[(?, 5), float32]" in text
    again = relay.fromtext(text)
    assert astext(again, show_meta_data=True) == text


def test_shapes_are_fixed():
    mod = network()
    fixed = transform.FixShapes({"x": (2, 3, 8, 8)})(mod)
    assert str(fixed["main"].checked_type.ret_type) == "Tensor[(2, 5), float32]"
    with pytest.raises(TypeInferenceError, match="cannot become"):
        transform.FixShapes({"x": (2, 4, 8, 8)})(mod)
    with pytest.raises(TypeInferenceError, match="no input 'z'"):
        transform.FixShapes({"z": (2, 3, 8, 8)})(mod)


def test_a_library_wants_fixed_sizes():
    with pytest.raises(LoweringError, match=r"FixShapes\(\{'x': \(1, 3, 8, 8\)\}\)"):
        relay.build(network(), target="llvm")


def test_the_interpreter_takes_every_size():
    mod = network()
    x = RNG.standard_normal((4, 3, 8, 8)).astype(np.float32)
    whole = interpret(mod, x)
    assert whole.shape == (4, 5)
    np.testing.assert_allclose(interpret(mod, x[:1]), whole[:1], rtol=1e-5)
    with pytest.raises(ExecutionError, match=r"must be Tensor\[\(\?, 3, 8, 8\)"):
        interpret(mod, x[:, :2])


def test_vm_compiles_each_size_once(monkeypatch):
    from slipway.compiler import create_executor as place

    made, build = [], place.build
    monkeypatch.setattr(place, "build", lambda *a, **k: made.append(1) or build(*a, **k))
    mod = network()
    run = relay.create_executor("vm", mod=mod).evaluate()
    for size in (1, 3, 1, 3):
        x = RNG.standard_normal((size, 3, 8, 8)).astype(np.float32)
        np.testing.assert_allclose(run(x=x).numpy(), interpret(mod, x), rtol=1e-4, atol=1e-5)
    assert len(made) == 2
    with pytest.raises(ExecutionError, match="the input 'x' is missing"):
        run()


def test_dimensions_with_names_keep_them():
    n, t = te.var("n"), te.size_var("t")
    x = relay.var("x", relay.TensorType((n, t, 100), "float32"))
    assert str(x.type) == "Tensor[(n, t, 100), float32]"
    assert x.type == relay.TensorType((n, t, 100)) != relay.TensorType((t, n, 100))
    assert relay.TensorType((te.var("n"),)) != relay.TensorType((n,))
    assert shape_of(relay.nn.softmax(x, axis=1)) == x.type.shape
    assert shape_of(relay.transpose(x, [1, 0, 2])) == relay.TensorType((t, n, 100)).shape
    assert shape_of(relay.sum(x, axis=2)) == relay.TensorType((n, t)).shape
    joined = relay.concatenate([x, x], axis=2)
    assert shape_of(joined) == relay.TensorType((n, t, 200)).shape
    assert shape_of(relay.reshape(x, (0, -1))) == relay.TensorType((n, t * 100)).shape
    y = relay.var("y", shape=(t, 1))
    assert shape_of(relay.add(x, y)) == x.type.shape
    dense = relay.nn.dense(relay.var("d", shape=(n, 8)), weights(16, 8))
    assert shape_of(dense) == relay.TensorType((n, 16)).shape
    image = relay.var("i", shape=(n, 3, t, 9))
    conv = relay.nn.conv2d(image, weights(2, 3, 3, 3), padding=1)
    assert shape_of(conv) == relay.TensorType((n, 2, t, 9)).shape
    assert shape_of(relay.nn.conv2d(image, weights(2, 3, 3, 3))) == (
        relay.TensorType((n, 2, ANY, 7)).shape
    )


def test_names_of_one_sum_become_one():
    n, m = te.var("n"), te.var("m")
    x, y = relay.var("x", shape=(n, 4)), relay.var("y", shape=(m, 4))
    assert shape_of(relay.add(x, y)) == relay.TensorType((n, 4)).shape
    assert shape_of(relay.add(x, relay.var("z", shape=(ANY, 4)))) == relay.TensorType((n, 4)).shape


@pytest.mark.parametrize("size", [1, 3, 6])
def test_a_name_has_one_size(size):
    n = te.var("n")
    x, y = relay.var("x", shape=(n, 4)), relay.var("y", shape=(2, n))
    function = relay.Function([x, y], relay.nn.dense(y, relay.transpose(x, [1, 0])))
    module = transform.InferType()(IRModule.from_expr(function))
    a = RNG.standard_normal((size, 4)).astype(np.float32)
    b = RNG.standard_normal((2, size)).astype(np.float32)
    run = relay.create_executor("vm", mod=module).evaluate()
    np.testing.assert_allclose(run(a, b).numpy(), b @ a, rtol=1e-4, atol=1e-5)
    fixed = transform.FixShapes({"x": (size, 4)})(module)
    assert fixed["main"].params[1].type.shape == (2, size)
    with pytest.raises(TypeInferenceError, match=f"n is {size} elsewhere"):
        transform.FixShapes({"x": (size, 4), "y": (2, size + 1)})(module)
    with pytest.raises(LoweringError, match="a library has fixed sizes"):
        relay.build(module, "llvm")


@pytest.mark.parametrize(
    ("begin", "end", "step"),
    [
        (0, 2, 1),
        (-3, 2**62, 1),
        (1, -1, 1),
        (0, 2**62, 2),
        (-1, -(2**40), -1),
        (-2, 0, -2),
        (3, 5, 1),
    ],
)
def test_slices_of_an_open_axis_are_those_of_python(begin, end, step):
    n = Dim("n", 1, 9)
    x = relay.var("x", shape=(n, 3))
    cut = relay.strided_slice(x, [begin], [end], [step], axes=[0])
    (extent, _) = cut.checked_type.shape
    for size in (1, 2, 5, 9):
        wanted = range(*slice(begin, end, step).indices(size))
        assert at(extent, {n.formula: size}) == len(wanted)
        data = np.arange(size * 3, dtype="float32").reshape(size, 3)
        found = interpret(relay.Function([x], cut), data)
        np.testing.assert_array_equal(found, data[list(wanted)])


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize(("times", "more"), [(-1, 0), (-1, 1), (-2, 0), (-1, -1), (1, -3), (-1, 4)])
def test_slices_from_an_open_position_count_from_the_end_where_it_is_negative(times, more, step):
    n = Dim("n", 1, 9)
    x, end = relay.var("x", shape=(n, 3)), 2**62 if step > 0 else -(2**62)
    cut = relay.strided_slice(x, [n * times + more], [end], [step], axes=[0])
    (extent, _) = cut.checked_type.shape
    for size in (1, 2, 3, 4, 5, 9):
        wanted = range(*slice(size * times + more, end, step).indices(size))
        assert at(extent, {n.formula: size}) == len(wanted)
        data = np.arange(size * 3, dtype="float32").reshape(size, 3)
        found = interpret(relay.Function([x], cut), data)
        np.testing.assert_array_equal(found, data[list(wanted)])


def of_two_inputs():
    n, h = Dim("n", 1, 8), Dim("h", 4, 64)
    x, y = relay.var("x", shape=(n, 2 * h)), relay.var("y", shape=(n, h + 1))
    return relay.Function([x, y], relay.concatenate([x, y], 1))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ((9, 8), (9, 5), r"'x' has shape \(n, h \* 2\), got \(9, 8\): n is 1 to 8"),
        ((0, 8), (0, 5), r"'x' .* n is 1 to 8"),
        ((1, 6), (1, 4), r"'x' .* got \(1, 6\): h is 4 to 64"),
        ((1, 130), (1, 66), r"'x' .* h is 4 to 64"),
        ((1, 9), (1, 5), r"'x' .* got \(1, 9\): the axis h \* 2 has 8 elements with h = 4"),
        ((2, 8), (3, 5), r"'y' .* the axis n has 2 elements with n = 2, as another axis tells"),
        ((2, 8), (2, 6), r"'y' .* the axis h \+ 1 has 5 elements with h = 4"),
    ],
)
@pytest.mark.parametrize("executor", ["debug", "interpret"])
def test_the_references_take_sizes_that_the_types_allow(executor, x, y, reason):
    function = of_two_inputs()
    run = relay.create_executor("debug", mod=IRModule.from_expr(function)).evaluate()
    if executor == "interpret":
        run = lambda *given: interpret(function, *given)  # noqa: E731
    assert run(np.zeros((2, 8), "float32"), np.zeros((2, 5), "float32")).shape == (2, 13)
    with pytest.raises(ExecutionError, match=reason):
        run(np.zeros(x, "float32"), np.zeros(y, "float32"))


@pytest.mark.parametrize("end", [True, 1.0, "2", -1])
def test_a_range_ends_at_numbers_of_elements(end):
    with pytest.raises(TypeInferenceError, match="ends at integers"):
        Dim("n", 0, end)


@pytest.mark.parametrize("others", [(4,), (Dim("m", 2, 5), 4)])
def test_an_axis_that_may_have_one_element_is_not_dropped_in_silence(others):
    """At n = 1 the result would have another rank than elsewhere."""
    with pytest.raises(TypeInferenceError, match=r"n in 1\.\.3: give the dimension a range from 2"):
        _ = relay.squeeze(relay.var("x", shape=(Dim("n", 1, 3), 1, *others))).checked_type
    kept = relay.squeeze(relay.var("x", shape=(Dim("n", 2, 3), 1, *others)))
    assert shape_of(kept) == (Dim("n", 2, 3), *others)
