"""What tests of microcontrollers share, under classic names."""

from slipway.micro.testing.evaluation import create_aot_session, predict_labels_aot
from slipway.micro.testing.utils import (
    aot_transport_find_message,
    aot_transport_init_wait,
    check_tune_log,
    get_supported_boards,
    get_target,
    mlf_extract_workspace_size_bytes,
)

__all__ = [
    "aot_transport_find_message", "aot_transport_init_wait", "check_tune_log",
    "create_aot_session", "get_supported_boards", "get_target",
    "mlf_extract_workspace_size_bytes", "predict_labels_aot",
]  # fmt: skip
