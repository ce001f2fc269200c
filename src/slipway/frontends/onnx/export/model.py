"""`to_onnx`: a relay graph as an ONNX model, for systems that read that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.errors import MissingPackageError, ModelError
from slipway.frontends.onnx.export import control, elementwise, movement, products, windows
from slipway.frontends.onnx.export.writer import OPSET_VERSIONS, Writer
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.transform.graph.classic import (
    ConvertLayout,
    FoldConstant,
    InferType,
    SimplifyInference,
)
from slipway.transform.graph.inline import inline
from slipway.transform.graph.outline_branches import outline_branches
from slipway.version import install_line

_TABLES = (elementwise, movement, products, windows, control)
WRITERS = {name: write for family in _TABLES for name, write in family.WRITERS.items()}
# What ONNX has with channels first only.
_LAYOUTS = {
    "nn.conv2d": ["NCHW", "OIHW"], "nn.max_pool2d": ["NCHW"], "nn.avg_pool2d": ["NCHW"],
}  # fmt: skip


def to_onnx(
    relay_ir: IRModule | Function,
    params: Mapping[str, Any] | None,
    name: str,
    opset_version: int = 13,
    path: str | None = None,
) -> Any:
    """Return the ONNX model of a relay function, whose `params` become initializers.

    With `path` the model is written there too.  Raises ModelError for an opset or operators that
    are not served, all at once.
    """
    if opset_version not in OPSET_VERSIONS:
        raise ModelError(
            f"opset_version={opset_version}: to_onnx writes {OPSET_VERSIONS[0]} to "
            f"{OPSET_VERSIONS[-1]}"
        )
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError(
            f"to_onnx needs the package onnx: {install_line('onnx')}"
        ) from error
    function = relay_ir["main"] if isinstance(relay_ir, IRModule) else relay_ir
    if not isinstance(function, Function):
        raise ModelError(f"to_onnx takes a relay function, not a {type(function).__name__}")
    module: Any = relay_ir if isinstance(relay_ir, IRModule) else IRModule.from_expr(function)
    module = module.update("main", inline(module["main"], module))
    for step in (InferType(), SimplifyInference(), ConvertLayout(_LAYOUTS), FoldConstant(),
                 InferType()):  # fmt: skip
        module = step(module)
    module = InferType()(module.update("main", outline_branches(module["main"])))
    values = {k: np.asarray(v.numpy() if hasattr(v, "numpy") else v)
              for k, v in (params or {}).items()}  # fmt: skip
    made = Writer(onnx, WRITERS, values, opset_version).model(module["main"], name)
    onnx.checker.check_model(made)
    if path:
        onnx.save(made, path)
    return made
