"""Postprocessors (classic): what is done to a schedule after its sampled steps.

``apply(sch)`` returns whether the schedule is a candidate.  What classic TVM's own ones do, the
rules here and the loop passes do: they are taken, and change nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.backends.gpu.limits import most_threads, shared_bytes
from slipway.blocks import tree
from slipway.blocks.schedule import LoopRV, Schedule
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.stmt import Allocate, For, ForKind, Stmt
from slipway.ir.visit import children, walk
from slipway.meta_schedule.intrin_rule import AUTO_TENSORIZE, tensorize
from slipway.meta_schedule.rule import counted_by, kinds_of
from slipway.meta_schedule.schedule_rule import PARALLEL, UNROLL, VECTORIZE
from slipway.meta_schedule.thread_rules import THREAD, AutoBind, tags_of
from slipway.meta_schedule.tiling_rule import COOPERATIVE
from slipway.target import Target
from slipway.transform.loop.compact_buffers import compact_buffers
from slipway.transform.loop.lower_blocks import without_blocks

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext


MARKS = (PARALLEL, VECTORIZE, UNROLL)
VECTOR = 16  # steps of a vector, of a loop that is too long for one


class Postproc:
    """What is done to a schedule after its sampled steps."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Be told what the search is for."""

    def apply(self, sch: Schedule) -> bool:
        """Change a schedule; return whether it is a candidate."""
        del sch
        return True

    def clone(self) -> Postproc:
        """Return the postprocessor."""
        return self


class PyPostproc(Postproc):
    """One of a script's own."""


class DisallowDynamicLoop(Postproc):
    """Refuses loops of a length that is not known."""

    def apply(self, sch: Schedule) -> bool:
        """Return whether all lengths are known."""
        loops = [node for node in walk(sch.func.body) if isinstance(node, For)]
        return all(ops.as_int(loop.extent) is not None for loop in loops)


class RewriteParallelVectorizeUnroll(Postproc):
    """Does to loops what annotations of their blocks ask for (`ParallelizeVectorizeUnroll`)."""

    def apply(self, sch: Schedule) -> bool:
        """Mark the loops, and take the annotations off."""
        requested = {b.name: dict(b.annotations) for b in tree.leaf_blocks(sch.func.body)}
        requested = {name: found for name, found in requested.items() if found.keys() & set(MARKS)}
        if not requested:
            return True
        sch.enter_postproc()
        for name, found in requested.items():
            for mark in found.keys() & set(MARKS):
                sch.unannotate(sch.get_block(name), mark)
        vectors = {name: int(found.get(VECTORIZE, 0)) for name, found in requested.items()}
        for name, most in list(vectors.items()):
            if most and (begun := _begun(sch, name)):
                del vectors[name]
                vectors |= dict.fromkeys(begun, most)
        for name, most in vectors.items():
            _vectorize(sch, name, most)
        for name in _outermost(sch):
            found = requested.get(name.removesuffix("_init"), {})
            if PARALLEL in found:
                _parallelize(sch, name, int(found[PARALLEL]))
            if int(found.get(UNROLL, 0)):
                loops = sch.get_loops(sch.get_block(name))
                serial = [loop for loop in loops if sch.get(loop).thread is None]
                if serial:
                    sch.annotate(serial[0], "pragma_auto_unroll_max_step", int(found[UNROLL]))
        return True


class RewriteCooperativeFetch(Postproc):
    """Lets the threads of a block fill memory that they share, as annotations ask for it."""

    def apply(self, sch: Schedule) -> bool:
        """Bind the loops of copies, and take the annotations off."""
        for name, found in [(b.name, dict(b.annotations)) for b in tree.leaf_blocks(sch.func.body)]:
            if COOPERATIVE not in found:
                continue
            sch.enter_postproc()
            block = sch.get_block(name)
            sch.unannotate(block, COOPERATIVE)
            around = [(loop, sch.get(loop)) for loop in sch.get_loops(block)]
            own = [loop for loop, node in around if len(tree.leaf_blocks(node.body)) == 1]
            threads = [
                n for _, n in around if n.thread is not None and n.thread.thread_tag == THREAD
            ]
            if not own or not threads:
                continue
            fused, vector = sch.fuse(*own) if len(own) > 1 else own[0], int(found[COOPERATIVE])
            factors = [None, threads[0].extent, *([vector] if vector > 1 else [])]
            _, inner, *lanes = sch.split(fused, factors)
            sch.bind(inner, THREAD)
            if lanes:
                sch.vectorize(lanes[0])
        return True


class RewriteUnboundBlock(Postproc):
    """Binds the loops of blocks that no thread runs, as `AutoBind` does."""

    def __init__(self, max_threadblocks: int = 256) -> None:
        self.rule = AutoBind(max_threadblocks, [256])

    def apply(self, sch: Schedule) -> bool:
        """Bind them."""
        for name in [block.name for block in tree.leaf_blocks(sch.func.body)]:
            block = sch.get_block(name)
            if not tags_of(sch, block):
                self.rule.bind(sch, block)
        return True


class VerifyGPUCode(Postproc):
    """Refuses what has more threads or more shared memory in a block than the target allows."""

    def __init__(self) -> None:
        self.target: Target | None = None

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self.target = context.target

    def apply(self, sch: Schedule) -> bool:
        """Return whether each kernel of the function is as small as that."""
        if self.target is None or self.target.kind.is_cpu:
            return True
        for nest in _nests(compact_buffers(without_blocks(sch.func.body))):
            threads: dict[str, int] = {}
            shared = 0
            for node in walk(nest):
                if isinstance(node, For) and node.thread is not None:
                    tag = node.thread.thread_tag
                    if tag.startswith("threadIdx"):
                        threads[tag] = max(threads.get(tag, 1), ops.as_int(node.extent) or 1)
                elif isinstance(node, Allocate) and node.buffer.scope == "shared":
                    shared += math.prod(ops.as_int(n) or 1 for n in node.buffer.shape) * (
                        -(-dtypes.bits_of(node.buffer.dtype) // 8)
                    )
            if math.prod(threads.values()) > most_threads(self.target):
                return False
            if shared > shared_bytes(self.target):
                return False
        return True


class RewriteReductionBlock(Postproc):
    """Does nothing: a reduction whose loops become vectors begins in a block of its own already."""


class RewriteLayout(Postproc):
    """Does nothing: the layout of a function's arguments is its caller's."""


class RewriteTensorize(Postproc):
    """Lets intrinsics do what annotations ask for (`MultiLevelTilingWithIntrin`)."""

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        """Return whether each could; what threads and unrolling a block asked for stays with it."""
        for name, found in [(b.name, dict(b.annotations)) for b in tree.leaf_blocks(sch.func.body)]:
            if AUTO_TENSORIZE not in found:
                continue
            sch.enter_postproc()
            block = sch.get_block(name)
            outer = sch.get_loops(block)[0]
            try:
                begun = tensorize(sch, block)
            except ScheduleError:
                return False
            if begun is not None and self.vectorize_init_loop:
                sch.vectorize(sch.get_loops(begun)[-1])
            first = tree.leaf_blocks(sch.get(outer).body)[0].name
            for mark in {PARALLEL, UNROLL} & found.keys():
                sch.annotate(sch.get_block(first), mark, int(found[mark]))
        return True


def _nests(stmt: Any) -> list[Any]:
    """Return the outermost loops of a function."""
    if isinstance(stmt, For):
        return [stmt]
    return [one for child in children(stmt) if isinstance(child, Stmt) for one in _nests(child)]


def _begun(sch: Schedule, name: str) -> list[str]:
    """Begin a reduction in a block of its own, before its loops; return both blocks' names."""
    block = sch.get_block(name)
    kinds = kinds_of(sch, block)
    if sch.get(block).init is None or "reduce" not in kinds:
        return []
    first = sch.get_loops(block)[kinds.index("reduce")]
    try:
        begun = sch.decompose_reduction(block, first)
    except ScheduleError:
        return []
    return [begun.name, block.name]


def _vectorize(sch: Schedule, name: str, most: int) -> None:
    block = sch.get_block(name)
    if most <= 1 or kinds_of(sch, block)[-1:] != ["data"]:
        return
    last = sch.get_loops(block)[-1]
    loop = sch.get(last)
    extent = ops.as_int(loop.extent)
    if extent is None or extent == 1 or loop.kind != ForKind.SERIAL:
        return
    if len(tree.leaf_blocks(loop.body)) > 1:
        return
    if extent > most:
        _, last = sch.split(last, [None, min(most, VECTOR)])
    sch.vectorize(last)


def _parallelize(sch: Schedule, name: str, jobs: int) -> None:
    """Give the outermost loops of a nest to threads: so many that there are enough jobs."""
    block = sch.get_block(name)
    outer: list[LoopRV] = []
    made = 1
    for loop in sch.get_loops(block):
        node = sch.get(loop)
        extent = ops.as_int(node.extent)
        if extent is None or node.kind != ForKind.SERIAL or made >= jobs:
            break
        inside = [dict(counted_by(b)).get(node.loop_var) for b in tree.leaf_blocks(node.body)]
        # A block that does not count the loop would be computed by several threads at once.
        if extent > 1 and any(kind != "data" for kind in inside):
            break
        outer.append(loop)
        made *= extent
        if not isinstance(node.body, For):
            break
    if outer and made > 1:
        sch.parallel(sch.fuse(*outer) if len(outer) > 1 else outer[0])


def _outermost(sch: Schedule) -> list[str]:
    """Return the first block of each nest of the function."""
    found: dict[Any, str] = {}
    for block in tree.leaf_blocks(sch.func.body):
        nest = tree.own_loops(sch.func.body, block)
        if nest:
            found.setdefault(nest[0].loop_var, block.name)
    return list(found.values())


def finished(sch: Schedule) -> Schedule:
    """Return a schedule after what every search here does at its end."""
    RewriteCooperativeFetch().apply(sch)
    if not RewriteTensorize(vectorize_init_loop=True).apply(sch):
        raise ScheduleError("a tile that its tensor intrinsic does not do")
    RewriteParallelVectorizeUnroll().apply(sch)
    return sch


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
