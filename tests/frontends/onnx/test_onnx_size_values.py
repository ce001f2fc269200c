"""Sizes that an ONNX model computes from open shapes: one library, compared at several sizes."""

import numpy as np
import pytest
from graphs import helper, model

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import OpNotImplemented
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.op_registry import const

onnxruntime = pytest.importorskip("onnxruntime")

N, W = relay.Dim("n", 1, 6), relay.Dim("w", 2, 40)


def agrees(proto, sizes, dims, feeds, tolerance=1e-6):
    """Build `proto` once for the ranges `dims`; hold it against onnxruntime at each of `sizes`."""
    mod, params = relay.frontend.from_onnx(proto, dims=dims)
    library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for size in sizes:
        given = feeds(*size)
        for name, value in given.items():
            module.set_input(name, value)
        module.run()
        for number, want in enumerate(session.run(None, given)):
            got = module.get_output(number).numpy()
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, tolerance, tolerance)


def constants(**arrays):
    return {name: np.array(value, np.int64) for name, value in arrays.items()}


def split_by_shape():
    """Heads as exporters write them: Shape, Gather, Concat, Reshape, and back with a -1."""
    node = helper.make_node
    weights = constants(zero=0, one=1, four=[4], minus=[-1], axis=[0])
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["n"]), node("Gather", ["shape", "one"], ["w"]),
        node("Unsqueeze", ["n", "axis"], ["n1"]), node("Unsqueeze", ["w", "axis"], ["w1"]),
        node("Concat", ["n1", "w1", "four", "minus"], ["apart"], axis=0),
        node("Reshape", ["x", "apart"], ["heads"]),
        node("Transpose", ["heads"], ["t"], perm=[0, 2, 1, 3]),
        node("Concat", ["n1", "minus"], ["flat"], axis=0),
        node("Reshape", ["t", "flat"], ["y"]),
    ]  # fmt: skip
    return model(nodes, {"x": ("float32", ("n", "w", 12))}, ["y"], weights)


def made_of_sizes():
    """Expand, ConstantOfShape, Range, Where on an undecided Equal's place, and a size as number."""
    node = helper.make_node
    weights = constants(zero=0, one=1, two=2, axis=[0], lead=[1], minus=[-1, 1], none=[-1])
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["n"]), node("Gather", ["shape", "one"], ["w"]),
        node("Range", ["zero", "w", "one"], ["steps"]),
        node("Cast", ["steps"], ["places"], to=1),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Add", ["zeros", "places"], ["sum"]),
        node("Mul", ["n", "two"], ["twice"]), node("Unsqueeze", ["twice", "axis"], ["twice1"]),
        node("Concat", ["twice1", "lead"], ["tall"], axis=0),
        node("Expand", ["places", "tall"], ["rows"]),
        node("Cast", ["w"], ["real"], to=1), node("Div", ["x", "real"], ["scaled"]),
        node("Equal", ["shape", "none"], ["left"]),
        node("Where", ["left", "lead", "shape"], ["to"]),
        node("Expand", ["scaled", "to"], ["same"]),
        node("Add", ["same", "sum"], ["y"]),
        node("Size", ["x"], ["count"]), node("Cast", ["count"], ["counted"], to=1),
    ]  # fmt: skip
    outputs = ["y", "rows", "counted"]
    return model(nodes, {"x": ("float32", ("n", "w"))}, outputs, weights)


def ranked():
    """All of an axis in order, half of it, and at most five: sizes of it all the same."""
    node = helper.make_node
    weights = constants(one=[1], two=[2], five=[5])
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["w"]),
        node("Div", ["w", "two"], ["half"]), node("Min", ["w", "five"], ["few"]),
        node("TopK", ["x", "w"], ["a", "i"], largest=0), node("TopK", ["x", "half"], ["b", "j"]),
        node("TopK", ["x", "few"], ["c", "k"]),
        *(node("Cast", [name], [name + "f"], to=1) for name in "ijk"),
    ]  # fmt: skip
    outputs = ["a", "if", "b", "jf", "c", "kf"]
    return model(nodes, {"x": ("float32", ("n", "w"))}, outputs, weights)


def summed_products():
    """Attention of heads, rows scaled by a vector, a diagonal, and an outer product."""
    node = helper.make_node
    v = np.linspace(-1, 1, 12, dtype=np.float32)
    nodes = [
        node("Einsum", ["x", "x"], ["scores"], equation="nwd,nvd->nwv"),
        node("Softmax", ["scores"], ["shares"]),
        node("Einsum", ["shares", "x"], ["mixed"], equation="nwv,nvd->ndw"),
        node("Einsum", ["x", "v"], ["scaled"], equation="...d,d->...d"),
        node("Einsum", ["shares"], ["own"], equation="nww->w"),
        node("Einsum", ["own", "v"], ["outer"], equation="w,d->wd"),
    ]
    inputs = {"x": ("float32", ("n", "w", 12))}
    return model(nodes, inputs, ["mixed", "scaled", "outer"], {"v": v})


@pytest.mark.parametrize(
    ("proto", "width"),
    [(split_by_shape, (12,)), (made_of_sizes, ()), (ranked, ()), (summed_products, (12,))],
)
def test_sizes_computed_from_open_shapes_follow_the_run(proto, width):
    rng = np.random.default_rng(0)
    agrees(
        proto(), [(2, 7), (1, 2), (6, 40), (5, 13)], {"n": (1, 6), "w": (2, 40)},
        lambda n, w: {"x": rng.normal(size=(n, w, *width)).astype(np.float32)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "coordinates", "rounding", "by"),
    [
        ("nearest", "asymmetric", "floor", "scales"),
        ("nearest", "half_pixel", "round_prefer_floor", "scales"),
        ("nearest", "half_pixel", "round_prefer_ceil", "sizes"),
        ("linear", "half_pixel", "round_prefer_floor", "scales"),
        ("linear", "align_corners", "round_prefer_floor", "scales"),
        ("linear", "half_pixel", "round_prefer_floor", "halves"),
        ("cubic", "pytorch_half_pixel", "round_prefer_floor", "scales"),
    ],
)
def test_open_images_are_resampled(mode, coordinates, rounding, by):
    """By whole factors, by halves, and to the size of another tensor."""
    factors = np.array([1, 1, 1.5, 2.5] if by == "halves" else [1, 1, 2, 3], np.float32)
    given = ["x", "", "scales"] if by != "sizes" else ["x", "", "", "like"]
    nodes = [
        helper.make_node("Shape", ["other"], ["like"]),
        helper.make_node(
            "Resize", given, ["y"], mode=mode, coordinate_transformation_mode=coordinates,
            nearest_mode=rounding,
        ),
    ]  # fmt: skip
    inputs = {"x": ("float32", (1, 2, "h", "w"))}
    if by == "sizes":
        inputs["other"] = ("float32", (1, 2, "oh", "ow"))
    else:
        nodes = nodes[1:]
    dims = {"h": (1, 9), "w": (2, 12), "oh": (1, 30), "ow": (2, 30)}
    used = {d for _, shape in inputs.values() for d in shape if isinstance(d, str)}
    rng = np.random.default_rng(1)

    def feeds(h, w, oh, ow):
        made = {"x": rng.normal(size=(1, 2, h, w)), "other": np.zeros((1, 2, oh, ow))}
        return {n: made[n].astype(np.float32) for n in inputs}

    sizes = [(3, 4, 7, 5), (1, 2, 2, 2), (9, 12, 27, 30), (5, 7, 5, 14)]
    agrees(
        model(nodes, inputs, ["y"], {"scales": factors} if by != "sizes" else None), sizes,
        {n: r for n, r in dims.items() if n in used}, feeds, 2e-5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "direction", "lengths"), [("LSTM", "bidirectional", True), ("GRU", "reverse", False)]
)
def test_recurrent_layers_run_open_steps_and_batches(kind, direction, lengths):
    rng = np.random.default_rng(2)
    gates, ways = {"LSTM": 4, "GRU": 3}[kind], 1 + (direction == "bidirectional")

    def normal(*shape):
        return (rng.normal(size=shape) * 0.3).astype(np.float32)

    weights = {
        "W": normal(ways, gates * 7, 5), "R": normal(ways, gates * 7, 7),
        "B": normal(ways, 2 * gates * 7),
    }  # fmt: skip
    given = ["x", "W", "R", "B", "lengths" if lengths else ""]
    nodes = [helper.make_node(kind, given, ["y", "h"], hidden_size=7, direction=direction)]
    inputs = {"x": ("float32", ("t", "n", 5))}
    if lengths:
        inputs["lengths"] = ("int32", ("n",))

    def feeds(t, n):
        made = {"x": normal(t, n, 5), "lengths": rng.integers(1, t + 1, n).astype(np.int32)}
        return {name: made[name] for name in inputs}

    agrees(
        model(nodes, inputs, ["y", "h"], weights), [(3, 2), (1, 1), (20, 4), (7, 3)],
        {"t": (1, 20), "n": (1, 4)}, feeds, 1e-5,
    )  # fmt: skip


def test_what_is_known_of_sizes():
    sizes = SizeValues()
    vector = sizes.shape(relay.var("x", shape=(N, 3, W * 2)))
    known = sizes.of(relay.concatenate([vector, const(np.array([7]))], 0))
    assert list(known) == [N, 3, W * 2, 7]
    half = relay.divide(vector, const(np.array([1, 2, 2])))
    assert list(sizes.of(half)) == [N, 1, W]
    assert sizes.of(relay.equal(vector, const(np.array([-1, 3, 1])))).tolist() == [
        False, True, False,
    ]  # fmt: skip
    assert sizes.of(relay.equal(vector, const(np.array([2, 3, 1])))) is None  # n may be 2
    assert sizes.settled(relay.strided_slice(vector, [1], [2])).array.tolist() == [3]
    assert sizes.of(relay.var("data", shape=(3,), dtype="int64")) is None
    real = relay.divide(relay.cast(vector, "float32"), const(np.float32([4, 2, 3])))
    assert sizes.of(real) is None  # n / 4 is no size
    steps = relay.cast(relay.ceil(relay.add(real, const(np.float32(1)))), "int64")
    assert list(sizes.of(steps)) == [(N + 7) // 4, 3, (W * 2 + 5) // 3]
    assert list(sizes.of(relay.cast(real, "int64"))) == [N // 4, 1, W * 2 // 3]
    assert sizes.of(relay.cast(real, "bool")) is None


def test_a_problem_of_an_open_model_is_named_with_its_node():
    """The search for what the file states of the results must not hide it."""
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="odd"),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    proto = model(nodes, {"x": ("float32", ("n", 4))}, ["y"])
    with pytest.raises(OpNotImplemented, match="Mystery x 1"):
        relay.frontend.from_onnx(proto, dims={"n": (1, 4)})


def test_tiles_of_a_computed_number():
    """A constant row for each row of the data, and whole copies along both axes."""
    node = helper.make_node
    row = np.arange(12, dtype=np.float32).reshape(1, 12)
    weights = {"row": row, **constants(first=[0], one=[1], two=[2])}
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "first"], ["n"]),
        node("Concat", ["n", "one"], ["times"], axis=0), node("Tile", ["row", "times"], ["rows"]),
        node("Add", ["x", "rows"], ["sum"]), node("Concat", ["two", "n"], ["more"], axis=0),
        node("Tile", ["sum", "more"], ["y"]),
    ]  # fmt: skip
    agrees(
        model(nodes, {"x": ("float32", ("n", 12))}, ["y"], weights), [(1,), (6,), (4,)],
        {"n": (1, 6)},
        lambda n: {"x": np.random.default_rng(0).normal(size=(n, 12)).astype(np.float32)},
    )  # fmt: skip


def padded_to_multiples(mode):
    """Padding to a multiple of 8, as restorers of images pad, by a value that is computed."""
    node = helper.make_node
    weights = constants(two=[2], four=[4], eight=[8], none=np.zeros(6))
    fill = ["largest"] if mode == "constant" else []
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Slice", ["shape", "two", "four"], ["size"]),
        node("Mod", ["size", "eight"], ["over"]), node("Sub", ["eight", "over"], ["left"]),
        node("Mod", ["left", "eight"], ["more"]),
        node("Concat", ["none", "more"], ["pads"], axis=0),
        node("ReduceMax", ["x"], ["largest"], keepdims=0),
        node("Pad", ["x", "pads", *fill], ["y"], mode=mode),
    ]  # fmt: skip
    return model(nodes, {"x": ("float32", (1, 3, "h", "w"))}, ["y", "largest"], weights)


def padded_as_torch_writes():
    """torch's order of paddings, as ONNX has it: pairs, last axis first, transposed."""
    node = helper.make_node
    weights = constants(last=3, two=2, axis=[0], none=[0], six=[0] * 6, pairs=[-1, 2],
                        minus=[-1], lowest=[-(2**62)], flat=[-1])  # fmt: skip
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "last"], ["w"]),
        node("Sub", ["w", "two"], ["less"]), node("Unsqueeze", ["less", "axis"], ["l"]),
        node("Concat", ["none", "l", "six"], ["given"], axis=0),
        node("Reshape", ["given", "pairs"], ["apart"]),
        node("Slice", ["apart", "minus", "lowest", "axis", "minus"], ["transposed"]),
        node("Transpose", ["transposed"], ["ends"], perm=[1, 0]),
        node("Reshape", ["ends", "flat"], ["pads"]),
        node("Pad", ["x", "pads"], ["y"]),
    ]  # fmt: skip
    return model(nodes, {"x": ("float32", (1, 3, "h", "w"))}, ["y"], weights)


def padded_for_the_last_window():
    """As codecs of sound do: the windows that begin are counted in float32, and rounded up."""
    node = helper.make_node
    weights = constants(last=3, span=4, step=3, axis=[0], none=[0] * 7) | {"one": np.float32(1)}
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "last"], ["w"]),
        node("Sub", ["w", "span"], ["less"]), node("Cast", ["less"], ["real"], to=1),
        node("Cast", ["step"], ["by"], to=1), node("Div", ["real", "by"], ["part"]),
        node("Add", ["part", "one"], ["windows"]), node("Ceil", ["windows"], ["up"]),
        node("Sub", ["up", "one"], ["before"]), node("Cast", ["before"], ["count"], to=7),
        node("Mul", ["count", "step"], ["start"]), node("Add", ["start", "span"], ["end"]),
        node("Sub", ["end", "w"], ["more"]), node("Unsqueeze", ["more", "axis"], ["m"]),
        node("Concat", ["none", "m"], ["pads"], axis=0),
        node("Pad", ["x", "pads"], ["y"], mode="reflect"),
    ]  # fmt: skip
    return model(nodes, {"x": ("float32", (1, 3, "h", "w"))}, ["y"], weights)


def windows_padded_alike(side):
    """Windows of stride 2 under auto_pad: where an extent is odd one element more is padded."""
    node = helper.make_node
    weights = {"k": np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)}
    alike = {"auto_pad": f"SAME_{side}", "strides": [2, 2]}
    nodes = [
        node("Conv", ["x", "k"], ["a"], **alike),
        node("AveragePool", ["a"], ["b"], kernel_shape=[3, 3], **alike),
        node("MaxPool", ["b"], ["y"], kernel_shape=[2, 2], **alike),
    ]
    return model(nodes, {"x": ("float32", (1, 3, "h", "w"))}, ["y"], weights)


@pytest.mark.parametrize(
    "proto",
    [
        pytest.param(padded_to_multiples("constant"), id="multiples, a number"),
        pytest.param(padded_to_multiples("reflect"), id="multiples, reflected"),
        pytest.param(padded_as_torch_writes(), id="an amount in torch's order"),
        pytest.param(padded_for_the_last_window(), id="a last window"),
        pytest.param(windows_padded_alike("UPPER"), id="same, upper"),
        pytest.param(windows_padded_alike("LOWER"), id="same, lower"),
    ],
)
def test_paddings_that_depend_on_sizes(proto):
    rng = np.random.default_rng(2)
    agrees(
        proto, [(9, 9), (16, 23), (17, 40), (40, 16)], {"h": (9, 40), "w": (9, 40)},
        lambda h, w: {"x": rng.normal(size=(1, 3, h, w)).astype(np.float32)}, 1e-5,
    )  # fmt: skip
