"""Arguments and options that several commands have, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from slipway.cli.exit_codes import OptionError
from slipway.errors import did_you_mean

# Of a model file, and how it is compiled
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="The model: a .onnx, .tflite or .pt2 file.")
]
ModelFormat = Annotated[
    str | None, typer.Option(help="onnx, tflite or pytorch, where the suffix does not tell.")
]
InputShapes = Annotated[
    str | None,
    typer.Option(help='Shapes of inputs that the model leaves open: "image:[1,3,224,224]".'),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE",
        help="What a dimension is that an ONNX file has a name for; 1..8 stays open.",
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="INPUT=OUTPUT",
        help="An input that is kept between runs, and the output that is its next value.",
    ),
]
Bindings = Annotated[
    list[str] | None,
    typer.Option(
        "--bind",
        metavar="NAME=VALUE",
        help="Make an input a constant, for example sr=16000 or mask=@mask.npy; repeatable.",
    ),
]
DenseRounding = Annotated[
    str | None,
    typer.Option(
        help="How often a TFLite model's int8 matrix products are rounded: single as LiteRT does, "
        "double as TensorFlow Lite Micro. [default: double for microcontrollers, else single]"
    ),
]
Signature = Annotated[
    str | None,
    typer.Option(help="The entry of a TFLite file. [default: its first subgraph]"),
]
OptLevel = Annotated[
    int, typer.Option("--opt-level", "-O", min=0, max=4, help="How hard to optimise.")
]

# Of a run
_MOST_RUNS = 2**31 - 1  # what a device is told is 32 bits long
Inputs = Annotated[
    Path | None, typer.Option("--inputs", "-i", help="A .npz with an array per input.")
]
Number = Annotated[int, typer.Option(min=1, max=_MOST_RUNS, help="Runs in each measurement.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="Threads of the device. [default: all its processors]"),
]
Repeat = Annotated[int, typer.Option(min=1, max=_MOST_RUNS, help="How many times to measure.")]

# Of the device that it runs on (see `connection.Connection`)
RpcHost = Annotated[str | None, typer.Option(help="Run on the device at this address.")]
RpcPort = Annotated[int, typer.Option(help="The device's port.")]
RpcKey = Annotated[
    str, typer.Option(help="The name that the device must have; with --tracker, its kind.")
]
Tracker = Annotated[
    str | None, typer.Option(help="Ask the tracker at HOST:PORT for a device of --rpc-key.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.1, help="Seconds to wait for a free device, or to connect. [default: 600, or 10]"
    ),
]

# Of what is printed
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

# Of what listens: servers, trackers, proxies
ListenHost = Annotated[str, typer.Option(help="The address to listen on.")]
ListenPort = Annotated[int, typer.Option(help="The port; the next free one when it is taken.")]
CustomAddress = Annotated[
    str | None, typer.Option(help="The address that the tracker gives to clients.")
]
TokenFile = Annotated[
    Path | None, typer.Option(help="The token that peers on other machines must have.")
]
Certificate = Annotated[Path | None, typer.Option(help="A certificate (PEM): speak TLS only.")]
CertificateKey = Annotated[Path | None, typer.Option(help="The certificate's key (PEM).")]


def need_one_of(option: str, value: str | None, known: Sequence[str]) -> None:
    """Raise OptionError, with those there are, for a value that is none of them."""
    if value is not None and value not in known:
        hint = did_you_mean(value, known)
        raise OptionError(f"{option} {value}: not one of {', '.join(known)}.{hint}")
