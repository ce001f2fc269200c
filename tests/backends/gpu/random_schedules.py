"""Random schedules for GPUs: tiles, threads, virtual threads, shared and local memory, reductions.

`draw(seed)` is always the same schedule.  Each comes with what it computes, by NumPy in float64.
"""

from dataclasses import dataclass

import numpy as np

from slipway import te


@dataclass
class Case:
    """A schedule with its arguments, the last of them the result; `reference` takes the others."""

    what: str
    schedule: te.Schedule
    args: list
    reference: object


def draw(seed):
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    kind = [_chain, _product, _rows, _stencil, _softmax][seed % 5]
    return kind(rng)


def _axis(tag):
    return te.thread_axis(tag)


def _pick(rng, *values):
    return values[int(rng.integers(len(values)))]


def _bind_tile(rng, stage, axes, virtual=True):
    """Split two loops among blocks and threads, perhaps virtual ones; return blocks and threads."""
    blocks, strips, threads, steps = [], [], [], []
    for name, loop in zip("yx", axes, strict=True):
        block, loop = stage.split(loop, factor=_pick(rng, 4, 7, 8, 12, 16))
        if virtual and rng.random() < 0.4:
            strip, loop = stage.split(loop, nparts=2)
            stage.bind(strip, te.thread_axis("vthread", name=f"v{name}"))
            strips.append(strip)
        thread, step = stage.split(loop, nparts=_pick(rng, 2, 4))
        stage.bind(block, _axis(f"blockIdx.{name}"))
        blocks.append(block)
        threads.append(thread)
        steps.append(step)
    stage.reorder(*blocks, *strips, *threads, *steps)
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    for thread, axis in zip(threads, bound, strict=True):
        stage.bind(thread, axis)
    return blocks, threads, bound


def _fill(rng, stage, bound):
    """Let all threads of a block fill a stage together."""
    fused = stage.fuse(*stage.op.axis)
    if rng.random() < 0.3:  # along one axis only: the others do nothing
        _, x = stage.split(fused, factor=_pick(rng, 2, 4))
        stage.bind(x, bound[1])
        return
    fused, x = stage.split(fused, factor=_pick(rng, 2, 4))
    _, y = stage.split(fused, factor=_pick(rng, 2, 4))
    stage.bind(y, bound[0])
    stage.bind(x, bound[1])


def _chain(rng):
    """Elementwise stages: inlined, in a thread, in a block, or kernels of their own."""
    n, m = (int(rng.integers(5, 40)) for _ in range(2))
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2 + 1, name="B")
    c = te.compute((n, m), lambda i, j: te.max(b[n - 1 - i, j], 0.25), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] + b[i, m - 1 - j] * a[i, j], name="D")
    s = te.create_schedule(d.op)
    blocks, threads, bound = _bind_tile(rng, s[d], d.op.axis)
    levels = []
    for stage in (c, b):
        level = _pick(rng, "inline", "thread", "block", "kernel")
        levels.append(level)
        if level == "inline":
            s[stage].compute_inline()
        elif level == "thread":
            s[stage].compute_at(s[d], threads[1])
        elif level == "block":
            s[stage].set_scope("shared")
            s[stage].compute_at(s[d], blocks[1])
            _fill(rng, s[stage], bound)
        else:
            _bind_tile(rng, s[stage], stage.op.axis, virtual=False)
    outer = {"inline": 0, "thread": 0, "block": 1, "kernel": 2}
    if levels[1] != "inline" and outer[levels[1]] < outer[levels[0]]:
        return _chain(rng)  # C reads B, too, from outside of where that would be

    def reference(x):
        y = x * 2 + 1
        return np.maximum(y[::-1], 0.25) + y[:, ::-1] * x

    return Case(f"chain {levels}", s, [a, d], reference)


def _product(rng):
    """A product with tiles in shared memory and registers."""
    n, m, k = (int(rng.integers(3, 50)) for _ in range(3))
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    in_shared = [t for t in (a, b) if rng.random() < 0.8]
    shared = [s.cache_read(t, "shared", [c]) for t in in_shared]
    local = [s.cache_read(t, "local", [c]) for t in shared if rng.random() < 0.6]
    sums = s.cache_write(c, "local")
    blocks, threads, bound = _bind_tile(rng, s[c], c.op.axis)
    s[sums].compute_at(s[c], threads[1])
    outer, step = s[sums].split(s[sums].op.reduce_axis[0], factor=_pick(rng, 3, 4, 8))
    s[sums].reorder(outer, step, *s[sums].op.axis)
    at_blocks = rng.random() < 0.2
    for stage in shared:
        s[stage].compute_at(*((s[c], blocks[1]) if at_blocks else (s[sums], outer)))
        _fill(rng, s[stage], bound)
    for stage in local:
        s[stage].compute_at(s[sums], step)
    return Case(f"product {n}x{m}x{k}", s, [a, b, c], lambda x, y: x @ y)


def _rows(rng):
    """Sums or maxima of rows across threads."""
    n, m, width = int(rng.integers(1, 20)), int(rng.integers(1, 90)), _pick(rng, 1, 4, 8, 16, 13)
    reducer, wanted = _pick(rng, (te.sum, np.sum), (te.max, np.max))
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: reducer(a[i, k], axis=k), name="B")
    c = te.compute((n,), lambda i: b[i] * 0.5 + a[i, 0], name="C")
    s = te.create_schedule(c.op)
    rows = _pick(rng, 1, 2, 4)
    block, row = s[c].split(c.op.axis[0], factor=rows)
    s[c].bind(block, _axis("blockIdx.x"))
    s[c].bind(row, _axis("threadIdx.y"))
    s[b].compute_at(s[c], _pick(rng, block, row))
    _, inner = s[b].split(s[b].op.reduce_axis[0], factor=width)
    s[b].bind(inner, _axis("threadIdx.x"))
    return Case(f"rows {n}x{m} by {width}", s, [a, c], lambda x: wanted(x, 1) * 0.5 + x[:, 0])


def _stencil(rng):
    """Windows over what the block has computed before, with a halo."""
    n, m = (int(rng.integers(6, 40)) for _ in range(2))
    a = te.placeholder((n + 2, m + 2), name="A")
    b = te.compute((n + 2, m + 2), lambda i, j: a[i, j] * a[i, j] - 1, name="B")
    c = te.compute(
        (n, m), lambda i, j: b[i, j] + b[i + 1, j + 2] - b[i + 2, j + 1] * b[i + 1, j + 1], name="C"
    )
    s = te.create_schedule(c.op)
    blocks, threads, bound = _bind_tile(rng, s[c], c.op.axis)
    if rng.random() < 0.7:
        s[b].set_scope("shared")
        s[b].compute_at(s[c], blocks[1])
        _fill(rng, s[b], bound)
    else:
        s[b].compute_at(s[c], threads[1])

    def reference(x):
        y = x * x - 1
        return y[:n, :m] + y[1 : n + 1, 2 : m + 2] - y[2:, 1 : m + 1] * y[1 : n + 1, 1 : m + 1]

    return Case(f"stencil {n}x{m}", s, [a, c], reference)


def _softmax(rng):
    """Rows of a block each: reductions across threads, and what is computed between them."""
    n, m = int(rng.integers(1, 12)), int(rng.integers(1, 60))
    x = te.placeholder((n, m), name="X")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="top")
    powers = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="powers")
    total = te.compute((n,), lambda i: te.sum(powers[i, r], axis=r), name="total")
    out = te.compute((n, m), lambda i, j: powers[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    rows, columns = s[out].op.axis
    s[out].bind(rows, _axis("blockIdx.x"))
    thread, width = _axis("threadIdx.x"), _pick(rng, 4, 8, 16)
    _, inner = s[out].split(columns, factor=width)
    s[out].bind(inner, thread)
    for tensor in (top, powers, total):
        s[tensor].compute_at(s[out], rows)
    for tensor in (top, total):
        _, inner = s[tensor].split(s[tensor].op.reduce_axis[0], factor=width)
        s[tensor].bind(inner, thread)
    _, inner = s[powers].split(s[powers].op.axis[1], factor=width)
    s[powers].bind(inner, thread)

    def reference(given):
        y = np.exp(given - given.max(1, keepdims=True))
        return y / y.sum(1, keepdims=True)

    return Case(f"softmax {n}x{m}", s, [x, out], reference)
