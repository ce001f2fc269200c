"""Layers and small networks on the GPUs that this machine has, beside peers on the same driver.

Run ``python -m benchmarks gpu [--device opencl] [--only NAME] [--rounds N] [--json FILE]``.

For each device of OpenCL, Vulkan and CUDA: kernels launched, bytes that they read and write, and
the time of a run from the call to the result being there, contestants in turns, in an order that
is drawn for each round, the median over the rounds.  (Of Slipway, what the kernels of one fused
function hand to each other is not among the bytes.)  On OpenCL the peer is tinygrad (``pip install
tinygrad``), on Vulkan IREE (``pip install iree-base-compiler iree-base-runtime onnx``) and ONNX
Runtime's WebGPU provider (see `benchmarks.gpu.onnxruntime_webgpu`), on CUDA ``torch.compile`` where
torch has a GPU.  The wheel of apache-tvm 0.27 has neither OpenCL nor Vulkan.
Results are held against NumPy first: a peer's that are off by more than 1e-4 are said to be, ours
end the run.  A device that is not there is said so.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slipway as tvm
from benchmarks.gpu.iree import iree_on
from benchmarks.gpu.onnxruntime_webgpu import onnxruntime_on
from slipway import relay
from slipway.contrib import graph_executor

DEVICES = ("opencl", "vulkan", "cuda")
# What kernels are compiled for, by a word of the device's name; else its kind, as it is.
TAGS = {"pthread-": "pocl/cpu", "llvmpipe": "mesa/lavapipe", "SwiftShader": "google/swiftshader"}


@dataclass
class Built:
    """A contestant that is ready: `run` gives the result as an array."""

    name: str
    run: Any
    kernels: int = 0
    moved_bytes: int = 0


class Case:
    """A function of arrays, written once for every framework.

    `x` is the input and `w` are the weights; `ops` has the framework's own functions.
    """

    def __init__(self, name, shapes, body):
        rng = np.random.default_rng(0)
        self.name, self.body = name, body
        self.arrays = [rng.normal(size=shape).astype("float32") * 0.1 for shape in shapes]

    def relay(self):
        """Return the module, and the weights by name."""
        given = [relay.var(f"a{i}", shape=a.shape) for i, a in enumerate(self.arrays)]
        body = self.body(RelayOps, *given)
        params = {f"a{i}": a for i, a in enumerate(self.arrays) if i}
        return tvm.IRModule.from_expr(relay.Function(given, body)), params


class RelayOps:
    """relay's functions under the names that cases use."""

    relu, add = staticmethod(relay.nn.relu), staticmethod(relay.add)

    @staticmethod
    def conv(x, w, groups=1):
        return relay.nn.conv2d(
            x, w, padding=(1, 1), channels=w.type_annotation.shape[0],
            kernel_size=tuple(w.type_annotation.shape[2:]), groups=groups,
        )  # fmt: skip

    @staticmethod
    def dense(x, w):
        return relay.nn.dense(x, w)

    @staticmethod
    def softmax(x):
        return relay.nn.softmax(x, axis=-1)

    @staticmethod
    def mean(x):
        return relay.mean(x, axis=(2, 3))


class TorchOps:
    """torch's functions under the same names."""

    @staticmethod
    def conv(x, w, groups=1):
        import torch

        return torch.nn.functional.conv2d(x, w, padding=1, groups=groups)

    @staticmethod
    def dense(x, w):
        return x @ w.T

    @staticmethod
    def relu(x):
        return x.relu()

    @staticmethod
    def add(x, y):
        return x + y

    @staticmethod
    def softmax(x):
        return x.softmax(-1)

    @staticmethod
    def mean(x):
        return x.mean((2, 3))


class TinygradOps(TorchOps):
    """tinygrad's, which differ in one."""

    @staticmethod
    def conv(x, w, groups=1):
        return x.conv2d(w, padding=1, groups=groups)


class NumpyOps(TorchOps):
    """The reference."""

    @staticmethod
    def conv(x, w, groups=1):
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w.shape[2:], axis=(2, 3)
        )
        if groups == 1:
            return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)
        return np.einsum("nchwij,cij->nchw", windows, w[:, 0])

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)

    @staticmethod
    def softmax(x):
        raised = np.exp(x - x.max(-1, keepdims=True))
        return raised / raised.sum(-1, keepdims=True)


def network(ops, x, first, deep, point, last):
    """Two convolutions, a depthwise one, a mean and a dense layer."""
    y = ops.relu(ops.conv(x, first))
    y = ops.relu(ops.conv(y, deep, groups=16))
    y = ops.add(y, ops.conv(y, point))
    return ops.softmax(ops.dense(ops.mean(y), last))


CASES = (
    Case("dense 256x256x256", [(256, 256), (256, 256)], lambda o, x, w: o.dense(x, w)),
    Case("conv 32x28x28 3x3", [(1, 32, 28, 28), (32, 32, 3, 3)], lambda o, x, w: o.conv(x, w)),
    Case("depthwise 64x28x28 3x3", [(1, 64, 28, 28), (64, 1, 3, 3)],
         lambda o, x, w: o.relu(o.conv(x, w, groups=64))),
    Case("softmax 64x1000", [(64, 1000)], lambda o, x: o.softmax(x)),
    Case("mlp 32x256", [(32, 256), (256, 256), (256, 256), (10, 256)],
         lambda o, x, a, b, c: o.dense(o.relu(o.dense(o.relu(o.dense(x, a)), b)), c)),
    Case("network", [(1, 3, 32, 32), (16, 3, 3, 3), (16, 1, 3, 3), (16, 16, 3, 3), (10, 16)],
         network),
)  # fmt: skip


def bytes_of(types):
    """Return the bytes of tensors of these types."""
    return sum(4 * int(np.prod(t.shape)) for t in types)


def slipway_on(case, kind):
    """Compile a case for a kind of device."""
    mod, params = case.relay()
    name = tvm.device(kind, 0).device_name
    usual = "cuda -arch=sm_80" if kind == "cuda" else kind
    target = next((tag for word, tag in TAGS.items() if word in name), usual)
    lib = relay.build(mod, tvm.target.Target(target, host="llvm"), params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.device(kind, 0)))
    module.set_input("a0", case.arrays[0])
    calls = [node for node in lib.graph.nodes if node.function in lib.graph.kernels]
    kernels = [kernel.name for kernel in lib.compiled.device.kernels]
    launched = sum(k.startswith(f"{call.function}_kernel") for call in calls for k in kernels)
    moved = sum(
        bytes_of(node.types) + bytes_of(lib.graph.type_of(ref) for ref in node.inputs)
        for node in calls
    )

    def run():
        module.run()
        return module.get_output(0).numpy()

    return Built("slipway", run, launched, moved)


def tinygrad_on(case):
    """Return tinygrad on OpenCL, compiled by its TinyJit; None where it is not installed."""
    try:
        from tinygrad import Tensor, TinyJit
        from tinygrad.helpers import GlobalCounters
    except ImportError:
        return None
    given = [Tensor(a, device="CL").realize() for a in case.arrays]
    jitted = TinyJit(lambda x: case.body(TinygradOps, x, *given[1:]).realize())
    for _ in range(3):
        result = jitted(given[0])
    GlobalCounters.reset()
    result = jitted(given[0])
    counted = GlobalCounters.kernel_count, GlobalCounters.global_mem

    def run():
        return jitted(given[0]).numpy()

    assert result.shape
    return Built("tinygrad", run, *counted)


def torch_on(case):
    """Return torch.compile on CUDA; None where torch has no GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    given = [torch.from_numpy(a).cuda() for a in case.arrays]
    compiled = torch.compile(lambda *arrays: case.body(TorchOps, *arrays))
    return Built("torch.compile", lambda: compiled(*given).cpu().numpy())


def iree_on_vulkan(case):
    """Return IREE on Vulkan; None where it is not installed.  It does not tell of bytes."""
    found = iree_on(case)
    return None if found is None else Built("iree", *found)


def onnxruntime_on_vulkan(case):
    """Return ONNX Runtime through WebGPU; None where it is not installed, or refuses the driver."""
    found = onnxruntime_on(case)
    return None if found is None else Built("onnxruntime", *found)


PEERS = {
    "opencl": [tinygrad_on],
    "vulkan": [iree_on_vulkan, onnxruntime_on_vulkan],
    "cuda": [torch_on],
}


def measure(contestants, rounds):
    """Return each contestant's median time in ms of this process, and by the clock, in turns.

    The order of a round is drawn: who comes behind a contestant that fills the caches pays for it.
    """
    times = {c.name: ([], []) for c in contestants}
    draw = random.Random(0)
    for number in range(rounds + 1):
        for contestant in draw.sample(contestants, len(contestants)):
            busy, clock = time.process_time(), time.perf_counter()
            contestant.run()
            if number:
                times[contestant.name][0].append(1e3 * (time.process_time() - busy))
                times[contestant.name][1].append(1e3 * (time.perf_counter() - clock))
    return {name: tuple(map(statistics.median, pair)) for name, pair in times.items()}


def run_case(case, kind, rounds):
    """Build the contestants of a case, check and measure them; return rows of the table."""
    expected = case.body(NumpyOps, *case.arrays)
    made = [slipway_on(case, kind), *(peer(case) for peer in PEERS[kind])]
    contestants = [c for c in made if c is not None]
    for contestant in contestants:
        error = float(np.abs(contestant.run() - expected).max() / np.abs(expected).max())
        if error > 1e-4:
            said = f"{contestant.name} is wrong on {case.name}: {error:.2g}"
            if contestant.name == "slipway":
                raise SystemExit(said)
            print(f"  {said} of the largest element")
    times = measure(contestants, rounds)
    return [
        {
            "device": kind, "case": case.name, "name": c.name, "kernels": c.kernels,
            "moved_kb": round(c.moved_bytes / 1024), "busy_ms": round(times[c.name][0], 3),
            "clock_ms": round(times[c.name][1], 3),
        }
        for c in contestants
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=DEVICES, action="append", help="only these")
    parser.add_argument("--only", default="", help="the cases whose name holds this word")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="write the figures to this file too")
    args = parser.parse_args()
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", "1")
    rows = []
    for kind in args.device or DEVICES:
        device = tvm.device(kind, 0)
        if not device.exist:
            print(f"{kind}: no device")
            continue
        print(f"{kind}: {device.device_name}")
        head = f"  {'case':26} {'':14} {'kernels':>7} {'KB':>8} {'busy ms':>9} {'clock ms':>9}"
        print(head, flush=True)
        for case in CASES:
            if args.only not in case.name:
                continue
            for row in run_case(case, kind, args.rounds):
                rows.append(row)
                print(
                    f"  {row['case']:26} {row['name']:14} {row['kernels'] or '-':>7} "
                    f"{row['moved_kb'] or '-':>8} {row['busy_ms']:>9} {row['clock_ms']:>9}",
                    flush=True,
                )
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
