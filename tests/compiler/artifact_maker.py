"""Write artifacts of several kinds into a folder, on a machine that says it has N processors.

    python artifact_maker.py FOLDER PROCESSORS forwards|backwards

A process of its own: the seed of hashes, the working folder and the caches are its caller's choice.
"""

import os
import sys
from functools import partial
from pathlib import Path

FOLDER, PROCESSORS, ORDER = Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3]
os.cpu_count = os.process_cpu_count = lambda: PROCESSORS
os.sched_getaffinity = lambda pid: set(range(PROCESSORS))

import numpy as np  # noqa: E402
from aot_models import build, keyword_net, quantized_net, weight  # noqa: E402

import slipway as tvm  # noqa: E402
from slipway import micro, relay, te  # noqa: E402

NATIVE = {
    "host": "llvm",
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
}


def vision_net():
    """Kernels whose work is cut for cores: convolutions, pools, attention, products, sums."""
    rng = np.random.default_rng(0)
    x = relay.var("data", shape=(1, 3, 58, 58), dtype="float32")

    def conv(x, out, into, size, **more):
        kernel = relay.const(weight(rng, out, into, size, size))
        return relay.nn.relu(
            relay.nn.conv2d(x, kernel, channels=out, kernel_size=(size, size), **more)
        )

    x = conv(x, 16, 3, 3, padding=(1, 1))
    x = conv(x, 16, 1, 3, padding=(1, 1), groups=16)
    x = conv(x, 32, 16, 1)
    x = conv(x, 32, 32, 3, padding=(1, 1))
    x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    x = relay.reshape(x, (1, 32, 841))
    scores = relay.nn.softmax(relay.nn.batch_matmul(x, x))
    mixed = relay.nn.batch_matmul(scores, relay.transpose(x, (0, 2, 1)))
    return tvm.IRModule.from_expr(relay.Tuple([mixed, relay.sum(x), relay.sum(x, axis=1)]))


def kernel(target):
    rows = te.placeholder((64, 300), name="rows")
    k = te.reduce_axis((0, 300), name="k")
    sums = te.compute((64,), lambda i: te.sum(rows[i, k], axis=k), name="sums")
    schedule = te.create_schedule(sums.op)
    schedule[sums].parallel(sums.op.axis[0])
    return tvm.build(schedule, [rows, sums], target)


def native(name, target):
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(vision_net(), target=target)
    for ending in ("tar", "so"):
        library.export_library(str(FOLDER / f"{name}.{ending}"))
    (FOLDER / f"{name}.ll").write_text(library.lib.get_source("ll"))
    for ending in ("tar", "so", "o", "a"):
        kernel(target).export_library(str(FOLDER / f"{name}_kernel.{ending}"))


def embedded(name, model, target):
    library = build(model(), target)
    (FOLDER / f"{name}.c").write_text(library.sources.source)
    (FOLDER / f"{name}.h").write_text(library.sources.header)
    micro.export_model_library_format(library, FOLDER / f"{name}.tar")


FOLDER.mkdir(parents=True, exist_ok=True)
jobs = [partial(native, name, target) for name, target in NATIVE.items()]
for name, model in (("keywords", keyword_net), ("quantized", quantized_net)):
    for label, target in (("m4", "c -keys=arm_cpu -mcpu=cortex-m4"), ("host", "c")):
        jobs.append(partial(embedded, f"{name}_{label}", model, target))
for job in jobs if ORDER == "forwards" else reversed(jobs):
    job()
(FOLDER / "kernel.c").write_text(kernel("c").get_source("c"))
