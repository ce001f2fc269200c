"""Which tensors of a model are images of a GPU, and which of them share one.

An image has rows of texels, four floats each (`ir.instructions.texels`).  Tensors of rows of as
many texels, of one type, take the same image where they are never alive together: kernels know a
texel by its row and column, so that more rows do no harm.  A parameter has one to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from slipway import dtypes
from slipway.backends.gpu.images import IMAGES
from slipway.compiler.model_graph import NOP, ModelGraph, TensorRef
from slipway.ir.instructions.texels import LANES, row_axes

Life = tuple[int, int]


@dataclass(frozen=True)
class Image:
    """`rows` of so many texels, of four floats of `bits` each."""

    texels: int
    rows: int
    bits: int

    @property
    def size_bytes(self) -> int:
        """The bytes of all rows."""
        return self.texels * self.rows * LANES * self.bits // 8


def image_scopes(kernel: Any, count: int) -> list[str]:
    """Return the scope of each of a kernel's tensors, inputs and then outputs; "": no image."""
    told = kernel.attr(IMAGES)
    return ["" if scope == "-" else scope for scope in told.split()] if told else [""] * count


def images_of(graph: ModelGraph) -> dict[TensorRef, Image]:
    """Return the image that each tensor would have to itself."""
    found = {}
    for number, node in enumerate(graph.nodes):
        kernel = graph.kernels.get(node.function) if node.function != NOP else None
        if kernel is None or not kernel.attr(IMAGES):
            continue
        outputs = [TensorRef(number, i) for i in range(len(node.types))]
        tensors = [*node.inputs, *outputs]
        for ref, scope in zip(tensors, image_scopes(kernel, len(tensors)), strict=False):
            if scope:
                found[ref] = _image(graph.type_of(ref), scope)
    return found


def _image(type_: Any, scope: str) -> Image:
    rows = row_axes(scope, type_.rank)
    shape = type_.shape
    return Image(prod(shape[rows:-1]), prod(shape[:rows]), dtypes.bits_of(type_.dtype))


def shared_images(
    images: Mapping[TensorRef, Image], lives: Mapping[TensorRef, Life]
) -> tuple[dict[TensorRef, int], list[Image]]:
    """Return the number of each tensor's image, and all images.

    Those without a life keep theirs.  The highest come first, so that no image grows.
    """
    order = sorted(images, key=lambda ref: (-images[ref].rows, ref.node, ref.index))
    made: list[Image] = []
    taken: list[list[Life] | None] = []
    of: dict[TensorRef, int] = {}
    for ref in order:
        life = lives.get(ref)
        number = _free(images[ref], life, made, taken)
        if number == len(made):
            made.append(images[ref])
            taken.append(None if life is None else [])
        if life is not None:
            list_of = taken[number]
            assert list_of is not None
            list_of.append(life)
        of[ref] = number
    return of, made


def _free(
    image: Image, life: Life | None, made: Sequence[Image], taken: Sequence[list[Life] | None]
) -> int:
    """Return the first image that a tensor could share; the number of images: none."""
    for number, (known, lives) in enumerate(zip(made, taken, strict=True)):
        alike = replace(known, rows=image.rows) == image
        if life is None or lives is None or not alike:
            continue
        if all(life[1] < first or last < life[0] for first, last in lives):
            return number
    return len(made)
