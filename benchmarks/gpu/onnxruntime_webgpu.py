"""A case of `benchmarks.gpu` by ONNX Runtime's WebGPU provider, which asks a Vulkan driver.

``pip install onnxruntime onnxruntime-ep-webgpu``.  It refuses a lavapipe that does not index arrays
of images freely (Mesa 22.3); Chromium's driver on the processor, SwiftShader, it takes:
``VK_ICD_FILENAMES=/usr/lib/chromium/vk_swiftshader_icd.json``, for it and for Slipway.
"""

import functools
import importlib.util
import json
import os
import tempfile
from math import prod
from pathlib import Path

from benchmarks.gpu.iree import onnx_model

_NO_KERNEL = ("Flatten", "Reshape", "MemcpyFromHost", "MemcpyToHost")


def device():
    """Return the provider's device, a processor's driver too; None where it is not installed."""
    if any(importlib.util.find_spec(n) is None for n in ("onnxruntime", "onnxruntime_ep_webgpu")):
        return None
    os.environ.setdefault("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "1")
    import onnxruntime
    import onnxruntime_ep_webgpu as provider

    name = provider.get_ep_name()
    known = [d for d in onnxruntime.get_ep_devices() if d.ep_name == name]
    if not known:
        onnxruntime.register_execution_provider_library(name, provider.get_library_path())
        known = [d for d in onnxruntime.get_ep_devices() if d.ep_name == name]
    return known[0] if known else None


@functools.cache
def tell(problem):
    """Say once what the provider says of the driver."""
    print(f"  onnxruntime-ep-webgpu: {problem}")


def onnxruntime_on(case):
    """Return a function that runs a case, its kernels and what they move, as `counted` says.

    None where it is not installed, or the driver is not for it.
    """
    found = device()
    if found is None:
        return None
    import onnxruntime

    given = {"a0": case.arrays[0]}
    text = onnx_model(case).SerializeToString()

    def session(profile=""):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, profile
        options.add_provider_for_devices([found], {})
        return onnxruntime.InferenceSession(text, options)

    try:
        plain = session()
    except onnxruntime.capi.onnxruntime_pybind11_state.EPFail as error:
        tell(str(error).strip().rpartition(": ")[2])
        return None
    with tempfile.TemporaryDirectory() as folder:
        profiled = session(str(Path(folder, "profile")))
        profiled.run(None, given)
        events = json.loads(Path(profiled.end_profiling()).read_text(encoding="utf-8"))
    return (lambda: plain.run(None, given)[0]), *counted(events, case.arrays[1:])


def counted(events, weights):
    """Return the nodes of a profiled run that are kernels, and the bytes of what they hand on.

    A node is one kernel or several.  Weights are counted once: the provider keeps some in layouts
    of its own, which the profile does not tell of.
    """
    nodes = [e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    own = [e["args"] for e in nodes if "WebGpu" in e["args"].get("provider", "")]
    own = [args for args in own if args["op_name"] not in _NO_KERNEL]
    known = {array.shape for array in weights}
    moved = sum(array.nbytes for array in weights)
    for args in own:
        shapes = [
            [tuple(shape) for tensor in args[kind] for shape in tensor.values()]
            for kind in ("input_type_shape", "output_type_shape")
        ]
        (image, *others), results = shapes
        handed = [image, *(s for s in others if s not in known), *results]
        moved += sum(4 * prod(shape) for shape in handed)
    return len(own), moved
