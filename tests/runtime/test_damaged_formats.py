"""Damaged parameters and graph tables: each count is checked before anything is built from it."""

import json
import random
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from benchmarks._damage import mutate_bytes

from slipway.errors import ArtifactError, ScheduleError, SlipwayError, TargetError
from slipway.micro.board import _parse as parse_board
from slipway.runtime.artifact import parse_metadata
from slipway.runtime.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import load_param_dict, save_param_dict
from slipway.target import Target
from slipway.te.steps import steps_from_json

PARAMS = {
    "a": np.zeros((2, 3), np.float32), "b": np.arange(5, dtype=np.int8), "c": np.array(3.0),
    "d": np.ones(3, ml_dtypes.int4),
}  # fmt: skip
TABLES = GraphTables(
    nodes=(GraphNode("x", None, ()), GraphNode("f", "fused_f", ((0, 0),), 2)),
    entries=tuple(GraphEntry((1, 8), "float32", i) for i in range(3)),
    inputs=(0,),
    outputs=((1, 0), (1, 1)),
)


@pytest.mark.parametrize("seed", range(4))
def test_changed_parameters_are_read_or_refused(seed):
    rng, whole = random.Random(seed), bytes(save_param_dict(PARAMS))
    refused = 0
    for _ in range(1000):
        try:
            load_param_dict(mutate_bytes(whole, rng))
        except ArtifactError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("seed", range(4))
def test_changed_graph_tables_are_read_or_refused(seed):
    rng, whole = random.Random(seed), TABLES.to_binary()
    for _ in range(1000):
        try:
            GraphTables.from_binary(mutate_bytes(whole, rng))
        except ArtifactError:
            continue


def words_of(data):
    return range(0, len(data) - 3, 4)


def test_one_changed_word_takes_no_memory():
    """A node that says it has 536 million outputs once made as many tuples."""
    whole = TABLES.to_binary()
    tracemalloc.start()
    for at in words_of(whole):
        for value in (0x1FFFFFFF, 0xFFFFFFFE, 0x7FFFFFFF):
            data = bytearray(whole)
            struct.pack_into("<I", data, at, value)
            try:
                GraphTables.from_binary(bytes(data))
            except ArtifactError:
                continue
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("value", [2**31, -1, 2**70, "x", None, [], {}])
def test_numbers_of_the_graph_json_are_checked(value):
    document = json.loads(TABLES.to_json())
    tracemalloc.start()
    for change in ("storage", "shape", "heads", "arg_nodes", "inputs", "outputs"):
        made = json.loads(json.dumps(document))
        match change:
            case "storage":
                made["attrs"]["storage_id"][1][0] = value
            case "shape":
                made["attrs"]["shape"][1][0] = [value]
            case "heads":
                made["heads"][0][0] = value
            case "arg_nodes":
                made["arg_nodes"][0] = value
            case "inputs":
                made["nodes"][1]["inputs"][0] = value
            case "outputs":
                made["nodes"][1]["attrs"]["num_outputs"] = value
        try:
            GraphTables.from_json(json.dumps(made))
        except ArtifactError:
            continue
        assert (change, value) == ("shape", 2**31)  # a shape that there may be
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_deep_graph_json_is_refused():
    with pytest.raises(ArtifactError, match="cannot be read"):
        GraphTables.from_json("[" * 100_000)


def test_a_count_of_parameters_is_compared_with_the_size_of_the_file():
    data = bytearray(save_param_dict({"a": np.zeros(1, np.float32)}))
    struct.pack_into("<Q", data, 16, 1 << 40)
    with pytest.raises(ArtifactError, match="truncated"):
        load_param_dict(data)


DEEP = "[" * 50_000


@pytest.mark.parametrize("text", [DEEP, "[]", "5", '{"format_version": 1, "isa": 5}'])
def test_metadata_that_is_none_is_refused(text):
    with pytest.raises(ArtifactError, match=r"model\.tar has metadata that cannot be read"):
        parse_metadata(text.encode(), "model.tar")


def test_deep_targets_schedules_and_boards_are_refused(tmp_path):
    with pytest.raises(TargetError, match="not valid JSON"):
        Target('{"kind": ' + DEEP)
    for text in (DEEP, '{"slipway_schedule": 1, "steps": [5]}'):
        with pytest.raises(ScheduleError, match="not a stored schedule"):
            steps_from_json(text)
    board = tmp_path / "board.toml"
    for text in ("title = " + "[" * 5000, 'title = "x"\nmemory = 5', "uart = 5"):
        board.write_text(text)
        with pytest.raises(SlipwayError, match="does not describe a board"):
            parse_board(board)
