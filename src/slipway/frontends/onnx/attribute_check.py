"""What ONNX's definitions say of attributes in words only: values there are, and lengths of lists.

The schema knows that `auto_pad` is a string and `strides` a list; that "SAME" is no value of the
one, and that two spatial axes have two of the other, is said here, for all converters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.converters import NodeView
from slipway.relay.expr import Expr
from slipway.relay.types import ANY

# The least of integers, by the attribute's name, or by operator and attribute.
MINIMUM = {
    "kernel_shape": 1, "strides": 1, "dilations": 1, "group": 1, "num_groups": 1, "blocksize": 1,
    "num_outputs": 1, "hidden_size": 1, "size": 1, "num_heads": 1, "q_num_heads": 1,
    "kv_num_heads": 1, "p": 1, "block_size": 0, "output_padding": 0, "batch_dims": 0,
    "num_scan_inputs": 1, "pads": 0, "offset_group": 1, "min_gram_length": 1,
    "max_gram_length": 1, "max_skip_count": 0, "RotaryEmbedding.num_heads": 0,
}  # fmt: skip
CROPPING = ("Pad",)  # whose pads may be negative

_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")
_WAYS = ("forward", "reverse", "bidirectional")
_FLAG = (0, 1)
# The values that there are, by operator and attribute, or by attribute alone.
CHOICES: dict[str, tuple[Any, ...]] = {
    "auto_pad": _PADS, "storage_order": _FLAG, "exclusive": _FLAG, "reverse": _FLAG,
    "fmod": _FLAG, "center_point_box": _FLAG, "BitShift.direction": ("LEFT", "RIGHT"),
    "RNN.direction": _WAYS, "GRU.direction": _WAYS, "LSTM.direction": _WAYS,
    "RNN.layout": _FLAG, "GRU.layout": _FLAG, "LSTM.layout": _FLAG,
    "DepthToSpace.mode": ("DCR", "CRD"), "SpaceToDepth.mode": ("DCR", "CRD"),
    "TensorScatter.mode": ("linear", "circular"), "LpNormalization.p": (1, 2),
    "RoiAlign.coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    "Cast.round_mode": ("up", "down", "nearest"), "CastLike.round_mode": ("up", "down", "nearest"),
    "Attention.qk_matmul_output_mode": (-1, 0, 1, 2, 3),
}  # fmt: skip

# Operators over windows -> the input that has their weights, if any.
WINDOWS = {
    "Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3,
    "MaxPool": None, "AveragePool": None, "LpPool": None, "MaxUnpool": None,
}  # fmt: skip
_EACH = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 1, "pads": 2}


# Operators with an axis of their first input -> how many positions there are beyond its last axis.
ONE_AXIS = {
    "Compress": 0, "DFT": 0, "LayerNormalization": 0, "RMSNormalization": 0, "Split": 0,
    "SplitToSequence": 0, "TopK": 0, "Unique": 0, "Flatten": 1, "OneHot": 1,
}  # fmt: skip


def check_attributes(node: Any) -> None:
    """Raise UnsupportedNode where an attribute of a node has a value that means nothing."""
    for attribute in node.attribute:
        name = attribute.name
        minimum = MINIMUM.get(f"{node.op_type}.{name}", MINIMUM.get(name))
        values = [attribute.i] if attribute.type == 2 else list(attribute.ints)
        cropping = name == "pads" and node.op_type in CROPPING
        if minimum is not None and not cropping and any(v < minimum for v in values):
            shown = attribute.i if attribute.type == 2 else values
            raise UnsupportedNode(
                f"its attribute {name!r} is {shown}; it must be {minimum} or more"
            )
        choices = CHOICES.get(f"{node.op_type}.{name}", CHOICES.get(name))
        if choices is None or attribute.ref_attr_name or attribute.type not in (2, 3):
            continue
        value = attribute.i if attribute.type == 2 else attribute.s.decode(errors="replace")
        if value not in choices:
            known = ", ".join(repr(c) for c in choices if c != "")
            raise UnsupportedNode(f"its attribute {name!r} is {value!r}; there are {known}")


def check_axis(view: NodeView) -> None:
    """Raise UnsupportedNode where an operator works along an axis that its data does not have."""
    axis = view.attr("axis")
    if axis is None or not isinstance(view.inputs[0] if view.inputs else None, Expr):
        return
    rank = view.rank()
    beyond = ONE_AXIS.get(view.kind)
    if beyond is None:
        return
    minimum = -rank - (view.kind == "OneHot")
    if not minimum <= axis < rank + beyond:
        raise view.unsupported(f"its attribute 'axis' is {axis}, where its data has {rank} axes")


def check_windows(view: NodeView) -> None:
    """Raise UnsupportedNode where lists of a convolution or pooling do not fit its data."""
    if view.kind not in WINDOWS or not isinstance(view.inputs[0] if view.inputs else None, Expr):
        return
    count = view.rank() - 2
    for name, each in _EACH.items():
        given = view.attr(name)
        if given is not None and len(given) != each * count:
            raise view.unsupported(
                f"its attribute {name!r} has {len(given)} numbers, where {count} spatial axes need "
                f"{each * count}"
            )
    kernel, weight = view.attr("kernel_shape"), WINDOWS[view.kind]
    if weight is None:
        _check_pads_of_pool(view, count)
        return
    if kernel is not None and _differ(kernel, view.type(weight).shape[2:]):
        raise view.unsupported(
            f"its attribute 'kernel_shape' is {list(kernel)}, where its weights have the shape "
            f"{list(view.type(weight).shape)}"
        )
    if view.attr("auto_pad", "NOTSET") not in ("NOTSET", "") and any(view.attr("pads", ())):
        raise view.unsupported("it has both 'auto_pad' and 'pads'; leave one out")


def _differ(kernel: Sequence[int], found: Sequence[Any]) -> bool:
    known = zip(kernel, found, strict=False)
    return len(kernel) != len(found) or any(f is not ANY and k != f for k, f in known)


def _check_pads_of_pool(view: NodeView, count: int) -> None:
    """A window has to reach the data."""
    kernel, pads = view.attr("kernel_shape", ()), view.attr("pads", (0,) * (2 * count))
    dilations = view.attr("dilations", (1,) * count)
    if len(kernel) != count or view.attr("auto_pad", "NOTSET") not in ("NOTSET", ""):
        return
    for a in range(count):
        span = (kernel[a] - 1) * dilations[a] + 1
        if max(pads[a], pads[a + count]) >= span:
            raise view.unsupported(
                f"its attribute 'pads' is {list(pads)}: a window that spans {span} elements lies "
                "in the padding and has no data"
            )
