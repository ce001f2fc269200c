"""``relay.testing``: networks with random parameters, under their classic names."""

from slipway.relay.testing import (
    byoc,
    config,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    layers,
    lstm,
    mlp,
    mobilenet,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    temp_op_attr,
    tf,
    vgg,
    yolo_detection,
)
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.temp_op_attr import TempOpAttr
from slipway.relay.testing.tools import (
    check_grad,
    count_ops,
    ctx_list,
    rand,
    run_infer_type,
    run_opt_pass,
)
from slipway.runtime.features import enabled_targets

__all__ = [
    "TempOpAttr",
    "byoc",
    "check_grad",
    "config",
    "count_ops",
    "create_workload",
    "ctx_list",
    "dcgan",
    "densenet",
    "dqn",
    "enabled_targets",
    "inception_v3",
    "layers",
    "lstm",
    "mlp",
    "mobilenet",
    "rand",
    "resnet",
    "resnet_3d",
    "run_infer_type",
    "run_opt_pass",
    "squeezenet",
    "synthetic",
    "temp_op_attr",
    "tf",
    "vgg",
    "yolo_detection",
]
