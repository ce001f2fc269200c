"""What the commands for language models share: their options, and how they load a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.connection import Connection
from slipway.cli.exit_codes import OptionError
from slipway.cli.outputs import need_output_folder

if TYPE_CHECKING:
    from slipway.llm import LanguageModel

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A .gguf file, a folder in the form of transformers, or one of `slipway chat --save`.",
    ),
]
Context = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens that the model can hold. [default: its own, at most 2048]"),
]
Quantise = Annotated[
    str, typer.Option(help="Quantise weights of floats: q8_0 or q4_0. [default: as they are]")
]
Caches = Annotated[
    str,
    typer.Option(
        help="What the caches hold: float32, float16 or bfloat16. [default: float16 with weights "
        "in blocks, where the target converts it by an instruction]"
    ),
]
Embeddings = Annotated[
    str,
    typer.Option(
        help="Make vectors of texts, by the mean of a text's tokens, the last of them, or the "
        "first: mean, last or cls; none: write text. [default: as the model's files say]"
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", autocompletion=target_names, help="What to compile for. [default: this machine]"
    ),
]
NATIVE = "llvm -mcpu=native"


def load(
    model: Path,
    context: int | None,
    quantise: str,
    target: str | None,
    connection: Connection,
    save: Path | None = None,
    caches: str = "",
    embeddings: str = "",
) -> LanguageModel:
    """Return the model, compiled where it is not, and loaded where it is to run."""
    from slipway import llm
    from slipway.llm.saved import DESCRIPTION, LIBRARY, described
    from slipway.toolchain.tempdir import made_whole, tempdir

    if target is None and connection.remote is not None and not (model / DESCRIPTION).exists():
        raise OptionError("--target: say what to compile for, as the device is another machine.")
    if (model / DESCRIPTION).exists():
        given = {"--context": context, "--quantise": quantise, "--target": target, "--save": save,
                 "--caches": caches, "--embeddings": embeddings}  # fmt: skip
        for option, value in given.items():
            if value not in (None, ""):
                raise OptionError(f"{option}: {model} is compiled already: give the model itself.")
        description, tokenizer = described(model)
        return llm.LanguageModel(connection.graph_module(model / LIBRARY), description, tokenizer)
    need_output_folder("--save", save)
    model.stat()
    with console.step(f"Reading {model}"):
        source = llm.Source.read(model)
    with console.step(f"Compiling {source.name} for {target or NATIVE}"):
        library, description = llm.compile_model(
            source, target or NATIVE, context, quantise=quantise, caches=caches,
            pooling={"": None, "none": ""}.get(embeddings, embeddings),
        )  # fmt: skip
    with tempdir() as folder:
        kept = folder.path / "model" if save is None else save
        with made_whole(kept):
            llm.save(kept, library, description, source.tokenizer)
        module = connection.graph_module(kept / LIBRARY)
    return llm.LanguageModel(module, description, source.tokenizer)
