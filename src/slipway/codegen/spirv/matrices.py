"""Matrices of a subgroup in SPIR-V: SPV_KHR_cooperative_matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.codegen.spirv.words import CAPABILITIES, STORAGE, SUBGROUP_SCOPE, Id, Word
from slipway.codegen.ssa.sink import Memory, Place, Value
from slipway.ir.instructions.cooperative_products import CooperativeProduct

if TYPE_CHECKING:
    from slipway.codegen.spirv.assembler import SpirvModule
    from slipway.codegen.spirv.sink import SpirvSink

_LEFT, _RIGHT, _SUMS = 0, 1, 2  # what a matrix is used as
_BY_ROWS, _BY_COLUMNS = 0, 1  # how it lies in memory
_SIGNED = Word("MatrixASignedComponentsKHR|MatrixBSignedComponentsKHR|MatrixCSignedComponentsKHR|"
               "MatrixResultSignedComponentsKHR", 0xF)  # fmt: skip


def matrix_statement(
    sink: SpirvSink, op: str, entry: CooperativeProduct, operands: Sequence[Place | Value]
) -> None:
    """Add one of the statements of ir/instructions/cooperative_products.py."""
    *others, sums = operands
    assert isinstance(sums, tuple)
    kind = _type(sink.module, entry, _SUMS)
    at = _matrix(sink, entry, kind, *sums)
    if op == "zero":
        zero = sink.module.constant(_component(entry, _SUMS), 0)
        sink.do("Store", at, sink.module.once("ConstantComposite", zero, kind=kind))
        return
    if op == "store":
        (to,) = others
        assert isinstance(to, tuple)
        apart = sink.module.constant("uint32", entry.columns)
        layout = sink.module.constant("uint32", _BY_ROWS)
        sums_of = sink.put("Load", kind, at)
        sink.do(
            "CooperativeMatrixStoreKHR", sink.at(*to), sums_of, layout, apart, *sink.handed_over
        )
        return
    sink.module.multiplies(sink.name, entry.name.rpartition(":")[0])
    left, right, *apart_of = others
    loaded = []
    for use, position, distance in zip((_LEFT, _RIGHT), (left, right), apart_of, strict=True):
        assert isinstance(position, tuple)
        assert isinstance(distance, Value)
        layout = sink.module.constant("uint32", _BY_ROWS if use == _LEFT else _BY_COLUMNS)
        of = _type(sink.module, entry, use)
        given = (sink.at(*position), layout, distance.ref, *sink.handed_over)
        loaded.append(sink.put("CooperativeMatrixLoadKHR", of, *given))
    signs = (_SIGNED,) if dtypes.is_int(entry.a_dtype) else ()
    before = sink.put("Load", kind, at)
    sink.do("Store", at, sink.put("CooperativeMatrixMulAddKHR", kind, *loaded, before, *signs))


def _component(entry: CooperativeProduct, use: int) -> str:
    """Return the type of an element: sums of bytes without sign have none either."""
    if use != _SUMS:
        return entry.a_dtype
    return "uint32" if entry.a_dtype == "uint8" else entry.c_dtype


def _type(module: SpirvModule, entry: CooperativeProduct, use: int) -> Id:
    """Return the type of a matrix."""
    module.capabilities.add(CAPABILITIES["CooperativeMatrixKHR"])
    module.extensions.add("SPV_KHR_cooperative_matrix")
    sizes = {
        _LEFT: (entry.rows, entry.depth),
        _RIGHT: (entry.depth, entry.columns),
        _SUMS: (entry.rows, entry.columns),
    }[use]
    numbers = [module.constant("uint32", n) for n in (SUBGROUP_SCOPE, *sizes, use)]
    return module.once("TypeCooperativeMatrixKHR", module.type_of(_component(entry, use)), *numbers)


def _matrix(
    sink: SpirvSink, entry: CooperativeProduct, kind: Id, memory: Memory, index: Value
) -> Id:
    """Return a pointer to a matrix, whose memory is declared when it is first used."""
    module = sink.module
    if memory.number not in sink.arrays:
        count = module.constant("uint32", memory.count // entry.sums)
        sink.arrays[memory.number] = sink.variable(
            "Function", module.once("TypeArray", kind, count)
        )
    number = sink.binary("div", index, sink.constant(index.dtype, entry.sums))
    pointer = module.once("TypePointer", STORAGE["Function"], kind)
    return sink.put("AccessChain", pointer, sink.arrays[memory.number], number.ref)
