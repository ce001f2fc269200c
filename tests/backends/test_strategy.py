"""Strategies with their knobs: chosen, forced, searched; every legal choice gives the numbers."""

import dataclasses
import json
from itertools import islice

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.choices import RecordsError, record_of
from slipway.backends.primitive import schedule_primitive
from slipway.backends.strategy import Knobs, Problem, applicable, registered, strategies
from slipway.compiler.kernels import kernel_key
from slipway.errors import FileError, ScheduleError
from slipway.relay import op_registry
from slipway.target import Target
from slipway.tuning.space import candidate_of

LLVM = Target("llvm -mcpu=x86-64-v3")


def dense(rows=5, depth=24, units=40):
    x, w = relay.var("x", shape=(rows, depth)), relay.var("w", shape=(units, depth))
    return relay.nn.dense(x, w).as_function().with_attr("Primitive", 1)


def run(function, target=LLVM, **config):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.checked_type.shape).astype("float32") for p in function.params]
    with tvm.transform.PassContext(opt_level=3, config=config):
        module = tvm.IRModule.from_expr(relay.Function(function.params, function.body))
        graph = relay.create_executor("graph", module, tvm.cpu(), target).evaluate()
        return graph(*arrays).numpy(), arrays


def choice_of(function, target=LLVM, **config):
    with tvm.transform.PassContext(config=config):
        return schedule_primitive(function, target).choice


def test_the_default_is_the_first_candidate():
    choice = choice_of(dense())
    assert choice.strategy.name == "dense.tile"
    assert next(choice.strategy.candidates(choice.problem)) == choice.knobs
    assert choice.cycles > 0


def test_a_strategy_and_its_knobs_can_be_forced():
    want = {"strategy": "dense.tile", "rows": 2, "vectors": 1}
    choice = choice_of(dense(), **{"schedules.force": {"nn.dense": want}})
    assert (choice.knobs.rows, choice.knobs.vectors) == (2, 1)
    got, (x, w) = run(dense(), **{"schedules.force": {"nn.dense": want}})
    np.testing.assert_allclose(got, x @ w.T, rtol=1e-5, atol=1e-5)


def test_what_is_forced_changes_the_key_of_the_kernel():
    plain = kernel_key(dense(), LLVM)
    force = {"schedules.force": {"nn.dense": {"strategy": "dense.tile", "rows": 2}}}
    with tvm.transform.PassContext(config=force):
        assert kernel_key(dense(), LLVM) not in ("", plain)


@pytest.mark.parametrize(
    ("want", "words"),
    [
        ("dense.til", "the strategy 'dense.til' does not apply.*Did you mean 'dense.tile'"),
        (
            {"strategy": "dense.tile", "rosw": 2},
            "no knob 'rosw'.*Did you mean 'rows'.*It has: rows",
        ),
        ({"strategy": "dense.tile", "rows": 99}, "the knob rows of dense.tile cannot be 99"),
        (7, "takes a strategy's name"),
    ],
)
def test_what_cannot_be_forced_is_an_error(want, words):
    with pytest.raises(ScheduleError, match=words):
        choice_of(dense(), **{"schedules.force": {"nn.dense": want}})


def test_a_wish_for_no_operator_is_an_error():
    with pytest.raises(ScheduleError, match=r"names 'nn.dens', which is no operator. Did you mean"):
        choice_of(dense(), **{"schedules.force": {"nn.dens": "dense.tile"}})


@pytest.mark.parametrize(
    "wish",
    [
        {"nn.conv2d": {"strategy": "micro.direct", "unrolled": 2}},  # another backend's
        {"nn.softmax": {"lanes": 4}},  # of whichever strategy there is
        {"exp": "loops.elementwise"},  # of the operator's pattern
        {"layout:nn.conv2d": {"strategy": "winograd", "tile": 2}, "written:nn.conv2d": "loops"},
    ],
)
def test_a_wish_for_an_operator_that_is_not_there_changes_nothing(wish):
    assert choice_of(dense(), **{"schedules.force": wish}).knobs == choice_of(dense()).knobs


@pytest.mark.parametrize(
    ("op", "want", "words"),
    [
        ("nn.contrib_dense_pack", "dense_pack.til", "no backend has. Did you mean 'dense_pack.til"),
        (
            "nn.conv2d",
            {"strategy": "micro.direct", "unroled": 2},
            "micro.direct has not.*'unrolled",
        ),
        ("nn.softmax", {"lines": 2}, "'lines', which none of its strategies has. Did.*'lanes'"),
        ("nn.softmax", {"lanes": 2, "tile": 1}, "the knob 'tile'"),
        ("layout:nn.conv2d", "winogradd", "for layout:nn.conv2d.*Did you mean 'winograd'"),
        (
            "layout:nn.conv2d",
            {"strategy": "blocked", "reads": 4},
            "knob 'reads', which blocked has",
        ),
        ("written:qnn.conv2d_nhwc", "dps", "Did you mean 'dsp'"),
        ("exp", 7, "takes a strategy's name"),
    ],
)
def test_a_wish_that_no_strategy_could_fulfil_is_an_error(op, want, words):
    with pytest.raises(ScheduleError, match=words):
        choice_of(dense(), **{"schedules.force": {op: want}})


def test_the_names_of_layouts_and_families_are_those_that_there_are():
    from slipway.backends.choices import LAYOUT, PREFIXED, WRITTEN
    from slipway.backends.cpu.lowering.layout_wish import LayoutWish
    from slipway.backends.micro.kernels import library, wish

    assert set(PREFIXED[WRITTEN]) == {*library._FILES, wish.LOOPS}
    knobs = {f.name for f in dataclasses.fields(LayoutWish)} - {"strategy"}
    assert {k for names in PREFIXED[LAYOUT].values() for k in names} == knobs


def test_every_strategy_tells_its_knobs():
    every = [entry for op in op_registry.load_ops() for entry in registered(op)]
    assert len(every) > 150
    ours = [entry for entry in every if entry.home.startswith("slipway.")]  # others may keep theirs
    assert not [entry.name for entry in ours if entry.knob_names is None]


def test_a_record_counts_for_its_problem_alone(tmp_path):
    choice = choice_of(dense(), **{"schedules.force": {"nn.dense": {"rows": 3, "vectors": 2}}})
    path = tmp_path / "records.json"
    path.write_text(json.dumps(record_of(choice)) + "\n")
    config = {"schedules.records": str(path)}
    assert choice_of(dense(), **config).knobs == choice.knobs
    assert choice_of(dense(rows=6), **config).knobs == choice_of(dense(rows=6)).knobs
    with tvm.transform.PassContext(config=config):
        first = kernel_key(dense(), LLVM)
        path.write_text("\n")
        assert kernel_key(dense(), LLVM) != first


def test_the_best_trial_of_a_log_counts_that_was_verified(tmp_path):
    made = [
        record_of(choice_of(dense(), **{"schedules.force": {"nn.dense": {"rows": rows}}}))
        for rows in (1, 2, 3)
    ]
    scores = [(0.9, True), (0.5, False), (1.4, True)]  # the fastest was wrong, the last one slow
    trials = [
        {**record, "result": [[1.0], 0, 1.0, 1.0], "score": score, "verified": verified}
        for record, (score, verified) in zip(made, scores, strict=True)
    ]
    path = tmp_path / "log.json"
    path.write_text("".join(json.dumps(trial) + "\n" for trial in trials))
    assert choice_of(dense(), **{"schedules.records": str(path)}).knobs.rows == 1
    path.write_text(path.read_text() + json.dumps(made[1]) + "\n")  # a choice, not a trial
    assert choice_of(dense(), **{"schedules.records": str(path)}).knobs.rows == 2


def test_a_record_may_have_the_name_that_a_strategy_had_before(tmp_path):
    for op, name in (("conv2d", "conv_pairs"), ("dense", "dense_pairs")):
        made = candidate_of(f"{name}.squares", {"rows": 2})
        known = {entry.name for entry in registered(f"nn.contrib_{op}_pairs")}
        assert made.strategy in known
        assert f"{name}.squares" not in known
    record = record_of(choice_of(dense())) | {"strategy": "dense_pairs.squares", "knobs": {}}
    path = tmp_path / "records.json"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(
        ScheduleError, match=r"'dense_pairs\.mmla' does not apply to this nn\.dense"
    ):
        choice_of(dense(), **{"schedules.records": str(path)})


@pytest.mark.parametrize("line", ["{", "[1]", '{"op": 1}', '{"op": "a", "attrs": 1, "inputs": 3}'])
def test_a_broken_record_is_named(tmp_path, line):
    path = tmp_path / "records.json"
    path.write_text("\n" + line)
    with pytest.raises(ScheduleError, match="line 2: this is no record"):
        choice_of(dense(), **{"schedules.records": str(path)})
    with pytest.raises(ScheduleError, match="cannot be read"):
        choice_of(dense(), **{"schedules.records": str(tmp_path / "none")})


def conv(channels=8, filters=32, size=7, window=3, stride=1):
    x = relay.var("x", shape=(1, channels, size, size))
    weight = np.random.default_rng(1).standard_normal((filters, channels, window, window))
    w = relay.const(weight.astype("float32") / 8)
    return relay.nn.conv2d(x, w, strides=(stride, stride), padding=(window // 2,) * 2)


def volume_conv(channels, frames, size):
    x = relay.var("x", shape=(1, channels, frames, size, size))
    weight = np.random.default_rng(1).standard_normal((channels, channels, 3, 3, 3))
    return relay.nn.conv3d(x, relay.const(weight.astype("float32") / 8), padding=(1, 1, 1))


def product(rows, depth, columns):
    x, y = relay.var("x", shape=(2, rows, depth)), relay.var("y", shape=(2, depth, columns))
    return relay.nn.batch_matmul(x, y, transpose_b=False)


def packed_dense():
    w = np.random.default_rng(2).standard_normal((48, 20)).astype("float32")
    return relay.nn.dense(relay.var("x", shape=(9, 20)), relay.const(w))


def attention():
    q, k, v = (relay.var(n, shape=(1, 9, 2, 8)) for n in "qkv")
    return relay.nn.attention(q, k, v)


SEARCHED = {
    "nn.contrib_conv2d_nchwc": lambda: conv(window=1),
    "nn.contrib_conv2d_winograd_nchwc": lambda: conv(32, 32, 14),
    "nn.contrib_conv3d_winograd_nchwc": lambda: volume_conv(32, 3, 14),
    "nn.contrib_depthwise_conv2d_nchwc": lambda: relay.nn.conv2d(
        relay.var("x", shape=(1, 16, 9, 9)),
        relay.const(np.random.default_rng(3).standard_normal((16, 1, 3, 3)).astype("float32")),
        padding=(1, 1),
        groups=16,
    ),
    "nn.contrib_dense_pack": packed_dense,
    "nn.batch_matmul": lambda: product(7, 12, 20),
    "nn.attention": attention,
}


@pytest.mark.parametrize("op", SEARCHED)
def test_every_legal_choice_gives_the_same_numbers(op):
    """Some candidates of each strategy, spread over its space, against the default's result."""
    body = SEARCHED[op]()
    module = tvm.IRModule.from_expr(body.as_function())
    main = relay.transform.InferType()(module)["main"]
    wanted, _ = run(main)
    tried = 0
    with tvm.transform.PassContext(opt_level=3):
        lowered = tvm.relay.transform.optimize(module, None, LLVM, layout_lanes=8)["main"]
    for kernel in {id(k): k for k in kernels_of(lowered)}.values():
        choice = choice_of(kernel)
        if choice is None or choice.problem.op != op:
            continue
        for strategy in applicable(choice.problem):
            every = list(islice(strategy.candidates(choice.problem), 400))
            for knobs in every[1 :: max(1, len(every) // 5)]:
                values = {f: getattr(knobs, f) for f in knobs.__dataclass_fields__}
                want = {"strategy": strategy.name, **values}
                got, _ = run(main, **{"schedules.force": {op: want}})
                np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4, err_msg=str(want))
                tried += 1
    assert tried >= 3


def kernels_of(function):
    from slipway.relay.visit import post_order

    for expr in post_order(function.body, into_functions=False):
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            yield expr.op


@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"])
def test_knobs_are_plain_values(target):
    """Each field of knobs is an int, bool or str, so that a record can hold it."""
    for op in op_registry.load_ops():
        for strategy in strategies(op, Target(target)):
            assert (strategy.default is None) == (strategy.space is None), strategy.name
    assert str(Knobs()) == ""
    assert Problem("a", None, (), (), Target(target)).reads_memory(0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "it is no object"),
        ('{"op": "nn.dense"}', "it has no 'attrs'"),
        ('{"input": [], "config": {}, "result": []}', "it is one of autotvm, .*apply_history_best"),
        ('{"i": [], "r": [], "v": "v0.6"}', "it is one of auto_scheduler, .*ApplyHistoryBest"),
        ("[" * 100_000, "it is nested too deep"),
        (b"\xff\xfe", "it is no text in UTF-8, from byte 0 on"),
    ],
)
def test_a_file_of_something_else_says_what_it_holds(tmp_path, line, reason):
    path = tmp_path / "records.json"
    path.write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(RecordsError, match=reason) as caught:
        choice_of(dense(), **{"schedules.records": str(path)})
    assert isinstance(caught.value, FileError)  # the command line's code for unreadable files
