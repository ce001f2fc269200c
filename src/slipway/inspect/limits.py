"""What a device can do at most, measured there: multiply-adds, and bytes from each distance.

Small functions are compiled for the device's target and timed on it, with the threads that a model
would use.  ``fma`` keeps as many chains of float32 multiply-adds in registers as hide their
latency and does nothing else.  ``read`` sums an array and ``copy`` scales one into another, for
arrays of several sizes: read again and again, an array is found where so many bytes have room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.tile import vector_registers
from slipway.compiler.driver import build
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import SlipwayError
from slipway.inspect.traffic import Traffic
from slipway.ir.function import IRModule
from slipway.runtime.devices import AnyDevice, Device
from slipway.runtime.ndarray import empty
from slipway.target import Target
from slipway.target.cores import host_caches

CHUNKS = 32  # of equal work, so that any usual number of threads divides it
STEPS = 4000
SUMS = 8  # vectors that `read` adds to, so that it waits for data and not for additions
SIZES = (*(1 << n for n in range(18, 25)), 1 << 26)  # bytes: 256 KB, 512 KB, ... 16 MB, and 64 MB
_SLOW_SECONDS = 0.05
_PASSED = 16 << 20  # bytes that a measurement passes at least


@dataclass(frozen=True)
class Level:
    """Bytes per second of a loop over so many bytes: `read` only, or half read, half written."""

    name: str
    read: float
    copy: float

    def limit_seconds(self, reads: float, writes: float) -> float:
        """Return the shortest time for so many bytes: reading them, or copying the fewer."""
        return max(reads / self.read, 2 * min(reads, writes) / self.copy)


@dataclass(frozen=True)
class Limits:
    """Operations of multiply-add units per second (a multiply-add is two), and a level per size."""

    flops: float
    levels: tuple[Level, ...]

    def bounds(self, work: float, traffic: Traffic) -> dict[str, float]:
        """Return the shortest time for an operator by each limit, in seconds, by its name.

        What comes from far also passes the levels that are nearer.
        """
        found = {"FMA": work / self.flops}
        for number, level in enumerate(self.levels, 1):
            reads, writes = sum(traffic.reads[number:]), sum(traffic.writes[number:])
            seconds = level.limit_seconds(reads, writes)
            found[level.name] = max(found.get(level.name, 0.0), seconds)
        return found


def best_levels(first: Sequence[Level], second: Sequence[Level]) -> tuple[Level, ...]:
    """Return what was reached in either of two measurements."""
    pairs = zip(first, second, strict=True)
    return tuple(Level(a.name, max(a.read, b.read), max(a.copy, b.copy)) for a, b in pairs)


def level_names(caches: dict[int, int], threads: int = 1) -> tuple[str, ...]:
    """Return what to call data of each of SIZES: the cache that holds it, or its size.

    `caches` are the bytes of each level for one core, of the last level for all; none: unknown.
    """
    if not caches:
        return tuple(f"{size >> 10} KB" if size < 1 << 20 else f"{size >> 20} MB" for size in SIZES)
    last = max(caches)
    names = []
    for size in SIZES:
        room = {n: held * (1 if n == last else threads) for n, held in caches.items()}
        fitting = [number for number in sorted(room) if size <= room[number]]
        names.append(f"L{fitting[0]}" if fitting else "memory")
    return tuple(names)


def _chains(target: Target) -> tuple[int, int]:
    """Return (independent chains, lanes): all registers but those of the operands."""
    return vector_registers(target) - 4, vector_lanes(target, "float32")


def build_probes(target: Target) -> OperatorModule:
    """Return "fma", and "read", "copy" and "fill" of each size, for `target`; they only export."""
    functions = {"fma": te.lower(*fma_loop(target), name="fma")}
    for size in SIZES:
        kb = size >> 10
        functions[f"read_{kb}"] = te.lower(*_read(target, size), name=f"read_{kb}")
        functions[f"copy_{kb}"] = te.lower(*_copy(target, size), name=f"copy_{kb}")
        functions[f"fill_{kb}"] = te.lower(*_fill(target, size), name=f"fill_{kb}")
    return build(IRModule.from_functions(functions), target=target)


def fma_loop(target: Target) -> tuple[te.Schedule, list[te.Tensor]]:
    """Return the schedule and arguments of multiply-adds that wait for nothing."""
    chains, lanes = _chains(target)
    x = te.placeholder((lanes,), name="x")
    k = te.reduce_axis((0, STEPS), "k")
    fma = te.comm_reducer(lambda a, b: a * 0.5 + b, lambda t: te.const(0, t), name="fma")
    c = te.compute((CHUNKS, chains, lanes), lambda p, i, v: fma(x[v], axis=k), name="c")
    return _in_registers(c, lanes), [x, c]


def _read(target: Target, size: int) -> tuple[te.Schedule, list[te.Tensor]]:
    shape = _read_shape(target, size)
    lanes = shape[-1]
    a = te.placeholder(shape, name="a")
    k = te.reduce_axis((0, shape[1]), "k")
    c = te.compute((CHUNKS, SUMS, lanes), lambda p, i, v: te.sum(a[p, k, i, v], axis=k), name="c")
    return _in_registers(c, lanes), [a, c]


def _in_registers(c: te.Tensor, lanes: int) -> te.Schedule:
    """A reduction of (chunk, chain, lane) whose chains stay in registers."""
    s = te.create_schedule(c.op)
    cc = s.cache_write(c, "local")
    chunk, i, v = s[c].op.axis
    s[c].parallel(chunk)
    s[c].unroll(i)
    s[cc].compute_at(s[c], chunk)
    _, ic, vc = s[cc].op.axis
    s[cc].reorder(s[cc].op.reduce_axis[0], ic, vc)
    s[cc].unroll(ic)
    if lanes > 1:
        s[c].vectorize(v)
        s[cc].vectorize(vc)
    return s


def _copy(target: Target, size: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Half of the array that `read` reads, to another array.

    From the end of each chunk: a load would wait for a store at the same place of another page.
    """
    chunks, steps, sums, lanes = _read_shape(target, size)
    a = te.placeholder((chunks, steps, sums, lanes), name="a")
    shape = (chunks // 2, steps, sums, lanes)
    b = te.compute(shape, lambda p, k, i, v: a[p, steps - 1 - k, i, v] * 0.5, name="b")
    return _in_chunks(b, lanes), [a, b]


def _fill(target: Target, size: int) -> tuple[te.Schedule, list[te.Tensor]]:
    shape = _read_shape(target, size)
    b = te.compute(shape, lambda *_: te.const(0.5, "float32"), name="b")
    return _in_chunks(b, shape[-1]), [b]


def _in_chunks(b: te.Tensor, lanes: int) -> te.Schedule:
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    s[b].unroll(b.op.axis[2])
    if lanes > 1:
        s[b].vectorize(b.op.axis[3])
    return s


def _read_shape(target: Target, size: int) -> tuple[int, ...]:
    lanes = vector_lanes(target, "float32")
    return CHUNKS, size // (4 * CHUNKS * SUMS * lanes), SUMS, lanes


class Probes:
    """The functions that measure limits, on a device, and their arrays; `measure` runs them.

    `load` brings compiled functions to the device and returns the loaded module; `threads` are
    those that share the work there.
    """

    def __init__(
        self,
        target: Target,
        device: AnyDevice,
        load: Callable[[OperatorModule], Any],
        threads: int = 1,
    ) -> None:
        self.device = device
        self.module = load(build_probes(target))
        self.names = level_names(host_caches() if isinstance(device, Device) else {}, threads)
        chains, lanes = _chains(target)
        self.work = 2.0 * CHUNKS * chains * lanes * STEPS
        factor = self._tensor((lanes,))
        factor.copyfrom(np.full((lanes,), 0.5, np.float32))
        self.arrays = {"fma": (factor, self._tensor((CHUNKS, chains, lanes)))}
        sums = self._tensor((CHUNKS, SUMS, lanes))
        self.sizes: tuple[int, ...] = ()
        for size in SIZES:
            try:
                self._prepare(size, _read_shape(target, size), sums)
            except (MemoryError, SlipwayError):
                if not self.sizes:
                    raise
                break  # a small device: its memory is what the last size measured
            self.sizes += (size,)

    def flops(self) -> float:
        """Return the rate of multiply-adds of this very half millisecond.

        A clock that other work has slowed down rises within one or two, so nothing is repeated.
        """
        return self.work / self._seconds("fma", 1, 1)

    def levels(self, repeat: int = 3) -> tuple[Level, ...]:
        """Return the rates of data of all SIZES that the device has memory for.

        The best of `repeat` times counts: a limit is what nothing disturbed.  A device that is
        slow is measured once.
        """
        levels = []
        for name, size in zip(self.names, self.sizes, strict=False):
            number, kb = max(1, _PASSED // size), size >> 10
            rates = []
            for what in (f"read_{kb}", f"copy_{kb}"):
                seconds = self._seconds(what, 1, 1)
                if seconds * number < _SLOW_SECONDS:
                    seconds = min(seconds, self._seconds(what, number, repeat))
                rates.append(size / seconds)
            levels.append(Level(name, *rates))
        return tuple(levels)

    def _seconds(self, name: str, number: int, repeat: int) -> float:
        timer = self.module.time_evaluator(name, self.device, number=number, repeat=repeat)
        return float(timer(*self.arrays[name]).min)

    def _prepare(self, size: int, shape: tuple[int, ...], sums: Any) -> None:
        """Make the arrays of a size; untouched memory might all be one page of zeros."""
        read, kb = self._tensor(shape), size >> 10
        half = self._tensor((shape[0] // 2, *shape[1:]))
        self.module[f"fill_{kb}"](read)
        self.arrays[f"read_{kb}"], self.arrays[f"copy_{kb}"] = (read, sums), (read, half)

    def _tensor(self, shape: tuple[int, ...]) -> Any:
        if isinstance(self.device, Device):
            return empty(shape, "float32", self.device)
        return self.device.empty(shape, "float32")
