"""A Loop without a trip count whose condition compares a counter with a size of the inputs."""

import numpy as np
import onnxruntime
import pytest

import slipway
from slipway import relay
from slipway.errors import SlipwayError

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT, INT32, BOOL = (
    getattr(onnx.TensorProto, n) for n in ("FLOAT", "INT64", "INT32", "BOOL")
)
UNITS = 5


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def condition(now, kind, begin, among):
    """Nodes that say whether the iteration after this one takes place, and whether the first."""
    node = helper.make_node
    as_reals = [node("Cast", [now], ["now"], to=FLOAT), node("Cast", ["end"], ["last"], to=FLOAT)]
    order = ["last", "now"] if kind.startswith("Greater") else ["now", "last"]
    compared = node(kind, order, ["fewer" if among else "again"])
    both = [node("Less", [now, "many"], ["few"]), node("And", ["fewer", "few"], ["again"])]
    return [*as_reals, compared, *(both if among else [])]


def recurrent(kind="Less", begin=0, among=False, trips=""):
    """A recurrent layer over the rows of `x`, (steps, batch, 3), as converters of Keras write it.

    The weights, and the number of steps, are carried through the loop.
    """
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Add", ["time", "one"], ["later"]),
            node("Sub", ["time", "begin"], ["at"]),
            node("Gather", ["x", "at"], ["row"], axis=0),
            node("MatMul", ["row", "w"], ["from_row"]),
            node("MatMul", ["h", "u"], ["from_state"]),
            node("Add", ["from_row", "from_state"], ["both"]),
            node("Tanh", ["both"], ["new"]),
            node("Identity", ["new"], ["out"]),
            node("Identity", ["end"], ["end_out"]), node("Identity", ["u"], ["u_out"]),
            *condition("later", kind, begin, among),
        ],
        "body",
        [info("i", INT, ()), info("going", BOOL, ()), info("time", INT32, ()),
         info("end", INT32, ()), info("u", FLOAT, (UNITS, UNITS)), info("h", FLOAT, None)],
        [info("again", BOOL, ()), info("later", INT32, ()), info("end_out", INT32, ()),
         info("u_out", FLOAT, (UNITS, UNITS)), info("new", FLOAT, None), info("out", FLOAT, None)],
    )  # fmt: skip
    rng = np.random.default_rng(3)
    values = {
        "one": np.int32(1), "begin": np.int32(begin), "many": np.int32(100),
        "w": rng.standard_normal((3, UNITS), np.float32) / 3,
        "u0": rng.standard_normal((UNITS, UNITS), np.float32) / 3,
        "units": np.array([UNITS], np.int64), "axis": np.array([1], np.int64),
        "none": np.float32(0), "first": np.int64(0),
        "less": np.int32(begin - kind.endswith("Equal")),
        "often": np.int64(np.iinfo(np.int64).max),
    }  # fmt: skip
    order = ["end_r", "begin_r"] if kind.startswith("Greater") else ["begin_r", "end_r"]
    graph = helper.make_graph(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "first"], ["steps"]),
            node("Cast", ["steps"], ["steps32"], to=INT32),
            node("Add", ["steps32", "less"], ["end0"]),
            node("Cast", ["end0"], ["end_r"], to=FLOAT),
            node("Cast", ["begin"], ["begin_r"], to=FLOAT),
            node(kind, order, ["any"]),
            node("Gather", ["shape", "axis"], ["batch"]),
            node("Concat", ["batch", "units"], ["state"], axis=0),
            node("Expand", ["none", "state"], ["h0"]),
            node("Loop", [trips, "any", "begin", "end0", "u0", "h0"],
                 ["t", "e", "same", "last", "outs"], body=body),
        ],
        "layer", [info("x", FLOAT, ("steps", "batch", 3))],
        [info("last", FLOAT, None), info("outs", FLOAT, None), info("same", FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


CASES = {
    "less": {}, "greater": {"kind": "Greater"}, "less_equal": {"kind": "LessOrEqual"},
    "greater_equal": {"kind": "GreaterOrEqual"}, "from_2": {"begin": 2},
    "from_below": {"begin": -3, "kind": "LessOrEqual"}, "two_conditions": {"among": True},
    "a_trip_count_without_end": {"trips": "often"},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("low", [1, 0])
def test_it_runs_as_many_times_as_there_are_rows(case, low):
    """From 0 on the condition decides, and the outputs have as many rows as were written."""
    proto = recurrent(**CASES[case])
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    made = slipway.compile(proto, dims={"steps": (low, 40), "batch": (1, 8)})
    rng = np.random.default_rng(0)
    for steps, batch in ((1, 1), (2, 3), (17, 8), (40, 1), (7, 5)):
        x = rng.standard_normal((steps, batch, 3), np.float32)
        wanted = peer.run(None, {"x": x})
        found = list(made(x).values())
        assert [f.shape for f in found] == [w.shape for w in wanted]
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(f, w, rtol=1e-5, atol=1e-6)


def test_what_counts_to_no_size_is_refused_as_before():
    """The end is doubled by each iteration, so no size bounds it."""
    proto = recurrent()
    body = proto.graph.node[-1].attribute[0].g
    doubled = helper.make_node("Add", ["end", "end"], ["end_out"])
    index = next(i for i, n in enumerate(body.node) if list(n.output) == ["end_out"])
    body.node[index].CopyFrom(doubled)
    with pytest.raises(SlipwayError, match="nothing bounds how often it runs"):
        slipway.compile(proto, dims={"steps": (1, 40), "batch": (1, 8)})


def test_products_in_a_loop_come_in_versions_by_their_rows():
    """One row, few, and tiles of many, as outside of loops: the batch is asked inside."""
    module, params = relay.frontend.from_onnx(
        recurrent(), dims={"steps": (1, 40), "batch": (1, 64)}
    )
    source = relay.build(module, "c", params=params).get_lib().get_source()
    kernel = source[source.index("fused_while_loop") :]
    loop = kernel[kernel.index("for (;;)") : kernel.index("\n}")]
    assert "if ((batch < 2))" in loop
