"""Functions of other frameworks' tensors; see `slipway.runtime.dlpack_functions`."""

from slipway.runtime.dlpack_functions import convert_func, to_pytorch_func

__all__ = ["convert_func", "to_pytorch_func"]
