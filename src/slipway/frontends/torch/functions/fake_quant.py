"""Rounding to the steps of a quantised type in floats, as modules in training for it have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.torch.converters import NodeView, converter, number
from slipway.relay.expr import Constant, Expr

if TYPE_CHECKING:
    from torch.export import ExportedProgram

OBSERVED = "_fused_moving_avg_obs_fq_helper_functional"
STATE = ("running_min", "running_max", "scale", "zero_point")  # its results after the first two


@converter(
    "fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask"
)
def of_numbers(node: NodeView) -> Any:
    """Rounded by one scale, or by one for each channel; the mask is for gradients."""
    return [_rounded(node, node.axis("axis", -1)), None]


@converter("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def of_tensors(node: NodeView) -> Any:
    """The same where scale and zero point are tensors, and a tensor switches it on."""
    return [_rounded(node, -1) if _known(node, "fake_quant_enabled").any() else node.input(), None]


@converter(OBSERVED)
def of_observers(node: NodeView) -> Any:
    """What follows an observer that takes no more notice: its state stays as it is."""
    if _known(node, "observer_on").any():
        raise node.unsupported(
            "its observer is on, so that its scale changes with every input: "
            "model.apply(torch.ao.quantization.disable_observer) fixes it"
        )
    channel = node.axis("ch_axis", -1) if node.arg("per_row_fake_quant", False) else -1
    on = _known(node, "fake_quant_on").any()
    kept = [node.optional(name) for name in STATE]
    return [_rounded(node, channel) if on else node.input(), None, *kept]


def _known(node: NodeView, name: str) -> Any:
    """Return the values of a tensor that must be known while the program is read."""
    given = node.arguments[name]
    if isinstance(given, Constant):
        return given.array
    if isinstance(given, Expr):
        raise node.unsupported(f"its argument {name!r} depends on the inputs")
    return np.asarray(given)


def _rounded(node: NodeView, axis: int) -> Any:
    x, rank = node.input(), node.rank()
    dtype = x.tensor_type.dtype
    scale, zero = (_known(node, name).reshape(-1) for name in ("scale", "zero_point"))
    along = [1] * rank
    if axis >= 0:
        along[axis] = scale.size
    elif scale.size != 1:
        raise node.unsupported(f"it has {scale.size} scales and no axis for them")
    elif not rank:
        along = []
    scale = scale.astype(np.float32)
    steps, shift, inverse = (
        number(values.reshape(along), dtype) for values in (scale, zero, np.float32(1) / scale)
    )
    count = relay.multiply(x, inverse)
    if zero.dtype.kind == "f":  # torch rounds the sum, then
        whole = relay.round(relay.add(count, shift))
    else:
        whole = relay.add(relay.round(count), shift)
    low, high = float(node.arg("quant_min")), float(node.arg("quant_max"))
    return relay.multiply(relay.subtract(relay.clip(whole, low, high), shift), steps)


def kept_as_they_are(program: ExportedProgram) -> set[str]:
    """Return the buffers of observers that are off, which their program writes back unchanged."""
    import torch

    signature = program.graph_signature
    targets = {
        node: spec.target
        for node, spec in zip(
            (n for n in program.graph.nodes if n.op == "placeholder"), signature.input_specs,
            strict=True,
        )
        if spec.kind.name == "BUFFER"
    }  # fmt: skip
    kept: set[str] = set()
    for node in program.graph.nodes:
        if OBSERVED not in str(node.target) or node.op != "call_function":
            continue
        values = [program.state_dict.get(targets.get(node.args[1], ""))]
        if isinstance(values[0], torch.Tensor) and not values[0].any():
            kept |= {targets[state] for state in node.args[3:7] if state in targets}
    return kept
