"""Every tensor of an ONNX model as ONNX Runtime computes it, to hold an import against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.frontends.onnx.reader import load_model, onnx_package


def has_onnxruntime() -> bool:
    """Tell whether ONNX Runtime is installed."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def run_onnxruntime(
    model: Any, inputs: Mapping[str, Any], every_node: bool = False
) -> list[tuple[str, list[np.ndarray[Any, Any]]]]:
    """Return (name, results) of the model, or of each of its nodes in file order.

    The model runs without graph optimisations, so that every node is there and computes what the
    file says.
    """
    import onnxruntime

    onnx = onnx_package()
    proto = load_model(model)
    names = [o.name for o in proto.graph.output]
    wanted = [("the model", names)]
    if every_node:
        wanted = [
            (node.name or node.output[0], [o for o in node.output if o])
            for node in proto.graph.node
            if any(node.output)
        ]
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        proto = copy
        for _, outputs in wanted:
            for name in outputs:
                if name not in names:
                    names.append(name)
                    proto.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = dict(zip(names, session.run(names, dict(inputs)), strict=True))
    return [(name, [found[o] for o in outputs]) for name, outputs in wanted]
