"""Joins of many tensors: parts are found by halving, so no formula is as deep as they are many."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.ir.interpreter.interpret import run
from slipway.ir.visit import nesting
from slipway.relay import op_registry
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.tensor.join import JoinAttrs
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order
from slipway.transform.graph.fuse_ops import fuse_ops
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.split_joins import MOST, split_joins


@pytest.mark.parametrize("op", ["concatenate", "stack"])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 18, 33, 128])
def test_many_parts(op, count):
    rng = np.random.default_rng(count)
    widths = rng.integers(0, 4, count) if op == "concatenate" else [2] * count
    parts = [rng.normal(size=(3, int(w))).astype("float32") for w in widths]
    want = getattr(np, op)(parts, axis=1)
    inputs = [te.placeholder(p.shape, name=f"p{i}") for i, p in enumerate(parts)]
    out = TensorType(want.shape)
    (made,) = op_registry.get(op).compute_function(JoinAttrs(1), inputs, [out])
    got = np.zeros_like(want)
    run(te.lower(te.create_schedule(made.op), [*inputs, made]), *parts, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["concatenate", "stack"])
def test_the_formula_of_a_thousand_parts_is_shallow(op):
    inputs = [te.placeholder((2,), name=f"p{i}") for i in range(1000)]
    shape = TensorType((2000,) if op == "concatenate" else (1000, 2))
    (made,) = op_registry.get(op).compute_function(JoinAttrs(0), inputs, [shape])
    assert nesting(made.op.body[0]) < 40


@pytest.mark.parametrize(("op", "axis"), [("concatenate", -1), ("stack", -2)])
def test_a_join_of_more_parts_than_a_kernel_takes_is_one_of_joins(op, axis):
    parts = [np.full((2, 1 + n % 2 * (op == "concatenate")), n, "float32") for n in range(1100)]
    inputs = [relay.var(f"x{n}", shape=p.shape) for n, p in enumerate(parts)]
    function = infer_type(relay.Function(inputs, getattr(relay, op)(inputs, axis)))
    divided = split_joins(function)
    joins = [e for e in post_order(divided) if is_call_of(e, "concatenate", "stack")]
    assert [len(e.args[0].fields) for e in joins] == [366, 367, 367, 3]
    assert divided.ret_type == function.ret_type
    want = getattr(np, op)(parts, axis=axis)
    np.testing.assert_array_equal(relay.interpret.interpret(divided, *parts), want)
    assert split_joins(divided) is divided


@pytest.mark.parametrize("op", ["concatenate", "stack"])
def test_kernels_of_divided_joins_stay_apart(op):
    """Fusion would make one kernel of them again, with code for each of the parts."""
    inputs = [relay.var(f"x{n}", shape=(3, 2)) for n in range(640)]
    function = infer_type(relay.Function(inputs, relay.exp(getattr(relay, op)(inputs, 1))))
    fused = fuse_ops(split_joins(function))
    kernels = [e for e in post_order(fused) if isinstance(e, relay.Function) and e is not fused]
    assert max(len(flatten(kernel.params[0].checked_type)) for kernel in kernels) <= MOST
    few = infer_type(relay.Function(inputs[:40], relay.concatenate(
        [getattr(relay, op)(inputs[n : n + 20], 1) for n in (0, 20)], 1
    )))  # fmt: skip
    fused = fuse_ops(few)
    assert len([e for e in post_order(fused) if isinstance(e, relay.Function)]) == 2


def test_a_join_of_many_inputs_is_built():
    inputs = [relay.var(f"x{i}", shape=(1, 2)) for i in range(140)]
    function = relay.concatenate(inputs, 0).as_function()
    assert relay.build(function, target="c").get_source("c")


WIDTHS = [n % 9 for n in range(70)]  # none at all, parts of a vector, whole ones and a rest


@pytest.mark.parametrize(
    ("op", "shapes", "axis", "dtype"),
    [
        ("concatenate", [(3, n, 2) for n in WIDTHS], 1, "int8"),
        ("concatenate", [(5 * n,) for n in WIDTHS], 0, "float32"),
        ("concatenate", [(0, 3)] * 70, 1, "float32"),
        ("stack", [(3, 5)] * 66, -1, "bool"),
        ("stack", [(3, 5)] * 66, 1, "float16"),
        ("stack", [()] * 70, 0, "int64"),
        ("concatenate", [(300, 8)] * 66, 1, "float32"),  # rows that threads share
        ("concatenate", [(1, 40000), (1, 3)] + [(1, 1)] * 64, 1, "float32"),  # a part, too
    ],
)
def test_each_part_of_a_wide_join_is_copied(op, shapes, axis, dtype):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 2 if dtype == "bool" else 99, s).astype(dtype) for s in shapes]
    inputs = [relay.var(f"x{n}", shape=s, dtype=dtype) for n, s in enumerate(shapes)]
    module = tvm.IRModule.from_expr(relay.Function(inputs, getattr(relay, op)(inputs, axis)))
    built = relay.build(module, target="llvm")
    run = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu()))
    run.run(**{f"x{n}": part for n, part in enumerate(parts)})
    got = run.get_output(0).numpy()
    np.testing.assert_array_equal(got, getattr(np, op)(parts, axis=axis))
    assert got.dtype == dtype


def test_what_is_computed_for_a_wide_join_has_kernels_of_its_own():
    """Equal ones are one kernel; with the join they would be code for each of its parts."""
    inputs = [relay.var(f"x{n}", shape=(3, 2)) for n in range(66)]
    parts = [relay.exp(x) for x in inputs]
    fused = fuse_ops(infer_type(relay.Function(inputs, relay.nn.relu(relay.concatenate(parts, 1)))))
    kernels = [e for e in post_order(fused) if isinstance(e, relay.Function) and e is not fused]
    assert len({str(kernel) for kernel in kernels}) == 3
