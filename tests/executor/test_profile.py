"""Costs of kernels, limits of a device, and the profile that holds one against the other."""

import numpy as np
import pytest

import slipway
from slipway import relay, rpc
from slipway.cli.connection import Connection
from slipway.contrib import graph_executor
from slipway.executor.cost import kernel_cost
from slipway.executor.limits import Limits, build_probes, measure_limits
from slipway.executor.profile import ModelProfile, OperatorProfile, metadata_of, profile_model
from slipway.executor.relay_build import kernel_graph
from slipway.ir.function import IRModule
from slipway.relay.op_registry import span
from slipway.target import Target


def module_of(result):
    return IRModule.from_expr(result.as_function())


def costs_of(result):
    graph = kernel_graph(module_of(result), Target("llvm"), blocked=False)
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


LIMITS = Limits(flops=100e9, bytes=10e9)


def operator(seconds, flops, size):
    return OperatorProfile(
        "conv", ("conv", "relu"), "k", seconds, flops, size,
        LIMITS.least_seconds(flops, size), LIMITS.binding(flops, size),
    )  # fmt: skip


def test_the_limit_that_binds():
    bound = operator(2e-3, 100e6, 1000)
    assert bound.binding == "FMA"
    assert bound.of_limit == pytest.approx(0.5)
    copied = operator(1e-3, 0, 8_000_000)
    assert copied.binding == "memory"
    assert copied.of_limit == pytest.approx(0.8)
    tiny = operator(1e-6, 0, 10)
    report = ModelProfile((bound, copied, tiny, operator(4e-3, 100e6, 10)), LIMITS)
    assert [report.is_far(o) for o in report.operators] == [False, False, False, True]
    assert report.share_near() == pytest.approx(1e-3 / report.seconds)


def test_the_trace_has_the_operators_one_after_another():
    report = ModelProfile((operator(2e-3, 1, 1), operator(1e-3, 1, 1)), LIMITS)
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
    relay.build(module_of(y), target="llvm").export_library(str(path))
    return path


def names_of(report):
    return [name for o in report.operators for name in o.nodes]


def test_a_profile_speaks_of_the_models_nodes(artifact):
    module = graph_executor.GraphModule(
        slipway.runtime.load_module(str(artifact))["default"](slipway.cpu(0))
    )
    report = profile_model(module, metadata_of(artifact), LIMITS, number=2, repeat=1)
    assert {"layer1.conv", "layer1.relu", "head.softmax"} <= set(names_of(report))
    conv = next(o for o in report.operators if o.name == "layer1.conv")
    assert conv.flops >= 2 * 16 * 12 * 12 * 16 * 9
    assert conv.seconds > 0
    assert report.to_dict()["operators"][0]["seconds"] == report.operators[0].seconds


def test_limits_and_profile_of_a_remote_device(artifact):
    server = rpc.Server("127.0.0.1", 0, use_popen=False, silent=True)
    try:
        connection = Connection("127.0.0.1", server.port)
        limits = measure_limits(Target("llvm"), connection.device, connection.load_built, repeat=1)
        assert limits.flops > 1e6
        assert limits.bytes > 1e6
        report = profile_model(
            connection.graph_module(artifact), metadata_of(artifact), limits, number=1, repeat=1
        )
        assert "head.softmax" in names_of(report)
        assert all(o.of_limit > 0 for o in report.operators if o.bytes)
    finally:
        server.terminate()


def test_the_peak_loop_is_nothing_but_multiply_adds():
    text = build_probes(Target("llvm -mcpu=x86-64-v3")).get_source("asm")
    assert text.count("vfmadd") >= 12
    body = text[text.index("vfmadd") : text.rindex("vfmadd")]
    assert "vmulps" not in body
