"""``slipway quantize``: a real ONNX model becomes an integer one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slipway.cli import console
from slipway.cli.model_file import parse_bindings, parse_shapes
from slipway.cli.options import AsJson, Bindings, InputShapes
from slipway.cli.outputs import need_output
from slipway.deploy.model_file import format_of
from slipway.errors import ModelError
from slipway.toolchain.link import write_file


def quantize(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model: an .onnx file.")],
    calibration: Annotated[
        Path,
        typer.Option(
            "--calibration",
            help="Typical inputs: a .npz with an array per input, a .npy, or a folder of them.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The QDQ model. [default: MODEL_int8.onnx]"),
    ] = None,
    method: Annotated[
        str, typer.Option(help="How ranges are chosen: minmax, percentile or entropy.")
    ] = "minmax",
    percentile: Annotated[
        float, typer.Option(help="For percentile: where each end is cut.")
    ] = 99.99,
    activations: Annotated[
        str, typer.Option(help="int8, or int16 for twice the memory and far less error.")
    ] = "int8",
    per_channel: Annotated[
        bool, typer.Option(help="A scale for each output channel of the weights.")
    ] = True,
    exclude: Annotated[
        str | None, typer.Option(help="Nodes or operators to leave real (with commas).")
    ] = None,
    first: Annotated[bool, typer.Option(help="Quantise the first convolution or product.")] = True,
    last: Annotated[bool, typer.Option(help="Quantise the last convolution or product.")] = True,
    input_shapes: InputShapes = None,
    bind: Bindings = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write the errors of all layers as JSON.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Quantise MODEL after training, and print the error of each layer.

    For example:

        slipway quantize mobilenet.onnx --calibration images.npz -o mobilenet_int8.onnx

        slipway quantize bert.onnx --calibration samples/ --method percentile --exclude Gemm

        slipway quantize kws.onnx --calibration clips.npy --activations int16 --report errors.json
    """
    if (kind := format_of(model)) != "onnx":
        raise ModelError(
            f"{model}: quantize reads .onnx, and this is a {kind} model. A TFLite model is "
            "quantised by the converter that writes it, a PyTorch one by "
            "torch.ao.quantization; Slipway compiles what they give"
        )
    calibration.stat()
    destination = output or model.with_name(f"{model.stem}_{activations}.onnx")
    need_output("--output", destination, model, calibration)
    need_output("--report", report, model, calibration, destination)

    import slipway

    with console.step(f"Quantising {model}"):
        made = slipway.quantize(
            model,
            calibration,
            method=method,
            percentile=percentile,
            activations=activations,
            per_channel=per_channel,
            exclude=[name.strip() for name in exclude.split(",")] if exclude else (),
            first=first,
            last=last,
            shape=parse_shapes(input_shapes),
            constants=parse_bindings(bind),
        )
    made.save(destination)
    assert made.report is not None  # it has just been made
    if report is not None:
        write_file(report, f"{made.report.to_json()}\n".encode())
    if as_json:
        print(made.report.to_json())
        return
    columns = ("layer", "operator", "SQNR dB", "max error", "scale")
    console.table(columns, made.report.rows(), title="Error of each layer", text_columns=2)
    for name, why in made.report.kept_real:
        console.out.print(f"{console.plain(name)} stays real: {why}")
    console.out.print(
        f"{console.plain(destination)}: {console.size_text(destination.stat().st_size)}"
    )
