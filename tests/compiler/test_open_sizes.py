"""Models with open dimensions, compiled once: kernels, tables, memory, and what they refuse."""

import numpy as np
import pytest

from slipway import relay, te
from slipway.compiler.open_sizes import formula_of, need_fixed_sizes
from slipway.compiler.relay_build import kernel_graph
from slipway.errors import ArtifactError, ExecutionError, LoweringError
from slipway.ir.function import IRModule
from slipway.relay.dims import Dim, at, size_of
from slipway.relay.expr import Function, Tuple, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import span
from slipway.relay.types import TensorType
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.graph.graph_format import GraphTables
from slipway.runtime.graph.graph_sizes import evaluate
from slipway.runtime.load import load_module
from slipway.target import Target

RNG = np.random.default_rng(3)
N = Dim("n", 1, 8)


def values(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def weights(*shape):
    return relay.const(values(*shape) * 0.1)


def var(name, *shape):
    return relay.var(name, shape=shape)


def mlp():
    y = relay.nn.bias_add(relay.nn.dense(var("x", N, 32), weights(24, 32)), weights(24))
    return IRModule.from_expr(relay.nn.softmax(relay.nn.dense(relay.nn.relu(y), weights(10, 24))))


def cnn():
    y = relay.nn.relu(relay.nn.conv2d(var("x", N, 3, 8, 8), weights(16, 3, 3, 3), padding=1))
    y = relay.nn.max_pool2d(y, (2, 2), (2, 2))
    y = relay.nn.relu(relay.nn.conv2d(y, weights(16, 16, 3, 3), padding=1))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    return IRModule.from_expr(relay.nn.dense(y, weights(5, 16)))


def attention():
    """One layer of a transformer over a sequence of open length, without its batch."""
    x = var("x", Dim("s", 4, 40), 32)

    def product(y, units, depth):
        return relay.nn.bias_add(relay.nn.dense(y, weights(units, depth)), weights(units))

    def heads(y):
        return relay.transpose(relay.reshape(y, (-1, 4, 8)), (1, 0, 2))

    query, key, value = (heads(product(x, 32, 32)) for _ in range(3))
    scores = relay.nn.softmax(relay.nn.batch_matmul(query, key) * relay.const(np.float32(0.35)))
    mixed = relay.nn.batch_matmul(scores, relay.transpose(value, (0, 2, 1)))
    mixed = relay.reshape(relay.transpose(mixed, (1, 0, 2)), (-1, 32))
    y = relay.nn.layer_norm(x + product(mixed, 32, 32), weights(32), weights(32))
    z = product(relay.nn.relu(product(y, 48, 32)), 32, 48)
    return IRModule.from_expr(relay.nn.layer_norm(y + z, weights(32), weights(32)))


def ready(mod, target="llvm"):
    return GraphModule(relay.build(mod, target=target)["default"](cpu(0)))


def agrees(module, mod, **inputs):
    module.set_input(**inputs)
    module.run()
    wanted = interpret(mod, **inputs)
    for i, one in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
        np.testing.assert_allclose(module.get_output(i).numpy(), one, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("make", "shape"), [(mlp, (32,)), (cnn, (3, 8, 8))])
def test_one_library_runs_every_size(make, shape):
    mod = make()
    module = ready(mod)
    for size in (8, 1, 3, 8, 2):
        agrees(module, mod, x=values(size, *shape))


def test_a_sequence_of_any_length():
    mod = attention()
    module = ready(mod)
    for length in (4, 17, 40, 16, 33):
        agrees(module, mod, x=values(length, 32))


def test_products_of_few_open_rows():
    a, b = var("a", 2, Dim("n", 1, 3), 8), var("b", 2, 8, 32)
    mod = IRModule.from_expr(relay.nn.batch_matmul(a, b, transpose_b=False))
    module = ready(mod)
    for rows in (1, 3, 2):
        agrees(module, mod, a=values(2, rows, 8), b=values(2, 8, 32))


def test_an_image_of_any_height():
    """Windows, what lies between them, and means over an axis that is open."""
    h = Dim("h", 8, 32)
    x = var("x", 1, 8, h, 6)
    y = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    y = relay.nn.instance_norm(y, weights(8), weights(8))
    y = relay.concatenate([y, relay.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1))], 2)
    y = relay.take(y, relay.const(np.array([0, 900, -2, 3])), 2)
    mean = relay.nn.global_avg_pool2d(relay.nn.avg_pool2d(x, (2, 2), (1, 1)))
    mod = IRModule.from_expr(relay.Tuple((y, mean)))
    module = ready(mod)
    for height in (8, 32, 13):
        agrees(module, mod, x=values(1, 8, height, 6))


def test_a_branch_and_a_loop_over_any_number_of_rows():
    """The last states go into the branch, whose other end is a product."""
    rows = Dim("n", 2, 3)
    types = TensorType((rows, 20)), TensorType((), "int32"), TensorType((), "int32")
    (y, k, end), (z, turn, unused) = (
        [Var(name, t) for name, t in zip("xkn", types, strict=True)] for _ in range(2)
    )
    going = Function((y, k, end), relay.less(k, end))
    step = Tuple((relay.tanh(relay.nn.dense(z, weights(20, 20))), turn + relay.const(1)))
    x, flag, turns = (Var("x", types[0]), Var("flag", TensorType((), "bool")), Var("n", types[1]))
    last = relay.while_loop(going, Function((z, turn, unused), step), [x, relay.const(0)], [turns])[
        0
    ]
    ends = relay.If(flag, relay.nn.softmax(last), relay.nn.dense(last, weights(20, 20)))
    mod = IRModule.from_expr(Function((x, flag, turns), ends))
    module = ready(mod)
    for size, flag, count in ((3, True, 2), (2, False, 0), (3, False, 3)):
        agrees(module, mod, x=values(size, 20), flag=np.array(flag), n=np.array(count, "int32"))


def test_operators_for_fixed_sizes_alone_say_so():
    resized = relay.image.resize2d(var("x", 1, 3, Dim("h", 8, 32), 16), (20, 20))
    with pytest.raises(LoweringError, match=r"resize is computed for .*\(1, 3, h, 16\).*fix"):
        relay.build(IRModule.from_expr(resized), target="llvm")


def test_an_exported_library_runs_every_size(tmp_path):
    mod = mlp()
    relay.build(mod, target="llvm").export_library(tmp_path / "model.tar")
    module = GraphModule(load_module(tmp_path / "model.tar")["default"](cpu(0)))
    for size in (2, 7):
        agrees(module, mod, x=values(size, 32))
        assert module.get_input_info()[0] == {"x": (size, 32)}


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((9, 32), r"shape \(n, 32\) in this model, got \(9, 32\): n is 1 to 8\. Compile"),
        ((0, 32), "n is 1 to 8"),
        ((2, 33), r"got \(2, 33\)\. Reshape"),
        ((2, 32, 1), r"got \(2, 32, 1\)"),
    ],
)
def test_a_size_outside_of_its_range_is_refused_and_changes_nothing(shape, words):
    mod = mlp()
    module, x = ready(mod), values(5, 32)
    agrees(module, mod, x=x)
    with pytest.raises(ExecutionError, match=words):
        module.set_input("x", values(*shape))
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), interpret(mod, x), rtol=1e-5)


def test_inputs_of_one_size_change_together():
    mod = IRModule.from_expr(var("x", N, 6) + var("y", N, 6))
    module = ready(mod)
    agrees(module, mod, x=values(3, 6), y=values(3, 6))
    module.set_input("x", values(4, 6))
    with pytest.raises(ExecutionError, match=r"since the input 'y' was set: .* \(4, 6\) now"):
        module.run()
    agrees(module, mod, y=values(4, 6), x=values(4, 6))


def test_memory_of_the_callers_is_not_for_open_sizes():
    module = ready(mlp())
    for place in (module.set_input_zero_copy, module.set_output_zero_copy):
        with pytest.raises(ExecutionError, match="Use set_input and get_output"):
            place(0, module.get_input(0))


def test_tables_are_read_back_and_damage_is_seen():
    tables = relay.build(mlp(), target="llvm").tables
    data = tables.to_binary()
    assert GraphTables.from_binary(data) == tables
    again = GraphTables.from_json(tables.to_json())
    assert (again.open_sizes, again.open_dims) == (tables.open_sizes, tables.open_dims)
    for at_byte in (64, 68, 72):
        damaged = bytearray(data)
        damaged[at_byte] += 1
        with pytest.raises(ArtifactError, match="damaged"):
            GraphTables.from_binary(bytes(damaged))


def test_memory_is_planned_for_the_upper_ends():
    small, large = (
        relay.build(
            IRModule.from_expr(relay.nn.dense(var("x", Dim("n", 1, high), 64), weights(64, 64))),
            target="llvm",
        ).metadata["memory"]["workspace_bytes"]
        for high in (2, 16)
    )
    assert (small, large) == (2 * 2 * 256, 2 * 16 * 256)


@pytest.mark.parametrize("size", [1, 4, 8])
def test_formulas_are_evaluated_as_they_are_written(size):
    for dim in (N, N * 3 + 1, (N + 5) // 2, (N * 7) % 4 + 1, N * N):
        assert evaluate(formula_of(dim), {"n": size}) == at(dim, {N.formula: size})


def held_at_once(count):
    """A formula of which `count` values are held at once."""
    formula = N.formula
    for number in range(count - 2):
        formula = te.floormod(te.const(1000 + number, formula.dtype), formula + (number + 1))
    return size_of(formula)


def test_a_formula_may_be_as_long_as_the_runtime_holds_its_values():
    """Terms of a sum are held two at a time."""
    for dim in (sum((N // k for k in range(2, 40)), N), held_at_once(16), held_at_once(15) + 1):
        for size in (1, 5, 8):
            assert evaluate(formula_of(dim), {"n": size}) == at(dim, {N.formula: size})
    with pytest.raises(LoweringError, match="more than 16 values are held at once"):
        formula_of(held_at_once(17))


def test_as_many_elements_as_kernels_count_with_32_bits():
    def with_most(high):
        x = relay.var("x", shape=(Dim("n", 1, high),), dtype="int8")
        function = IRModule.from_expr(relay.Function([x], relay.abs(x)))
        return kernel_graph(function, Target("llvm"))

    assert with_most((1 << 31) - 1).kernels
    with pytest.raises(LoweringError, match=r"'x' gives .*up to 2147483648 elements"):
        with_most(1 << 31)


def test_what_has_fixed_sizes_only_says_which_are_open():
    open_graph, fixed = (
        kernel_graph(IRModule.from_expr(var("x", size, 6) + 1.0), Target("llvm")) for size in (N, 3)
    )
    need_fixed_sizes(fixed, "a page")
    with pytest.raises(LoweringError, match=r"^a page has fixed sizes.*dimension n in 1\.\.8\."):
        need_fixed_sizes(open_graph, "a page")


def test_a_layer_is_named_where_it_has_a_name():
    x = relay.var("x", shape=(Dim("n", 1, 1 << 30),), dtype="int8")
    with span("net/both"):
        y = relay.concatenate([x, x], 0)
    with pytest.raises(LoweringError, match=r"^'net/both' gives .*up to 2147483648"):
        kernel_graph(IRModule.from_expr(y), Target("llvm"))


def test_a_size_of_another_integer_type():
    narrow = te.size_var("v", "int32")
    dim = size_of(narrow.astype("int64") * 2 + 1)
    assert evaluate(formula_of(dim), {"v": 4}) == 9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: var("x", Dim("n", 1), 6) + 1.0, r"nothing bounds n.*Dim\(\"n\", 1, 512\)"),
        (lambda: var("x", N * 2, 6) + 1.0, "no input has the dimension n itself"),
        (
            lambda: relay.sum(var("x", N, 6), 0) + relay.sum(var("y", Dim("n", 1, 9), 6), 0),
            r"two dimensions are called n: n in 1\.\.\d and n in 1\.\.\d\. Give",
        ),
        (lambda: var("x", Dim("n", 1, 1 << 30), 6) + 1.0, "at most 2147483647"),
    ],
)
def test_what_no_library_can_have_is_refused(make, words):
    expr = relay.concatenate([make()], 0)
    with pytest.raises(LoweringError, match=words):
        relay.build(IRModule.from_expr(expr), target="llvm")
