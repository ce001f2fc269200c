"""Graph passes: what they do to small graphs, and that values stay the same."""

import numpy as np
import pytest

from slipway import relay, tir
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_equal, structural_hash
from slipway.relay import transform
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order

RNG = np.random.default_rng(0)


def weights(*shape):
    return relay.const(RNG.standard_normal(shape).astype(np.float32))


def operators(expr):
    return [
        e.op.name for e in post_order(expr) if isinstance(e, relay.Call) and hasattr(e.op, "name")
    ]


def kernels(function):
    calls = [e for e in post_order(function, into_functions=False) if isinstance(e, relay.Call)]
    return [operators(c.op.body) for c in calls]


def conv_bn_relu(x, channels=4):
    y = relay.nn.conv2d(x, weights(channels, x.checked_type.shape[1], 3, 3), padding=1)
    statistics = [relay.const(RNG.uniform(0.5, 1.5, channels).astype(np.float32)) for _ in range(4)]
    return relay.nn.relu(relay.nn.batch_norm(y, *statistics)[0])


def same_values(before, after, *inputs):
    for a, b in zip(
        _flat(interpret(before, *inputs)), _flat(interpret(after, *inputs)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def _flat(value):
    return value if isinstance(value, tuple) else (value,)


def test_batch_norm_vanishes_into_the_convolution():
    x = relay.var("x", shape=(1, 3, 6, 6))
    mod = IRModule.from_expr(conv_bn_relu(x))
    done = relay.transform.optimize(mod, opt_level=3)
    assert kernels(done["main"]) == [["nn.conv2d", "add", "nn.relu"]]
    same_values(mod, done, RNG.standard_normal((1, 3, 6, 6)).astype(np.float32))


def test_batch_norm_with_variable_statistics_stays_a_computation():
    x = relay.var("x", shape=(1, 3, 4, 4))
    stats = [relay.var(n, shape=(3,)) for n in ("g", "b", "m", "v")]
    mod = IRModule.from_expr(relay.nn.batch_norm(x, *stats)[0])
    done = relay.transform.optimize(mod, opt_level=3)
    arrays = [RNG.uniform(0.5, 1.5, t.checked_type.shape).astype(np.float32) for t in (x, *stats)]
    same_values(mod, done, *arrays)


def test_parameters_are_bound_by_name():
    x, w = relay.var("x", shape=(1, 8)), relay.var("w", shape=(4, 8))
    mod = IRModule.from_expr(relay.nn.dense(x, w))
    done = relay.transform.optimize(mod, {"w": np.ones((4, 8), np.float32), "unused": np.ones(1)})
    assert [p.name for p in done["main"].params] == ["x"]
    assert interpret(done, np.ones((1, 8), np.float32)).tolist() == [[8, 8, 8, 8]]


def test_scale_is_not_folded_into_a_convolution_with_other_readers():
    x = relay.var("x", shape=(1, 3, 6, 6))
    y = relay.nn.conv2d(x, weights(4, 3, 3, 3))
    mod = IRModule.from_expr(relay.add(relay.multiply(y, weights(4, 1, 1)), relay.exp(y)))
    with transform.PassContext(opt_level=3):
        done = transform.FoldScaleAxis()(mod)
    assert done["main"] is mod["main"]


@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1), ()])
def test_scale_behind_bias_is_folded(shape):
    x = relay.var("x", shape=(1, 3, 6, 6))
    y = relay.add(relay.nn.conv2d(x, weights(4, 3, 3, 3)), weights(4, 1, 1))
    factor = relay.const(RNG.uniform(1, 2, shape).astype(np.float32))
    mod = IRModule.from_expr(relay.multiply(y, factor))
    done = transform.FoldScaleAxis()(mod)
    assert operators(done["main"].body) == ["nn.conv2d", "add"]
    same_values(mod, done, RNG.standard_normal((1, 3, 6, 6)).astype(np.float32))


def test_scale_along_rows_is_not_folded():
    x = relay.var("x", shape=(1, 3, 6, 4))
    y = relay.nn.conv2d(x, weights(4, 3, 3, 3), padding=1)
    mod = IRModule.from_expr(relay.multiply(y, weights(4)))  # along the width, which is 4 too
    assert transform.FoldScaleAxis()(mod)["main"] is mod["main"]


def test_common_subexpressions_are_shared():
    x = relay.var("x", shape=(3,))
    mod = transform.EliminateCommonSubexpr()(IRModule.from_expr(relay.exp(x) + relay.exp(x)))
    lhs, rhs = mod["main"].body.args
    assert lhs is rhs


def test_constants_are_folded_but_not_blown_up():
    x = relay.var("x", shape=(512, 512))
    big = relay.broadcast_to(relay.const(np.ones((1, 1), np.float32)), (512, 512))
    mod = transform.FoldConstant()(IRModule.from_expr(x + big + relay.exp(relay.const(0.0))))
    assert operators(mod["main"].body) == ["broadcast_to", "add", "add"]


def test_dead_lets_disappear():
    x = relay.var("x", shape=(3,))
    v = relay.Var("v", x.type)
    mod = transform.DeadCodeElimination()(IRModule.from_expr(relay.Let(v, relay.exp(x), x)))
    assert mod["main"].body is x


def test_calls_of_functions_are_inlined():
    x, p = relay.var("x", shape=(3,)), relay.var("p", shape=(3,))
    double = relay.Function((p,), p + p)
    mod = IRModule.from_expr(double(double(x)))
    done = transform.Inline()(mod)
    assert operators(done["main"].body) == ["add", "add"]
    same_values(mod, done, np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("build", "want"),
    [
        (lambda x: relay.reshape(relay.reshape(x, (6, 4)), (4, 6)), ["reshape"]),
        (lambda x: relay.reshape(relay.reshape(x, (24,)), (2, 3, 4)), []),
        (lambda x: relay.transpose(relay.transpose(x, (1, 2, 0)), (2, 0, 1)), []),
        (lambda x: relay.transpose(relay.transpose(x, (1, 0, 2)), (0, 2, 1)), ["transpose"]),
        (lambda x: relay.cast(x, "float32"), []),
        (lambda x: x * 1.0 + 0.0, []),
        (
            lambda x: relay.nn.bias_add(x, relay.const(np.ones(3, np.float32))),
            ["expand_dims", "add"],
        ),
        (lambda x: relay.clip(relay.nn.relu(x), 0, 6), ["clip"]),
        (lambda x: relay.strided_slice(x, [0], [2], axes=[0]), []),
        (
            lambda x: relay.nn.batch_matmul(x, relay.transpose(x, (0, 2, 1)), transpose_b=False),
            ["nn.batch_matmul"],
        ),
        (
            lambda x: relay.nn.batch_matmul(relay.transpose(x, (0, 2, 1)), x, transpose_b=False),
            ["nn.batch_matmul"],
        ),
        (
            lambda x: relay.nn.dense(
                relay.reshape(x, (6, 4)), relay.transpose(relay.reshape(x, (4, 6)), (1, 0))
            ),
            ["reshape", "reshape", "nn.matmul"],
        ),
        (
            lambda x: relay.nn.dense(x, relay.transpose(weights(4, 5), (1, 0))),
            ["transpose", "nn.dense"],
        ),
    ],
)
def test_simplify_expr(build, want):
    x = relay.var("x", shape=(2, 3, 4))
    mod = IRModule((("main", relay.Function((x,), build(x))),))
    done = transform.SimplifyExpr()(mod)
    assert operators(done["main"].body) == want
    same_values(mod, done, RNG.standard_normal((2, 3, 4)).astype(np.float32))


# -- fusion ----------------------------------------------------------------------------------------


def fused(expr, **options):
    mod = IRModule.from_expr(expr)
    with transform.PassContext(opt_level=3, **options):
        done = transform.FuseOps()(mod)
    inputs = [RNG.standard_normal(p.type.shape).astype(p.type.dtype) for p in mod["main"].params]
    same_values(mod, done, *inputs)
    return kernels(done["main"])


def test_residual_sum_joins_one_of_the_convolutions():
    x = relay.var("x", shape=(1, 4, 6, 6))
    left = relay.nn.conv2d(x, weights(4, 4, 3, 3), padding=1)
    right = relay.nn.conv2d(x, weights(4, 4, 1, 1))
    assert fused(relay.nn.relu(left + right)) == [["nn.conv2d"], ["nn.conv2d", "add", "nn.relu"]]


def test_elementwise_goes_into_a_reduction_but_not_behind_it():
    x = relay.var("x", shape=(3, 4))
    got = fused(relay.exp(relay.sum(relay.exp(x) * 2.0, axis=1)))
    assert got == [["exp", "multiply", "sum"], ["exp"]]


def test_injective_chain_is_one_kernel():
    x = relay.var("x", shape=(2, 3, 4))
    got = fused(relay.nn.relu(relay.reshape(relay.transpose(relay.abs(x), (0, 2, 1)), (8, 3))))
    assert got == [["abs", "transpose", "reshape", "nn.relu"]]


def test_diamond_of_elementwise_is_one_kernel():
    x = relay.var("x", shape=(8,))
    y = relay.exp(x)
    assert fused(relay.nn.relu(y) * relay.abs(y)) == [["exp", "nn.relu", "abs", "multiply"]]


def test_concatenation_takes_injective_producers():
    x = relay.var("x", shape=(2, 4))
    assert fused(relay.concatenate([relay.abs(x), relay.transpose(relay.transpose(x))], 1)) == [
        ["abs", "transpose", "transpose", "concatenate"]
    ]


def test_value_that_is_also_a_result_is_its_own_kernel():
    x = relay.var("x", shape=(4,))
    y = relay.exp(x)
    assert fused(relay.Tuple((y, relay.abs(y)))) == [["exp"], ["abs"]]


def test_costly_operator_is_not_repeated_under_a_broadcast():
    x, gate = relay.var("x", shape=(1, 8, 16, 16)), relay.var("g", shape=(1, 8, 1, 1))
    assert fused(relay.sigmoid(gate) * x) == [["sigmoid"], ["multiply"]]
    assert fused(relay.abs(gate) * x) == [["abs", "multiply"]]


def test_what_follows_a_costly_operator_does_not_carry_it_into_a_broadcast():
    x, gate = relay.var("x", shape=(1, 8, 16, 16)), relay.var("g", shape=(1, 8))
    shaped = relay.reshape(relay.abs(relay.exp(gate)), (1, 8, 1, 1))
    assert fused(shaped * x) == [["exp", "abs", "reshape"], ["multiply"]]
    assert fused(relay.one_hot(relay.abs(where("floor_mod")), 1.0, 0.0, 9, 0, "float32")) == [
        ["floor_mod", "abs"], ["one_hot"]
    ]  # fmt: skip
    assert fused(relay.take(relay.var("t", shape=(9, 8)), where("divide"), 0)) == [
        ["divide"], ["take"]
    ]  # fmt: skip
    assert fused(relay.take(relay.var("t", shape=(9, 8)), where("add"), 0)) == [["add", "take"]]


def where(name):
    """Positions that an operator computes."""
    return getattr(relay, name)(relay.var("i", shape=(5,), dtype="int32"), relay.const(9, "int32"))


def test_values_read_twice_do_not_double_the_kernel_without_end():
    """A running maximum and its place: each step reads the one before it twice."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    best, position = x, y
    for step in range(12):
        part = x * float(step - 6)
        better = relay.greater(part, best)
        best, position = relay.where(better, part, best), relay.where(better, y + 1.0, position)
    found = fused(position)
    assert 1 < len(found) <= 20


def test_depth_limit_and_no_fusion():
    x = relay.var("x", shape=(4,))
    y = relay.abs(relay.abs(relay.abs(relay.abs(x))))
    assert [len(k) for k in fused(y, config={"relay.FuseOps.max_depth": 2})] == [2, 2]
    done = transform.FuseOps(0)(IRModule.from_expr(y))
    assert [len(k) for k in kernels(done["main"])] == [1, 1, 1, 1]


def test_scalar_constants_are_inside_and_weights_outside():
    x = relay.var("x", shape=(4, 4))
    done = transform.FuseOps()(IRModule.from_expr(relay.add(x * 2.0, weights(4))))
    call = done["main"].body
    assert [type(a).__name__ for a in call.args] == ["Var", "Constant"]
    assert call.op.attr("Primitive") == 1


def test_sequential_leaves_out_what_the_context_forbids():
    ran = []

    def note(name, level):
        return transform.Pass(name, level, lambda m, setting: ran.append(name) or m)

    steps = transform.Sequential([note("a", 1), note("b", 3), note("c", 0)])
    x = relay.var("x", shape=(1,))
    with transform.PassContext(opt_level=2, disabled_pass=["c"]):
        steps(IRModule.from_expr(relay.exp(x)))
    assert ran == ["a"]


def test_results_own_their_memory():
    x = relay.var("x", shape=(2, 3))
    y = relay.exp(x)
    body = relay.Tuple((x, relay.reshape(x, (6,)), y, y, relay.reshape(y, (3, 2)), weights(2)))
    done = relay.transform.optimize(IRModule((("main", relay.Function((x,), body)),)))
    # A reshape between kernels is the memory before it: one of a copy of the result's own.
    made = [k[-1] for k in kernels(done["main"]) if k != ["reshape"]]
    assert sorted(made) == ["copy", "copy", "copy", "copy", "copy", "exp"]


def test_long_chains_become_kernels_of_bounded_depth():
    x = y = relay.var("x", shape=(4,))
    for _ in range(500):
        y = relay.abs(y)
    done = relay.transform.optimize(IRModule((("main", relay.Function((x,), y)),)))
    sizes = [len(k) for k in kernels(done["main"])]
    assert sum(sizes) == 500
    assert max(sizes) <= 48
    assert structural_hash(done["main"].body.op)


def module_of(*functions, recursive=False):
    """main calls g1 calls g0; those named are marked."""
    x = relay.var("x", shape=(3,))
    mod = IRModule()
    for name, body in (
        ("g0", lambda v: relay.GlobalVar("g1")(v) if recursive else relay.exp(v)),
        ("g1", lambda v: relay.negative(relay.GlobalVar("g0")(v))),
        ("main", lambda v: relay.GlobalVar("g1")(v) + v),
    ):
        v = relay.var("v", shape=(3,))
        made = relay.Function([v], body(v), ret_type=x.type)
        mod[name] = made.with_attr("Inline", 1) if name in functions else made
    return mod


@pytest.mark.parametrize(
    ("marked", "left"),
    [((), {"g0", "g1", "main"}), (("g0",), {"g1", "main"}), (("g1",), {"g0", "main"}),
     (("g0", "g1"), {"main"})],
)  # fmt: skip
def test_functions_of_the_module_are_inlined_where_marked(marked, left):
    mod = module_of(*marked)
    done = transform.Inline()(mod)
    assert {name for name, _ in done.items()} == left
    value = np.array([0.5, 1, 2], np.float32)
    expected = interpret(mod, value)
    np.testing.assert_allclose(interpret(done, value), expected)


def test_functions_that_call_each_other_without_end_are_not_inlined():
    mod = module_of("g0", "g1", recursive=True)
    assert structural_equal(transform.Inline()(mod), transform.InferType()(mod))


def test_the_functions_of_a_module_and_their_attributes_have_no_order():
    x = relay.var("x", shape=(3,))
    one, two = relay.Function([x], relay.exp(x)), relay.Function([x], relay.log(x))
    left = IRModule({"a": one.with_attr("p", 1).with_attr("q", "s"), "b": two})
    right = IRModule(
        {"b": two, "a": one.with_attr("q", "s").with_attr("p", tir.IntImm("int32", 1))}
    )
    assert structural_equal(left, right)
    assert structural_hash(left) == structural_hash(right)
    assert not structural_equal(left, IRModule({"a": two, "b": two}))


def test_the_types_of_a_called_function_follow_from_its_call():
    p, w = relay.var("p"), relay.var("w")
    conv = relay.Function([p, w], relay.nn.relu(relay.nn.conv2d(p, w, kernel_size=(1, 1))))
    x, weight = relay.var("x", shape=(1, 3, 7, 7)), relay.var("w", shape=(5, 3, 1, 1))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([x, weight], conv(x, weight))))
    assert tuple(mod["main"].checked_type.ret_type.shape) == (1, 5, 7, 7)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_before_axes_of_one_is_along_the_last(name):
    function = relay.Function(
        [x := relay.var("x", shape=(2, 30, 1, 1))], getattr(relay.nn, name)(x, 1)
    )
    mod = IRModule.from_expr(function)
    done = transform.SimplifyExpr()(mod)
    (call,) = [
        e for e in post_order(done["main"])
        if isinstance(e, relay.Call) and e.op.name == f"nn.{name}"
    ]  # fmt: skip
    assert call.checked_type.shape == (2, 30)
    same_values(mod, done, RNG.standard_normal((2, 30, 1, 1)).astype(np.float32))
    assert done["main"].body.checked_type.shape == (2, 30, 1, 1)
