"""What a device can do at most, measured there: multiply-adds and memory traffic per second.

Two small functions are compiled for the device's target and timed on it, with the threads that a
model would use.  ``fma`` keeps as many chains of float32 multiply-adds in registers as hide their
latency and does nothing else; ``stream`` scales an array too large for the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import te
from slipway.driver import build
from slipway.executor.operator_module import OperatorModule
from slipway.ir.function import IRModule
from slipway.runtime.devices import Device
from slipway.runtime.ndarray import empty
from slipway.schedules.cpu.tiles import vector_registers
from slipway.schedules.generic import vector_lanes
from slipway.target import Target

CHUNKS = 32  # of equal work, so that any usual number of threads divides it
STEPS = 4000
STREAM_FLOATS = 1 << 23


@dataclass(frozen=True)
class Limits:
    """Arithmetic operations (a multiply-add is two) and bytes of memory traffic per second."""

    flops: float
    bytes: float

    def least_seconds(self, flops: float, size: int) -> float:
        """Return the shortest time for work of `flops` operations on `size` bytes."""
        return max(flops / self.flops, size / self.bytes)

    def binding(self, flops: float, size: int) -> str:
        """Return which limit binds such work: "FMA" or "memory"."""
        return "FMA" if flops / self.flops >= size / self.bytes else "memory"


def _chains(target: Target) -> tuple[int, int]:
    """Return (independent chains, lanes): all registers but those of the operands."""
    return vector_registers(target) - 4, vector_lanes(target, "float32")


def build_probes(target: Target) -> OperatorModule:
    """Return the functions "fma" and "stream" for `target`; they only export and run."""
    chains, lanes = _chains(target)
    x = te.placeholder((lanes,), name="x")
    k = te.reduce_axis((0, STEPS), "k")
    fma = te.comm_reducer(lambda a, b: a * 0.5 + b, lambda t: te.const(0, t), name="fma")
    c = te.compute((CHUNKS, chains, lanes), lambda p, i, v: fma(x[v], axis=k), name="c")
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
    a = te.placeholder((STREAM_FLOATS,), name="a")
    b = te.compute(a.shape, lambda i: a[i] * 0.5, name="b")
    t = te.create_schedule(b.op)
    outer, inner = t[b].split(b.op.axis[0], STREAM_FLOATS // CHUNKS)
    t[b].parallel(outer)
    if lanes > 1:
        _, vector = t[b].split(inner, lanes)
        t[b].vectorize(vector)
    functions = {
        "fma": te.lower(s, [x, c], name="fma"), "stream": te.lower(t, [a, b], name="stream"),
    }  # fmt: skip
    return build(IRModule.from_functions(functions), target=target)


def measure_limits(
    target: Target, device: Any, load: Callable[[OperatorModule], Any], repeat: int = 5
) -> Limits:
    """Measure on `device`; `load` brings the probes there and returns the loaded module.

    The best of `repeat` runs counts: a limit is what nothing disturbed.
    """
    chains, lanes = _chains(target)
    module = load(build_probes(target))

    def best(name: str, *shapes: tuple[int, ...]) -> float:
        arrays = [_tensor(shape, device) for shape in shapes]
        arrays[0].copyfrom(np.full(shapes[0], 0.5, np.float32))
        timer = module.time_evaluator(name, device, number=1, repeat=repeat)
        return float(timer(*arrays).min)

    flops = 2.0 * CHUNKS * chains * lanes * STEPS
    size = 8.0 * STREAM_FLOATS
    seconds = best("fma", (lanes,), (CHUNKS, chains, lanes))
    traffic = best("stream", (STREAM_FLOATS,), (STREAM_FLOATS,))
    return Limits(flops / seconds, size / traffic)


def _tensor(shape: tuple[int, ...], device: Any) -> Any:
    return (
        empty(shape, "float32", device)
        if isinstance(device, Device)
        else device.empty(shape, "float32")
    )
