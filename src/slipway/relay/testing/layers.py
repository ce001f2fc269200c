"""Layers whose parameters are variables called after the layer: ``conv0`` reads ``conv0_weight``.

Every variable has its type, taken from the data's, so that a network is typed as it is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay import op_registry
from slipway.relay.expr import Expr, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.ops.checks import as_tuple
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

_KERNEL_LAYOUTS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def make(name: str) -> Any:
    """Return the function that builds the operator `name`."""
    return op_registry.make(name)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """Return the kernel layout that goes with a data layout.  Raises BadArgument."""
    if data_layout == "NHWC" and is_depthwise:
        return "HWOI"
    if data_layout not in _KERNEL_LAYOUTS:
        raise BadArgument("layout", f"is {data_layout!r}; use {', '.join(_KERNEL_LAYOUTS)}")
    return _KERNEL_LAYOUTS[data_layout]


def _parameter(given: Any, name: str, shape: tuple[int, ...], dtype: str) -> Any:
    return given if given is not None else Var(name, TensorType(shape, dtype))


def batch_norm_infer(
    data: Expr,
    gamma: ExprLike | None = None,
    beta: ExprLike | None = None,
    moving_mean: ExprLike | None = None,
    moving_var: ExprLike | None = None,
    **kwargs: Any,
) -> Expr:
    """Normalise by stored moments; `name` gives the parameters theirs, the rest goes on."""
    name = kwargs.pop("name")
    given = data.tensor_type
    shape = (given.shape[kwargs.get("axis", 1)],)
    params = [
        _parameter(value, f"{name}_{what}", shape, given.dtype)
        for value, what in (
            (gamma, "gamma"), (beta, "beta"), (moving_mean, "moving_mean"),
            (moving_var, "moving_var"),
        )
    ]  # fmt: skip
    found: Expr = make("nn.batch_norm")(data, *params, **kwargs)[0]
    return found


def _conv(count: int, data: Any, weight: Any, options: dict[str, Any]) -> Expr:
    name = options.pop("name")
    given = data.tensor_type
    spatial = "DHW"[-count:]
    layout = options.get("data_layout", "NC" + spatial)
    kernel_layout = options.get("kernel_layout", "OI" + spatial)
    kernel = as_tuple(options["kernel_size"], count, "kernel_size")
    extents = dict(zip(spatial, kernel, strict=True))
    extents["O"] = int(options["channels"])
    extents["I"] = given.shape[layout.index("C")] // int(options.get("groups", 1))
    shape = tuple(extents[letter] for letter in kernel_layout)
    made: Expr = make(f"nn.conv{count}d")(
        data, _parameter(weight, f"{name}_weight", shape, given.dtype), **options
    )
    return made


def conv2d(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """Convolve images; `name`, `channels` and `kernel_size` must be given."""
    return _conv(2, data, weight, kwargs)


def conv3d(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """Convolve volumes; `name`, `channels` and `kernel_size` must be given."""
    return _conv(3, data, weight, kwargs)


def conv2d_transpose(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """Convolve images transposed; `name`, `channels` and `kernel_size` must be given."""
    name = kwargs.pop("name")
    given = data.tensor_type
    kernel = as_tuple(kwargs["kernel_size"], 2, "kernel_size")
    shape = (given.shape[1], int(kwargs["channels"]) // int(kwargs.get("groups", 1)), *kernel)
    made: Expr = make("nn.conv2d_transpose")(
        data, _parameter(weight, f"{name}_weight", shape, given.dtype), **kwargs
    )
    return made


def dense_add_bias(
    data: Expr,
    weight: Expr | None = None,
    bias: ExprLike | None = None,
    units: int | None = None,
    **kwargs: Any,
) -> Expr:
    """Multiply rows by the transpose of `weight` (units, columns) and add `bias`."""
    name = kwargs.pop("name")
    given = data.tensor_type
    if units is not None:
        count = int(units)
    elif weight is not None:
        count = weight.tensor_type.shape[0]
    else:
        raise BadArgument("units", "is missing: the size of the weight does not follow without it")
    weight = _parameter(weight, f"{name}_weight", (count, given.shape[-1]), given.dtype)
    bias = _parameter(bias, f"{name}_bias", (count,), given.dtype)
    made: Expr = make("nn.bias_add")(make("nn.dense")(data, weight, count, **kwargs), bias, axis=-1)
    return made
