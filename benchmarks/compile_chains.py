"""How compile time grows with the length of a model: chains of each kind of layer, wide operators.

    python -m benchmarks compile_chains [KIND ...] [--layers 25 50 100 200 400 800] [--stages]

Processor time in milliseconds a layer, from the relay module to its object, of this process and of
those that hold LLVM ("llvm" with --stages), with no kernel cache; every layer's kernels are the
same, so that what grows is what the compiler does for each layer.  Of wide operators ("parts" to
"stacked") the layers are the tensors that they make or take.  A flat or falling row is a compile
time linear in the model.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from slipway import relay
from slipway.backends.backend import compile_target
from slipway.codegen.llvm import workers
from slipway.compiler.graph import plan_storage
from slipway.compiler.kernels import compile_kernels
from slipway.compiler.relay_build import kernel_graph
from slipway.ir.function import IRModule
from slipway.transform.context import PassContext

IMAGE = (1, 8, 6, 6)
ROWS = (4, 16)
HEADS = (2, 6, 8)


def weights(*shape):
    """A constant of its own for each layer, as a model's weights are."""
    return relay.const((np.arange(np.prod(shape)).reshape(shape) % 7 * 0.1 - 0.3).astype("float32"))


def conv(x, number):
    return relay.nn.relu(relay.nn.conv2d(x, weights(8, 8, 3, 3), padding=1))


def dense(x, number):
    return relay.nn.relu(relay.nn.dense(x, weights(16, 16)))


def elementwise(x, number):
    return relay.tanh(x * relay.sigmoid(x))


def concat(x, number):
    """DenseNet's layer: a few channels more for all that follows, out of a window of the last."""
    last = relay.strided_slice(
        x, [max(0, x.tensor_type.shape[1] - 16)], [x.tensor_type.shape[1]], axes=[1]
    )
    made = relay.nn.conv2d(
        relay.nn.relu(last), weights(2, last.tensor_type.shape[1], 3, 3), padding=1
    )
    return relay.concatenate([x, made], 1)


def join(x, number):
    parts = [x, relay.negative(x), relay.exp(relay.negative(relay.abs(x)))]
    return relay.nn.avg_pool2d(
        relay.nn.conv2d(relay.concatenate(parts, 1), weights(8, 24, 1, 1)), 1
    )


def split(x, number):
    one, two = relay.split(x, 2, axis=1)
    return relay.concatenate([two, relay.nn.relu(relay.nn.conv2d(one, weights(4, 4, 1, 1)))], 1)


def residual(x, number):
    return x + relay.nn.conv2d(relay.nn.relu(x), weights(8, 8, 3, 3), padding=1)


def reshape(x, number):
    y = relay.reshape(relay.transpose(x, (1, 0)), ROWS)
    return relay.nn.dense(relay.reshape(relay.reshape(y, (2, 2, 16)), ROWS), weights(16, 16))


def reduce(x, number):
    return x - relay.mean(x, axis=1, keepdims=True)


def norm(x, number):
    return relay.nn.layer_norm(x, weights(16), weights(16)) + x


def attention(x, number):
    scores = relay.nn.softmax(relay.nn.batch_matmul(x, x) * relay.const(0.3), axis=-1)
    return relay.nn.batch_matmul(scores, x, transpose_b=False)


def recurrent(x, number):
    """A step of an unrolled recurrent layer: all steps' results are joined at the end."""
    gate = relay.sigmoid(relay.nn.dense(x, weights(16, 16)))
    return gate * relay.tanh(relay.nn.dense(x, weights(16, 16)))


def kept(x, number):
    """What a sum behind the last layer reads, too."""
    return relay.tanh(x)


def mixed(x, number):
    return (conv, residual, split, join)[number % 4](x, number)


def parts(count):
    """Cut a tensor into `count`."""
    x = relay.var("x", shape=(4, 3 * count))
    return relay.Function([x], relay.split(x, count, axis=1).astuple())


def fields(count):
    """Cut a tensor into `count`, and compute something of each part."""
    x = relay.var("x", shape=(4, 3 * count))
    cut = relay.split(x, count, axis=1)
    return relay.Function([x], relay.Tuple([relay.exp(cut[n]) for n in range(count)]))


def joined(count):
    """Put `count` tensors one after the other, in rows of which each is a short stretch."""
    given = [relay.var(f"x{n}", shape=(4, 3)) for n in range(count)]
    return relay.Function(given, relay.concatenate(given, 1))


def stacked(count):
    """Put `count` tensors beside each other, element by element."""
    given = [relay.var(f"x{n}", shape=(4, 3)) for n in range(count)]
    return relay.Function(given, relay.stack(given, -1))


WIDE = {"parts": parts, "fields": fields, "joined": joined, "stacked": stacked}

KINDS = {
    "conv": (conv, IMAGE), "dense": (dense, ROWS), "elementwise": (elementwise, IMAGE),
    "concat": (concat, IMAGE), "join": (join, IMAGE), "split": (split, IMAGE),
    "residual": (residual, IMAGE), "reshape": (reshape, ROWS), "reduce": (reduce, ROWS),
    "norm": (norm, ROWS), "attention": (attention, HEADS), "recurrent": (recurrent, ROWS),
    "mixed": (mixed, IMAGE), "kept": (kept, ROWS),
}  # fmt: skip


def chain(kind, layers):
    """Return a module of `layers` layers, one after the other."""
    if kind in WIDE:
        return IRModule.from_expr(WIDE[kind](layers))
    layer, shape = KINDS[kind]
    x = given = relay.var("x", shape=shape)
    steps = []
    for number in range(layers):
        x = layer(x, number)
        steps.append(x)
    if kind == "recurrent":
        x = relay.stack(steps, 0)
    if kind == "kept":
        for step in steps[:-1]:
            x = x + step
    return IRModule.from_expr(relay.Function([given], x))


def llvm_seconds():
    """Return the processor time of the processes that hold LLVM, so far."""
    ticks = 0
    for worker in workers._pool.all:
        words = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def stages(kind, layers):
    """Compile a chain; return the seconds of each stage."""
    marks, before = [time.process_time()], llvm_seconds()
    module = chain(kind, layers)
    marks.append(time.process_time())
    target = compile_target("llvm")
    with PassContext(opt_level=3):
        graph = kernel_graph(module, target)
        marks.append(time.process_time())
        plan_storage(graph)
        marks.append(time.process_time())
        compile_kernels(graph, target).object_bytes()
    marks.append(time.process_time())
    names = ("module", "graph", "memory", "kernels")
    spent = {n: b - a for n, a, b in zip(names, marks, marks[1:], strict=False)}
    return spent | {"llvm": max(0.0, llvm_seconds() - before)}


def main():
    """Print a row for each kind: milliseconds a layer for each length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join([*KINDS, *WIDE]))
    parser.add_argument("--layers", type=int, nargs="+", default=[25, 50, 100, 200, 400, 800])
    parser.add_argument("--stages", action="store_true", help="a row for each stage")
    options = parser.parse_args()
    os.environ["SLIPWAY_KERNEL_CACHE"] = "0"
    stages("conv", 2)  # what is loaded on first use is no part of a model
    print("| chain | " + " | ".join(map(str, options.layers)) + " |")
    print("| --- |" + " ---: |" * len(options.layers))
    for kind in options.kinds or [*KINDS, *WIDE]:
        runs = [stages(kind, layers) for layers in options.layers]
        counted = list(zip(runs, options.layers, strict=True))
        rows = {kind: [sum(run.values()) / n for run, n in counted]}
        if options.stages:
            rows |= {f"{kind}: {s}": [run[s] / n for run, n in counted] for s in runs[0]}
        for name, times in rows.items():
            print(f"| {name} | " + " | ".join(f"{t * 1e3:.1f}" for t in times) + " |", flush=True)


if __name__ == "__main__":
    main()
