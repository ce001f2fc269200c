"""rfactor: a reduction in two steps, of which the first keeps the steps of one loop apart.

before: ``for i: for k0: for k1: block C: vi, vk = data, reduce ; C[vi] = C[vi] + A[vi, vk]``
after:  ``for i: for k0: for k1: block C_rf: v_k0, vi, v_k1 ; C_rf[v_k0, vi] = ... + A[vi, ...]``
        ``for i: for k0: block C: v_k0, vi ; C[vi] = C[vi] + C_rf[v_k0, vi]``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.blocks import tree
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import Add, And, BufferLoad, IterVar, Max, Min, Mul, Or, PrimExpr, Range, Var
from slipway.ir.structural import structural_equal
from slipway.ir.visit import substitute, walk

# What may be reduced in any order: the class of the operation and the function that makes it.
_COMBINERS: dict[type[Any], Callable[[Any, Any], PrimExpr]] = {
    Add: ops.add, Mul: ops.mul, Min: ops.minimum, Max: ops.maximum,
    And: ops.logical_and, Or: ops.logical_or,
}  # fmt: skip


@dataclass(frozen=True)
class Reduction:
    """One step of a reduction block: `store.buffer[...] = combine(itself, value)`."""

    store: S.BufferStore
    combine: Callable[[Any, Any], PrimExpr]
    value: PrimExpr


def rfactor(root: S.Stmt, loop: S.For, factor_axis: int) -> tuple[Any, str]:
    """Return (statements, name): a reduction whose steps along `loop` are kept apart at first.

    The block called `name` computes a buffer of one more dimension, at `factor_axis`, with an
    element for each step of `loop`; the block that there was reduces that dimension.
    """
    block = _only_block(loop)
    nest = tree.own_loops(root, block)
    _check_nest(nest, block)
    reduction = _reduction_of(block)
    inside = _reduce_loops(block, nest, loop)
    old = reduction.store.buffer
    rank = old.ndim + 1
    position = factor_axis + rank if factor_axis < 0 else factor_axis
    if not 0 <= position < rank:
        raise ScheduleError(
            f"rfactor of block {block.name!r}: factor_axis={factor_axis} is no dimension of a "
            f"buffer of {rank}; it is from {-rank} to {rank - 1}"
        )
    shape = list(old.shape)
    shape.insert(position, ops.cast(loop.extent, old.shape[0].dtype if old.shape else "int32"))
    partial = decl_buffer(shape, old.dtype, f"{old.name}_rf", scope=old.scope)
    name = tree.fresh_name(root, f"{block.name}_rf")
    first = _first_step(block, reduction, loop, inside, partial, position, name)
    second, again = _second_step(block, reduction, nest, loop, inside, partial, position)
    made = S.seq((tree.exchanged(nest[0], block, first), tree.nest(again, second)))
    return tree.with_allocation(tree.exchanged(root, nest[0], made), partial), name


def _only_block(loop: S.For) -> S.Block:
    found = tree.blocks_of(loop.body)
    if len(found) != 1:
        raise ScheduleError(
            f"rfactor of loop {loop.loop_var.name!r}: there must be one block inside of it, and "
            f"there are {[b.name for b in found] or 'none'}"
        )
    return found[0]


def _check_nest(nest: list[S.For], block: S.Block) -> None:
    for outer, inner in zip(nest, [*nest[1:], block], strict=True):
        if outer.body is not inner:
            raise ScheduleError(
                f"cannot rfactor block {block.name!r}: loop {outer.loop_var.name!r} around it "
                "holds other statements too. Use rfactor before compute_at and "
                "decompose_reduction"
            )


def _reduction_of(block: S.Block) -> Reduction:
    def fail(why: str) -> ScheduleError:
        return ScheduleError(f"cannot rfactor block {block.name!r}: {why}")

    if block.init is None:
        raise fail("it has no init, so it starts no reduction")
    if not isinstance(block.body, S.BufferStore) or not isinstance(block.init, S.BufferStore):
        raise fail("its body must be one store, and its init one")
    store, start = block.body, block.init
    if start.buffer is not store.buffer or not all(
        map(structural_equal, start.indices, store.indices)
    ):
        raise fail(
            f"its init writes {start.buffer.name}[{_shown(start.indices)}], its body "
            f"{store.buffer.name}[{_shown(store.indices)}]"
        )
    return reduction_step(block)


def reduction_step(block: S.Block, what: str = "rfactor") -> Reduction:
    """Return the step of a block that reduces, whatever starts it.

    Raises ScheduleError for a block whose steps may not be combined in any order.
    """

    def fail(why: str) -> ScheduleError:
        return ScheduleError(f"cannot {what} block {block.name!r}: {why}")

    store = block.body
    if not isinstance(store, S.BufferStore):
        raise fail("its body must be one store")
    reduced = {axis.var for axis in block.axes if axis.kind == "reduce"}
    if any(n in reduced for index in store.indices for n in walk(index)):
        raise fail(f"the place that it writes, [{_shown(store.indices)}], is of a reduced axis")
    kind = type(store.value)
    combine = _COMBINERS.get(kind)
    terms = _terms(store.value, kind) if combine else []
    own = [t for t in terms if isinstance(t, BufferLoad) and t.buffer is store.buffer
           and tree.same_place(t.indices, store.indices)]  # fmt: skip
    rest = [t for t in terms if t not in own]
    if combine is None or len(own) != 1 or any(
        isinstance(n, BufferLoad) and n.buffer is store.buffer for t in rest for n in walk(t)
    ):  # fmt: skip
        raise fail(
            f"{store.value} is no sum, product, min, max, and or or of {store.buffer.name!r} "
            "itself and something else"
        )
    value = rest[0]
    for term in rest[1:]:
        value = combine(value, term)
    return Reduction(store, combine, value)


def _terms(value: PrimExpr, kind: type[Any]) -> list[PrimExpr]:
    """Return what a nest of one operation combines."""
    if isinstance(value, kind):
        return [*_terms(value.a, kind), *_terms(value.b, kind)]
    return [value]


def _reduce_loops(block: S.Block, nest: list[S.For], loop: S.For) -> list[S.For]:
    """Return the loops that the block reduces along.  Raises ScheduleError where `loop` is none."""
    found = []
    for one in nest:
        kinds = {
            axis.kind for axis, value in zip(block.axes, block.bindings, strict=True)
            if tree.uses(value, one.loop_var)
        }  # fmt: skip
        if "reduce" not in kinds:
            if one is loop and ops.as_int(one.extent) == 1 and not kinds:
                found.append(one)  # all that the block reduces, as one part
            elif one is loop:
                raise ScheduleError(
                    f"cannot rfactor loop {loop.loop_var.name!r}: block {block.name!r} does not "
                    "reduce along it"
                )
            continue
        if kinds != {"reduce"}:
            raise ScheduleError(
                f"cannot rfactor block {block.name!r}: loop {one.loop_var.name!r} runs along "
                "reduced and other axes. Use rfactor before they are fused"
            )
        found.append(one)
    return found


def _first_step(
    block: S.Block,
    reduction: Reduction,
    loop: S.For,
    inside: list[S.For],
    partial: Buffer,
    position: int,
    name: str,
) -> S.Block:
    axes: list[IterVar] = []
    bindings: list[PrimExpr] = []
    values: dict[Any, Any] = {}
    for one in inside:
        kind = "data" if one is loop else "reduce"
        axis = IterVar(Range(one.min, one.extent), _axis_var(one), kind)
        axes.append(axis)
        bindings.append(one.loop_var)
        values[one.loop_var] = axis.var
    inner: dict[Any, Any] = {}
    for axis, value in zip(block.axes, block.bindings, strict=True):
        if axis.kind == "reduce":
            inner[axis.var] = substitute(value, values)
        else:
            own = IterVar(axis.dom, Var(axis.name, axis.dtype), axis.kind)
            axes.append(own)
            bindings.append(value)
            inner[axis.var] = own.var
    outside, guard = _divided(block, inside)
    indices = [substitute(i, inner) for i in reduction.store.indices]
    indices.insert(position, _step_of(values[loop.loop_var], loop, partial.shape[position].dtype))
    at = tuple(indices)
    step = reduction.combine(BufferLoad(partial, at), substitute(reduction.value, inner))
    body: S.Stmt = S.BufferStore(partial, step, at)
    if ops.as_int(guard) != 1:  # the start of an element has to run where its first step does not
        body = S.IfThenElse(substitute(guard, values), body)
    assert isinstance(block.init, S.BufferStore)
    init = S.BufferStore(partial, substitute(_start(reduction, block.init.value), inner), at)
    return S.Block(name, tuple(axes), tuple(bindings), outside, body, init, block.annotations)


def _start(reduction: Reduction, own: PrimExpr) -> PrimExpr:
    """Return what a part starts with, so that the whole has `own`, the block's start, in it once.

    A minimum or a maximum, and and or may have it in every part.
    """
    if reduction.combine is ops.add:
        return ops.const(0, own.dtype)
    return ops.const(1, own.dtype) if reduction.combine is ops.mul else own


def _shown(indices: Sequence[PrimExpr]) -> str:
    return ", ".join(map(str, indices))


def _divided(block: S.Block, inside: list[S.For]) -> tuple[PrimExpr, PrimExpr]:
    """Return the condition of a block in two: that on the other loops, and that on the reduced."""
    outside: PrimExpr = ops.TRUE
    guard: PrimExpr = ops.TRUE
    variables = {one.loop_var for one in inside}
    other = {n for v, a in zip(block.bindings, block.axes, strict=True) if a.kind != "reduce"
             for n in walk(v) if isinstance(n, Var)}  # fmt: skip
    for part in _terms(block.predicate, And):
        used = {n for n in walk(part) if isinstance(n, Var)}
        if not used & variables:
            outside = ops.logical_and(outside, part)
        elif used & other:
            raise ScheduleError(
                f"cannot rfactor block {block.name!r}: where it runs, {part}, is said of reduced "
                "and other loops together"
            )
        else:
            guard = ops.logical_and(guard, part)
    return outside, guard


def _second_step(
    block: S.Block,
    reduction: Reduction,
    nest: list[S.For],
    loop: S.For,
    inside: list[S.For],
    partial: Buffer,
    position: int,
) -> tuple[S.Block, list[tuple[Var, PrimExpr]]]:
    """Return the block that reduces the parts, and the loops around it."""
    fresh: dict[Any, Any] = {}
    again: list[tuple[Var, PrimExpr]] = []
    for one in nest:
        if one is loop or one not in inside:
            var = Var(one.loop_var.name, one.loop_var.dtype)
            again.append((var, substitute(one.extent, fresh)))
            fresh[one.loop_var] = ops.add(var, substitute(one.min, fresh))
    axis = IterVar(Range(loop.min, loop.extent), _axis_var(loop), "reduce")
    pairs = [(a, v) for a, v in zip(block.axes, block.bindings, strict=True) if a.kind != "reduce"]
    at = list(reduction.store.indices)
    at.insert(position, _step_of(axis.var, loop, partial.shape[position].dtype))
    store = reduction.store
    step = reduction.combine(
        BufferLoad(store.buffer, store.indices), BufferLoad(partial, tuple(at))
    )
    made = S.Block(
        block.name,
        (axis, *(a for a, _ in pairs)),
        (fresh[loop.loop_var], *(substitute(v, fresh) for _, v in pairs)),
        substitute(_divided(block, inside)[0], fresh),
        S.BufferStore(store.buffer, step, store.indices),
        block.init,
        block.annotations,
    )
    return made, again


def _step_of(value: PrimExpr, loop: S.For, dtype: str) -> PrimExpr:
    """Return which step of a loop a value of its variable is."""
    return ops.cast(ops.sub(value, loop.min), dtype)


def _axis_var(loop: S.For) -> Var:
    return Var(f"v_{loop.loop_var.name}", loop.loop_var.dtype)
