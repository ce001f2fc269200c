"""Running a model here, and in LiteRT's reference kernels as the peer."""

import numpy as np
import pytest
from benchmarks._litert import without_bias_axes

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor


def pseudo_random(seed, count):
    """The bytes of golden_tflm.json: a linear congruential generator's top bytes."""
    out = bytearray()
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(seed >> 24)
    return np.frombuffer(bytes(out), np.int8)


def compiled(model, target="llvm", **options):
    """Import and build a model; return its executor."""
    mod, params = relay.frontend.from_tflite(model, **options)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)
    return graph_executor.GraphModule(lib["default"](tvm.cpu(0)))


def outputs(executor, inputs):
    """Run with positional inputs and return all outputs."""
    for index, value in enumerate(inputs):
        executor.set_input(index, value)
    executor.run()
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


class Peer:
    """LiteRT's interpreter with the reference kernels."""

    def __init__(self, data, reference=True, allocate=True):
        interpreter = pytest.importorskip("ai_edge_litert.interpreter")
        kinds = interpreter.OpResolverType
        try:
            self.run_time = interpreter.Interpreter(
                model_content=without_bias_axes(data),
                experimental_op_resolver_type=(
                    kinds.BUILTIN_REF if reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
                ),
            )
        except ValueError:  # the reference kernels lack some operators
            self.run_time = interpreter.Interpreter(
                model_content=without_bias_axes(data),
                experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
        if allocate:  # else its inputs are given other sizes first
            self.run_time.allocate_tensors()
        self.inputs = self.run_time.get_input_details()
        self.outputs = self.run_time.get_output_details()

    def random_inputs(self, rng):
        """Return one array for each input: the whole range of integers, or normal numbers."""
        made = []
        for detail in self.inputs:
            kind = np.dtype(detail["dtype"])
            if kind == np.bool_:
                made.append(rng.integers(0, 2, detail["shape"]).astype(kind))
            elif kind.kind in "iu":
                info = np.iinfo(kind if kind.itemsize <= 2 else np.int8)
                values = rng.integers(info.min, info.max, detail["shape"], endpoint=True)
                made.append(values.astype(kind))
            else:
                made.append(rng.standard_normal(detail["shape"]).astype(kind))
        return made

    def __call__(self, inputs):
        for detail, value in zip(self.inputs, inputs, strict=True):
            self.run_time.set_tensor(detail["index"], value)
        self.run_time.invoke()
        return [self.run_time.get_tensor(d["index"]) for d in self.outputs]
