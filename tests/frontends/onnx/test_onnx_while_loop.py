"""ONNX Loop whose number of steps is data: compiled as a loop, against the onnx package's own."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.onnx.importer import from_onnx
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(limit=None, scans=False, carried_shape=(2, 3)):
    """While the sum is below ten: x = x * w + shift, where w and shift are from outside."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "w"], ["scaled"]),
            helper.make_node("Add", ["scaled", "shift"], ["new"]),
            helper.make_node("ReduceSum", ["new"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "ten"], ["again"]),
            *([helper.make_node("Identity", ["total"], ["row"])] if scans else []),
        ],
        "body",
        [info("i", INT, ()), info("going", BOOL, ()), info("state", FLOAT, carried_shape)],
        [info("again", BOOL, ()), info("new", FLOAT, carried_shape),
         *([info("row", FLOAT, ())] if scans else [])],
        [helper.make_tensor("ten", FLOAT, (), [10.0])],
    )  # fmt: skip
    inputs = [info("x", FLOAT, (2, 3)), info("shift", FLOAT, ())]
    weights = [onnx.numpy_helper.from_array(np.full((2, 3), 1.25, np.float32), "w")]
    trips = ""
    if isinstance(limit, int):
        trips = "trips"
        weights.append(onnx.numpy_helper.from_array(np.array(limit, np.int64), "trips"))
    elif limit is not None:
        trips = limit
        inputs.append(info(limit, INT, ()))
    outputs = ["last", *(["rows"] if scans else [])]
    graph = helper.make_graph(
        [helper.make_node("Loop", [trips, "", "x"], outputs, body=body)],
        "turns", inputs,
        [info("last", FLOAT, (2, 3)), *([info("rows", FLOAT, ("k",))] if scans else [])], weights,
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


def expected(x, shift, limit):
    rows = []
    while len(rows) < limit:
        x = (x * np.float32(1.25) + shift).astype(np.float32)
        rows.append(x.sum())
        if not x.sum() < 10:
            break
    return x, np.array(rows, np.float32)


def compiled(proto, target="llvm", **options):
    mod, params = from_onnx(proto, **options)
    return GraphModule(relay.build(mod, target=target, params=params)["default"](cpu(0)))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_it_runs_as_often_as_the_condition_says(target):
    module = compiled(model("trips"), target)
    x = np.full((2, 3), 0.1, np.float32)
    for shift, trips in ((0.5, 100), (0.0, 100), (0.5, 2), (0.5, 0), (3.0, 9)):
        given = np.float32(shift)
        module.set_input(x=x, shift=given, trips=np.array(trips, np.int64))
        module.run()
        want, _ = expected(x, given, trips)
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-5)


def test_scan_outputs_have_room_for_all_turns_and_their_number():
    module = compiled(model(6, scans=True))
    x = np.full((2, 3), 0.1, np.float32)
    for shift in (0.5, 0.01, 3.0):
        given = np.float32(shift)
        module.set_input(x=x, shift=given)
        module.run()
        last, rows = expected(x, given, 6)
        np.testing.assert_allclose(module.get_output(0).numpy(), last, rtol=1e-5)
        (count,) = module.get_output(2).numpy()
        assert count == len(rows)
        np.testing.assert_allclose(module.get_output(1).numpy()[:count], rows, rtol=1e-5)


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (model("trips", scans=True), "nothing bounds how often it runs.*bind the trip count"),
        (model("trips", carried_shape=None), "changes from"),
    ],
)
def test_what_has_no_size_is_refused_with_what_to_do(proto, words):
    if "changes" in words:
        body = proto.graph.node[0].attribute[0].g
        body.node[1].CopyFrom(helper.make_node("Concat", ["scaled", "scaled"], ["new"], axis=0))
    with pytest.raises(ModelError, match=words):
        from_onnx(proto)


@pytest.mark.parametrize("steps", [3, 40, relay.Dim("t", 1, 12), relay.Dim("t", 2, 40)], ids=str)
def test_a_scan_of_few_or_many_steps_along_any_axes_backwards(steps):
    """A running sum over the columns from the last to the first, whose rows come out as columns."""
    number = steps if isinstance(steps, int) else "t"
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "x"], ["next"]),
         helper.make_node("Mul", ["next", "y"], ["row"])],
        "body",
        [info(name, FLOAT, (2,)) for name in ("sum", "x", "y")],
        [info(name, FLOAT, (2,)) for name in ("next", "row")],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["start", "x", "y"], ["last", "rows"], body=body, num_scan_inputs=2,
        scan_input_axes=[1, -2], scan_input_directions=[1, 0], scan_output_axes=[1],
        scan_output_directions=[1],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "scan",
        [info("start", FLOAT, (2,)), info("x", FLOAT, (2, number)), info("y", FLOAT, (number, 2))],
        [info("last", FLOAT, (2,)), info("rows", FLOAT, (2, number))],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    rng = np.random.default_rng(0)
    module = compiled(proto, shape={"start": (2,), "x": (2, steps), "y": (steps, 2)})
    for count in (steps,) if isinstance(steps, int) else (7, steps.low, steps.high):
        shapes = {"start": (2,), "x": (2, count), "y": (count, 2)}
        given = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
        module.run(**given)
        total, rows = given["start"], []
        for i in range(count):
            total = total + given["x"][:, count - 1 - i]
            rows.append(total * given["y"][i])
        np.testing.assert_allclose(module.get_output(0).numpy(), total, rtol=1e-4, atol=1e-5)
        wanted = np.stack(rows[::-1], 1)
        np.testing.assert_allclose(module.get_output(1).numpy(), wanted, rtol=1e-4, atol=1e-5)


def frames(begin, stops):
    """A recurrence over an open number of frames: what it appends, and a scan output.

    It `stops` where the sum is no longer below a limit.  The appended states begin with `begin`
    rows, the numbers with one.
    """
    node, rng = helper.make_node, np.random.default_rng(0)
    body = [
        node("Gather", ["x", "i"], ["frame"], axis=0), node("Unsqueeze", ["frame", "ax"], ["row"]),
        node("MatMul", ["h", "w"], ["product"]), node("Add", ["product", "row"], ["sum"]),
        node("Tanh", ["sum"], ["new"]), node("Concat", ["states", "new"], ["states2"], axis=0),
        node("ArgMax", ["new"], ["best"], axis=1),
        node("Concat", ["numbers", "best", "best"], ["numbers2"], axis=1),
        node("ReduceSum", ["new"], ["total"], keepdims=0),
        node("Less", ["total", "limit"], ["more"]) if stops else node("Identity", ["c"], ["more"]),
        node("Identity", ["total"], ["scan"]),
    ]  # fmt: skip
    carried = [info("h", FLOAT, (1, 4)), info("states", FLOAT, ("a", 4)),
               info("numbers", INT, (1, "b"))]  # fmt: skip
    after = [info("new", FLOAT, (1, 4)), info("states2", FLOAT, ("e", 4)),
             info("numbers2", INT, (1, "f")), info("scan", FLOAT, ())]  # fmt: skip
    graph = helper.make_graph(
        body, "body", [info("i", INT, ()), info("c", BOOL, ()), *carried],
        [info("more", BOOL, ()), *after],
    )  # fmt: skip
    nodes = [
        node("Shape", ["x"], ["size"]), node("Gather", ["size", "zero"], ["n"], axis=0),
        node("Loop", ["n", "yes", "h0", "s0", "n0"], ["last", "states", "numbers", "scans"],
             body=graph),
    ]  # fmt: skip
    if stops:
        nodes.append(node("ReduceMax", ["states"], ["y"], keepdims=0))
    else:
        nodes.append(node("CumSum", ["states", "zero"], ["y"]))
    weights = {
        "w": rng.standard_normal((4, 4)).astype(np.float32) / 2, "ax": np.int64([0]),
        "zero": np.int64(0), "yes": np.bool_(True), "limit": np.float32(1.5),
        "h0": np.zeros((1, 4), np.float32), "s0": np.ones((begin, 4), np.float32),
        "n0": np.full((1, 1), 9),
    }  # fmt: skip
    results = [info("last", FLOAT, (1, 4)), info("y", FLOAT, () if stops else ("g", 4))]
    results += [] if stops else [info("numbers", INT, (1, "k")), info("scans", FLOAT, ("n",))]
    made = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()]
    whole = helper.make_graph(nodes, "frames", [info("x", FLOAT, ("n", 4))], results, made)
    proto = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


@pytest.mark.parametrize(("begin", "stops"), [(0, False), (2, False), (0, True)])
def test_what_each_turn_appends_to(begin, stops):
    """As a greedy decoder collects its tokens: as long as there are frames, or until it stops."""
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = frames(begin, stops)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = from_onnx(proto, shape={"x": (relay.Dim("n", 1, 20), 4)})
    module = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    for n in (1, 20, 9, 2):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        module.run(x=x)
        for index, want in enumerate(session.run(None, {"x": x})):
            found = module.get_output(index).numpy()
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def decoder(begin, before):
    """A greedy decoder of at most nine tokens, which attends to the cache that it appends to.

    It attends to what was there `before` it appends, or to all.  The keys begin with `begin` rows.
    """
    node, rng = helper.make_node, np.random.default_rng(0)
    read = ("keys", "values") if before else ("keys2", "values2")
    body = [
        node("Gather", ["table", "token"], ["x"], axis=0),
        node("MatMul", ["x", "wk"], ["k1"]), node("MatMul", ["x", "wv"], ["v1"]),
        node("Unsqueeze", ["k1", "front"], ["k"]), node("Unsqueeze", ["v1", "front"], ["v"]),
        node("Concat", ["keys", "k"], ["keys2"], axis=1),
        node("Concat", ["values", "v"], ["values2"], axis=1),
        node("Transpose", [read[0]], ["kt"], perm=[0, 2, 1]), node("MatMul", ["x", "kt"], ["s"]),
        node("Softmax", ["s"], ["share"], axis=-1), node("MatMul", ["share", read[1]], ["c3"]),
        node("Squeeze", ["c3", "front"], ["seen"]), node("Add", ["seen", "x"], ["h"]),
        node("MatMul", ["h", "out"], ["logits"]),
        node("ArgMax", ["logits"], ["next"], axis=1, keepdims=0),
        node("Concat", ["ids", "next"], ["ids2"], axis=0),
        node("ReduceSum", ["ids2"], ["total"], keepdims=0),
        node("Less", ["total", "limit"], ["on"]),
    ]  # fmt: skip
    states = [("token", INT, (1,)), ("keys", FLOAT, (1, "a", 6)), ("values", FLOAT, (1, "a", 6)),
              ("ids", INT, ("b",))]  # fmt: skip
    after = [("next", INT, (1,)), ("keys2", FLOAT, (1, "c", 6)), ("values2", FLOAT, (1, "c", 6)),
             ("ids2", INT, ("d",))]  # fmt: skip
    graph = helper.make_graph(
        body, "body", [info("i", INT, ()), info("c", BOOL, ()), *(info(*s) for s in states)],
        [info("on", BOOL, ()), *(info(*s) for s in after)],
    )  # fmt: skip
    loop = node(
        "Loop", ["most", "yes", "first", "k0", "v0", "none"], ["last", "k", "v", "tokens"],
        body=graph, name="decode",
    )  # fmt: skip
    weights = {
        "wk": rng.standard_normal((6, 6)) / 2, "wv": rng.standard_normal((6, 6)),
        "out": rng.standard_normal((6, 9)), "table": rng.standard_normal((9, 6)),
    }  # fmt: skip
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    weights |= {"front": np.int64([0]), "most": np.int64(9), "limit": np.int64(30),
                "yes": np.bool_(True), "none": np.int64([])}  # fmt: skip
    made = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()]
    inputs = [info("first", INT, (1,)), info("k0", FLOAT, (1, begin, 6)),
              info("v0", FLOAT, (1, begin, 6))]  # fmt: skip
    outputs = [info("last", INT, (1,)), info("sum", FLOAT, (1, 6)), info("tokens", INT, ("e",))]
    nodes = [loop, node("ReduceSum", ["k", "second"], ["sum"], keepdims=0)]
    made.append(onnx.numpy_helper.from_array(np.int64([1]), "second"))
    proto = helper.make_model(
        helper.make_graph(nodes, "decoder", inputs, outputs, made),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    proto.ir_version = 8
    return proto


@pytest.mark.parametrize(("begin", "before"), [("p", False), (2, True)])
def test_what_grows_may_be_read(begin, before):
    """Each iteration has a size of its own: what it begins with, and one more in each."""
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = decoder(begin, before)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = from_onnx(proto, dims={"p": (1, 5)} if begin == "p" else None)
    module = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    found = set()
    for rows in (1, 5, 3) if begin == "p" else (2, 2, 2):
        for token in (0, 4, 7):
            rng = np.random.default_rng(rows + token)
            caches = (rng.standard_normal((1, rows, 6)).astype(np.float32) for _ in "kv")
            given = dict(zip(("k0", "v0"), caches, strict=True), first=np.int64([token]))
            last, total, tokens = session.run(None, given)
            module.run(**given)
            found.add(len(tokens))
            assert module.get_output(0).numpy() == last
            np.testing.assert_allclose(module.get_output(1).numpy(), total, rtol=1e-4, atol=1e-5)
            assert module.get_output(3).numpy() == len(tokens)
            assert module.get_output(2).numpy()[: len(tokens)].tolist() == tokens.tolist()
    assert len(found) > 1


def test_an_iteration_that_changes_more_than_the_last_is_refused():
    proto = frames(2, False)
    body = proto.graph.node[2].attribute[0].g
    body.node[5].CopyFrom(helper.make_node("Concat", ["states", "states"], ["states2"], axis=0))
    with pytest.raises(ModelError, match=r"what it carries changes .*\(state 1\).* by as much"):
        from_onnx(proto, shape={"x": (relay.Dim("n", 1, 20), 4)})
    body.node[5].CopyFrom(helper.make_node("Concat", ["states", "new"], ["states2"], axis=0))
    body.node[10].input[0] = "states"
    with pytest.raises(ModelError, match=r"adds to a scan output is .*, of another size in each"):
        from_onnx(proto, shape={"x": (relay.Dim("n", 1, 20), 4)})


ROWS_OF_A_TABLE = """<ir_version: 8, opset_import: ["" : 17]>
turns (int64 n, bool going, float[2] y{table}) => (float[2] last, float[{rows},{count},2] rows) {{
  last, rows = Loop (n, going, y) <body = turn (int64 i, bool a, float[2] s)
      => (bool b, float[2] t, float[{count},2] row) {{
    b = Identity (a)
    {values}
    one = Constant <value = int64[1] {{1}}> ()
    count = Constant <value = int64[1] {{{count}}}> ()
    i1 = Reshape (i, one)
    begin = {begin}
    end = Add (begin, count)
    axes = Constant <value = int64[1] {{0}}> ()
    row = Slice (table, begin, end, axes)
    sums = ReduceSum <keepdims = 0> (row, axes)
    t = Add (s, sums)
  }}>
}}"""
TABLE = "table = Constant <value = float[6,2] {1,2,3,4,5,6,7,8,9,10,11,12}> ()"


@pytest.mark.parametrize("rows", ["k", 4])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_an_iteration_reads_its_rows_of_a_table(is_constant, count, rows):
    """Where they begin is the number of the iteration: the table is from outside, the rows are not.

    With as many rows stated, these bound the loop, without `dims`.
    """
    given = {"table": "", "values": TABLE} if is_constant else {"table": ", float[6,2] table",
                                                                "values": ""}  # fmt: skip
    text = ROWS_OF_A_TABLE.format(count=count, rows=rows, begin="Identity (i1)", **given)
    dims = {"dims": {"n": (1, 4)}} if rows == "k" else {}
    run = slipway.compile(onnx.parser.parse_model(text), quiet=True, **dims)
    table = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    start = np.float32([0.5, -1])
    inputs = {"going": np.array(True), "y": start, **({} if is_constant else {"table": table})}
    for n in (4,) if rows == 4 else (1, 2, 4):
        last, found = run(n=np.int64(n), **inputs).values()
        wanted = np.stack([table[i : i + count] for i in range(n)])
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(last, start + wanted.sum((0, 1)))


LAST_ROW = """<ir_version: 8, opset_import: ["" : 17]>
turns (int64 n, bool going, float[2] y) => (float[2] last) {
  end, rows = Loop (n, going, y) <body = turn (int64 i, bool a, float[2] s)
      => (bool b, float[2] t, float[2] row) {
    sum = ReduceSum <keepdims = 0> (s)
    ten = Constant <value = float {10.0}> ()
    b = Less (sum, ten)
    t = Add (s, s)
    row = Identity (t)
  }>
  first = Constant <value = int64[1] {-1}> ()
  beyond = Constant <value = int64[1] {9223372036854775807}> ()
  axes = Constant <value = int64[1] {0}> ()
  part = Slice (rows, first, beyond, axes)
  last = Squeeze (part, axes)
}"""


def test_the_last_row_of_a_loop_that_ends_by_itself():
    """Of so many rows as there are, one or none is cut off: a Squeeze says that there is one."""
    run = slipway.compile(onnx.parser.parse_model(LAST_ROW), quiet=True, dims={"n": (1, 9)})
    for n, rows in ((1, 1), (3, 3), (9, 4)):
        found = run(n=np.int64(n), going=np.array(True), y=np.float32([1, 0.75]))
        np.testing.assert_array_equal(found, np.float32([1, 0.75]) * 2**rows)


def inside(nodes, weights):
    """At most seven iterations over a vector x, whose sum so far is `acc`, of these nodes."""
    node = helper.make_node
    graph = helper.make_graph(
        [*nodes, node("ReduceSum", ["part"], ["t"], keepdims=0), node("Mul", ["t", "tenth"], ["s"]),
         node("Add", ["acc", "s"], ["acc2"]), node("Less", ["acc2", "limit"], ["more"])],
        "body", [info("i", INT, ()), info("c", BOOL, ()), info("acc", FLOAT, ())],
        [info("more", BOOL, ()), info("acc2", FLOAT, ())],
    )  # fmt: skip
    weights = {"most": np.int64(7), "yes": np.bool_(True), "tenth": np.float32(0.1),
               "limit": np.float32(2), "one": np.int64(1), "zero": np.int64(0),
               "front": np.int64([0]), **weights}  # fmt: skip
    proto = helper.make_model(
        helper.make_graph(
            [node("Loop", ["most", "yes", "start"], ["end"], body=graph, name="turns")], "inside",
            [info("x", FLOAT, (12,)), info("start", FLOAT, ())], [info("end", FLOAT, ())],
            [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )  # fmt: skip
    proto.ir_version = 8
    return proto


def boxes():
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 4, (1, 12, 2))
    return np.concatenate([corner, corner + rng.uniform(1, 3, (1, 12, 2))], 2).astype(np.float32)


INSIDE = {
    "found": (
        [("Greater", ["x", "acc"], ["mask"]), ("NonZero", ["mask"], ["p2"]),
         ("Squeeze", ["p2", "front"], ["p"]), ("Gather", ["x", "p"], ["v"]),
         ("CumSum", ["v", "zero"], ["part"])], {},
    ),
    "chosen boxes": (
        [("Add", ["x", "acc"], ["moved"]), ("Unsqueeze", ["moved", "two"], ["scores"]),
         ("NonMaxSuppression", ["boxes", "scores", "five", "half"], ["chosen"]),
         ("Gather", ["chosen", "second"], ["p2"], 1), ("Squeeze", ["p2", "ax"], ["p"]),
         ("Gather", ["x", "p"], ["v"]), ("CumSum", ["v", "zero"], ["part"])],
        {"boxes": boxes(), "two": np.int64([0, 1]), "five": np.int64([5]),
         "half": np.float32([0.3]), "second": np.int64([2]), "ax": np.int64([1])},
    ),
    "so many entries as iterations": (
        [("Add", ["i", "one"], ["n"]), ("Unsqueeze", ["n", "front"], ["end"]),
         ("Slice", ["x", "front", "end"], ["part"])], {},
    ),
    "a range to the iteration": (
        [("Add", ["i", "one"], ["n"]), ("Range", ["zero", "n", "one"], ["r"]),
         ("Gather", ["x", "r"], ["part"])], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", INSIDE)
def test_sizes_that_an_iteration_finds(case):
    onnxruntime = pytest.importorskip("onnxruntime")
    nodes, weights = INSIDE[case]
    made = [helper.make_node(k, a, b, **({"axis": x[0]} if x else {})) for k, a, b, *x in nodes]
    proto = inside(made, weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    module = compiled(proto)
    for seed in range(5):
        x = np.random.default_rng(seed).uniform(-1, 2, 12).astype(np.float32)
        given = {"x": x, "start": np.array(seed / 2 - 2, np.float32)}
        module.run(**given)
        want = session.run(None, given)[0]
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)
