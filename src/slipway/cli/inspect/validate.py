"""``slipway validate``: a model beside its reference over a whole set of samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.connection import Connection, check_can_run
from slipway.cli.exit_codes import LIMIT, OptionError
from slipway.cli.model_file import need_file, parse_bindings, parse_dims, parse_shapes
from slipway.cli.options import (
    AsJson,
    Bindings,
    Dims,
    InputShapes,
    RpcHost,
    RpcKey,
    RpcPort,
    Timeout,
    Tracker,
)
from slipway.errors import ModelError

if TYPE_CHECKING:
    from slipway.deploy.validate import Validation

ARTIFACTS = (".tar", ".so")
NONE = "none"


def validate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, or an artifact: .tar or .so.")
    ],
    dataset: Annotated[
        Path,
        typer.Option(
            help="A .npz with an array of samples for each input and, where they are known, the "
            "classes as `labels`; a .npy; or a folder of them."
        ),
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            help="A model file that says what is right, which its own framework runs; none: "
            "labels only. [default: MODEL, where it is a model file]"
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target", autocompletion=target_names, help="What a model file is compiled for."
        ),
    ] = ("llvm"),
    min_top1: Annotated[
        float | None, typer.Option(min=0, max=1, help="Exit with 4 below this share of the labels.")
    ] = None,
    min_sqnr: Annotated[
        float | None, typer.Option(help="Exit with 4 where an output has fewer decibels.")
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Run MODEL on every sample, here or on a device, and say how good its outputs are.

    Of each output: SQNR, cosine and the largest error beside the reference. Of the classes (the
    largest of a sample's scores): the share that the labels and the reference have, too.

    For example:

        slipway validate mobilenet.onnx --dataset images.npz

        slipway validate mobilenet_int8.onnx --dataset images.npz --reference mobilenet.onnx

        slipway validate kws.tar --dataset clips/ --reference none --min-top1 0.9
    """
    import slipway
    from slipway.deploy.reference import reference_of
    from slipway.deploy.validate import read_dataset
    from slipway.deploy.validate import validate as run
    from slipway.target import Target

    for path in (model, dataset):
        path.stat()
    constants = parse_bindings(bind)
    is_artifact = model.suffix.lower() in ARTIFACTS
    if reference is None and is_artifact:
        raise ModelError(
            f"{model} does not hold what it was compiled from: name the model file with "
            "--reference, or give --reference none to compare classes with the labels only"
        )
    kept = read_dataset(dataset)
    if not kept.may_have_labels:
        check_without_labels(dataset, reference, min_top1)
    if reference not in (None, NONE):
        need_file(Path(reference))
    if not is_artifact:
        check_can_run(Target(target), rpc_host, tracker)
    connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
    if is_artifact:
        made = slipway.load(model)
    else:
        with console.step(f"Compiling {model} for {target}"):
            made = slipway.compile(
                model, target, shapes=parse_shapes(input_shapes), dims=parse_dims(dim),
                constants=constants, quiet=True,
            )  # fmt: skip
    if connection.remote is not None:
        made = made.on(connection.remote)
    samples = kept.samples(made.inputs)
    if samples.labels is None:
        check_without_labels(dataset, reference, min_top1)
    beside = None
    if reference != NONE:
        beside = reference_of(Path(reference) if reference else model, constants)
    with console.step(f"Running {model.name} on {connection.where}"):
        found = run(made, samples, beside)
    if as_json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        print_validation(found)
    too_few = min_top1 is not None and found.top1 is not None and found.top1 < min_top1
    too_loud = min_sqnr is not None and any(
        not o.sqnr_db >= min_sqnr
        for o in found.outputs  # NaN passes no gate
    )
    if too_few or too_loud:
        raise typer.Exit(LIMIT)


def check_without_labels(dataset: Path, reference: str | None, min_top1: float | None) -> None:
    """Raise OptionError where options ask for what only labels can tell."""
    if reference == NONE:
        raise OptionError(
            f"--reference none: {dataset} has no `labels`, so that nothing says what is right"
        )
    if min_top1 is not None:
        raise OptionError(f"--min-top1 needs the array `labels` in {dataset}")


def print_validation(found: Validation) -> None:
    """Print a row for each output, and the shares of right classes."""
    if found.outputs:
        rows = [
            (console.plain(o.name), f"{o.sqnr_db:.1f}", f"{o.cosine:.6f}", f"{o.largest_error:.3g}")
            for o in found.outputs
        ]
        columns = ("output", "SQNR dB", "cosine", "largest error")
        console.table(columns, rows, title=f"Beside {console.plain(found.reference)}")
    for o in found.outputs:
        if o.not_finite:
            console.out.print(
                f"[yellow]![/] {console.plain(o.name)}: {o.not_finite} of {o.values} values are "
                "NaN or infinite in both, and are not compared"
            )
    for share, label in (
        (found.top1, "have the label's class"),
        (found.reference_top1, "of the reference have it"),
        (found.same_top1, "have the reference's class"),
    ):
        if share is not None:
            console.out.print(f"{share:7.2%} of {found.samples} samples {label}")
