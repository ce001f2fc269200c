"""The kernel that lays tensors beside each other by copying blocks (joining.c).

Generated loops ask for every element which tensor it comes from.
"""

from __future__ import annotations

from math import prod

from slipway.backends.in_place import Overlap
from slipway.backends.micro.kernels.layer import op_name, type_of
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.codegen.c.spelling import c_type
from slipway.relay.expr import Call, Expr, Function, Tuple, Var
from slipway.relay.types import TensorType

_MIN_BYTES = 4  # of a block; shorter ones are as fast in loops
_SAME_BYTES = ("reshape", "squeeze", "expand_dims")


def match_joining(name: str, function: Function) -> LibraryKernel | None:
    """Return the kernel of a fused function that joins its parameters and nothing else."""
    join = _bytes_of(function.body)
    if op_name(join) != "concatenate":
        return None
    assert isinstance(join, Call)
    parts: tuple[Expr, ...] = join.args
    if len(parts) == 1 and isinstance(parts[0], Tuple):
        parts = parts[0].fields
    numbers = {id(p): i for i, p in enumerate(function.params)}
    sources = [numbers.get(id(e)) if isinstance(e := _bytes_of(p), Var) else None for p in parts]
    types = [t for part in parts if isinstance(t := part.checked_type, TensorType)]
    whole = type_of(join)
    outer = prod(whole.shape[: join.attrs.axis % len(whole.shape)])
    if None in sources or len(types) != len(parts) or not outer:
        return None
    blocks = [t.size_bytes // outer for t in types]
    if min(blocks) < _MIN_BYTES or sum(blocks) * outer != whole.size_bytes:
        return None
    parameters = ", ".join(
        f"const {c_type(type_of(p).dtype)} *p{i}" for i, p in enumerate(function.params)
    )
    lines = [
        f"SLW_KERNEL int32_t {name}({parameters}, {c_type(whole.dtype)} *out) {{",
        "  int8_t *to = (int8_t *)(void *)out;",
    ]
    for i, (source, block) in enumerate(zip(sources, blocks, strict=True)):
        lines.append(
            f"  slw_copy_blocks(to + {sum(blocks[:i])}, {sum(blocks)}u, "
            f"(const int8_t *)(const void *)p{source}, {block}u, {outer}u);"
        )
    text = "\n".join([*lines, "  return 0;", "}", ""])
    # The last tensor is read forwards, after all others: the output may end where it ends.
    last = sources[-1]
    overlaps = (
        (Overlap(last, 0, sum(blocks[:-1]), False),) if outer == 1 and last is not None else ()
    )
    return LibraryKernel("joining", text, 0, overlaps, None, None)


def _bytes_of(expr: Expr) -> Expr:
    """Return what has the bytes of `expr` under another shape."""
    while op_name(expr) in _SAME_BYTES:
        assert isinstance(expr, Call)
        expr = expr.args[0]
    return expr
