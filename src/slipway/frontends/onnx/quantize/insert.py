"""Writing a plan into the graph: integers for weights, QuantizeLinear and DequantizeLinear pairs.

The result of a pair keeps the tensor's name, so that every reader reads what was stored; the
real tensor in front of it gets "_real" appended to its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.compiler.quantize.histogram import Range
from slipway.frontends.onnx.quantize.graph import Array, Graph
from slipway.frontends.onnx.quantize.plan import Plan
from slipway.frontends.onnx.reader import onnx_package

INT8_LEVELS = 255
WEIGHT_LIMIT = 127  # symmetric: -127 to 127
BIAS_LIMIT = 1 << 30


@dataclass(frozen=True)
class Scale:
    """How a tensor is stored."""

    scale: np.float32
    zero_point: int
    dtype: str


def activation_scale(bounds: Range, dtype: str) -> Scale:
    """Return scale and zero point for a range that holds 0: int8 asymmetric, int16 symmetric."""
    low, high = bounds
    if dtype == "int16":
        size = max(-low, high) / 32767
        return Scale(np.float32(size if size > 0 else 1.0), 0, dtype)
    size = (high - low) / INT8_LEVELS
    if not size > np.finfo(np.float32).tiny:
        return Scale(np.float32(1.0), -128 if low >= 0 else 0, dtype)
    return Scale(np.float32(size), int(np.clip(round(-128 - low / size), -128, 127)), dtype)


def insert(
    graph: Graph, plan: Plan, ranges: Mapping[str, Range], dtype: str, per_channel: bool
) -> tuple[Any, dict[str, Scale]]:
    """Return the QDQ model of a planned graph, and how each tensor is stored."""
    scales = {n: activation_scale(ranges[plan.root(n)], dtype) for n in plan.tensors}
    writer = _Writer(graph, scales, per_channel)
    for node in plan.products:
        writer.product(node)
    return writer.finish(), scales


class _Writer:
    def __init__(self, graph: Graph, scales: Mapping[str, Scale], per_channel: bool) -> None:
        self.graph = graph
        self.scales = scales
        self.per_channel = per_channel
        self.front: list[Any] = []  # dequantised weights, made before everything else
        self.weights: dict[tuple[str, int], tuple[str, Array]] = {}
        self.named: dict[str, str] = {}  # graph inputs -> their stored form

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> Any:
        name = f"{output}_{'quantize' if kind == 'QuantizeLinear' else 'dequantize'}"
        return onnx_package().helper.make_node(kind, inputs, [output], name=name, **attributes)

    def _constant(self, name: str, value: Array) -> str:
        while name in self.graph.constants:
            name += "_"
        self.graph.constants[name] = value
        return name

    def product(self, node: Any) -> None:
        """Store a product's weights in int8 and its bias in int32."""
        axis = 0
        if node.op_type == "ConvTranspose" or (
            node.op_type == "Gemm" and not self.graph.attribute(node, "transB", 0)
        ):
            axis = 1
        elif node.op_type == "MatMul":
            axis = self.graph.constants[node.input[1]].ndim - 1
        data_scale = float(self.scales[node.input[0]].scale)
        has_bias = node.op_type != "MatMul" and len(node.input) > 2 and bool(node.input[2])
        bias = self.graph.constants.get(node.input[2]) if has_bias else None
        if bias is not None and bias.reshape(-1).shape != (
            self.graph.constants[node.input[1]].shape[axis],
        ):
            bias = None
        matrix = node.op_type == "MatMul"
        name, factors = self._weights(node.input[1], axis, data_scale, bias, matrix)
        node.input[1] = name
        if bias is not None:
            node.input[2] = self._bias(node.input[2], bias.reshape(-1), factors * data_scale)

    def _weights(
        self, name: str, axis: int, data_scale: float, bias: Array | None, matrix: bool
    ) -> tuple[str, Array]:
        known = self.weights.get((name, axis))
        if known is not None:
            return known
        array = self.graph.constants[name].astype(np.float64)
        others = tuple(a for a in range(array.ndim) if a != axis)
        largest = np.abs(array).max(axis=others) if array.size else np.zeros(array.shape[axis])
        # Tiny weights beside a large bias would put the bias beyond int32.
        minimum = 0.0 if bias is None else np.abs(bias.reshape(-1)) / (data_scale * BIAS_LIMIT)
        factors = np.maximum(largest / WEIGHT_LIMIT, minimum)
        if not self.per_channel or array.ndim < 2 or (matrix and array.ndim > 2):
            factors = np.asarray(factors.max(initial=0.0))
        factors = np.where(factors > np.finfo(np.float32).tiny, factors, 1.0).astype(np.float32)
        view = [1] * array.ndim
        if factors.ndim:
            view[axis] = -1
        whole = np.round(array / factors.astype(np.float64).reshape(view if factors.ndim else ()))
        stored = np.clip(whole, -WEIGHT_LIMIT, WEIGHT_LIMIT).astype(np.int8)
        result = (self._dequantized(name, stored, factors, axis), factors.astype(np.float64))
        self.weights[name, axis] = result
        return result

    def _bias(self, name: str, bias: Array, factors: Array) -> str:
        whole = np.round(bias.astype(np.float64) / factors)
        stored = np.clip(whole, -(1 << 31), (1 << 31) - 1).astype(np.int32)
        return self._dequantized(name, stored, factors.astype(np.float32), 0)

    def _dequantized(self, name: str, stored: Array, factors: Array, axis: int) -> str:
        integers = self._constant(f"{name}_quantized", stored)
        scale = self._constant(f"{name}_scale", factors)
        zero = self._constant(f"{name}_zero_point", np.zeros(factors.shape, stored.dtype))
        output = f"{integers}_real"
        attributes = {"axis": axis} if factors.ndim else {}
        self.front.append(
            self._node("DequantizeLinear", [integers, scale, zero], output, **attributes)
        )
        return output

    def _pair(self, source: str, target: str, stored: Scale) -> list[Any]:
        scale = self._constant(f"{target}_scale", np.asarray(stored.scale))
        zero = self._constant(f"{target}_zero_point", np.asarray(stored.zero_point, stored.dtype))
        middle = f"{target}_quantized"
        return [
            self._node("QuantizeLinear", [source, scale, zero], middle),
            self._node("DequantizeLinear", [middle, scale, zero], target),
        ]

    def finish(self) -> Any:
        """Return the model with a pair after every stored tensor."""
        nodes = list(self.front)
        for name in self.graph.inputs:
            if name in self.scales:
                self.named[name] = f"{name}_stored"
                nodes += self._pair(name, self.named[name], self.scales[name])
        for node in self.graph.nodes:
            for position, name in enumerate(node.input):
                node.input[position] = self.named.get(name, name)
            appended: list[Any] = []
            for position, name in enumerate(node.output):
                if name in self.scales:
                    node.output[position] = f"{name}_real"
                    appended += self._pair(f"{name}_real", name, self.scales[name])
            nodes += [node, *appended]
        self.graph.nodes = nodes
        return self.graph.model()
