"""Memory between kernels in scope "global.texture": its layout as an image, before it is flat.

A kernel of a model has some among its arguments (`gpu.images`).

before: ``allocate A.texture[8, 16, 4] in global.texture``
after:  the same, with rows of 8 lines that lie 65,536 elements apart (ir/instructions/texels.py)

Languages without images have it as memory like any.
"""

from __future__ import annotations

from math import prod
from typing import Any

from slipway.errors import LoweringError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad
from slipway.ir.function import PrimFunc
from slipway.ir.instructions import texels
from slipway.ir.visit import map_children, substitute, walk
from slipway.target import Target

_HAVE_IMAGES = ("opencl",)


def lay_out_textures(func: PrimFunc) -> PrimFunc:
    """Return `func` with the strides of its textures.

    Raises LoweringError for memory that no image is of.
    """
    images = [(p, b) for p, b in func.buffer_map if texels.is_texture(b.scope)]
    if not images and not any(_is_texture(n) for n in S.statements(func.body)):
        return func
    target = func.attr("target")
    body, told = func.body, {}
    for param, buffer in images:  # whose caller sees the tensor that it holds
        body = substitute(body, {buffer: _as_memory(buffer, func.name, target)})
        told[id(param)] = buffer.replace(scope="global")
    buffers = tuple((p, told.get(id(p), b)) for p, b in func.buffer_map)
    made: PrimFunc = func.replace(body=_laid_out(body, func.name, target), buffer_map=buffers)
    return made


def refuse_image_arguments(func: PrimFunc) -> None:
    """Raise LoweringError for an argument that is an image, which no caller's array is."""
    given = {id(buffer.data) for _, buffer in func.buffer_map}
    for node in walk(func.body):
        if isinstance(node, BufferLoad | S.BufferStore):
            buffer = node.buffer
            if texels.is_texture(buffer.scope) and id(buffer.data) in given:
                raise LoweringError(
                    f"{func.name}: argument {buffer.name!r} is in scope {buffer.scope!r}, and "
                    "arrays of a caller are no images: leave the scope out, and let a stage of the "
                    "function copy it into one, as cache_read does"
                )


def _as_memory(buffer: Buffer, name: str, target: Target | None) -> Buffer:
    """Return a texture as its language has it."""
    made: Buffer
    if target is None or target.kind.name not in _HAVE_IMAGES:
        made = buffer.replace(scope="global")
    else:
        made = buffer.replace(strides=_strides(buffer, name, target))
    return made


def _is_texture(node: S.Stmt) -> bool:
    return isinstance(node, S.Allocate) and texels.is_texture(node.buffer.scope)


def _laid_out(node: Any, name: str, target: Target | None) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    made = map_children(node, lambda child: _laid_out(child, name, target))
    if not _is_texture(made):
        return made
    buffer: Buffer = made.buffer
    fresh = _as_memory(buffer, name, target)
    return made.replace(buffer=fresh, body=substitute(made.body, {buffer: fresh}))


def _strides(buffer: Buffer, name: str, target: Target) -> tuple[Any, ...]:
    """Return the strides of an image's memory."""
    shape = [ops.as_int(extent) for extent in buffer.shape]
    known = [extent for extent in shape if extent is not None]
    what = f"{name}: texture {buffer.name!r} of shape {list(buffer.shape)}"
    if len(known) != len(shape) or len(known) < 2 or known[-1] != texels.LANES:
        raise LoweringError(
            f"{what}: an image has rows of texels of {texels.LANES} numbers. Give it a known "
            f"shape whose last axis is {texels.LANES}, as of data in blocks of four channels "
            "(NCHW4c)"
        )
    if buffer.dtype not in texels.DTYPES:
        raise LoweringError(
            f"{what} is of {buffer.dtype}; images have {' and '.join(texels.DTYPES)}. Keep it in "
            'scope "global"'
        )
    rows = texels.row_axes(buffer.scope, len(known))
    down, across = known[:rows], known[rows:-1]
    most = min(int(target.attrs.get("texture_spatial_limit") or texels.MOST), texels.MOST)
    if max(prod(down), prod(across)) > most:
        raise LoweringError(
            f"{what}: an image of {prod(across)} x {prod(down)} texels; this target has {most} "
            "along a side. Choose another of its scopes, smaller blocks, or what the device has: "
            "-texture_spatial_limit"
        )
    steps, step = [1], texels.LANES
    for extent in reversed(across):
        steps.append(step)
        step *= extent
    step = texels.MOST * texels.LANES
    for extent in reversed(down):
        steps.append(step)
        step *= extent
    dtype = buffer.shape[0].dtype
    return tuple(ops.const(n, dtype) for n in reversed(steps))
