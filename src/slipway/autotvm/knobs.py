"""The choices of one knob of a template: splits, orders and annotations of axes, values.

A knob stands for the axes that it makes: ``xo, xi = cfg.define_split(...)`` may be used in
``cfg.define_reorder`` before there is a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, count, permutations, product
from typing import Any, NamedTuple

from slipway.autotvm.entities import (
    AnnotateEntity,
    Entity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
)
from slipway.errors import TuningError
from slipway.ir.expr import IntImm, IterVar

_NUMBERS = count()
_ANNOTATIONS = ("none", "unroll", "vec")
_BLOCKS = ("blockIdx.z", "blockIdx.y", "blockIdx.x")
_THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")


class TransformSpace(Sequence[Entity]):
    """The choices of a knob; `num_output` axes are what it makes of those that it is given."""

    def __init__(self, entities: Sequence[Entity], num_output: int = 0) -> None:
        self.entities, self.num_output = list(entities), num_output

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int | slice) -> Any:
        return self.entities[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__.removesuffix('Space')} len={len(self)}"


class VirtualAxis:
    """An axis that there is no schedule of yet: a length, or that of an axis of a stage."""

    def __init__(self, var: object, name: str | None = None) -> None:
        self.name = name or f"axis_{next(_NUMBERS)}"
        self.length = -1
        if isinstance(var, VirtualAxis):
            self.length = var.length
        elif isinstance(var, IterVar):
            self.name = var.name
            extent = var.extent if var.dom is not None else -1  # of a part of a split
            self.length = int(extent) if isinstance(extent, int | IntImm) else -1
        elif isinstance(var, int | IntImm):
            self.length = int(var)
        else:
            raise TuningError(
                f"cfg.axis({var!r}): it is an axis of a stage, or a length, which is a number"
            )

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


class MadeAxis(NamedTuple):
    """One of the axes that a knob makes."""

    space: Any
    number: int


def axes_of(axes: Sequence[Any]) -> list[VirtualAxis | MadeAxis]:
    """Return what stands for axes in a knob."""
    return [a if isinstance(a, VirtualAxis | MadeAxis) else VirtualAxis(a) for a in axes]


def get_factors(n: int) -> list[int]:
    """Return the numbers that divide `n`, the smallest first."""
    low = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return sorted({*low, *(n // i for i in low)})


def get_pow2s(n: int) -> list[int]:
    """Return the powers of two up to `n`."""
    return [1 << i for i in range(n.bit_length())]


class SplitSpace(TransformSpace):
    """Splits of an axis; the innermost length varies slowest, as in classic TVM's numbers."""

    def __init__(
        self, name: str, axis: object, policy: str, num_outputs: int, max_factor: int | None,
        no_tail: bool | None, candidate: Sequence[Sequence[int]] | None,
        filter: Callable[[SplitEntity], bool] | None,
    ) -> None:  # fmt: skip
        self.policy = policy
        if num_outputs < 1:
            raise TuningError(
                f"define_split({name!r}): num_outputs is {num_outputs}, and at least 1"
            )
        if policy == "candidate" or candidate is not None:
            self.product = -1 if isinstance(axis, MadeAxis) else VirtualAxis(axis).length
            sizes = [[int(n) for n in size] for size in candidate or ()]
            for size in sizes:
                if len(size) != num_outputs:
                    raise TuningError(
                        f"define_split({name!r}): the candidate {size} has {len(size)} lengths; "
                        f"num_outputs is {num_outputs}"
                    )
        else:
            self.product = _length(name, axis)
            lengths = [
                n for n in _lengths(name, policy, self.product) if not max_factor or n <= max_factor
            ]
            is_whole = policy == "factors" if no_tail is None else no_tail
            sizes = [
                [-1, *inner[::-1]]
                for inner in _splits(lengths, num_outputs - 1, self.product)
                if not is_whole or self.product % math.prod(inner) == 0
            ]
        entities = [SplitEntity(size) for size in sizes]
        super().__init__([e for e in entities if filter is None or filter(e)], num_outputs)

    def __repr__(self) -> str:
        return (
            f"Split(policy={self.policy}, product={self.product}, num_outputs={self.num_output}) "
            f"len={len(self)}"
        )


def _length(name: str, axis: object) -> int:
    length = -1 if isinstance(axis, MadeAxis) else VirtualAxis(axis).length
    if length < 1:
        raise TuningError(
            f"define_split({name!r}): the axis {axis} has no fixed length; split an axis of a "
            "stage, a number, or cfg.axis of either"
        )
    return length


def _lengths(name: str, policy: str, length: int) -> list[int]:
    if policy not in ("factors", "power2", "verbose"):
        raise TuningError(
            f"define_split({name!r}): the policy {policy!r} is not one of factors, power2, "
            "verbose, candidate"
        )
    factors = get_factors(length) if policy != "power2" else []
    return sorted({*factors, *(get_pow2s(length) if policy != "factors" else ())})


def _splits(lengths: Sequence[int], parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the lengths of so many parts whose product is `most` at most, the first slowest."""
    if parts == 0:
        yield ()
        return
    for n in lengths:
        if n <= most:
            for rest in _splits(lengths, parts - 1, most // n):
                yield (n, *rest)


class ReorderSpace(TransformSpace):
    """Orders of axes."""

    def __init__(
        self, name: str, axes: Sequence[Any], policy: str,
        candidate: Sequence[Sequence[Any]] | None = None, interval: tuple[int, int] | None = None,
        spatial: Sequence[Sequence[Any]] = (), reduce: Sequence[Sequence[Any]] = (),
    ) -> None:  # fmt: skip
        self.policy, n = policy, len(axes)

        def numbers(chosen: Sequence[Any]) -> list[int]:
            return [_number(name, axes, axis) for axis in chosen]

        if policy == "identity":
            orders: list[Sequence[int]] = [range(n)]
        elif policy == "all":
            orders = list(permutations(range(n)))
        elif policy == "interval_all":
            begin, end = interval or (0, n)
            orders = [
                (*range(begin), *inner, *range(end, n)) for inner in permutations(range(begin, end))
            ]
        elif policy == "candidate":
            orders = [numbers(one) for one in candidate or ()]
        elif policy in ("interleave", "interleave_cuda"):
            chains, sums = [numbers(c) for c in spatial], [numbers(c) for c in reduce]
            outer, last = merged([c[:-1] for c in chains]), [c[-1] for c in chains]
            inner = merged([*([i] for i in last), *sums])
            orders = [outer + (inner if policy == "interleave" else merged(sums) + last)]
        else:
            raise TuningError(
                f"define_reorder({name!r}): the policy {policy!r} is not one of identity, all, "
                "interval_all, candidate, interleave, interleave_cuda"
            )
        super().__init__([ReorderEntity(order) for order in orders], n)


def _number(name: str, axes: Sequence[Any], axis: Any) -> int:
    """Return the number of an axis among those of a knob."""
    for i, known in enumerate(axes):
        if known is axis or (isinstance(known, MadeAxis) and known == axis):
            return i
    if isinstance(axis, int) and -len(axes) <= axis < len(axes):
        return axis
    raise TuningError(f"define_reorder({name!r}): {axis} is none of the axes {list(axes)}")


def merged(chains: Sequence[Sequence[int]]) -> list[int]:
    """Return the elements of chains in one: of that of which most is left, the next one."""
    left, found = [list(chain) for chain in chains], []
    while longest := max(left, key=len, default=None):
        found.append(longest.pop(0))
    return found


class AnnotateSpace(TransformSpace):
    """What may be done to axes."""

    def __init__(self, name: str, axes: Sequence[Any], policy: str, num_anchor: int = 1) -> None:
        self.policy, n = policy, len(axes)
        if policy == "locate_cache":
            found: list[Sequence[Any]] = list(combinations(range(n), num_anchor))
        elif policy in ("bind_gpu", "bind_gpu_virtual"):
            found = [_bound(name, n, policy)]
        else:
            words = policy.replace("try", "none").split("_")
            if not set(words) <= set(_ANNOTATIONS):
                raise TuningError(
                    f"define_annotate({name!r}): {policy!r} is no policy; there are unroll, vec, "
                    "unroll_vec, try_unroll, try_vec, try_unroll_vec, bind_gpu, bind_gpu_virtual "
                    "and locate_cache"
                )
            found = [one for one in product(*[words] * n) if one.count("vec") <= 1]
        super().__init__([AnnotateEntity(one) for one in found], n)


def _bound(name: str, n: int, policy: str) -> list[str]:
    """Return the threads of a GPU that `n` axes become, the first of them fused."""
    each = 3 if policy == "bind_gpu_virtual" else 2
    dims = min(n // each, 3)
    if dims == 0:
        raise TuningError(
            f"define_annotate({name!r}): {policy} takes {each} axes at least, not {n}"
        )
    virtual = ["vthread"] * dims if each == 3 else []
    return ["fuse"] * (n - each * dims) + [*_BLOCKS[-dims:], *virtual, *_THREADS[-dims:]]


class OtherOptionSpace(TransformSpace):
    """Values."""

    def __init__(self, candidate: Sequence[Any]) -> None:
        super().__init__([OtherOptionEntity(value) for value in candidate])

    def __repr__(self) -> str:
        return f"OtherOption({self.entities}) len={len(self)}"
