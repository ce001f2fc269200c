"""How far each layer of a quantised model is from the real one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slipway.frontends.onnx.quantize.calibrate import run_tensors
from slipway.frontends.onnx.quantize.insert import Scale
from slipway.frontends.onnx.quantize.samples import Sample

EXACT_DB = 200.0  # what is printed for no error at all


@dataclass(frozen=True)
class LayerError:
    """The error of one stored tensor, with all that came before it quantised too.

    `sqnr_db` is 10 log10 of the real signal's power over the error's.
    """

    layer: str
    operator: str
    tensor: str
    sqnr_db: float
    max_abs: float
    scale: float
    zero_point: int
    dtype: str


@dataclass(frozen=True)
class QuantizationReport:
    """Errors in graph order, and which layers stayed real and why."""

    layers: tuple[LayerError, ...]
    kept_real: tuple[tuple[str, str], ...]

    def to_json(self) -> str:
        """Return the report as JSON."""
        content = {"layers": [asdict(e) for e in self.layers], "kept_real": dict(self.kept_real)}
        return json.dumps(content, indent=2)

    def rows(self) -> list[tuple[str, ...]]:
        """Return layer, operator, SQNR, largest error and scale as text, a row per layer."""
        return [
            (e.layer, e.operator, f"{e.sqnr_db:.1f}", f"{e.max_abs:.4g}", f"{e.scale:.4g}")
            for e in self.layers
        ]

    def table(self) -> str:
        """Return the report as aligned text."""
        rows = [("layer", "operator", "SQNR dB", "max error", "scale"), *self.rows()]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        lines = [
            "  ".join(
                c.ljust(w) if i < 2 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        lines += [f"{name} stays real: {why}" for name, why in self.kept_real]
        return "\n".join(lines)


def signal_to_noise_db(real: Any, given: Any) -> float:
    """Return 10 log10(power of `real` / power of the difference), at most EXACT_DB."""
    return _decibels(*_powers(real, given))


def _powers(real: Any, given: Any) -> tuple[float, float]:
    wide = np.asarray(real, np.float64)
    return float(np.square(wide).sum()), float(np.square(wide - given).sum())


def _decibels(signal: float, noise: float) -> float:
    if noise == 0.0:
        return EXACT_DB
    return min(10.0 * float(np.log10(max(signal, 1e-300) / noise)), EXACT_DB)


def compare(
    real: Any,
    quantized: Any,
    tensors: Mapping[str, Any],
    scales: Mapping[str, Scale],
    kept_real: Mapping[str, str],
    samples: Sequence[Sample],
) -> QuantizationReport:
    """Run both models on the samples and return the error of each stored tensor."""
    inputs = {i.name for i in real.graph.input}
    names = [n for n in tensors if n not in inputs]
    powers = {n: np.zeros(2) for n in names}
    largest = dict.fromkeys(names, 0.0)
    pairs = zip(
        run_tensors(real, names, samples), run_tensors(quantized, names, samples), strict=True
    )
    for wanted, given in pairs:
        for name in names:
            powers[name] += _powers(wanted[name], given[name])
            difference = np.abs(wanted[name] - given[name])
            largest[name] = max(largest[name], float(difference.max(initial=0.0)))
    layers = tuple(
        LayerError(
            tensors[n].name, tensors[n].op_type, n, _decibels(*powers[n]), largest[n],
            float(scales[n].scale), scales[n].zero_point, scales[n].dtype,
        )
        for n in names
    )  # fmt: skip
    return QuantizationReport(layers, tuple(kept_real.items()))
