"""te.gradient: derivatives against differences of the formulas themselves, in float64."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi
from slipway.errors import ArgumentTypeError, InvalidShapeError, LoweringError

STEP = 1e-5


def reduced(combine, identity, low=0, **options):
    """A function of (n, m) that reduces each row from column `low` on, and a column, together."""
    reducer = te.comm_reducer(combine, identity, name="own")

    def formula(x, *starts):
        k = te.reduce_axis((low, int(x.shape[1])), "k")
        kept = {"where": k.var % 2 == 0} if options.get("even") else {}
        init = (lambda i: {"init": starts[0][i]}) if starts else (lambda i: {})
        return te.compute(
            (2,), lambda i: reducer(x[i, k] * x[1 - i, 0], axis=k, **init(i), **kept), "own"
        )

    return formula


def product(x, y):
    return x * y


def one(dtype):
    return tvm.tir.const(1.0, dtype)


CASES = {
    "a product": ([(2, 5)], reduced(product, one)),
    "a product from the second on": ([(2, 5)], reduced(product, one, 1)),
    "a product of every second": ([(2, 5)], reduced(product, one, even=True)),
    "a product of one": ([(2, 1)], reduced(product, one)),
    "a product of all": ([(2, 3, 2)], lambda x: topi.prod(x * x + 0.5)),
    "probabilities of any": ([(2, 5)], reduced(
        lambda x, y: x + y - x * y, lambda t: tvm.tir.const(0.0, t))),
    "logarithms of sums": ([(2, 5)], reduced(
        lambda x, y: te.log(te.exp(x) + te.exp(y)), lambda t: tvm.tir.const(-50.0, t))),
    "a sum and its start": ([(2, 5), (2,)], reduced(
        lambda x, y: x + y, lambda t: tvm.tir.const(0.0, t))),
    "dense": ([(3, 5), (4, 5)], topi.nn.dense),
    "a convolution in steps": (
        [(1, 2, 7, 7), (3, 2, 3, 3)], lambda x, w: topi.nn.conv2d(x, w, 2, 1, 2)),
    "softmax": ([(3, 5)], topi.nn.softmax),
    "elementary": ([(2, 4)], lambda x: topi.nn.relu(topi.tanh(x) * topi.sigmoid(x) + topi.erf(x))),
    "powers": ([(2, 3), (2, 3)], lambda x, y: topi.power(x + 2.0, 2.5) / (y + 3.0)),
    "a norm": ([(3, 4)], lambda x: x * topi.rsqrt(topi.sum(x * x, axis=1, keepdims=True) + 0.1)),
    "the largest": ([(1, 2, 4, 4)], lambda x: topi.nn.pool2d(
        x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")),
    "averages over the border": ([(1, 2, 5, 5)], lambda x: topi.nn.pool2d(
        x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg")),
    "another shape": ([(4, 6)], lambda x: topi.exp(topi.reshape(x, (3, 8)))),
    "joined": ([(2, 3), (4, 3)], lambda x, y: topi.concatenate([x, y], axis=0) * 2.0),
    "one for many": ([(4, 6), (4,)], lambda x, b: topi.transpose(x) * b),
    "a diagonal and another": (
        [(5, 5)], lambda x: te.compute((5,), lambda i: x[i, i] * x[4 - i, i])),
    "every third": ([(8,)], lambda x: topi.strided_slice(x, [1], [8], [3])),
    "a diagonal by labels": ([(3, 3)], lambda x: topi.einsum("ii->i", x)),
    "products by labels": ([(2, 3), (4, 3, 2)], lambda x, y: topi.einsum("ik,jki->j", x, y)),
    "larger": ([(1, 2, 3, 3)], lambda x: topi.nn.upsampling(x, 2, 2)),
}  # fmt: skip


def built(args):
    return tvm.build(te.create_schedule(args[-1].op), args, "llvm")


def run(function, inputs, shape):
    out = tvm.nd.array(np.full(shape, 7.0))
    function(*map(tvm.nd.array, inputs), out)
    return out.numpy()


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_small_differences(name):
    shapes, formula = CASES[name]
    rng = np.random.default_rng(0)
    inputs = [te.placeholder(s, "float64", f"x{n}") for n, s in enumerate(shapes)]
    out = formula(*inputs)
    shape = tuple(map(int, out.shape))
    head = te.placeholder(shape, "float64", "head")
    gradients = te.gradient(out, inputs, head)
    values, weights = [rng.uniform(-1, 1, s) for s in shapes], rng.uniform(0.5, 1, shape)
    forward = built([*inputs, out])
    for number, one in enumerate(gradients):
        found = run(built([*inputs, head, one]), [*values, weights], shapes[number])
        for index in rng.choice(found.size, min(found.size, 6), replace=False):
            sides = []
            for step in (STEP, -STEP):
                moved = [v.copy() for v in values]
                moved[number].flat[index] += step
                sides.append((run(forward, moved, shape) * weights).sum())
            wanted = (sides[0] - sides[1]) / (2 * STEP)
            assert found.flat[index] == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_without_a_head_it_is_the_whole_derivative():
    x = te.placeholder((3,), "float64", "x")
    (scalar,) = te.gradient(topi.sum(x * x), x)
    assert [int(n) for n in scalar.shape] == [3]
    y = te.compute((2,), lambda i: x[i] * x[i + 1], "y")
    (whole,) = te.gradient(y, [x])
    a = np.array([2.0, 3.0, 5.0])
    np.testing.assert_array_equal(run(built([x, whole]), [a], (2, 3)), [[3, 2, 0], [0, 5, 3]])
    other = te.placeholder((4,), "float64", "other")
    (none,) = te.gradient(y, [other])
    np.testing.assert_array_equal(run(built([none]), [], (2, 4)), np.zeros((2, 4)))


def test_a_product_with_zeros_among_its_terms():
    x = te.placeholder((4, 3), "float64", "x")
    k = te.reduce_axis((0, 3), "k")
    out = te.compute((4,), lambda i: te.prod(x[i, k], axis=k), "product")
    (found,) = te.gradient(out, x, te.placeholder((4,), "float64", "head"))
    a = np.array([[2.0, 3, 5], [0, 3, 5], [0, 0, 5], [1e200, 1e200, 1e-200]])
    wanted = [[15, 10, 6], [15, 0, 0], [0, 0, 0], [1, 1, np.inf]]
    args = [x, *(t for t in found.op.input_tensors if t.op.name == "head"), found]
    np.testing.assert_allclose(run(built(args), [a, np.ones(4)], (4, 3)), wanted, rtol=1e-15)


def test_a_stage_and_what_it_is_computed_from():
    x = te.placeholder((3,), "float64", "x")
    h = te.compute((3,), lambda i: x[i] * 3.0, "h")
    dh, dx = te.gradient(topi.sum(h * h), [h, x])
    a = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(run(built([x, dh]), [a], (3,)), 6 * a)
    np.testing.assert_array_equal(run(built([x, dx]), [a], (3,)), 18 * a)
    copied = te.extern((3,), [x], lambda ins, outs: tvm.tir.Evaluate(0), name="copied")
    (whole,) = te.gradient(copied * 2.0, copied, te.placeholder((3,), "float64", "head"))
    assert [int(n) for n in whole.shape] == [3]  # nothing is asked of the stage itself


def test_a_convolution_s_gradient_sums_over_its_window_alone():
    x, w = te.placeholder((1, 4, 16, 16), name="x"), te.placeholder((8, 4, 3, 3), name="w")
    out = topi.nn.conv2d(x, w, 1, 0, 1)
    (dx,) = te.gradient(out, x, te.placeholder(out.shape, name="head"))
    assert sorted(int(axis.extent) for axis in dx.op.reduce_axis) == [
        1,
        3,
        3,
        8,
    ]  # the batch: of one


def test_what_has_no_derivative_is_told():
    x = te.placeholder((4,), name="x")
    k = te.reduce_axis((0, 4), "k")
    started = te.compute((2,), lambda i: te.prod(x[k], axis=k, init=x[i]), "started")
    with pytest.raises(LoweringError, match="'started' starts from elements of 'x': only a sum's"):
        te.gradient(started, x)
    remainder = te.comm_reducer(lambda a, b: te.fmod(a, b), lambda t: tvm.tir.const(1, t))
    with pytest.raises(LoweringError, match="'left' computes fmod, which has no derivative"):
        te.gradient(te.compute((), lambda: remainder(x[k], axis=k), "left"), x)
    gamma = te.compute((4,), lambda i: tvm.tir.call_pure_extern("float32", "tgammaf", x[i]), "g")
    with pytest.raises(LoweringError, match="'g' computes call_pure_extern, which has no"):
        te.gradient(gamma, x)
    copied = te.extern((4,), [x], lambda ins, outs: tvm.tir.Evaluate(0), name="copied")
    with pytest.raises(LoweringError, match=r"'copied' is no te\.compute"):
        te.gradient(copied, x)
    for given in ([topi.exp(x), 5], [topi.exp(x), x, 1.0], [x.op, x]):
        with pytest.raises(ArgumentTypeError, match=r"te\.gradient takes tensors, not"):
            te.gradient(*given)
    with pytest.raises(InvalidShapeError, match="must end in the shape of the output"):
        te.gradient(topi.exp(x), x, te.placeholder((3,), name="head"))


def test_numerical_gradients_find_what_is_wrong():
    check = tvm.testing.check_numerical_grads
    x = np.array([1.0, 2.0, 3.0])
    check(lambda x: x**2, [x], [2 * x])
    check(lambda x: (x**2).sum(), {"x": x}, {"x": 2 * x})
    check(lambda x: x**2, [[1, 2, 3]], [2 * x])  # integers, to which steps would add nothing
    wide = np.array([1e5, 3e6], "float32")  # numbers of these sizes are 1/128 and 1/4 apart
    check(lambda x: x * np.float32(3), [wide], [[3.0, 3.0]])
    with pytest.raises(AssertionError, match=r"by '0' differs .*most at \(2,\): 9"):
        check(lambda x: x**2, [x], [np.array([2.0, 4.0, 9.0])])
    with pytest.raises(AssertionError, match="unexpected shape"):
        check(lambda x: x**2, [x], [np.zeros(2)])
