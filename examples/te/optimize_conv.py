"""How to make a convolution fast: blocked channels, a register tile, padding out of the way."""

import numpy as np

import slipway as tvm
from slipway import te

channels, size, lanes, columns = 32, 28, 16, 7
blocks = channels // lanes
TARGET = "llvm -mcpu=native"

# Data in blocks of 16 channels, so that one vector holds 16 output channels of a point.
data = te.placeholder((blocks, size, size, lanes), name="data")
kernel = te.placeholder((blocks, blocks, 3, 3, lanes, lanes), name="kernel")
padded = te.compute(
    (blocks, size + 2, size + 2, lanes),
    lambda c, y, x, v: te.if_then_else(
        te.all(y >= 1, y <= size, x >= 1, x <= size), data[c, y - 1, x - 1, v], 0.0
    ),
    name="padded",
)
ci, cv = te.reduce_axis((0, blocks), "ci"), te.reduce_axis((0, lanes), "cv")
dy, dx = te.reduce_axis((0, 3), "dy"), te.reduce_axis((0, 3), "dx")
conv = te.compute(
    (blocks, size, size, lanes),
    lambda o, y, x, v: te.sum(
        padded[ci, y + dy, x + dx, cv] * kernel[o, ci, dy, dx, cv, v], axis=[ci, cv, dy, dx]
    ),
    name="conv",
)
relu = te.compute(conv.shape, lambda *i: te.max(conv(*i), 0.0), name="relu")

# schedule
s = te.create_schedule(relu.op)
o, y, x, v = relu.op.axis
xo, xi = s[relu].split(x, columns)
s[relu].unroll(xi)
s[relu].vectorize(v)
rows = s[relu].fuse(o, y)
s[relu].parallel(rows)
s[conv].set_scope("local")  # the sums of one tile: 7 points by 16 channels, in registers
s[conv].compute_at(s[relu], xo)
oc, yc, xc, vc = conv.op.axis
s[conv].reorder(oc, yc, ci, dy, dx, cv, xc, vc)
s[conv].unroll(xc)
s[conv].vectorize(vc)
s[padded].vectorize(padded.op.axis[3])

func = tvm.build(s, [data, kernel, relu], TARGET, name="conv")
rng = np.random.default_rng(0)
image = (rng.random((channels, size, size)) - 0.5).astype("float32")
weight = (rng.random((channels, channels, 3, 3)) - 0.5).astype("float32")
packed_image = image.reshape(blocks, lanes, size, size).transpose(0, 2, 3, 1)
packed_weight = weight.reshape(blocks, lanes, blocks, lanes, 3, 3).transpose(0, 2, 4, 5, 3, 1)
buffers = [
    tvm.nd.array(np.ascontiguousarray(packed_image)),
    tvm.nd.array(np.ascontiguousarray(packed_weight)),
    tvm.nd.array(np.zeros((blocks, size, size, lanes), "float32")),
]
func(*buffers)
got = buffers[2].numpy().transpose(0, 3, 1, 2).reshape(channels, size, size)

image_padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
want = np.zeros((channels, size, size), "float32")
for i in range(3):
    for j in range(3):
        window = image_padded[:, i : i + size, j : j + size].reshape(channels, -1)
        want += (weight[:, :, i, j] @ window).reshape(want.shape)
np.testing.assert_allclose(got, np.maximum(want, 0), rtol=1e-4, atol=1e-5)

seconds = func.time_evaluator("conv", tvm.cpu(0), number=5)(*buffers).mean
print(f"{2 * 9 * channels**2 * size**2 / seconds / 1e9:.1f} GFLOP/s")
