"""tensorize: a block whose loops compute what a tensor intrinsic says, done by the intrinsic.

Both are brought to the same form, loops around stores without blocks in between; where a region of
the block's buffers begins is taken off its indices. Then they are compared, node by node, and the
statements of the intrinsic's implementation take the place of the block's body, over the regions.
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of, union
from slipway.arith.linear import Atom, Linear
from slipway.blocks import tree
from slipway.blocks.tensor_intrin import BlockIntrin
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad, Call, IterVar, PrimExpr, Ramp, Var
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.structural import structural_equal
from slipway.ir.visit import rewrite_bottom_up, substitute, walk
from slipway.transform.loop.lower_blocks import without_blocks


def tensorize(root: S.Stmt, block: S.Block, intrin: BlockIntrin) -> Any:
    """Return the statements with the body of `block` done by `intrin`."""
    return _Tensorize(root, block, intrin).made()


def _body(func: PrimFunc) -> S.Stmt:
    """Return what a function of an intrinsic does, without the block that is around all of it."""
    body = func.body
    if isinstance(body, S.Block) and not body.axes:
        return body.body
    return body


class _Tensorize:
    def __init__(self, root: S.Stmt, block: S.Block, intrin: BlockIntrin) -> None:
        self.root, self.block, self.intrin = root, block, intrin
        self.an = Analyzer()
        self.relaxed: dict[Atom, Interval] = {}
        # Of a buffer of the block: its region's first index in each dimension, and its partner.
        self.starts: dict[Buffer, list[Linear]] = {}
        self.partner: dict[Buffer, Buffer] = {}

    def fail(self, why: str) -> ScheduleError:
        return ScheduleError(
            f"cannot tensorize block {self.block.name!r} with {self.intrin.name!r}: {why}"
        )

    def made(self) -> Any:
        if ops.as_int(self.block.predicate) != 1:
            raise self.fail(
                "its steps need a boundary check. Choose split factors that divide the extents"
            )
        mine, theirs = self._plain(self.block), without_blocks(_body(self.intrin.desc))
        self._bind(mine)
        self._same(mine, theirs)
        real = {partner: own for own, partner in self.partner.items()}
        declared = [b for _, b in self.intrin.desc.buffer_map]
        missing = [b.name for b in declared if b not in real]
        if missing:
            raise self.fail(f"its description does not use {missing}")
        body, used = self._implementation(
            {b: real[d] for d, (_, b) in zip(declared, self.intrin.impl.buffer_map, strict=True)}
        )
        written = set(tree.written(self.block))
        made = self.block.replace(
            body=body,
            init=None,
            reads=tuple(b for b in used if b not in written or self._updates(b)),
            writes=tuple(b for b in used if b in written),
        )
        return tree.exchanged(self.root, self.block, made)

    def _updates(self, buffer: Buffer) -> bool:
        return any(isinstance(n, BufferLoad) and n.buffer is buffer for n in walk(self.block.body))

    def _plain(self, block: S.Block) -> S.Stmt:
        """Return what a block does at one step, without blocks."""
        body = without_blocks(block.body)
        if block.init is None:
            return body
        return S.seq((without_blocks(block.init), body))

    def _bind(self, mine: S.Stmt) -> None:
        """Find where the region of each buffer begins."""
        for axis in self.block.axes:
            if axis.dom is not None:
                self.an.bind_range(axis.var, axis.dom)
        for node in walk(mine):
            if isinstance(node, S.For):
                extent = ops.as_int(node.extent)
                if extent is None:
                    raise self.fail(f"loop {node.loop_var.name!r} has no constant extent")
                self.an.bind(node.loop_var, 0, max(extent - 1, 0))
                self.relaxed[self.an.var_atom(node.loop_var)] = (
                    self.an.linear(node.min), self.an.linear(ops.add(node.min, extent - 1))
                )  # fmt: skip
        regions: dict[Buffer, list[Interval]] = {}
        for node in walk(mine):
            if not isinstance(node, BufferLoad | S.BufferStore):
                continue
            found = [interval_of(self.an, self.an.linear(i), self.relaxed) for i in node.indices]
            if any(f is None for f in found):
                raise self.fail(f"what it uses of {node.buffer.name!r} has no bound")
            region: list[Interval] = found  # type: ignore[assignment]
            old = regions.get(node.buffer)
            regions[node.buffer] = region if old is None else [
                union(self.an, a, b) for a, b in zip(old, region, strict=True)
            ]  # fmt: skip
        self.starts = {b: [low for low, _ in region] for b, region in regions.items()}

    # -- comparing -------------------------------------------------------------------------------

    def _same(self, mine: S.Stmt, theirs: S.Stmt) -> None:
        """Raise ScheduleError unless two statements do the same."""
        match mine, theirs:
            case S.For(), S.For():
                if ops.as_int(mine.extent) != ops.as_int(theirs.extent):
                    raise self.fail(
                        f"loop {mine.loop_var.name!r} has {mine.extent} steps, its loop "
                        f"{theirs.loop_var.name!r} has {theirs.extent}"
                    )
                if mine.kind != S.ForKind.SERIAL:
                    raise self.fail(f"loop {mine.loop_var.name!r} is {mine.kind}")
                first = ops.add(theirs.loop_var, ops.sub(mine.min, theirs.min))
                self.an.bind(theirs.loop_var, 0, max((ops.as_int(theirs.extent) or 1) - 1, 0))
                self._same(substitute(mine.body, {mine.loop_var: first}), theirs.body)
            case S.SeqStmt(), S.SeqStmt() if len(mine.stmts) == len(theirs.stmts):
                for one, other in zip(mine.stmts, theirs.stmts, strict=True):
                    self._same(one, other)
            case S.IfThenElse(else_case=None), S.IfThenElse(else_case=None):
                self._same_value(mine.condition, theirs.condition)
                self._same(mine.then_case, theirs.then_case)
            case S.BufferStore(), S.BufferStore():
                here = self._local(mine.buffer, mine.indices, theirs.buffer)
                there = tuple(self.an.simplify(i) for i in theirs.indices)
                if not all(map(structural_equal, here, there)):
                    raise self.fail(f"it stores at {_list(here)}, the intrinsic at {_list(there)}")
                self._same_value(mine.value, theirs.value)
            case S.BufferStore() | S.IfThenElse(), S.For() if ops.as_int(theirs.extent) == 1:
                self._same(mine, substitute(theirs.body, {theirs.loop_var: theirs.min}))
            case S.For(), _ if ops.as_int(mine.extent) == 1:
                self._same(substitute(mine.body, {mine.loop_var: mine.min}), theirs)
            case _:
                hint = ""
                if isinstance(mine, S.SeqStmt):
                    hint = ". Take the start of the reduction out with decompose_reduction first"
                raise self.fail(f"it does\n{mine}\nwhere the intrinsic does\n{theirs}{hint}")

    def _same_value(self, mine: PrimExpr, theirs: PrimExpr) -> None:
        partners = self._partners(mine, theirs)

        def localised(node: Node) -> Node | None:
            if isinstance(node, BufferLoad):
                declared = partners[node.buffer]
                return BufferLoad(declared, self._local(node.buffer, node.indices, declared))
            return None

        here = self.an.simplify(rewrite_bottom_up(mine, localised))
        there = self.an.simplify(theirs)
        if not structural_equal(here, there):
            raise self.fail(f"the formulas differ. It computes {here}, the intrinsic {there}")

    def _partners(self, mine: PrimExpr, theirs: PrimExpr) -> dict[Buffer, Buffer]:
        """Return the intrinsic's buffer for each of the block's, in the order of the formulas."""
        loads = [[n.buffer for n in walk(x) if isinstance(n, BufferLoad)] for x in (mine, theirs)]
        if len(loads[0]) != len(loads[1]):
            raise self.fail(f"the formulas differ. It computes {mine}, the intrinsic {theirs}")
        return dict(zip(*loads, strict=True))

    def _local(
        self, own: Buffer, indices: tuple[PrimExpr, ...], declared: Buffer
    ) -> tuple[PrimExpr, ...]:
        """Return indices of a buffer of the block as those of the intrinsic's buffer."""
        if self.partner.setdefault(own, declared) is not declared:
            raise self.fail(
                f"buffer {own.name!r} stands for {self.partner[own].name!r} and {declared.name!r}"
            )
        if declared in (p for b, p in self.partner.items() if b is not own):
            raise self.fail(f"two of its buffers stand for {declared.name!r}")
        extra = own.ndim - declared.ndim
        if extra < 0 or own.dtype != declared.dtype:
            raise self.fail(
                f"buffer {own.name!r} ({own.dtype}, {own.ndim} dimensions) does not fit its "
                f"{declared.name!r} ({declared.dtype}, {declared.ndim} dimensions)"
            )
        local = [
            self.an.simplify(ops.sub(i, self.an.to_expr(low)))
            for i, low in zip(indices, self.starts[own], strict=True)
        ]
        if any(ops.as_int(i) != 0 for i in local[:extra]):
            raise self.fail(f"buffer {own.name!r} varies in a leading dimension")
        return tuple(local[extra:])

    # -- the implementation ----------------------------------------------------------------------

    def _implementation(self, real: dict[Buffer, Buffer]) -> tuple[S.Stmt, list[Buffer]]:
        """Return the statements over the block's buffers, and those that calls in them use."""
        body = self._fresh(_body(self.intrin.impl))
        values: dict[Any, Any] = {}
        for declared, own in real.items():
            values.update(self._fields(declared, own))
        calls = [n for n in walk(body) if isinstance(n, Call)]
        used = [own for d, own in real.items() if any(d.data in c.args for c in calls)]

        def rule(node: Node) -> Node | None:
            if isinstance(node, BufferLoad) and node.buffer in real:
                own = real[node.buffer]
                return BufferLoad(own, self._in_block(node.buffer, own, node.indices))
            if isinstance(node, S.BufferStore) and node.buffer in real:
                own = real[node.buffer]
                position = self._in_block(node.buffer, own, node.indices)
                return S.BufferStore(own, node.value, position)
            if isinstance(node, Call):
                return self._call(node, real)  # type: ignore[no-any-return]
            return None

        return substitute(rewrite_bottom_up(body, rule), values), used

    def _fresh(self, body: S.Stmt) -> S.Stmt:
        """Return statements with loops, blocks and memory of their own."""
        renamed: dict[Any, Any] = {}
        for node in walk(body):
            if isinstance(node, S.For):
                renamed[node.loop_var] = Var(node.loop_var.name, node.loop_var.dtype)
            elif isinstance(node, S.LetStmt):
                renamed[node.var] = Var(node.var.name, node.var.dtype)
            elif isinstance(node, S.Block):
                for axis in node.axes:
                    var = renamed[axis.var] = Var(axis.name, axis.dtype)
                    renamed[axis] = IterVar(axis.dom, var, axis.kind)
            elif isinstance(node, S.Allocate):
                old = node.buffer
                data = renamed[old.data] = Var(old.name, "handle")
                renamed[old] = old.replace(data=data)
        taken = {b.name for b in tree.blocks_of(self.root)}

        def named(block: S.Block) -> S.Block:
            number, name = 0, block.name
            while name in taken:
                number += 1
                name = f"{block.name}_{number}"
            taken.add(name)
            return block.replace(name=name, body=tree.map_blocks(block.body, named))  # type: ignore[no-any-return]

        return tree.map_blocks(substitute(body, renamed), named)  # type: ignore[no-any-return]

    def _fields(self, declared: Buffer, own: Buffer) -> dict[Any, Any]:
        """Return what an intrinsic reads of a buffer beside its elements: offset, strides."""
        strides = _strides(own)
        extra = own.ndim - declared.ndim
        values: dict[Any, Any] = {}
        if isinstance(declared.elem_offset, Var):
            values[declared.elem_offset] = self._offset(own)
        for want, have, size in zip(declared.strides, strides[extra:], declared.shape,
                                    strict=bool(declared.strides)):  # fmt: skip
            if isinstance(want, Var):
                values[want] = have
            elif ops.as_int(size) != 1 and not self.an.can_prove_equal(want, have):
                raise self.fail(
                    f"buffer {declared.name!r} needs stride {want}, but {own.name!r} has {have} "
                    "there. Change the layout (transform_layout, cache_read)"
                )
        values[declared.data] = own.data
        step = declared.offset_factor
        if step > 1 and not self.an.can_prove_equal(
            ops.floormod(self._offset(own), step), ops.const(0)
        ):
            raise self.fail(
                f"buffer {declared.name!r} needs an offset divisible by {step}, but it is "
                f"{self._offset(own)}"
            )
        return values

    def _offset(self, own: Buffer) -> PrimExpr:
        """Return the elements in front of a region of a buffer."""
        total: PrimExpr = ops.const(0) if own.elem_offset is None else own.elem_offset
        for start, stride in zip(self.starts[own], _strides(own), strict=True):
            total = ops.add(total, ops.mul(self.an.to_expr(start), stride))
        return self.an.simplify(total)  # type: ignore[no-any-return]

    def _in_block(
        self, declared: Buffer, own: Buffer, indices: tuple[PrimExpr, ...]
    ) -> tuple[PrimExpr, ...]:
        """Return indices of the intrinsic's buffer as those of the block's."""
        starts = [self.an.to_expr(s) for s in self.starts[own]]
        extra = len(starts) - len(indices)
        if indices and isinstance(indices[-1], Ramp):
            last = ops.as_int(declared.shape[-1])
            reach = (indices[-1].num_lanes - 1) * (ops.as_int(indices[-1].stride) or 1)
            if last is not None and reach >= last:
                self._need_compact(declared, own)
        moved = [
            Ramp(self.an.simplify(ops.add(start, i.base)), i.stride, i.num_lanes)
            if isinstance(i, Ramp) else self.an.simplify(ops.add(start, i))
            for start, i in zip(starts[extra:], indices, strict=True)
        ]  # fmt: skip
        return (*starts[:extra], *moved)

    def _need_compact(self, declared: Buffer, own: Buffer) -> None:
        """Raise ScheduleError unless the rows of a region lie one after the other."""
        strides, step = _strides(own), 1
        for size, stride in zip(reversed(declared.shape), reversed(strides), strict=False):
            if ops.as_int(size) != 1 and not self.an.can_prove_equal(
                stride, ops.const(step, stride.dtype)
            ):
                raise self.fail(
                    f"the rows of {declared.name!r} must lie one after the other, and those of "
                    f"{own.name!r} do not. Change the layout (transform_layout, cache_read)"
                )
            step *= ops.as_int(size) or 1

    def _call(self, node: Call, real: dict[Buffer, Buffer]) -> Any:
        """Return a call that gets the memory of an intrinsic's buffer, with that of its region."""
        of: dict[PrimExpr, Buffer] = {d.data: d for d in real if d.elem_offset is None}
        if node.op == "access_ptr":
            declared = of.get(node.args[0])
            if declared is None:
                return None
            data, offset, mask = node.args
            start = ops.add(self._offset(real[declared]), offset)
            return Call(node.dtype, node.op, (data, self.an.simplify(start), mask))
        if not any(a in of for a in node.args if isinstance(a, Var)):
            return None
        return Call(node.dtype, node.op, tuple(
            Call("handle", "access_ptr", (a, self._offset(real[of[a]]), ops.const(3)))
            if a in of else a for a in node.args
        ))  # fmt: skip


def _strides(buffer: Buffer) -> list[PrimExpr]:
    if buffer.strides:
        return list(buffer.strides)
    step: PrimExpr = ops.const(1)
    found = []
    for extent in reversed(buffer.shape):
        found.append(step)
        step = ops.mul(step, extent)
    return found[::-1]


def _list(indices: tuple[PrimExpr, ...]) -> str:
    return f"[{', '.join(map(str, indices))}]"
