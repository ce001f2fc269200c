"""Stage: the schedule of one operation.

A stage starts with one loop per axis of its operation.  Its primitives append relations and
marks; nothing is rewritten until lowering reads them.  Every primitive also adds one plain step
to the schedule's `steps`, from which the schedule can be replayed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir import ops
from slipway.ir.expr import IntImm, IterVar, PrimExpr, Range, Var
from slipway.ir.stmt import ForKind
from slipway.ir.text.serialize import save_json
from slipway.ir.visit import walk
from slipway.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp
from slipway.te.relations import Fuse, IterVarAttr, Singleton, Split

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike
    from slipway.te.group import Group
    from slipway.te.schedule import Schedule
    from slipway.te.tensor import Tensor
    from slipway.te.tensor_intrin import TensorIntrin

ROOT, INLINE, SCOPE, GROUP_ROOT = "root", "inline", "scope", "group_root"
IMPORTS = ("import_c", "import_llvm")  # pragmas that bring source along
# The last two say nothing to this compiler: it always expands unrolled loops, and a task's share of
# a parallel loop is a stretch of it.
PRAGMAS = (
    "auto_unroll_max_step",
    "loop_partition_hint",
    *("loop_in_tail", "half_in_tail"),
    *IMPORTS,
    "parallel_launch_point",
    "parallel_barrier_when_finish",
    *("unroll_explicit", "parallel_stride_pattern"),
)


class Stage:
    """The schedule of operation `op`.

    `leaf_iter_vars` are the loops from the outermost in; `relations` say how they came from the
    operation's axes.  `attach_type` is "root" (its own loops), "inline", or "scope" (inside loop
    `attach_ivar` of `attach_stage`).  `origin_op` is the operation the stage was created for.
    """

    def __init__(self, schedule: Schedule, op: Operation, number: int) -> None:
        self.schedule = schedule
        self.number = number
        self.origin_op = op
        self.is_output = False
        self.scope = ""
        self.attach_type = ROOT
        self.attach_ivar: IterVar | None = None
        self.attach_stage: Stage | None = None
        self.group: Group | None = None
        self.buffer_copies = 1
        self.swizzle_unit = 0  # elements that stay beside each other; 0: none are moved
        self.env_thread_vars: tuple[IterVar, ...] = ()
        self.store_predicate: PrimExpr | None = None
        self.limits: list[tuple[PrimExpr, PrimExpr]] = []
        self.alignments: dict[IterVar, tuple[int, int]] = {}
        self.axes_ever: list[IterVar] = []
        self.set_op(op)

    def set_op(self, op: Operation) -> None:
        """Make `op` the operation of this stage and start again from its axes."""
        self.op = op
        self.all_iter_vars: list[IterVar] = []
        self.leaf_iter_vars: list[IterVar] = []
        self.relations: list[Any] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}
        for axis in op.root_iter_vars:
            self._add_axis(axis)
            if not (isinstance(op, ScanOp) and axis.kind == "opaque"):
                self.leaf_iter_vars.append(axis)
        if isinstance(op, ComputeOp) and op.intrinsic is not None:
            self._begin_with(op.intrinsic)

    def _begin_with(self, intrin: TensorIntrin) -> None:
        """Let an intrinsic compute the innermost axes of the operation."""
        axes, reduced = self.op.axis, self.op.reduce_axis
        data = len(axes) - len(intrin.op.axis)
        over = len(reduced) - len(intrin.op.reduce_axis)
        inner = [*axes[data:], *reduced[over:]]
        self.leaf_iter_vars = [*axes[:data], *reduced[:over], *inner]
        mark = self.attr(inner[0])
        mark.kind, mark.tensor_intrin = "tensorized", intrin

    def _add_axis(self, axis: IterVar) -> None:
        self.all_iter_vars.append(axis)
        self.axes_ever.append(axis)

    def __repr__(self) -> str:
        return f"stage({self.op.name}, {self.op})"

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def loop_of(self, axis: IterVar) -> IterVar:
        """Return the loop that an axis became: the inner one of a split, what it is fused in."""
        for relation in self.relations:
            if isinstance(relation, Split) and relation.parent is axis:
                axis = relation.inner
            elif isinstance(relation, Fuse) and axis in (relation.outer, relation.inner):
                axis = relation.fused
        return axis

    def attr(self, axis: IterVar) -> IterVarAttr:
        """Return the marks of a leaf axis."""
        found = self.iter_var_attrs.get(axis)
        if found is None:
            found = self.iter_var_attrs[axis] = IterVarAttr()
        return found

    # -- checks --------------------------------------------------------------------------------

    def _leaf(self, axis: IterVar, what: str) -> int:
        """Return the position of a leaf axis, or explain why it is none."""
        if not isinstance(axis, IterVar):
            raise ScheduleError(
                f"cannot {what} {axis!r} in stage {self.name!r}: it is not an axis. "
                f"Pass one of {self._axis_names()}, as returned by s[T].op.axis, split or fuse"
            )
        for position, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return position
        name = axis.name
        if any(a is axis for a in self.all_iter_vars):
            how = "split or fused before"
            for relation in self.relations:
                if isinstance(relation, Split) and relation.parent is axis:
                    how = f"split before into {relation.outer.name!r} and {relation.inner.name!r}"
                elif isinstance(relation, Fuse) and axis in (relation.outer, relation.inner):
                    how = f"fused before into {relation.fused.name!r}"
            raise ScheduleError(
                f"cannot {what} axis {name!r} of stage {self.name!r}: it was {how}. "
                f"Use one of its loops: {self._axis_names()}"
            )
        hint = did_you_mean(name, [a.name for a in self.leaf_iter_vars])
        raise ScheduleError(
            f"cannot {what} axis {name!r} in stage {self.name!r}: it belongs to another stage. "
            f"This stage has the loops {self._axis_names()}.{hint}"
        )

    def _axis_names(self) -> str:
        return ", ".join(repr(a.name) for a in self.leaf_iter_vars) or "none"

    def _computes(self, what: str) -> None:
        if isinstance(self.op, PlaceholderOp):
            raise ScheduleError(
                f"cannot {what} stage {self.name!r}: it is an input (placeholder) and computes "
                "nothing. Use s.cache_read to stage an input"
            )

    def _positive(self, value: PrimExprLike, what: str, axis: IterVar) -> PrimExpr:
        amount = ops.as_extent(value)
        if isinstance(amount, IntImm) and amount.value < 1:
            raise ScheduleError(
                f"cannot split axis {axis.name!r} of stage {self.name!r} with {what}="
                f"{amount.value}: it must be at least 1"
            )
        return amount

    def _log(self, primitive: str, *arguments: Any) -> None:
        self.schedule.log(self, primitive, arguments)

    # -- loops -----------------------------------------------------------------------------------

    def split(
        self,
        parent: IterVar,
        factor: Any = None,
        nparts: Any = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Split a loop in two.

        rewrite: ``for p in n`` -> ``for p.outer in ceil(n / factor): for p.inner in factor``, with
        a guard when factor does not divide n (left out under `disable_predication`).
        With `nparts`, the outer loop has that many steps.  Returns (outer, inner).

        `tail` "shift" needs no guard: the last step begins at n - factor, and computes again what
        the step before has computed (p = min(p.outer * factor, n - factor) + p.inner).  So no data
        axis of a reduction can have it, nor a kernel that writes into one of its inputs; along a
        reduced axis, what comes again is left out.
        """
        if (factor is None) == (nparts is None):
            raise ScheduleError(
                f"cannot split axis {getattr(parent, 'name', parent)!r} of stage {self.name!r}: "
                "give exactly one of factor= (steps of the inner loop) and nparts= (of the outer)"
            )
        position = self._leaf(parent, "split")
        if parent.kind == "ordered":
            raise ScheduleError(
                f"cannot split axis {parent.name!r} of stage {self.name!r}: a scan runs in order. "
                "Split the axes of its update stage instead"
            )
        if tail not in ("guard", "shift"):
            raise ScheduleError(f"tail={tail!r} of a split must be 'guard' or 'shift'")
        if tail == "shift" and self.op.reduce_axis and parent.kind != "reduce":
            raise ScheduleError(
                f"cannot split axis {parent.name!r} of stage {self.name!r} with tail='shift': its "
                "reduction would add some elements twice. Use the default tail, or cache_write the "
                "reduction and split the stage that copies it"
            )
        size = self._positive(factor, "factor", parent) if factor is not None else None
        parts = self._positive(nparts, "nparts", parent) if nparts is not None else None
        kind = parent.kind
        outer = IterVar(None, Var(parent.name + ".outer", parent.dtype), kind)
        inner = IterVar(None, Var(parent.name + ".inner", parent.dtype), kind)
        shifted = tail == "shift"
        self.relations.append(
            Split(parent, outer, inner, size, parts, disable_predication, shifted)
        )
        self._add_axis(outer)
        self._add_axis(inner)
        self.leaf_iter_vars[position : position + 1] = [outer, inner]
        self._log("split", parent, factor, nparts, disable_predication, tail)
        return outer, inner

    def fuse(self, *args: IterVar) -> IterVar:
        """Fuse adjacent loops into one; two that are given inner first are put in their order.

        rewrite: ``for a in m: for b in n`` -> ``for a.b.fused in m * n``.  Returns the fused axis.
        """
        axes = (
            list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)
        )
        if not axes:
            unit = IterVar(Range.of(1), Var("singleton"), "data")
            self.relations.append(Singleton(unit))
            self._add_axis(unit)
            self.leaf_iter_vars.insert(0, unit)
            self._log("fuse")
            return unit
        fused = axes[0]
        self._leaf(fused, "fuse")
        for inner in axes[1:]:
            fused = self._fuse_two(fused, inner)
        self._log("fuse", *axes)
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        first, second = self._leaf(outer, "fuse"), self._leaf(inner, "fuse")
        if first == second + 1:
            outer, inner, first, second = inner, outer, second, first
        if second != first + 1:
            raise ScheduleError(
                f"cannot fuse axes {outer.name!r} and {inner.name!r} of stage {self.name!r}: only "
                f"iterations that are consecutive are fused; the order is {self._axis_names()}. "
                "Use reorder first"
            )
        if (outer.kind == "reduce") != (inner.kind == "reduce"):
            raise ScheduleError(
                f"cannot fuse axes {outer.name!r} and {inner.name!r} of stage {self.name!r}: one "
                "is a reduction axis and the other is not. Fuse only axes of one kind"
            )
        name = f"{outer.name}.{inner.name}.fused"
        fused = IterVar(None, Var(name, outer.dtype), outer.kind)
        self.relations.append(Fuse(outer, inner, fused))
        self._add_axis(fused)
        self.leaf_iter_vars[first : second + 1] = [fused]
        return fused

    def reorder(self, *args: IterVar) -> None:
        """Put the given loops in the given order, in the places they take up now.

        rewrite: ``for a: for b`` -> ``for b: for a``.  Other loops stay where they are.
        """
        axes = (
            list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)
        )
        positions = [self._leaf(axis, "reorder") for axis in axes]
        if len(set(positions)) != len(positions):
            double = next(a.name for i, a in enumerate(axes) if a in axes[:i])
            raise ScheduleError(
                f"cannot reorder stage {self.name!r}: axis {double!r} is named twice"
            )
        for position, axis in zip(sorted(positions), axes, strict=True):
            self.leaf_iter_vars[position] = axis
        self._log("reorder", *axes)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: PrimExprLike, y_factor: PrimExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops and order them as tiles.

        rewrite: ``for x: for y`` -> ``for x.outer: for y.outer: for x.inner: for y.inner``.
        """
        xo, xi = self.split(x_parent, x_factor)
        yo, yi = self.split(y_parent, y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def _mark(self, axis: IterVar, kind: str, what: str) -> None:
        self._leaf(axis, what)
        if axis.kind == "reduce" and kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
            raise ScheduleError(
                f"cannot {what} axis {axis.name!r} of stage {self.name!r}: it is a reduction axis, "
                "its steps update one element. Use s.rfactor first, or another axis"
            )
        if axis.kind == "ordered":
            raise ScheduleError(
                f"cannot {what} axis {axis.name!r} of stage {self.name!r}: a scan runs in order"
            )
        self.attr(axis).kind = kind

    def vectorize(self, var: IterVar) -> None:
        """Run the steps of a loop as lanes of vectors.  Any constant extent works."""
        self._mark(var, ForKind.VECTORIZED, "vectorize")
        self._log("vectorize", var)

    def unroll(self, var: IterVar) -> None:
        """Write the body of a loop once per step."""
        self._mark(var, ForKind.UNROLLED, "unroll")
        self._log("unroll", var)

    def parallel(self, var: IterVar) -> None:
        """Share the steps of a loop among threads."""
        self._mark(var, ForKind.PARALLEL, "parallelize")
        self._log("parallel", var)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Let each step of a loop be one thread of `thread_ivar`."""
        self._leaf(ivar, "bind")
        if not isinstance(thread_ivar, IterVar) or thread_ivar.kind != "thread":
            raise ScheduleError(
                f"cannot bind axis {ivar.name!r} of stage {self.name!r} to {thread_ivar!r}: "
                'it is not a thread axis. Make one with te.thread_axis("threadIdx.x")'
            )
        for other in self.leaf_iter_vars:
            known = self.iter_var_attrs.get(other)
            if (
                other is not ivar
                and known is not None
                and known.bind_thread is not None
                and known.bind_thread.thread_tag == thread_ivar.thread_tag
                and "vthread" not in thread_ivar.thread_tag
            ):
                raise ScheduleError(
                    f"cannot bind axis {ivar.name!r} of stage {self.name!r} to "
                    f"{thread_ivar.thread_tag}: axis {other.name!r} is bound to it already"
                )
        self.attr(ivar).bind_thread = thread_ivar
        self._log("bind", ivar, thread_ivar.thread_tag)

    def env_threads(self, threads: Any) -> None:
        """Run this scan inside the given threads, or an extern stage in one of them."""
        items = tuple(threads) if isinstance(threads, (tuple, list)) else (threads,)
        if not isinstance(self.op, ScanOp | ExternOp):
            raise ScheduleError(
                f"env_threads is of scans and extern stages: bind the axes of stage {self.name!r}"
            )
        self.env_thread_vars = items
        if isinstance(self.op, ScanOp):
            self.leaf_iter_vars[:0] = items
            for axis in items:
                self._add_axis(axis)
        self._log("env_threads", *(t.thread_tag for t in items))

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a pragma to a loop.

        "auto_unroll_max_step" (statements) unrolls loops inside; "loop_partition_hint" cuts the
        loop where the conditions inside it change; "loop_in_tail" leaves it a loop where each step
        asks; "half_in_tail" takes half the steps where others are outside; "import_c" and
        "import_llvm" bring the source of functions that call_extern names; "vectorize", "unroll"
        and "parallel" are the primitives of those names.  With "parallel_launch_point" every task
        runs the whole loop, and its share of the parallel loops inside, the same of loops as long:
        what it computes outside of those is its own.  Where one of them has
        "parallel_barrier_when_finish", they are launched one by one.  The others of PRAGMAS are for
        classic scripts.  ScheduleError for a misspelt one.
        """
        if pragma_type in ("vectorize", "unroll", "parallel"):  # once the way to write these
            getattr(self, pragma_type)(var)
            return
        self._leaf(var, "add a pragma to")
        if pragma_type not in PRAGMAS:
            subject = f"pragma {pragma_type!r} (axis {var.name!r} of stage {self.name!r})"
            hint = did_you_mean(pragma_type, PRAGMAS)
            if hint:
                raise ScheduleError(f"there is no {subject}.{hint} Known: {', '.join(PRAGMAS)}")
            warnings.warn(f"{subject} means nothing here and is left out. Known: "
                          f"{', '.join(PRAGMAS)}", UserWarning, stacklevel=2)  # fmt: skip
        if pragma_type in IMPORTS:
            pragma_value = _text_of(pragma_value, pragma_type)
        mark = self.attr(var)
        mark.pragmas = (*mark.pragmas, (pragma_type, pragma_value))
        self._log("pragma", var, pragma_type, pragma_value)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: PrimExprLike) -> None:
        """Prefetch what `tensor` is read at, `offset` steps of loop `var` ahead."""
        self._leaf(var, "prefetch in")
        mark = self.attr(var)
        mark.prefetch = (*mark.prefetch, (tensor, ops.as_expr(offset)))
        self._log(
            "prefetch", self.schedule.tensor_key(tensor), var, ops.as_int(ops.as_expr(offset))
        )

    def prefetch_at(
        self, tensor: Tensor, var: IterVar, indices: Sequence[Any], level: int = 1
    ) -> None:
        """Prefetch ``tensor[indices]`` in every step of loop `var`, into caches from `level` on.

        `indices` are integers and expressions over the axes of this stage (`op.axis`,
        `op.reduce_axis`); the loops inside `var` count as zero.  The place may lie beyond the end
        of an axis or of the tensor: it is an address of the flattened tensor, and only asked for.
        Raises ScheduleError for a wrong number of indices, and for other variables in them.
        """
        self._leaf(var, "prefetch in")
        self._computes("prefetch in")
        if len(indices) != len(tensor.shape):
            raise ScheduleError(
                f"cannot prefetch from {tensor.name!r} in stage {self.name!r}: it has "
                f"{len(tensor.shape)} axes, got {len(indices)} indices"
            )
        exprs = tuple(ops.as_expr(i) for i in indices)
        axes = {axis.var: axis for axis in self.op.root_iter_vars}
        used = {node for position in exprs for node in walk(position) if isinstance(node, Var)}
        if strange := sorted(v.name for v in used - axes.keys()):
            raise ScheduleError(
                f"cannot prefetch from {tensor.name!r} in stage {self.name!r} at variable "
                f"{strange[0]!r}: indices may use the axes of this stage: "
                f"{', '.join(repr(a.name) for a in axes.values())}"
            )
        mark = self.attr(var)
        mark.prefetch_at = (*mark.prefetch_at, (tensor, exprs, level))
        named = [v for v in axes if v in used]
        text = save_json((exprs, tuple(named), level))
        key = self.schedule.tensor_key(tensor)
        self._log("prefetch_at", key, var, text, *(axes[v] for v in named))

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Replace loop `var` and all loops inside it by a tensor intrinsic."""
        self._leaf(var, "tensorize")
        self._computes("tensorize")
        mark = self.attr(var)
        mark.kind = "tensorized"
        mark.tensor_intrin = tensor_intrin
        self._log("tensorize", var, getattr(tensor_intrin, "name", ""))

    # -- place -----------------------------------------------------------------------------------

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside loop `scope` of stage `parent`, as much as is read there."""
        self._computes("compute_at")
        if not isinstance(parent, Stage):
            raise ScheduleError(
                f"compute_at of stage {self.name!r} needs a stage such as s[C], got {parent!r}"
            )
        around = parent.group
        while around is not None and around is not self.group:
            around = around.group
        owner = None if self.group is None else self.group.attach_stage
        if around is not self.group and parent is not owner:
            raise ScheduleError(
                f"cannot compute stage {self.name!r} at {parent.name!r}: it belongs to a group of "
                f"stages (a scan's body, or create_group), and {parent.name!r} does not. Place the "
                "group: its own compute_at"
            )
        self.place_at(parent, scope)

    def place_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside loop `scope` of `parent`, whatever group it belongs to."""
        if parent is self:
            raise ScheduleError(f"cannot compute stage {self.name!r} at a loop of itself")
        if self.is_output:
            consumers = [s for s in self.schedule.stages if self._feeds(s)]
            if parent not in consumers:
                raise ScheduleError(
                    f"cannot compute stage {self.name!r} at {parent.name!r}: it is an output of "
                    f"the schedule and {parent.name!r} does not read it"
                )
        parent._leaf(scope, f"compute stage {self.name!r} at")
        self.attach_type, self.attach_stage, self.attach_ivar = SCOPE, parent, scope
        self._log("compute_at", parent, scope)

    def _feeds(self, consumer: Stage) -> bool:
        return any(t.op is self.op or t.op is self.origin_op for t in consumer.op.input_tensors)

    def compute_inline(self) -> None:
        """Compute each element where it is read; the stage has no loops or storage of its own."""
        self._computes("inline")
        if self.is_output:
            raise ScheduleError(
                f"cannot inline stage {self.name!r}: it is an output of the schedule"
            )
        if not isinstance(self.op, ComputeOp) or self.op.reduce_axis:
            raise ScheduleError(
                f"cannot inline stage {self.name!r}: only an elementwise compute can be inlined, "
                "a reduction or extern call needs storage. Use compute_at"
            )
        self.attach_type, self.attach_stage, self.attach_ivar = INLINE, None, None
        self._log("compute_inline")

    def compute_root(self) -> None:
        """Compute this stage in loops of its own, before its consumers."""
        self.attach_type, self.attach_stage, self.attach_ivar = ROOT, None, None
        self._log("compute_root")

    # -- storage ---------------------------------------------------------------------------------

    def set_scope(self, scope: str) -> None:
        """Keep the result of this stage in memory scope `scope` ("local", "shared", ...)."""
        if self.is_output and scope not in ("", "global"):
            raise ScheduleError(
                f"cannot put stage {self.name!r} in scope {scope!r}: it is an output, whose memory "
                "is the caller's. Use s.cache_write to get a stage of its own"
            )
        self.scope = scope
        self._log("set_scope", scope)

    def set_store_predicate(self, predicate: PrimExprLike) -> None:
        """Store only where `predicate` holds."""
        self.store_predicate = ops.as_expr(predicate)

    def compute_below(self, value: PrimExprLike, limit: PrimExprLike) -> None:
        """Compute nothing where `value`, of the axes, is `limit` or more: nobody reads it there.

        What is computed at its axes is left out too.
        """
        self.limits.append((ops.as_expr(value), ops.as_expr(limit)))

    def double_buffer(self, copies: int = 2) -> None:
        """Keep two copies of this stage's storage: one filled while the other is read.

        GPUs that copy while they compute may have more; others have at most two.
        """
        if self.is_output:
            raise ScheduleError(f"cannot double-buffer stage {self.name!r}: it is an output")
        if not isinstance(copies, int) or copies < 2:
            raise ScheduleError(
                f"stage {self.name!r} cannot have {copies!r} copies of its storage: give a whole "
                "number from 2 on"
            )
        self.buffer_copies = copies
        self._log("double_buffer", *([copies] if copies > 2 else []))

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad the storage so that the stride of `axis` is ``k * factor + offset`` elements."""
        if not any(a is axis for a in self.op.axis):
            raise ScheduleError(
                f"cannot align axis {getattr(axis, 'name', axis)!r} of stage {self.name!r}: pass "
                f"one of s[T].op.axis: {', '.join(a.name for a in self.op.axis)}"
            )
        if self.swizzle_unit:
            raise ScheduleError(
                f"cannot align stage {self.name!r}: its rows are swizzled. Ask for one of them"
            )
        self.alignments[axis] = (int(factor), int(offset))
        self._log("storage_align", axis, int(factor), int(offset))

    def swizzle(self, unit: int = 1) -> None:
        """Permute each row of the storage, so that columns of rows lie in different banks.

        A row is what the last axis is over.  Its elements stay together `unit` at a time, as many
        as one instruction moves: part c of row i lies where part ``c ^ i`` would (or ``c ^ i // r``
        where r rows are no more than the banks).  GPUs have scope "shared" so; elsewhere rows are
        as they were.  Unlike `storage_align` it takes no memory.
        """
        if self.is_output:
            raise ScheduleError(f"cannot swizzle stage {self.name!r}: it is an output")
        if not isinstance(unit, int) or unit < 1 or unit & (unit - 1):
            raise ScheduleError(
                f"cannot swizzle stage {self.name!r} by {unit!r} elements: give a power of two"
            )
        if self.alignments:
            raise ScheduleError(
                f"cannot swizzle stage {self.name!r}: storage_align has moved its rows apart. "
                "Ask for one of them"
            )
        self.swizzle_unit = unit
        self._log("swizzle", *([unit] if unit > 1 else []))

    def rolling_buffer(self) -> None:
        """Not offered: keep only the part of a stage that later steps still read."""
        raise ScheduleError("rolling_buffer is not supported; use compute_at and double_buffer")


def _text_of(value: object, pragma: str) -> str:
    """The source (or path) that an import pragma was given."""
    text = getattr(value, "value", value)
    if isinstance(text, (bytes, bytearray)):
        text = text.decode()
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str) or not text.strip():
        raise ScheduleError(f"pragma {pragma} needs the source as text, got {value!r}")
    return text
