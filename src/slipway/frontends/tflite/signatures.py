"""Signatures: the named entries of a TFLite file, each with names for a subgraph's ends.

A file may hold several ("prefill" and "decode" of a language model, "train" and "infer").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slipway.errors import ModelError, did_you_mean
from slipway.frontends.tflite.file_model import FileModel, FileSignature, SubGraph
from slipway.frontends.tflite.flatbuffer import Table


def signatures_of(root: Table, graphs: Sequence[SubGraph]) -> dict[str, FileSignature]:
    """Return the signatures of a file by their keys.  Raises ModelError for damaged ones."""
    found: dict[str, FileSignature] = {}
    for table in root.tables(7):
        key, number = table.text(2), table.scalar(4, "uint")
        if number >= len(graphs):
            raise ModelError(
                f"the TFLite file is damaged: the signature {key!r} is subgraph {number}, but "
                f"there are {len(graphs)}"
            )
        graph = graphs[number]
        found.setdefault(
            key,
            FileSignature(
                number,
                _named(table, 0, key, graph.inputs, "an input"),
                _named(table, 1, key, graph.outputs, "an output"),
            ),
        )
    return found


def _named(table: Table, column: int, key: str, known: Sequence[int], what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in table.tables(column):
        name, tensor = entry.text(0), entry.scalar(1, "uint")
        if tensor not in known:
            raise ModelError(
                f"the TFLite file is damaged: the signature {key!r} gives tensor {tensor} the name "
                f"{name!r}, which is not {what} of its subgraph"
            )
        found[name] = tensor
    return found


def of_signature(model: FileModel, key: str | None) -> FileModel:
    """Return the model whose main subgraph is a signature's, under the signature's names.

    Outputs are in the order of their names.  None leaves the model as it is: subgraph 0 and the
    names of tensors.  Raises ModelError for a key that
    the file has not.
    """
    if key is None:
        return model
    chosen = model.signatures.get(key)
    if chosen is None:
        listed = ", ".join(repr(k) for k in model.signatures)
        raise ModelError(
            f"the TFLite file has no signature {key!r}: it has {listed}."
            f"{did_you_mean(key, model.signatures)}"
            if listed
            else f"the TFLite file has no signature {key!r}, nor any other: leave the signature out"
        )
    graph = model.subgraphs[chosen.subgraph]
    names = {tensor: name for name, tensor in chosen.inputs.items()}
    tensors = tuple(replace(t, name=names.get(t.index, t.name)) for t in graph.tensors)
    outputs = sorted(chosen.outputs.items())
    made = replace(graph, tensors=tensors, outputs=tuple(tensor for _, tensor in outputs))
    labels = {}
    if not chosen.subgraph:  # the file says them of subgraph 0's outputs
        indices = enumerate(graph.outputs.index(tensor) for _, tensor in outputs)
        labels = {here: model.labels[there] for here, there in indices if there in model.labels}
    subgraphs = list(model.subgraphs)
    subgraphs[chosen.subgraph] = made
    return replace(
        model, subgraphs=tuple(subgraphs), main=chosen.subgraph, labels=labels,
        output_names=tuple(name for name, _ in outputs),
    )  # fmt: skip
