"""One engine with one model in a process of its own; `benchmarks.cpu` talks to it over pipes.

Started as ``python cpu_worker.py ENGINE MODEL.onnx THREADS``.  Prints a line of JSON when ready,
then one for each request: "run N" gives the wall and processor seconds of N runs, "output FILE"
saves the outputs.  Needs nothing but the engine and NumPy, so that it runs in a peer's own
virtual environment.
"""

import json
import os
import sys
import time

import numpy as np


def feeds_of(descriptions):
    """Deterministic inputs: normal floats, small non-negative integers."""
    rng = np.random.default_rng(0)
    feeds = {}
    for name, shape, dtype in sorted(descriptions):
        if "float" in dtype:
            feeds[name] = rng.standard_normal(shape).astype("float32")
        else:
            feeds[name] = rng.integers(0, 100, shape).astype(dtype)
    return feeds


def describe(path):
    """Read names, shapes and dtypes of the model's inputs with the onnx package."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {w.name for w in model.graph.initializer}
    kinds = {1: "float32", 6: "int32", 7: "int64", 9: "bool"}
    return [
        (
            i.name,
            [d.dim_value or 1 for d in i.type.tensor_type.shape.dim],
            kinds[i.type.tensor_type.elem_type],
        )
        for i in model.graph.input
        if i.name not in weights
    ]


def slipway_engine(path, threads, feeds):
    import slipway as tvm
    from slipway import relay
    from slipway.contrib import graph_executor

    tvm.runtime.set_num_threads(threads)
    mod, params = relay.frontend.from_onnx(path)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    model.set_input(**feeds)
    return model.run, lambda: [model.get_output(i).numpy() for i in range(model.get_num_outputs())]


def onnxruntime_engine(path, threads, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return (lambda: session.run(None, feeds)), (lambda: session.run(None, feeds))


def openvino_engine(path, threads, feeds):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(path, "CPU", settings).create_infer_request()
    inputs = {name: openvino.Tensor(value) for name, value in feeds.items()}
    return (lambda: request.infer(inputs)), (
        lambda: [np.array(v) for v in request.infer(inputs).values()]
    )


ENGINES = {
    "slipway": slipway_engine,
    "onnxruntime": onnxruntime_engine,
    "openvino": openvino_engine,
}


def main():
    engine, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what engines print must not mix with the protocol
    try:
        start = time.perf_counter()
        run, outputs = ENGINES[engine](path, threads, feeds_of(describe(path)))
        run()
        ready = {"prepare_s": time.perf_counter() - start}
    except Exception as error:
        ready = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(ready), file=pipe, flush=True)
    for line in sys.stdin:
        word, argument = line.split()
        if word == "run":
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(int(argument)):
                run()
            reply = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        else:
            np.savez(argument, *outputs())
            reply = {}
        print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main()
