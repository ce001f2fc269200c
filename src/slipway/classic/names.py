"""Why a name of classic TVM is not there, and what to use instead.

Rules are by the beginning of the name, the longest one counts.  Facades put the text into their
AttributeError, and docs/classic_names.md is made of the same rules.
"""

from __future__ import annotations

from slipway.errors import did_you_mean

TUNER = "the search is over strategies and templates: see docs/tuning.md"
GPU = "of GPUs there are OpenCL C, PTX, CUDA C, code for AMD, SPIR-V, WGSL, Metal: docs/gpu.md"
GPU_MATRIX = "relay.build multiplies on matrix units where the target has them: docs/gpu.md"
ACCELERATOR = "there is no code generator for this accelerator: compile for its CPU"
LIBRARY = "kernels are generated here, not called from this library"
CPP = "a node of TVM's C++ side, with no object of its own here"
FRAMEWORK = "export the model to ONNX, TFLite or PyTorch and import that"
INSIDE = "a step that the code generators take on their own here: leave it out"
STRATEGY = "kernels are chosen from the target's description, and by tuning: docs/tuning.md"
SPANS = "expressions carry no spans: errors name the operator and its inputs"
REGIONS = "models are compiled whole: relay.vm.compile, Executable and VirtualMachine are there"

NOT_THERE: dict[str, str] = {
    "tvm": "no counterpart here",
    "tvm.container": CPP,
    "tvm.PoolInfo": "give pools as workspace_memory_pools= of relay.build",
    "tvm.te.hybrid": "te.hybrid has script and build",
    "tvm.te.TensorComputeOp": "te.compute returns a ComputeOp for a call of an intrinsic too",
    "tvm.te": "no counterpart here",
    "tvm.tir": CPP, "tvm.tir.transform": INSIDE,
    "tvm.tir.analysis": "walk the function with tir.stmt_functor, and look for yourself",
    "tvm.tir.schedule": "a schedule of blocks has its functions and a trace",
    "tvm.tir.ptx": GPU_MATRIX, "tvm.tir.mma": GPU_MATRIX, "tvm.tir.tvm_": INSIDE,
    "tvm.tir.tvm_bmma": GPU_MATRIX, "tvm.tir.tvm_fill_fragment": GPU_MATRIX,
    "tvm.tir.tvm_load_matrix": GPU_MATRIX, "tvm.tir.tvm_mma": GPU_MATRIX,
    "tvm.tir.tvm_store_matrix": GPU_MATRIX,
    "tvm.tir.tvm_access_ptr": "take access_ptr of the buffer",
    "tvm.tir.tvm_thread_allreduce": "bind a reduction axis to threadIdx",
    "tvm.tir.Layout": "layouts are strings here: 'NCHW16c'",
    "tvm.topi": "write the computation with te.compute, or the model with slipway.relay",
    "tvm.topi.x86": "topi.generic.schedule_injective schedules any expression",
    "tvm.topi.arm_cpu": "topi.generic.schedule_injective schedules any expression",
    "tvm.topi.generic": "topi.generic.schedule_injective schedules any expression",
    "tvm.relay": "no counterpart here",
    "tvm.relay.adt": "algebraic data types are not there: use tuples",
    "tvm.relay.Ref": "references are not there: models are functions",
    "tvm.relay.frontend.from_paddle": "paddle2onnx writes ONNX: then from_onnx",
    "tvm.relay.frontend.from_oneflow": "oneflow_onnx writes ONNX: then from_onnx",
    "tvm.relay.frontend.from_coreml": "convert the model that it was made from to ONNX",
    "tvm.relay.frontend.from_caffe": "caffe2onnx writes ONNX: then from_onnx",
    "tvm.relay.frontend.from_caffe2": "Caffe2 writes ONNX itself: then from_onnx",
    "tvm.relay.frontend.from_": FRAMEWORK, "tvm.relay.vm.": REGIONS,
    "tvm.relay.analysis": "walk the graph with relay.visit.post_order, and look for yourself",
    "tvm.relay.transform": "this pass is not a step of the compiler here: leave it out",
    "tvm.relay.transform.gradient": "there is no differentiation: train in another framework",
    "tvm.relay.transform.FirstOrderGradient": "there is no differentiation: train elsewhere",
    "tvm.relay.backend": "relay.build compiles kernels itself",
    "tvm.relay.op.register_": "an operator is one section of a file: docs/architecture.md",
    "tvm.relay.qnn": "use slipway.relay.qnn.op, or import a quantised model",
    "tvm.relay.quantize": "relay.quantize has qconfig and quantize; the passes between are one",
    "tvm.relay.testing": "take a model file, or build the graph with slipway.relay",
    "tvm.runtime.profiling": "times are measured, counters of processors are not read",
    "tvm.runtime": CPP, "tvm.runtime.vm": REGIONS,
    "tvm.nd": "see slipway.runtime", "tvm.ir": CPP,
    "tvm.target": "no counterpart here", "tvm.target.vta": ACCELERATOR,
    "tvm.driver.tvmc": "tvmc has load, compile, run, tune and its modules; the commands are "
    "`python -m slipway.driver.tvmc`",
    "tvm.rpc.with_minrpc": "libinfo.find_rpc_server gives a server that links nothing",
    "tvm.micro": "see slipway.micro",
    "tvm.target.target": "slipway.target has Target, the kinds and the models",
    "tvm.parser": "slipway.parser has parse", "tvm.support.libinfo": "see slipway.libinfo",
    "tvm.testing": "a helper of TVM's own tests", "tvm.arith": "slipway.arith has Analyzer",
    "tvm.autotvm": TUNER, "tvm.auto_scheduler": TUNER, "tvm.meta_schedule": TUNER,
    "tvm.contrib": "no counterpart here",
    **{f"tvm.contrib.{name}": LIBRARY for name in (
        "cublas", "cublaslt", "cudnn", "cutlass", "dnnl", "miopen", "mkl", "mps", "nnpack",
        "rocblas", "sparse", "thrust")},
    **{f"tvm.relay.op.contrib.{name}": LIBRARY for name in (
        "bnns", "cublas", "cudnn", "cutlass", "dnnl", "libtorch", "tensorrt")},
    **{f"tvm.relay.op.contrib.{name}": ACCELERATOR for name in (
        "arm_compute_lib", "clml", "cmsisnn", "coreml", "ethosn", "ethosu", "vitis_ai")},
    "tvm.relay.op.strategy": STRATEGY,
    "tvm.relay.qnn.strategy": STRATEGY, "tvm.relay.collage": "partition by a pattern table: "
    "relay.transform.MergeComposite and PartitionGraph",
    "tvm.relay.prelude": "algebraic data types are not there: use tuples",
    "tvm.relay.Span": SPANS, "tvm.relay.Sequential": SPANS, "tvm.relay.SourceName": SPANS,
    "tvm.relay.op.op_attrs": "attributes are those of the call: call.attrs",
    "tvm.relay.backend.aot": "relay.build with Executor(\"aot\") compiles models so",
    "tvm.relay.backend.contrib.ethosu": ACCELERATOR,
    "tvm.relay.text": "slipway.parser has parse", "tvm.relay.types": CPP,
    "tvm.auto_scheduler.testing": "a helper of TVM's own tests",
    "tvm.meta_schedule.testing": "a helper of TVM's own tests",
    "tvm.driver": "slipway.driver has build, lower and tvmc",
    "tvm.exec": "the programs are commands: slipway --help lists them",
    "tvm.generic": "dispatch by target is in slipway.target: generic_func",
    "tvm.utils": "measurements are benchmarks/ and `slipway check --profile`",
    "tvm.tvm_wrap_excepthook": "errors of compiled code are Python's own here",
    "tvm.rpc": "slipway.rpc has the client, Server, tracker and proxy",
    "tvm.script": "slipway.script reads ir_module and T.prim_func, and .script() writes them",
    "tvm.support": "no counterpart here",
    "tvm.blocks": CPP,
    "tvm.tir.usmp": "relay.build plans memory: give workspace_memory_pools=, and a planner of "
    "your own as tir.usmp.custom_algorithm",

    "tvm.contrib.cuda": GPU,
    "tvm.contrib.rocm": GPU, "tvm.contrib.coreml_runtime": ACCELERATOR,
    "tvm.contrib.hexagon": ACCELERATOR, "tvm.contrib.ethosu": ACCELERATOR,
    "tvm.contrib.sdaccel": ACCELERATOR, "tvm.contrib.emcc": "the linker is part of Slipway: "
    "export_library for target wasm32 needs no Emscripten",
    "tvm.contrib.peak": "benchmarks/ measures", "tvm.contrib.popen_pool": "concurrent.futures",
    "tvm.contrib.tf_op": FRAMEWORK,
    "tvm.contrib.tflite_runtime": "the package tflite-runtime", "tvm.contrib.mxnet": FRAMEWORK,
    "tvm.contrib.utils": "tempfile and shutil of Python",
}  # fmt: skip

# Names that are there and do something else than classic TVM's in some case.
DIFFERENT: dict[str, str] = {
    "tvm.tir.Schedule": "memory of a block that moved into a loop keeps its size; "
    "what blockize makes of block B is called B_o; pad_einsum takes factors as TVM 0.14 did",
    "tvm.relay.frontend.from_darknet": "padding of pools, shortcuts and norms as Darknet computes "
    "them; relay.testing.darknet reads networks without its library",
    "tvm.relay.frontend.from_keras": "models of Keras 3, functional or sequential, of any backend",
    "tvm.relay.frontend.from_tensorflow": "by way of tf2onnx; inputs are laid out as in the graph",
    "tvm.relay.frontend.from_mxnet": "loops, branches and quantised nodes of a symbol are refused",
    "tvm.relay.quantize.quantize": "between products every value is int8; partition_conversions "
    "is refused",
    "tvm.contrib.torch": "optimize_torch does not search; as_torch takes no Python function",
    "tvm.micro.AutoTvmModuleLoader": "the template crt, measured here; boards are refused",
    "tvm.relay.data_dep_optimization": "bsr_dense and bsr_conv2d leave weights dense, and say so",
    "tvm.te.hybrid": "script; functions without threads of a GPU",
    **{
        f"tvm.topi.{name}": "schedules of plain threads, one for each element; code is made for "
        "opencl"
        for name in ("adreno", "bifrost", "cuda", "gpu", "intel_graphics", "mali", "rocm")
    },
    **{f"tvm.topi.{name}": "schedules of any CPU" for name in ("hexagon", "hls")},
    "tvm.relay.transform.FastMath": "types the module: kernels compute by polynomials as it is",
    "tvm.relay.transform.DenseToSparse": "relay.build makes the weights dense once",
    "tvm.relay.transform.CombineParallelDense": "one product, not a batch of them",
    "tvm.tir.analysis.calculate_constant_bytes": "0: constants are arguments",
    "tvm.te.gradient": "sums, minima and maxima are differentiated; other reductions are refused",
    "tvm.te.trace": "in a process with Python",
    "tvm.tir.trace": "in a process with Python",
    "tvm.tir.transform.StorageFlatten": "the size of a cache line plays no part",
    "tvm.runtime.vm.Executable": "no instructions: the code says how inputs and results are passed",
    "tvm.runtime.vm.VirtualMachine": "runs main",
    "tvm.te.create_prim_func": "blocks are called as the operations, their axes v_<axis>",
    "tvm.contrib.cblas.matmul": "NumPy's BLAS, in a process with Python",
    "tvm.contrib.cblas.batch_matmul": "NumPy's BLAS, in a process with Python",
    "tvm.contrib.pickle_memoize": "results are kept as long as the process runs",
    "tvm.contrib.random.uniform": "NumPy's generator, in a process with Python",
    "tvm.contrib.random.normal": "NumPy's generator, in a process with Python",
    "tvm.contrib.random.randint": "NumPy's generator, in a process with Python",
    "tvm.contrib.debugger.debug_executor.GraphModuleDebug": "run prints a table; of its classic "
    "arguments number and repeat have an effect",
    "tvm.testing.install_request_hook": "does nothing",
    "tvm.error.register_error": "does nothing: every class comes through compiled code",
    "tvm.script.from_source": "of the class of a module or a function; blocks, loops, scalars",
}


def rule_of(name: str) -> str:
    """Return the rule that speaks of a name, as "tvm.te.hybrid"; "" where there is none."""
    return max((p for p in NOT_THERE if name.startswith(p)), key=len, default="")


def reason(name: str) -> str:
    """Return why a name, as "tvm.te.hybrid", is not there; "" where no rule speaks of it."""
    return NOT_THERE.get(rule_of(name), "")


# Functions of other tools, which a first program looks for in the package itself.
_ELSEWHERE = (
    ("load_model open_model",
     "slipway.load('model.tar') opens an artifact, slipway.compile('model.onnx') reads a model"),
    ("InferenceSession Interpreter Session Engine Predictor Runtime",
     "slipway.compile('model.onnx') returns what can be called; docs/migration.md has both beside "
     "each other"),
    ("from_onnx from_tflite from_pytorch from_keras from_tensorflow import_model",
     "slipway.compile reads .onnx, .tflite, .pt2 and PyTorch modules; classic TVM's functions are "
     "in relay.frontend"),
    ("profile benchmark check report on save predict",
     "a model has it, and slipway.compile('model.onnx') returns one"),
    ("tune autotune", "slipway.meta_schedule.tune_tvm, or `slipway tune` on the command line"),
    ("connect connect_tracker", "slipway.rpc has it; model.on('HOST:PORT') is the short way"),
    ("targets list_targets devices list_devices",
     "`slipway targets` lists what can be compiled for"),
    ("export export_library export_model", "slipway.compile('model.onnx').save('model.tar')"),
)  # fmt: skip


def _elsewhere(module: str, name: str) -> str:
    rows = _ELSEWHERE if module == "slipway" else ()
    return next((told for names, told in rows if name in names.split()), "")


def missing(module: str, name: str, known: tuple[str, ...] | list[str] = ()) -> str:
    """Return the text of the AttributeError for a name that a module of Slipway does not have."""
    if told := _elsewhere(module, name):
        return f"module {module!r} has no attribute {name!r}: {told}."
    hint = "" if name.startswith("_") else did_you_mean(name, known)  # tools ask for __wrapped__
    text = f"module {module!r} has no attribute {name!r}.{hint}"
    classic = f"{module}.{name}".replace("slipway", "tvm", 1)
    specific = rule_of(classic)
    if specific.count(".") < 1 or (hint and specific != classic):
        return text
    text = f"module {module!r} has no attribute {name!r}."
    return f"{text} Of classic TVM's names it is not there: {NOT_THERE[specific]}."
