"""Costs of kernels, limits of a device, and the profile that holds one against the other."""

import numpy as np
import pytest

import slipway
from slipway import relay, rpc
from slipway.cli.connection import Connection
from slipway.cli.inspect.profile import measure
from slipway.cli.inspect.profile_table import print_profile
from slipway.compiler.cost import kernel_cost
from slipway.compiler.relay_build import kernel_graph
from slipway.contrib import graph_executor
from slipway.inspect.limits import SIZES, Level, Limits, Probes, fma_loop, level_names
from slipway.inspect.profile import (
    ModelProfile,
    OperatorProfile,
    profile_model,
)
from slipway.inspect.traffic import Traffic, traffic_of
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.op_registry import span
from slipway.relay.types import TensorType
from slipway.runtime.artifact import metadata_of, open_artifact
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.target import Target
from slipway.transform.context import PassContext


def module_of(result):
    return IRModule.from_expr(result.as_function())


def costs_of(result):
    with PassContext(disabled_pass=["AlterOpLayout"]):
        graph = kernel_graph(module_of(result), Target("llvm"))
    return [kernel_cost(f) for f in graph.kernels.values()]


def test_a_convolution_with_its_epilogue():
    x = relay.var("x", shape=(1, 8, 10, 10))
    w = relay.const(np.ones((4, 8, 3, 3), np.float32))
    (cost,) = costs_of(relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3))))
    out = 4 * 8 * 8
    assert cost.flops == 2 * out * 8 * 9 + out
    assert cost.bytes == 4 * (8 * 10 * 10 + 4 * 8 * 9 + out)


def test_a_lookup_reads_what_it_gives():
    table, rows = relay.var("t", shape=(1000, 16)), relay.var("i", shape=(5,), dtype="int64")
    (cost,) = costs_of(relay.take(table, rows, 0))
    assert cost.bytes == 5 * 16 * 4 * 2 + 5 * 8


def test_slices_of_one_tensor_read_it_once():
    x = relay.var("x", shape=(8, 4))
    parts = [relay.strided_slice(x, [i], [8], axes=[0]) for i in (0, 1)]
    (cost,) = costs_of(relay.add(relay.sum(parts[0]), relay.sum(parts[1])))[-1:]
    assert cost.bytes <= 4 * (32 + 32)


def test_winograds_own_multiply_adds():
    """14x14 in 16 tiles of 4x4: 36 products for each, and two transforms by 12 steps each."""
    x, w = relay.var("x", shape=(1, 2, 14, 14, 8)), relay.var("w", shape=(3, 6, 6, 2, 8, 16))
    conv = relay.nn.contrib_conv2d_winograd_nchwc(x, w, 1, "NCHW8c", "NCHW16c")
    cost = kernel_cost(relay.transform.InferType()(module_of(conv))["main"])
    assert cost.flops == 2 * 14 * 14 * 48 * 16 * 9
    assert cost.work == 2 * 16 * (36 * 16 * 48 + 12 * 12 * 16 + 10 * 12 * 48)


def test_bytes_take_a_quarter_of_a_lane():
    shapes = (1, 8, 8, 16), (1, 3, 3, 4, 16, 4)
    definition = op_registry.get("qnn.contrib_conv2d_packed")
    types = [TensorType(shape, "int8") for shape in shapes]
    out = TensorType((1, 6, 6, 16), "int32")
    assert definition.count_work(None, types, out) == definition.count_flops(None, types, out) / 4


RATES = [(100e9, 50e9), (80e9, 40e9), (20e9, 10e9), (20e9, 10e9), (10e9, 5e9)]
NAMES = ("L2", "L2", "L3", "L3", "memory")
LIMITS = Limits(100e9, tuple(Level(n, *r) for n, r in zip(NAMES, RATES, strict=True)))


def traffic(reads, writes=()):
    """Bytes at distance 0, 256 KB, 1 MB, ..."""
    return Traffic(*(tuple(map(float, (*b, *[0] * (6 - len(b))))) for b in (reads, writes)))


def operator(seconds, work, passing):
    return OperatorProfile(
        "conv", ("conv", "relu"), "k", seconds, work, 0, LIMITS.bounds(work, passing)
    )


def test_the_limit_that_binds():
    bound = operator(2e-3, 100e6, traffic([1000]))
    assert (bound.binding, bound.of_limit) == ("FMA", pytest.approx(0.5))
    read = operator(1e-3, 0, traffic([0, 0, 0, 0, 0, 8_000_000]))
    assert (read.binding, read.of_limit) == ("memory", pytest.approx(0.8))
    copied = operator(1e-3, 0, traffic([0, 0, 20_000_000], [0, 20_000_000]))
    assert copied.binding == "L2"  # half a copy of 40 MB at 50 GB/s
    assert copied.of_limit == pytest.approx(0.8)
    cached = operator(1e-3, 0, traffic([80_000_000], [80_000_000]))
    assert cached.of_limit == 0  # no rate was measured so near: it is no limit
    report = ModelProfile((bound, copied, cached, operator(4e-3, 100e6, traffic([10]))), (LIMITS,))
    assert [report.is_far(o) for o in report.operators] == [False, False, True, True]
    assert report.share_at_limit() == pytest.approx(1e-3 / report.seconds)
    assert report.of_limits() == pytest.approx((1e-3 + 0.8e-3 + 1e-3) / 8e-3)


def test_what_comes_from_far_passes_the_nearer_levels():
    bounds = LIMITS.bounds(0, traffic([0, 0, 0, 0, 0, 10_000_000]))
    assert bounds == {
        "FMA": 0, "L2": pytest.approx(1 / 8000), "L3": pytest.approx(5e-4),
        "memory": pytest.approx(1e-3),
    }  # fmt: skip


def test_names_of_levels_are_those_of_the_caches_where_they_are_known():
    caches = {1: 48 << 10, 2: 2 << 20, 3: 32 << 20}
    assert level_names(caches) == (*["L2"] * 4, *["L3"] * 3, "memory")
    assert level_names(caches, threads=8) == ("L1", *["L2"] * 6, "memory")
    plain = ("256 KB", "512 KB", "1 MB", "2 MB", "4 MB", "8 MB", "16 MB", "64 MB")
    assert level_names({}) == plain


def graph(sizes, calls):
    """A graph of float32 parameters, and of operators by the numbers of what they read."""
    nodes = [GraphNode(f"p{i}", None, ()) for i in range(len(sizes))]
    nodes += [GraphNode(f"op{i}", "f", tuple((r, 0) for r in c)) for i, c in enumerate(calls)]
    everything = [*sizes, *(1 << 20 for _ in calls)]
    entries = tuple(GraphEntry((s // 4,), "float32", i) for i, s in enumerate(everything))
    inputs = tuple(range(len(sizes)))
    return GraphTables(tuple(nodes), entries, inputs, ((len(nodes) - 1, 0),))


def test_distance_is_what_is_touched_between_two_uses():
    mb = 1 << 20
    tables = graph([8 * mb, 2 * mb], [[0], [1, 2], [3]])
    found = traffic_of(tables, (mb // 4, mb, 4 * mb, 16 * mb, 64 * mb))
    # Each run touches 13 MB, and weights come around once in a run.  A result is read at once: its
    # last quarter is nearer than 256 KB, its beginning nearer than 1 MB.
    assert found["op0"].reads == (0, 0, 0, 8 * mb, 0, 0)
    assert found["op1"].reads == (mb / 4, 3 * mb / 4, 0, 2 * mb, 0, 0)
    assert found["op2"].reads == (mb / 4, 3 * mb / 4, 0, 0, 0, 0)
    assert sum(found["op2"].writes) == mb
    small = found["op0"].at_most(3 * mb)  # a lookup that reads two of the eight
    assert sum(small.reads) == 2 * mb


def test_the_trace_has_the_operators_one_after_another():
    report = ModelProfile(tuple(operator(s, 1, traffic([1])) for s in (2e-3, 1e-3)), (LIMITS,))
    events = [e for e in report.to_chrome_trace("m")["traceEvents"] if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in events] == [(0, 2000), (2000, 1000)]
    assert events[0]["args"]["nodes"] == ["conv", "relu"]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    x = relay.var("x", shape=(1, 16, 12, 12))
    w = relay.const(np.ones((16, 16, 3, 3), np.float32))
    with span("layer1.conv"):
        y = relay.nn.conv2d(x, w, padding=1, channels=16, kernel_size=(3, 3))
    with span("layer1.relu"):
        y = relay.nn.relu(y)
    with span("head.softmax"):
        y = relay.nn.softmax(relay.nn.batch_flatten(y))
    path = tmp_path_factory.mktemp("profile") / "model.tar"
    library = relay.build(module_of(y), target="llvm")
    library.export_library(str(path))
    library.export_library(str(path.with_suffix(".so")))
    return path


def test_a_library_says_as_much_of_its_operators_as_an_archive(artifact):
    told = metadata_of(artifact)
    assert told["operators"]
    of_the_archive_itself = {"kind", "sha256"}
    expected = {key: value for key, value in told.items() if key not in of_the_archive_itself}
    assert metadata_of(artifact.with_suffix(".so")) == expected


def names_of(report):
    return [name for o in report.operators for name in o.nodes]


def test_a_profile_speaks_of_the_models_nodes(artifact):
    module = graph_executor.GraphModule(
        slipway.runtime.load_module(str(artifact))["default"](slipway.cpu(0))
    )
    report = profile_model(module, metadata_of(artifact), number=2, repeat=1)
    assert {"layer1.conv", "layer1.relu", "head.softmax"} <= set(names_of(report))
    conv = next(o for o in report.operators if o.name == "layer1.conv")
    assert conv.flops >= 2 * 16 * 12 * 12 * 16 * 9
    assert conv.seconds > 0
    assert report.to_dict()["operators"][0]["seconds"] == report.operators[0].seconds


def profiled(artifact, connection):
    opened = open_artifact(artifact)
    probes = Probes(Target("llvm"), connection.device, connection.load_built)
    tables = GraphTables.from_binary(opened.graph)
    module = connection.graph_module(artifact)
    return profile_model(module, opened.metadata, probes, tables, number=2, repeat=2)


def check_limits(report):
    assert len(report.measured) == 2
    for limits in report.measured:
        assert limits.flops > 1e6
        assert all(level.read > 1e6 and level.copy > 1e6 for level in limits.levels)
    assert "head.softmax" in names_of(report)
    assert all(set(o.bounds) >= {"FMA"} for o in report.operators)
    assert any(0 < o.of_limit < 1.5 for o in report.operators)
    told = report.to_dict()
    assert [level["working_set_bytes"] for level in told["levels"]] == list(SIZES)
    assert max(o["least_seconds"]["FMA"] for o in told["operators"]) > 0


def test_limits_and_profile_of_this_machine(artifact, capsys):
    report = profiled(artifact, Connection(None, None, "", None))
    check_limits(report)
    print_profile(report, 1, "model")
    shown = capsys.readouterr().out
    assert "GFLOP/s of float32 multiply-adds (FMA)" in shown
    assert shown.count("GB/s copied") == len(SIZES)
    assert "Time by what binds: " in shown


def test_limits_and_profile_of_a_remote_device(artifact):
    server = rpc.Server("127.0.0.1", 0, use_popen=False, silent=True)
    try:
        report = profiled(artifact.with_suffix(".so"), Connection("127.0.0.1", server.port))
        check_limits(report)
        assert report.limits.levels[0].name == "256 KB"
    finally:
        server.terminate()


def test_what_is_not_known_is_not_shown(artifact, capsys):
    """An artifact of an older Slipway: times, but neither rates nor limits, and nothing marked."""
    path = artifact.with_name("older.so")
    content = artifact.with_suffix(".so").read_bytes()
    path.write_bytes(content.replace(b'"operators":', b'"operatorz":'))
    report = measure(path, Connection(), {}, limits=True, number=1, repeat=1)
    assert report.seconds > 0
    assert not report.measured
    assert not any(report.is_far(o) for o in report.operators)
    print_profile(report, None, "model")
    shown = capsys.readouterr().out
    assert "conv2d" in shown
    assert shown.count(" - ") >= 2 * len(report.operators)
    assert "◀" not in shown
    assert "does not say what its operators compute" in " ".join(shown.split())
    told = report.to_dict()
    assert "compile the model again" in told["missing"]
    for operator in told["operators"]:
        for name in ("flops", "bytes", "flops_per_second", "of_limit", "far_from_limit"):
            assert operator[name] is None
    assert "GFLOP" not in str(report.to_chrome_trace("m"))


def test_an_operator_of_unknown_cost_beside_others(capsys):
    known = operator(1e-3, 100e6, traffic([1000]))
    report = ModelProfile((known, OperatorProfile("x", (), "k", 1e-3, None, None)), (LIMITS,))
    print_profile(report, None, "model")
    assert capsys.readouterr().out.count("◀") == 1  # where the last line explains it
    assert report.to_dict()["operators"][1]["of_limit"] is None


def test_the_peak_loop_is_nothing_but_multiply_adds():
    target = Target("llvm -mcpu=x86-64-v3")
    text = slipway.build(*fma_loop(target), target=target).get_source("asm")
    assert text.count("vfmadd") >= 12
    body = text[text.index("vfmadd") : text.rindex("vfmadd")]
    assert "vmulps" not in body
