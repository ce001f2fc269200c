"""What NVIDIA's assembler says of the kernels that are shipped: registers, spills, shared memory.

Run ``python -m benchmarks gpu_static [--arch sm_80 ...] [--only NAME] [--json FILE]``.

No GPU is needed: ``ptxas`` (``pip install nvidia-cuda-nvcc-cu12``) takes the PTX of each case's
default schedule.  For each kernel of a case the table has the threads of a block, registers of a
thread, bytes spilt, bytes shared by a block (that its code says, and that a launch gives it), the
warps that registers, shared memory and threads
leave room for on a processor of that architecture as part of the most (occupancy), and the number
of its barriers.  Exits with 1 where a kernel spills.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from math import prod
from pathlib import Path

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.backend import kernels_of
from slipway.compiler.kernels import LoweredKernels
from slipway.target import Target

ARCHITECTURES = ("sm_53", "sm_62", "sm_72", "sm_75", "sm_80", "sm_87", "sm_89", "sm_90a", "sm_100")
REGISTERS = 65536  # of a processor
# Threads, shared bytes and blocks of a processor, and the bytes that it keeps for itself of each
# block's: NVIDIA's CUDA C++ Programming Guide, technical specifications by compute capability.
PROCESSORS = {
    "sm_53": (2048, 65536, 32, 0), "sm_62": (2048, 65536, 32, 0), "sm_72": (2048, 98304, 32, 0),
    "sm_75": (1024, 65536, 16, 0), "sm_80": (2048, 167936, 32, 1024),
    "sm_87": (1536, 167936, 16, 1024), "sm_89": (1536, 102400, 24, 1024),
    "sm_90a": (2048, 233472, 32, 1024), "sm_100": (2048, 233472, 32, 1024),
}  # fmt: skip


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def dense(rows, columns, depth, dtype="float32", out="float32"):
    return relay.nn.dense(
        var("x", rows, depth, dtype=dtype), var("w", columns, depth, dtype=dtype), out_dtype=out
    )


def conv(channels, size, made, window, groups=1, **attrs):
    weights = var("w", made, channels // groups, window, window)
    image = var("x", 1, channels, size, size)
    return relay.nn.relu(
        relay.nn.conv2d(image, weights, padding=(window // 2, window // 2), groups=groups, **attrs)
    )


def winograd(channels, size, made):
    weights = np.random.default_rng(0).standard_normal((made, channels, 3, 3)).astype("float32")
    image = var("x", 1, channels, size, size)
    return relay.nn.relu(relay.nn.conv2d(image, relay.const(weights), padding=(1, 1)))


def attention(heads, rows, size):
    q, k, v = (var(name, heads, rows, size) for name in "qkv")
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k) * relay.const(size**-0.5))
    return relay.nn.batch_matmul(scores, v, transpose_b=False)


CASES = {
    "dense 1024x1024x1024": lambda: dense(1024, 1024, 1024),
    "dense 1x1000x1280": lambda: dense(1, 1000, 1280),
    "dense 4096^3 float16": lambda: dense(4096, 4096, 4096, "float16"),
    "dense 4096^3 int8": lambda: dense(4096, 4096, 4096, "int8", "int32"),
    "conv 64x56x56 3x3": lambda: conv(64, 56, 64, 3),
    "Winograd 64x56x56 3x3": lambda: winograd(64, 56, 64),
    "conv 256x14x14 1x1": lambda: conv(256, 14, 1024, 1),
    "conv 3x224x224 7x7 s2": lambda: conv(3, 224, 64, 7, strides=(2, 2)),
    "depthwise 96x28x28 3x3": lambda: conv(96, 28, 96, 3, groups=96),
    "grouped 128x28x28 3x3 /4": lambda: conv(128, 28, 128, 3, groups=4),
    "attention 8x256x64": lambda: attention(8, 256, 64),
    "attention 3x197x64": lambda: attention(3, 197, 64),
    "softmax 64x1000": lambda: relay.nn.softmax(var("x", 64, 1000)),
    "layer norm 128x768": lambda: relay.nn.layer_norm(
        var("x", 128, 768), var("g", 768), var("b", 768)
    ),
}


def assembled(ptx, arch):
    """Return what the assembler says of each kernel: registers, spilt and shared bytes."""
    from nvidia import cuda_nvcc

    tool = next(iter(cuda_nvcc.__path__)) + "/bin/ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.ptx"
        source.write_text(ptx)
        command = [tool, "-v", f"-arch={arch}", str(source), "-o", str(source) + ".cubin"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for part in done.stderr.split("Compiling entry function '")[1:]:
        spilt = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
        shared = re.search(r"(\d+) bytes smem", part)
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        found[part.partition("'")[0]] = registers, spilt, int(shared[1]) if shared else 0
    return found


def launched_bytes(made, target):
    """Return the shared memory that a launch of each kernel gives a block, besides its code's."""
    lowered = LoweredKernels(made.graph, target)
    kernels = [kernel for name in lowered for kernel in kernels_of(lowered[name], target)]
    return {kernel.name: kernel.known_shared_bytes - kernel.shared_bytes for kernel in kernels}


def occupancy(arch, threads, registers, shared):
    """Return the part of a processor's warps that there is room for.

    A warp gets registers by 256, a block shared memory by 256 bytes.
    """
    most_threads, most_shared, most_blocks, kept = PROCESSORS[arch]
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-registers * 32 // 256) * 256 * warps)
    taken = -(-shared // 256) * 256 + kept
    by_shared = most_shared // taken if taken else most_blocks
    blocks = min(by_registers, by_shared, most_threads // (warps * 32), most_blocks)
    return blocks * warps * 32 / most_threads


def rows_of(name, arch):
    """Return a row for each kernel of a case."""
    body = CASES[name]()
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    target = Target(f"cuda -arch={arch}", host="llvm")
    made = relay.build(module, target=target)
    launched = launched_bytes(made, target)
    source = made.lib.imported_modules[0].get_source
    ptx = source("ptx")
    said = assembled(ptx, arch)
    bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}", ptx, re.DOTALL))
    rows = []
    for number, kernel in enumerate(made.compiled.device.kernels):
        registers, spilt, shared = said[kernel.name]
        sides = re.search(r"\.(?:maxntid|reqntid) ([\d, ]+)", bodies[kernel.name])[1]
        threads, given = prod(map(int, sides.split(","))), launched[kernel.name]
        rows.append({
            "case": name, "kernel": number, "arch": arch, "threads": threads,
            "registers": registers, "spilt_bytes": spilt, "shared_bytes": shared,
            "launched_bytes": given,
            "occupancy": round(occupancy(arch, threads, registers, shared + given), 2),
            "barriers": len(re.findall(r"\bbar(?:rier)?\.", bodies[kernel.name])),
        })  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", choices=ARCHITECTURES, action="append", help="only these")
    parser.add_argument("--only", default="", help="the cases whose name holds this word")
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    found = []
    head = (
        "case",
        "kernel",
        "arch",
        "threads",
        "registers",
        "spilt",
        "shared",
        "launched",
        "occupancy",
        "barriers",
    )
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head), flush=True)
    for name in CASES:
        if args.only in name:
            for arch in args.arch or ARCHITECTURES:
                rows = rows_of(name, arch)
                found += rows
                for row in rows:
                    print("| " + " | ".join(map(str, row.values())) + " |", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    spilling = [row for row in found if row["spilt_bytes"]]
    print(f"{len(found)} kernels, {len(spilling)} with spilt registers")
    return int(bool(spilling))


if __name__ == "__main__":
    sys.exit(main())
