"""``slipway explain``: why each kernel of a model is computed the way it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFile,
    ModelFormat,
    Signature,
)
from slipway.errors import ArgumentValueError


def explain(
    model: ModelFile,
    target: Annotated[
        str, typer.Option("--target", autocompletion=target_names, help="What it is to run on.")
    ] = "llvm",
    tuning_records: Annotated[
        Path | None, typer.Option(help="The choices of a search, which count before others.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="A search's trials: what was measured is told, too.")
    ] = None,
    measured_on: Annotated[
        str, typer.Option(help="Whose trials: a device's kind, or 'modelled cortex-a53'.")
    ] = "local",
    kernel: Annotated[
        str | None, typer.Option(help="Only those whose node or operator has this in its name.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Kernels at most, those with most work.")] = 8,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Tell of MODEL's kernels which tile each has, its traffic and limit, and what else there was.

    For example:

        slipway explain mobilenet.onnx

        slipway explain mobilenet.onnx --tuning-records m.records --database m.tuning.sqlite

        slipway explain mobilenet.onnx --target "llvm -mcpu=cortex-a72" --kernel depthwise

        slipway explain mobilenet.onnx --target qualcomm/adreno-6xx
    """
    from slipway.target import Target
    from slipway.transform.context import PassContext
    from slipway.tuning.database import Database
    from slipway.tuning.explain import explain_model
    from slipway.tuning.explain_gpu import explain_gpu_model

    model.stat()
    if database is not None and "://" not in database:
        Path(database).stat()  # which would be made
    chosen = Target(target)
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, chosen)
    config: dict[str, Any] = {}
    if tuning_records is not None:
        config["schedules.records"] = str(tuning_records)
    known = Database(database) if database is not None else None
    with PassContext(opt_level=3, config=config):
        tell = explain_model if chosen.kind.is_cpu else explain_gpu_model
        found: list[Any] = list(tell(module, chosen, parameters, known, measured_on))
    if kernel is not None:
        every, found = (
            found,
            [e for e in found if any(kernel in n for n in (*e.task.layers, str(e.task)))],
        )
        if every and not found:
            names = ", ".join((e.task.layers or (e.task.name,))[0] for e in every[:most])
            raise ArgumentValueError(
                f"no kernel with more than one way to compute it has {kernel!r} in the name of "
                f"its node or operator; --kernel takes a part of one, {names} for example"
            )
    found = found[:most]
    if as_json:
        print(json.dumps([e.values for e in found], indent=1))
        return
    for each in found:
        name = each.task.layers[0] if each.task.layers else each.task.name
        calls = f", {each.task.weight} times in the model" if each.task.weight > 1 else ""
        console.out.print(f"[bold]{console.layer(name)}[/]: {console.plain(each.task)}{calls}")
        console.out.print(console.plain(each.paragraph) + "\n")
    if not found:
        console.out.print("No kernel of this model can be computed in more than one way.")
