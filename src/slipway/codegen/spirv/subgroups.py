"""Threads of a subgroup in SPIR-V: their numbers, and the values that they hand each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.codegen.spirv.words import SUBGROUP_SCOPE
from slipway.codegen.ssa.sink import Value

if TYPE_CHECKING:
    from slipway.codegen.spirv.sink import SpirvSink


def _number(sink: SpirvSink, name: str) -> Value:
    return Value("int32", sink.builtin(name, sink.module.type_of("int32")))


def _lane(sink: SpirvSink) -> Value:
    return _number(sink, "SubgroupLocalInvocationId")


def thread_of_subgroups(sink: SpirvSink, position: int) -> Value:
    """Return a thread's number along an axis, counted through the subgroups in order.

    Nothing says which threads of a block are a subgroup; so its first `warp` threads are those of
    the first subgroup, and so on.  Where a subgroup is a row along x, its numbers are the device's.
    """
    group, sizes = _number(sink, "SubgroupId"), sink.threads[:position]
    if sink.threads[0] == sink.parameters.warp:
        if position == 0:
            return _lane(sink)
        number, sizes = group, sizes[1:]
    else:
        warp = sink.constant("int32", sink.parameters.warp)
        number = sink.binary("add", sink.binary("mul", group, warp), _lane(sink))
    for size in sizes:
        number = sink.binary("div", number, sink.constant("int32", size))
    held = sink.constant("int32", sink.threads[position])
    whole = sink.binary("mul", sink.binary("div", number, held), held)
    return sink.binary("sub", number, whole)


def shuffled(sink: SpirvSink, op: str, value: Value, position: Value, width: int) -> Value:
    """Return the value of another thread of the subgroup."""
    last, lane = sink.constant("int32", width - 1), _lane(sink)
    inside = sink.binary("and", lane, last)
    if op == "warp_shuffle":
        wanted = sink.binary("and", position, last)
    else:
        wanted = sink.binary("add" if op.endswith("down") else "sub", inside, position)
        first = sink.compare(">=", wanted, sink.constant("int32", 0))
        there = sink.binary("and", first, sink.compare("<=", wanted, last))
        wanted = sink.select(there, wanted, inside)
    at = sink.binary("add", sink.binary("sub", lane, inside), wanted)
    scope = sink.module.constant("uint32", SUBGROUP_SCOPE)
    return sink.value(value.dtype, "GroupNonUniformShuffle", scope, value.ref, at.ref)
