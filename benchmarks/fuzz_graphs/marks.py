"""Marks, which are the value itself but move the edges of kernels; and the sizes of a tensor."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import leaf, moved

PLAIN = ("annotation.stop_fusion", "annotation.checkpoint")


@rule(*PLAIN, "annotation.on_device", "device_copy")
def _mark(attrs, x):
    return moved(x, np.copy)


@rule("shape_of")
def _shape_of(attrs, x):
    return leaf(np.array(x.shape, attrs["dtype"]))


@maker(0.7)
def mark(d):
    x = d.find()
    name = d.pick([*PLAIN, "annotation.on_device", "device_copy"])
    if name in PLAIN:
        return d.call(name, x)
    if name == "device_copy":
        return d.call(name, x, src_dev="cpu", dst_dev="cpu")
    return d.call(name, x, device="cpu")


@maker(0.3)
def shape_of(d):
    x = d.find(lambda v: v.exact.ndim > 0)
    return d.call("shape_of", x, dtype=d.pick(["int32", "int64"]))
