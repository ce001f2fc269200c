"""Models of scikit-learn's kind: the operators of ai.onnx.ml, beside onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from graphs import helper, model

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import SlipwayError
from slipway.relay.interpret import interpret

ML = "ai.onnx.ml"
RNG = np.random.default_rng(296)
X = RNG.standard_normal((9, 5)).astype(np.float32)
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def checked(kind, outputs=("y",), given=None, **attributes):
    given = {"x": X} if given is None else given
    node = helper.make_node(kind, [*given], [*outputs], domain=ML, **attributes)
    proto = model([node], {n: (a.dtype.name, a.shape) for n, a in given.items()}, [*outputs])
    if outputs[0] == "label" or "imputed_value_int64s" in attributes:
        proto.graph.output[0].type.tensor_type.elem_type = 7
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    mod, _ = relay.frontend.from_onnx(proto)
    got = interpret(mod, **given)
    for one, other in zip(got if isinstance(got, list | tuple) else [got], want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def forest(modes, targets, weights, prefix, trees=3, depth=3, ids=None):
    """Return the attributes of random trees, some deeper than others."""
    found = {
        name: []
        for name in (
            "treeids",
            "nodeids",
            "featureids",
            "values",
            "modes",
            "truenodeids",
            "falsenodeids",
            "missing_value_tracks_true",
        )
    }
    given = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, left):
        number = len([t for t in found["treeids"] if t == tree])
        leaf = left == 0 or (left < depth and RNG.random() < 0.2)
        row = (
            tree,
            number,
            int(RNG.integers(5)),
            float(X[RNG.integers(9), RNG.integers(5)]),
            "LEAF" if leaf else str(RNG.choice(modes)),
            0,
            0,
            int(RNG.integers(2)),
        )
        for name, value in zip(found, row, strict=True):
            found[name].append(value)
        at = len(found["treeids"]) - 1
        if leaf:
            for target in targets:
                if prefix == "target" or RNG.random() < 0.8:
                    values = (tree, number, target, float(weights()))
                    for name, value in zip(given, values, strict=True):
                        given[name].append(value)
        else:
            found["truenodeids"][at] = grow(tree, left - 1)
            found["falsenodeids"][at] = grow(tree, left - 1)
        return number

    for tree in range(trees):
        grow(tree, depth if tree else 1)
    return {
        **{f"nodes_{name}": values for name, values in found.items()},
        **{f"{prefix}_{name}": values for name, values in given.items()},
    }


@pytest.mark.parametrize("modes", [MODES[:1], MODES[2:3], MODES])
@pytest.mark.parametrize("together", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_forests_of_numbers(modes, together):
    holes = X.copy()
    holes[2, 1] = holes[7, 3] = np.nan
    more = {} if together in ("MIN", "MAX") else {"base_values": [0.5, -1.0]}
    trees = forest(modes, (0, 1) if together == "SUM" else (0, 0, 1, 1), RNG.normal, "target")
    if together in ("MIN", "MAX", "AVERAGE"):  # a leaf that says nothing of a target counts there
        trees = forest(modes, (0,), RNG.normal, "target")
        more = {}
    count = 2 if together == "SUM" else 1
    checked(
        "TreeEnsembleRegressor",
        given={"x": holes if together == "SUM" else X},
        n_targets=count,
        aggregate_function=together,
        **trees,
        **more,
    )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_forests_of_classes(transform):
    for classes, ids, weights in (
        ([0, 1, 2], (0, 1, 2), RNG.random), ([3, 7], (1,), RNG.random), ([3, 7], (1,), RNG.normal),
        ([0, 1], (0,), RNG.normal), ([0, 1], (0,), RNG.random),
    ):  # fmt: skip
        checked(
            "TreeEnsembleClassifier",
            ("label", "scores"),
            classlabels_int64s=classes,
            post_transform=transform,
            **forest(MODES[:1], ids, weights, "class"),
        )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_classes(transform):
    for classes, rows in (([0, 1, 2], 3), ([4, 2], 2), ([0, 1], 1)):
        checked(
            "LinearClassifier",
            ("label", "scores"),
            classlabels_ints=classes,
            coefficients=RNG.standard_normal(5 * rows).tolist(),
            intercepts=RNG.standard_normal(rows).tolist(),
            post_transform=transform,
        )


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    given = {"rho": [0.25], "kernel_type": kernel, "kernel_params": [0.2, 0.5, 3.0]}
    checked(
        "SVMRegressor",
        coefficients=RNG.standard_normal(4).tolist(),
        n_supports=4,
        support_vectors=RNG.standard_normal(20).tolist(),
        **given,
    )


def support_vectors(classes, kernel, probabilities=False, sizes=(2, 3, 1, 2)):
    """Return the attributes of a random machine."""
    count, pairs = sum(sizes[:classes]), classes * (classes - 1) // 2
    given = {
        "classlabels_ints": RNG.permutation(9)[:classes].tolist(), "kernel_type": kernel,
        "kernel_params": [0.2, 0.5, 3.0], "vectors_per_class": list(sizes[:classes]),
        "support_vectors": RNG.standard_normal(5 * count).tolist(),
        "coefficients": RNG.standard_normal((classes - 1) * count).tolist(),
        "rho": RNG.standard_normal(pairs).tolist(),
    }  # fmt: skip
    if probabilities:
        given["prob_a"] = RNG.normal(-2, 0.5, pairs).tolist()
        given["prob_b"] = RNG.normal(0, 0.2, pairs).tolist()
    return given


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_pairs_of_classes_vote(kernel, classes):
    for probabilities in (False, True):
        for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
            given = support_vectors(classes, kernel, probabilities)
            checked("SVMClassifier", ("label", "scores"), post_transform=transform, **given)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_machine_without_vectors(classes, sign):
    factors = sign * np.abs(RNG.standard_normal(5 * classes))
    checked("SVMClassifier", ("label", "scores"), classlabels_ints=[3, 1, 2][:classes],
            coefficients=factors.tolist(), rho=[0.1], kernel_params=[1.0, 0.0, 3.0])  # fmt: skip


NAMES = ["setosa", "versicolor", "virginica"]


def with_texts(nodes, outputs, constants=(), opset=3):
    proto = model(nodes, {"x": ("float32", X.shape)}, outputs, opset=19)
    proto.graph.initializer.extend(constants)
    proto.opset_import.append(helper.make_opsetid(ML, opset))
    for info in proto.graph.output:
        if info.name in ("label", "same"):
            info.type.tensor_type.elem_type = 8 if info.name == "label" else 9
    return proto


def test_labels_that_are_texts_are_positions_and_their_names_are_kept():
    """As skl2onnx writes them: a classifier's list, a constant, and dictionaries of scores."""
    linear = helper.make_node(
        "LinearClassifier", ["x"], ["label", "scores"], domain=ML, classlabels_strings=NAMES,
        coefficients=RNG.standard_normal(15).tolist(), intercepts=[0.1, 0.2, 0.3],
    )  # fmt: skip
    nodes = [
        linear,
        helper.make_node("ArgMax", ["scores"], ["at"], axis=1, keepdims=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "at"], ["found"], domain=ML),
        helper.make_node("Reshape", ["found", "flat"], ["other"]),
        helper.make_node("Equal", ["label", "other"], ["same"]),
    ]
    constants = [
        helper.make_tensor("classes", 8, [3], [n.encode() for n in NAMES]),
        helper.make_tensor("flat", 7, [1], [-1]),
    ]
    proto = with_texts(nodes, ["label", "scores", "same"], constants)
    label, scores, same = onnxruntime.InferenceSession(proto.SerializeToString()).run(
        None, {"x": X}
    )
    proto.graph.node.append(
        helper.make_node("ZipMap", ["scores"], ["zip"], domain=ML, classlabels_strings=NAMES)
    )
    proto.graph.output[1].name = "zip"
    proto.graph.output[1].ClearField("type")
    made = tvm.compile(proto, quiet=True)
    got = made(X)
    assert [NAMES[i] for i in got["label"]] == label.tolist()
    np.testing.assert_allclose(got["zip"], scores, rtol=1e-5, atol=1e-6)
    assert same.all()
    assert got["same"].all()
    assert [spec.labels for spec in made.outputs] == [tuple(NAMES), tuple(NAMES), ()]


def test_a_table_from_texts_to_texts():
    first, second = ["b", "a", "c"], ["x", "y", "x"]
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["found", "s"], domain=ML,
                         classlabels_strings=first, intercepts=[0.0] * 3,
                         coefficients=RNG.standard_normal(15).tolist()),
        helper.make_node("LabelEncoder", ["found"], ["label"], domain=ML, keys_strings=first[:2],
                         values_strings=second[:2], default_string="none"),
    ]  # fmt: skip
    proto = with_texts(nodes, ["label"])
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]
    made = tvm.compile(proto, quiet=True)
    names = made.outputs[0].labels
    assert [names[i] for i in made(X).ravel()] == want.tolist()


def test_inputs_that_are_texts_are_positions_and_unknown_ones_are_none():
    """A table of words, one-hot columns, a mapper each way, and a sum of what they give."""
    animals, colours = ["cat", "dog", "owl"], ["red", "cat", "blue"]
    nodes = [
        helper.make_node("LabelEncoder", ["animal"], ["a"], domain=ML, keys_strings=animals,
                         values_floats=[0.5, 1.5, -2.0], default_float=7.0),
        helper.make_node("OneHotEncoder", ["colour"], ["h"], domain=ML, cats_strings=colours),
        helper.make_node("Reshape", ["h", "flat"], ["hot"]),
        helper.make_node("CategoryMapper", ["animal"], ["number"], domain=ML, default_int64=-5,
                         cats_strings=animals, cats_int64s=[4, 9, 2]),
        helper.make_node("CategoryMapper", ["number"], ["label"], domain=ML, cats_int64s=[4, 2],
                         cats_strings=["red", "owl"], default_string="other"),
        helper.make_node("Concat", ["a", "hot"], ["y"], axis=1),
    ]  # fmt: skip
    proto = model(nodes, {"animal": ("int64", (4, 1)), "colour": ("int64", (4, 1))},
                  ["y", "number", "label"], opset=19)  # fmt: skip
    proto.opset_import.append(helper.make_opsetid(ML, 2))
    proto.graph.initializer.append(helper.make_tensor("flat", 7, [2], [0, -1]))
    for info in (*proto.graph.input, proto.graph.output[2]):
        info.type.tensor_type.elem_type = 8
    proto.graph.output[1].type.tensor_type.elem_type = 7
    given = {"animal": np.array([["cat"], ["emu"], ["owl"], ["dog"]]),
             "colour": np.array([["blue"], ["cat"], ["grey"], ["red"]])}  # fmt: skip
    worded = {name: array.astype(object) for name, array in given.items()}
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, worded)
    made = tvm.compile(proto, quiet=True)
    got = made(given)
    np.testing.assert_array_equal(got["y"], want[0])
    np.testing.assert_array_equal(got["number"], want[1])
    names = made.outputs[2].labels
    assert [names[i] for i in got["label"].ravel()] == want[2].ravel().tolist()
    spec = made.inputs[0]
    assert {*animals, *colours} <= {*spec.labels}
    numbers = np.array([[spec.labels.index("owl")]] * 4)
    np.testing.assert_array_equal(made(numbers, numbers)["number"], [[2]] * 4)
    np.testing.assert_array_equal(made([["owl"]] * 4, [["owl"]] * 4)["number"], [[2]] * 4)
    assert made.check()


@pytest.mark.parametrize(
    ("node", "key", "value", "given"),
    [
        (helper.make_node("DictVectorizer", ["d"], ["v"], domain=ML,
                          string_vocabulary=["b", "a", "c=x"]), 8, 1, {"a": 2.5, "c=x": -1.0}),
        (helper.make_node("DictVectorizer", ["d"], ["v"], domain=ML,
                          int64_vocabulary=[7, 3, 5]), 7, 1, {5: 2.5, 7: 1.0}),
        (helper.make_node("CastMap", ["d"], ["v"], domain=ML, map_form="SPARSE", max_map=3),
         7, 1, {2: 4.0, 0: 0.5}),
    ],
)  # fmt: skip
def test_inputs_that_are_dictionaries_are_rows_with_named_columns(node, key, value, given):
    mul = helper.make_node("Mul", ["v", "two"], ["y"])
    proto = model([node, mul], {"d": ("float32", (1, 3))}, ["y"], opset=17)
    proto.opset_import.append(helper.make_opsetid(ML, 2))
    proto.graph.initializer.append(helper.make_tensor("two", 1, [1], [2.0]))
    proto.graph.input[0].type.map_type.key_type = key
    proto.graph.input[0].type.map_type.value_type.tensor_type.elem_type = value
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"d": given})[0]
    made = tvm.compile(proto, quiet=True)
    unknown = "nobody" if key == 8 else 99
    for call in (made(given), made(d=given), made([given]), made({"d": {**given, unknown: 3.0}})):
        np.testing.assert_array_equal(call, want)
    assert made([given, {}]).shape == (2, 3)
    assert made.check()


def test_an_encoder_that_refuses_what_is_no_class_gives_nan_for_it():
    """What scikit-learn's encoder is by default; zeros would pass for an answer."""
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_int64s=[4, 2], zeros=0)
    proto = model([node], {"x": ("int64", (3,))}, ["y"])
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    got = interpret(relay.frontend.from_onnx(proto)[0], x=np.array([2, 3, 4]))
    np.testing.assert_array_equal(got, [[0, 1], [np.nan, np.nan], [1, 0]])


def test_texts_that_are_read_are_refused():
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["found", "s"], domain=ML,
                         classlabels_strings=NAMES, coefficients=[1.0] * 15),
        helper.make_node("StringNormalizer", ["found"], ["label"], case_change_action="UPPER"),
    ]  # fmt: skip
    with pytest.raises(SlipwayError, match=r"labels are texts.*train it with numbers"):
        relay.frontend.from_onnx(with_texts(nodes, ["label"]))


@pytest.mark.parametrize("together", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trees_of_two_tables(dtype, together):
    """TreeEnsemble of ONNX 1.16: all modes, sets of values, missing ones, a tree that is a leaf."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def tensor(values, of=kind):
        return helper.make_tensor("t", of, [len(values)], values)

    # Two trees: seven nodes of every mode in a row, and one whose ways end in the same leaf.
    count = 7
    attributes = {
        "nodes_modes": tensor([*range(count), 0], 2), "nodes_featureids": [0, 1, 2, 3, 4, 0, 1, 0],
        "nodes_splits": tensor([0.5, -0.1, 0.3, 0.0, 2.0, -2.0, 0.0, 0.0]),
        "nodes_truenodeids": [*range(count), 8], "nodes_trueleafs": [1] * 8,
        "nodes_falsenodeids": [1, 2, 3, 4, 5, 6, 7, 8], "nodes_falseleafs": [0] * 6 + [1, 1],
        "nodes_missing_value_tracks_true": [0, 1, 0, 0, 1, 0, 0, 0],
        "membership_values": tensor([1.0, 2.0, 5.0, np.nan]), "tree_roots": [0, 7],
        "leaf_targetids": [0, 1, 0, 1, 0, 1, 0, 1, 1], "n_targets": 2,
        "leaf_weights": tensor([1.5, -2.0, 3.0, 0.25, 5.0, -6.0, 7.0, 8.0, 0.5]),
        "aggregate_function": together,
    }  # fmt: skip
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **attributes)
    rows = np.array(
        [[9, 9, -9, -9, b, c, d] for b in (2, 3) for c in (-2, 0) for d in (1, 5, 6)], dtype
    )
    rows = np.concatenate([np.roll(rows, 3, 1)[:, 2:], RNG.standard_normal((20, 5))]).astype(dtype)
    rows[3:6, 1] = rows[8, 4] = np.nan
    proto = model([node], {"x": ("float32", rows.shape)}, ["y"], opset=21)
    proto.graph.input[0].type.tensor_type.elem_type = kind
    proto.graph.output[0].type.tensor_type.elem_type = kind
    proto.opset_import.append(helper.make_opsetid(ML, 5))
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": rows})[0]
    got = interpret(relay.frontend.from_onnx(proto)[0], x=rows)
    assert got.dtype == want.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_comes_before_a_model():
    checked("Scaler", offset=[0.5, 0.0, 1.0, 2.0, -1.0], scale=[2.0, 3.0, 4.0, 5.0, 6.0])
    for norm in ("MAX", "L1", "L2"):
        checked("Normalizer", given={"x": np.abs(X)}, norm=norm)
    holes = X.copy()
    holes[1, 2] = holes[3, 0] = np.nan
    checked(
        "Imputer",
        given={"x": holes},
        imputed_value_floats=[1.0, 2.0, 3.0, 4.0, 5.0],
        replaced_value_float=float("nan"),
    )
    numbers = RNG.integers(-2, 3, (6, 2))
    checked("Imputer", given={"x": numbers}, imputed_value_int64s=[9], replaced_value_int64=0)
    checked("OneHotEncoder", given={"x": numbers[:, 0]}, cats_int64s=[-1, 0, 1], zeros=1)
    every = [*range(int(numbers.min()), int(numbers.max()) + 1)]
    checked("OneHotEncoder", given={"x": numbers}, cats_int64s=every, zeros=0)
    checked(
        "LabelEncoder",
        given={"x": numbers},
        keys_int64s=[-1, 0, 2],
        values_floats=[0.5, 1.5, 2.5],
        default_float=-7.0,
    )
    checked("FeatureVectorizer", given={"x": X, "z": X[:, :2].copy()}, inputdimensions=[5, 2])


@pytest.mark.parametrize(
    ("kind", "attributes", "why"),
    [
        ("SVMClassifier", {"classlabels_ints": [0], "coefficients": [1.0] * 5, "rho": [0.0]},
         "it has one class"),
        ("SVMClassifier", {"classlabels_ints": [0, 1], "coefficients": [1.0] * 3, "rho": [0.0],
                           "vectors_per_class": [2, 2], "support_vectors": [1.0] * 20},
         "4 support vectors of 5 columns, with 3 coefficients"),
        ("LinearClassifier", {"classlabels_ints": [0, 1], "coefficients": [1.0] * 7,
                              "intercepts": [0.0, 1.0]}, "7 coefficients and 2 intercepts"),
        ("Scaler", {"offset": [1.0, 2.0]}, "2 numbers in 'offset' for 5 columns"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "its keys are texts"),
        ("TreeEnsembleRegressor", {"nodes_treeids": [0], "nodes_nodeids": [0, 1]}, "lists of its"),
    ],
)  # fmt: skip
def test_what_is_refused(kind, attributes, why):
    outputs = ["y", "z"][: 1 + kind.endswith("Classifier")]
    proto = model([helper.make_node(kind, ["x"], outputs, domain=ML, **attributes)],
                  {"x": ("float32", (9, 5))}, outputs)  # fmt: skip
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    with pytest.raises(SlipwayError, match=why):
        relay.frontend.from_onnx(proto)


def test_trees_that_lead_back_are_refused():
    loop = {
        "nodes_treeids": [0, 0], "nodes_nodeids": [0, 1], "nodes_featureids": [0, 0],
        "nodes_values": [0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ"],
        "nodes_truenodeids": [1, 0], "nodes_falsenodeids": [1, 0], "target_treeids": [0],
        "target_nodeids": [1], "target_ids": [0], "target_weights": [1.0],
    }  # fmt: skip
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=1, **loop)
    proto = model([node], {"x": ("float32", (9, 5))}, ["y"])
    proto.opset_import.append(helper.make_opsetid(ML, 3))
    with pytest.raises(SlipwayError, match="lead back into themselves"):
        tvm.relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_deep_trees_and_powers_are_compiled(target):
    """A step of a tree stands in the next one several times: one kernel of all took minutes."""
    trees = forest(MODES[:1], (0, 1), RNG.normal, "target", trees=4, depth=9)
    vectors = {
        "coefficients": RNG.standard_normal(4).tolist(), "n_supports": 4, "rho": [0.25],
        "support_vectors": RNG.standard_normal(20).tolist(), "kernel_type": "POLY",
        "kernel_params": [0.2, 0.5, 3.0],
    }  # fmt: skip
    for kind, given in (
        ("TreeEnsembleRegressor", {"n_targets": 2, **trees}),
        ("SVMRegressor", vectors),
        ("SVMClassifier", support_vectors(3, "RBF", True)),
    ):
        outputs = ["label", "y"][kind != "SVMClassifier" :]
        node = helper.make_node(kind, ["x"], outputs, domain=ML, **given)
        proto = model([node], {"x": ("float32", X.shape)}, outputs[-1:])
        proto.opset_import.append(helper.make_opsetid(ML, 3))
        want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]
        mod, _ = relay.frontend.from_onnx(proto)
        module = graph_executor.GraphModule(relay.build(mod, target)["default"](tvm.cpu(0)))
        module.set_input("x", X)
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int16", "float64", "int64"])
def test_values_of_a_tensor_keep_their_type(dtype):
    """In a file that imports the operators of this domain alone, of texts and of numbers."""
    values = helper.make_tensor("v", onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3],
                                [7, 8, 9])  # fmt: skip
    default = onnx.numpy_helper.from_array(np.array([42], dtype), "d")
    numbers = onnx.numpy_helper.from_array(np.int64([3, 1, 2]), "k")
    cases = (
        ({"keys_strings": ["a", "b", "c"]}, 8, np.array(["b", "z", "c", "a"], object)),
        ({"keys_tensor": numbers}, 7, np.int64([1, 5, 2, 3])),
    )
    for keys, kind, given in cases:
        node = helper.make_node(
            "LabelEncoder", ["x"], ["y"], domain=ML, values_tensor=values, default_tensor=default,
            **keys,
        )  # fmt: skip
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", kind, (4,))],
            [helper.make_tensor_value_info("y", values.data_type, (4,))],
        )  # fmt: skip
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 4)], ir_version=8)
        found = tvm.compile(proto, quiet=True)(given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [8, 42, 9, 7])
