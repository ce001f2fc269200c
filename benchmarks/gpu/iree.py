"""A case of `benchmarks.gpu` by IREE on Vulkan: through ONNX, its own importer and compiler."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


class OnnxOps:
    """Adds nodes to a graph; tensors are their names, their shapes are known to the graph."""

    def __init__(self):
        from onnx import helper

        self.make, self.nodes, self.shapes, self.constants = helper.make_node, [], {}, {}

    def _node(self, op, inputs, shape, **attrs):
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.make(op, inputs, [name], **attrs))
        self.shapes[name] = shape
        return name

    def conv(self, x, w, groups=1):
        n, _, height, width = self.shapes[x]
        shape = (n, self.shapes[w][0], height, width)
        return self._node("Conv", [x, w], shape, pads=[1, 1, 1, 1], group=groups)

    def dense(self, x, w):
        shape = (self.shapes[x][0], self.shapes[w][0])
        return self._node("Gemm", [x, w], shape, transB=1)

    def relu(self, x):
        return self._node("Relu", [x], self.shapes[x])

    def add(self, x, y):
        return self._node("Add", [x, y], self.shapes[x])

    def softmax(self, x):
        return self._node("Softmax", [x], self.shapes[x], axis=-1)

    def mean(self, x):
        pooled = self._node("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1))
        return self._node("Flatten", [pooled], self.shapes[x][:2])


def onnx_model(case):
    """Return a case with its weights as constants."""
    from onnx import TensorProto, helper, numpy_helper

    ops = OnnxOps()
    given = [f"a{number}" for number in range(len(case.arrays))]
    ops.shapes.update((n, a.shape) for n, a in zip(given, case.arrays, strict=True))
    last = case.body(ops, *given)
    weights = [
        numpy_helper.from_array(a, n) for n, a in zip(given[1:], case.arrays[1:], strict=True)
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        ops.nodes, "main",
        [info("a0", TensorProto.FLOAT, case.arrays[0].shape)],
        [info(last, TensorProto.FLOAT, ops.shapes[last])], weights,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def compiled(case):
    """Return IREE's program for Vulkan, and how many kernels a run dispatches."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        onnx.save(onnx_model(case), path / "m.onnx")
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx"]
        subprocess.run([*importer, str(path / "m.onnx"), "-o", str(path / "m.mlir")], check=True)
        from iree.compiler import compile_file

        statistics = path / "statistics.csv"
        program = compile_file(
            str(path / "m.mlir"), extra_args=[
                "--iree-hal-target-device=vulkan",
                "--iree-scheduling-dump-statistics-format=csv",
                f"--iree-scheduling-dump-statistics-file={statistics}",
            ],
        )  # fmt: skip
        lines = statistics.read_text().splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith('"Constants"'))
    names = lines[head].replace('"', "").split(",")
    return program, int(lines[head + 1].split(",")[names.index("Dispatches")])


def iree_on(case):
    """Return a function that runs a case, and its kernels; None where IREE is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("iree", "onnx")):
        return None
    from iree import runtime

    program, kernels = compiled(case)
    config = runtime.Config("vulkan")
    context = runtime.SystemContext(config=config)
    module = runtime.VmModule.copy_buffer(context.instance, program)
    context.add_vm_module(module)
    entry = context.modules[module.name]["main"]
    given = runtime.asdevicearray(config.device, case.arrays[0])
    return (lambda: fetched(config.device, entry(given))), kernels


def fetched(device, result):
    """Return an array of the device by way of memory of the driver.

    IREE 3.13's own ``to_host`` asks lavapipe to import NumPy's memory, not aligned to 4096 bytes.
    """
    from iree import runtime

    source = result._buffer_view.get_buffer()
    usage = runtime.BufferUsage.TRANSFER_TARGET | runtime.BufferUsage.MAPPING_SCOPED
    kind = runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE
    staging = device.allocator.allocate_buffer(
        memory_type=int(kind), allowed_usage=int(usage), allocation_size=source.byte_length()
    )
    done = device.create_semaphore(0)
    fence = runtime.HalFence.create_at
    device.queue_copy(
        source, staging, wait_semaphores=fence(done, 0), signal_semaphores=fence(done, 1)
    )
    fence(done, 1).wait()
    return np.array(staging.map().asarray(list(result.shape), np.dtype("float32")))
