"""Kernels in the reference interpreter: the threads of a block concurrently.

It runs what the lowering of a GPU's backend makes: loops over threads at the top of each kernel.
Blocks run one after the other.  Each thread of a block runs until it meets the others, at a barrier
or an instruction of its warp; all of them go on once all have come.  Every access of memory that
threads have in common is watched: a race, and a barrier that only some threads reach, are errors
that name the kernel, the stage, two threads and the axes along which they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product as every
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.ir.instructions import texels
from slipway.ir.instructions.async_copies import COMMIT, WAIT
from slipway.ir.instructions.warp_products import PRODUCT, WARP
from slipway.ir.instructions.warp_shuffles import SHUFFLES
from slipway.ir.interpreter.interpret import Machine, PackedFunctions
from slipway.ir.interpreter.races import Index, Reach, Watch, apart, nearest
from slipway.ir.interpreter.steps import (
    ACTIVE,
    BARRIER,
    EXCHANGES,
    Meeting,
    StepCompiler,
    Steps,
    stages_of,
)
from slipway.ir.interpreter.warps import product, share_of, shuffle
from slipway.ir.visit import walk

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.node import Node

_AXES = "xyz"
_ADVICE = (
    "All threads of a block have to come to each barrier: take it out of the condition or loop, or "
    "let that be the same for all of them"
)


def run_threads(
    func: PrimFunc, *arrays: Any, warp: int = WARP, packed: PackedFunctions | None = None
) -> None:
    """Run `func`, whose outermost loops over threads are kernels, on NumPy arrays in location.

    `warp` threads, along x first, shuffle and multiply together.  Raises ExecutionError for what
    `interpret.run` does, for races, and for barriers and instructions of a warp that only some
    threads come to.
    """
    machine = ThreadMachine(packed or {}, func.name, warp)
    machine.bind_arguments(func, arrays)
    with np.errstate(all="ignore"), room_for(func.body, f"function {func.name!r}"):
        machine.compile(func.body)()


@dataclass
class _Location:
    """An element of memory: the buffer's name and variable, its memory, and where in it."""

    name: str
    data: E.Var
    memory: Any
    at: int


@dataclass
class _Thread:
    number: int
    at: Index
    values: dict[int, Any]
    memory: dict[int, Any]
    steps: Iterator[Meeting] | None = None
    meeting: Meeting | None = None
    begun: list[tuple[_Location, Any]] = field(default_factory=list)  # copies of no group yet
    groups: list[list[tuple[_Location, Any]]] = field(default_factory=list)


class ThreadMachine(Machine):
    """A machine whose loops over threads are launches."""

    def __init__(self, packed: PackedFunctions, name: str, warp: int) -> None:
        super().__init__(packed)
        self.name, self.warp = name, warp
        self.kernels = 0
        self.kernel = name
        self.thread: _Thread | None = None
        self.block: Index = (0, 0, 0)
        self.epoch = 0
        self.stage = ""
        self.watch = Watch(name)
        self.own: set[int] = set()  # ids of variables whose memory is a thread's
        self.in_block: dict[int, Any] = {}  # what the running block shares
        self.shared: set[int] = set()  # ids of its variables
        self.reaches: dict[tuple[int, str], Reach] = {}  # since the last barrier

    # -- what differs from one thread --------------------------------------------------------------

    def compile(self, node: Node) -> Callable[[], Any]:
        """Return the closure that runs `node`."""
        known = self.code.get(id(node))
        if known is not None:
            return known[1]
        closure = self._compile_own(node)
        if closure is None:
            return super().compile(node)
        self.code[id(node)] = (node, closure)
        return closure

    def _compile_own(self, node: Node) -> Callable[[], Any] | None:
        if isinstance(node, S.For) and node.kind == S.ForKind.THREAD:
            return self._launch(node)
        if isinstance(node, S.BufferStore):
            store, name = super().compile(node), node.buffer.name

            def in_stage() -> None:
                self.stage = name
                store()

            return in_stage
        if not isinstance(node, E.Call):
            return None
        if node.op in EXCHANGES:
            values, key = self.values, id(node)
            return lambda: values[key]
        if node.op == "async_copy":
            return self._copy(node)
        if node.op == COMMIT:
            return self._commit
        if node.op == WAIT:
            left = self.compile(node.args[0])
            return lambda: self._wait(int(left()))
        return None

    def read(self, buffer: Buffer, at: Any) -> Any:
        """Return the element, or the elements, at a position of a buffer's memory."""
        memory, at = self.find(buffer, "read"), self._texel(buffer, at)
        self._touch(buffer.name, buffer.data, memory, at, False)
        return memory[at]

    def write(self, buffer: Buffer, at: Any, value: Any) -> None:
        """Set the element, or the elements, at a position of a buffer's memory."""
        memory, at = self.find(buffer, "written"), self._texel(buffer, at)
        self._touch(buffer.name, buffer.data, memory, at, True)
        memory[at] = value

    def allocate(self, buffer: Buffer) -> None:
        """Give a temporary memory: a thread's own, its block's, or the device's."""
        key = id(buffer.data)
        if texels.is_texture(buffer.scope):
            columns, rows = texels.sides(buffer)
            self.memory[key] = np.full(rows * columns * texels.LANES, np.nan, buffer.dtype)
        elif self.thread is None:
            super().allocate(buffer)
        elif not buffer.scope.startswith("shared"):
            self.own.add(key)
            super().allocate(buffer)
        else:
            self.shared.add(key)
            if key not in self.in_block:
                super().allocate(buffer)
                self.in_block[key] = self.memory[key]
            self.memory[key] = self.in_block[key]

    def _texel(self, buffer: Buffer, at: Any) -> Any:
        """Return where an element of a buffer is; of an image, whose rows have no room between."""
        if not texels.is_texture(buffer.scope):
            return at
        columns, _ = texels.sides(buffer)
        row, column = divmod(at, texels.MOST * texels.LANES)
        if np.max(column) >= columns * texels.LANES:
            raise ExecutionError(
                f"column {int(np.max(column)) // texels.LANES} of image {buffer.name!r}, which has "
                f"{columns}"
            )
        return row * columns * texels.LANES + column

    def _touch(self, name: str, data: E.Var, memory: Any, at: Any, writes: bool) -> None:
        thread, key = self.thread, id(data)
        if thread is None or key in self.own:
            return
        who = self.reaches.get((thread.number, self.stage))
        if who is None:
            who = Reach(self.block, self.epoch, thread.number, thread.at, self.stage)
            self.reaches[thread.number, self.stage] = who
        self.watch.touch(name, memory, at, who, writes, key in self.shared)

    # -- launches ----------------------------------------------------------------------------------

    def _launch(self, root: S.For) -> Callable[[], None]:
        loops: dict[str, S.For] = {}
        node: S.Stmt = root
        while isinstance(node, S.For) and node.kind == S.ForKind.THREAD and node.thread is not None:
            loops[node.thread.thread_tag] = node
            node = node.body
        body = node
        name = f"{self.name}_kernel{self.kernels}"
        self.kernels += any(isinstance(n, (S.BufferStore, E.Call)) for n in walk(body))
        made: list[Steps] = []

        def run_kernel() -> None:
            if not made:
                made.append(StepCompiler(self, self._operands).of(body, (), stages_of(body)))
            sizes = {
                kind: [
                    int(self.expr(loops[tag].extent)) if tag in loops else 1
                    for tag in (f"{kind}.{axis}" for axis in _AXES)
                ]
                for kind in ("blockIdx", "threadIdx")
            }
            self._run_kernel(name, loops, sizes, made[0])

        return run_kernel

    def _run_kernel(
        self, name: str, loops: dict[str, S.For], sizes: dict[str, list[int]], steps: Steps
    ) -> None:
        self.kernel, self.watch = name, Watch(name)
        values, memory = dict(self.values), self.memory
        keys = {tag: (id(loop.loop_var), id(loop.thread.var) if loop.thread else 0)
                for tag, loop in loops.items()}  # fmt: skip

        def numbered(kind: str, index: Index) -> dict[int, int]:
            tags = [(f"{kind}.{axis}", number) for axis, number in zip(_AXES, index, strict=True)]
            return {key: number for tag, number in tags for key in keys.get(tag, ())}

        try:
            for block in _indices(sizes["blockIdx"]):
                self.block = block
                given = {**values, **numbered("blockIdx", block)}
                threads = [
                    _Thread(number, at, {**given, **numbered("threadIdx", at)}, dict(memory))
                    for number, at in enumerate(_indices(sizes["threadIdx"]))
                ]
                self._run_block(threads, steps)
        finally:
            self.thread, self.memory = None, memory
            self.values.clear()
            self.values.update(values)

    def _run_block(self, threads: list[_Thread], steps: Steps) -> None:
        self.watch.start_block()
        self.in_block = {}
        self._pass_barrier()
        ready = threads
        while ready:
            for thread in ready:
                self._resume(thread, steps)
            ready = self._exchanged(threads)
            if ready:
                continue
            ready = [thread for thread in threads if thread.meeting is not None]
            if ready:
                self._check_barrier(ready, threads)
                self._pass_barrier()

    def _pass_barrier(self) -> None:
        self.epoch += 1
        self.reaches = {}

    def _resume(self, thread: _Thread, steps: Steps) -> None:
        """Run a thread until it meets others, or to its end."""
        self.thread, self.memory = thread, thread.memory
        self.values.clear()
        self.values.update(thread.values)
        try:
            if thread.steps is None:
                thread.steps = steps()
            thread.meeting = next(thread.steps, None)
        except ExecutionError as error:
            if str(error).startswith(self.kernel):
                raise
            raise ExecutionError(f"{self._who(thread)}: {error}") from None
        thread.values = dict(self.values)

    def _who(self, thread: _Thread) -> str:
        return f"{self.kernel}: thread {thread.at} of block {self.block}"

    def _check_barrier(self, waiting: list[_Thread], threads: list[_Thread]) -> None:
        meetings = {thread.number: m for thread in waiting if (m := thread.meeting) is not None}
        first = meetings[waiting[0].number]
        others = [
            thread.at
            for thread in threads
            if thread.number not in meetings or meetings[thread.number].number != first.number
        ]
        if not others:
            return
        here = [t.at for t in waiting if meetings[t.number].number == first.number]
        one, other = nearest(here, others)
        under = f", which stands under `{'`, `'.join(first.around)}`" if first.around else ""
        stages = ", ".join(repr(s) for s in first.stages[:4])
        stages = f" in stage {stages}" if stages else ""
        is_there = any(t.at == other for t in waiting)
        raise ExecutionError(
            f"{self.kernel}: a divergent barrier{stages}: thread {one} of block {self.block} waits "
            f"at a barrier{under}, and thread {other}, apart along "
            f"{apart('threadIdx', one, other)}, {'waits at another one' if is_there else 'ends'} "
            f"without having come to it. {_ADVICE}"
        )

    # -- what threads of a warp do together --------------------------------------------------------

    def _exchanged(self, threads: list[_Thread]) -> list[_Thread]:
        """Let the threads of each warp that wait for each other have what they want."""
        done: list[_Thread] = []
        for first in range(0, len(threads), self.warp):
            groups: dict[int, list[_Thread]] = {}
            for thread in threads[first : first + self.warp]:
                if thread.meeting is not None and thread.meeting.call.op != BARRIER:
                    groups.setdefault(thread.meeting.number, []).append(thread)
            for group in groups.values():
                self._exchange(group)
                done += group
        return done

    def _exchange(self, group: list[_Thread]) -> None:
        meetings = [m for thread in group if (m := thread.meeting) is not None]
        call = meetings[0].call
        if call.op == PRODUCT:
            self._multiply(call, group, meetings)
            return
        lanes = [thread.number % self.warp for thread in group]
        if call.op == ACTIVE:
            found: dict[int, Any] = dict.fromkeys(lanes, sum(1 << lane for lane in lanes))
        else:
            brought = {lane: m.operands for lane, m in zip(lanes, meetings, strict=True)}
            found = shuffle(call, brought, f"{self.kernel}, block {self.block}")
        for lane, thread in zip(lanes, group, strict=True):
            thread.values[id(call)] = found[lane]

    def _multiply(self, call: E.Call, group: list[_Thread], meetings: list[Meeting]) -> None:
        name = call.args[0].value  # type: ignore[attr-defined]
        _, count, _ = share_of(name)
        if len(group) != count:
            raise ExecutionError(
                f"{self._who(group[0])}: {len(group)} threads of a warp come to the product "
                f"{name!r}, which {count} compute together: no condition may keep a thread from it"
            )
        sums = product(name, [m.operands[0] for m in meetings])
        for meeting, own in zip(meetings, sums, strict=True):
            for location, values in zip(meeting.operands[1], own, strict=True):
                location.memory[location.at : location.at + len(values)] = values

    def _operands(self, call: E.Call) -> Callable[[], tuple[Any, ...]]:
        """Return what gives the operands that the running thread brings to a meeting."""
        if call.op in SHUFFLES:
            values = [self.compile(a) for a in call.args]
            return lambda: tuple(value() for value in values)
        if call.op != PRODUCT:
            return lambda: ()
        entry, _, share = share_of(call.args[0].value)  # type: ignore[attr-defined]
        own = share(0)
        locations = [self._location_of(a) for a in call.args[1:]]
        sizes = [own.steps[0]] * len(own.a) + [own.steps[1]] * len(own.b)
        widths = [len(cells) for cells in own.sums]
        kinds = [entry.a_dtype] * len(own.a) + [entry.b_dtype] * len(own.b)

        def bring() -> tuple[Any, ...]:
            pieces = [
                _numbers(self._elements(location(), size), kind)
                for location, size, kind in zip(locations, sizes, kinds, strict=False)
            ]
            sums = [location() for location in locations[len(sizes) :]]
            olds = [s.memory[s.at : s.at + w].copy() for s, w in zip(sums, widths, strict=True)]
            return ([*pieces, *olds], sums)

        return bring

    # -- addresses and copies ----------------------------------------------------------------------

    def _location_of(self, address: E.PrimExpr) -> Callable[[], _Location]:
        """Return what gives the element that an address is of."""
        assert isinstance(address, E.Call)
        of: Any = address.args[0]
        if address.op == "address_of":
            position = self.locate(of.buffer, of.indices)
            buffer = of.buffer
            return lambda: _Location(
                buffer.name, buffer.data, self.find(buffer, "read"), int(position())
            )
        offset = self.compile(address.args[1])
        return lambda: _Location(of.name, of, self.memory[id(of)], int(offset()))

    def _elements(self, location: _Location, count: int) -> Any:
        """Return elements from a location on, as the running thread reads them."""
        at = np.arange(location.at, location.at + count)
        if location.at + count > location.memory.size:
            raise ExecutionError(
                f"{count} elements from {location.at} on are read of {location.name!r}, which has "
                f"{location.memory.size}"
            )
        self._touch(location.name, location.data, location.memory, at, False)
        return location.memory[at]

    def _copy(self, call: E.Call) -> Callable[[], int]:
        to, source = self._location_of(call.args[0]), self._location_of(call.args[1])
        size = self.compile(call.args[2])

        def begin() -> int:
            start = source()
            count = int(size()) // start.memory.itemsize
            assert self.thread is not None
            self.thread.begun.append((to(), self._elements(start, count)))
            return 0

        return begin

    def _commit(self) -> int:
        assert self.thread is not None
        self.thread.groups.append(self.thread.begun)
        self.thread.begun = []
        return 0

    def _wait(self, left: int) -> int:
        """Let copies arrive, but those of the thread's latest groups: nothing comes before."""
        assert self.thread is not None
        groups = self.thread.groups
        while len(groups) > left:
            for location, values in groups.pop(0):
                self.stage = location.name
                at = np.arange(location.at, location.at + len(values))
                self._touch(location.name, location.data, location.memory, at, True)
                location.memory[at] = values
        return 0


def _indices(sizes: list[int]) -> list[Index]:
    """Return the indices (x, y, z) of threads or blocks, x first."""
    x, y, z = sizes
    return [(i, j, k) for k, j, i in every(range(z), range(y), range(x))]


def _numbers(elements: Any, dtype: str) -> Any:
    """Return elements of memory as the numbers that a product takes."""
    if dtypes.code_of(dtype) == "bfloat":
        return (elements.astype(np.uint32) << 16).view(np.float32)
    return elements.astype(np.float32 if elements.dtype.kind == "f" else np.int64)
