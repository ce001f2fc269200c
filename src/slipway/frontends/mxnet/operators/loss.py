"""What a model ends in for its training: outputs, and nodes that only gradients see."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter


@converter("SoftmaxOutput", "Softmax")
def _softmax_output(node: NodeView) -> Any:
    shape = node.shape
    if node.flag("multi_output"):
        return relay.nn.softmax(node.data, axis=1)
    if node.flag("preserve_shape") or len(shape) == 2:
        return relay.nn.softmax(node.data, axis=-1)
    return relay.reshape(relay.nn.softmax(relay.nn.batch_flatten(node.data), axis=1), shape)


@converter("LogisticRegressionOutput")
def _logistic(node: NodeView) -> Any:
    return relay.sigmoid(node.data)


@converter("BlockGrad", "stop_gradient", "Dropout", "IdentityAttachKLSparseReg",
           "LinearRegressionOutput", "MAERegressionOutput", "MakeLoss", "_copy", "_np_copy",
           "_npi_copy", "_npx_dropout", "identity", "make_loss", "_identity_with_attr_like_rhs",
           "_CrossDeviceCopy")  # fmt: skip
def _as_it_is(node: NodeView) -> Any:
    return node.data
