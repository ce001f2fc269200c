"""Weights without a shape: the operator that uses one says it, and what follows builds on that."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay.interpret import interpret
from slipway.relay.types import TensorType

X = relay.var("x", shape=(1, 4, 8, 8))


def conv(data=X, **options):
    return relay.nn.conv2d(
        data, relay.var("w"), channels=8, kernel_size=(3, 3), padding=(1, 1), **options
    )


def types_of(result):
    body = result.astuple() if hasattr(result, "astuple") else result
    function = relay.Function(relay.analysis.free_vars(body), body)
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"]
    return {p.name_hint: p.checked_type.shape for p in typed.params}, typed.ret_type


@pytest.mark.parametrize(
    "follow",
    [
        lambda y: relay.split(y, 2, axis=1),
        lambda y: relay.nn.upsampling(y, 2, 2),
        lambda y: relay.nn.depth_to_space(y, 2),
        lambda y: relay.nn.l2_normalize(y, 1e-5, [1]),
        lambda y: relay.add(y, relay.zeros_like(y)),
        lambda y: relay.nn.group_norm(y, relay.const(np.ones(8)), relay.const(np.ones(8)), 2),
        lambda y: relay.sequence_mask(y, relay.const([1] * 8)),
    ],
)
def test_compositions_of_several_operators_take_what_such_a_call_gives(follow):
    given, _ = types_of(follow(conv()))
    wanted = follow(relay.var("y", shape=(1, 8, 8, 8)))
    assert given == {"x": (1, 4, 8, 8), "w": (8, 4, 3, 3)}
    result = wanted.astuple() if hasattr(wanted, "astuple") else wanted
    assert types_of(follow(conv()))[1] == result.checked_type


@pytest.mark.parametrize(("groups", "rank"), [(1, 1), (1, 2), (2, 2), (1, 3)])
def test_kernels_of_transposed_convolutions(groups, rank):
    x = relay.var("x", shape=(1, 4, 5, 6, 7)[: rank + 2])
    made = getattr(relay.nn, f"conv{rank}d_transpose")(
        x, relay.var("w"), channels=6, kernel_size=(3, 2, 2)[:rank], groups=groups
    )
    given, _ = types_of(made)
    assert given["w"] == (4, 6 // groups, *(3, 2, 2)[:rank])
    assert made.attrs.channels == 6
    assert made.attrs.kernel_size == (3, 2, 2)[:rank]
    typed = relay.var("w", shape=given["w"])  # what finds a tuned schedule is the same
    same = getattr(relay.nn, f"conv{rank}d_transpose")(x, typed, groups=groups)
    assert str(same.attrs) == str(made.attrs)
    assert str(made.attrs).endswith(f"groups={groups}, out_dtype='')")


def test_the_type_is_known_when_the_call_is_built_and_the_variable_stays_as_it_is():
    weight = relay.var("w")
    for units in (5, 7):  # in two functions, of two types
        call = relay.nn.dense(relay.var("x", shape=(3, 4)), weight, units=units)
        assert call.checked_type == TensorType((3, units), "float32")
        assert types_of(call)[0]["w"] == (units, 4)
    assert weight.type is None


def test_what_no_operator_says_is_asked_for():
    with pytest.raises(TypeInferenceError, match="%w does not follow from its use"):
        types_of(relay.nn.conv2d(X, relay.var("w")))
    with pytest.raises(TypeInferenceError, match="%b does not follow from its use"):
        types_of(relay.nn.bias_add(X, relay.var("b"), axis=7))
    with pytest.raises(TypeInferenceError, match=r"%n does not follow from its use"):
        types_of(relay.nn.conv2d(relay.var("n"), relay.var("w"), channels=1, kernel_size=1))


def test_a_network_of_such_weights_runs():
    y = relay.nn.upsampling(relay.nn.relu(conv()), 2, 2)
    y = relay.nn.batch_flatten(relay.split(y, 2, axis=1)[1])
    y = relay.nn.dense(y, relay.var("v"), units=3)
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    mod = relay.transform.InferType()(mod)
    rng = np.random.default_rng(0)
    args = [rng.random(p.checked_type.shape).astype("float32") for p in mod["main"].params]
    ours = relay.create_executor("graph", mod=mod, target="llvm").evaluate()(*args).numpy()
    wanted = interpret(mod["main"], *args)
    np.testing.assert_allclose(ours, wanted, rtol=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"groups": 0},
        {"kernel_layout": "OIHW3i4o"},
        {"kernel_layout": "OIHW2h"},
        {"kernel_layout": "OIXY"},
    ],
)
def test_what_implies_nothing_is_refused_in_words(wrong):
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w")
    with pytest.raises(tvm.TVMError):
        called = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), **wrong)
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], called)))


def test_compositions_name_the_types_of_variables():
    rng = np.random.default_rng(4)
    x, offset = rng.standard_normal((1, 8, 7, 6)), rng.uniform(-2, 2, (1, 36, 5, 4))
    w, gamma, beta = rng.standard_normal((4, 4, 3, 3)), *rng.standard_normal((2, 8))
    data = relay.var("x", shape=x.shape)
    shapes = {"o": offset.shape, "w": w.shape, "g": gamma.shape, "b": beta.shape, "m": (5, 3)}
    found = []
    for typed in (False, True):
        o, k, g, b, m = (relay.var(n, shape=s) if typed else relay.var(n)
                         for n, s in shapes.items())  # fmt: skip
        moved = relay.nn.deformable_conv2d(data, o, k, kernel_size=(3, 3), channels=4, groups=2,
                                           deformable_groups=2)  # fmt: skip
        even = relay.nn.group_norm(data, g, b, 4)
        rows = relay.var("r", shape=(2, 5))
        product = relay.nn.matmul(rows, m, units=3)
        func = relay.Function([data, o, k, g, b, rows, m], relay.Tuple([moved, even, product]))
        func = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
        found.append(func.checked_type)
        inputs = [v.astype("float32") for v in (x, offset, w, gamma, beta, np.ones((2, 5)),
                                                np.ones((5, 3)))]  # fmt: skip
        found.append(interpret(func, *inputs))
    assert found[0] == found[2]
    for got, wanted in zip(found[1], found[3], strict=True):
        np.testing.assert_array_equal(got, wanted)
    grouped = x.reshape(1, 4, -1)
    even = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(
        grouped.var(2, keepdims=True) + 1e-5
    )
    wanted = even.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    np.testing.assert_allclose(found[1][1], wanted, rtol=1e-4, atol=1e-5)
    nhwc = relay.var("x", shape=(1, 7, 6, 8))
    o, k = relay.var("o"), relay.var("k")
    relay.nn.deformable_conv2d(nhwc, o, k, kernel_size=(3, 3), channels=4, data_layout="NHWC",
                               kernel_layout="HWIO")  # fmt: skip
    assert [v.type_annotation.shape for v in (o, k)] == [(1, 5, 4, 18), (3, 3, 8, 4)]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_kernels_of_convolutions_on_blocked_channels(groups, rank):
    letters, window = "DHW"[3 - rank :], (3, 2, 1)[:rank]
    x = relay.var("x", shape=(1, 2, *(6, 7, 8)[:rank], 4))
    kind, inner = ("depthwise_conv", 1) if groups == 8 else ("conv", 4)
    made = getattr(relay.nn, f"contrib_{kind}{rank}d_nchwc")
    outer = 4 if groups == 8 else 2
    options = {"data_layout": f"NC{letters}4c", "kernel_layout": f"OI{letters}{inner}i{outer}o",
               "out_layout": f"NC{letters}{outer}c", "groups": groups}  # fmt: skip
    y = made(x, relay.var("w"), channels=8, kernel_size=window, **options)
    wanted = (8 // outer, max(2 // groups, 1), *window, inner, outer)
    given, result = types_of(y)
    assert given["w"] == wanted
    typed = made(x, relay.var("w", shape=wanted), channels=8, kernel_size=window, **options)
    assert result == typed.checked_type
    with pytest.raises(TypeInferenceError, match="does not follow from its use"):
        types_of(made(x, relay.var("w"), **options))
