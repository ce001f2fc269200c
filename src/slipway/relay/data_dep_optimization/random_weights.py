"""Models with weights of many zeros, in classic TVM's words: the weights stay dense here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.errors import InvalidShapeError
from slipway.ir.function import IRModule
from slipway.relay.data_dep_optimization import bsr_conv2d, bsr_dense, simplify_fc_transpose
from slipway.relay.expr import Call, Function, Op, Var
from slipway.relay.visit import post_order
from slipway.runtime.ndarray import NDArray, array
from slipway.topi.sparse.random_matrix import random_bsr_matrix

THRESHOLD = 0.8


def convert_model_dense_to_sparse(
    mod: IRModule,
    params: Mapping[str, NDArray],
    random_params: bool = False,
    bs_r: int = 1,
    bs_c: int = 1,
    sparsity: float = 0.85,
    layout: str = "NHWC",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return the model for weights of many zeros, and its parameters; the weights stay dense.

    With `random_params` the weights of products, and of convolutions of 1 x 1, become random ones
    with a part `sparsity` of zeros, in blocks of (`bs_r`, `bs_c`).
    """
    function, kept = simplify_fc_transpose.convert(mod, dict(params))
    if random_params:
        for name, shape in _weights(function, layout).items():
            if name in kept:
                kept[name] = _zeroed(name, kept[name], shape, (bs_r, bs_c), 1 - sparsity)
    function, kept = bsr_dense.convert(function, kept, (bs_r, bs_c), THRESHOLD)
    function, kept = bsr_conv2d.convert(function, kept, (bs_r, bs_c), THRESHOLD, layout)
    return IRModule.from_expr(function), kept


def sparse_sketch_rules() -> list[Any]:
    """Return no rules: products with sparse weights are searched as any other computation is."""
    return []


def _weights(function: Function, layout: str) -> dict[str, tuple[int, int]]:
    """Return the weights that are matrices: name -> (rows, columns)."""
    found = {}
    for call in post_order(function):
        if not (isinstance(call, Call) and isinstance(call.op, Op) and len(call.args) > 1):
            continue
        weight = call.args[1]
        if not isinstance(weight, Var) or weight.type_annotation is None:
            continue
        shape = [int(d) for d in weight.tensor_type.shape]
        if call.op.name == "nn.dense":
            found[weight.name_hint] = (shape[0], shape[1])
        elif call.op.name == "nn.conv2d":
            window = shape[:2] if layout == "NHWC" else shape[2:]
            if window == [1, 1]:
                rest = shape[2:] if layout == "NHWC" else shape[:2]
                found[weight.name_hint] = (rest[0], rest[1])
    return found


def _zeroed(
    name: str, values: NDArray, matrix: tuple[int, int], block: tuple[int, int], density: float
) -> NDArray:
    try:
        made = random_bsr_matrix(*matrix, *block, density, str(values.dtype))
    except InvalidShapeError as error:
        raise InvalidShapeError(f"the weight {name}: {error}") from error
    return array(np.asarray(made.todense().reshape(values.shape), order="C"))
