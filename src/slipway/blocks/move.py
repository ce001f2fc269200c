"""Moving what blocks compute: inlining, caches, computing inside another block's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of, union
from slipway.blocks import tree
from slipway.blocks.solve import solved, where_on_axes
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import And, BufferLoad, IterVar, PrimExpr, Ramp, Range, Var
from slipway.ir.visit import rewrite_bottom_up, substitute, walk
from slipway.transform.loop.compact_buffers import is_in_block

if TYPE_CHECKING:
    from slipway.ir.node import Node


def _single_store(block: S.Block, what: str) -> S.BufferStore:
    if not isinstance(block.body, S.BufferStore) or block.init is not None:
        raise ScheduleError(
            f"cannot {what} block {block.name!r}: it must be one store without a reduction"
        )
    return block.body


def _axes_of(block: S.Block, indices: tuple[PrimExpr, ...], what: str) -> list[int]:
    """Return which axis of a block each index is.  Raises ScheduleError for another index."""
    positions: list[int] = []
    for index in indices:
        found = [n for n, axis in enumerate(block.axes) if axis.var is index]
        if not found or found[0] in positions:
            raise ScheduleError(
                f"cannot {what} block {block.name!r}: it accesses the buffer at {index}, where an "
                "axis of its own is needed, each once"
            )
        positions.append(found[0])
    return positions


FIXED = -1  # the axis of a dimension of one element


def _axes_or_fixed(block: S.Block, access: BufferLoad | S.BufferStore) -> list[int]:
    """Return which axis of a block each index is, or FIXED for the 0 of a dimension of one."""
    fixed = [
        ops.as_int(index) == 0 and ops.as_int(size) == 1
        for index, size in zip(access.indices, access.buffer.shape, strict=True)
    ]
    moving = tuple(i for i, stays in zip(access.indices, fixed, strict=True) if not stays)
    found = iter(_axes_of(block, moving, "move"))
    return [FIXED if stays else next(found) for stays in fixed]


def need_elements(access: BufferLoad | S.BufferStore, what: str) -> None:
    """Raise ScheduleError for an access to a vector, whose index is no number."""
    if any(isinstance(i, Ramp) for i in access.indices):
        raise ScheduleError(
            f"cannot {what} {access.buffer.name!r}: it is used as vectors, at "
            f"[{', '.join(map(str, access.indices))}]. Do so before tensorize"
        )


def _need_no_calls(root: Any, buffer: Buffer, what: str) -> None:
    """Raise ScheduleError where a call gets the memory of a buffer: what it uses is not seen."""
    for block in tree.leaf_blocks(root):
        if buffer in (*block.reads, *block.writes):
            raise ScheduleError(
                f"cannot {what}: a call in block {block.name!r} uses the memory of "
                f"{buffer.name!r}. Do so before tensorize"
            )


def compute_inline(root: Node, block: S.Block) -> Any:
    """Return the statements with a block's formula wherever its buffer is read."""
    store = _single_store(block, "inline")
    _axes_of(block, store.indices, "inline")
    buffer = store.buffer
    if not tree.is_allocated(root, buffer):
        raise ScheduleError(
            f"cannot inline block {block.name!r}: {buffer.name!r} is an argument of the function"
        )
    _need_no_calls(root, buffer, f"inline block {block.name!r}")
    writers = [b for b in tree.leaf_blocks(root) if buffer in tree.written(b)]
    if len(writers) != 1:
        raise ScheduleError(f"cannot inline block {block.name!r}: other blocks write its buffer")

    def rule(node: Any) -> Any:
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            need_elements(node, "inline")
            return substitute(store.value, dict(zip(store.indices, node.indices, strict=True)))
        return None

    return tree.without_allocation(rewrite_bottom_up(tree.removed(root, block), rule), buffer)


def reverse_compute_inline(root: Node, block: S.Block) -> Any:
    """Return the statements with a block's formula where its only input is written."""
    store = _single_store(block, "reverse-inline")
    sources = [b for b in tree.read(block) if tree.is_allocated(root, b)]
    writers = [p for p in tree.leaf_blocks(root) for b in sources if b in tree.written(p)]
    if len(sources) != 1 or len(writers) != 1:
        raise ScheduleError(
            f"cannot reverse-inline block {block.name!r}: it must read one buffer that one block "
            f"writes; it reads {[b.name for b in tree.read(block)]}"
        )
    producer, buffer = writers[0], sources[0]
    _need_no_calls(root, buffer, f"reverse-inline block {block.name!r}")
    given = _single_store(producer, f"put {block.name!r} into")
    tree.check_ready(root, block, producer, buffer)
    loads = [n for n in walk(store.value) if isinstance(n, BufferLoad) and n.buffer is buffer]
    if not all(tree.same_place(load.indices, loads[0].indices) for load in loads):
        raise ScheduleError(
            f"cannot reverse-inline block {block.name!r}: it must read {buffer.name!r} at one place"
        )
    what = f"cannot reverse-inline block {block.name!r}"
    element, axes, fits = solved(block.axes, loads[0].indices, buffer.shape, what)
    here: dict[Any, Any] = dict(zip(element, given.indices, strict=True))
    an = Analyzer()
    for axis in producer.axes:
        assert axis.dom is not None
        an.bind_range(axis.var, axis.dom)
    reader = Analyzer()
    for axis in block.axes:
        assert axis.dom is not None
        reader.bind_range(axis.var, axis.dom)
    for made, wanted in zip(given.indices, loads[0].indices, strict=True):
        low, high = an.bounds(an.simplify(made))
        first, last = reader.bounds(reader.simplify(wanted))
        if low > first or high < last:
            raise ScheduleError(
                f"{what}: it reads {buffer.name!r} from {first} to {last}, and block "
                f"{producer.name!r} writes {low} to {high} of that"
            )
    values: dict[Any, Any] = {v: an.simplify(substitute(e, here)) for v, e in axes.items()}
    values.update((load, given.value) for load in loads)
    merged = S.BufferStore(
        store.buffer,
        substitute(store.value, values),
        tuple(an.simplify(substitute(i, values)) for i in store.indices),
    )
    bindings = dict(zip((a.var for a in producer.axes), producer.bindings, strict=True))
    where = substitute(where_on_axes(block, tree.own_loops(root, block), what), values)
    fits = ops.logical_and(substitute(fits, here), where)
    fits = substitute(an.simplify(fits), bindings)
    fits = ops.logical_and(producer.predicate, fits)
    rest = tree.removed(root, block)
    rest = tree.exchanged(rest, producer, producer.replace(body=merged, predicate=fits))
    return tree.without_allocation(rest, buffer)


def decompose_reduction(root: Node, block: S.Block, loop: S.For) -> tuple[Any, str]:
    """Return (statements, name) with a block of its own, before `loop`, for what starts it."""
    if block.init is None:
        raise ScheduleError(f"block {block.name!r} has no init to take out: it reduces nothing")
    around = tree.loops_above(root, block)
    if not any(one is loop for one in around):
        raise ScheduleError(f"loop {loop.loop_var.name!r} is not around block {block.name!r}")
    cut = next(i for i, one in enumerate(around) if one is loop)
    pairs = list(zip(block.axes, block.bindings, strict=True))
    for outer in around[:cut]:
        if any(axis.kind == "reduce" and tree.uses(v, outer.loop_var) for axis, v in pairs):
            raise ScheduleError(
                f"cannot start block {block.name!r} before loop {loop.loop_var.name!r}: loop "
                f"{outer.loop_var.name!r} around it is reduced over"
            )
    spatial = [(axis, value) for axis, value in pairs if axis.kind != "reduce"]
    loops: list[tuple[Var, PrimExpr]] = []
    fresh: dict[Any, Any] = {}
    for inner in around[cut:]:
        if any(tree.uses(value, inner.loop_var) for _, value in spatial):
            fresh[inner.loop_var] = Var(f"{inner.loop_var.name}_init", inner.loop_var.dtype)
            loops.append((fresh[inner.loop_var], inner.extent))
    axes = [IterVar(a.dom, Var(f"{a.name}_init", a.dtype), a.kind) for a, _ in spatial]
    renamed = {a.var: new.var for (a, _), new in zip(spatial, axes, strict=True)}
    reduced = {inner.loop_var for inner in around[cut:]} - set(fresh)
    name = tree.fresh_name(root, f"{block.name}_init")
    made = S.Block(
        name,
        tuple(axes),
        tuple(substitute(value, fresh) for _, value in spatial),
        _without(substitute(block.predicate, fresh), reduced),
        substitute(block.init, renamed),
    )
    update = block.replace(name=f"{block.name}_update", init=None)
    whole = S.seq((tree.nest(loops, made), tree.exchanged(loop, block, update)))
    return tree.exchanged(root, loop, whole), name


def _without(predicate: PrimExpr, variables: set[Var]) -> PrimExpr:
    """Return those parts of a conjunction that do not depend on the variables."""
    if isinstance(predicate, And):
        return ops.logical_and(_without(predicate.a, variables), _without(predicate.b, variables))
    return ops.TRUE if any(tree.uses(predicate, v) for v in variables) else predicate


def _copy(source: Buffer, target: Buffer, name: str) -> S.Stmt:
    loops = [(Var(f"ax{n}", s.dtype), s) for n, s in enumerate(source.shape)]
    axes = tuple(
        IterVar(Range.of(s), Var(f"v{n}", s.dtype), "data") for n, s in enumerate(source.shape)
    )
    indices = tuple(axis.var for axis in axes)
    store = S.BufferStore(target, BufferLoad(source, indices), indices)
    block = S.Block(name, axes, tuple(var for var, _ in loops), ops.TRUE, store)
    return tree.nest(loops, block)


def _copy_of_stores(
    root: Node, block: S.Block, target: Buffer, source: Buffer, name: str
) -> S.Stmt | None:
    """Return a copy of those elements that a block of one store writes; None: it writes all."""
    stores = [n for n in walk(block) if isinstance(n, S.BufferStore) and n.buffer is target]
    if not stores or not all(tree.same_place(s.indices, stores[0].indices) for s in stores):
        return None
    indices = stores[0].indices
    what = f"cannot cache what block {block.name!r} writes"
    where = where_on_axes(block, tree.own_loops(root, block), what)
    by_var = {axis.var: axis for axis in block.axes}
    along = [by_var.get(index) for index in indices]  # type: ignore[call-overload]
    whole = ops.as_int(where) == 1 and len(set(map(id, along))) == len(along) and all(
        axis is not None and axis.dom is not None and ops.as_int(axis.dom.min) == 0
        and ops.as_int(ops.sub(axis.extent, size)) == 0
        for axis, size in zip(along, target.shape, strict=True)
    )  # fmt: skip
    if whole or any(isinstance(n, S.For) for n in walk(block.body)):
        return None
    axes = [axis for axis in block.axes if axis.kind != "reduce"]
    own = [IterVar(a.dom, Var(a.name, a.dtype), a.kind) for a in axes]
    fresh: dict[Any, Any] = {a.var: o.var for a, o in zip(axes, own, strict=True)}
    loops = [(Var(f"ax{n}", a.dtype), a.extent) for n, a in enumerate(axes)]
    begins = [ops.const(0, a.dtype) if a.dom is None else a.dom.min for a in axes]
    values = tuple(ops.add(v, low) for (v, _), low in zip(loops, begins, strict=True))
    steps: dict[Any, Any] = {o.var: value for o, value in zip(own, values, strict=True)}
    at = tuple(substitute(index, fresh) for index in indices)
    store = S.BufferStore(target, BufferLoad(source, at), at)
    reduced = {axis.var for axis in block.axes if axis.kind == "reduce"}
    here = substitute(substitute(_without(where, reduced), fresh), steps)
    return tree.nest(loops, S.Block(name, tuple(own), values, here, store))


def buffer_at(
    buffers: list[Buffer], index: int | str | Buffer, block: S.Block, what: str
) -> Buffer:
    """Return the buffer of a number or name, or itself, of those that a block reads or writes."""
    if not isinstance(index, int):
        for buffer in buffers:
            if buffer is index or index in (buffer.name, f"{block.name}.{buffer.name}"):
                return buffer
        wanted = index if isinstance(index, str) else index.name
        raise ScheduleError(
            f"block {block.name!r} {what} no buffer {wanted!r}: it {what} "
            f"{', '.join(b.name for b in buffers) or 'none'}"
        )
    if not 0 <= index < len(buffers):
        raise ScheduleError(
            f"block {block.name!r} {what} {len(buffers)} buffers "
            f"({', '.join(b.name for b in buffers)}), so there is no number {index}"
        )
    return buffers[index]


def cache_write(
    root: Node, block: S.Block, index: int | str | Buffer, scope: str
) -> tuple[Any, str]:
    """Return (statements, name of the copying block): the block writes memory of its own."""
    buffer = buffer_at(tree.written(block), index, block, "writes")
    cache = _cache_of(buffer, scope)
    top = tree.top_of(root, block)
    others = [b for b in tree.leaf_blocks(top) if b is not block
              and buffer in (*tree.read(b), *tree.written(b))]  # fmt: skip
    if others:
        raise ScheduleError(
            f"cannot cache what block {block.name!r} writes: block {others[0].name!r} uses it "
            "inside the same loops. Cache it first, and move the copying block with "
            "reverse_compute_at"
        )
    tree.check_only_writer(root, block, buffer, "cache what")
    name = tree.fresh_name(root, cache.name)
    copy = _copy(cache, buffer, name)
    if not tree.is_allocated(root, buffer):  # what the block does not write, the caller keeps
        copy = _copy_of_stores(root, block, buffer, cache, name) or copy
    inside = tree.exchanged(top, block, tree.replace_buffer(block, buffer, cache))
    made = S.seq((inside, copy))
    return tree.with_allocation(tree.exchanged(root, top, made), cache), name


def cache_read(
    root: Node, block: S.Block, index: int | str | Buffer, scope: str
) -> tuple[Any, str]:
    """Return (statements, name of the copying block): readers of a buffer read a copy of it."""
    buffer = buffer_at(tree.read(block), index, block, "reads")
    cache = _cache_of(buffer, scope)
    name = tree.fresh_name(root, cache.name)
    copy = _copy(buffer, cache, name)
    writers = [b for b in tree.leaf_blocks(root) if buffer in tree.written(b)]

    def change(one: S.Block) -> S.Block:
        if buffer in tree.written(one):
            return one
        return tree.replace_buffer(one, buffer, cache)  # type: ignore[no-any-return]

    done = tree.map_blocks(root, change)
    if writers:
        top = tree.top_of(done, tree.find_block(done, writers[-1].name))
        if any(cache in tree.read(b) for b in tree.leaf_blocks(top)):
            raise ScheduleError(
                f"cannot cache {buffer.name!r}: block {writers[-1].name!r} computes it inside the "
                "loops that read it. Cache it before compute_at"
            )
        done = tree.exchanged(done, top, S.seq((top, copy)))
    else:
        top = tree.top_of(done, tree.find_block(done, tree.blocks_of(root)[0].name))
        done = tree.exchanged(done, top, S.seq((copy, top)))
    return tree.with_allocation(done, cache), name


def cache_inplace(
    root: Any, block: S.Block, index: int | str | Buffer, scope: str
) -> tuple[Any, list[str]]:
    """Return (statements, names of the two blocks that copy): a block works on memory of its own.

    A buffer that it reads and writes is copied there before, and back after it.
    """
    written = tree.written(block)
    loaded = [n.buffer for n in walk(block.body) if isinstance(n, BufferLoad)]
    listed = [b for one in tree.blocks_of(block) for b in one.reads]
    buffer = buffer_at(list(dict.fromkeys([*loaded, *listed])), index, block, "reads")
    if buffer not in written:
        raise ScheduleError(
            f"block {block.name!r} does not write {buffer.name!r}, which it reads: use cache_read"
        )
    top = tree.top_of(root, block)
    if len(tree.blocks_of(top)) > len(tree.blocks_of(block)):
        raise ScheduleError(
            f"cannot cache {buffer.name!r} in place: other blocks stand in the loops of block "
            f"{block.name!r}. Do so before compute_at"
        )
    cache = _cache_of(buffer, scope)
    before = tree.fresh_name(root, cache.name)
    into = _copy(buffer, cache, before)
    body: Any = root
    after = tree.fresh_name(S.seq((body, into)), cache.name)
    inside = tree.exchanged(top, block, tree.replace_buffer(block, buffer, cache))
    made = S.seq((into, inside, _copy(cache, buffer, after)))
    return tree.with_allocation(tree.exchanged(root, top, made), cache), [before, after]


# What memory may be called; after a dot follows which of its kind, as in "shared.dyn".
SCOPES = ("global", "shared", "local", "warp", "wmma", "texture", "m16n8k8", "mma", "vtcm")


def need_scope(scope: str) -> None:
    """Raise ScheduleError for a scope that no memory has."""
    if not isinstance(scope, str) or scope.partition(".")[0] not in SCOPES:
        raise ScheduleError(
            f"there is no memory of scope {scope!r}; the scopes are {', '.join(SCOPES)}"
        )


def _cache_of(buffer: Buffer, scope: str) -> Buffer:
    need_scope(scope)
    return decl_buffer(buffer.shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)


def compute_at(root: Node, block: S.Block, loop: S.For) -> Any:
    """Return the statements with a block computed inside `loop`, as much as is read there."""
    (buffer,) = _one(tree.written(block), block)
    where = _axes_or_fixed(block, _store_of(block))
    outside = [b for b in tree.leaf_blocks(root) if b is not block and buffer in tree.read(b)]
    inside = [b for b in tree.leaf_blocks(loop.body) if buffer in tree.read(b)]
    if not inside or len(inside) != len(outside):
        names = [b.name for b in outside if not any(b is i for i in inside)]
        raise ScheduleError(
            f"cannot compute block {block.name!r} at loop {loop.loop_var.name!r}: "
            + (f"{names} read it outside of that loop" if names else "nothing inside reads it")
        )
    if not tree.is_allocated(root, buffer):
        raise ScheduleError(
            f"cannot compute block {block.name!r} at a loop: {buffer.name!r} is an argument of the "
            "function, all of which must be there"
        )
    _need_no_calls(root, buffer, f"compute block {block.name!r} at a loop")
    tree.check_only_writer(root, block, buffer, "compute at a loop what")
    first = next(b for b in tree.leaf_blocks(loop.body) if b is not block)
    tree.check_ready(root, block, first, buffer)
    loads = [
        (b, n.indices) for b in inside for n in walk(b) if isinstance(n, BufferLoad)
        and n.buffer is buffer
    ]  # fmt: skip
    done = _moved(root, block, loop, buffer, where, loads, before=True)
    # Steps of a parallel loop may need the same elements: each gets memory of its own.
    done = tree.without_allocation(done, buffer)
    loop = tree.find_loop(done, loop.loop_var)
    return tree.exchanged(done, loop, loop.replace(body=S.Allocate(buffer, loop.body)))


def reverse_compute_at(root: Node, block: S.Block, loop: S.For) -> Any:
    """Return the statements with a block behind the rest of `loop`, for what that has written."""
    wanted = set(tree.read(block))
    every = [b for b in tree.leaf_blocks(root) if wanted & set(tree.written(b)) and b is not block]
    inside = tree.leaf_blocks(loop.body)
    writers = [b for b in every if any(b is one for one in inside)]
    made = {buffer for b in writers for buffer in tree.written(b) if buffer in wanted}
    if len(made) != 1 or any(b is block for b in inside):
        raise ScheduleError(
            f"cannot compute block {block.name!r} at loop {loop.loop_var.name!r}: one buffer that "
            f"it reads must be written inside; those are {[b.name for b in made]}"
        )
    (buffer,) = made
    outside = [b for b in every if b not in writers and buffer in tree.written(b)]
    if outside:
        raise ScheduleError(
            f"cannot compute block {block.name!r} at loop {loop.loop_var.name!r}: block "
            f"{outside[0].name!r}, outside of it, writes {buffer.name!r} too"
        )
    above = [*tree.loops_above(root, loop), loop]
    for producer in writers:
        _one(tree.written(producer), producer)
        values = tree.values_of(root, producer)
        for axis in producer.axes:
            for one in above:
                if axis.kind == "reduce" and tree.uses(values[axis.var], one.loop_var):
                    raise ScheduleError(
                        f"cannot compute block {block.name!r} at loop {loop.loop_var.name!r}: "
                        f"block {producer.name!r} is not done reducing there, over "
                        f"{one.loop_var.name!r}"
                    )
    tree.check_ready(root, block, writers[0], buffer)
    _need_no_calls(root, buffer, f"compute block {block.name!r} at a loop")
    reads = [n for n in walk(block.body) if isinstance(n, BufferLoad) and n.buffer is buffer]
    where = _axes_or_fixed(block, reads[0])
    if not all(tree.same_place(other.indices, reads[0].indices) for other in reads):
        raise ScheduleError(
            f"cannot compute block {block.name!r} at a loop: it must read {buffer.name!r} at its "
            "own axes, and at nothing else"
        )
    stores = [(b, _store_of(b).indices) for b in writers]
    return _moved(root, block, loop, buffer, where, stores, before=False)


def _one(buffers: list[Buffer], block: S.Block) -> list[Buffer]:
    if len(buffers) != 1:
        raise ScheduleError(f"cannot move block {block.name!r}: it writes {len(buffers)} buffers")
    return buffers


def _store_of(block: S.Block) -> S.BufferStore:
    return next(n for n in walk(block.body) if isinstance(n, S.BufferStore))


def _moved(
    root: Any,
    block: S.Block,
    loop: S.For,
    buffer: Buffer,
    where: list[int],
    accesses: list[tuple[S.Block, tuple[PrimExpr, ...]]],
    before: bool,
) -> Any:
    """Return the statements with a block inside `loop`, over the region of the accesses there.

    `where` says which of its axes each dimension of the buffer is.
    """
    what = f"cannot compute block {block.name!r} at loop {loop.loop_var.name!r}"
    given = where_on_axes(block, tree.own_loops(root, block), what)
    region = _region(root, loop, buffer, accesses)
    an = region[0]
    axes = dict(enumerate(zip(block.axes, block.bindings, strict=True)))
    loops: list[tuple[Var, PrimExpr]] = []
    values: dict[int, PrimExpr] = {}
    predicate: PrimExpr = ops.TRUE
    for dimension, number in enumerate(where):
        if number == FIXED:
            continue
        axis = axes[number][0]
        low, extent = region[1][dimension]
        var = Var(f"ax{dimension}", axis.dtype)
        if ops.as_int(extent) != 1:
            loops.append((var, extent))
            values[number] = an.simplify(ops.add(low, var))
        else:
            values[number] = low
        assert axis.dom is not None
        whole = an.simplify(ops.sub(ops.add(low, extent), axis.extent))
        if not (ops.as_int(whole) == 0 and ops.as_int(low) == 0):
            last = an.linear(ops.add(low, ops.sub(extent, 1)))
            if not last.high < (ops.as_int(axis.extent) or 0):
                predicate = ops.logical_and(predicate, ops.less(values[number], axis.extent))
            if not an.linear(low).low >= 0:
                inside = ops.greater_equal(values[number], ops.const(0, axis.dtype))
                predicate = ops.logical_and(predicate, inside)
    for number, (axis, _) in axes.items():
        if number not in values:  # no dimension of the buffer: all of it, inside
            var = Var(axis.name.removeprefix("v_"), axis.dtype)
            assert axis.dom is not None
            loops.append((var, axis.extent))
            values[number] = ops.add(var, axis.dom.min)
    bindings = tuple(values[number] for number in range(len(block.axes)))
    placed: dict[Any, Any] = {a.var: v for (a, _), v in zip(axes.values(), bindings, strict=True)}
    predicate = ops.logical_and(predicate, substitute(given, placed))
    made = tree.nest(loops, block.replace(bindings=bindings, predicate=predicate))
    rest = tree.removed(root, block)
    loop = tree.find_loop(rest, loop.loop_var)
    body = S.seq((made, loop.body) if before else (loop.body, made))
    return tree.exchanged(rest, loop, loop.replace(body=body))


def _region(
    root: Any,
    loop: S.For,
    buffer: Buffer,
    accesses: list[tuple[S.Block, tuple[PrimExpr, ...]]],
) -> tuple[Analyzer, list[tuple[PrimExpr, PrimExpr]]]:
    """Return (low, extent) of what one step of `loop` accesses, dimension by dimension.

    Of memory that the threads of a block share it is what all of them access.
    """
    an = Analyzer()
    fixed = [*tree.loops_above(root, loop), loop]
    for one in fixed:
        _bound(an, one)
    if buffer.scope.startswith("shared"):
        fixed = [one for one in fixed if not is_in_block(one)]
    found: list[Interval | None] = [None] * buffer.ndim
    known = [False] * buffer.ndim
    for block, indices in accesses:
        relaxed = {}
        own = [node for node in walk(block) if isinstance(node, S.For)]
        for one in (*tree.loops_above(root, block), *own):
            if not any(one is outer for outer in fixed):
                _bound(an, one)
                last = an.linear(ops.sub(one.extent, 1))
                relaxed[an.var_atom(one.loop_var)] = (an.constant(0, one.loop_var.dtype), last)
        values = tree.values_of(root, block)
        for dimension, index in enumerate(indices):
            placed = substitute(index, values)
            lanes = ops.const(0, placed.dtype)
            if isinstance(placed, Ramp):
                lanes = ops.mul(placed.stride, placed.num_lanes - 1)
                placed = placed.base
            interval = interval_of(an, an.linear(placed), relaxed)
            if interval is not None and ops.as_int(lanes) != 0:
                last = an.linear(ops.add(placed, lanes))
                end = interval_of(an, last, relaxed)
                interval = None if end is None else union(an, interval, end)
            if not known[dimension]:
                found[dimension], known[dimension] = interval, True
            elif found[dimension] is not None:
                both = found[dimension]
                assert both is not None
                found[dimension] = None if interval is None else union(an, both, interval)
    region = []
    for dimension, interval in enumerate(found):
        whole = (ops.const(0, buffer.shape[dimension].dtype), buffer.shape[dimension])
        if interval is None:
            region.append(whole)
            continue
        size = an.recombine(interval[1].minus(interval[0])).shifted(1)
        if not size.is_const:
            region.append(whole)
        else:
            region.append((an.to_expr(interval[0]), an.to_expr(size)))
    return an, region


def _bound(an: Analyzer, loop: S.For) -> None:
    extent = ops.as_int(loop.extent)
    an.bind(loop.loop_var, 0, max(extent - 1, 0) if extent is not None else float("inf"))
