"""Frozen graphs of TensorFlow give what its own session gives; they go by way of tf2onnx."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.errors import ArgumentTypeError, ArgumentValueError, ModelError
from slipway.relay.interpret import interpret
from slipway.relay.testing import tf as testing

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def v1():
    """TensorFlow's functions of graphs and sessions."""
    tensorflow = pytest.importorskip("tensorflow", minversion="2.0")
    pytest.importorskip("tf2onnx", minversion="1.16")
    return tensorflow.compat.v1


def small(v1, batch=2):
    """Return a graph: a convolution, a pool, a product of their mean, in NHWC."""
    graph = v1.Graph()
    with graph.as_default():
        x = v1.placeholder("float32", (batch, 16, 15, 3), name="image")
        w = RNG.normal(0, 0.3, (3, 3, 3, 8)).astype("float32")
        y = v1.nn.relu6(v1.nn.conv2d(x, w, 2, "SAME") + RNG.normal(size=8).astype("float32"))
        y = v1.reduce_mean(v1.nn.max_pool(y, 2, 2, "SAME"), [1, 2], name="features")
        y = v1.matmul(y, RNG.normal(0, 0.3, (8, 5)).astype("float32"))
        v1.nn.softmax(y, name="scores")
    return graph


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", None])
def test_numbers_are_those_of_a_session(v1, layout):
    graph = small(v1)
    x = RNG.normal(size=(2, 16, 15, 3)).astype("float32")
    with v1.Session(graph=graph) as session:
        wanted = session.run(["scores:0", "features:0"], {"image:0": x})
    mod, params = relay.frontend.from_tensorflow(graph.as_graph_def(), layout=layout)
    assert [p.name_hint for p in mod["main"].params][:1] == ["image"]
    np.testing.assert_allclose(interpret(mod, params=params, image=x), wanted[0], rtol=1e-4)
    mod, params = relay.frontend.from_tensorflow(graph, outputs=["scores", "features:0"])
    for made, given in zip(interpret(mod, params=params, image=x), wanted, strict=True):
        np.testing.assert_allclose(made, given, rtol=1e-4, atol=1e-6)


def test_an_open_batch_gets_its_size(v1):
    definition = small(v1, batch=None).as_graph_def()
    mod, params = relay.frontend.from_tensorflow(definition, shape={"image": (3, 16, 15, 3)})
    made = interpret(mod, params=params, image=np.zeros((3, 16, 15, 3), "float32"))
    assert made.shape == (3, 5)


def test_a_decoded_picture_is_an_input(v1):
    graph = v1.Graph()
    with graph.as_default():
        data = v1.placeholder("string", (), name="DecodeJpeg/contents")
        picture = v1.cast(v1.image.decode_jpeg(data, channels=3, name="DecodeJpeg"), "float32")
        v1.reduce_mean(picture, [0, 1], name="mean")
    shape = {"DecodeJpeg/contents": (12, 10, 3)}
    mod, _ = relay.frontend.from_tensorflow(graph.as_graph_def(), shape=shape)
    (given,) = mod["main"].params
    assert given.name_hint == "DecodeJpeg/contents"
    assert given.checked_type.dtype == "uint8"
    image = RNG.integers(0, 255, (12, 10, 3)).astype("uint8")
    np.testing.assert_allclose(interpret(mod, image), image.mean((0, 1)), rtol=1e-5)


def test_what_cannot_be_is_told(v1):
    definition = small(v1).as_graph_def()
    with pytest.raises(ModelError, match="no node 'nope'"):
        relay.frontend.from_tensorflow(definition, outputs=["nope"])
    with pytest.raises(ModelError, match="no input 'picture'"):
        relay.frontend.from_tensorflow(definition, shape={"picture": (1,)})
    with pytest.raises(ArgumentValueError, match="layout is 'CHWN'"):
        relay.frontend.from_tensorflow(definition, layout="CHWN")
    with pytest.raises(ModelError, match="the graph has no nodes"):
        relay.frontend.from_tensorflow(type(definition)())


def test_variables_become_constants(v1):
    graph = v1.Graph()
    with graph.as_default():
        x = v1.placeholder("float32", (2, 3), name="x")
        v1.identity(x * v1.get_variable("w", initializer=2.0, use_resource=False), name="y")
    with v1.Session(graph=graph) as session:
        session.run(v1.variables_initializer(graph.get_collection("variables")))
        definition = testing.AddShapesToGraphDef(session, "y")
    assert "_output_shapes" in next(n for n in definition.node if n.name == "y").attr
    mod, params = relay.frontend.from_tensorflow(testing.ProcessGraphDefParam(definition))
    given = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(interpret(mod, params=params, x=given), 2 * given)
    with pytest.raises(ArgumentTypeError, match="must be a GraphDef"):
        testing.ProcessGraphDefParam(3)


def test_what_is_no_graph_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"not builtins.int"):
        relay.frontend.from_tensorflow(3)


def test_names_of_classes(tmp_path):
    (tmp_path / "uid.txt").write_text("n00004475\torganism, being\nn01440764\ttench\n")
    (tmp_path / "labels.pbtxt").write_text(
        "# of ILSVRC\n"
        'entry {\n  target_class: 449\n  target_class_string: "n01440764"\n}\n'
        'entry {\n  target_class: 7\n  target_class_string: "n00004475"\n}\n'
    )
    names = testing.NodeLookup(str(tmp_path / "labels.pbtxt"), str(tmp_path / "uid.txt"))
    assert names.id_to_string(449) == "tench"
    assert names.id_to_string(np.int64(7)) == "organism, being"
    assert names.id_to_string(1) == ""


def test_results_of_a_virtual_machine_as_a_list():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    mod = slipway.IRModule.from_expr(
        relay.Function([x, y], relay.Tuple([x + y, relay.Tuple([y, x])]))
    )
    run = relay.create_executor("vm", mod=mod).evaluate()
    a, b = RNG.normal(size=(2, 3)).astype("float32"), RNG.normal(size=3).astype("float32")
    for found, expected in zip(testing.vmobj_to_list(run(a, b)), (a + b, b, a), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ArgumentTypeError, match="o is a int"):
        testing.vmobj_to_list(3)


def looped(v1, start):
    """Return a graph that ends with a loop of two variables, and what they become."""
    graph = v1.Graph()
    with graph.as_default():
        v1.disable_control_flow_v2()
        first = v1.placeholder("int32", (), name="start") if start is None else v1.constant(start)

        def body(i, x):
            return v1.add(i, 1), v1.multiply(x, 2.0)

        ends = v1.while_loop(lambda i, _: v1.less(i, 6), body, [first, v1.ones((2, 3))])
        v1.enable_control_flow_v2()
    with v1.Session(graph=graph) as session:
        return graph, session.run(ends, {} if start is not None else {"start:0": 2})


@pytest.mark.parametrize("start", [None, 2])
def test_a_graph_that_ends_with_a_loop_gives_all_its_variables(v1, start):
    """A graph without inputs is constant."""
    graph, wanted = looped(v1, start)
    mod, params = relay.frontend.from_tensorflow(graph.as_graph_def(add_shapes=True))
    assert len(mod["main"].params) == (start is None)
    made = interpret(mod, params=params, **({"start": np.int32(2)} if start is None else {}))
    for found, expected in zip(made, wanted, strict=True):
        np.testing.assert_allclose(found, expected)


def test_all_that_the_last_node_gives_is_an_output(v1):
    graph = v1.Graph()
    with graph.as_default():
        v1.split(v1.placeholder("float32", (2, 6), name="x"), 3, axis=1, name="parts")
    x = RNG.normal(size=(2, 6)).astype("float32")
    mod, params = relay.frontend.tensorflow2.from_tensorflow(graph.as_graph_def())
    made = interpret(mod, params=params, x=x)
    for found, expected in zip(made, np.split(x, 3, 1), strict=True):
        np.testing.assert_array_equal(found, expected)


def saved(v1, folder):
    """Return a function of two results, kept as a SavedModel, and its signature's graph."""
    tensorflow = pytest.importorskip("tensorflow")

    class Two(tensorflow.Module):
        @tensorflow.function(input_signature=[tensorflow.TensorSpec((2, 3), "float32", "x")])
        def func(self, x):
            y = tensorflow.cond(tensorflow.reduce_sum(x) > 0, lambda: x * 2, lambda: x / 3)
            return {"one": y, "two": tensorflow.nn.softmax(x)}

    module = Two()
    tensorflow.saved_model.save(module, str(folder), module.func)
    kept = tensorflow.saved_model.load(str(folder)).signatures["serving_default"]
    return module.func, kept.graph.as_graph_def(add_shapes=True)


def test_functions_that_a_graph_calls_are_expanded(v1, tmp_path):
    function, graph = saved(v1, tmp_path)
    assert any(node.op.endswith("PartitionedCall") for node in graph.node)
    mod, params = relay.frontend.from_tensorflow(graph, outputs=["Identity", "Identity_1"])
    for sign in (1, -1):
        x = np.full((2, 3), sign, "float32")
        wanted = function(x)
        made = interpret(mod, params=params, **{mod["main"].params[0].name_hint: x})
        np.testing.assert_allclose(made[0], wanted["one"].numpy(), rtol=1e-6)
        np.testing.assert_allclose(made[1], wanted["two"].numpy(), rtol=1e-6)


def test_names_of_tensors_as_functions_have_them(v1):
    graph = v1.Graph()
    with graph.as_default():
        v1.nn.top_k(v1.placeholder("float32", (2, 6), name="x"), 2, name="best")
        v1.no_op("nothing")
    x = RNG.normal(size=(2, 6)).astype("float32")
    order = np.argsort(-x, 1)[:, :2]
    last, _ = relay.frontend.from_tensorflow(graph)  # a node without results is not the last
    named, _ = relay.frontend.from_tensorflow(graph, outputs=["best:indices:0", "best:values:0"])
    np.testing.assert_array_equal(interpret(last, x=x)[1], order)
    found = interpret(named, x=x)
    np.testing.assert_array_equal(found[0], order)
    np.testing.assert_array_equal(found[1], np.take_along_axis(x, order, 1))
    with pytest.raises(ModelError, match="'best' has no result 'other'"):
        relay.frontend.from_tensorflow(graph, outputs=["best:other:0"])
