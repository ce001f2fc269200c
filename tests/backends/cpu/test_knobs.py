"""Any legal knobs of any strategy give the reference's numbers, on shapes that fill no tile."""

import random
import re

import numpy as np
import pytest
from kernel_check import run, var

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.knobs import LoopKnobs, copied_elements, group_lanes, loop_knobs
from slipway.backends.primitive import schedule_primitive
from slipway.backends.strategy import applicable, strategies
from slipway.compiler.kernels import lower_kernel
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run as run_loops
from slipway.relay import op_registry
from slipway.relay.interpret import interpret
from slipway.target import Target

AVX2 = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"
SSE = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"
QUICK_IN_C = ("loops.elementwise", "loops.sums", "softmax.rows", "softmax.long", "norm.rows")


def pool(kind, *shape, layout="NCHW", **options):
    make = getattr(relay.nn, f"{kind}_pool2d")
    return make(
        var("x", *shape), pool_size=(3, 2), strides=(2, 1), layout=layout, padding=(1, 0, 0, 1)
    )


def resized(*shape, size):
    return relay.image.resize(var("x", *shape), size=size, method="linear")


def few_filters():
    return relay.nn.conv2d(var("x", 1, 5, 11, 29), var("w", 2, 5, 3, 3), padding=(1, 1))


# Strategy: a kernel that it applies to, with an epilogue where it takes one.
KERNELS = {
    "loops.elementwise": lambda: relay.tanh(var("x", 3, 7, 45) * var("y", 45) + var("z", 7, 1)),
    "loops.sums": lambda: relay.sum(var("x", 5, 331) * var("y", 331), axis=[1]),
    "pad.rows": lambda: relay.nn.pad(var("x", 5, 143), ((1, 0), (2, 3)), pad_mode="edge"),
    "tile.rows": lambda: relay.tanh(relay.tile(var("x", 5, 43), (2, 3))),
    "softmax.rows": lambda: relay.nn.softmax(var("x", 5, 43)),
    "softmax.long": lambda: relay.nn.softmax(var("x", 3, 371)),
    "norm.rows": lambda: relay.nn.layer_norm(var("x", 5, 139), var("g", 139), var("b", 139)),
    "pool.rows": lambda: pool("max", 1, 3, 13, 37),
    "pool.whole": lambda: pool("avg", 2, 3, 9, 11),
    "pool.window": lambda: relay.nn.relu(pool("max", 1, 9, 13, 16, layout="NHWC")),
    "pool.columns": lambda: relay.nn.relu(pool("max", 1, 9, 13, 16, layout="NHWC")),
    "resize.in_turn": lambda: resized(1, 2, 11, 23, size=(0, 0, 17, 41)),
    "resize.blocked": lambda: resized(1, 3, 7, 9, 8, size=(0, 0, 11, 15, 0)),
    "matmul.rows": lambda: relay.nn.batch_matmul(
        var("x", 2, 3, 19), var("y", 2, 19, 75), transpose_b=False
    ),
    "conv2d.positions": few_filters,
    "conv2d.depthwise": lambda: relay.nn.conv2d(
        var("x", 1, 5, 13, 37), var("w", 5, 1, 3, 3), padding=1, groups=5
    ),
    "batch_matmul.tile": lambda: relay.nn.batch_matmul(
        var("x", 2, 13, 19), var("y", 2, 19, 45), transpose_b=False
    ),
    "dense.tile": lambda: relay.nn.relu(relay.nn.dense(var("x", 7, 21), var("w", 37, 21))),
}


def problem_of(body, target):
    function = body.as_function().with_attr("Primitive", 1)
    return schedule_primitive(function, Target(target)).choice.problem


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [AVX2, SSE])
def test_knobs_drawn_from_the_space(name, target):
    draw_knobs(name, target, 2)


@pytest.mark.parametrize("name", QUICK_IN_C)
def test_knobs_in_c(name):
    draw_knobs(name, "c", 1)


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [AVX2, SSE, "c"])
def test_many_knobs(name, target):
    draw_knobs(name, target, 12)


def draw_knobs(name, target, count):
    """Compile and compare a kernel with `count` choices of a strategy's knobs."""
    body = KERNELS[name]()
    problem = problem_of(body, target)
    named = [s for s in applicable(problem) if s.name == name]
    if not named:
        assert target != AVX2, "its kernel must have it"
        pytest.skip(f"{name} does not apply to {target}")
    (strategy,) = named
    space, draw = strategy.space(problem), random.Random(f"{name} {target} {count}")
    assert strategy.cost is None or strategy.cost(problem, strategy.knobs_for(problem)) > 0
    for _ in range(count):
        knobs = {knob: draw.choice(list(values)) for knob, values in space.items()}
        force = {problem.op: {"strategy": name, **knobs}}
        with tvm.transform.PassContext(config={"schedules.force": force}):
            assert run(body, target) == name, knobs


def test_the_defaults_lie_in_the_spaces():
    for name, body in KERNELS.items():
        problem = problem_of(body(), AVX2)
        for strategy in applicable(problem):
            space, knobs = strategy.space(problem), strategy.knobs_for(problem)
            for knob, values in space.items():
                assert getattr(knobs, knob) in values, (name, strategy.name, knob)


def test_every_kernel_has_a_strategy_with_knobs():
    bodies = [
        relay.transpose(var("x", 9, 7)), relay.concatenate([var("x", 3), var("y", 4)], 0),
        relay.cumsum(var("x", 9)), relay.argmax(var("x", 3, 9), axis=1), relay.sort(var("x", 9)),
        relay.nn.global_avg_pool2d(var("x", 1, 3, 5, 5)), relay.split(var("x", 8), 2).astuple(),
    ]  # fmt: skip
    for body in bodies:
        function = body.as_function().with_attr("Primitive", 1)
        choice = schedule_primitive(function, Target(AVX2)).choice
        assert str(choice.knobs), body
        assert choice.cycles > 0


@pytest.mark.parametrize(
    ("want", "words"),
    [
        ({"strategy": "loops.elementwis"}, "Did you mean 'loops.elementwise'"),
        ({"goup": 1}, "no knob 'goup'. Did you mean 'group'"),
        ({"group": 3}, "the knob group of loops.elementwise cannot be 3 .* legal values are 0, 1"),
    ],
)
def test_the_general_strategies_refuse_what_they_have_not(want, words):
    with (
        tvm.transform.PassContext(config={"schedules.force": {"tanh": want}}),
        pytest.raises(ScheduleError, match=words),
    ):
        schedule_primitive(
            relay.tanh(var("x", 9)).as_function().with_attr("Primitive", 1), Target(AVX2)
        )


def test_knobs_reach_the_code():
    """Vectors, their number in a step, and tasks are what the knobs say."""

    def text(body, **knobs):
        op = problem_of(body, AVX2).op
        with tvm.transform.PassContext(config={"schedules.force": {op: knobs}}):
            function = body.as_function().with_attr("Primitive", 1)
            kernel = schedule_primitive(function, Target(AVX2))
            return str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))

    wide = relay.sqrt(var("x", 128, 512))
    assert "parallel" in text(wide)
    assert "parallel" not in text(wide, share_from=1 << 20)
    assert re.search(r"vectorized|ramp|:8|x8", text(wide))
    assert text(wide, group=0) != text(wide) != text(wide, unrolled=0)
    assert text(wide, group=4) != text(wide)
    rows = relay.sum(var("x", 9, 512), axis=[1])
    assert len({text(rows, sums=n) for n in (1, 2, 4, 8)}) == 4
    assert text(rows, steps=2) != text(rows, steps=4)


def test_groups_of_registers():
    riscv = Target("llvm -mtriple=riscv64-linux-gnu -mattr=+m,+f,+d,+v")
    assert loop_knobs(riscv).group == 4
    lanes = [group_lanes(riscv, dtype, 4) for dtype in ("float32", "float16", "int8")]
    assert len(set(lanes)) == 1
    assert (
        group_lanes(riscv, "float32", 0)
        == group_lanes(Target("llvm -mtriple=riscv64-linux-gnu"), "float32", 4)
        == 1
    )
    assert loop_knobs(Target(AVX2)) == LoopKnobs(1, 48, 1 << 16)
    assert np.dtype("float32").itemsize * group_lanes(Target(AVX2), "float32", 2) == 64


COUNTED = {
    "conv2d_nchwc.direct": lambda: relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 2, 9, 9, 8), var("w", 4, 2, 1, 1, 8, 8), data_layout="NCHW8c",
        kernel_layout="OIHW8i8o", out_layout="NCHW8c",
    ),
    "depthwise_nchwc.direct": lambda: relay.nn.contrib_depthwise_conv2d_nchwc(
        var("x", 1, 4, 9, 9, 8), var("w", 4, 1, 3, 3, 1, 8), padding=1, groups=32,
        data_layout="NCHW8c", kernel_layout="OIHW1i8o",
    ),
    "dense.tile": lambda: relay.nn.dense(var("x", 24, 64), var("w", 64, 64)),
    "attention.rows": lambda: relay.nn.attention(*(var(n, 1, 32, 2, 16) for n in "qkv")),
}  # fmt: skip
PRODUCTS = {
    "conv2d_nchwc.direct": 81 * 16 * 32,
    "depthwise_nchwc.direct": 81 * 9 * 32,
    "dense.tile": 24 * 64 * 64,
    "attention.rows": 2 * 32 * 32 * 32,
}


@pytest.mark.parametrize("name", COUNTED)
def test_predicted_cycles_lie_above_the_peak(name):
    """No kernel beats the units that multiply, nor is predicted at a tenth of them."""
    problem = problem_of(COUNTED[name](), AVX2)
    (strategy,) = (s for s in applicable(problem) if s.name == name)
    cycles = strategy.cost(problem, strategy.knobs_for(problem))
    peak = PRODUCTS[name] / (problem.target.core.fma_bits / 32)
    assert peak <= cycles <= 10 * peak


def test_every_strategy_with_knobs_has_a_cost():
    """Only a loop over kernels has none: it is what they cost."""
    for target in (AVX2, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"):
        without = {
            strategy.name
            for op in op_registry.load_ops()
            for strategy in strategies(op, Target(target))
            if strategy.default is not None and strategy.cost is None
        }
        assert without <= {"scan.kernels"}


def test_a_microcontroller_unrolls_the_steps_of_a_sum():
    """All legal steps give the same numbers; more of them are predicted to take fewer cycles."""
    body = relay.nn.relu(relay.nn.conv2d(var("x", 1, 3, 7, 5), var("w", 4, 3, 1, 4)))
    function, target = body.as_function().with_attr("Primitive", 1), Target("c -mcpu=cortex-m0")
    choice = schedule_primitive(function, target).choice
    assert (choice.strategy.name, str(choice.knobs)) == ("micro.direct", "unrolled=1")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.checked_type.shape).astype("float32") for p in function.params]
    wanted, cycles = interpret(function, *arrays), []
    legal = choice.strategy.space(choice.problem)["unrolled"]
    assert legal == [1, 2, 4]
    for unrolled in legal:
        force = {"nn.conv2d": {"strategy": "micro.direct", "unrolled": unrolled}}
        with tvm.transform.PassContext(config={"schedules.force": force}):
            cycles.append(schedule_primitive(function, target).choice.cycles)
            loops = lower_kernel("kernel", function, target)
        out = np.zeros(wanted.shape, "float32")
        run_loops(loops, *arrays, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
    assert sorted(cycles, reverse=True) == cycles


def test_a_scan_takes_what_its_kernels_take_in_every_step():
    def choice(steps, target):
        x, h = relay.var("x", shape=(1, 8)), relay.var("h", shape=(1, 8))
        made = relay.Function([h, x], relay.Tuple([relay.tanh(h + x), h * x]))
        xs, first = var("xs", steps, 1, 8), var("first", 1, 8)
        body = relay.scan(made, [first], [xs])
        function = tvm.IRModule.from_expr(body.as_function())
        inferred = relay.transform.InferType()(function)["main"].with_attr("Primitive", 1)
        return schedule_primitive(inferred, Target(target)).choice

    short, long = (choice(steps, AVX2) for steps in (3, 30))
    assert long.cycles == 10 * short.cycles > 0
    assert str(short.knobs) == "lanes=8"
    assert str(choice(3, SSE).knobs) == "lanes=4"


TWO_CORES = Target("llvm -mcpu=znver4 -num-cores=2")


def shares(x, body):
    """Whether the kernel of a graph is launched on several cores."""
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=TWO_CORES)
    lines = library.get_lib().get_source("asm").splitlines()
    return any("__slipway_parallel_launch(%rip)" in line for line in lines)


def test_what_is_copied_counts_in_vectors():
    sizes = [copied_elements(Target(f"llvm -mcpu={cpu}")) for cpu in ("znver4", "haswell")]
    arm = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert [*sizes, copied_elements(arm)] == [1 << 17, 1 << 16, 1 << 15]


@pytest.mark.parametrize(
    ("make", "few", "many"),
    [
        (relay.nn.relu, 100, 140),
        (lambda x: x + relay.nn.relu(x), 66, 90),
        (lambda x: relay.where(relay.less(x, relay.const(0.0)), x, x * x), 48, 66),
        (relay.exp, 30, 40),
        (lambda x: relay.sum(x, axis=2), 100, 140),
        (lambda x: relay.argmax(x, axis=1), 16, 40),
        (lambda x: relay.transpose(x, (0, 2, 1)), 60, 70),
        (relay.nn.softmax, 28, 36),
    ],
)
def test_cores_share_loops_that_take_longer_than_a_launch(make, few, many):
    for thousands, wanted in ((few, False), (many, True)):
        x = var("x", thousands, 16, 64)  # about a thousand elements each
        assert shares(x, make(x)) == wanted
