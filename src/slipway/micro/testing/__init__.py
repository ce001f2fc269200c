"""What tests of microcontrollers share, under classic names."""

from slipway.micro.testing.evaluation import create_aot_session, predict_labels_aot
from slipway.micro.testing.utils import get_supported_boards, get_target

__all__ = ["create_aot_session", "get_supported_boards", "get_target", "predict_labels_aot"]
