"""Steps of logs, carried out on schedules."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, te, topi
from slipway.auto_scheduler.loop_state import State, StateObject
from slipway.auto_scheduler.records import load_record_from_string
from slipway.errors import TuningError


def matmul_add(rows, inner, columns):
    a = te.placeholder((rows, inner), name="A")
    b = te.placeholder((inner, columns), name="B")
    c = te.placeholder((rows, columns), name="C")
    k = te.reduce_axis((0, inner), name="k")
    product = te.compute(
        (rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product",
        attrs={"layout_free_placeholders": [b]},
    )  # fmt: skip
    out = te.compute((rows, columns), lambda i, j: product[i, j] + c[i, j], name="out")
    return [a, b, c, out]


STEPS = {
    "tiles": [
        ["SP", 2, 0, 12, [2, 1, 3], 1], ["SP", 2, 4, 16, [1, 1, 8], 1], ["SP", 2, 8, 10, [5], 1],
        ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 4, 0, 0, 2], ["FSP", 4, 3, 1, 2],
        ["RE", 4, [0, 3, 1, 4, 2, 5]], ["CA", 2, 4, 3], ["FU", 4, [0, 1]], ["AN", 4, 0, 3],
        ["PR", 2, 0, "auto_unroll_max_step$8"], ["AN", 2, 9, 2], ["AN", 4, 4, 2],
    ],
    "cache write": [["CHW", 2, "local"], ["SP", 2, 2, 10, [2], 1], ["CA", 2, 3, 0]],
    "cache read": [["CHR", 1, "local", [2]], ["CA", 2, 3, 1], ["AN", 5, 1, 2]],
    "rfactor": [["SP", 2, 2, 10, [5], 1], ["RF", 2, 3, 2], ["CA", 2, 3, 1], ["AN", 2, 2, 1]],
    "outer lengths": [["SP", 4, 0, 12, [3], 0], ["CR", 2], ["AN", 4, 0, 3]],
    "a length that does not divide": [["SP", 4, 1, 16, [5], 1], ["AN", 4, 2, 2]],
    "fused splits": [
        ["SP", 4, 0, 12, [2, 3], 1], ["SP", 4, 3, 16, [2, 4], 1], ["FU", 2, [0, 1]],
        ["FFSP", 2, 0, [0, 1], 1, 1], ["AN", 2, 1, 2],
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def dag():
    return auto_scheduler.ComputeDAG(matmul_add(12, 10, 16))


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_replayed_schedule_computes_the_same(dag, steps):
    state = StateObject(dag, steps)
    schedule, args = dag.apply_steps_from_state(state)
    run = tvm.build(schedule, args, "llvm")
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal([int(n) for n in t.shape]).astype("float32") for t in args[:3])
    out = tvm.nd.array(np.zeros((12, 16), "float32"))
    run(*map(tvm.nd.array, (a, b, c)), out)
    np.testing.assert_allclose(out.numpy(), a @ b + c, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_the_python_of_a_state_makes_its_schedule(dag, steps):
    state = StateObject(dag, steps)
    text = dag.print_python_code_from_state(state)
    schedule, args = dag.apply_steps_from_state(state)
    names = {t.name: t for op in dag.ops for t in op.outputs}
    fresh = te.create_schedule([op for op in dag.outputs])
    exec(text, {"s": fresh, "te": te, **names})
    lowered = [str(tvm.lower(s, args, simple_mode=True)) for s in (schedule, fresh)]
    assert lowered[0] == lowered[1]


def test_stages_are_numbered_as_in_classic_logs(dag):
    assert [op.name for op in dag.ops] == ["A", "B", "product", "C", "out"]
    data = te.placeholder((1, 3, 8, 8), name="data")
    weight = te.placeholder((4, 3, 3, 3), name="weight")
    conv = topi.nn.conv2d_nchw(data, weight, 1, 1, 1)
    found = auto_scheduler.ComputeDAG([data, weight, topi.nn.relu(conv)])
    kinds = [type(op).__name__[0] for op in found.ops]
    assert kinds == ["P", "C", "P", "C", "C"]  # data, padded, weight, convolution, relu


def test_a_state_knows_its_loops(dag):
    state = dag.get_init_state()
    out = dag.ops[-1]
    i, j = state[out].iters
    assert i.range.extent == 12
    outer, inner = state.split(out, i, [4])
    assert (outer.range.extent, inner.range.extent) == (3, 4)
    state.reorder(out, [outer, j, inner])
    fused = state.fuse(out, [outer, state[out].iters[1]])
    assert fused.range.extent == 48
    marked = state.parallel(out, fused)
    assert marked == state[out].iters[0]
    assert marked.annotation == State.ANNOTATION_TRANS_TABLE["parallel"]
    product = dag.ops[2]
    state.compute_at(product, out, state[out].iters[1])
    assert state[product].compute_at == 2
    assert state[product].iters[0].range is None
    known = dag.infer_bound_from_state(state)
    assert [int(n.range.extent) for n in known[product].iters] == [1, 1, 10]
    cache = state.cache_write(product, "local")
    assert state[cache].op.name == "product.local"
    assert state.transform_steps[-1] == ["CHW", 2, "local"]
    assert state.copy() == state


def test_a_copy_takes_the_stages_and_loops_of_the_state_that_it_is_of(dag):
    """Scripts make several schedules from one, with what they held of it."""
    product, out = dag.tensors[-1].op.input_tensors[0], dag.tensors[-1]
    state = dag.get_init_state()
    cache = state.cache_write(product, "local")
    outer, _ = state.split(cache, state[cache].iters[2], [5])
    copies = [state.copy(), state.copy().copy()]
    for one in copies:
        assert one[cache].op.name == "product.local"
        one.unroll(cache, outer)
        one.split(out, state[out].iters[1], [4])
        assert one[cache].iters[2].annotation != 0
    assert copies[0] == copies[1] != state
    bounded = dag.infer_bound_from_state(state)
    assert [int(loop.range.extent) for loop in bounded[cache].iters] == [12, 16, 2, 5]
    assert state[cache].iters[2].annotation == 0
    with pytest.raises(TuningError, match="is no loop of the stage 'out'"):
        copies[0].split(out, outer, [2])


def test_operations_are_counted_on_elements_only(dag):
    assert dag.flop_ct == 2 * 12 * 10 * 16 + 12 * 16
    a = te.placeholder((8, 8), name="a")
    padded = topi.nn.pad(a, [1, 1])
    assert auto_scheduler.ComputeDAG([a, padded]).flop_ct == 0
    said = te.compute((8,), lambda i: a[i, i], name="said", attrs={"FLOP": 1234})
    assert auto_scheduler.ComputeDAG([a, said]).flop_ct == 1234


BAD_STEPS = (
    ["SP", 9, 0, 12, [2], 1], ["SP", 2, 7, 12, [2], 1], ["XX", 2], ["RE", 2, [0, 0, 1]],
    ["FU", 2, [0, 2]], ["AN", 2, 0, 99], ["FSP", 4, 0, 3, 1], ["SP", 2, 0, 12, "ab", 1], [],
    ["CHR", 1, "local", [17]], ["AN", 2, 0, 11],
)  # fmt: skip


@pytest.mark.parametrize("step", BAD_STEPS, ids=str)
def test_a_step_that_does_not_fit_is_refused(dag, step):
    with pytest.raises(TuningError):
        dag.replay([step])


BAD_GRAPHS = {
    "no tensors": (lambda: [], "is empty"),
    "no tensor": (lambda: [3], "got 3"),
    "axes of one name": (lambda: _one_name(), "called 'r'"),
    "a scan": (lambda: _scan(), "write it as te.compute"),
}


def _one_name():
    a = te.placeholder((4, 4), name="a")
    r = te.reduce_axis((0, 2), name="r")
    q = te.reduce_axis((0, 2), name="r")
    return [a, te.compute((4,), lambda i: te.sum(a[i, r + q], axis=[r, q]), name="b")]


def _scan():
    steps = te.placeholder((3, 4), name="steps")
    state = te.placeholder((3, 4), name="state")
    first = te.compute((1, 4), lambda _, i: steps[0, i], name="first")
    update = te.compute((3, 4), lambda t, i: state[t - 1, i] + steps[t, i], name="update")
    return [steps, te.scan(first, update, state)]


@pytest.mark.parametrize(("make", "words"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_graph_that_cannot_be_searched_is_refused(make, words):
    with pytest.raises(TuningError, match=words):
        auto_scheduler.ComputeDAG(make())


def test_a_line_of_a_classic_log_is_read():
    line = {
        "i": [['["f", 1, 2]', "llvm -keys=cpu -mcpu=core-avx2", [8, 64, 64, 0, 0, 0, 0, 0], "", 2],
              [[], STEPS["tiles"]]],
        "r": [[0.25, 0.75], 0, 0.3, 1607112214], "v": "v0.5",
    }  # fmt: skip
    inp, result = load_record_from_string(json.dumps(line))
    assert inp.task.workload_key == '["f", 1, 2]'
    assert inp.task.target.mcpu == "core-avx2"
    assert inp.state.transform_steps == STEPS["tiles"]
    assert result.costs == [0.25, 0.75]
    assert result.verified


def test_results_that_a_script_made_come_back_and_the_fastest_is_found(dag, tmp_path):
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="own", target="llvm")
    states = [StateObject(dag, steps) for steps in list(STEPS.values())[:3]]
    inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
    results = [auto_scheduler.MeasureResult([cost], 0, "", 0.5, 1.0) for cost in (3.0, 1.0, 2.0)]
    log = str(tmp_path / "own.json")
    auto_scheduler.save_records(log, inputs, results)
    assert [result for _, result in auto_scheduler.load_records(log)] == results
    best, _ = auto_scheduler.load_best_record(log)
    assert best.state.transform_steps == states[1].transform_steps
    auto_scheduler.save_records(log, inputs[2:], [results[1]._replace(costs=[0.5], verified=False)])
    best, _ = auto_scheduler.load_best_record(log)
    assert best.state.transform_steps == states[1].transform_steps


def test_a_line_of_a_log_from_elsewhere_is_replayed_by_hand():
    """What notebooks do with a published log: recover the input, apply its steps, build."""

    @auto_scheduler.register_workload(f"{__name__}.gemm")
    def gemm(rows, inner):
        x, w = te.placeholder((rows, inner), name="x"), te.placeholder((24, inner), name="w")
        return [x, w, topi.nn.dense(x, w)]

    steps = [
        ["SP", 2, 0, 64, [2, 1, 1], 1], ["SP", 2, 4, 24, [2, 2, 2], 1], ["SP", 2, 8, 48, [16], 1],
        ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FU", 2, [0, 1, 2]], ["AN", 2, 0, 3],
        ["PR", 2, 0, "auto_unroll_max_step$64"], ["AN", 2, 7, 2],
    ]  # fmt: skip
    key = json.dumps([f"{__name__}.gemm", 64, 48])
    line = {"i": [[key, "llvm -keys=cpu -link-params=0", [32] * 8, "", 1, []], [[], steps]],
            "r": [[0.0002], 0, 1.2, 1629555483], "v": "v0.6"}  # fmt: skip
    inp, _ = load_record_from_string(json.dumps(line))
    inp = auto_scheduler.measure.recover_measure_input(inp, rebuild_state=True)
    assert [loop.length for loop in inp.state.stages[2].iters][-1] == 2
    schedule, args = inp.task.compute_dag.apply_steps_from_state(inp.state)
    x, w = (np.random.default_rng(0).random(shape, "float32") for shape in ((64, 48), (24, 48)))
    out = tvm.nd.empty((64, 24))
    tvm.build(schedule, args, "llvm")(tvm.nd.array(x), tvm.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), x @ w.T, rtol=1e-4)


def test_a_line_whose_computation_is_not_registered_says_so():
    line = {"i": [['["nobodys", 1]', "llvm", [8] * 8, "", 2], [[], []]], "r": [[1.0], 0, 1, 1]}
    inp, _ = load_record_from_string(json.dumps({**line, "v": "v0.6"}))
    with pytest.raises(TuningError, match="'nobodys'"):
        auto_scheduler.recover_measure_input(inp)
