"""Random tensor programs with random legal schedules, for the property tests."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from slipway import te, tir


@dataclass
class Program:
    schedule: object
    args: list
    reference: object  # arrays of the inputs -> the output
    log: list


def _unary(draw, x, name):
    kind = draw(st.sampled_from(["add", "mul", "relu", "neg", "shift"]))
    amount = draw(st.integers(1, 3))
    if kind == "add":
        return te.compute(x.shape, lambda *i: x(*i) + float(amount), name), lambda a: a + amount
    if kind == "mul":
        return te.compute(x.shape, lambda *i: x(*i) * float(amount), name), lambda a: a * amount
    if kind == "relu":
        return te.compute(x.shape, lambda *i: te.max(x(*i) - 2.0, 0.0), name), lambda a: np.maximum(
            a - 2, 0
        )
    if kind == "neg":
        return te.compute(x.shape, lambda *i: 1.0 - x(*i), name), lambda a: 1 - a
    # A shift along the last axis, with zeros coming in.
    size = int(x.shape[-1])

    def body(*i):
        return te.if_then_else(i[-1] >= amount, x(*i[:-1], i[-1] - amount), 0.0)

    def shifted(a):
        out = np.zeros_like(a)
        if amount < size:
            out[..., amount:] = a[..., :-amount]
        return out

    return te.compute(x.shape, body, name), shifted


def _stencil(draw, x, name):
    size = int(x.shape[-1])
    taps = draw(st.integers(1, min(3, size)))
    shape = (*x.shape[:-1], size - taps + 1)

    def body(*i):
        total = x(*i[:-1], i[-1])
        for t in range(1, taps):
            total = total + x(*i[:-1], i[-1] + t)
        return total

    def reference(a):
        return sum(a[..., t : t + size - taps + 1] for t in range(taps))

    return te.compute(shape, body, name), reference


def _reduction(draw, x, name):
    axis = draw(st.integers(0, x.ndim - 1))
    extent = int(x.shape[axis])
    k = te.reduce_axis((0, extent), "k")
    shape = tuple(s for d, s in enumerate(x.shape) if d != axis)
    kind = draw(st.sampled_from(["sum", "max", "min"]))
    reducer = {"sum": te.sum, "max": te.max, "min": te.min}[kind]

    def body(*i):
        return reducer(x(*i[:axis], k, *i[axis:]), axis=k)

    return te.compute(shape, body, name), lambda a: getattr(a, kind)(axis=axis)


def _matmul(draw, x, name):
    depth, columns = int(x.shape[1]), draw(st.integers(1, 9))
    w = te.placeholder((depth, columns), name=name + "_w")
    k = te.reduce_axis((0, depth), "k")
    out = te.compute(
        (x.shape[0], columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name=name
    )
    return out, w


def _gather(draw, x, name):
    """Elements of the last axis that another stage, a let or a single element names."""
    size = int(x.shape[-1])
    where = te.compute(x.shape, lambda *i: te.abs(x(*i)).astype("int32") % size, f"{name}_where")
    whole, real = te.var("whole", "int32"), te.var("real", "float32")

    def let(*i):
        return tir.Let(whole, where(*i), x(*i[:-1], whole) + x(*i[:-1], size - 1 - whole))

    def real_let(*i):
        inner = x(*i[:-1], te.min(te.max(real.astype("int32"), 0), size - 1))
        return tir.Let(real, te.abs(x(*i)), inner)

    def clamped(a):
        return np.take_along_axis(a, np.minimum(np.abs(a), size - 1).astype(int), -1)

    def at(a):
        return np.abs(a).astype(int) % size

    formulas = {
        "direct": (lambda *i: x(*i[:-1], where(*i)), lambda a: np.take_along_axis(a, at(a), -1)),
        "let": (
            let,
            lambda a: (
                np.take_along_axis(a, at(a), -1) + np.take_along_axis(a, size - 1 - at(a), -1)
            ),
        ),
        "real": (real_let, clamped),
        "element": (
            lambda *i: x(*i[:-1], where(*(0 for _ in i))),
            lambda a: np.repeat(a[..., at(a).flat[0]][..., None], size, -1),
        ),
    }
    body, reference = formulas[draw(st.sampled_from(sorted(formulas)))]
    return te.compute(x.shape, body, name), reference


def _moved(draw, x, name):
    """The elements in another order or shape: reversed, every second, flat, beside themselves."""
    size, shape = int(x.shape[-1]), _shape(x)
    kind = draw(st.sampled_from(["reversed", "strided", "flat", "rows", "twice", "halves"]))
    if kind == "reversed":
        return te.compute(x.shape, lambda *i: x(*i[:-1], size - 1 - i[-1]), name), lambda a: a[
            ..., ::-1
        ]
    if kind == "strided":
        step, first = draw(st.integers(2, 3)), draw(st.integers(0, size - 1))
        count = (size - first + step - 1) // step
        made = te.compute((*x.shape[:-1], count), lambda *i: x(*i[:-1], i[-1] * step + first), name)
        return made, lambda a: a[..., first::step]
    if kind == "flat":
        total = int(np.prod(shape))

        def body(p):
            index = []
            for extent in reversed(shape):
                index.append(p % extent)
                p = p // extent
            return x(*index[::-1])

        return te.compute((total,), body, name), lambda a: a.reshape(-1)
    if kind == "rows" and size % 2 == 0:
        made = te.compute((*x.shape[:-1], size // 2, 2), lambda *i: x(*i[:-2], i[-2] * 2 + i[-1]),
                          name)  # fmt: skip
        return made, lambda a: a.reshape(*a.shape[:-1], -1, 2)
    if kind == "halves":
        first, second = te.compute(x.shape, lambda *i: (x(*i) + 1.0, x(*i) * 2.0), f"{name}_both")
        return te.compute(x.shape, lambda *i: first(*i) - second(*i), name), lambda a: 1 - a

    def beside(*i):
        other = x(*i[:-1], i[-1] - size) * 2.0
        return te.if_then_else(i[-1] < size, x(*i[:-1], i[-1]), other)

    made = te.compute((*x.shape[:-1], 2 * size), beside, name)
    return made, lambda a: np.concatenate([a, a * 2], -1)


def _shape(tensor):
    return tuple(int(s) for s in tensor.shape)


def _sum_of(x, y, name):
    return te.compute(x.shape, lambda *i: x(*i) + y(*i), name)


def _transpose(x, name):
    return te.compute(x.shape[::-1], lambda *i: x(*i[::-1]), name), lambda a: a.T


@st.composite
def programs(draw):
    """Up to four stages over one or two inputs, then schedule primitives on each stage."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(ndim))
    source = te.placeholder(shape, name="X")
    inputs, stages, steps, log = [source], [], [], []
    current = source
    for number in range(draw(st.integers(1, 4))):
        name = f"T{number}"
        kinds = ["unary", "unary", "stencil", "transpose", "gather", "moved"]
        if current.ndim > 1:
            kinds.append("reduction")
        if current.ndim == 2:
            kinds.append("matmul")
        same = [n for n, t in enumerate(stages[:-1]) if _shape(t) == _shape(current)]
        if same:
            kinds += ["binary", "binary"]
        kind = draw(st.sampled_from(kinds))
        log.append(kind)
        if kind == "unary":
            current, reference = _unary(draw, current, name)
        elif kind == "stencil":
            current, reference = _stencil(draw, current, name)
        elif kind == "gather":
            current, reference = _gather(draw, current, name)
        elif kind == "moved":
            current, reference = _moved(draw, current, name)
        elif kind == "transpose":
            current, reference = _transpose(current, name)
        elif kind == "reduction":
            current, reference = _reduction(draw, current, name)
        elif kind == "binary":
            other = draw(st.sampled_from(same))
            current = _sum_of(current, stages[other], name)
            reference = ("add", other)
        else:
            current, weight = _matmul(draw, current, name)
            inputs.append(weight)
            reference = len(inputs) - 1
        stages.append(current)
        steps.append(reference)

    def run_reference(*arrays):
        value, values = arrays[0], []
        for step in steps:
            if isinstance(step, tuple):
                value = value + values[step[1]]
            else:
                value = value @ arrays[step] if isinstance(step, int) else step(value)
            values.append(value)
        return np.ascontiguousarray(value, dtype="float32")

    s = te.create_schedule(stages[-1].op)
    _schedule(draw, s, stages, log)
    return Program(s, [*inputs, stages[-1]], run_reference, log)


def _schedule(draw, s, stages, log):
    output = stages[-1]
    if draw(st.integers(0, 3)) == 0:
        log.append("cache_write")
        s.cache_write(output, "local")
    if draw(st.integers(0, 3)) == 0:
        tensor = draw(st.sampled_from(stages[:-1] or [output]))
        readers = [x for x in s.stages if s[tensor].op.output(0) in x.op.input_tensors]
        if readers:
            log.append(f"cache_read {tensor.name}")
            s.cache_read(tensor, "local", [draw(st.sampled_from(readers)).op])
    if draw(st.integers(0, 3)) == 0:
        _rfactor(draw, s, log)
    # From the output up, so that consumers have their loops before producers attach to them.
    for stage in reversed(list(s.stages)):
        if isinstance(stage.op, te.PlaceholderOp):
            continue
        if not stage.is_output:
            _place(draw, s, stage, log)
        if stage.attach_type != "inline":
            _loops(draw, stage, log)
            if stage.op.axis and not stage.is_output and draw(st.integers(0, 7)) == 0:
                stage.storage_align(draw(st.sampled_from(list(stage.op.axis))), 8, 3)
                log.append(f"{stage.name} storage_align")


def _rfactor(draw, s, log):
    reducing = [x for x in s.stages if x.op.reduce_axis]
    if not reducing:
        return
    stage = draw(st.sampled_from(reducing))
    k = stage.op.reduce_axis[0]
    outer, inner = stage.split(k, factor=draw(st.integers(1, 4)))
    log.append(f"{stage.name} rfactor")
    s.rfactor(stage.op.output(0), draw(st.sampled_from([outer, inner])), draw(st.integers(-1, 0)))


def _readers(s, stage):
    """The stages that read this one, looking through inlined ones."""
    found = []
    for other in s.stages:
        if any(t.op is stage.op for t in other.op.input_tensors):
            found += _readers(s, other) if other.attach_type == "inline" else [other]
    return found


def _place(draw, s, stage, log):
    where = draw(st.sampled_from(["root", "inline", "at", "at"]))
    if where == "inline" and not stage.op.reduce_axis:
        log.append(f"{stage.name} inline")
        stage.compute_inline()
    elif where == "at":
        readers = list(dict.fromkeys(_readers(s, stage)))
        # With several readers only loops around all of them will do: try the reader that is an
        # output only when it is the only one.
        if len(readers) == 1 and readers[0].leaf_iter_vars:
            axis = draw(st.sampled_from(readers[0].leaf_iter_vars))
            log.append(f"{stage.name} at {readers[0].name}.{axis.name}")
            stage.compute_at(readers[0], axis)
            if draw(st.integers(0, 5)) == 0:
                log.append(f"{stage.name} double_buffer")
                stage.double_buffer()


def _loops(draw, stage, log):
    for _ in range(draw(st.integers(0, 4))):
        leaves = list(stage.leaf_iter_vars)
        if not leaves:
            return
        axis = draw(st.sampled_from(leaves))
        what = draw(
            st.sampled_from(
                ["split", "nparts", "fuse", "reorder", "unroll", "vectorize", "parallel"]
            )
        )
        log.append(f"{stage.name}.{axis.name} {what}")
        if what == "split":
            tails = ["guard"] if stage.op.reduce_axis else ["guard", "shift"]
            stage.split(axis, draw(st.integers(1, 5)), tail=draw(st.sampled_from(tails)))
        elif what == "nparts":
            stage.split(axis, nparts=draw(st.integers(1, 5)))
        elif what == "fuse":
            index = leaves.index(axis)
            if index + 1 < len(leaves) and leaves[index + 1].kind == axis.kind:
                stage.fuse(axis, leaves[index + 1])
        elif what == "reorder":
            stage.reorder(*draw(st.permutations(leaves)))
        elif what == "unroll":
            stage.unroll(axis)
        elif what == "vectorize" and axis.kind == "data" and axis is leaves[-1]:
            stage.vectorize(axis)
        elif (
            what == "parallel"
            and axis.kind == "data"
            and axis is leaves[0]
            and stage.attach_type == "root"
        ):
            stage.parallel(axis)
