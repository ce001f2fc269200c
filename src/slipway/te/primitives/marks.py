"""Primitives that say how a loop runs: in vectors, on threads, by an intrinsic, with prefetches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.arguments import integer_of, text_of
from slipway.errors import ScheduleError, did_you_mean
from slipway.ir import ops
from slipway.ir.expr import IterVar, Var
from slipway.ir.stmt import ForKind
from slipway.ir.text.serialize import save_json
from slipway.ir.visit import walk
from slipway.te.operation import ExternOp, ScanOp
from slipway.te.primitives.state import StageBase

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike
    from slipway.te.tensor import Tensor
    from slipway.te.tensor_intrin import TensorIntrin

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


class MarkPrimitives(StageBase):
    """Loops are marked; they stay the loops they are."""

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
        text_of(pragma_type, f"the pragma of axis {getattr(var, 'name', var)!r}", "'unroll'")
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
        if pragma_type.startswith("auto_unroll_"):
            pragma_value = integer_of(pragma_value, f"pragma {pragma_type!r}")
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
