"""Padding and blocks: what is padding written apart from what is copied; products made larger.

decompose_padding::

    before: ``for i: block B: vi ; B[vi] = if_then_else(3 <= vi and vi < 13, A[vi - 3], 0)``
    after:  ``for i: block B_pad_const: vi ; B[vi] = 0``
            ``for i < 10: block B: vi ; B[vi + 3] = A[vi]``

pad_einsum, of 127 with a factor of 32::

    before: ``for i, k: block C: vi, vk = data, reduce ; C[vi] = C[vi] + A[vi, vk] * B[vk]``
    after:  ``for i, k < 128: block A_pad: A_pad[v0, v1] = if_then_else(v0 < 127 and ..., A, 0)``
            the same for B, the block on 128 by 128, and ``for i < 127: C[v0] = C_pad[v0]``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.blocks import tree
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    BufferLoad,
    Call,
    IterVar,
    PrimExpr,
    Range,
    Select,
    Var,
)
from slipway.ir.visit import rewrite_bottom_up, substitute, walk


def decompose_padding(root: Any, block: S.Block, loop: S.For) -> tuple[Any, str]:
    """Return (statements, name): the block `name` writes the padding's value before `loop`.

    Where every axis in the condition is a loop of its own, that loop runs over what is copied
    alone; else the block keeps its loops, and the condition says where it runs.
    """
    store, condition, copied, constant = _padding_of(block)
    above = tree.own_loops(root, block)
    if not any(one is loop for one in above):
        raise ScheduleError(f"loop {loop.loop_var.name!r} is not around block {block.name!r}")
    inside = above[next(i for i, one in enumerate(above) if one is loop) :]
    while not _is_known(root, inside[0], store.buffer):  # memory of one step of the loop
        inside = inside[1:]
        if not inside:
            raise ScheduleError(
                f"cannot write the padding of block {block.name!r} before loop "
                f"{loop.loop_var.name!r}: {store.buffer.name!r} lives in it"
            )
    for outer, inner in zip(inside, [*inside[1:], block], strict=True):
        if outer.body is not inner:
            raise ScheduleError(
                f"cannot write the padding of block {block.name!r} before loop "
                f"{inside[0].loop_var.name!r}: that holds more than the block"
            )
    name = tree.fresh_name(root, f"{block.name}_pad_const")
    fill = _renamed(inside, block.replace(name=name, body=S.BufferStore(
        store.buffer, constant, store.indices)))  # fmt: skip
    copy = _over_what_is_copied(inside, block, store, condition, copied)
    return tree.exchanged(root, inside[0], S.seq((fill, copy))), name


def _is_known(root: Any, loop: S.For, buffer: Buffer) -> bool:
    """Return whether the memory of a buffer is there before a loop."""
    return not any(isinstance(n, S.Allocate) and n.buffer is buffer for n in walk(loop))


def _padding_of(block: S.Block) -> tuple[S.BufferStore, PrimExpr, PrimExpr, PrimExpr]:
    """Return (store, condition, what is copied, the padding's value)."""
    store = block.body
    value = store.value if isinstance(store, S.BufferStore) else None
    parts: Sequence[PrimExpr] = ()
    if isinstance(value, Call) and value.op == "if_then_else":
        parts = value.args
    elif isinstance(value, Select):
        parts = (value.condition, value.true_value, value.false_value)
    fits = bool(parts) and block.init is None
    if fits and any(isinstance(n, BufferLoad) for n in walk(parts[2])):
        fits = False
    if not fits or not isinstance(store, S.BufferStore):
        raise ScheduleError(
            f"block {block.name!r} does not pad: it must be one store of "
            "if_then_else(condition, element, constant)"
        )
    return store, parts[0], parts[1], parts[2]


def _renamed(nest: Sequence[S.For], block: S.Block) -> S.Stmt:
    """Return the loops around a block with variables of their own."""
    fresh = {one.loop_var: Var(one.loop_var.name, one.loop_var.dtype) for one in nest}
    axes = tuple(IterVar(a.dom, Var(a.name, a.dtype), a.kind) for a in block.axes)
    own = {old.var: new.var for old, new in zip(block.axes, axes, strict=True)}
    made: S.Stmt = block.replace(
        axes=axes,
        bindings=tuple(substitute(b, fresh) for b in block.bindings),
        predicate=substitute(block.predicate, fresh),
        body=substitute(block.body, own),
    )
    for one in reversed(nest):
        made = one.replace(loop_var=fresh[one.loop_var], body=made)
    return made


def _conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    if isinstance(condition, Call) and condition.op == "likely":
        return _conjuncts(condition.args[0])
    if isinstance(condition, And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _bounds(block: S.Block, condition: PrimExpr) -> dict[Var, tuple[int, int]] | None:
    """Return axis -> (first, end) where that is all that a condition says, else None."""
    bounds = {}
    for axis in block.axes:
        extent = ops.as_int(axis.extent)
        if extent is None:
            return None
        bounds[axis.var] = (0, extent)
    an = Analyzer()
    for part in _conjuncts(condition):
        own = [v for v in bounds if tree.uses(part, v)]
        if not isinstance(part, LT | LE | GT | GE) or len(own) != 1:
            return None
        # a < b is 0 <= slack, of a factor of 1 or -1 on the axis.
        low, high = (part.a, part.b) if isinstance(part, LT | LE) else (part.b, part.a)
        slack = ops.sub(high, low)
        slack = ops.sub(slack, 1) if isinstance(part, LT | GT) else slack
        (var,) = own
        at = [ops.as_int(an.simplify(substitute(slack, {var: ops.const(n, var.dtype)})))
              for n in (0, 1)]  # fmt: skip
        if at[0] is None or at[1] is None or abs(at[1] - at[0]) != 1:
            return None
        first, end = bounds[var]
        bounds[var] = (max(first, -at[0]), end) if at[1] > at[0] else (first, min(end, at[0] + 1))
    return bounds if all(first < end for first, end in bounds.values()) else None


def _over_what_is_copied(
    nest: Sequence[S.For], block: S.Block, store: S.BufferStore, condition: PrimExpr,
    copied: PrimExpr,
) -> S.Stmt:  # fmt: skip
    """Return the loops with the block that copies."""
    own = {one.loop_var for one in nest}
    bounds = _bounds(block, condition)
    moved = {a.var for a in block.axes if tree.uses(condition, a.var)}
    trivial = ops.as_int(block.predicate) == 1 and all(
        binding in own or axis.var not in moved
        for axis, binding in zip(block.axes, block.bindings, strict=True)
    )
    if bounds is None or not trivial:
        values = dict(zip((a.var for a in block.axes), block.bindings, strict=True))
        made = block.replace(
            predicate=ops.logical_and(substitute(condition, values), block.predicate),
            body=store.replace(value=copied),
        )
        return tree.exchanged(nest[0], block, made)  # type: ignore[no-any-return]
    an = Analyzer()
    shift: dict[Any, PrimExpr] = {}
    extents: dict[Any, int] = {}
    axes = []
    for axis, binding in zip(block.axes, block.bindings, strict=True):
        first, end = bounds[axis.var]
        if axis.var in moved:
            axis = IterVar(Range.of(end - first), axis.var, axis.kind)
            shift[axis.var] = ops.add(axis.var, first)
            extents[binding] = end - first
        assert axis.dom is not None
        an.bind_range(axis.var, axis.dom)
        axes.append(axis)

    def placed(expr: PrimExpr) -> PrimExpr:
        return an.simplify(substitute(expr, shift))  # type: ignore[no-any-return]

    def load(node: Any) -> Any:
        if isinstance(node, BufferLoad):
            return node.replace(indices=tuple(an.simplify(i) for i in node.indices))
        return None

    body = S.BufferStore(
        store.buffer,
        rewrite_bottom_up(substitute(copied, shift), load),
        tuple(placed(i) for i in store.indices),
    )
    out: S.Stmt = block.replace(axes=tuple(axes), body=body)
    for one in reversed(nest):
        extent = extents.get(one.loop_var)
        size = one.extent if extent is None else ops.const(extent, one.loop_var.dtype)
        out = one.replace(extent=size, body=out)
    return out


def pad_einsum(root: Any, block: S.Block, padding: Sequence[int]) -> Any:
    """Return the statements with a block on extents that are multiples of `padding`.

    With a 0 among them the numbers are what is added to each extent, as in TVM up to 0.10.
    """
    nest = tree.own_loops(root, block)
    sizes = _whole_nest(nest, block)
    if len(padding) != len(sizes) or any(type(p) is bool or int(p) < 0 for p in padding):
        raise ScheduleError(
            f"pad_einsum of block {block.name!r}: padding={list(padding)} must be {len(sizes)} "
            f"factors, one for each of {[a.name for a in block.axes]}"
        )
    if 0 in padding:
        larger = [s + int(p) for s, p in zip(sizes, padding, strict=True)]
    else:
        larger = [-(-s // int(p)) * int(p) for s, p in zip(sizes, padding, strict=True)]
    new: dict[Any, tuple[int, int]] = {
        a.var: (s, n) for a, s, n in zip(block.axes, sizes, larger, strict=True) if n != s
    }
    if not new:
        return root
    store = _einsum_of(block, {v for v in new if _is_reduced(block, v)})
    buffers: dict[Buffer, Buffer] = {}
    before: list[S.Stmt] = []
    after: list[S.Stmt] = []
    loads = [n for n in walk(block) if isinstance(n, BufferLoad)]
    accesses: list[BufferLoad | S.BufferStore] = [store, *loads]
    for access in accesses:
        buffer = access.buffer
        if buffer in buffers or not any(i in new for i in access.indices):
            continue
        shape = [new[i][1] if i in new else s for i, s in zip(access.indices, buffer.shape,
                                                              strict=True)]  # fmt: skip
        real = [new[i][0] if i in new else s for i, s in zip(access.indices, buffer.shape,
                                                             strict=True)]  # fmt: skip
        padded = decl_buffer(shape, buffer.dtype, f"{buffer.name}_pad", scope=buffer.scope)
        buffers[buffer] = padded
        name = tree.fresh_name(root, padded.name)
        if buffer is store.buffer:
            after.append(_copied(name, buffer, padded, real, ()))
        else:
            limits = tuple((n, new[i][0]) for n, i in enumerate(access.indices) if i in new)
            before.append(_copied(name, padded, buffer, shape, limits))
    axes = tuple(
        IterVar(Range.of(new[a.var][1]), a.var, a.kind) if a.var in new else a for a in block.axes
    )
    made: Any = block.replace(axes=axes)
    for old, padded in buffers.items():
        made = tree.replace_buffer(made, old, padded)
    by_loop = dict(zip(block.bindings, larger, strict=True))
    for one in reversed(nest):
        made = one.replace(extent=ops.const(by_loop[one.loop_var], one.loop_var.dtype), body=made)
    whole: S.Stmt = S.seq((*before, made, *after))
    for padded in buffers.values():
        whole = S.Allocate(padded, whole)
    return tree.exchanged(root, nest[0], whole)


def _whole_nest(nest: Sequence[S.For], block: S.Block) -> list[int]:
    """Return the extents of a block's axes, which must be the loops around it and hold it alone."""
    loops = [one.loop_var for one in nest]
    sizes = [ops.as_int(a.extent) for a in block.axes]
    alone = all(o.body is i for o, i in zip(nest, [*nest[1:], block], strict=True))
    if not alone or set(block.bindings) != set(loops) or len(loops) != len(block.axes) or (
        ops.as_int(block.predicate) != 1 or None in sizes
    ):  # fmt: skip
        raise ScheduleError(
            f"cannot pad block {block.name!r}: its axes must be the loops around it, of known "
            "extents, which hold nothing else; do so before split and compute_at"
        )
    return [s for s in sizes if s is not None]


def _is_reduced(block: S.Block, var: Var) -> bool:
    return any(a.var is var and a.kind == "reduce" for a in block.axes)


def _einsum_of(block: S.Block, reduced: set[Var]) -> S.BufferStore:
    """Return the store of a block whose accesses are at axes; what is added there must be 0 of 0.

    `reduced` are the axes that are reduced over and get longer.
    """
    accesses = [n for n in walk(block) if isinstance(n, BufferLoad | S.BufferStore)]
    stores = [n for n in walk(block.body) if isinstance(n, S.BufferStore)]
    axes = {a.var for a in block.axes}
    for access in accesses:
        for index in access.indices:
            if index not in axes and ops.as_int(index) is None:
                raise ScheduleError(
                    f"cannot pad block {block.name!r}: it uses {access.buffer.name!r} at {index}, "
                    "where an axis of its own, or a number, is needed"
                )
    seen: dict[Buffer, Any] = {}
    for access in accesses:
        if seen.setdefault(access.buffer, access.indices) != access.indices:
            raise ScheduleError(
                f"cannot pad block {block.name!r}: it uses {access.buffer.name!r} at two places"
            )
    if len(stores) != 1 or not isinstance(block.body, S.BufferStore):
        raise ScheduleError(f"cannot pad block {block.name!r}: it must be one store")
    store = stores[0]
    if reduced:
        _need_sum(block, store, reduced)
    return store


def _need_sum(block: S.Block, store: S.BufferStore, reduced: set[Var]) -> None:
    """Raise ScheduleError unless zeros add nothing to what a block reduces."""

    def zero(node: Any) -> Any:
        if isinstance(node, BufferLoad) and any(i in reduced for i in node.indices):
            return ops.const(0, node.dtype)
        return None

    value = store.value
    for own, other in ((value.a, value.b), (value.b, value.a)) if isinstance(value, Add) else ():
        if isinstance(own, BufferLoad) and own.buffer is store.buffer:
            left = Analyzer().simplify(rewrite_bottom_up(other, zero))
            if ops.as_int(left) == 0 or getattr(left, "value", None) == 0:
                return
    raise ScheduleError(
        f"cannot pad block {block.name!r} along {sorted(v.name for v in reduced)}: it must add up "
        "products, to which zeros add nothing"
    )


def _copied(
    name: str, target: Buffer, source: Buffer, shape: Sequence[Any],
    limits: Sequence[tuple[int, int]],
) -> S.Stmt:  # fmt: skip
    """Return a block that copies `shape` elements, with zeros where an index is over its limit."""
    kind = target.shape[0].dtype
    sizes = [ops.as_expr(s) for s in shape]
    loops = [(Var(f"i{n}", kind), size) for n, size in enumerate(sizes)]
    axes = tuple(IterVar(Range.of(s), Var(f"v{n}", kind), "data") for n, s in enumerate(sizes))
    indices = tuple(a.var for a in axes)
    value: PrimExpr = BufferLoad(source, indices)
    condition: PrimExpr = ops.TRUE
    for n, limit in limits:
        condition = ops.logical_and(condition, ops.less(indices[n], limit))
    if limits:
        value = ops.if_then_else(condition, value, ops.const(0, source.dtype))
    block = S.Block(
        name, axes, tuple(var for var, _ in loops), ops.TRUE,
        S.BufferStore(target, value, indices),
    )  # fmt: skip
    return tree.nest(loops, block)
