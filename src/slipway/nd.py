"""Arrays under their classic name; see `slipway.runtime.ndarray`."""

from slipway.runtime.devices import (
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from slipway.runtime.ndarray import NDArray, array, empty, empty_pinned, from_dlpack

NDArrayBase = NDArray

__all__ = [
    "NDArray", "NDArrayBase", "array", "cl", "cpu", "cuda", "device", "empty", "empty_pinned",
    "ext_dev", "from_dlpack", "gpu", "hexagon", "metal", "mtl", "opencl", "rocm", "vpi", "vulkan",
    "webgpu",
]  # fmt: skip
