"""``slipway compile``: a model file becomes an artifact for a target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import (
    ModelOptions,
    check_module_name,
    need_file,
    need_model,
    parse_states,
)
from slipway.cli.options import (
    AsJson,
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFile,
    ModelFormat,
    OptLevel,
    Signature,
    States,
    need_one_of,
)
from slipway.cli.outputs import need_output
from slipway.errors import did_you_mean
from slipway.toolchain.link import write_file

SUFFIXES = (".tar", ".so", ".wasm", ".o", ".a")
DUMPS = ("relay", "ll", "asm")
EXECUTORS = ("graph", "aot")
RUNTIMES = ("cpp", "crt")


def compile_model(
    model: ModelFile,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            autocompletion=target_names,
            help="What to compile for; 'llvm' is this machine.",
        ),
    ] = "llvm",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The artifact: .tar, .so, .wasm, .o or .a. [default: MODEL.tar]"
        ),
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    state: States = None,
    bind: Bindings = None,
    opt_level: OptLevel = 3,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    model_format: ModelFormat = None,
    precision: Annotated[
        str,
        typer.Option(
            help="What products of float32 are computed in: float32, bfloat16, float16, "
            "float16_acc16 (sums in float16 too), bfloat16x3 or bfloat16x6 (float32 in parts), or "
            "auto (what the target does fastest)."
        ),
    ] = "float32",
    tuning_records: Annotated[
        Path | None, typer.Option(help="Choices for single kernels that `slipway tune` wrote.")
    ] = None,
    cross_compiler: Annotated[
        str | None, typer.Option(help="A compiler to link with, instead of Slipway's own linker.")
    ] = None,
    params_file: Annotated[
        Path | None,
        typer.Option(help="Write the parameters of a .wasm there, for a page to load apart."),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="What runs the model: graph, or aot (one C function).")
    ] = "graph",
    runtime: Annotated[
        str | None, typer.Option(help="crt for a microcontroller's C runtime. [default: cpp]")
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option("--output-format", "-f", help="mlf for a Model Library Format archive."),
    ] = None,
    module_name: Annotated[
        str | None,
        typer.Option(help="What names in generated C begin with: tvmgen_NAME. [default: default]"),
    ] = None,
    dump_code: Annotated[
        str | None,
        typer.Option(help="Also write what it was compiled through: relay, ll, asm (with commas)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile MODEL into an artifact for a target.

    For example:

        slipway compile mobilenet.onnx -o mobilenet.tar

        slipway compile mobilenet.onnx --target "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"

        slipway compile mobilenet.onnx --target web/wasm -o mobilenet.wasm

        slipway compile bert.onnx --target web/wasm -o bert.wasm --params-file bert.params

        slipway compile kws.tflite --target "c -mcpu=cortex-m4" --executor aot --runtime crt -f mlf

        slipway compile resnet.onnx --target "llvm -mcpu=sapphirerapids" --precision auto

        slipway compile bert.onnx --input-shapes "ids:[1,128] mask:[1,128]" --dump-code relay,asm

        slipway compile vad.onnx --input-shapes "input:[1,576] state:[2,1,128]" --bind sr=16000

        slipway compile vad.onnx --dim batch=1..8 --state state=stateN
    """
    need_one_of("--executor", executor, EXECUTORS)
    need_one_of("--runtime", runtime, RUNTIMES)
    destination = destination_of(model, output, output_format)
    dumps = dumps_of(dump_code)
    if output_format == "mlf":
        check_module_name(module_name)
    need_model(model, model_format)
    if tuning_records is not None:
        need_file(tuning_records)
    need_output("--output", destination, model, tuning_records)
    need_output("--params-file", params_file, model, tuning_records, destination)
    if params_file is not None and params_file.absolute() == destination.absolute():
        raise OptionError(f"--params-file {params_file} is the artifact too: give another name")

    import slipway
    from slipway import relay
    from slipway.compiler.precision import PRECISIONS, in_precision

    need_one_of("--precision", precision, PRECISIONS)
    chosen = slipway.target.Target(target)
    config = {"schedules.records": str(tuning_records)} if tuning_records else {}
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    with console.step(f"Reading {model}"):
        is_firmware = runtime == "crt" or output_format == "mlf"
        module, parameters = options.read(model, chosen, firmware=is_firmware)
    with (
        console.step(f"Compiling for {chosen}"),
        slipway.transform.PassContext(opt_level=opt_level, config=config),
    ):
        module, parameters = in_precision(module, parameters, precision, chosen)
        library = relay.build(
            module,
            target=chosen,
            params=parameters,
            state=parse_states(state),
            mod_name=module_name or "default",
            **backend(executor, runtime),
        )
    with console.step(f"Writing {destination}"):
        if output_format == "mlf":
            slipway.micro.export_model_library_format(library, destination)
        else:
            library.export_library(str(destination), cc=cross_compiler, params_file=params_file)
    written = [params_file] if params_file is not None else []
    for kind in dumps:
        text = str(module) if kind == "relay" else library.get_lib().get_source(kind)
        path = destination.with_suffix(f".{kind}")
        write_file(path, text.encode())
        written.append(path)
    print_written(destination, written, str(chosen), as_json)


def destination_of(model: Path, output: Path | None, output_format: str | None) -> Path:
    """Return the file to write; raises OptionError for a suffix or a format that there is not."""
    need_one_of("--output-format", output_format, ("mlf", *(s.lstrip(".") for s in SUFFIXES)))
    if output is None:  # it is named after the model
        need_model(model)
    suffix = ".tar" if output_format in (None, "mlf") else f".{output_format}"
    destination = output or Path(model.with_suffix(suffix).name)
    if destination.suffix not in SUFFIXES:
        raise OptionError(
            f"--output {destination}: the suffix says what to write; "
            f"it is one of {', '.join(SUFFIXES)}.{did_you_mean(destination.suffix, SUFFIXES)}"
        )
    if output_format and destination.suffix != suffix:
        raise OptionError(f"--output-format {output_format} writes {suffix}, not {destination}.")
    return destination


def dumps_of(dump_code: str | None) -> list[str]:
    """Return the kinds of --dump-code; raises OptionError for one that there is not."""
    kinds = [kind.strip() for kind in dump_code.split(",")] if dump_code else []
    for kind in kinds:
        need_one_of("--dump-code", kind, DUMPS)
    return kinds


def print_written(destination: Path, others: Sequence[Path], target: str, as_json: bool) -> None:
    """Print the sizes of the artifact and of what was written beside it."""
    if as_json:
        files = [{"path": str(f), "bytes": f.stat().st_size} for f in (destination, *others)]
        print(json.dumps({"target": target, "files": files}, indent=1))
        return
    for path in others:
        console.out.print(f"{console.plain(path)}: {console.size_text(path.stat().st_size)}")
    console.out.print(
        f"{console.plain(destination)}: {console.size_text(destination.stat().st_size)}, "
        f"for {target}"
    )


def backend(executor: str, runtime: str | None) -> dict[str, Any]:
    """Return relay.build's `executor` and `runtime` for the options of those names.

    With the C runtime an ahead-of-time model gets the C interface, which microcontrollers use.
    """
    from slipway import relay

    if executor == "graph" and runtime in (None, "cpp"):
        return {}
    for_c = {"unpacked-api": True, "interface-api": "c"} if runtime == "crt" else {}
    return {
        "executor": relay.backend.Executor(executor, for_c if executor == "aot" else {}),
        "runtime": relay.backend.Runtime(runtime or "cpp"),
    }
