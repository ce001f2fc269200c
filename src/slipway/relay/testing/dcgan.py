"""The generator of Radford et al., "Unsupervised Representation Learning with ... (DCGAN)"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import batch_norm_infer, conv2d_transpose, make
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def deconv2d(data: Expr, channels: int, name: str, stride: tuple[int, int] = (2, 2)) -> Any:
    """Return a transposed convolution of 4 x 4 that doubles the image."""
    return conv2d_transpose(
        data, channels=channels, kernel_size=(4, 4), strides=stride, padding=(1, 1), name=name
    )


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: tuple[int, ...] = (3, 64, 64),
    ngf: int = 128,
    code: Expr | None = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """Return the generator: `random_len` numbers to an image `oshape` of 64 x 64."""
    if layout != "NCHW":
        raise BadArgument("layout", f"is {layout!r}; transposed convolutions are served in NCHW")
    if tuple(oshape[-2:]) != (64, 64):
        raise BadArgument("oshape", f"is {oshape}; the images are 64 x 64")
    x = Var("data", TensorType((batch_size, random_len), dtype)) if code is None else code
    weight = Var("dense_weight", TensorType((16 * ngf * 8, x.tensor_type.shape[-1]), dtype))
    x = make("nn.relu")(make("nn.dense")(x, weight, 16 * ngf * 8))
    x = make("reshape")(x, (-1, ngf * 8, 4, 4))
    for number, channels in enumerate((ngf * 4, ngf * 2, ngf), 2):
        x = deconv2d(x, channels, f"g{number}_deconv")
        x = batch_norm_infer(
            x, epsilon=1e-5 + 1e-12, scale=False, name=f"g{number}_batch_norm"
        )  # fmt: skip
        x = make("nn.relu")(x)
    return make("tanh")(deconv2d(x, oshape[-3], "g5_deconv")).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int,
    oshape: tuple[int, ...] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, None, layout, dtype))
