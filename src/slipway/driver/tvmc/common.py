"""``tvmc.common``: what TVM 0.8 and 0.9 had in one module."""

from slipway.driver.tvmc.arguments import tracker_of as tracker_host_port_from_cli
from slipway.driver.tvmc.model import TVMCException
from slipway.driver.tvmc.shape_parser import parse_shape_string
from slipway.driver.tvmc.transform import convert_graph_layout

__all__ = [
    "TVMCException",
    "convert_graph_layout",
    "parse_shape_string",
    "tracker_host_port_from_cli",
]
