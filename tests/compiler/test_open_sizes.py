"""Models with open dimensions, compiled once: kernels, tables, memory, and what they refuse."""

import numpy as np
import pytest

from slipway import relay, te
from slipway.compiler.open_sizes import formula_of, need_fixed_sizes
from slipway.compiler.relay_build import kernel_graph
from slipway.errors import ArtifactError, ExecutionError, LoweringError
from slipway.ir.function import IRModule
from slipway.relay.backend import Executor
from slipway.relay.dims import Dim, at, size_of
from slipway.relay.expr import Function, Tuple, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_primitive, span
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order
from slipway.runtime.devices import cpu
from slipway.runtime.executor import AotModule
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.graph.graph_format import GraphTables
from slipway.runtime.graph.graph_sizes import evaluate
from slipway.runtime.load import load_module
from slipway.target import Target
from slipway.transform.graph.fuse_ops import fuse_ops

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


def program(mod):
    """The model as a program in C."""
    return AotModule(relay.build(mod, "c", executor=Executor("aot"))["default"](cpu(0)))


def agrees(module, mod, **inputs):
    for name, value in inputs.items():
        module.set_input(name, value)
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


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_branch_and_a_loop_over_any_number_of_rows(target):
    """The last states go into the branch, whose other end is a product.

    Memory between the kernels of a step is of the largest size, as programs in C plan it.
    """
    rows = Dim("n", 2, 9)
    types = TensorType((rows, 20)), TensorType((), "int32"), TensorType((), "int32")
    (y, k, end), (z, steps, unused) = (
        [Var(name, t) for name, t in zip("xkn", types, strict=True)] for _ in range(2)
    )
    going = Function((y, k, end), relay.less(k, end))
    step = Tuple((relay.tanh(relay.nn.dense(z, weights(20, 20))), steps + relay.const(1)))
    x, flag, iterations = (
        Var("x", types[0]),
        Var("flag", TensorType((), "bool")),
        Var("n", types[1]),
    )
    last = relay.while_loop(
        going, Function((z, steps, unused), step), [x, relay.const(0)], [iterations]
    )[0]
    ends = relay.If(flag, relay.nn.softmax(last), relay.nn.dense(last, weights(20, 20)))
    mod = IRModule.from_expr(Function((x, flag, iterations), ends))
    module = ready(mod) if target == "llvm" else program(mod)
    for size, flag, count in ((9, True, 2), (2, False, 0), (5, False, 3), (7, True, 1)):
        agrees(module, mod, x=values(size, 20), flag=np.array(flag), n=np.array(count, "int32"))


@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_an_image_of_any_height_is_resized(method):
    resized = relay.image.resize2d(var("x", 1, 3, Dim("h", 8, 32), 16), (20, 20), method=method)
    mod = IRModule.from_expr(resized)
    module = ready(mod)
    for height in (8, 9, 20, 32):
        agrees(module, mod, x=values(1, 3, height, 16))


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
    with pytest.raises(ExecutionError, match=r"'y' of shape \(n, 6\) does not .* it is \(4, 6\)\."):
        module.run()
    with pytest.raises(
        ExecutionError, match=r"'x' of shape \(n, 6\) does .* it is \(5, 6\)\. .* agree"
    ):
        module.run(x=values(4, 6), y=values(5, 6))
    agrees(module, mod, y=values(4, 6), x=values(4, 6))


def test_memory_of_the_callers_is_not_for_open_sizes():
    module = ready(mlp())
    for setter in (module.set_input_zero_copy, module.set_output_zero_copy):
        with pytest.raises(ExecutionError, match="Use set_input and get_output"):
            setter(0, module.get_input(0))


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
        (lambda: var("x", N // 2 + 1, 6) + 1.0, "no input has the dimension n itself or some"),
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


def test_costs_that_no_range_orders_are_compared_at_the_upper_ends():
    """Whether fusing repeats a logarithm costs time only; these frames are a formula of sizes."""
    rows, samples = Dim("rows", 1, 3), Dim("samples", 1280, 32000)
    x = var("x", rows, (samples + 128) // 160 - 3, 32)
    fused = fuse_ops(relay.Function([x], relay.log(x) + relay.const(1.0)))
    assert len([e for e in post_order(fused.body) if is_primitive(e)]) == 1


def test_an_axis_may_be_some_times_a_size():
    """Levels of a detector meet again where height and width are multiples."""
    n = Dim("n", 2, 6)
    x = var("x", n * 4, 3)
    twice = relay.repeat(
        relay.nn.max_pool1d(relay.reshape(x, (1, n * 4, 3)), 2, 2, layout="NWC"), 2, 1
    )
    main = Function([x], relay.reshape(twice, (n * 4, 3)) + x)
    library = relay.build(IRModule.from_expr(main), target="llvm")
    module = GraphModule(library["default"](cpu(0)))
    for rows in (8, 24, 12):
        given = np.random.default_rng(rows).random((rows, 3), np.float32)
        module.set_input("x", given)
        module.run()
        want = given + given.reshape(-1, 2, 3).max(1).repeat(2, 0)
        np.testing.assert_array_equal(module.get_output(0).numpy(), want)
    with pytest.raises(ExecutionError, match=r"\(4 \* n, 3\) in this model, got \(10, 3\)"):
        module.set_input("x", np.zeros((10, 3), np.float32))
    with pytest.raises(ExecutionError, match=r"\(4 \* n, 3\) .* n is 2 to 6"):
        module.set_input("x", np.zeros((28, 3), np.float32))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_sizes_follow_from_axes_of_some_times_as_many(target):
    """The anchors of a detector: their kernels have no axis of the size itself."""
    height, width = Dim("h", 1, 6), Dim("w", 1, 6)
    x = Var("x", TensorType((1, 3, height * 8, width * 8)))
    rows = relay.reshape(relay.arange(0, height, 1, "float32"), (height, 1))
    positions = relay.reshape(
        relay.add(rows, relay.arange(0, width, 1, "float32")), (height * width,)
    )
    cells = relay.reshape(relay.nn.avg_pool2d(x, (8, 8), (8, 8)), (3, height * width))
    counted = relay.sum(relay.arange(0, height * 4, 1, "float32"))
    main = Function([x], Tuple((positions, relay.add(cells, positions), counted)))
    module = ready(IRModule.from_expr(main), target)
    for down, across in ((1, 1), (3, 2), (6, 5)):
        given = values(1, 3, down * 8, across * 8)
        module.run(x=given)
        wanted = (np.arange(down)[:, None] + np.arange(across)).reshape(-1).astype(np.float32)
        means = given.reshape(3, down, 8, across, 8).mean((2, 4)).reshape(3, -1)
        for i, want in enumerate((wanted, means + wanted, np.arange(down * 4).sum())):
            found = module.get_output(i).numpy()
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_what_ends_without_an_open_axis_counts_it_all_the_same():
    x = var("x", N, 4)
    counted = (relay.sum(relay.ones_like(x), 0),
               relay.sum(relay.full(relay.const(2.0), (N, 3), "float32")))  # fmt: skip
    module = ready(IRModule.from_expr(Function([x], Tuple(counted))))
    for rows in (1, 5, 8):
        module.run(x=values(rows, 4))
        np.testing.assert_array_equal(module.get_output(0).numpy(), np.full(4, rows))
        assert module.get_output(1).numpy() == 6 * rows


def test_a_size_inside_a_kernel_that_no_input_tells_is_refused():
    y = var("y", 4)
    main = Function([y], relay.add(y, relay.sum(relay.full(relay.const(2.0), (N,), "float32"))))
    with pytest.raises(LoweringError, match="no input has the dimension n"):
        relay.build(IRModule.from_expr(main), target="llvm")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_open_number_of_boxes_is_ranked_and_chosen_from(target):
    n = Dim("n", 1, 40)
    scores, boxes = var("scores", 2, 3, n), var("boxes", 2, n, 4)
    rows, count = relay.vision.all_class_non_max_suppression(boxes, scores, 5, 0.3, 0.2, limit=5)
    every, _ = relay.vision.all_class_non_max_suppression(boxes, scores, 99, 0.5, 0.1)
    ranked = relay.topk(scores, 0, -1, "both", False, "int64")
    results = (rows, count, every, ranked[0], ranked[1], relay.argsort(scores, 0),
               relay.sort(scores), relay.topk(scores, 2, 1, "values"))  # fmt: skip
    mod = IRModule.from_expr(Function([boxes, scores], Tuple(results)))
    module = ready(mod, target)
    rng = np.random.default_rng(9)
    for size in (1, 2, 7, 40, 13):
        given = {
            "scores": rng.uniform(0, 1, (2, 3, size)).astype(np.float32),
            "boxes": rng.uniform(0, 2, (2, size, 4)).astype(np.float32),
        }
        module.run(**given)
        for i, want in enumerate(interpret(mod, **given)):
            np.testing.assert_array_equal(module.get_output(i).numpy(), want)
