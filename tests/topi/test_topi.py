"""Ready-made tensor expressions against NumPy, compiled."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi
from slipway.topi.utils import get_const_int, get_const_tuple

RNG = np.random.default_rng(0)


def given(*shape):
    return (RNG.random(shape, "float32") * 4 - 2).astype("float32")


def check(function, reference, *arrays, rtol=1e-5):
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"x{i}") for i, a in enumerate(arrays)]
    made = function(*tensors)
    want = np.asarray(reference(*arrays))
    got = tvm.nd.array(np.zeros(get_const_tuple(made.shape), made.dtype))
    tvm.build(te.create_schedule(made.op), [*tensors, made], "llvm")(
        *(tvm.nd.array(a) for a in arrays), got
    )
    np.testing.assert_allclose(got.numpy().reshape(want.shape), want, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["abs", "ceil", "cos", "exp", "floor", "negative", "round", "sin", "tanh"]
)
def test_elementwise(name):
    reference = {"round": np.rint}.get(name) or getattr(np, name)
    check(getattr(topi, name), reference, given(3, 5))


def test_an_expression_is_cast():
    loaded = te.placeholder((4,), name="x")[2]
    assert topi.cast(loaded, "int32").dtype == "int32"
    assert topi.cast(1, "float32").dtype == "float32"


def test_broadcasting():
    check(topi.add, np.add, given(3, 1, 5), given(4, 1))
    check(lambda a, b: (a + b) * 2.0 - b / 4.0, lambda a, b: (a + b) * 2 - b / 4, given(3, 4),
          given(4))  # fmt: skip
    check(lambda a: -(1.0 - a), lambda a: a - 1, given(3, 4))
    check(lambda a: topi.clip(a, -1, 1), lambda a: np.clip(a, -1, 1), given(9))
    check(lambda a, b: topi.where(topi.greater(a, b), a, b), np.maximum, given(5, 4), given(4))
    check(lambda a: a.astype("int32"), lambda a: a.astype("int32"), given(4, 4))
    with pytest.raises(ValueError, match="do not broadcast"):
        topi.add(te.placeholder((3, 4)), te.placeholder((3,)))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "mean"])
@pytest.mark.parametrize(
    ("axis", "keepdims"), [(None, False), (1, False), ((0, 2), True), (-1, True)]
)
def test_reductions(name, axis, keepdims):
    def reference(x):
        return getattr(np, name)(x, axis=axis, keepdims=keepdims)

    check(lambda x: getattr(topi, name)(x, axis, keepdims), reference, given(2, 3, 4))


def test_arg_reductions_take_the_first():
    x = np.array([[1, 3, 3, 0], [2, 2, 1, 1]], "float32")
    check(lambda t: topi.argmax(t, 1), lambda a: a.argmax(1).astype("int32"), x)
    check(lambda t: topi.argmin(t, 0), lambda a: a.argmin(0).astype("int32"), x)


def test_elements_move():
    x, y = given(2, 3, 4), given(2, 5, 4)
    check(lambda t: topi.transpose(t, (2, 0, 1)), lambda a: a.transpose(2, 0, 1), x)
    check(topi.transpose, np.transpose, x)
    check(lambda t: topi.reshape(t, (6, 4)), lambda a: a.reshape(6, 4), x)
    check(lambda t: topi.expand_dims(t, 1), lambda a: a[:, None], x)
    check(lambda t: topi.squeeze(topi.expand_dims(t, 1)), lambda a: a, x)
    check(lambda t: topi.flip(t, 1), lambda a: a[:, ::-1], x)
    check(
        lambda t: topi.broadcast_to(t, (7, 2, 3, 4)), lambda a: np.broadcast_to(a, (7, 2, 3, 4)), x
    )
    check(lambda a, b: topi.concatenate((a, b), 1), lambda a, b: np.concatenate((a, b), 1), x, y)
    check(lambda a, b: topi.stack((a, b), 1), lambda a, b: np.stack((a, b), 1), x, x)
    check(lambda a, b: topi.matmul(a, b), np.matmul, given(3, 4), given(4, 5))
    with pytest.raises(ValueError, match="the sizes differ"):
        topi.reshape(te.placeholder((2, 3)), (7,))


def test_layers():
    check(topi.nn.relu, lambda a: np.maximum(a, 0), given(4, 4))
    check(lambda a: topi.nn.leaky_relu(a, 0.1), lambda a: np.where(a > 0, a, a * 0.1), given(4, 4))
    check(topi.nn.flatten, lambda a: a.reshape(2, -1), given(2, 3, 4))
    check(lambda a: topi.nn.pad(a, (0, 1), (2, 0), 3.0),
          lambda a: np.pad(a, ((0, 2), (1, 0)), constant_values=3), given(3, 3))  # fmt: skip
    check(topi.nn.dense, lambda x, w, b: x @ w.T + b, given(3, 4), given(5, 4), given(5))

    def softmax(a):
        e = np.exp(a - a.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    check(topi.nn.softmax, softmax, given(3, 7))


def windows(x, kh, kw, stride):
    view = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), (2, 3))
    return view[:, :, ::stride, ::stride]


@pytest.mark.parametrize(("stride", "padding"), [(1, 1), (2, 0), (2, (0, 1, 1, 0))])
def test_convolution_and_pooling(stride, padding):
    x, w = given(2, 3, 9, 9), given(4, 3, 3, 3)
    sides = (padding,) * 4 if isinstance(padding, int) else padding

    def padded(a, value=0.0):
        sizes = ((0, 0), (0, 0), (sides[0], sides[2]), (sides[1], sides[3]))
        return np.pad(a, sizes, constant_values=value)

    check(lambda a, b: topi.nn.conv2d_nchw(a, b, stride, padding),
          lambda a, b: np.einsum("ncyxij,ocij->noyx", windows(padded(a), 3, 3, stride), b),
          x, w, rtol=1e-4)  # fmt: skip
    for kind, value, reduce in (("max", -1e30, np.max), ("avg", 0.0, np.mean)):
        check(lambda a, kind=kind: topi.nn.pool2d(a, 3, stride, 1, padding, kind),
              lambda a, value=value, reduce=reduce: reduce(windows(padded(a, value), 3, 3, stride),
                                                           (4, 5)), x)  # fmt: skip


def test_shapes_as_numbers():
    n = te.size_var("n")
    assert get_const_tuple(te.placeholder((2, n)).shape) == (2, n)
    assert get_const_int(te.const(3)) == 3
    with pytest.raises(ValueError, match="not a constant"):
        get_const_int(n)
