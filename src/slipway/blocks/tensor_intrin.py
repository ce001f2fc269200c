"""Tensor intrinsics of blocks: what they compute and what does it, two functions by one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir.function import PrimFunc


@dataclass(frozen=True)
class BlockIntrin:
    """`desc` says in loops what is computed, `impl` does it; both have the same parameters.

    ``tvm.tir.TensorIntrin`` under its classic name: ``TensorIntrin.register(name, desc, impl)``,
    and then ``sch.tensorize(loop, name)``.
    """

    name: str
    desc: PrimFunc
    impl: PrimFunc

    _known: ClassVar[dict[str, BlockIntrin]] = {}

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> BlockIntrin:
        """Enter an intrinsic.  Raises ScheduleError where the two functions do not fit."""
        if name in BlockIntrin._known and not override:
            raise ScheduleError(
                f"there is a tensor intrinsic {name!r} already; override=True replaces it"
            )
        for what, func in (("desc", desc), ("impl", impl)):
            if not isinstance(func, PrimFunc):
                raise ScheduleError(
                    f"tensor intrinsic {name!r}: {what} is no function of loops but a "
                    f"{type(func).__name__}; write it with @T.prim_func"
                )
        mine, theirs = ([b for _, b in f.buffer_map] for f in (desc, impl))
        shapes = [[(b.dtype, tuple(map(str, b.shape))) for b in side] for side in (mine, theirs)]
        if shapes[0] != shapes[1] or len(desc.params) != len(mine):
            raise ScheduleError(
                f"tensor intrinsic {name!r}: desc and impl must take buffers of the same shapes "
                f"and dtypes; they take {shapes[0]} and {shapes[1]}"
            )
        made = BlockIntrin(name, desc, impl)
        BlockIntrin._known[name] = made
        return made

    @staticmethod
    def get(name: str) -> BlockIntrin:
        """Return the intrinsic of a name.  Raises ScheduleError where there is none."""
        if name not in BlockIntrin._known:
            raise ScheduleError(
                f"there is no tensor intrinsic {name!r}."
                f"{did_you_mean(name, BlockIntrin._known)} Enter it with "
                "tir.TensorIntrin.register(name, desc, impl)"
            )
        return BlockIntrin._known[name]
