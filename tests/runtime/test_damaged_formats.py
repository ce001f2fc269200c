"""Damaged parameters and graph tables: each count is checked before anything is built from it."""

import io
import json
import random
import struct
import tarfile
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from benchmarks.fuzz_importers.damage import mutate_bytes

from slipway.errors import ArtifactError, ScheduleError, SlipwayError, TargetError
from slipway.micro.board import _parse as parse_board
from slipway.micro.model_library import unpack_model_library
from slipway.runtime.artifact import parse_metadata, read_tar
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import load_param_dict, save_param_dict
from slipway.target import Target
from slipway.te.steps import steps_from_json
from slipway.toolchain.unpack import unpack_tar

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


def peak_bytes(read, *arguments):
    """Return the memory that a reader took before it refused."""
    tracemalloc.start()
    with pytest.raises(ArtifactError):
        read(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def graph_of(nodes=(), entries=(), dims=(), args=(), strings=b"x\0"):
    body = b"".join(struct.pack("<q", d) for d in dims)
    body += struct.pack("<QQ", 0, 64)
    body += b"".join(struct.pack("<6I", *node) for node in nodes)
    body += b"".join(struct.pack("<BBHIII", *entry) for entry in entries)
    body += b"".join(struct.pack("<I", arg) for arg in args) + strings
    return struct.pack("<12IQII", 0x47574C53, 1, 64 + len(body), len(nodes), len(entries), 0, 0,
                       len(args), len(dims), len(strings), 1, 0, 64, 0, 0) + body  # fmt: skip


FLOAT = (2, 32, 1)


@pytest.mark.parametrize(
    "data",
    [
        # Every node reads all arguments, every entry has all extents, every name is the whole text.
        graph_of([(0, 0, 0, 4000, n, 1) for n in range(4000)],
                 [(*FLOAT, 0, 0, 0)] * 4000, (), [0] * 4000),
        graph_of([(0, 2**32 - 1, 0, 0, n, 1) for n in range(4000)],
                 [(*FLOAT, 4000, 0, 0)] * 4000, [1] * 4000),
        graph_of([(n, 2**32 - 1, 0, 0, n, 1) for n in range(4000)],
                 [(*FLOAT, 0, 0, 0)] * 4000, (), (), b"x" * 4000 + b"\0"),
    ],
    ids=["arguments", "extents", "names"],
)  # fmt: skip
def test_pieces_of_graph_tables_are_not_counted_again_and_again(data):
    assert peak_bytes(GraphTables.from_binary, data) < 12 * len(data)


def test_names_that_are_no_text_are_refused():
    document = json.loads(TABLES.to_json())
    document["nodes"][1]["name"] = "\ud800"
    with pytest.raises(ArtifactError, match="surrogates"):
        GraphTables.from_json(json.dumps(document))


def long_name_headers(count):
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 2
    block = head.tobuf(tarfile.GNU_FORMAT) + b"a\0".ljust(512, b"\0")
    return block * count + tarfile.TarInfo("x").tobuf() + bytes(1024)


def test_headers_that_announce_headers_are_refused(tmp_path):
    data = long_name_headers(3000)
    with pytest.raises(ArtifactError, match="not a readable tar"):
        read_tar(data, "model.tar")
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(ArtifactError, match="damaged"):
        unpack_tar(tmp_path / "x.tar", tmp_path / "out")
    with pytest.raises(ArtifactError, match="no Model Library Format archive"):
        unpack_model_library(tmp_path / "x.tar", tmp_path / "out")


def test_a_file_with_holes_is_not_unpacked(tmp_path):
    """A kilobyte of archive that says it holds a terabyte of zeros."""
    info = tarfile.TarInfo("x")
    info.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:398], head[483:495] = b"%011o\0" % 0, b"\x80" + (1 << 40).to_bytes(11, "big")
    head[148:156] = b"        "
    head[148:156] = b"%06o\0 " % sum(head)
    (tmp_path / "x.tar").write_bytes(bytes(head) + bytes(1024))
    with pytest.raises(ArtifactError, match="a file with holes"):
        unpack_tar(tmp_path / "x.tar", tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*"))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "[" * 50_000,
        '{"version": []}',
        '{"version": 7, "modules": [1]}',
        '{"version": 7, "modules": {"a": 1}}',
    ],
)
def test_metadata_of_an_archive_that_is_none_is_refused(tmp_path, text):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        info = tarfile.TarInfo("metadata.json")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))
    with pytest.raises(ArtifactError, match="Model Library Format"):
        unpack_model_library(tmp_path / "x.tar", tmp_path / "out")
