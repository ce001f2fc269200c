"""Names for the nodes of a model that have none: those that the imported graph tells of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from slipway.frontends.onnx.reader import load_model, onnx_package


def name_of(node: Any) -> str:
    """Return what a node is called: its name, or that of its first result."""
    # str: a name that is no UTF-8 comes as bytes.
    return str(node.name or (node.output[0] if node.output else "?"))


def export_node_renamed_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model in which every node has the name that it is known by after the import.

    Reports, profiles and `slipway bisect` speak of nodes by these.  The model itself stays as it
    is; weights go into one file beside it when they are too large for one.
    """
    onnx = onnx_package()
    renamed = onnx.ModelProto()
    renamed.CopyFrom(load_model(model))
    _name_nodes(renamed.graph)
    limit = onnx.checker.MAXIMUM_PROTOBUF
    onnx.save(renamed, Path(path), save_as_external_data=renamed.ByteSize() > limit)


def _name_nodes(graph: Any) -> None:
    for node in graph.node:
        node.name = name_of(node)
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                _name_nodes(inner)
