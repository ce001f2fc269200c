"""`slipway.quantize`: a real ONNX model and typical inputs become an integer model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError, did_you_mean
from slipway.frontends.binding import Constants
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.onnx.quantize.calibrate import calibrate, merged, with_zero
from slipway.frontends.onnx.quantize.graph import INT16_OPSET, MIN_OPSET, bound, prepare
from slipway.frontends.onnx.quantize.insert import insert
from slipway.frontends.onnx.quantize.plan import make_plan
from slipway.frontends.onnx.quantize.report import QuantizationReport, compare
from slipway.frontends.onnx.quantize.samples import read_samples
from slipway.frontends.onnx.reader import value_type
from slipway.ir.function import IRModule
from slipway.toolchain.link import write_file

ACTIVATIONS = ("int8", "int16")
REPORT_SAMPLES = 8


@dataclass(frozen=True)
class QuantizedModel:
    """What `quantize` gives; unpacks as ``mod, params = ...`` like `from_onnx`."""

    onnx: Any  # the ModelProto, with QuantizeLinear and DequantizeLinear
    module: IRModule
    params: dict[str, np.ndarray[Any, Any]]
    report: QuantizationReport | None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.module, self.params))

    def __repr__(self) -> str:
        kinds = [node.op_type for node in self.onnx.graph.node]
        pairs = kinds.count("QuantizeLinear")
        return f"<quantised model {self.onnx.graph.name}: {len(kinds)} nodes, {pairs} quantised>"

    def save(self, path: str | Path) -> None:
        """Write the QDQ ONNX file."""
        write_file(Path(path), self.onnx.SerializeToString())


def quantize(
    model: Any,
    calibration: Any,
    *,
    method: str = "minmax",
    activations: str = "int8",
    per_channel: bool = True,
    percentile: float = 99.99,
    exclude: Collection[str] = (),
    first: bool = True,
    last: bool = True,
    shape: Mapping[str, Sequence[int]] | None = None,
    constants: Constants | None = None,
    report: bool = True,
) -> QuantizedModel:
    """Quantise a real ONNX model (a path, bytes or ModelProto) after training.

    Weights become int8, symmetric, with a scale per output channel (`per_channel`); activations
    int8 with a zero point, or, with ``activations="int16"``, int16 around zero (int16x8, which
    writes opset 21).  `calibration` holds typical inputs, see `read_samples`; `method` is how their
    ranges are chosen: "minmax", "percentile" (what is beyond
    `percentile` % at each end is cut off) or "entropy".

    Products, sums, pools and what moves elements run on integers; softmax, normalisation and what
    `exclude` names (nodes or operators) stay real, and so do the first and last product without
    `first` and `last`.  `shape` fixes open dimensions; they are otherwise the first sample's.
    `constants` binds inputs to values, as `from_onnx` does: the new model has them inside.

    `report` compares every layer with the real model on the first samples.  Raises ModelError for a
    model or data that cannot be used.
    """
    if activations not in ACTIVATIONS:
        raise ModelError(
            f"activations {activations!r} is not one of {', '.join(ACTIVATIONS)}."
            f"{did_you_mean(activations, ACTIVATIONS)}"
        )
    graph = prepare(
        bound(model, constants or {}), INT16_OPSET if activations == "int16" else MIN_OPSET
    )
    real = graph.model()
    shapes = {i.name: value_type(i.name, i.type)[0] for i in real.graph.input}
    shapes.update({n: tuple(s) for n, s in (shape or {}).items() if n in shapes})
    samples = read_samples(calibration, shapes)
    plan = make_plan(graph, exclude, first, last)
    if not plan.tensors:
        raise ModelError("the model has no layer that can be quantised")
    ranges = with_zero(calibrate(real, list(plan.tensors), samples, method, percentile))
    groups: dict[str, list[Any]] = {}
    for name in plan.tensors:
        groups.setdefault(plan.root(name), []).append(ranges[name])
    shared = {root: merged(found) for root, found in groups.items()}
    made, scales = insert(graph, plan, shared, activations, per_channel)
    module, params = from_onnx(
        made, shape={n: a.shape for n, a in samples[0].items() if n in shapes}
    )
    found = None
    if report:
        few = samples[:REPORT_SAMPLES]
        found = compare(real, made, plan.tensors, scales, plan.kept_real, few)
    return QuantizedModel(made, module, params, found)
