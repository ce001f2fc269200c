"""Relations between the axes of a stage: what split and fuse record.

``Split``: parent = outer * factor + inner.  ``Fuse``: fused = outer * extent(inner) + inner.
``Singleton``: an axis of extent 1.  All axes count from zero; the minimum of a root axis is added
where its value is rebuilt.
"""

from __future__ import annotations

from typing import Any

from slipway.ir.expr import IterVar, PrimExpr, StringImm
from slipway.ir.node import Node, node


@node
class Split(Node):
    """`parent` became `outer` (its steps) and `inner` (inside a step); one of factor, nparts.

    `exact`: the caller promises that steps fill the parent.  `shifted`: the last step starts so
    early that it ends with the parent.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: PrimExpr | None
    nparts: PrimExpr | None
    exact: bool = False
    shifted: bool = False


@node
class Fuse(Node):
    """`outer` and `inner` became `fused`."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@node
class Singleton(Node):
    """`iter` runs once; made by fusing no axes."""

    iter: IterVar


class IterVarAttr:
    """What a schedule says of one leaf axis, beside its place."""

    __slots__ = (
        "bind_thread",
        "kind",
        "pragmas",
        "prefetch",
        "prefetch_at",
        "tensor_intrin",
    )

    @property
    def pragma_keys(self) -> tuple[StringImm, ...]:
        """The names of the pragmas (the classic attribute)."""
        return tuple(StringImm(key) for key, _ in self.pragmas)

    @property
    def iter_type(self) -> str:
        """The kind under its classic name, as IterVar.Vectorized; "data" where nothing is asked."""
        return IterVar.Tensorized if self.tensor_intrin is not None else self.kind or "data"

    def __init__(self) -> None:
        self.kind = ""  # "", or a ForKind
        self.bind_thread: IterVar | None = None
        self.tensor_intrin: Any = None
        self.pragmas: tuple[tuple[str, Any], ...] = ()
        self.prefetch: tuple[tuple[Any, Any], ...] = ()
        self.prefetch_at: tuple[tuple[Any, tuple[PrimExpr, ...], int], ...] = ()
