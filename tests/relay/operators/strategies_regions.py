"""Regions and boxes: their sections' own cases, on other numbers every time."""

import numpy as np
from drawing import OPS, Case
from strategies import strategy


@strategy("nn.correlation", "nn.deformable_im2col", "vision.roi_align",
          "vision.roi_align_adaptive", "vision.select_boxes", "vision.suppress_boxes")  # fmt: skip
def regions(d):
    sample = d.pick(OPS[d.name].cases)
    arrays = tuple(np.asarray(a) for a in sample.arrays(seed=d.int(0, 1 << 20)))
    # Positions are float32 and multiply the differences of neighbours.
    return Case(arrays, sample.attrs, scale=600.0)
