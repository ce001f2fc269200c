"""Operators whose sizes are tensors: by the references, compiled for values, and made static."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import LoweringError, TypeInferenceError
from slipway.transform.graph.dynamic_to_static import dynamic_calls

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
IMAGE = np.random.default_rng(0).uniform(-1, 1, (1, 2, 4, 6)).astype("float32")
SPARSE = np.array([[0, 1], [2, 2]], "int64")


def ints(*values):
    return np.array(values, "int64")


def nearest(image, scale):
    return image.repeat(scale, 2).repeat(scale, 3)


CASES = {
    "segment_sum": (lambda x, i: relay.segment_sum(x, i), [X, ints(3, 1)],
                    np.stack([0 * X[0], X[1], 0 * X[0], X[0]])),
    "segments of the first slices": (lambda x, i, n: relay.segment_sum(x, i, n),
                                     [X, ints(1), np.array(2)], np.stack([0 * X[0], X[0]])),
    "reshape": (lambda x, s: relay.reshape(x, s), [X, ints(0, -1)], X.reshape(2, 12)),
    "reshape, joined": (lambda x, s: relay.reshape(x, s), [X, ints(-3, 4)], X.reshape(6, 4)),
    "broadcast_to": (
        lambda x, s: relay.broadcast_to(x, s),
        [X[:, :1], ints(5, 2, 3, 4)],
        np.broadcast_to(X[:, :1], (5, 2, 3, 4)),
    ),
    "tile": (lambda x, s: relay.tile(x, s), [X, ints(2, 1, 1, 3)], np.tile(X, (2, 1, 1, 3))),
    "squeeze": (lambda x, s: relay.squeeze(x, s), [X[:1, :, :1], ints(0, 2)],
                X[:1, :, :1].squeeze((0, 2))),
    "expand_dims": (lambda x, s: relay.expand_dims(x, s, 2), [X, np.array(1)], X[:, None, None]),
    "full": (lambda x, s: relay.full(x, s), [np.float32(2.5), ints(3, 2)],
             np.full((3, 2), 2.5, "float32")),
    "zeros": (lambda s: relay.zeros(s, "int32"), [ints(3, 2)], np.zeros((3, 2), "int32")),
    "ones": (lambda s: relay.ones(s, "float32"), [ints(4)], np.ones(4, "float32")),
    "arange": (lambda a, b, c: relay.arange(a, b, c, "float32"),
               [np.float32(1), np.float32(4), np.float32(0.5)], np.arange(1, 4, 0.5, "float32")),
    "one_hot": (lambda i, d: relay.one_hot(i, 1, 0, d, 0, "int32"), [ints(2, 0), np.array(4)],
                np.eye(4, dtype="int32")[:, [2, 0]]),
    "topk": (lambda x, k: relay.topk(x, k, 1, "values"), [X, np.array(2)], X[:, :0:-1]),
    "strided_slice": (lambda x, b, e: relay.strided_slice(x, b, e),
                      [X, ints(0, -2), ints(2, 3)], X[:, 1:3]),
    "slices of a size": (
        lambda x, b, e: relay.strided_slice(x, b, e, slice_mode="size"),
        [X, ints(1, 0, 1), ints(-1, 2, 2)], X[1:, :2, 1:3],
    ),
    "slices of steps": (lambda x, b, e, s: relay.strided_slice(x, b, e, s),
                        [X, ints(1, 2), ints(-3, -9), ints(-1, -2)], X[::-1, ::-2]),
    "pad": (lambda x, w: relay.nn.pad(x, w, 1.5), [X[0], ints(1, 0, 0, 2).reshape(2, 2)],
            np.pad(X[0], ((1, 0), (0, 2)), constant_values=1.5)),
    "pad by a value": (lambda x, v: relay.nn.pad(x, ((1, 0), (0, -2)), v), [X[0], np.float32(7)],
                       np.pad(X[0], ((1, 0), (0, 0)), constant_values=7)[:, :2]),
    "resize2d": (
        lambda x, s: relay.image.resize2d(
            x, s, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
        [IMAGE, ints(8, 12)], nearest(IMAGE, 2),
    ),
    "upsampling": (lambda x, h, w: relay.nn.upsampling(x, h, w),
                   [IMAGE, np.float64(3), np.float64(3)], nearest(IMAGE, 3)),
    "sparse_to_dense": (
        lambda i, s, v: relay.sparse_to_dense(i, s, v, relay.const(9.0)),
        [SPARSE, ints(3, 4), np.float32([1, 2])],
        np.float32([[9, 1, 9, 9], [9, 9, 9, 9], [9, 9, 2, 9]]),
    ),
}  # fmt: skip


def function_of(build, values):
    params = [
        relay.var(f"p{i}", shape=np.shape(v), dtype=np.asarray(v).dtype.name)
        for i, v in enumerate(values)
    ]
    return relay.Function(params, build(*params))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_values_are_those_of_numpy(name, kind):
    build, values, want = CASES[name]
    run = relay.create_executor(kind, mod=function_of(build, values)).evaluate()
    found = run(*values).numpy()
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", CASES)
def test_bound_sizes_make_a_library(name):
    """What the sizes are is known then, so that a graph of fixed shapes is compiled."""
    build, values, want = CASES[name]
    function = function_of(build, values)
    bound = relay.build_module.bind_params_by_name(
        function, {f"p{i}": v for i, v in enumerate(values)}
    )
    found = relay.transform.DynamicToStatic()(relay.Module.from_expr(bound))["main"]
    assert not dynamic_calls(found)
    assert tuple(found.checked_type.ret_type.shape) == want.shape


def test_a_library_says_which_sizes_it_needs():
    x, s = relay.var("x", shape=(2, 3)), relay.var("s", shape=(1,), dtype="int64")
    with pytest.raises(LoweringError, match=r"dyn\.reshape.*newshape.*vm"):
        relay.build(relay.Function([x, s], relay.reshape(x, s)), "llvm")


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_sizes_that_an_operator_cannot_have_are_an_error(kind):
    x, s = relay.var("x", shape=(2, 3)), relay.var("s", shape=(2,), dtype="int64")
    run = relay.create_executor(kind, mod=relay.Function([x, s], relay.reshape(x, s))).evaluate()
    with pytest.raises(TypeInferenceError, match="newshape"):
        run(np.ones((2, 3), "float32"), ints(4, 2))


def test_a_shape_of_a_tensor_is_known_when_the_library_is_made():
    n = relay.Dim("n", 1, 4)
    x, y = relay.var("x", shape=(n, 6)), relay.var("y", shape=(2, n, 3))
    half = relay.concatenate(
        [relay.const([-1]), relay.take(relay.shape_of(y), relay.const([2]))], 0
    )
    lib = relay.build(relay.Function([x, y], relay.reshape(x, half)), "llvm")
    module = relay.create_executor("graph", mod=relay.Function([x, y], relay.reshape(x, half)))
    run = module.evaluate()
    data = np.arange(18, dtype="float32").reshape(3, 6)
    found = run(data, np.zeros((2, 3, 3), "float32")).numpy()
    np.testing.assert_array_equal(found, data.reshape(6, 3))
    assert lib is not None


def test_compositions_wait_for_shapes_that_are_not_known():
    x, s = relay.var("x", shape=(2, 6)), relay.var("s", shape=(2,), dtype="int64")
    y = relay.reshape(x, s)
    body = relay.add(relay.zeros_like(y), relay.nn.relu(y))
    run = relay.create_executor("vm", mod=relay.Function([x, s], body)).evaluate()
    data = np.random.default_rng(1).normal(size=(2, 6)).astype("float32")
    for shape in ((3, 4), (1, 12), (3, 4)):
        found = run(data, ints(*shape)).numpy()
        np.testing.assert_array_equal(found, np.maximum(data, 0).reshape(shape))


def test_what_follows_a_size_takes_it_for_the_length_that_fits():
    """A product with a matrix of 12 columns, and a sum with 4 elements, allow no other length."""
    x, s = relay.var("x", shape=(2, 3, 4)), relay.var("s", shape=(2,), dtype="int64")
    w, bias = relay.var("w", shape=(5, 12)), relay.var("bias", shape=(5,))
    product = relay.nn.dense(relay.reshape(x, s), w)
    assert str(product.checked_type.shape) == "(Any(), 5)"
    run = relay.create_executor(
        "vm", mod=relay.Function([x, s, w, bias], relay.nn.bias_add(product, bias))
    ).evaluate()
    matrix = np.arange(60, dtype="float32").reshape(5, 12)
    found = run(X, ints(-1, 12), matrix, np.ones(5, "float32")).numpy()
    np.testing.assert_array_equal(found, X.reshape(2, 12) @ matrix.T + 1)
    with pytest.raises(TypeInferenceError, match="weight"):
        run(X, ints(3, 8), matrix, np.ones(5, "float32"))
    y = relay.var("y", shape=(relay.Any(),))
    assert relay.add(y, relay.var("z", shape=(4,))).checked_type.shape == (4,)


def test_boxes_that_are_kept_are_cut_to_their_number():
    """The thresholds are constants, as in detectors that came from PyTorch."""
    boxes = relay.var("boxes", shape=(1, 6, 5))
    indices = relay.const(np.arange(6, dtype="int32")[None])
    kept = relay.vision.non_max_suppression(
        boxes, relay.const([6]), indices, relay.const(-1), relay.const(0.5), force_suppress=True,
        coord_start=1, score_index=0, id_index=-1,
    )  # fmt: skip
    first = relay.strided_slice(
        relay.squeeze(kept[0], [0]), relay.const([0]), relay.reshape(kept[1], (1,))
    )
    run = relay.create_executor("vm", mod=relay.Function([boxes], first)).evaluate()
    corners = np.float32(
        [[0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6], [5, 5, 6, 6.1], [9, 9, 10, 10]]
    )
    rows = np.concatenate([np.float32([[0.9], [0.8], [0.3], [0.7], [0.5]]), corners], 1)
    rows = np.concatenate([rows, np.float32([[0.6, 9, 9, 10, 9.9]])], 0)
    assert run(rows[None]).numpy().tolist() == [0, 3, 5]
    rows[:, 1:] += np.arange(6, dtype="float32")[:, None] * 20
    assert run(rows[None]).numpy().tolist() == [0, 1, 3, 5, 4, 2]


def test_work_before_a_size_is_done_once():
    """What decides a size and what lies beside it are one stage, the remainder another."""
    x = relay.var("x", shape=(64, 64))
    w = relay.var("w", shape=(64, 64))
    product = relay.nn.dense(x, w)
    for _ in range(4):
        product = relay.nn.dense(product, w)
    count = relay.cast(
        relay.sum(relay.cast(relay.greater(product, relay.const(0.0)), "int32")), "int64"
    )
    body = relay.strided_slice(relay.reshape(product, (-1,)), relay.const([0]),
                               relay.reshape(count, (1,)))  # fmt: skip
    run = relay.create_executor("vm", mod=relay.Function([x, w], body)).evaluate()
    rng = np.random.default_rng(2)
    for _ in range(2):
        a, b = (rng.normal(size=(64, 64)).astype("float32") / 8 for _ in range(2))
        want = a
        for _ in range(5):
            want = want @ b.T
        found = run(a, b).numpy()
        count_near = (np.abs(want) < 1e-6).sum()
        assert abs(len(found) - (want > 0).sum()) <= count_near
        np.testing.assert_allclose(found, want.ravel()[: len(found)], rtol=1e-4, atol=1e-5)
