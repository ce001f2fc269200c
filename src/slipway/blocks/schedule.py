"""`tir.Schedule`: rewriting the loops around blocks, step by step.

::

    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 8])
    sch.reorder(io, j, k, ii)
    sch.vectorize(ii)
    slipway.build(sch.mod, target="llvm")

A block is known by its name, a loop by its variable; both stay valid until what they name is
split, fused or removed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from slipway.blocks import blockize, layout, loops, move, rfactor, tensorize, tree
from slipway.blocks.padding import decompose_padding, pad_einsum
from slipway.blocks.precompute import cache_index
from slipway.blocks.tensor_intrin import BlockIntrin
from slipway.blocks.trace import Instruction, InstructionKind, SampledInt, Trace, recorded
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import Var
from slipway.ir.function import IRModule, PrimFunc

__all__ = ["BlockRV", "Instruction", "InstructionKind", "LoopRV", "Schedule", "Trace"]


# Where sample_compute_location says that a block stays, or is computed where it is read.
STAYS, INLINED = -1, -2


class LoopRV:
    """A loop of a schedule; `position` is its number where it was sampled, or STAYS or INLINED."""

    def __init__(self, var: Var | None = None, position: int = 0) -> None:
        self.var = Var("loop") if var is None else var
        self.position = position

    def __repr__(self) -> str:
        return f"LoopRV({self.var.name})"


class BlockRV:
    """A block of a schedule."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"BlockRV({self.name})"


@recorded
class Schedule:
    """A module of block functions under rewriting; `mod` is what it is now, `trace` the steps.

    Primitives work on the function "main", or the only one; `work_on` chooses another.  Each
    either rewrites it or raises ScheduleError and leaves it as it was.
    """

    def __init__(self, mod: PrimFunc | IRModule, *, seed: int | None = None, **_: Any) -> None:
        if not isinstance(mod, PrimFunc | IRModule):
            raise ScheduleError(
                f"tir.Schedule takes a function of loops or a module, not a {type(mod).__name__}"
            )
        self.mod = IRModule((("main", mod),)) if isinstance(mod, PrimFunc) else mod
        names = [name for name, func in self.mod.items() if isinstance(func, PrimFunc)]
        if not names:
            raise ScheduleError("tir.Schedule needs a function of loops; the module has none")
        self.func_working_on = "main" if "main" in names or len(names) > 1 else names[0]
        self._random = random.Random(seed)
        self.trace = Trace()

    def seed(self, seed: int) -> None:
        """Let choices at random begin anew."""
        self._random = random.Random(seed)

    def fork_seed(self) -> int:
        """Return a seed for another schedule."""
        return self._random.randrange(1, 2**31)

    @property
    def func(self) -> PrimFunc:
        """The function that primitives work on."""
        if self.func_working_on not in self.mod:  # several, none of them "main"
            names = ", ".join(name for name, _ in self.mod.items())
            raise ScheduleError(f"say which function steps are for, with work_on: one of {names}")
        func = self.mod[self.func_working_on]
        assert isinstance(func, PrimFunc)
        return func

    def work_on(self, func_name: str) -> None:
        """Let primitives work on another function of the module."""
        if func_name not in self.mod:
            names = ", ".join(name for name, _ in self.mod.items())
            raise ScheduleError(f"the module has no function {func_name!r}; it has {names}")
        self.func_working_on = func_name

    def copy(self) -> Schedule:
        """Return a schedule of its own in this one's state."""
        made = copy.copy(self)
        made.trace = self.trace.copy()
        return made

    def enter_postproc(self) -> None:
        """Mark in the trace that what follows is postprocessing."""

    def show(self, *_: Any) -> None:
        """Print the module."""
        print(self.mod.script())

    def _set(self, body: Any) -> None:
        made = self.func.replace(body=body)
        tree.check_scopes(made)
        self.mod = self.mod.update(self.func_working_on, made)

    @property
    def state(self) -> Schedule:
        """What holds the module, `state.mod`: the schedule itself."""
        return self

    def get(self, rv: Any) -> Any:
        """Return the block or loop that a handle names; a number as it is."""
        if isinstance(rv, BlockRV):
            return tree.find_block(self.func.body, rv.name)
        if isinstance(rv, tree.StmtSRef):
            return rv.stmt
        return tree.find_loop(self.func.body, rv.var) if isinstance(rv, LoopRV) else rv

    def _block(self, block: BlockRV | str) -> S.Block:
        return tree.find_block(self.func.body, block if isinstance(block, str) else block.name)

    def _leaf(self, block: BlockRV | str) -> S.Block:
        """Return a block that holds no others."""
        found = self._block(block)
        inside = [b.name for b in tree.blocks_of(found) if b is not found]
        if inside:
            raise ScheduleError(
                f"block {found.name!r} holds the blocks {inside}: move those, or do so before "
                "blockize"
            )
        return found

    def _loop(self, loop: Any) -> S.For:
        if not isinstance(loop, LoopRV):
            raise ScheduleError(f"{loop!r} is no loop: take it from get_loops, split or fuse")
        return tree.find_loop(self.func.body, loop.var)

    def get_sref(self, rv: BlockRV | LoopRV) -> tree.StmtSRef:
        """Return where a block or loop stands: `stmt`, and `parent`, which is none for the root."""
        return tree.sref(self.func.body, self.get(rv))

    # -- what there is ---------------------------------------------------------------------------

    def remove_rv(self, rv: BlockRV | LoopRV) -> None:
        """Do nothing: a handle is a name, and nothing is kept for it."""

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """Return the block of a name; "root" is the function's body where no block is called so."""
        if func_name is not None and func_name != self.func_working_on:
            self.work_on(func_name)
        return BlockRV(self._block(name).name)

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """Return the loops around a block, the outermost first."""
        around = tree.own_loops(self.func.body, self._block(block))
        return [LoopRV(loop.loop_var) for loop in around]

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """Return the blocks inside a block or loop, but for those inside of these."""
        return [BlockRV(b.name) for b in tree.outermost_blocks(self.get(block_or_loop).body)]

    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks inside a block that write what the function gives its caller."""
        given = {buffer for _, buffer in self.func.buffer_map}
        inside = tree.leaf_blocks(self._block(scope_block).body)
        return [BlockRV(b.name) for b in inside if given & set(tree.written(b))]

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks that write what a block reads."""
        wanted = set(tree.read(self._block(block)))
        every = tree.leaf_blocks(self.func.body)
        return [BlockRV(b.name) for b in every if wanted & set(tree.written(b))]

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks that read what a block writes."""
        made = set(tree.written(self._block(block)))
        every = tree.leaf_blocks(self.func.body)
        return [BlockRV(b.name) for b in every if made & set(tree.read(b))]

    # -- loops -----------------------------------------------------------------------------------

    def split(
        self, loop: LoopRV, factors: Sequence[Any], preserve_unit_iters: bool = True
    ) -> list[LoopRV]:
        """Divide a loop into nested ones; one of the factors may be None."""
        body, made = loops.split(self.func.body, self._loop(loop), list(factors))
        self._set(body)
        return [LoopRV(var) for var in made]

    def fuse(self, *fused: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Make one loop of nested ones, outermost first."""
        if not fused:
            raise ScheduleError("fuse takes loops, outermost first")
        body, made = loops.fuse(self.func.body, [self._loop(x) for x in fused])
        self._set(body)
        return LoopRV(made)

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put loops of one nest into the given order."""
        if ordered_loops:
            self._set(loops.reorder(self.func.body, [self._loop(x) for x in ordered_loops]))

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """Put a loop of one step around a block or loop."""
        var, old = Var("u"), self.get(block_or_loop)
        self._set(tree.exchanged(self.func.body, old, tree.nest([(var, ops.const(1))], old)))
        return LoopRV(var)

    def _marked(self, loop: LoopRV, kind: str, thread: str = "") -> None:
        self._set(loops.mark(self.func.body, self._loop(loop), kind, thread))

    def parallel(self, loop: LoopRV) -> None:
        """Share the steps of a loop among threads."""
        self._marked(loop, S.ForKind.PARALLEL)

    def vectorize(self, loop: LoopRV) -> None:
        """Run the steps of a loop as lanes of vectors."""
        self._marked(loop, S.ForKind.VECTORIZED)

    def unroll(self, loop: LoopRV) -> None:
        """Expand a loop."""
        self._marked(loop, S.ForKind.UNROLLED)

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Let each step of a loop be a thread."""
        self._marked(loop, S.ForKind.THREAD, str(thread_axis))

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Put an annotation on a block or loop."""
        node = self.get(block_or_loop)
        kept = tuple(pair for pair in node.annotations if pair[0] != ann_key)
        made = node.replace(annotations=(*kept, (ann_key, ann_val)))
        self._set(tree.exchanged(self.func.body, node, made))

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take an annotation off."""
        node = self.get(block_or_loop)
        kept = tuple(pair for pair in node.annotations if pair[0] != ann_key)
        if len(kept) == len(node.annotations):
            raise ScheduleError(f"there is no annotation {ann_key!r} on {block_or_loop}")
        self._set(tree.exchanged(self.func.body, node, node.replace(annotations=kept)))

    # -- blocks ----------------------------------------------------------------------------------

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's elements where they are read."""
        self._set(move.compute_inline(self.func.body, self._leaf(block)))

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block where its only input is written."""
        self._set(move.reverse_compute_inline(self.func.body, self._leaf(block)))

    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute a block inside a loop of its consumer, as much as is read there."""
        _need_own_position(index, (0,))
        if loop.position < 0:
            self._left_or_inlined(move.compute_inline, block, loop)
            return
        self._set(move.compute_at(self.func.body, self._leaf(block), self._loop(loop)))

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute a block inside a loop of its producer, on what has been written there."""
        _need_own_position(index, ())
        if loop.position < 0:
            self._left_or_inlined(move.reverse_compute_inline, block, loop)
            return
        self._set(move.reverse_compute_at(self.func.body, self._leaf(block), self._loop(loop)))

    def _left_or_inlined(
        self, how: Callable[[Any, S.Block], Any], block: BlockRV | str, loop: LoopRV
    ) -> None:
        if loop.position == INLINED:
            self._set(how(self.func.body, self._leaf(block)))

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Start a reduction in a block of its own, before a loop; return that block.

        The rest of the block is called `<name>_update` from then on.
        """
        found = self._block(block)
        body, name = move.decompose_reduction(self.func.body, found, self._loop(loop))
        self._set(body)
        if isinstance(block, BlockRV):
            block.name = f"{found.name}_update"
        return BlockRV(name)

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Write the padding of a block that pads in a block of its own, before a loop; return it.

        The rest copies alone; its loops run over what is copied where that is possible.
        """
        found = self._leaf(block)
        body, name = decompose_padding(self.func.body, found, self._loop(loop))
        self._set(body)
        return BlockRV(name)

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Let the extents of a sum of products be multiples of `padding`, one for each axis.

        What it reads is padded with zeros by blocks before it, ``A_pad``; what it writes is copied
        out by one after it.  A 0 in `padding` says that all are numbers to add, as in TVM 0.10.
        """
        self._set(pad_einsum(self.func.body, self._leaf(block), padding))

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        *_: Any,
    ) -> BlockRV:
        """Let a buffer (its number, name, or itself) be read through a copy; return what copies."""
        return self._cached(move.cache_read, block, read_buffer_index, storage_scope)

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        *_: Any,
    ) -> BlockRV:
        """Let a block write memory of its own; return the block that copies that out."""
        return self._cached(move.cache_write, block, write_buffer_index, storage_scope)

    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> list[BlockRV]:
        """Let a block that reads and writes a buffer do so in memory of its own.

        Returns the blocks that copy into that and back.
        """
        found = self._block(block)
        body, names = move.cache_inplace(self.func.body, found, read_buffer_index, storage_scope)
        self._set(body)
        return [BlockRV(name) for name in names]

    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute formulas of a block's axes before it; return the blocks that do.

        With `cse_thresh` 0 they are the indices at which it loads, with another all that stands in
        it as often.
        """
        body, names = cache_index(self.func.body, self._leaf(block), storage_scope, cse_thresh)
        self._set(body)
        return [BlockRV(name) for name in names]

    def _cached(
        self,
        how: Callable[..., tuple[Any, str]],
        block: BlockRV | str,
        index: int | str | Buffer,
        scope: str,
    ) -> BlockRV:
        body, name = how(self.func.body, self._block(block), index, scope)
        self._set(body)
        return BlockRV(name)

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce in two steps, the first with an element for each step of `loop`; return its block.

        `factor_axis` says which dimension of its buffer those elements are.
        """
        body, name = rfactor.rfactor(self.func.body, self._loop(loop), factor_axis)
        self._set(body)
        return BlockRV(name)

    def blockize(self, target: LoopRV, preserve_unit_iters: bool = True) -> BlockRV:
        """Make a loop, and the loops and the block inside of it, one block; return that."""
        body, name = blockize.blockize(self.func.body, self._loop(target))
        self._set(body)
        return BlockRV(name)

    def tensorize(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        tensor_intrin: str,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Let a registered tensor intrinsic do what a block, or all inside of a loop, computes."""
        intrin = BlockIntrin.get(tensor_intrin)
        root = self.func.body
        if isinstance(block_or_loop, LoopRV):
            root, name = blockize.blockize(root, self._loop(block_or_loop))
            block = tree.find_block(root, name)
        else:
            block = self._block(block_or_loop)
        self._set(tensorize.tensorize(root, block, intrin))

    # -- memory ----------------------------------------------------------------------------------

    def _own_buffer(self, block: BlockRV | str, index: int | str | Buffer) -> Buffer:
        made = tree.written(self._block(block))
        if not isinstance(index, int):
            return move.buffer_at(made, index, self._block(block), "writes")
        if not 0 <= index < len(made):
            raise ScheduleError(
                f"block {block} writes {len(made)} buffers, so there is no number {index}"
            )
        return made[index]

    def set_scope(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str
    ) -> None:
        """Put a buffer that a block writes into another memory scope."""
        move.need_scope(storage_scope)
        old = self._own_buffer(block, buffer_index)
        if not tree.is_allocated(self.func.body, old):
            raise ScheduleError(f"{old.name!r} is an argument: its memory is the caller's")
        new = old.replace(scope=storage_scope, data=Var(old.name, "handle"))
        self._set(tree.replace_buffer(self.func.body, old, new))

    def unsafe_set_dtype(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str
    ) -> None:
        """Let a buffer that a block writes hold another dtype, which may lose digits."""
        old = self._own_buffer(block, buffer_index)
        self._set(layout.set_dtype(self.func.body, old, dtype))

    def storage_align(
        self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int
    ) -> None:
        """Pad a buffer that a block writes: the stride of `axis` is k * factor + offset."""
        buffer = self._own_buffer(block, buffer_index)
        self._set(layout.storage_align(self.func.body, buffer, axis, factor, offset))

    def transform_layout(
        self, block: BlockRV | str, buffer: layout.ChosenBuffer, index_map: layout.Mapping
    ) -> None:
        """Lay a buffer out anew: its element [i, j, ...] lies at ``index_map(i, j, ...)``.

        `buffer` is ("read", n), ("write", n) or a name.  An argument of the function has the new
        shape from then on.
        """
        found, _ = layout.chosen_buffer(self._block(block), buffer)
        made = layout.transform_layout(self.func, found, index_map)
        tree.check_scopes(made)
        self.mod = self.mod.update(self.func_working_on, made)

    def set_axis_separator(
        self,
        block: BlockRV | str,
        buffer: layout.ChosenBuffer,
        axis_separators: Sequence[int] | None,
    ) -> None:
        """Say at which axes of a buffer another dimension of memory begins.

        The memory of the targets here has one dimension, so that this changes no code.
        """
        found, _ = layout.chosen_buffer(self._block(block), buffer)
        made = layout.set_axis_separators(self.func, found, axis_separators or ())
        self.mod = self.mod.update(self.func_working_on, made)

    def transform_block_layout(self, block: BlockRV | str, index_map: layout.Mapping) -> None:
        """Let the loops of a block run over ``index_map`` of its axes."""
        body = layout.transform_block_layout(self.func.body, self._leaf(block), index_map)
        self._set(body)

    def reindex(self, block: BlockRV | str, buffer: layout.ChosenBuffer) -> BlockRV:
        """Let a block use a copy of a buffer in the order of its axes; return what copies."""
        found = self._leaf(block)
        which, written = layout.chosen_buffer(found, buffer)
        body, name = layout.reindex(self.func.body, found, which, written)
        self._set(body)
        return BlockRV(name)

    # -- choices ---------------------------------------------------------------------------------

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Any = None
    ) -> list[int]:
        """Return `n` factors of a loop's extent at random, or `decision`."""
        if decision is not None:
            return [SampledInt(d) for d in decision]
        left = ops.as_int(self._loop(loop).extent)
        if left is None:
            raise ScheduleError(f"the extent of loop {loop} is not known")
        found: list[int] = []
        for position in range(n - 1):
            limit = max_innermost_factor if position == 0 else left
            found.append(
                self._random.choice([f for f in range(1, min(limit, left) + 1) if left % f == 0])
            )
            left //= found[-1]
        return [SampledInt(factor) for factor in (left, *found[::-1])]

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> int:
        """Return one of the candidates at random, or that of number `decision`."""
        if decision is not None:
            return SampledInt(candidates[decision])
        return SampledInt(self._random.choices(list(candidates), list(probs))[0])

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """Return a loop, at random, that compute_at may move a block to: one of its reader's.

        For a block that nothing reads it is one of its producer's, for reverse_compute_at.
        `decision` is the number of the loop there, -1 to stay, or -2 to be inlined.
        """
        nest, able = self._locations(block)
        if decision is None:
            decision = self._random.choice(able())
        if not INLINED <= decision < len(nest):
            raise ScheduleError(
                f"decision={decision}: block {self._leaf(block).name!r} may be moved to one of "
                f"{len(nest)} loops, from 0 on, stay (-1) or be inlined (-2)"
            )
        var = None if decision < 0 else nest[decision].loop_var
        return LoopRV(var, decision)

    def compute_locations(self, block: BlockRV | str) -> list[int]:
        """Return the decisions that sample_compute_location has for a block as it is now."""
        return self._locations(block)[1]()

    def _locations(self, block: BlockRV | str) -> tuple[list[S.For], Callable[[], list[int]]]:
        """Return the loops that a block may be moved to, and what says which ones can be."""
        found = self._leaf(block)
        every = tree.leaf_blocks(self.func.body)
        made, taken = set(tree.written(found)), set(tree.read(found))
        readers = [b for b in every if made & set(tree.read(b))]
        others = readers or [b for b in every if taken & set(tree.written(b))]
        nest = tree.own_loops(self.func.body, others[0]) if others else []
        at = move.compute_at if readers else move.reverse_compute_at
        inline = move.compute_inline if readers else move.reverse_compute_inline

        def able() -> list[int]:
            ways: list[tuple[int, Callable[[], Any]]] = [
                (n, partial(at, self.func.body, found, one)) for n, one in enumerate(nest)
            ]
            ways.append((INLINED, partial(inline, self.func.body, found)))
            return [STAYS, *(n for n, way in ways if self._is_possible(way))]

        return nest, able

    def _is_possible(self, way: Callable[[], Any]) -> bool:
        try:
            tree.check_scopes(self.func.replace(body=way()))
        except ScheduleError:
            return False
        return True


def _need_own_position(index: int, positions: tuple[int, ...]) -> None:
    """Raise ScheduleError unless a moved block is to go where its neighbours let it.

    -1 and -2 are the last and the first place that they let it have, which is one.
    """
    if index not in (-1, -2, *positions):
        raise ScheduleError(
            f"index={index}: a moved block stands next to what it feeds or reads; leave index away"
        )
