"""Parameters, graph tables and processor features: read, written, damaged."""

import platform

import numpy as np
import pytest

from slipway.errors import ArtifactError
from slipway.runtime import cpu_features
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import load_param_dict, read_params, save_param_dict

PARAMS = {
    "w": np.arange(6, dtype="float32").reshape(2, 3),
    "scalar": np.array(5, "int64"),
    "none": np.zeros((0, 4), "int8"),
    "ünï": np.array([True, False]),
}


def test_params_round_trip():
    data = save_param_dict(PARAMS)
    assert data[:8] == bytes.fromhex("b79c04054f8de5f7")
    for found in (read_params(data), {n: v.numpy() for n, v in load_param_dict(data).items()}):
        assert list(found) == list(PARAMS)
        for name, values in PARAMS.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype


def test_params_truncated_anywhere():
    data = save_param_dict(PARAMS)
    for size in range(len(data)):
        with pytest.raises(ArtifactError, match="parameters"):
            read_params(data[:size])


TABLES = GraphTables(
    nodes=(
        GraphNode("a", None, ()),
        GraphNode("split", "f", ((0, 0),), num_outputs=2),
        GraphNode("join", "g", ((1, 1), (1, 0), (0, 0))),
    ),
    entries=(
        GraphEntry((1, 3), "float32", 0),
        GraphEntry((3,), "int8", 1),
        GraphEntry((), "bool", 2),
        GraphEntry((2, 2), "bfloat16", 1),
    ),
    inputs=(0,),
    outputs=((2, 0), (1, 1)),
)


def test_graph_round_trips():
    assert GraphTables.from_binary(TABLES.to_binary()) == TABLES
    assert GraphTables.from_json(TABLES.to_json()) == TABLES
    assert TABLES.entry(2).dtype == "bfloat16"
    assert TABLES.functions() == ["f", "g"]
    assert TABLES.arena_bytes == 192


def test_graph_truncated_anywhere():
    data = TABLES.to_binary()
    for size in range(len(data)):
        with pytest.raises(ArtifactError):
            GraphTables.from_binary(data[:size])


def test_graph_json_that_is_none():
    for text in ("", "{}", '{"nodes": 3}', "[1]"):
        with pytest.raises(ArtifactError, match="get_graph_json"):
            GraphTables.from_json(text)


def test_a_node_cannot_read_what_comes_later():
    with pytest.raises(ValueError, match="'x' reads output 0 of node 0"):
        GraphTables((GraphNode("x", "f", ((0, 0),)),), (GraphEntry((), "int8", 0),), (), ((0, 0),))


def test_features_from_cpuinfo():
    x86 = cpu_features.parse_cpuinfo("flags\t: fpu sse2 sse4_1 avx512_vnni bmi1 abm", "x86_64")
    assert x86 == {"sse2", "sse4.1", "avx512vnni", "bmi", "lzcnt"}
    arm = cpu_features.parse_cpuinfo("Features\t: fp asimd asimddp crc32", "aarch64")
    assert arm == {"fp-armv8", "neon", "dotprod", "crc"}
    arm32 = cpu_features.parse_cpuinfo("Features\t: half vfp neon vfpv4 idiva", "armv7l")
    assert arm32 == {"vfp2", "neon", "vfp4", "hwdiv-arm"}
    riscv = cpu_features.parse_cpuinfo("isa\t: rv64imafdcv_zba_zbb", "riscv64")
    assert {"m", "v", "zba", "zbb"} <= riscv


def test_c_runtime_agrees_about_this_processor():
    from slipway.runtime.libraries.native_library import native_runtime

    have = cpu_features.host_features()
    lib = native_runtime().lib
    for name in sorted(cpu_features.known_features("x86_64")):
        answer = lib.slw_cpu_has(name.encode(), len(name))
        assert answer in (int(name in have), 2), name


def test_tiles_that_the_system_forbids_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(cpu_features, "host_features", lambda: frozenset(["amx-tile", "avx2"]))
    monkeypatch.setattr(cpu_features, "permits_tiles", lambda: False)
    with pytest.raises(ArtifactError, match=r"m\.so .* amx-tile.*has, but the system does not let"):
        cpu_features.check_isa(["avx2", "amx-tile"], "m.so")
    cpu_features.check_isa(["avx2"], "m.so")
    monkeypatch.setattr(cpu_features, "permits_tiles", lambda: True)
    cpu_features.check_isa(["amx-tile"], "m.so")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")
@pytest.mark.parametrize("name", ["egpr", "ndd", "push2pop2", "ppx", "avx10.2-512", "tbm"])
def test_what_cpuinfo_does_not_name_is_asked_of_the_processor(name):
    """Code for these ended the process with SIGILL; no processor has them all."""
    from slipway.runtime.libraries.native_library import native_runtime

    answer = native_runtime().lib.slw_cpu_has(name.encode(), len(name))
    assert answer in (0, 1)
    assert cpu_features.missing_features([name, "macrofusion"]) == ([] if answer else [name])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")
def test_where_cpuinfo_says_nothing_the_processor_is_asked(monkeypatch):
    monkeypatch.setattr(cpu_features, "host_features", frozenset)
    lacking = cpu_features.missing_features(["sse2", "fma4", "avx10.2-512", "macrofusion"])
    assert lacking == ["avx10.2-512", "fma4"]
