"""One engine with one model in a process of its own; `benchmarks.cpu` talks to it over pipes.

Started as ``python cpu_worker.py ENGINE MODEL THREADS [TARGET]``; the model is a file of ONNX or
TensorFlow Lite.  Prints a line of JSON when
ready, then one for each request: "run N" gives the wall and processor seconds of N runs, "output
FILE" saves the outputs, "load FILE" puts another model in the place of the first, which is "-" for
none.  Needs nothing but the engine and NumPy, so that it runs in a peer's own virtual environment.
"""

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # a peer's interpreter knows no other packages
from benchmarks._litert import without_bias_axes

TARGET = sys.argv[4] if len(sys.argv) > 4 else "llvm"  # what Slipway compiles for


def feeds_of(descriptions):
    """Deterministic inputs: normal floats, small non-negative integers."""
    rng = np.random.default_rng(0)
    feeds = {}
    for name, shape, dtype in sorted(descriptions):
        if "float" in dtype:
            feeds[name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[name] = rng.integers(0, 100, shape).astype(dtype)
    return feeds


def is_tflite(path):
    return str(path).endswith(".tflite")


def in_order(descriptions):
    """Deterministic inputs by position: the readers of one file name its inputs differently."""
    listed = list(descriptions)
    feeds = feeds_of((f"{n:03}", list(shape), kind) for n, (_, shape, kind) in enumerate(listed))
    return dict(zip((name for name, _, _ in listed), feeds.values(), strict=True))


def describe(path):
    """Read names, shapes and dtypes of the model's inputs with the onnx package.

    None of a file of TensorFlow Lite: there each engine asks its own reader.
    """
    if is_tflite(path):
        return []
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {w.name for w in model.graph.initializer}
    kinds = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool"}
    kinds |= {10: "float16", 11: "float64"}
    return [
        (
            i.name,
            [d.dim_value or 1 for d in i.type.tensor_type.shape.dim],
            kinds[i.type.tensor_type.elem_type],
        )
        for i in model.graph.input
        if i.name not in weights
    ]


def one_each(shape):
    """Return a shape of OpenVINO's with 1 for what is open."""
    return [d.get_length() if d.is_static else 1 for d in shape]


def slipway_engine(path, threads, feeds, precision="float32"):
    import slipway as tvm
    from slipway import relay
    from slipway.contrib import graph_executor

    tvm.runtime.set_num_threads(threads)
    if is_tflite(path):
        mod, params = relay.frontend.from_tflite(path)
        types = [(p.name, p.checked_type) for p in mod["main"].params if p.name not in params]
        feeds = in_order((n, t.shape, t.dtype) for n, t in types)
    else:
        # Outputs as the file has them: as long as what is found, as the other engines give.
        mod, params = relay.frontend.from_onnx(path, counted=False)
    if precision != "float32":
        mod, params = lowered(mod, params, precision), None
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=TARGET, params=params)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    model.set_input(**feeds)
    return model.run, lambda: [model.get_output(i).numpy() for i in range(model.get_num_outputs())]


def lowered(mod, params, precision):
    """Return a module of `precision`, BatchNorms folded first; outputs stay float32."""
    import slipway as tvm
    from slipway import relay
    from slipway.relay.construct import bind

    function = bind(mod["main"], params or {})
    passes = [
        relay.transform.SimplifyInference(), relay.transform.SimplifyExpr(),
        relay.transform.FoldConstant(), relay.transform.FoldScaleAxis(),
        relay.transform.ToMixedPrecision(precision),
    ]  # fmt: skip
    option = {"relay.ToMixedPrecision.keep_orig_output_dtype": True}
    with tvm.transform.PassContext(opt_level=3, config=option):
        return relay.transform.Sequential(passes)(tvm.IRModule.from_expr(function))


def onnxruntime_engine(path, threads, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    made = dict(zip((o.name for o in session.get_outputs()), binding.get_outputs(), strict=True))
    for name, value in made.items():  # results stay in place, as the other engines' do
        binding.bind_ortvalue_output(name, value)
    return (lambda: session.run_with_iobinding(binding)), (lambda: session.run(None, feeds))


def openvino_engine(path, threads, feeds, precision="f32"):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
        "PERFORMANCE_HINT": "LATENCY",
    }
    if is_tflite(path):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.tflite"
            file.write_bytes(without_bias_axes(Path(path).read_bytes()))
            path = core.read_model(file)
            path.reshape({i.any_name: one_each(i.partial_shape) for i in path.inputs})
            compiled = core.compile_model(path, "CPU", settings)
    else:
        compiled = core.compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    if not feeds:
        given = [(i, list(i.shape), i.element_type.to_dtype().name) for i in compiled.inputs]
        feeds = in_order((i.any_name, shape, kind) for i, shape, kind in given)
    inputs = {name: openvino.Tensor(value) for name, value in feeds.items()}
    return (lambda: request.infer(inputs)), (
        lambda: [np.array(v) for v in request.infer(inputs).values()]
    )


def litert_engine(path, threads, feeds):
    """LiteRT with its kernels for this processor (XNNPACK), of files of TensorFlow Lite."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(
        model_content=without_bias_axes(Path(path).read_bytes()), num_threads=threads
    )
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    names = {d["name"]: d["index"] for d in details}
    made = in_order((d["name"], d["shape"], np.dtype(d["dtype"]).name) for d in details)
    for name, value in made.items():
        interpreter.set_tensor(names[name], value)
    outputs = [d["index"] for d in interpreter.get_output_details()]
    return interpreter.invoke, lambda: [
        (interpreter.invoke(), interpreter.get_tensor(i))[1] for i in outputs
    ]


def tvm_engine(path, threads, feeds):
    """apache-tvm, untuned: its default build of the imported model."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load(path), keep_params_in_input=False)
    built = tvm.compile(module, target=tvm.target.Target({"kind": "llvm", "mcpu": host_cpu()}))
    machine = relax.VirtualMachine(built, tvm.cpu())
    order = [p.name for p in module["main"].params]
    arguments = [tvm.runtime.tensor(feeds[name]) for name in order]

    def outputs():
        result = machine["main"](*arguments)
        return [r.numpy() for r in (result if hasattr(result, "__len__") else [result])]

    return (lambda: machine["main"](*arguments)), outputs


def host_cpu():
    """LLVM's name of this processor."""
    import llvmlite.binding

    return llvmlite.binding.get_host_cpu_name()


def iree_engine(path, threads, feeds):
    """IREE for this processor; its task system gets `threads` workers."""
    import iree.compiler.tools
    import iree.compiler.tools.import_onnx.__main__ as importer
    import iree.runtime

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "model.mlir"
        importer.main(importer.parse_arguments([str(path), "-o", str(text)]))
        code = iree.compiler.tools.compile_file(
            str(text),
            input_type="onnx",
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
        )
    iree.runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    config = iree.runtime.Config("local-task" if threads > 1 else "local-sync")
    loaded = iree.runtime.VmModule.copy_buffer(config.vm_instance, code)
    module = iree.runtime.load_vm_module(loaded, config)
    names = [n for n in loaded.function_names if not n.startswith("__")]
    name = next((n for n in names if not n.endswith("$async")), names[0].removesuffix("$async"))
    arguments = [
        iree.runtime.asdevicearray(config.device, feeds[n])
        for n, _, _ in describe(path)
        if n in feeds
    ]
    function = module[name]

    def outputs():
        result = function(*arguments)
        result = result if isinstance(result, tuple | list) else [result]
        return [r.to_host() for r in result]

    return outputs, outputs


def tinygrad_engine(path, threads, feeds):
    """tinygrad with clang behind its JIT, without its beam search."""
    os.environ.update(DEV="CPU", NUM_CPU_THREADS=str(threads), PARALLEL="0")
    from tinygrad import Tensor, TinyJit
    from tinygrad.nn.onnx import OnnxRunner

    runner = OnnxRunner(path)

    @TinyJit
    def step(**inputs):
        return [value.realize() for value in runner(inputs).values()]

    tensors = {name: Tensor(value).realize() for name, value in feeds.items()}
    for _ in range(3):
        step(**tensors)
    return (lambda: [v.numpy() for v in step(**tensors)]), (
        lambda: [v.numpy() for v in step(**tensors)]
    )


def inductor_engine(path, threads, feeds):
    """torch.compile with frozen weights, of the model as onnx2torch reads it."""
    import types

    vision = types.ModuleType("torchvision")  # onnx2torch wants it for operators of detectors
    vision.ops = types.ModuleType("torchvision.ops")
    vision.ops.roi_align = None
    sys.modules.update({"torchvision": vision, "torchvision.ops": vision.ops})
    import onnx
    import torch
    from onnx2torch import convert
    from torch._inductor import config

    torch.set_num_threads(threads)
    config.freezing = True
    module = torch.compile(convert(onnx.load(path)).eval())
    arguments = [torch.from_numpy(feeds[n]) for n, _, _ in describe(path)]

    def run():
        with torch.no_grad():
            return module(*arguments)

    def outputs():
        result = run()
        result = result if isinstance(result, tuple | list) else [result]
        return [r.numpy() for r in result]

    return run, outputs


ENGINES = {
    "slipway": slipway_engine,
    "onnxruntime": onnxruntime_engine,
    "openvino": openvino_engine,
    "litert": litert_engine,
    "apache-tvm": tvm_engine,
    "iree": iree_engine,
    "tinygrad": tinygrad_engine,
    "inductor": inductor_engine,
    "slipway-bfloat16": partial(slipway_engine, precision="bfloat16"),
    "openvino-bfloat16": partial(openvino_engine, precision="bf16"),
}


def load(engine, path, threads):
    """Return (run, outputs, line of JSON that says so)."""
    run = outputs = None
    start = time.perf_counter()
    try:
        run, outputs = ENGINES[engine](path, threads, feeds_of(describe(path)))
        run()
        ready = {"prepare_s": time.perf_counter() - start}
    except Exception as error:
        ready = {"error": f"{type(error).__name__}: {error}"[:300]}
    return run, outputs, ready


def main():
    engine, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what engines print must not mix with the protocol
    run, outputs, ready = (None, None, {}) if path == "-" else load(engine, path, threads)
    print(json.dumps(ready), file=pipe, flush=True)
    for line in sys.stdin:
        word, argument = line.split()
        if word == "run":
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(int(argument)):
                run()
            reply = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        elif word == "load":
            run = outputs = None  # the memory of the model before goes first
            run, outputs, reply = load(engine, argument, threads)
        else:
            np.savez(argument, *outputs())
            reply = {}
        print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main()
