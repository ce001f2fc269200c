"""Random schedules for GPUs with the rarer words: three axes of threads, fused axes of odd steps,
double buffers, rows apart, factored and tuple reductions, windows with predicates, narrow types.

`draw_rare(seed)` is always the same schedule.  Each comes with what it computes, by NumPy.
"""

import numpy as np
from random_schedules import Case, _axis, _fill, _pick

from slipway import te, tir


def draw_rare(seed):
    """Return the case of a seed."""
    rng = np.random.default_rng(10_000 + seed)
    kinds = [
        _panels, _fused, _cube, _factored, _argmax, _window, _narrow, _nest, _columns, _pair,
        _inner,
    ]  # fmt: skip
    return kinds[seed % len(kinds)](rng)


def _size(rng, most):
    return int(rng.integers(1, most))


def _bind_fused(rng, stage, axes):
    """Fuse loops and split them by any number; return the loops of blocks and of threads."""
    fused = stage.fuse(*axes)
    if rng.random() < 0.3:
        fused, virtual = stage.split(fused, factor=_pick(rng, 2, 3))
        stage.bind(virtual, te.thread_axis("vthread"))
        block, thread = stage.split(fused, factor=_pick(rng, 3, 8, 17))
        stage.reorder(block, virtual, thread)
    else:
        block, thread = stage.split(fused, factor=_pick(rng, 5, 16, 31, 64))
    stage.bind(block, _axis("blockIdx.x"))
    stage.bind(thread, _axis("threadIdx.x"))
    return block, thread


def _panels(rng):
    """A product of panels with rows apart, double buffers, unrolled and vector copies."""
    n, m, k = (int(rng.integers(3, 45)) for _ in range(3))
    a, b = te.placeholder((n, k), name="A"), te.placeholder((m, k), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] * 2 - a[i, 0], name="D")
    s = te.create_schedule(d.op)
    s[c].set_scope("local")
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    rows, columns = _pick(rng, (2, 4), (4, 4), (4, 8))
    y, x = s[d].op.axis
    block_y, y = s[d].split(y, factor=rows * _pick(rng, 1, 2, 3))
    block_x, x = s[d].split(x, factor=columns * _pick(rng, 1, 2))
    thread_y, y = s[d].split(y, nparts=rows)
    x, thread_x = s[d].split(x, factor=columns)
    s[d].reorder(block_y, block_x, thread_y, thread_x, y, x)
    for loop, axis in ((block_y, _axis("blockIdx.y")), (block_x, _axis("blockIdx.x")),
                       (thread_y, bound[0]), (thread_x, bound[1])):  # fmt: skip
        s[d].bind(loop, axis)
    s[c].compute_at(s[d], thread_x)
    outer, step = s[c].split(s[c].op.reduce_axis[0], factor=_pick(rng, 2, 4, 5))
    s[c].reorder(outer, step, *s[c].op.axis)
    if rng.random() < 0.5:
        s[c].unroll(step)
    for tensor in (a, b):
        panel = s.cache_read(tensor, "shared", [c])
        s[panel].compute_at(s[c], outer)
        if rng.random() < 0.5:
            s[panel].storage_align(s[panel].op.axis[0], _pick(rng, 4, 8), _pick(rng, 1, 3))
        if rng.random() < 0.5:
            s[panel].double_buffer()
        if rng.random() < 0.3:
            rest, lane = s[panel].split(s[panel].op.axis[1], factor=2)
            s[panel].vectorize(lane)
            fused = s[panel].fuse(s[panel].op.axis[0], rest)
            fused, across = s[panel].split(fused, factor=columns)
            _, down = s[panel].split(fused, factor=rows)
            s[panel].bind(down, bound[0])
            s[panel].bind(across, bound[1])
        else:
            fused = s[panel].fuse(*s[panel].op.axis)
            fused, across = s[panel].split(fused, factor=columns)
            _, down = s[panel].split(fused, factor=rows)
            s[panel].bind(down, bound[0])
            s[panel].bind(across, bound[1])
    for stage in s.stages:
        if stage.scope == "shared" and not stage.alignments and rng.random() < 0.5:
            stage.swizzle(_pick(rng, 1, 2, 4))
    return Case(f"panels {n}x{m}x{k}", s, [a, b, d], lambda x, y: x @ y.T * 2 - x[:, :1])


def _fused(rng):
    """Elementwise stages over fused axes, in registers of a thread or kernels of their own."""
    shape = tuple(_size(rng, 14) for _ in range(3))
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda i, j, k: a[i, shape[1] - 1 - j, k] + te.exp(a[i, j, k]), name="B")
    c = te.compute(
        shape, lambda i, j, k: tir.if_then_else(k < 2, b[i, j, k], b[i, j, k] * b[i, j, k - 2]),
        name="C",
    )  # fmt: skip
    s = te.create_schedule(c.op)
    _, thread = _bind_fused(rng, s[c], s[c].op.axis)
    where = _pick(rng, "inline", "thread", "kernel")
    if where == "inline":
        s[b].compute_inline()
    elif where == "thread":
        s[b].compute_at(s[c], thread)
    else:
        _bind_fused(rng, s[b], s[b].op.axis)

    def reference(x):
        y = x[:, ::-1] + np.exp(x)
        made = y.copy()
        made[:, :, 2:] *= y[:, :, :-2]
        return made

    return Case(f"fused {shape} {where}", s, [a, c], reference)


def _cube(rng):
    """Blocks and threads of three axes; one stage in shared memory that all of them fill."""
    n, m, k = (_size(rng, 12) for _ in range(3))
    a = te.placeholder((n, m, k), name="A")
    b = te.compute((k, n, m), lambda i, j, h: a[j, h, i] * 3, name="B")
    c = te.compute((n, m, k), lambda i, j, h: b[h, i, j] + a[i, j, h] * a[i, j, h], name="C")
    s = te.create_schedule(c.op)
    blocks, threads = [], []
    for loop in s[c].op.axis:
        block, thread = s[c].split(loop, factor=_pick(rng, 1, 2, 3, 5))
        blocks.append(block)
        threads.append(thread)
    s[c].reorder(*blocks, *threads)
    order = list(rng.permutation(3))
    bound = [_axis(f"threadIdx.{'xyz'[dim]}") for dim in order]
    for block, thread, axis, dim in zip(blocks, threads, bound, order, strict=True):
        s[c].bind(block, _axis(f"blockIdx.{'xyz'[dim]}"))
        s[c].bind(thread, axis)
    s[b].set_scope("shared")
    s[b].compute_at(s[c], blocks[-1])
    loops = list(s[b].op.axis)
    for axis, loop in zip(bound, loops, strict=True):
        if rng.random() < 0.8:
            _, inner = s[b].split(loop, factor=_pick(rng, 1, 2, 3))
            s[b].bind(inner, axis)
    return Case(f"cube {n}x{m}x{k}", s, [a, c], lambda x: x * 3 + x * x)


def _factored(rng):
    """Sums in two steps: a part for each thread, then across threads; or a kernel for each step."""
    n, m = _size(rng, 9), int(rng.integers(2, 70))
    factor = _pick(rng, 2, 3, 8, 16)
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(s[b].op.reduce_axis[0], factor=factor)
    parts = s.rfactor(b, inner)
    block, row = s[b].split(s[b].op.axis[0], factor=_pick(rng, 1, 2, 3))
    s[b].bind(block, _axis("blockIdx.x"))
    thread = _axis("threadIdx.x")
    if rng.random() < 0.6:
        s[b].bind(row, _axis("threadIdx.y"))
        s[b].bind(s[b].op.reduce_axis[0], thread)
        s[parts].compute_at(s[b], s[b].op.reduce_axis[0])
        if rng.random() < 0.5:
            s[b].set_store_predicate(thread.var.equal(0))
        how = "across"
    else:
        s[b].bind(row, thread)
        _bind_fused(rng, s[parts], s[parts].op.axis)
        how = "kernels"
    return Case(f"factored {n}x{m} by {factor} {how}", s, [a, b], lambda x: (x * x).sum(1))


def _argmax(rng):
    """The place of the largest element of each row, across threads, and what is there."""
    n, m = _size(rng, 9), int(rng.integers(2, 80))

    def larger(x, y):
        take = tir.any(x[1] > y[1], tir.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(take, x[0], y[0]), tir.Select(take, x[1], y[1])

    best = te.comm_reducer(
        larger, lambda t0, t1: (tir.const(2**30, t0), te.min_value(t1)), name="best"
    )
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    argmax, _ = te.compute((n,), lambda i: best((k, a[i, k]), axis=k), name="argmax")
    out = te.compute((n,), lambda i: argmax[i].astype("float32") * 0.5, name="out")
    s = te.create_schedule(out.op)
    rows = _pick(rng, 1, 2)
    block, row = s[out].split(s[out].op.axis[0], factor=rows)
    s[out].bind(block, _axis("blockIdx.x"))
    s[out].bind(row, _axis("threadIdx.y"))
    s[argmax].compute_at(s[out], _pick(rng, block, row))
    _, inner = s[argmax].split(s[argmax].op.reduce_axis[0], factor=_pick(rng, 4, 7, 16))
    s[argmax].bind(inner, _axis("threadIdx.x"))
    return Case(f"argmax {n}x{m}", s, [a, out], lambda x: x.argmax(1) * 0.5)


def _window(rng):
    """A convolution: its padded image in shared memory or inlined, its sums in registers."""
    c_in, c_out, h, w = _size(rng, 4), _size(rng, 6), int(rng.integers(3, 14)), _size(rng, 14)
    stride, taps = _pick(rng, 1, 2), 3
    x = te.placeholder((c_in, h, w), name="X")
    f = te.placeholder((c_out, c_in, taps, taps), name="F")
    high, wide = (h - 1) // stride + 1, (w - 1) // stride + 1
    pad = te.compute(
        (c_in, h + 2, w + 2),
        lambda c, i, j: tir.if_then_else(
            tir.all(i >= 1, i < h + 1, j >= 1, j < w + 1), x[c, i - 1, j - 1], tir.const(0.0)
        ),
        name="pad",
    )
    rc, ry, rx = (te.reduce_axis((0, e), name=n) for e, n in ((c_in, "rc"), (3, "ry"), (3, "rx")))
    y = te.compute(
        (c_out, high, wide),
        lambda o, i, j: te.sum(
            pad[rc, i * stride + ry, j * stride + rx] * f[o, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="Y",
    )
    s = te.create_schedule(y.op)
    sums = s.cache_write(y, "local")
    o, i, j = s[y].op.axis
    block_o, o = s[y].split(o, factor=_pick(rng, 1, 2, 4))
    block_i, i = s[y].split(i, factor=_pick(rng, 2, 3, 4))
    block_j, j = s[y].split(j, factor=_pick(rng, 4, 5, 8))
    virtual, o = s[y].split(o, nparts=_pick(rng, 1, 2))
    s[y].reorder(block_o, block_i, block_j, virtual, i, j, o)
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    for loop, axis in ((block_o, _axis("blockIdx.z")), (block_i, _axis("blockIdx.y")),
                       (block_j, _axis("blockIdx.x")), (virtual, te.thread_axis("vthread")),
                       (i, bound[0]), (j, bound[1])):  # fmt: skip
        s[y].bind(loop, axis)
    s[sums].compute_at(s[y], j)
    loops = list(s[sums].op.reduce_axis)
    s[sums].reorder(*loops, *s[sums].op.axis)
    if rng.random() < 0.7:
        s[pad].set_scope("shared")
        s[pad].compute_at(*_pick(rng, (s[sums], loops[0]), (s[y], block_j)))
        _fill(rng, s[pad], bound)
    else:
        s[pad].compute_inline()
    if rng.random() < 0.5:
        filters = s.cache_read(f, "shared", [sums])
        s[filters].compute_at(s[sums], loops[0])
        _fill(rng, s[filters], bound)

    def reference(image, kernel):
        padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
        made = np.zeros((c_out, high, wide))
        for dy in range(3):
            for dx in range(3):
                seen = padded[:, dy : dy + h : stride, dx : dx + w : stride]
                made += np.einsum("oc,chw->ohw", kernel[:, :, dy, dx], seen)
        return made

    return Case(f"window {c_in}->{c_out} {h}x{w} stride {stride}", s, [x, f, y], reference)


def _narrow(rng):
    """float16 in shared memory, bytes and bool between: what each language stores otherwise."""
    n, m = _size(rng, 20), int(rng.integers(2, 40))
    kind = _pick(rng, "float16", "int8", "uint8", "int16", "bool")
    a = te.placeholder((n, m), name="A")
    if kind == "bool":
        b = te.compute((n, m), lambda i, j: a[i, j] > 0.25, name="B")
    else:
        b = te.compute((n, m), lambda i, j: te.abs(a[i, j] * 16).astype(kind), name="B")
    c = te.compute(
        (n, m), lambda i, j: b[i, m - 1 - j].astype("float32") + b[i, j].astype("float32") * 2,
        name="C",
    )  # fmt: skip
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    block, row = s[c].split(i, factor=_pick(rng, 1, 2, 4))
    _, lane = s[c].split(j, factor=_pick(rng, 3, 8, 16))
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    s[c].bind(block, _axis("blockIdx.x"))
    s[c].bind(row, bound[0])
    s[c].bind(lane, bound[1])
    where = _pick(rng, "shared", "row", "kernel")
    if where == "shared":
        s[b].set_scope("shared")
        s[b].compute_at(s[c], block)
        _fill(rng, s[b], bound)
    elif where == "row":
        s[b].compute_at(s[c], row)
        _, across = s[b].split(s[b].op.axis[1], factor=4)
        s[b].bind(across, bound[1])
    else:
        _bind_fused(rng, s[b], s[b].op.axis)

    def reference(x):
        x = x.astype("float32")
        y = x > 0.25 if kind == "bool" else np.abs(x * np.float32(16)).astype(kind)
        y = y.astype("float64")
        return y[:, ::-1] + y * 2

    return Case(f"narrow {kind} {n}x{m} {where}", s, [a, c], reference)


def _nest(rng):
    """Shared memory computed from shared memory, at other loops; threads that fill one of them."""
    n, m = _size(rng, 24), int(rng.integers(4, 30))
    a = te.placeholder((n, m + 4), name="A")
    b = te.compute((n, m + 4), lambda i, j: a[i, j] * 0.5, name="B")
    c = te.compute((n, m + 2), lambda i, j: b[i, j] + b[i, j + 2], name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] * c[i, j + 2] - b[i, j + 1], name="D")
    s = te.create_schedule(d.op)
    i, j = s[d].op.axis
    block, i = s[d].split(i, factor=_pick(rng, 2, 3, 4))
    tiles, j = s[d].split(j, factor=_pick(rng, 4, 6, 10))
    s[d].reorder(block, tiles, i, j)
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    across = rng.random() < 0.5
    s[d].bind(block, _axis("blockIdx.y"))
    if across:
        s[d].bind(tiles, _axis("blockIdx.x"))
    s[d].bind(i, bound[0])
    s[d].bind(j, bound[1])
    for stage in (c, b):
        s[stage].set_scope("shared")
    s[c].compute_at(s[d], tiles)
    s[b].compute_at(s[d], _pick(rng, block, tiles))
    _fill(rng, s[c], bound)
    _fill(rng, s[b], bound)

    def reference(x):
        y = x * 0.5
        z = y[:, :-2] + y[:, 2:]
        return z[:, :-2] * z[:, 2:] - y[:, 1:-3]

    return Case(f"nest {n}x{m} {'blocks' if across else 'loop'}", s, [a, d], reference)


def _columns(rng):
    """Sums of columns across two axes of threads, with a condition on what is summed."""
    n, m = int(rng.integers(2, 60)), _size(rng, 10)
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, n), name="k")
    keep = int(rng.integers(1, n + 1))
    b = te.compute((m,), lambda j: te.sum(a[k, j], where=k < keep, axis=k), name="B")
    c = te.compute((m,), lambda j: b[j] / 4 + b[m - 1 - j], name="C")
    s = te.create_schedule(c.op)
    (j,) = s[c].op.axis
    block, j = s[c].split(j, nparts=1)
    s[c].bind(block, _axis("blockIdx.x"))
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    _, lane = s[c].split(j, factor=_pick(rng, 2, 4))
    s[c].bind(lane, bound[1])
    s[b].set_scope("shared")
    s[b].compute_at(s[c], block)
    outer, inner = s[b].split(s[b].op.reduce_axis[0], factor=_pick(rng, 2, 3, 4))
    s[b].bind(inner, bound[0])
    if rng.random() < 0.5:
        _, other = s[b].split(outer, factor=_pick(rng, 2, 4))
        s[b].bind(other, bound[1])

    def reference(x):
        y = x[:keep].sum(0)
        return y / 4 + y[::-1]

    return Case(f"columns {n}x{m} to {keep}", s, [a, c], reference)


def _pair(rng):
    """Two results of one stage, read by another stage at a block or in its own kernel."""
    n, m = _size(rng, 20), _size(rng, 20)
    a = te.placeholder((n, m), name="A")
    low, high = te.compute(
        (n, m), lambda i, j: (te.min(a[i, j], 0.5), te.max(a[n - 1 - i, j], -0.5)), name="two"
    )
    c = te.compute((n, m), lambda i, j: low[i, m - 1 - j] * high[i, j], name="C")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    block, row = s[c].split(i, factor=_pick(rng, 2, 3))
    _, lane = s[c].split(j, factor=_pick(rng, 4, 7))
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    s[c].bind(block, _axis("blockIdx.x"))
    s[c].bind(row, bound[0])
    s[c].bind(lane, bound[1])
    if rng.random() < 0.6:
        s[low.op].set_scope("shared")
        s[low.op].compute_at(s[c], block)
        _fill(rng, s[low.op], bound)
    else:
        _bind_fused(rng, s[low.op], s[low.op].op.axis)

    def reference(x):
        return np.minimum(x, 0.5)[:, ::-1] * np.maximum(x[::-1], -0.5)

    return Case(f"pair {n}x{m}", s, [a, c], reference)


def _inner(rng):
    """Reductions across threads inside loops over the same threads, or over others."""
    n, m = _size(rng, 12), int(rng.integers(2, 50))
    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
    gaps = te.compute((n, m), lambda i, j: top[i] - a[i, j], name="gaps")
    total = te.compute((n,), lambda i: te.sum(gaps[i, r], axis=r), name="total")
    out = te.compute((n, m), lambda i, j: gaps[i, j] + total[i] * top[i], name="out")
    s = te.create_schedule(out.op)
    i, j = s[out].op.axis
    block, row = s[out].split(i, factor=_pick(rng, 1, 2, 3))
    step, lane = s[out].split(j, factor=_pick(rng, 4, 8))
    s[out].reorder(block, row, lane, step)
    bound = [_axis("threadIdx.y"), _axis("threadIdx.x")]
    s[out].bind(block, _axis("blockIdx.x"))
    s[out].bind(row, bound[0])
    s[out].bind(lane, bound[1])
    levels = [_pick(rng, "block", "row", "lane") for _ in range(2)]
    loops = {"block": block, "row": row, "lane": lane}
    s[gaps].compute_inline()
    if list(loops).index(levels[0]) > list(loops).index(levels[1]):
        levels.reverse()  # the sum reads the maximum
    for tensor, level in zip((top, total), levels, strict=True):
        s[tensor].set_scope("shared")
        s[tensor].compute_at(s[out], loops[level])
        if rng.random() < 0.8:
            _, inner = s[tensor].split(s[tensor].op.reduce_axis[0], factor=_pick(rng, 2, 5, 8))
            s[tensor].bind(inner, bound[1])
        if rng.random() < 0.3:
            _, inner = s[tensor].split(s[tensor].op.axis[0], factor=_pick(rng, 1, 2))
            s[tensor].bind(inner, bound[0])

    def reference(x):
        most = x.max(1, keepdims=True)
        return most - x + (most - x).sum(1, keepdims=True) * most

    return Case(f"inner {n}x{m} {levels}", s, [a, out], reference)
