"""Primitives that say how the result of a stage is stored: in which memory, in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.arguments import integer_of
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.te.primitives.state import StageBase

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar, PrimExprLike


class StoragePrimitives(StageBase):
    """Storage has a scope, strides, and copies."""

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
        factor = integer_of(factor, f"storage_align of stage {self.name!r}: factor", 1)
        offset = integer_of(offset, f"storage_align of stage {self.name!r}: offset")
        self.alignments[axis] = (factor, offset)
        self._log("storage_align", axis, factor, offset)

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
