"""Running a compiled model; see `slipway.runtime.graph.graph_executor`."""

from slipway.runtime.graph.graph_executor import GraphModule, create
from slipway.runtime.params import load_param_dict, save_param_dict

__all__ = ["GraphModule", "create", "load_param_dict", "save_param_dict"]
