"""Sizes for inputs whose shape a model leaves open: found by reading the model with them.

A size of 1 seldom fits (a window is larger, two branches of a detector no longer meet), so the
sizes that an error shows, and that ``slipway check`` goes on with, are tried on the model first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from slipway.errors import ModelError, OpenShapeError, SlipwayError, did_you_mean
from slipway.frontends.onnx.reader import unheld, value_type
from slipway.frontends.report import NodeReport
from slipway.relay.dims import ANY, Dim, is_open

CHANNELS = (1, 3, 4)
IMAGES = ((224, 224), (320, 320), (48, 320), (32, 320), (640, 640), (32, 32), (28, 28))
LENGTHS = (128, 16, 512, 576, 1024, 64, 256, 16000, 1)
JOINS = ("Add", "Concat", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum", "Where")
MAX_TRIALS = 12
MAX_SHOWN = 3  # reasons why no size fits
MAX_NODES_TRIED = 12_000  # nodes read in all the trials together

Dims = tuple[Any, ...]  # ints, and names or "?" for what is open


class OpenSizes(Exception):
    """An input has a size that is neither in the file nor given."""


@dataclass(frozen=True)
class SizeTrial:
    """What came of reading the model with some shapes."""

    problems: Sequence[NodeReport]
    outputs: Mapping[str, tuple[Any, ...]]


def shapes_of_dims(
    proto: Any, given: Mapping[str, Any] | None, dims: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return shapes of the inputs in which `dims` has said what the file's names are.

    A shape that is given keeps its sizes; of one with relay.Any() the names are looked up too.
    Raises ModelError for a name that the file does not use, and for what is no size.
    """
    shapes = dict(given or {})
    if not dims:
        return shapes
    dims = _resolved(dims)
    own = ranges_of(proto)
    extents = {name: _extent(name, size) for name, size in dims.items() if name not in own}
    used: set[str] = set()
    for info in proto.graph.input:
        if info.type.WhichOneof("value") != "tensor_type":
            continue
        stated, _ = value_type(info.name, info.type)
        used.update(d for d in stated if isinstance(d, str) and d != "?")
        own = shapes.get(info.name, stated)
        if own is not None and len(own) == len(stated):
            pairs = zip(own, stated, strict=True)
            made = tuple(extents.get(s, d) if d is s or d is ANY else d for d, s in pairs)
            if info.name in shapes or all(not isinstance(d, str) for d in made):
                shapes[info.name] = made
    for name in extents:
        if name not in used:
            known = ", ".join(sorted(used)) or "none"
            raise ModelError(
                f"dims: the model has no dimension {name!r}.{did_you_mean(name, used)} Its "
                f"inputs have {known}."
            )
    return shapes


def _resolved(dims: Mapping[str, Any]) -> dict[str, Any]:
    """Return dimensions in which a name that is given for another has that one's size."""
    made = {}
    for name, size in dims.items():
        if isinstance(size, str):
            if size == name or size not in dims or isinstance(dims[size], str):
                others = [n for n in dims if n != name and not isinstance(dims[n], str)]
                raise ModelError(
                    f"dims has {size!r} for {name!r}: write a size, its range as (1, 8), or "
                    f"another name that dims gives one.{did_you_mean(size, others)}"
                )
            made[name] = _extent(size, dims[size])
        else:
            made[name] = size
    return made


def ranges_of(proto: Any) -> set[str]:
    """Return names whose values `dims` bounds: nodes Range, their results, and integer inputs."""
    nodes = [node for node in proto.graph.node if node.op_type == "Range" and node.output]
    found = {name for node in nodes for name in (node.name, node.output[0]) if name}
    tensors = [i for i in proto.graph.input if i.type.WhichOneof("value") == "tensor_type"]
    kinds = {i.name: value_type(i.name, i.type) for i in tensors if not unheld(i.name, i.type)}
    stated = {d for shape, _ in kinds.values() for d in shape if isinstance(d, str)}
    counts = {name for name, (shape, dtype) in kinds.items()
              if dtype in ("int32", "int64") and len(shape) < 2}  # fmt: skip
    return found | (counts - stated)


def bounds_of(proto: Any, dims: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the dimensions that `dims` gives results of Range, and elements of inputs."""
    own = ranges_of(proto)
    given = {name: size for name, size in _resolved(dims or {}).items() if name in own}
    return {name: _extent(name, size) for name, size in given.items()}


def extents_of(dims: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what `dims` says of each name: a number, or the dimension that stays open."""
    return {name: _extent(name, size) for name, size in _resolved(dims or {}).items()}


def _extent(name: str, size: object) -> Any:
    if isinstance(size, int) or is_open(size):
        return size
    if isinstance(size, tuple | list) and len(size) == 2:
        symbol = re.sub(r"\W", "_", name)
        return Dim(symbol if symbol.isidentifier() else f"_{symbol}", *size)
    raise ModelError(f"dims has {size!r} for {name!r}: write a size, or its range as (1, 8)")


def input_shape(name: str, dims: Dims, given: Sequence[Any] | None) -> Dims:
    """Return an input's shape; what is given may stand for a number that the file has.

    Raises OpenSizes where a size is missing, ModelError for another number of dimensions.
    """
    if given is None:
        if any(not isinstance(d, int) for d in dims):
            raise OpenSizes
        return dims
    wanted = tuple(given)
    # Exporters declare one number and give a list of one, or of none where it is left out.
    one = dims == () and len(wanted) == 1
    if dims == ("?",) or one:
        return wanted
    if len(wanted) != len(dims):
        shown = ", ".join(str(d) for d in dims)
        raise ModelError(
            f"the input {name!r} is given the shape {wanted}, but the model has ({shown})"
        )
    return wanted


def is_replaced(dims: Dims, shape: Dims) -> bool:
    """Return whether another size, or an open one, stands for a number of the file."""
    pairs = zip(dims, shape, strict=False)
    return any(isinstance(d, int) and d not in (0, s) for d, s in pairs)


@contextmanager
def open_sizes(
    proto: Any, given: Mapping[str, Any] | None, trial: Callable[[dict[str, Any]], SizeTrial]
) -> Iterator[None]:
    """Turn `OpenSizes` into the error that says which inputs are open, and which sizes fit them."""
    try:
        yield
    except OpenSizes:
        raise _open_shape_error(proto, dict(given or {}), trial) from None


def _open_shape_error(
    proto: Any, given: dict[str, Any], trial: Callable[[dict[str, Any]], SizeTrial]
) -> OpenShapeError:
    known = {t.name for t in proto.graph.initializer}
    open_inputs = {}
    for info in proto.graph.input:
        type_ = info.type
        while type_.WhichOneof("value") == "optional_type":
            type_ = type_.optional_type.elem_type
        if info.name in known or type_.WhichOneof("value") != "tensor_type":
            continue
        dims, _ = value_type(info.name, type_)
        if given.get(info.name) is None and any(not isinstance(d, int) for d in dims):
            open_inputs[info.name] = dims
    shapes, left, problems = _search(proto, open_inputs, given, trial)
    listed = "; ".join(f"{n} ({', '.join(str(d) for d in s)})" for n, s in open_inputs.items())
    problem = f"the model leaves sizes of its inputs open: {listed}."
    if left:
        problem += f" None of the sizes tried fits the whole model{_why(problems)}"
    shown = ", ".join(f"{name!r}: {shape}" for name, shape in shapes.items())
    advice = f"Pass shape={{{shown}}}, or relay.Any() for a size that is to stay open."
    sizes = chain.from_iterable(open_inputs.values())
    names = dict.fromkeys(d for d in sizes if isinstance(d, str) and d != "?")
    return OpenShapeError(problem, advice, shapes, tuple(names))


def _search(
    proto: Any, open_inputs: dict[str, Dims], given: dict[str, Any],
    trial: Callable[[dict[str, Any]], SizeTrial],
) -> tuple[dict[str, Any], int, Sequence[NodeReport]]:  # fmt: skip
    """Return the shapes, given ones included, with which fewest nodes fail; how many; and why."""
    count = min(MAX_TRIALS, max(1, MAX_NODES_TRIED // max(len(proto.graph.node), 1)))
    best: tuple[dict[str, Any], int, Sequence[NodeReport]] | None = None
    for candidate in candidates(open_inputs, _named_sizes(proto, given))[:count]:
        shapes = {**given, **candidate}
        try:
            found = trial(shapes)
            problems = found.problems
            failed = len(problems) + _clashes(proto, found.outputs, shapes)
        except SlipwayError:  # no size of the inputs mends it, or this one breaks the whole
            problems = ()
            failed = len(proto.graph.node) + 1
        if best is None or failed < best[1]:
            best = shapes, failed, problems
        if not failed:
            break
    assert best is not None
    return best


def _why(problems: Sequence[NodeReport]) -> str:
    """Return the end of a sentence on the sizes that come nearest: what fails with them."""
    if not problems:
        return "; these come nearest."
    kinds = {(one.kind, one.detail): one.name for one in reversed(problems)}
    shown = [f"{kind} {name!r}: {why}" for (kind, why), name in list(kinds.items())[::-1]]
    more = f"; and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    return f". With these, which come nearest, {'; '.join(shown[:MAX_SHOWN])}{more}."


def _clashes(proto: Any, outputs: Mapping[str, Dims], shapes: Mapping[str, Any]) -> int:
    """Return how many outputs have another shape than the file states for them, or no elements."""
    sizes = _named_sizes(proto, shapes)
    wrong = 0
    for info in proto.graph.output:
        made = outputs.get(info.name)
        if made is None or info.type.WhichOneof("value") != "tensor_type":
            continue
        stated = [sizes.get(d, d) for d in value_type(info.name, info.type)[0]]
        if len(stated) == len(made):
            wrong += any(
                isinstance(s, int) and s not in (0, m) for s, m in zip(stated, made, strict=True)
            )
        wrong += 0 in made
    return wrong


def _named_sizes(proto: Any, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that the inputs' shapes give to names of dimensions."""
    sizes: dict[str, Any] = {}
    for info in proto.graph.input:
        if shapes.get(info.name) is not None and info.type.WhichOneof("value") == "tensor_type":
            dims, _ = value_type(info.name, info.type)
            pairs = zip(dims, shapes[info.name], strict=False)  # one "?" stands for any rank
            sizes.update((d, n) for d, n in pairs if isinstance(d, str) and d != "?")
    return sizes


def candidates(
    open_inputs: Mapping[str, Dims], known: Mapping[str, int] | None = None
) -> list[dict[str, tuple[int, ...]]]:
    """Return shapes to try for the inputs, the likeliest first.

    Sizes of one name are one size; `known` holds those that other inputs give.  The first axis, or
    one that is called so, is the batch: 1.
    """
    found: list[dict[str, tuple[int, ...]]] = []
    for image, length in zip_longest(IMAGES, LENGTHS):
        sizes = dict(known or {})
        row = {
            name: _filled(dims, image or IMAGES[0], length or LENGTHS[0], sizes)
            for name, dims in open_inputs.items()
        }
        if row not in found:
            found.append(row)
    return found


def _filled(
    dims: Dims, image: tuple[int, int], length: int, sizes: dict[str, int]
) -> tuple[int, ...]:
    if dims == ("?",):  # a tensor of which not even the rank is stated, or a vector
        return (length,)
    rows, columns = _image_axes(dims)
    made = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, int):
            made.append(dim)
            continue
        if dim in sizes:
            made.append(sizes[dim])
            continue
        first = axis == 0 and len(dims) > 1
        state = axis == 1 and len(dims) == 3 and isinstance(dims[0], int)  # layers, batch, units
        if first or state or "batch" in dim.lower():
            size = 1
        elif axis == rows:
            size = image[0]
        elif axis == columns:
            size = image[1]
        elif rows is not None:
            size = 3  # the channels of an image
        else:
            size = length
        if dim != "?":
            sizes[dim] = size
        made.append(size)
    return tuple(made)


def _image_axes(dims: Dims) -> tuple[int | None, int | None]:
    """Return the axes of an image's rows and columns, or None for what is no image."""
    if len(dims) != 4:
        return None, None
    if isinstance(dims[3], int) and dims[3] in CHANNELS and not isinstance(dims[1], int):
        return 1, 2
    if isinstance(dims[1], str) or dims[1] in CHANNELS:
        return 2, 3
    return None, None


def one_size_for(one: object, other: object) -> str:
    """Return how a caller says that two names stand for one size."""
    return (
        f"say so with dims={{{str(other)!r}: (1, 8), {str(one)!r}: {str(other)!r}}} "
        f"(--dim {one}={other} on the command line)"
    )


def names_that_meet(kind: str, shapes: Sequence[Dims]) -> str:
    """Return advice where tensors that an operator joins have names of their own for an axis.

    Exporters of Keras write a name for the batch of each input.
    """
    if kind not in JOINS:
        return ""
    first = next((s for s in shapes if any(map(_is_name, s))), ())
    for shape in shapes:
        for one, other in zip(reversed(shape), reversed(first), strict=False):
            if _is_name(one) and _is_name(other) and one != other:
                return f"; {one} and {other} are names of open sizes: if they are one size, " + (
                    one_size_for(one, other)
                )
    return ""


def _is_name(size: Any) -> bool:
    return is_open(size) and str(size).isidentifier()
