"""relu, one element after the other."""

from slipway import te
from slipway.backends.strategy import register_strategy
from toy_backend.backend import BACKEND


@register_strategy("nn.conv2d", name="relu_of_toy", priority=99)
def schedule_conv(target, outs, anchor):
    BACKEND.used.append("relu_of_toy")
    return te.create_schedule([t.op for t in outs])
