"""Models compiled ahead of time, run as C programs of their own and compared (classic).

`compile_and_run` compiles models, writes a C program that holds their inputs and the results that
are expected, builds it with this machine's compiler, and runs it.  A runner of makefile
"corstone300" runs the models as firmware on the emulated board of that design instead.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import slipway.compiler.relay_build
from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.errors import ArgumentValueError, ExecutionError, ToolchainError
from slipway.frontends.tflite.importer import from_tflite
from slipway.ir.function import IRModule
from slipway.libinfo import find_crt_include_path
from slipway.micro.model_library import unpack_model_library
from slipway.micro.model_library_format import export_model_library_format
from slipway.micro.project import generate_project
from slipway.micro.session import Session
from slipway.micro.toolchain import run_tool
from slipway.relay.backend import Executor, Runtime
from slipway.relay.build_module import bind_params_by_name
from slipway.relay.expr import Function
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.target import Target
from slipway.testing.aot_program import SUCCESS, program_text, tolerance_of
from slipway.transform.context import PassContext

_CORSTONE_BOARD = "mps3-an547"


class AOTTestModel(NamedTuple):
    """A model with its inputs, the outputs expected (both by name), and its parameters.

    `output_tolerance` bounds the absolute difference: by default 0.001 of floats, 0 of integers.
    `extra_memory_in_bytes` is kept for scripts: a program's memory is planned as a whole.
    """

    module: Any
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    output_tolerance: float | None = None
    name: str = "default"
    params: Mapping[str, Any] | None = None
    extra_memory_in_bytes: int = 0


class AOTCompiledTestModel(NamedTuple):
    """A model and what ``relay.build`` made of it."""

    model: AOTTestModel
    executor_factory: AotExecutorFactoryModule


class AOTDataLinkage(NamedTuple):
    """The section that inputs and outputs are put into, and their alignment in bytes."""

    section: str
    alignment: int


class AOTTestRunner(NamedTuple):
    """How the program is run: C before and after the calls, headers, options of passes.

    `makefile` is "default", this machine, or "corstone300", an emulated board; `parameters` are
    the board's project options.
    """

    makefile: str = "default"
    prologue: str = ""
    epilogue: str = ""
    includes: Sequence[str] = ()
    parameters: Mapping[str, Any] = {}
    pass_config: dict[str, Any] = {}  # noqa: RUF012 classic scripts update it


def compile_models(
    models: AOTTestModel | Sequence[AOTTestModel],
    interface_api: str,
    use_unpacked_api: bool,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    pass_config: Mapping[str, Any] | None = None,
    use_runtime_executor: bool = True,
    target: Target | str = "c",
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    schedule_name: str | None = None,
) -> list[AOTCompiledTestModel]:
    """Compile models ahead of time.

    `use_runtime_executor` and `schedule_name` are classic's: how a program is asked for, and which
    schedule a kernel gets, makes no difference to its results.
    """
    del use_runtime_executor, schedule_name
    options = {
        "workspace-byte-alignment": workspace_byte_alignment,
        "constant-byte-alignment": constant_byte_alignment,
        "interface-api": interface_api,
        "unpacked-api": use_unpacked_api,
    }
    config = {"tir.disable_vectorize": True, **(pass_config or {})}
    if not enable_op_fusion:
        config["relay.FuseOps.max_depth"] = 1
    compiled = []
    for model in [models] if isinstance(models, AOTTestModel) else models:
        with PassContext(opt_level=3, config=config):
            factory = slipway.compiler.relay_build.build(
                model.module,
                target,
                params=dict(model.params or {}),
                executor=Executor("aot", options),
                runtime=Runtime("crt"),
                mod_name=model.name,
                workspace_memory_pools=workspace_memory_pools,
                constant_memory_pools=constant_memory_pools,
            )
        assert isinstance(factory, AotExecutorFactoryModule)
        compiled.append(AOTCompiledTestModel(model, factory))
    return compiled


def run_and_check(
    models: Sequence[AOTCompiledTestModel],
    runner: AOTTestRunner,
    interface_api: str,
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    data_linkage: AOTDataLinkage | None = None,
    test_dir: str | Path | None = None,
    verbose: bool = False,
    use_workspace_io: bool = False,
    print_output_on_mismatch: bool = False,
) -> bool:
    """Run compiled models in one program and compare their outputs; True when all are right.

    The program is left in `test_dir`, where that is given.  Raises ExecutionError that says which
    output differs and where.
    """
    del debug_calculated_workspaces, print_output_on_mismatch
    folder = Path(tempfile.mkdtemp(prefix="aot-") if test_dir is None else test_dir).resolve()
    try:
        if runner.makefile == "corstone300":
            for each in models:
                _run_on_board(each, runner, folder / each.model.name)
            return True
        text = program_text(models, runner, interface_api, data_linkage, use_workspace_io)
        alignments = (workspace_byte_alignment, constant_byte_alignment)
        said = _run_here(models, text, folder, alignments)
        if verbose:
            print(said)
        if SUCCESS not in said:
            raise ExecutionError(f"the program of the models failed: {said.strip()[-800:]}")
        return True
    finally:
        if test_dir is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run_here(
    models: Sequence[AOTCompiledTestModel], text: str, folder: Path, alignments: tuple[int, int]
) -> str:
    """Build and run the program on this machine; return what it printed."""
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise ToolchainError("there is no C compiler; on Debian: sudo apt-get install gcc")
    build = folder / "build"
    build.mkdir(parents=True, exist_ok=True)
    (build / "test.c").write_text(text, encoding="utf-8")
    for each in models:
        archive = export_model_library_format(
            each.executor_factory, folder / f"{each.model.name}.tar"
        )
        unpack_model_library(archive, folder)
    host = folder / "codegen" / "host"
    sources = [build / "test.c", *sorted(host.glob("src/*.c")), *sorted(host.glob("lib/*.o"))]
    program = build / "aot_test_runner"
    flags = [
        "-std=gnu11", "-O1", f"-I{host / 'include'}", *(f"-I{p}" for p in find_crt_include_path()),
        f"-I{Path(find_crt_include_path()[0]) / 'include'}",
        f"-DTVM_RUNTIME_ALLOC_ALIGNMENT_BYTES={alignments[0]}",
        f"-DTVM_RUNTIME_CONST_ALLOC_ALIGNMENT_BYTES={alignments[1]}",
    ]  # fmt: skip
    run_tool([compiler, *flags, "-o", str(program), *map(str, sources), "-lm"], "building the test")
    try:
        return run_tool([str(program)], "running the test")
    except ToolchainError as error:
        raise ExecutionError(f"the program of the models failed: {error}") from None


def _run_on_board(compiled: AOTCompiledTestModel, runner: AOTTestRunner, folder: Path) -> None:
    """Run a model as firmware of the emulated board, and compare what it gives."""
    model = compiled.model
    options = {"board": _CORSTONE_BOARD, "project_type": "host_driven", **runner.parameters}
    project = generate_project("baremetal", compiled.executor_factory, folder, options)
    try:
        project.build()
        project.flash()
        with Session(project.transport()) as session:
            module = GraphModule(session.create_aot_executor())
            for name, value in model.inputs.items():
                module.set_input(name, value)
            module.run()
            for number, (name, wanted) in enumerate(model.outputs.items()):
                _compare(name, module.get_output(number).numpy(), np.asarray(wanted), model)
    finally:
        project.close()


def _compare(
    name: str, found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], model: AOTTestModel
) -> None:
    difference = np.abs(found.astype("float64") - wanted.astype("float64"))
    worst = float(difference.max()) if difference.size else 0.0
    limit = tolerance_of(wanted, model.output_tolerance)
    if not worst <= limit:
        raise ExecutionError(
            f"output {name!r} of {model.name!r} is {worst:g} from what is expected, more than "
            f"{limit:g}"
        )


def compile_and_run(
    models: AOTTestModel | Sequence[AOTTestModel],
    runner: AOTTestRunner,
    interface_api: str,
    use_unpacked_api: bool,
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    data_linkage: AOTDataLinkage | None = None,
    use_runtime_executor: bool = True,
    target: Target | str = "c",
    target_opts: Mapping[str, Any] | None = None,
    test_dir: str | Path | None = None,
    verbose: bool = False,
    schedule_name: str | None = None,
    print_output_on_mismatch: bool = False,
) -> bool:
    """Compile models, run them, and compare their outputs; see `compile_models`, `run_and_check`.

    `target_opts` are appended to the target: ``{"-mcpu": "cortex-m55"}``.
    """
    if target_opts:
        target = " ".join([str(target), *(f"{k}={v}" for k, v in target_opts.items())])
    compiled = compile_models(
        models,
        interface_api,
        use_unpacked_api,
        workspace_byte_alignment,
        constant_byte_alignment,
        enable_op_fusion,
        runner.pass_config,
        use_runtime_executor,
        target,
        schedule_name=schedule_name,
    )
    return run_and_check(
        compiled,
        runner,
        interface_api,
        debug_calculated_workspaces,
        workspace_byte_alignment,
        constant_byte_alignment,
        data_linkage,
        test_dir,
        verbose,
        print_output_on_mismatch=print_output_on_mismatch,
    )


def generate_ref_data(
    mod: Any,
    input_data: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
) -> dict[str, np.ndarray[Any, Any]]:
    """Return a model's outputs by name, computed on this machine by the graph executor."""
    with PassContext(opt_level=3):
        built = slipway.compiler.relay_build.build(mod, target, params=dict(params or {}))
    executor = GraphModule(built["default"](cpu()))
    executor.set_input(**input_data)
    executor.run()
    count = executor.get_num_outputs()
    main = mod["main"] if isinstance(mod, IRModule) else mod
    given = main.attr("output_tensor_names") if hasattr(main, "attr") else None
    names = [str(n) for n in given] if given else [
        "output" if count == 1 else f"output{i}" for i in range(count)]  # fmt: skip
    return {name: executor.get_output(i).numpy() for i, name in enumerate(names)}


def convert_to_relay(
    tflite_model_buf: bytes, bind_params_by_name: bool = True
) -> tuple[IRModule, dict[str, Any]]:
    """Import a TFLite model; its parameters become constants where that is asked for."""
    mod, params = from_tflite(tflite_model_buf)
    if bind_params_by_name and params:
        main = mod["main"]
        assert isinstance(main, Function)
        mod["main"] = _bound(main, params)
    return mod, params


_bound = bind_params_by_name


def create_relay_module_and_inputs_from_tflite_file(
    tflite_model_file: str | Path, bind_params_by_name: bool = True
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Import a TFLite file; return the module, random inputs over their dtypes' range, parameters.

    Raises ArgumentValueError for an input that is neither a float nor an integer.
    """
    mod, params = convert_to_relay(Path(tflite_model_file).read_bytes(), bind_params_by_name)
    inputs: dict[str, np.ndarray[Any, Any]] = {}
    source = np.random.default_rng()
    for param in mod["main"].params:  # type: ignore[attr-defined]
        dtype, shape = np.dtype(param.checked_type.dtype), tuple(param.checked_type.shape)
        if np.issubdtype(dtype, np.integer):
            info = np.iinfo(dtype)
            inputs[param.name_hint] = source.integers(info.min, info.max, shape, dtype)
        elif np.issubdtype(dtype, np.floating):
            limit = float(np.finfo("float16").max)
            inputs[param.name_hint] = source.uniform(-limit, limit, shape).astype(dtype)
        else:
            raise ArgumentValueError(f"the input {param.name_hint!r} is of dtype {dtype}")
    return mod, inputs, params
