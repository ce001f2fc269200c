"""Blocks of TensorIR, as the statements they stand for.

before: ``for i in range(8): for k in range(4): block C: vi = data(8, i), vk = reduce(4, k)
          init: C[vi] = 0 ; C[vi] = C[vi] + A[vi, vk]``
after:  ``for i in range(8): for k in range(4): if k == 0: C[i] = 0 ; C[i] = C[i] + A[i, k]``
"""

from __future__ import annotations

from typing import Any

from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import IntImm
from slipway.ir.function import PrimFunc
from slipway.ir.visit import rewrite_bottom_up, substitute, walk

ATTRIBUTE = "tir.blocks"  # of functions that have blocks
IMPORTS = "import_source"  # of functions that bring source along
PRAGMA = "pragma_"  # before the name of a pragma, in an annotation of a loop or block


def has_blocks(func: PrimFunc) -> bool:
    """Return whether `func` was made with blocks in it."""
    return bool(func.attr(ATTRIBUTE, False))


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """Return `func` without blocks."""
    if not has_blocks(func):
        return func
    from slipway.transform.loop.compact_buffers import compact_buffers  # most have no blocks

    sources = tuple(
        (key.removeprefix(PRAGMA), str(value))
        for node in walk(func.body) if isinstance(node, S.Block | S.For)
        for key, value in node.annotations if key.startswith(PRAGMA + "import_")
    )  # fmt: skip
    attrs = tuple(pair for pair in func.attrs if pair[0] not in (ATTRIBUTE, IMPORTS))
    if known := dict.fromkeys((*func.attr(IMPORTS, ()), *sources)):
        attrs = (*attrs, (IMPORTS, tuple(known)))
    body = compact_buffers(without_blocks(func.body))
    return func.replace(body=body, attrs=attrs)  # type: ignore[no-any-return]


def without_blocks(stmt: S.Stmt) -> S.Stmt:
    """Return statements as they run, without blocks."""
    return rewrite_bottom_up(stmt, _lowered)  # type: ignore[no-any-return]


def _lowered(node: Any) -> Any:
    if isinstance(node, S.For) and any(key.startswith(PRAGMA) for key, _ in node.annotations):
        return node.replace(annotations=tuple(
            (key.removeprefix(PRAGMA), value) for key, value in node.annotations
            if not key.startswith(PRAGMA + "import_")
        ))  # fmt: skip
    if not isinstance(node, S.Block):
        return None
    body = node.body
    if node.init is not None:
        first = [
            ops.equal(axis.var, axis.dom.min)
            for axis in node.axes
            if axis.kind == "reduce" and axis.dom is not None
        ]
        init = S.IfThenElse(ops.all_of(first), node.init) if first else node.init
        body = S.seq((init, body))
    values = {axis.var: value for axis, value in zip(node.axes, node.bindings, strict=True)}
    body = substitute(body, values)
    if isinstance(node.predicate, IntImm) and node.predicate.value:
        return body
    return S.IfThenElse(node.predicate, body)
