"""A choice between loads at one place of several memories: an address is chosen, one load is made.

::

    if_then_else(c < 4, A[c * 8 + j], if_then_else(c < 6, B[c * 8 + j - 32], D[c * 8 + j - 48]))

becomes the load of element ``c * 8 + j`` behind the one that is chosen of A, B - 32 and D - 48.
That is how the elements of joined tensors are read.  LLVM moves the choice out of the loops that do
not change it, and has a single body to compile, where branches around n loads are n of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.codegen.chosen_loads import chosen_loads
from slipway.ir import expr as E
from slipway.ir.visit import walk

if TYPE_CHECKING:
    from slipway.codegen.llvm.memory import MemoryEmitter


def chosen_load(emitter: MemoryEmitter, node: E.Call) -> str | None:
    """Emit an if_then_else between such loads; None where it is something else."""
    found = chosen_loads(node)
    if found is None:
        return None
    loads, choices = found
    starts: dict[int, int] = {}
    positions = set()
    for load in loads:
        form, step, lanes = emitter.flat_index(load.buffer, load.indices)
        if form is None or (lanes > 1 and step != 1):
            return None
        starts[id(load)] = form[0]
        positions.add((form[1], lanes))
    if len(positions) > 1:
        return None
    ((terms, lanes),) = positions
    if any(atom in emitter.address.fickle for atom, _ in terms):
        return None
    depth, atoms = emitter.address.depth, emitter.address.atoms
    read = (depth.get(id(n), 0) for c in choices for n in walk(c.args[0]) if isinstance(n, E.Var))
    moved = (depth[a] for a, _ in terms if isinstance(atoms[a], E.Var))
    if max(read, default=0) >= max(moved, default=0):
        return None  # another choice for each element: branches ask fewer conditions
    w = emitter.w
    ty, size, _ = emitter.element(loads[0].buffer)

    def address(part: Any) -> str:
        # Not "inbounds": the start that is counted back from may lie in front of the memory.
        if isinstance(part, E.BufferLoad):
            data, start = emitter.element(part.buffer)[2], starts[id(part)]
            if not start:
                return data
            return w.put(f"getelementptr i8, ptr {data}, {emitter.address.word} {start * size}")
        test = emitter.value(part.args[0])
        first, second = address(part.args[1]), address(part.args[2])
        return w.put(f"select i1 {test}, ptr {first}, ptr {second}")

    at = address(node)
    if terms:
        offset = emitter.address.terms(terms)
        at = w.put(f"getelementptr {ty}, ptr {at}, {emitter.address.word} {offset}")
    whole = ty if lanes == 1 else f"<{lanes} x {ty}>"
    align = max(1, dtypes.bits_of(loads[0].buffer.dtype) // 8)
    return emitter.from_memory(w.put(f"load {whole}, ptr {at}, align {align}"), node.dtype)
