"""The fuzzer of whole graphs finds what is planted, says it in few nodes, and knows every operator.

`python -m benchmarks fuzz_graphs` is the campaign itself.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fuzz_graphs import report
from benchmarks.fuzz_graphs.attempt import Options, attempt, options_of
from benchmarks.fuzz_graphs.campaign import isolated
from benchmarks.fuzz_graphs.draw import draw
from benchmarks.fuzz_graphs.families import MADE_BY_PASSES, NOT_DRAWN
from benchmarks.fuzz_graphs.graph import RULES, Graph, Node, evaluate, merged, results
from benchmarks.fuzz_graphs.open_sizes import REFUSED, SKIPPED, attempt_open
from benchmarks.fuzz_graphs.products import convolution
from benchmarks.fuzz_graphs.shrink import shrink
from benchmarks.fuzz_graphs.states import attempt_states
from benchmarks.fuzz_graphs.values import differs, leaf

from slipway import te
from slipway.relay import op_registry

HOST = Options("host")


def test_some_graphs():
    for seed in range(6):
        assert attempt(draw(seed), options_of(seed, "host")) == "", seed


@pytest.mark.parametrize("variant", ["empty", "bfloat16"])
def test_some_graphs_of_a_variant(variant):
    for seed in range(3):
        assert attempt(draw(seed, (2, 6), variant), options_of(seed, "host")) == "", seed


def test_a_variant_has_what_it_is_named_after():
    graphs = [draw(seed, variant="empty") for seed in range(24)]
    assert sum(any(v.exact.size == 0 for v in results(g)) for g in graphs) > 3
    graphs = [draw(seed, variant="bfloat16") for seed in range(12)]
    assert sum(any(v.dtype == "bfloat16" for v in results(g)) for g in graphs) > 9


def test_a_seed_is_always_the_same_graph():
    for seed in range(20):
        one, other = draw(seed), draw(seed)
        assert [n.op for n in one.nodes] == [n.op for n in other.nodes]
        for a, b in zip(results(one), results(other), strict=True):
            np.testing.assert_array_equal(a.exact, b.exact)


def test_every_operator_is_drawn_or_says_why_not():
    unknown = {
        name
        for name in op_registry.load_ops()
        if name not in RULES and name not in NOT_DRAWN and not name.startswith(MADE_BY_PASSES)
    }
    assert not unknown, f"write a rule and a maker for {sorted(unknown)} in benchmarks/fuzz_graphs"
    assert not set(NOT_DRAWN) & set(RULES)


@pytest.mark.long
def test_all_rules_are_reached():
    drawn = {node.op for seed in range(3000) for node in draw(seed).nodes}
    assert not set(RULES) - drawn


def array(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


def small_graph():
    return Graph(
        (
            Node("input", array=array(3, 7, 5)),
            Node("const", array=array(5, 5)),
            Node("nn.dense", (0, 1), {"units": 5, "out_dtype": ""}),
            Node("tanh", (2,)),
            Node("nn.relu", (3,)),
            Node("transpose", (4,), {"axes": (1, 0, 2)}),
            Node("nn.softmax", (5,), {"axis": -1}),
            Node("sum", (4,), {"axis": (1,), "keepdims": False, "exclude": False}),
        ),
        (6, 7),
    )


def plant(monkeypatch, name, element):
    """Make an operator compute something else."""

    def compute(attrs, inputs, out_types):
        return [te.compute(out_types[0].shape, lambda *i: element(inputs[0], i), name="planted")]

    monkeypatch.setattr(op_registry.get(name), "compute_function", compute)
    monkeypatch.setenv("SLIPWAY_KERNEL_CACHE", "0")


def test_a_wrong_operator_is_found_and_shrunk(monkeypatch, tmp_path):
    graph = small_graph()
    assert attempt(graph, HOST) == ""
    wrong = te.const(1.0001, "float32")
    plant(monkeypatch, "nn.relu", lambda x, i: te.max(x(*i), te.const(0, "float32")) * wrong)
    problem = report.problem_of(graph, HOST)
    assert "output 1 (sum)" in problem or "output 0" in problem
    said = report.save("planted", graph, HOST, problem, tmp_path)
    assert "planted.py: 2 nodes: output 0 (nn.relu)" in said
    # The script stands alone; the operator is right in the process that it starts.
    done = subprocess.run(
        [sys.executable, str(tmp_path / "planted.py")], capture_output=True, text=True, check=True
    )
    assert "0 of 1 elements differ" in done.stdout


def test_a_script_writes_the_functions_of_loops_and_branches(tmp_path, capsys):
    def within(op):
        return next(g for g in map(draw, range(400)) if any(n.op == op for n in g.nodes))

    graph = merged([within(op) for op in ("scan", "branch", "while_loop")])
    path = tmp_path / "control.py"
    path.write_text(report.script(graph, HOST, "control", ""))
    np.savez(path.with_suffix(".npz"), **report.arrays_of(graph))
    exec(compile(path.read_text(), path, "exec"), {"__file__": str(path)})
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("output ")]
    assert len(said) == len(graph.outputs)
    assert all(": 0 of " in line for line in said)


@pytest.mark.parametrize("step", [1, -1], ids=["behind", "before"])
def test_a_read_beside_a_tensor_ends_the_child(monkeypatch, step):
    graph = Graph((Node("input", array=array(37)), Node("nn.relu", (0,))), (1,))

    def element(x, i):  # the neighbour is read, and changes nothing
        neighbour = te.min(x(i[0] + step), te.const(-5, "float32"))
        return te.max(te.max(x(*i), te.const(0, "float32")), neighbour)

    plant(monkeypatch, "nn.relu", element)
    (found,) = isolated(lambda _: attempt(graph, HOST), [5])
    assert found.seed == 5
    assert "SIGSEGV" in found.problem


def test_children_end_and_the_next_seed_goes_on():
    import os
    import signal as signals

    def judge(seed):
        if seed == 1:
            os.kill(os.getpid(), signals.SIGSEGV)
        if seed == 2:
            raise ValueError("two")
        return ""

    found = [f.problem for f in isolated(judge, range(4))]
    assert found[0] == found[3] == ""
    assert "SIGSEGV" in found[1]
    assert found[2].startswith("ValueError: two")


def test_no_answer_is_said_of_what_computes_and_not_of_what_waits_for_a_processor():
    def judge(seed):
        if seed == 1:
            while True:
                pass
        time.sleep(0.5)
        return ""

    problems = [f.problem for f in isolated(judge, range(3), limit_s=0.2)]
    assert problems == ["", "no answer within 0 s", ""]


def test_shrinking_reaches_one_operator():
    small = shrink(small_graph(), lambda g: any(n.op == "tanh" for n in g.nodes))
    assert [n.op for n in small.nodes] == ["input", "tanh"]
    assert small.nodes[0].array.size == 1


def test_graphs_of_several_threads_have_their_own_results():
    graphs = [draw(3), draw(4)]
    both = results(merged(graphs))
    for got, want in zip(both, [r for g in graphs for r in results(g)], strict=True):
        np.testing.assert_array_equal(got.exact, want.exact)


def test_tensors_without_elements():
    """A dimension of 0 is a dimension: nothing, or what a reduction of nothing gives."""
    every = {"axis": (0,), "keepdims": False, "exclude": False}
    window = {
        "strides": (1, 1), "padding": (1, 1, 1, 1), "dilation": (1, 1), "groups": 1, "channels": 4,
        "kernel_size": (3, 3), "data_layout": "NCHW", "kernel_layout": "OIHW", "out_dtype": "",
    }  # fmt: skip
    calls = [
        ("nn.relu", {}, (0, 3)),
        ("add", {}, (0, 3), (3,)),
        ("nn.dense", {"units": 4, "out_dtype": ""}, (0, 5), (4, 5)),
        ("nn.dense", {"units": 4, "out_dtype": ""}, (2, 0), (4, 0)),
        ("concatenate", {"axis": 0}, (0, 3), (2, 3)),
        ("sum", every, (0, 3)),
        ("prod", every, (0, 3)),
        ("transpose", {"axes": (2, 0, 1)}, (0, 3, 2)),
        ("nn.softmax", {"axis": -1}, (0, 3)),
        ("nn.conv2d", window, (0, 3, 5, 5), (4, 3, 3, 3)),
        ("nn.pad", {"pad_width": ((1, 1), (0, 0)), "pad_value": 1.0, "pad_mode": "constant"},
         (0, 3)),
        ("nn.layer_norm", {"axis": -1, "epsilon": 1e-5}, (0, 3), (3,), (3,)),
        ("cumsum", {"axis": 0, "exclusive": False}, (0, 3)),
    ]  # fmt: skip
    graphs = []
    for op, attrs, *shapes in calls:
        leaves = [Node("input", array=array(*shape)) for shape in shapes]
        call = Node(op, tuple(range(len(leaves))), attrs)
        graphs.append(Graph((*leaves, call), (len(leaves),)))
    assert attempt(merged(graphs), HOST) == ""


def test_convolution_of_the_oracle():
    from scipy import signal  # a second, for every worker of a run

    x, w = array(1, 2, 9, 8, dtype="float64"), array(3, 2, 3, 2, dtype="float64")
    want = [sum(signal.correlate2d(x[0, c], k[c], "valid") for c in range(2)) for k in w]
    got = convolution(x, w, (1, 1), (0, 0, 0, 0), (1, 1), 1)
    np.testing.assert_allclose(got[0], want, atol=1e-12)


def test_differences_are_judged_by_the_bound():
    graph = Graph((Node("input", array=array(50)), Node("tanh", (0,))), (1,))
    value = evaluate(graph)[1]
    right = np.tanh(graph.nodes[0].array)
    assert differs(right, value) == ""
    assert differs(right * np.float32(1 + 1e-5), value)
    assert differs(right.astype("float64"), value).startswith("is float64")
    assert differs(np.array([1, 3]), leaf(np.array([1, 2]))).startswith("1 of 2 elements differ")


@pytest.mark.parametrize("attempt_kind", [attempt_open, attempt_states])
def test_some_graphs_of_open_sizes_and_with_states(attempt_kind):
    answers = [attempt_kind(seed, HOST) for seed in range(8)]
    assert all(a == "" or a.startswith((SKIPPED, REFUSED)) for a in answers), answers
    assert answers.count("") >= 4


def test_a_size_at_which_numbers_are_wrong_is_found(monkeypatch):
    from benchmarks.fuzz_graphs import open_sizes

    graph = Graph(
        (Node("input", array=np.full((4, 3), -1, np.float32)), Node("nn.relu", (0,))), (1,)
    )
    monkeypatch.setattr(open_sizes, "draw", lambda seed, operators: graph)
    assert attempt_open(0, HOST) == ""
    monkeypatch.setitem(RULES, "nn.relu", lambda attrs, x: x)
    assert attempt_open(0, HOST).startswith("output 0, run 0")


def test_a_state_that_becomes_something_else_is_found(monkeypatch):
    from benchmarks.fuzz_graphs import states

    graph = Graph(
        (
            Node("input", array=np.ones((3,), np.float32)),
            Node("input", array=np.full((3,), 2, np.float32)),
            Node("add", (0, 1)),
        ),
        (2,),
    )
    monkeypatch.setattr(states, "draw", lambda seed, operators: graph)
    assert attempt_states(0, HOST) == ""
    rule = RULES["add"]
    built = states.built

    def spoiled(*args, **options):
        factory = built(*args, **options)
        monkeypatch.setitem(RULES, "add", lambda attrs, x, y: rule(attrs, rule(attrs, x, y), y))
        return factory

    monkeypatch.setattr(states, "built", spoiled)
    assert attempt_states(0, HOST).startswith("step 0: ")
