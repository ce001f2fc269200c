"""TransposeLoads: tiles of loads become rows and shuffles; anything less stays."""

import pytest

from slipway.codegen.llvm.module import emit_kernel
from slipway.ir import builder as ir_builder
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.transform.loop.transpose_loads import transpose_loads


def tile(lanes, count, stride=64, in_place=False, dtype="float32"):
    """`count` stores of `lanes` elements that lie `stride` apart, each from one place further."""
    a, b = decl_buffer((4096,), dtype, name="A"), decl_buffer((4096,), dtype, name="B")
    source = b if in_place else a
    ib = ir_builder.create()
    for c in range(count):
        load = E.BufferLoad(source, (E.Ramp(ops.const(c), ops.const(stride), lanes),))
        index = E.Ramp(ops.const(c * lanes), ops.const(1), lanes)
        ib.emit(S.BufferStore(b, load, (index,)))
    handles = E.Var("A", "handle"), E.Var("B", "handle")
    func = PrimFunc(handles, ib.get(), ((handles[0], a), (handles[1], b)))
    return func.with_attr("target", Target("llvm"))


def column(node, rows):
    """The positions in memory that an expression made of loads and shuffles has in its lanes."""
    if isinstance(node, E.Var):
        return column(rows[node], rows)
    if isinstance(node, E.BufferLoad):
        (ramp,) = node.indices
        return [ramp.base.value + ramp.stride.value * lane for lane in range(ramp.num_lanes)]
    joined = [element for vector in node.vectors for element in column(vector, rows)]
    return [joined[i] for i in node.indices]


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int16", "float16"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_square_tile_is_read_by_rows(lanes, dtype):
    done = transpose_loads(tile(lanes, lanes, dtype=dtype))
    rows = {n.var: n.value for n in walk(done.body) if isinstance(n, S.LetStmt)}
    loads = [n for n in walk(done.body) if isinstance(n, E.BufferLoad)]
    assert len(loads) == lanes
    assert all(load.indices[0].stride.value == 1 for load in loads)
    stores = [n for n in walk(done.body) if isinstance(n, S.BufferStore)]
    found = [column(store.value, rows) for store in stores]
    assert found == [[c + 64 * lane for lane in range(lanes)] for c in range(lanes)]
    assert sum(isinstance(n, E.Shuffle) for n in walk(done.body)) == {4: 8, 8: 24, 16: 64}[lanes]


@pytest.mark.parametrize(
    "func",
    [tile(8, 7), tile(8, 8, stride=4), tile(8, 8, in_place=True), tile(2, 2),
     tile(8, 8).with_attr("target", Target("c")), tile(8, 8).with_attr("noalias", False)],
    ids=["not square", "overlapping", "stored to", "two lanes", "c", "alias"],
)  # fmt: skip
def test_anything_else_stays(func):
    assert str(transpose_loads(func)) == str(func)


@pytest.mark.parametrize("lanes", [4, 16])
def test_each_shuffle_of_two_vectors_is_one_instruction(lanes):
    done = transpose_loads(tile(lanes, lanes))
    shuffles = {id(n) for n in walk(done.body) if isinstance(n, E.Shuffle)}
    text = emit_kernel("tile", done, Target("llvm"), "arena").text
    assert text.count(" shufflevector ") == len(shuffles)
