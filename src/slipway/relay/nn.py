"""``relay.nn``: the neural network operators under their classic names."""

from __future__ import annotations

from typing import Any

from slipway.errors import did_you_mean
from slipway.lazy import load
from slipway.relay import op_registry
from slipway.relay.ops.explained import explained

_COMPOSITES = {
    **{
        name: (family, name)
        for family, names in (
            ("nn.bits", "bitserial_conv2d bitserial_dense"),
            ("nn.loss", "cross_entropy cross_entropy_with_logits fast_softmax nll_loss"),
            ("nn.space", "batch_to_space_nd depth_to_space space_to_batch_nd space_to_depth"),
            ("nn.sparse", "sparse_add sparse_dense sparse_transpose"),
            ("nn.spread", "bitpack dilate fifo_buffer mirror_pad"),
            ("image.resize", "upsampling3d"),
        )
        for name in names.split()
    },
    "dropout_raw": ("nn.norm", "dropout"),
    "deformable_conv2d": ("image.regions", "deformable_conv2d"),
    "l2_normalize": ("nn.norm", "l2_normalize"),
    "group_norm": ("nn.norm", "group_norm"),
    "upsampling": ("image.resize", "upsampling"),
}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'slipway.relay.nn' has no attribute {name!r}")
    definition = op_registry.load_ops().get(f"nn.{name}")
    if definition is not None:
        value: Any = explained(definition.make_function)
    elif name in _COMPOSITES:
        family, function = _COMPOSITES[name]
        value = explained(load(f"slipway.relay.ops.{family}:{function}"))
    else:
        known = [n[3:] for n in op_registry.OPS if n.startswith("nn.")]
        hint = did_you_mean(name, [*known, *_COMPOSITES])
        raise AttributeError(f"module 'slipway.relay.nn' has no attribute {name!r}.{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    names = [n[3:] for n in op_registry.load_ops() if n.startswith("nn.")]
    return sorted([*names, *_COMPOSITES])
