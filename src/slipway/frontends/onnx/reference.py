"""Every tensor of an ONNX model as ONNX Runtime computes it, to hold an import against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slipway.frontends.binding import bound_constant
from slipway.frontends.onnx.reader import load_model, onnx_package, value_type


def has_onnxruntime() -> bool:
    """Return whether ONNX Runtime is installed."""
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
    proto = load_model(model)
    names = [o.name for o in proto.graph.output]
    wanted = [("the model", names)]
    if every_node:
        wanted = [
            (node.name or node.output[0], [o for o in node.output if o])
            for node in proto.graph.node
            if any(node.output)
        ]
        names += [o for _, outputs in wanted for o in outputs if o not in names]
    found = _run(proto, inputs, names)
    return [(name, [found[o] for o in outputs]) for name, outputs in wanted]


def as_inputs(model: Any, constants: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return what inputs are bound to as arrays of their types."""
    types = {i.name: i.type for i in load_model(model).graph.input}
    return {
        name: bound_constant(name, value, *value_type(name, types[name])).array
        for name, value in constants.items()
    }


def tensors_of(
    model: Any, inputs: Mapping[str, Any], names: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the named tensors of a model, inputs included, without graph optimisations.

    ONNX Runtime computes them, or where it is not installed the onnx package's evaluator.
    """
    proto = load_model(model)
    inner = list(dict.fromkeys(name for name in names if name not in inputs))
    found = {name: np.asarray(inputs[name]) for name in names if name in inputs}
    if not inner:
        return found
    if has_onnxruntime():
        return found | _run(proto, inputs, inner)
    from onnx.reference import ReferenceEvaluator

    results = ReferenceEvaluator(_with_outputs(proto, inner)).run(inner, dict(inputs))
    return found | {n: np.asarray(v) for n, v in zip(inner, results, strict=True)}


def _with_outputs(proto: Any, names: Sequence[str]) -> Any:
    """Return a copy of a model that also gives the named tensors."""
    onnx = onnx_package()
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    known = {o.name for o in proto.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    return copy


def _run(
    proto: Any, inputs: Mapping[str, Any], names: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Run a model in ONNX Runtime without graph optimisations; return the named tensors."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        _with_outputs(proto, names).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(names, session.run(list(names), dict(inputs)), strict=True))
