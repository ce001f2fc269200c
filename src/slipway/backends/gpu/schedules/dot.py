"""Products and convolutions of bytes, four of them at a time: NVIDIA's ``dp4a`` and its likes.

As `shared.py` does it, but the panels in shared memory hold words of four bytes, put together when
they are fetched: a quarter of the memory, and an instruction does four multiply-adds
(`ir/instructions/dot4.py`).  It is the default where threads run in step and the target has the
instruction, or, in OpenCL, the driver's compiler finds out whether the device has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from slipway import te
from slipway.backends.gpu.schedules.generic import ThreadKnobs, schedule_elements
from slipway.backends.gpu.schedules.shared import (
    Lies,
    SharedKnobs,
    Sizes,
    Tiling,
    legal_knobs,
    panel_product,
    product_cost,
    product_sizes,
    tile_space,
)
from slipway.backends.gpu.schedules.shared_conv import (
    Geometry,
    conv_knobs,
    conv_operands,
)
from slipway.backends.gpu.warps import runs_in_step
from slipway.backends.strategy import Problem, register_strategy
from slipway.codegen.gpu.amdgpu import dots_of
from slipway.codegen.gpu.nvptx import DOTS_FROM, version_of
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.ir.instructions.dot4 import BYTES, dot_name, packed
from slipway.target import Target

Element = Callable[[Any, Any, Any], Any]  # of batch, row or column, and step


def has_dots(target: Target, name: str) -> bool:
    """Return whether kernels for a target get an instruction for an intrinsic of `dot4.py`."""
    kind = target.kind.name
    if kind == "cuda":
        return version_of(target) >= DOTS_FROM
    if kind == "rocm":
        return name in dots_of(target)
    return kind == "opencl"


def _sizes(attrs: Any, in_types: Sequence[Any]) -> Sizes | None:
    """Return the sizes of a product, its depth in words."""
    if hasattr(attrs, "kernel_layout"):
        geometry = Geometry.of(attrs, in_types)
        sizes = None if geometry is None else geometry.sizes
    else:
        sizes = product_sizes(in_types, attrs)
    return None if sizes is None or not sizes.is_large else _in_words(sizes)


def _in_words(sizes: Sizes) -> Sizes:
    return replace(sizes, depth=-(-sizes.depth // BYTES))


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    name = dot_name(in_types[0].dtype, in_types[1].dtype)
    if name is None or getattr(attrs, "out_dtype", "") != "int32":
        return False
    known = runs_in_step(target) and has_dots(target, name)
    return known and _sizes(attrs, in_types) is not None and bool(_legal(attrs, in_types, target))


def _legal(attrs: Any, in_types: Sequence[Any], target: Target) -> list[SharedKnobs]:
    if not hasattr(attrs, "kernel_layout"):
        return legal_knobs("int32", target, copied=False)
    geometry = Geometry.of(attrs, in_types)
    assert geometry is not None
    return conv_knobs(geometry, "int32", target, copied=False)


def _cost(problem: Problem, knobs: SharedKnobs) -> float:
    sizes = _sizes(problem.attrs, problem.in_types)
    assert sizes is not None
    by_step = True, True
    if hasattr(problem.attrs, "kernel_layout"):
        geometry = Geometry.of(problem.attrs, problem.in_types)
        assert geometry is not None
        by_step = geometry.sides_by_step
    return product_cost(sizes, knobs, Lies(BYTES, by_step))


def _knobs(problem: Problem) -> SharedKnobs:
    legal = _legal(problem.attrs, problem.in_types, problem.target)
    return min(legal, key=lambda knobs: _cost(problem, knobs))


# -- the stages ------------------------------------------------------------------------------------


def _panel(
    name: str, batch: int, count: int, depth: int, element: Element, by_step: bool
) -> te.Tensor:
    """Return one operand in words, with the words of a row or the rows last."""

    def word(g: PrimExpr, i: PrimExpr, w: PrimExpr) -> Any:
        steps = [w * BYTES + j for j in range(BYTES)]
        if depth % BYTES == 0:
            return packed([element(g, i, k) for k in steps])
        inside = [te.if_then_else(k < depth, element(g, i, k), 0) for k in steps]
        return packed(inside)

    words = -(-depth // BYTES)
    if by_step:
        made = te.compute((batch, count, words), word, name=name)
    else:
        made = te.compute((batch, words, count), lambda g, w, i: word(g, i, w), name=name)
    return made  # type: ignore[no-any-return]


def _dots(
    sizes: Sizes, left: te.Tensor, right: te.Tensor, by_step: tuple[bool, bool], name: str
) -> te.Tensor:
    """Return the products of two panels."""
    k = te.reduce_axis((0, _in_words(sizes).depth), name="k")
    zero = ops.const(0, "int32")

    def at(panel: te.Tensor, g: PrimExpr, i: PrimExpr, whole: bool) -> Any:
        return panel(g, *((i, k) if whole else (k, i)))

    def product(g: PrimExpr, i: PrimExpr, j: PrimExpr) -> Any:
        words = at(left, g, i, by_step[0]), at(right, g, j, by_step[1])
        return te.sum(E.Call("int32", name, (*words, zero)), axis=k)

    shape = (sizes.batch, sizes.rows, sizes.columns)
    return te.compute(shape, product, name="products")  # type: ignore[no-any-return]


def compute_product(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: SharedKnobs
) -> list[te.Tensor]:
    """The stages of a dense layer or a batch of products."""
    sizes = product_sizes(problem.in_types, problem.attrs)
    name = dot_name(*(t.dtype for t in problem.in_types[:2]))
    (out,) = problem.out_types
    assert sizes is not None
    assert name is not None

    def element(of: te.Tensor) -> Element:
        if of.ndim == 2:
            return lambda g, i, k: of(i, k)
        alone = ops.as_int(of.shape[0]) == 1
        return lambda g, i, k: of(0 if alone else g, i, k)

    left, right = (
        _panel(side, sizes.batch, count, sizes.depth, element(x), by_step=True)
        for side, count, x in zip(
            ("left", "right"), (sizes.rows, sizes.columns), inputs, strict=True
        )
    )
    products = _dots(sizes, left, right, (True, True), name)

    def result(*index: PrimExpr) -> Any:
        return products(*([0] * (3 - len(index))), *index)

    return [te.compute(out.shape, result, name="product", tag="injective")]


def compute_conv(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: SharedKnobs
) -> list[te.Tensor]:
    """The stages of a convolution: the product of its weights with the image's columns."""
    geometry, column, filters, element = conv_operands(problem, inputs)
    (out,) = problem.out_types
    sizes, swap = geometry.sizes, not geometry.channels_last
    dtypes = [t.dtype for t in problem.in_types[:2]]
    name = dot_name(*(dtypes[::-1] if swap else dtypes))
    assert name is not None
    pixels = prod(geometry.out[letter] for letter in geometry.pixels)
    channels = geometry.out["C"] // problem.attrs.groups
    batch, depth = sizes.batch, sizes.depth
    both = [
        _panel("columns", batch, pixels, depth, column, geometry.columns_by_step),
        _panel("weights", batch, channels, depth, filters, geometry.weights_by_step),
    ]
    by_step = [geometry.columns_by_step, geometry.weights_by_step]
    if swap:
        both, by_step = both[::-1], by_step[::-1]
    products = _dots(sizes, both[0], both[1], (by_step[0], by_step[1]), name)
    return [te.compute(out.shape, element(products), name="conv", tag="injective")]


# -- the schedule ----------------------------------------------------------------------------------


def schedule_dots(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: SharedKnobs
) -> te.Schedule:
    """A tile for each block; a thread for each element where the kernel does more than that."""
    found = panel_product(outs, anchor)
    if found is None:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(64))
    schedule, out, products, panels = found
    *batch, rows, columns = schedule[out].op.axis
    by_step, first = (True, True), "left"
    if hasattr(problem.attrs, "kernel_layout"):
        geometry = Geometry.of(problem.attrs, problem.in_types)
        assert geometry is not None
        batch, rows, columns = geometry.sides(schedule[out], problem.attrs.groups)
        by_step = geometry.sides_by_step
        first = "columns" if geometry.channels_last else "weights"
    schedule[products].set_scope("local")
    tiling = Tiling(schedule, knobs)
    tiling.bind(out, batch, rows, columns)
    step = tiling.sum_up(products)
    for panel in panels:
        schedule[panel].set_scope("shared")
        side = int(panel.op.name != first)
        count = (knobs.block_rows, knobs.block_columns)[side]
        tiling.share(panel, products, step, by_step[side], count)
    return schedule


_PRODUCTS, _CONVOLUTIONS = ("nn.dense", "nn.batch_matmul"), ("nn.conv1d", "nn.conv2d", "nn.conv3d")
for _names, _compute in ((_PRODUCTS, compute_product), (_CONVOLUTIONS, compute_conv)):
    register_strategy(
        *_names, name="threads.dot", priority=25, applies=_applies, compute=_compute,
        default=_knobs, space=tile_space, cost=_cost,
    )(schedule_dots)  # fmt: skip
