"""Sparse constants: what a file stores of them, and what it must not say."""

import numpy as np
import pytest
from builder import T, const, flatbuffers, model, schema
from litert import Peer

from slipway import relay
from slipway.errors import ModelError
from slipway.relay.interpret import interpret

DENSE, CSR = schema.DimensionType.DENSE, schema.DimensionType.SPARSE_CSR
VECTORS = {"i": schema.Int32VectorT, "H": schema.Uint16VectorT, "B": schema.Uint8VectorT}
KINDS = {
    "i": schema.SparseIndexVector.Int32Vector, "H": schema.SparseIndexVector.Uint16Vector,
    "B": schema.SparseIndexVector.Uint8Vector,
}  # fmt: skip


def stored(dense, order, formats, blocked=(), sizes=(), code="i"):
    """Return (values, SparsityParametersT) of an array, encoded axis by axis."""
    rank = dense.ndim
    shape = []
    for axis, extent in enumerate(dense.shape):
        block = sizes[blocked.index(axis)] if axis in blocked else 1
        shape += [extent // block, block]
    split = dense.reshape(shape)
    positions = [2 * a if a < rank else 2 * blocked[a - rank] + 1 for a in order]
    rest = [a for a in range(2 * rank) if a not in positions]
    tree = split.transpose([*positions, *rest]).reshape([split.shape[p] for p in positions])
    rows, metadata = [tree], []
    for form in formats:
        made = schema.DimensionMetadataT()
        made.format = form
        if form == DENSE:
            made.denseSize = int(rows[0].shape[0])
            rows = [part for row in rows for part in row]
        else:
            segments, indices, kept = [0], [], []
            for row in rows:
                there = [i for i, part in enumerate(row) if np.any(part)]
                indices += there
                kept += [row[i] for i in there]
                segments.append(len(indices))
            made.arraySegments, made.arrayIndices = VECTORS[code](), VECTORS[code]()
            made.arraySegments.values, made.arrayIndices.values = segments, indices
            made.arraySegmentsType = made.arrayIndicesType = KINDS[code]
            rows = kept
        metadata.append(made)
    parameters = schema.SparsityParametersT()
    parameters.traversalOrder, parameters.blockMap = list(order), list(blocked)
    parameters.dimMetadata = metadata
    return np.array(rows, dense.dtype).reshape(-1), parameters


def densify(dense, values, parameters):
    """Return a model that adds a sparse constant to its input."""
    constant, made = const(dense, dense.dtype.name), T(dense.shape, dense.dtype.name)
    x = T(dense.shape, dense.dtype.name)
    whole = schema.ModelT.InitFromPackedBuf(model("DENSIFY", [constant], [made]), 0)
    graph = whole.subgraphs[0]
    whole.buffers[graph.tensors[0].buffer].data = np.frombuffer(values.tobytes(), np.uint8)
    graph.tensors[0].sparsity = parameters
    other = schema.ModelT.InitFromPackedBuf(
        model("ADD", [T(dense.shape), x], [T(dense.shape)], "AddOptions"), 0
    )
    add = other.subgraphs[0].operators[0]
    whole.operatorCodes.append(other.operatorCodes[0])
    add.opcodeIndex, add.inputs, add.outputs = 1, [1, 2], [3]
    graph.tensors += other.subgraphs[0].tensors[1:]
    for tensor in graph.tensors[2:]:
        tensor.buffer = 0
    graph.operators.append(add)
    graph.inputs, graph.outputs = [2], [3]
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    return bytes(packer.Output())


def example(shape, seed, share=0.3):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < share, rng.standard_normal(shape), 0).astype(np.float32)


CASES = {
    "rows": ((5, 7), (0, 1), (DENSE, CSR), (), ()),
    "columns-first": ((5, 7), (1, 0), (DENSE, CSR), (), ()),
    "both": ((6, 4), (0, 1), (CSR, CSR), (), ()),
    "blocks": ((8, 6), (0, 1, 2, 3), (DENSE, CSR, DENSE, DENSE), (0, 1), (4, 2)),
    "block-of-one-axis": ((3, 8), (0, 1, 2), (DENSE, CSR, DENSE), (1,), (4,)),
    "weights": ((4, 3, 3, 5), (0, 1, 2, 3), (DENSE, DENSE, DENSE, CSR), (), ()),
    "blocks-of-weights": ((4, 1, 1, 6), (0, 1, 2, 3, 4, 5), (DENSE, DENSE, DENSE, CSR, DENSE,
                          DENSE), (0, 3), (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("code", "iHB")
@pytest.mark.parametrize("name", CASES)
def test_a_sparse_constant_is_made_dense(name, code):
    shape, order, formats, blocked, sizes = CASES[name]
    dense = example(shape, len(name))
    values, parameters = stored(dense, order, formats, blocked, sizes, code)
    mod, _ = relay.frontend.from_tflite(densify(dense, values, parameters))
    x = np.ones(shape, np.float32)
    np.testing.assert_array_equal(interpret(mod, x), dense + 1)


def test_litert_reads_the_same():
    dense = example((8, 6), 3)
    data = densify(dense, *stored(dense, *CASES["blocks"][1:]))
    (found,) = Peer(data, reference=False)([np.zeros((8, 6), np.float32)])
    np.testing.assert_array_equal(found, dense)


def spoiled(change, name="blocks"):
    shape, order, formats, blocked, sizes = CASES[name]
    dense = example(shape, 5)
    values, parameters = stored(dense, order, formats, blocked, sizes)
    values = change(parameters, parameters.dimMetadata, values)
    return densify(dense, values, parameters)


def put(entry, name, index, value):
    getattr(entry, name).values[index] = value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, d, v: (setattr(p, "traversalOrder", [0, 1, 1, 3]), v)[1], "in the order"),
        (lambda p, d, v: (setattr(p, "traversalOrder", [2, 1, 0, 3]), v)[1], "in the order"),
        (lambda p, d, v: (setattr(p, "blockMap", [0, 7]), v)[1], "blocks of"),
        (lambda p, d, v: (setattr(p, "dimMetadata", d[:3]), v)[1], "describes 3 axes of 4"),
        (lambda p, d, v: (setattr(d[0], "denseSize", 9), v)[1], "has 9 places of 2"),
        (lambda p, d, v: (setattr(d[2], "denseSize", 0), v)[1], "blocks of 0"),
        (lambda p, d, v: (setattr(d[2], "denseSize", 3), v)[1], "blocks of 3"),
        (lambda p, d, v: (put(d[1], "arrayIndices", 0, 100), v)[1], "lies outside its 3 places"),
        (lambda p, d, v: (put(d[1], "arrayIndices", 0, -1), v)[1], "lies outside its 3 places"),
        (lambda p, d, v: (put(d[1], "arraySegments", 1, 100), v)[1], "do not divide its indices"),
        (lambda p, d, v: (put(d[1], "arraySegments", 0, 1), v)[1], "do not divide its indices"),
        (lambda p, d, v: (d[1].arraySegments.values.pop(1), v)[1], "segments for 2 rows"),
        (lambda p, d, v: (setattr(d[1], "arrayIndices", None), v)[1], "has no indices"),
        (lambda p, d, v: v[:-1], "values, but"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(change, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_tflite(spoiled(change))


def test_a_small_file_does_not_make_a_huge_tensor():
    shape = (1 << 14, 1 << 14)
    dense = np.zeros((1, 1), np.float32)
    values, parameters = stored(dense, (0, 1), (CSR, CSR))
    whole = schema.ModelT.InitFromPackedBuf(densify(dense, values, parameters), 0)
    tensor = whole.subgraphs[0].tensors[0]
    tensor.shape = list(shape)
    whole.buffers[tensor.buffer].data = np.zeros(4, np.uint8)
    for entry in tensor.sparsity.dimMetadata:
        entry.arraySegments.values, entry.arrayIndices.values = [0, 1], [0]
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    with pytest.raises(ModelError, match="at most 67108864 are expanded"):
        relay.frontend.from_tflite(bytes(packer.Output()))
