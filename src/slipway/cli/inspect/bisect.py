"""``slipway bisect``: the first step at which a model's numbers go another way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.connection import Connection, check_can_run
from slipway.cli.demo.case import made_up_inputs
from slipway.cli.inspect.bisect_repro import write_repro
from slipway.cli.model_file import ModelOptions, parse_bindings
from slipway.cli.options import (
    AsJson,
    Bindings,
    DenseRounding,
    Dims,
    Inputs,
    InputShapes,
    ModelFile,
    ModelFormat,
    OptLevel,
    RpcHost,
    RpcKey,
    RpcPort,
    Signature,
    Timeout,
    Tracker,
)
from slipway.cli.outputs import need_output_folder
from slipway.cli.run import read_arrays
from slipway.deploy.model_file import format_of
from slipway.runtime.model_devices import ModelDevices
from slipway.toolchain.tempdir import tempdir

if TYPE_CHECKING:
    from slipway.inspect.bisect import Culprit
    from slipway.ir.function import IRModule
    from slipway.relay.expr import Function
    from slipway.target import Target


def bisect(
    model: ModelFile,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            autocompletion=target_names,
            help="What to compile for; repeatable. [default: llvm]",
        ),
    ] = None,
    inputs: Inputs = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    tolerance: Annotated[
        float, typer.Option(help="Of a float tensor's largest value; integers must be the same.")
    ] = 1e-4,
    opt_level: OptLevel = 3,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for what reproduces it.")
    ] = None,
    framework: Annotated[
        bool, typer.Option("--framework/--no-framework", help="Also ask ONNX Runtime, if there.")
    ] = True,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Find the node, pass or kernel at which MODEL's numbers go another way.

    One input goes through ONNX Runtime, the imported graph, the optimised graph and the compiled
    kernels, on this machine or a device. Exits with 0 when all agree, else with 1, names the
    culprit, and writes its inputs, both results, source, a script that shows the difference, and
    the nodes of an ONNX model as a small one with its data.

    For example:

        slipway bisect model.onnx

        slipway bisect model.onnx --inputs cat.npz --tolerance 1e-3 -o repro

        slipway bisect kws.tflite --target "llvm -mtriple=aarch64-linux-gnu" --rpc-host pi.local

        slipway bisect model.onnx --target "llvm -mcpu=x86-64" --target llvm
    """
    from slipway.inspect.bisect import as_list
    from slipway.relay.interpret import interpret
    from slipway.target import Target

    kind = format_of(model, model_format)
    need_output_folder("--output", output or Path(f"{model.stem}-bisect"))
    constants = parse_bindings(bind)
    targets = [Target(name) for name in target or ["llvm"]]
    for each in targets:
        check_can_run(each, rpc_host, tracker)
    with console.step(f"Reading {model}"):
        options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
        module, _ = options.read(model, targets[0])
    main = module["main"]
    arrays = given_or_random(main, inputs)
    with console.step("Computing the imported graph by the references"):
        wanted = as_list(interpret(module, **arrays))
    if kind == "onnx" and framework:
        culprit = check_import(model, main, arrays, wanted, tolerance, constants, as_json=as_json)
        stop_at(culprit, output, model, arrays, as_json=as_json)
    connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
    for chosen in targets:
        found = check_target(module, chosen, connection, arrays, wanted, tolerance, opt_level)
        stop_at(found, output, model, arrays, chosen, as_json=as_json)
        agreed(f"{chosen} on {connection.where}: every kernel agrees", as_json)
    if as_json:
        print(json.dumps({"agrees": True, "targets": [str(one) for one in targets]}, indent=2))


def given_or_random(main: Function, path: Path | None) -> dict[str, Any]:
    """Return an array for each input: from the file, or random."""
    given = read_arrays(path) if path else {}
    return {name: given.get(name, array) for name, array in made_up_inputs(main).items()}


def check_import(
    model: Path,
    main: Function,
    arrays: dict[str, Any],
    wanted: Sequence[Any],
    tolerance: float,
    constants: dict[str, Any],
    *,
    as_json: bool,
) -> Any:
    """Return the first node whose import gives other numbers than ONNX Runtime, if any."""
    from slipway.frontends.onnx.reference import as_inputs, has_onnxruntime, run_onnxruntime
    from slipway.inspect.bisect import Culprit, node_values
    from slipway.inspect.difference import first_difference

    if not has_onnxruntime():
        console.err.print("ONNX Runtime is not installed: the import is not checked")
        return None
    with console.step("Running ONNX Runtime"):
        given = {**arrays, **as_inputs(model, constants)}
        ((_, expected),) = run_onnxruntime(model, given)
    found = first_difference(wanted, expected, tolerance)
    if found is None:
        agreed("the import agrees with ONNX Runtime", as_json)
        return None
    with console.step("Looking for the first node"):
        ours = node_values(main, arrays)
        for name, theirs in run_onnxruntime(model, given, every_node=True):
            own = ours.get(name, [])
            pairs = [(a, b) for a, b in zip(own, theirs, strict=False) if a.shape == b.shape]
            first = first_difference([a for a, _ in pairs], [b for _, b in pairs], tolerance)
            if first is not None:
                return Culprit("import", name, first, (name,), got=list(own), wanted=list(theirs))
    return Culprit("import", "the model's outputs", found, got=list(wanted), wanted=list(expected))


def check_target(
    module: IRModule, target: Target, connection: Connection, arrays: dict[str, Any],
    wanted: Sequence[Any], tolerance: float, opt_level: int,
) -> Any:  # fmt: skip
    """Return the first pass or kernel that gives other numbers for `target`, if any."""
    import slipway
    from slipway import relay
    from slipway.compiler.optimize import optimize_steps
    from slipway.compiler.relay_build import layout_lanes
    from slipway.inspect.bisect import Culprit, find_kernel, find_pass, trace_of
    from slipway.inspect.difference import first_difference

    with slipway.transform.PassContext(opt_level=opt_level):
        with console.step(f"Compiling for {target}"):
            factory = relay.build(module, target=target)
        graph = factory.graph
        with console.step("Computing its kernels by the references"):
            trace = trace_of(graph, arrays)
        results = [trace[ref.node][ref.index] for ref in graph.outputs]
        found = first_difference(results, wanted, tolerance)
        if found is not None:
            with console.step("Looking for the pass"):
                lanes = layout_lanes(target)
                steps = optimize_steps(module, None, target, layout_lanes=lanes)
                culprit = find_pass(steps, arrays, wanted, tolerance)
            return culprit or Culprit("pass", "?", found, got=results, wanted=list(wanted))
    with tempdir() as folder:
        path = folder.path / "model.tar"
        factory.export_library(str(path))
        library = connection.load(path)
    devices = ModelDevices(factory.metadata, connection.remote)
    with console.step(f"Comparing {len(graph.kernels)} kernels on {connection.where}"):
        call = devices.caller(library, graph.kernel_devices)
        culprit = find_kernel(graph, trace, call, tolerance)
    if culprit is not None:
        return culprit
    with console.step("Running the whole model"):
        got = run_whole(library, devices, arrays)
    found = first_difference(got, results, tolerance)
    if found is None:
        return None
    return Culprit("executor", "the graph executor", found, got=got, wanted=results)


def run_whole(library: Any, devices: ModelDevices, arrays: dict[str, Any]) -> list[Any]:
    """Return the outputs of a loaded model."""
    from slipway.contrib import graph_executor

    module = graph_executor.GraphModule(library["default"](*devices.each))
    for name, array in arrays.items():
        module.set_input(name, array)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def agreed(what: str, as_json: bool) -> None:
    """Say what agrees; not among JSON."""
    if not as_json:
        console.out.print(f"[green]✓[/] {what}")


def stop_at(
    culprit: Culprit | None,
    output: Path | None,
    model: Path,
    arrays: dict[str, Any],
    target: Target | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Report a culprit and exit with 1; without one do nothing."""
    if culprit is None:
        return
    folder = output or Path(f"{model.stem}-bisect")
    source = model if format_of(model) == "onnx" else None
    files = write_repro(culprit, folder, target, source, arrays)
    if as_json:
        told = json.loads((folder / "culprit.json").read_text(encoding="utf-8"))
        told |= {"target": target and str(target), "folder": str(folder), "files": files}
        print(json.dumps({"agrees": False, **told}, indent=2))
        raise typer.Exit(1)
    found = culprit.difference
    console.out.print(
        f"[red]✗[/] the numbers go another way in the {culprit.kind} {console.plain(culprit.name)}"
    )
    if culprit.nodes:
        console.out.print(f"  nodes of the model: {console.plain(', '.join(culprit.nodes))}")
    console.out.print(
        f"  largest error {found.error:.3g}, at {list(found.index)}: "
        f"{found.got:.9g} instead of {found.wanted:.9g}"
    )
    console.out.print(f"  {console.plain(folder)}: {', '.join(files)}")
    raise typer.Exit(1)
