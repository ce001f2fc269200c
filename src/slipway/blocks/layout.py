"""How the buffers of blocks lie in memory: other indices, padded rows, copies in another order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.blocks import tree
from slipway.blocks.index_map import IndexMap, parted
from slipway.blocks.move import need_elements
from slipway.blocks.solve import solved
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import BufferLoad, Call, IterVar, PrimExpr, Range, Var
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up, substitute, walk

Mapping = Callable[..., Any]
ChosenBuffer = str | Buffer | tuple[str, int]  # a name, itself, ("read" | "write", number)


def chosen_buffer(block: S.Block, given: ChosenBuffer) -> tuple[Buffer, bool]:
    """Return the buffer that a number, a name or itself says, and whether it is written."""
    read, written = tree.read(block), tree.written(block)
    if isinstance(given, str):
        for buffer in (*written, *read):
            if given in (buffer.name, f"{block.name}.{buffer.name}"):
                return buffer, buffer in written
    if isinstance(given, Buffer) and given in (*written, *read):
        return given, given in written
    if isinstance(given, str | Buffer):
        names = [b.name for b in (*read, *written)]
        name = given if isinstance(given, str) else given.name
        raise ScheduleError(f"block {block.name!r} uses no buffer {name!r}; it uses {names}")
    try:
        kind, number = given
        own = {"read": read, "write": written}[kind]
        return own[number if number >= 0 else len(own)], kind == "write"
    except (TypeError, ValueError, KeyError, IndexError):
        raise ScheduleError(
            f"{given!r} is no buffer of block {block.name!r}: say ('read', n) with n below "
            f"{len(read)}, ('write', n) with n below {len(written)}, or a name"
        ) from None


def _mapped(
    index_map: Mapping, indices: tuple[PrimExpr, ...], name: str
) -> tuple[tuple[PrimExpr, ...], tuple[int, ...]]:
    """Return where a map puts an element, and which of these begin a dimension of memory."""
    variadic = any(p.kind is inspect.Parameter.VAR_POSITIONAL
                   for p in inspect.signature(index_map).parameters.values())  # fmt: skip
    taken = len(inspect.signature(index_map).parameters)
    if not variadic and taken != len(indices):
        raise ScheduleError(
            f"the map of indices takes {taken}, but buffer {name!r} has {len(indices)} dimensions"
        )
    made = index_map(*indices)
    found, separators = parted(made if isinstance(made, (list, tuple)) else (made,))
    return found, index_map.axis_separators if isinstance(index_map, IndexMap) else separators


def transform_layout(func: PrimFunc, buffer: Buffer, index_map: Mapping) -> PrimFunc:
    """Return a function whose `buffer` has its element [i, j, ...] at ``index_map(i, j, ...)``."""
    if buffer.strides:
        raise ScheduleError(f"buffer {buffer.name!r} has strides: lay it out before storage_align")
    an = Analyzer()
    variables = []
    for number, extent in enumerate(buffer.shape):
        size = ops.as_int(extent)
        if size is None:
            raise ScheduleError(f"buffer {buffer.name!r} has a dimension that is not known")
        variables.append(Var(f"i{number}", extent.dtype))
        an.bind(variables[-1], 0, size - 1)
    shape = []
    mapped, separators = _mapped(index_map, tuple(variables), buffer.name)
    for index in mapped:
        low, high = an.bounds(an.simplify(index))
        if low != 0 or high == float("inf"):
            raise ScheduleError(
                f"the map of indices of buffer {buffer.name!r} makes {index}, which runs from "
                f"{low} to {high}; it must begin at 0 and have a bound"
            )
        shape.append(int(high) + 1)
    new = decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope,
                      axis_separators=separators)  # fmt: skip

    used = {a for n in walk(func.body) if isinstance(n, Call) for a in n.args}
    if buffer.data in used:
        raise ScheduleError(
            f"cannot lay out buffer {buffer.name!r} anew: a call uses its memory. Do so before "
            "tensorize"
        )

    def rule(node: Node) -> Node | None:
        if isinstance(node, BufferLoad | S.BufferStore) and node.buffer is buffer:
            need_elements(node, "lay out anew")
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            return BufferLoad(new, _simple(node.indices))
        if isinstance(node, S.BufferStore) and node.buffer is buffer:
            return S.BufferStore(new, node.value, _simple(node.indices))
        return None

    bounds = Analyzer()
    for node in walk(func.body):
        if isinstance(node, IterVar) and node.dom is not None:
            bounds.bind_range(node.var, node.dom)
        elif isinstance(node, S.For):
            steps, begin = ops.as_int(node.extent), ops.as_int(node.min)
            if steps is not None and begin is not None:
                bounds.bind(node.loop_var, begin, begin + max(steps - 1, 0))

    def _simple(indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        return tuple(bounds.simplify(i) for i in _mapped(index_map, indices, buffer.name)[0])

    body = rewrite_bottom_up(func.body, rule)
    body = substitute(body, {buffer: new, buffer.data: new.data})
    pairs = tuple((v, new if b is buffer else b) for v, b in func.buffer_map)
    return func.replace(body=body, buffer_map=pairs)  # type: ignore[no-any-return]


def set_axis_separators(func: PrimFunc, buffer: Buffer, separators: Sequence[int]) -> PrimFunc:
    """Return a function whose `buffer` says where dimensions of its memory begin."""
    data = Var(buffer.name, "handle")
    new = buffer.replace(axis_separators=tuple(separators), data=data)
    body = substitute(func.body, {buffer: new, buffer.data: new.data})
    pairs = tuple((v, new if b is buffer else b) for v, b in func.buffer_map)
    return func.replace(body=body, buffer_map=pairs)  # type: ignore[no-any-return]


def set_dtype(root: S.Stmt, buffer: Buffer, dtype: str) -> Any:
    """Return the statements with a buffer of the function's own holding elements of `dtype`.

    What is stored is converted, and what is loaded is converted back.
    """
    what = f"cannot change the dtype of {buffer.name!r}"
    if not tree.is_allocated(root, buffer):
        raise ScheduleError(f"{what}: it is an argument, and its memory the caller's")
    if dtypes.lanes_of(dtypes.canonical(dtype)) != 1 or dtypes.canonical(dtype) == "handle":
        raise ScheduleError(f"{what} to {dtype}: the elements of a buffer are numbers")
    if any(buffer in (*b.reads, *b.writes) for b in tree.blocks_of(root)):
        raise ScheduleError(f"{what}: a call uses its memory. Do so before tensorize")
    new = buffer.replace(dtype=dtypes.canonical(dtype), data=Var(buffer.name, "handle"))

    def rule(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            return ops.cast(BufferLoad(new, node.indices), node.dtype)
        if isinstance(node, S.BufferStore) and node.buffer is buffer:
            there = dtypes.with_lanes(new.dtype, dtypes.lanes_of(node.value.dtype))
            return node.replace(buffer=new, value=ops.cast(node.value, there))  # type: ignore[no-any-return]
        return None

    return substitute(rewrite_bottom_up(root, rule), {buffer: new, buffer.data: new.data})


def transform_block_layout(root: S.Stmt, block: S.Block, index_map: Mapping) -> Any:
    """Return the statements with the loops of a block running over ``index_map`` of its axes."""
    nest = tree.own_loops(root, block)
    used = [loop.loop_var for loop in nest]
    what = f"cannot lay out block {block.name!r} anew"
    if list(block.bindings) != used or ops.as_int(block.predicate) != 1 or any(
        outer.body is not inner for outer, inner in zip(nest, [*nest[1:], block], strict=True)
    ):  # fmt: skip
        raise ScheduleError(
            f"{what}: its axes must be its loops, each all that the one around it holds"
        )
    an = Analyzer()
    for axis in block.axes:
        assert axis.dom is not None
        an.bind_range(axis.var, axis.dom)
    variables = tuple(axis.var for axis in block.axes)
    made, _ = _mapped(index_map, variables, block.name)
    extents = []
    for index in made:
        low, high = an.bounds(an.simplify(index))
        if low != 0 or high == float("inf"):
            raise ScheduleError(f"{what}: {index} must begin at 0 and have a bound")
        extents.append(ops.const(int(high) + 1, index.dtype))
    element, values, fits = solved(block.axes, made, extents, what)
    loops = [(Var(f"ax{n}", e.dtype), e) for n, e in enumerate(extents)]
    axes = tuple(
        IterVar(Range.of(extent), Var(f"v{n}", var.dtype), _kind_of(index, block, what))
        for n, ((var, extent), index) in enumerate(zip(loops, made, strict=True))
    )
    own = dict(zip(element, (a.var for a in axes), strict=True))
    placed = {v: an.simplify(substitute(e, own)) for v, e in values.items()}
    reduced = {a.var for a in axes if a.kind == "reduce"}
    for axis in block.axes:
        if axis.kind != "reduce" and any(n in reduced for n in walk(placed[axis.var])):
            raise ScheduleError(f"{what}: it mixes {axis.name!r} with axes that are reduced over")
    there = dict(zip(element, (var for var, _ in loops), strict=True))
    for own_axis in axes:
        assert own_axis.dom is not None
        an.bind_range(own_axis.var, own_axis.dom)

    def shorter(node: Node) -> Node | None:
        if isinstance(node, BufferLoad | S.BufferStore):
            return node.replace(indices=tuple(an.simplify(i) for i in node.indices))  # type: ignore[no-any-return]
        return None

    def moved(stmt: S.Stmt) -> S.Stmt:
        return rewrite_bottom_up(substitute(stmt, placed), shorter)  # type: ignore[no-any-return]

    fresh = block.replace(
        axes=axes,
        bindings=tuple(var for var, _ in loops),
        body=moved(block.body),
        init=None if block.init is None else moved(block.init),
        predicate=substitute(fits, there),
    )
    return tree.exchanged(root, nest[0], tree.nest(loops, fresh))


def _kind_of(index: PrimExpr, block: S.Block, what: str) -> str:
    """Return the kind of an axis that runs along others of a block, which must be of one kind."""
    kinds = {a.kind for a in block.axes if tree.uses(index, a.var)} or {"data"}
    if len(kinds) > 1 or not kinds <= {"data", "reduce"}:
        raise ScheduleError(f"{what}: {index} is of axes of the kinds {', '.join(sorted(kinds))}")
    return kinds.pop()


def storage_align(root: S.Stmt, buffer: Buffer, axis: int, factor: int, offset: int) -> Any:
    """Return the statements with the stride of a dimension `offset` above a multiple of `factor`.

    Raises ScheduleError for a buffer of the caller, whose memory is as it is.
    """
    if not tree.is_allocated(root, buffer):
        raise ScheduleError(f"{buffer.name!r} is an argument: its memory is the caller's")
    position = axis + buffer.ndim if axis < 0 else axis
    if not 0 <= position < buffer.ndim:
        raise ScheduleError(f"buffer {buffer.name!r} has no dimension {axis}")
    if factor < 1:
        raise ScheduleError(f"storage_align takes a factor of at least 1, not {factor}")
    shape = buffer.constant_shape()
    if shape is None:
        raise ScheduleError(f"buffer {buffer.name!r} has a dimension that is not known")
    strides, step = [], 1
    for number in range(buffer.ndim - 1, -1, -1):
        if number == position:
            step += (offset - step) % factor
        strides.append(ops.const(step, buffer.shape[number].dtype))
        step *= shape[number]
    new = buffer.replace(strides=tuple(reversed(strides)), data=Var(buffer.name, "handle"))
    return tree.replace_buffer(root, buffer, new)


def reindex(root: S.Stmt, block: S.Block, buffer: Buffer, written: bool) -> tuple[Any, str]:
    """Return (statements, name of the copying block): a buffer in the order of a block's axes.

    The copy has a dimension for each axis of the block that the buffer's indices depend on.
    """
    positions: list[tuple[PrimExpr, ...]] = []
    for node in walk(block):
        if isinstance(node, BufferLoad | S.BufferStore) and node.buffer is buffer and not any(
            tree.same_place(node.indices, known) for known in positions
        ):  # fmt: skip
            positions.append(node.indices)
    if len(positions) != 1:
        raise ScheduleError(
            f"cannot reindex buffer {buffer.name!r} of block {block.name!r}: it must be used at "
            f"one place, and is at {len(positions)}"
        )
    (indices,) = positions
    axes = [a for a in block.axes if any(tree.uses(i, a.var) for i in indices)]
    if written and any(a.kind == "reduce" for a in axes):
        raise ScheduleError(f"block {block.name!r} writes at places that depend on reduced axes")
    extents = [a.extent for a in axes]
    suffix = "reindex"
    copy = decl_buffer(extents or (1,), buffer.dtype, f"{buffer.name}_{suffix}")
    at = tuple(a.var for a in axes) or (ops.const(0),)
    starts = {a.var: ops.sub(a.var, a.dom.min) for a in axes if a.dom is not None}
    at = tuple(substitute(i, starts) for i in at)

    def rule(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            return BufferLoad(copy, at)
        if isinstance(node, S.BufferStore) and node.buffer is buffer:
            return S.BufferStore(copy, node.value, at)
        return None

    name = tree.fresh_name(root, copy.name)
    inside = rewrite_bottom_up(block, rule)
    loops = [(Var(f"ax{n}", e.dtype), e) for n, e in enumerate(extents)]
    own = [IterVar(Range.of(e), Var(f"v{n}", e.dtype), "data") for n, e in enumerate(extents)]
    values: dict[Any, Any] = {
        a.var: ops.add(o.var, a.dom.min) for a, o in zip(axes, own, strict=True)
        if a.dom is not None
    }  # fmt: skip
    there = tuple(substitute(i, values) for i in indices)
    here = tuple(o.var for o in own) or (ops.const(0),)
    store = (S.BufferStore(buffer, BufferLoad(copy, here), there) if written
             else S.BufferStore(copy, BufferLoad(buffer, there), here))  # fmt: skip
    made = S.Block(name, tuple(own), tuple(v for v, _ in loops), ops.TRUE, store)
    top = tree.top_of(root, block)
    others = [b for b in tree.leaf_blocks(top) if b is not block and buffer in tree.written(b)]
    if others or (written and any(
        b is not block and buffer in tree.read(b) for b in tree.leaf_blocks(top)
    )):  # fmt: skip
        raise ScheduleError(
            f"cannot reindex buffer {buffer.name!r}: other blocks inside the same loops use it"
        )
    if written:
        tree.check_only_writer(root, block, buffer, "reindex what")
    moved = tree.exchanged(top, block, inside)
    nest = tree.nest(loops, made)
    whole = S.seq((moved, nest) if written else (nest, moved))
    return tree.with_allocation(tree.exchanged(root, top, whole), copy), name
