"""Arrays under their classic name; see `slipway.runtime.ndarray`."""

from slipway.runtime.devices import cpu, cuda, device, gpu
from slipway.runtime.ndarray import NDArray, array, empty, from_dlpack

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu"]
