"""No argument is dropped in silence: it counts, or it is refused."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te, tir
from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.transform.graph.fold_constant import fold_constant

IMAGES = (1, 2, 4, 4)


def images():
    return relay.var("x", shape=IMAGES)


def weights(*shape):
    return relay.const(np.zeros(shape, "float32"))


REFUSED = {
    "valid_count": lambda x: relay.argsort(x, valid_count=relay.const(np.array([1]))),
    "layout": lambda x: relay.image.grid_sample(x, weights(1, 2, 2, 2), layout="NHWC"),
    "roi": lambda x: relay.image.resize2d(x, (2, 2), roi=(0, 0, 2, 2)),
    "extrapolation": lambda x: relay.image.resize2d(x, (2, 2), extrapolation_value=1.0),
    "max pool": lambda x: relay.nn.max_pool2d(x, out_layout="NHWC"),
    "global pool": lambda x: relay.nn.global_avg_pool2d(x, out_layout="NHWC"),
    "adaptive pool": lambda x: relay.nn.adaptive_avg_pool2d(x, 1, out_layout="NHWC"),
    "units": lambda x: relay.nn.matmul(relay.reshape(x, (8, 4)), weights(4, 3), units=4),
    "channels": lambda x: relay.nn.conv2d_transpose(x, weights(2, 3, 3, 3), channels=4),
    "kernel_size": lambda x: relay.nn.conv2d_transpose(x, weights(2, 3, 3, 3), kernel_size=2),
    "out_layout": lambda x: relay.nn.conv2d_transpose(x, weights(2, 3, 3, 3), out_layout="NHWC"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_count_is_refused(name):
    with pytest.raises(TypeInferenceError):
        REFUSED[name](images())


def test_what_is_true_of_the_operands_is_taken():
    x = images()
    relay.nn.conv2d_transpose(x, weights(2, 3, 3, 3), channels=3, kernel_size=(3, 3))
    relay.nn.matmul(relay.reshape(x, (8, 4)), weights(3, 4), units=3, transpose_b=True)
    relay.nn.max_pool2d(x, out_layout="NCHW")
    relay.image.resize2d(x, (2, 2), roi=(0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("NHWC",), {"layout": "NHWC"}),
        (("NHWC", "cubic"), {"layout": "NHWC", "method": "cubic"}),
        (("NCHW", "linear", "asymmetric"), {"coordinate_transformation_mode": "asymmetric"}),
        (("NCHW", "nearest_neighbor", "half_pixel", "floor"),
         {"method": "nearest_neighbor", "rounding_method": "floor"}),
    ],
)  # fmt: skip
def test_a_resize_takes_its_layout_where_tvm_0_8_has_it(given, named):
    x = images()
    by_place = relay.image.resize2d(x, (5, 6), *given)
    assert str(by_place) == str(relay.image.resize2d(x, (5, 6), **named))
    if given == ("NHWC",):
        earlier = relay.image.resize2d(x, (5, 6), "NHWC", method="cubic")
        assert str(earlier) == str(relay.image.resize2d(x, (5, 6), None, "NHWC", "cubic"))


def test_dtypes_of_results():
    x = relay.var("x", shape=(3, 4), dtype="int8")
    data = np.full((3, 4), 100, "int8")
    total = interpret(relay.cumsum(x, axis=0, dtype="int32").as_function(), data)
    np.testing.assert_array_equal(total, np.cumsum(data, axis=0, dtype="int32"))
    made = relay.image.resize2d(images(), (2, 2), out_dtype="float16")
    assert made.checked_type.dtype == "float16"


# -- requantize ------------------------------------------------------------------------------------

SUMS = np.array([-9, -7, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6, 7, 9, 200, -300], "int32")


def halves(values, rounding):
    """Exact halves in float64, away from zero or upward."""
    if rounding == "UPWARD":
        return np.floor(values + 0.5)
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


@pytest.mark.parametrize("target", [None, "llvm", "c"])
@pytest.mark.parametrize("compute_dtype", [None, "int64", "float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_requantize_rounds_as_it_is_told(rounding, compute_dtype, target):
    x = relay.var("x", shape=SUMS.shape, dtype="int32")

    def scaled(data):
        return relay.qnn.op.requantize(
            data, relay.const(0.25), relay.const(1), relay.const(0.5), relay.const(3),
            rounding=rounding, compute_dtype=compute_dtype,
        )  # fmt: skip

    wanted = np.clip(halves((SUMS - 1.0) * 0.5, rounding) + 3, -128, 127).astype("int8")
    if target is None:
        folded = fold_constant(relay.Function([], scaled(relay.const(SUMS))))
        np.testing.assert_array_equal(folded.body.data.numpy(), wanted)
        return
    library = relay.build(IRModule.from_expr(relay.Function([x], scaled(x))), target)
    module = GraphModule(library["default"](cpu(0)))
    module.run(x=SUMS)
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


def test_requantize_of_channels():
    data = np.arange(-12, 12, dtype="int32").reshape(4, 6)
    x = relay.var("x", shape=data.shape, dtype="int32")
    scales, wanted = np.array([0.5, 0.25, 0.75, 1], "f4"), np.array([1.0, 0.5, 0.5, 0.25], "f4")
    for rounding in ("UPWARD", "TONEAREST"):
        made = relay.qnn.op.requantize(
            x, scales, relay.const(0), wanted, relay.const(0), axis=0, rounding=rounding
        )
        real = halves(data * (scales / wanted).astype("f8")[:, None], rounding)
        np.testing.assert_array_equal(interpret(made.as_function(), data), real.astype("int8"))


@pytest.mark.parametrize(
    "options",
    [{"rounding": "DOWN"}, {"compute_dtype": "int16"}, {"rounding": ""}, {"rounding": 0}],
)
def test_requantize_knows_no_other(options):
    x = relay.var("x", shape=(2,), dtype="int32")
    with pytest.raises(TypeInferenceError, match="not one of"):
        relay.qnn.op.requantize(x, 0.5, 0, 1.0, 0, **options)


def test_requantize_in_float32_takes_the_text_none_of_a_setting_for_none():
    x = np.array([-3, -1, 1, 3], "int32")
    with relay.qnn.op.requantize_config(rounding="None", compute_dtype="float32"):
        made = relay.qnn.op.requantize(relay.const(x), 0.5, 0, 1.0, 0)
    found = fold_constant(relay.Function([], made)).body.data.numpy()
    np.testing.assert_array_equal(found, [-1, 0, 1, 2])  # upward


# -- inputs of one name ----------------------------------------------------------------------------


def same_names():
    params = [relay.var(n, shape=(2,)) for n in ("x", "x", "x_1")]
    return IRModule.from_expr(relay.Function(params, params[0] - params[1] * params[2]))


def test_inputs_of_one_name_are_told_apart():
    one, two, three = (np.array(v, "float32") for v in ([1, 2], [3, 5], [7, 11]))
    module = GraphModule(relay.build(same_names(), "llvm")["default"](cpu(0)))
    assert list(module.get_input_info()[0]) == ["x", "x_2", "x_1"]
    module.run(x=one, x_2=two, x_1=three)
    np.testing.assert_array_equal(module.get_output(0).numpy(), one - two * three)
    np.testing.assert_array_equal(interpret(same_names(), one, two, three), one - two * three)
    for kind in ("graph", "debug", "vm", "aot"):
        run = relay.create_executor(kind, mod=same_names(), target="llvm").evaluate()
        np.testing.assert_array_equal(run(one, two, three).numpy(), one - two * three)


def test_a_name_of_two_cannot_be_bound():
    with pytest.raises(TypeInferenceError, match="2 parameters are called 'x'"):
        relay.build(same_names(), "llvm", params={"x": np.zeros(2, "float32")})


@pytest.mark.parametrize("one", [2, np.int64(2), tir.IntImm("int32", 2), [2], (np.int32(2), 2.0)])
def test_extents_are_integers_of_any_kind(one):
    x = images()
    pooled = relay.nn.max_pool2d(x, one, strides=one, padding=one)
    wide = relay.nn.max_pool2d(x, (2, 2), strides=(2, 2), padding=(2, 2))
    assert pooled.checked_type == wide.checked_type
    assert pooled.attrs.padding == (2, 2, 2, 2)
    assert all(type(v) is int for v in pooled.attrs.strides)


def test_one_section_count_of_any_kind():
    assert relay.split(images(), np.int64(2), axis=2).size == 2
    assert relay.split(images(), tir.IntImm("int32", 2), axis=2).size == 2


@pytest.mark.parametrize(
    ("argument", "call"),
    {
        "strides": lambda x: relay.nn.max_pool2d(x, 2, strides=1.5),
        "padding": lambda x: relay.nn.max_pool2d(x, 2, padding=(0.5, 0)),
        "axis": lambda x: relay.sum(x, axis="last"),
        "newshape": lambda x: relay.reshape(x, (2, None)),
        "shape": lambda x: relay.broadcast_to(x, 3.5),
        "reps": lambda x: relay.tile(x, [1, 2.5]),
        "begin": lambda x: relay.strided_slice(x, ["0"], [1]),
        "pad_width": lambda x: relay.nn.pad(x, [(0, 0), (0, 0), (0, 0.5), (0, 0)]),
    }.items(),
)
def test_what_is_no_integer_is_named(argument, call):
    with pytest.raises(TypeInferenceError, match=f"argument '{argument}' must be integers"):
        call(images())


def test_arguments_in_classic_order():
    """Scripts pass them without names."""
    x = relay.var("x", shape=(1, 4, 5, 5))
    made = relay.nn.conv2d_transpose(x, weights(4, 3, 3, 3), 2, 1, 1, 2, 6, (3, 3))
    assert relay.testing.run_infer_type(made).checked_type.shape == (1, 6, 9, 9)
    row = relay.var("row", shape=(2, 3))
    rows = np.array([[2.0, 1, 3], [1, 3, 2]], "float32")
    order = relay.argsort(row, 1, False, "int64")
    np.testing.assert_array_equal(relay.interpret.interpret(order, rows), [[2, 0, 1], [1, 2, 0]])


def test_shapes_may_be_constants_of_the_graph():
    x = relay.var("x", shape=(1, 6))
    for made, shape in (
        (relay.reshape(x, relay.const([2, 3], "int64")), (2, 3)),
        (relay.broadcast_to(x, shape=relay.const([4, 6])), (4, 6)),
    ):
        assert relay.testing.run_infer_type(made).checked_type.shape == shape


def test_positions_in_several_axes():
    """argmax and argmin over axes, as a position in their elements."""
    data = np.random.default_rng(3).standard_normal((2, 3, 4)).astype("float32")
    x = relay.var("x", shape=(2, 3, 4))
    for options, rows in (
        ({"axis": (1, 2)}, data.reshape(2, 12)),
        ({"axis": (0, 2)}, data.transpose(1, 0, 2).reshape(3, 8)),
        ({"axis": 1, "exclude": True}, data.transpose(1, 0, 2).reshape(3, 8)),
    ):
        f = relay.Function([x], relay.argmax(x, **options))
        run = relay.create_executor("graph", device=tvm.cpu(), target="llvm").evaluate(f)
        np.testing.assert_array_equal(run(data).numpy(), rows.argmax(1))


def test_dimensions_may_be_formulas():
    n, m = te.var("n"), te.var("m")
    assert relay.TensorType((n + n, 3)) == relay.TensorType((2 * n, 3))
    assert relay.TensorType((n * m,)) != relay.TensorType((n + m,))
    assert relay.TensorType((n - n + 4,)).shape == (4,)


def test_slices_are_padded():
    data = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    x = relay.var("x", shape=(2, 3, 4))
    for (begin, end, strides), expected in (
        (((0, 1, 0), (2, 3, 3), (1,)), data[:, 1:, :3]),
        (((1,), (2, 2), None), data[1:, :2]),
        (((0, 1), (2,), (2,)), data[::2, 1:]),
    ):
        made = relay.strided_slice(x, begin, end, strides)
        np.testing.assert_array_equal(relay.interpret.interpret(made, data), expected)


def test_lengths_and_places_beyond_the_data():
    data = np.arange(16, dtype="int32").reshape(4, 4)
    x = relay.var("x", shape=(4, 4), dtype="int32")
    turned = relay.reverse_sequence(x, relay.const(np.array([-1, 0, 2, 9], "int32")), 1, 0)
    expected = np.stack([data[0], data[1], data[2][[1, 0, 2, 3]], data[3][::-1]])
    np.testing.assert_array_equal(relay.interpret.interpret(turned, data), expected)
    indices = relay.const(np.array([[0, 7]], "int64"))
    added = relay.scatter_nd(x, indices, relay.const(np.ones((2, 4), "int32")), "add")
    f = relay.Function([x], added)
    run = relay.create_executor("graph", device=tvm.cpu(), target="llvm").evaluate(f)
    expected = data + np.array([[1], [0], [0], [0]])
    np.testing.assert_array_equal(run(data).numpy(), expected)
    np.testing.assert_array_equal(relay.interpret.interpret(f, data), expected)


def test_the_variance_of_an_open_axis_counts_it():
    n = te.var("n")
    x = relay.var("x", shape=(n, 3))
    f = relay.Function([x], relay.variance(x, 0, unbiased=True))
    data = np.random.default_rng(5).standard_normal((7, 3)).astype("float32")
    run = relay.create_executor("vm", device=tvm.cpu(), target="llvm").evaluate(f)
    np.testing.assert_allclose(run(data).numpy(), data.var(0, ddof=1), rtol=1e-5)


def test_parameters_that_are_constants_may_be_given_too():
    """As scripts do: evaluate()(x, **params), of what an importer returned."""
    x = relay.var("x", shape=(2,))
    module = IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    run = relay.create_executor("graph", mod=module, device=tvm.cpu(), target="llvm").evaluate()
    values = np.array([1.0, 2.0], "float32")
    np.testing.assert_array_equal(run(values, w0=np.ones(2, "float32")).numpy(), values + 1)
    with pytest.raises(tvm.TVMError, match="there is no input 'y'; the inputs are x"):
        run(y=values)
