"""What is found in the data, read by nodes that need its true size, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import LoweringError
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

N = helper.make_node


def masked_update():
    """As exporters write ``y[x > c] = f(x[x > c])``: the mask is searched twice."""
    nodes = [
        N("Greater", ["x", "least"], ["mask"]),
        N("NonZero", ["mask"], ["found"]), N("Transpose", ["found"], ["rows"], perm=[1, 0]),
        N("GatherND", ["x", "rows"], ["values"]), N("Exp", ["values"], ["exps"]),
        N("Shape", ["values"], ["size"]), N("ConstantOfShape", ["size"], ["zeros"]),
        N("Add", ["exps", "zeros"], ["sums"]), N("ReduceSum", ["sums"], ["total"], keepdims=0),
        N("NonZero", ["mask"], ["again"]), N("Transpose", ["again"], ["where"], perm=[1, 0]),
        N("ScatterND", ["x", "where", "sums"], ["y"]),
        N("Concat", ["rows", "where"], ["both"], axis=0),
    ]  # fmt: skip
    return nodes, ["y", "total", "both", "sums"], {"least": np.float32(0.3)}


def chosen_rows():
    """Rows by a condition, then what needs all of them: softmax over them and a product."""
    nodes = [
        N("ReduceSum", ["x", "one"], ["sums"], keepdims=0),
        N("Greater", ["sums", "least"], ["keep"]),
        N("Compress", ["x", "keep"], ["kept"], axis=0), N("Softmax", ["kept"], ["soft"], axis=0),
        N("MatMul", ["soft", "weight"], ["y"]), N("Shape", ["kept"], ["size"]),
    ]  # fmt: skip
    weight = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
    return nodes, ["y", "size"], {"one": np.int64([1]), "least": np.float32(0), "weight": weight}


def both_sides(made, shape, sizes, target="llvm"):
    nodes, outputs, weights = made
    text = tuple(d if isinstance(d, int) else str(d) for d in shape)
    proto = model(nodes, {"x": ("float32", text)}, outputs, weights)
    for output in proto.graph.output:
        if output.name in ("both", "size"):
            output.type.tensor_type.elem_type = 7
    mod, _ = relay.frontend.from_onnx(proto, shape={"x": shape})
    module = GraphModule(relay.build(mod, target=target)["default"](cpu()))
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for seed, size in enumerate(sizes):
        x = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
        x = -abs(x) if seed == 2 else x
        module.run(x=x)
        for index, want in enumerate(session.run(None, {"x": x})):
            found = module.get_output(index).numpy()
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("made", [masked_update, chosen_rows])
def test_one_size(made):
    both_sides(made(), (5, 6), [(5, 6)] * 4)


def test_more_than_there_is_room_to_compare():
    both_sides(masked_update(), (70, 80), [(70, 80)] * 3)


@pytest.mark.parametrize("made", [masked_update, chosen_rows])
def test_open_sizes(made):
    n, m = relay.Dim("n", 1, 6), relay.Dim("m", 2, 9)
    if made is chosen_rows:
        both_sides(made(), (n, 6), [(3, 6), (1, 6), (6, 6), (2, 6)])
    else:
        both_sides(made(), (n, m), [(3, 5), (1, 2), (6, 9), (4, 4)])


def test_a_program_knows_sizes_of_inputs_alone():
    nodes, outputs, weights = masked_update()
    proto = model(nodes, {"x": ("float32", (5, 6))}, outputs, weights)
    mod, _ = relay.frontend.from_onnx(proto)
    with pytest.raises(LoweringError, match=r"cannot have sizes that values decide.* found0"):
        relay.build(mod, "c", executor=relay.backend.Executor("aot"))
