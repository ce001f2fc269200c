"""Compositions of networks and images: blocks of pixels, losses, sparse matrices, crops."""

import numpy as np
import pytest
from runner import check_all

from slipway import relay
from slipway.errors import TypeInferenceError

RNG = np.random.default_rng(8)
NN, IMAGE = relay.nn, relay.image


def real(*shape):
    return RNG.standard_normal(shape).astype("float32")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def space_to_batch(x, blocks, pads):
    """By the definition: batch b holds the elements whose place in the block is b."""
    x = np.pad(x, [(0, 0), *pads, *[(0, 0)] * (x.ndim - 1 - len(pads))])
    parts = [
        x[(slice(None), *(slice(o, None, b) for o, b in zip(offset, blocks, strict=True)))]
        for offset in np.ndindex(*blocks)
    ]
    return np.concatenate(parts)


def pixels():
    x = real(2, 12, 3, 4)
    dcr, crd = np.zeros((2, 3, 6, 8), "float32"), np.zeros((2, 3, 6, 8), "float32")
    for c, i, j in np.ndindex(3, 2, 2):
        dcr[:, c, i::2, j::2] = x[:, (i * 2 + j) * 3 + c]
        crd[:, c, i::2, j::2] = x[:, c * 4 + i * 2 + j]

    def last(v):
        return np.ascontiguousarray(v.transpose(0, 2, 3, 1))

    yield "depth_to_space", lambda x: NN.depth_to_space(x, 2), [x], dcr
    yield "depth_to_space CRD", lambda x: NN.depth_to_space(x, 2, mode="CRD"), [x], crd
    yield "depth_to_space NHWC", lambda x: NN.depth_to_space(x, 2, "NHWC"), [last(x)], last(dcr)
    yield (
        "depth_to_space NHWC CRD", lambda x: NN.depth_to_space(x, 2, "NHWC", "CRD"), [last(x)],
        last(crd),
    )  # fmt: skip
    yield "space_to_depth", lambda x: NN.space_to_depth(x, 2), [dcr], x
    yield "space_to_depth NHWC", lambda x: NN.space_to_depth(x, 2, "NHWC"), [last(dcr)], last(x)
    x = real(2, 3, 5, 2)
    cut = space_to_batch(x, (2, 3), [(1, 0), (0, 1)])
    yield (
        "space_to_batch_nd", lambda x: NN.space_to_batch_nd(x, [2, 3], [[1, 0], [0, 1]]), [x], cut,
    )  # fmt: skip
    yield (
        "batch_to_space_nd", lambda x: NN.batch_to_space_nd(x, [2, 3], [[1, 0], [0, 1]]), [cut], x,
    )  # fmt: skip


def losses():
    p, t = softmax(real(4, 5)), softmax(real(4, 5))
    yield "cross_entropy", NN.cross_entropy, [p, t], -(t * np.log(p)).sum(dtype="float32") / 4
    yield "with logits", NN.cross_entropy_with_logits, [p, t], -(t * p).sum(dtype="float32") / 4
    p, w = np.log(softmax(real(3, 2, 5)).transpose(0, 2, 1)).astype("float32"), np.abs(real(5))
    t = np.array([[0, 4], [-100, 2], [1, -100]], "int32")
    used = t >= 0
    factor = np.where(used, w[t.clip(0)], 0).astype("float32")
    picked = np.take_along_axis(p, t.clip(0)[:, None], 1)[:, 0]
    loss = -picked * factor
    for how, want in (
        ("none", loss), ("sum", loss.sum()), ("mean", loss.sum() / factor.sum())
    ):  # fmt: skip
        yield f"nll {how}", lambda *a, how=how: NN.nll_loss(*a, how), [p, t, w], np.asarray(want)
    x = real(3, 7)
    yield "fast_softmax", NN.fast_softmax, [x], softmax(x)


def spreading():
    x = real(2, 3, 4)
    apart = np.full((2, 5, 10), 7, "float32")
    apart[:, ::2, ::3] = x
    yield "dilate", lambda x: NN.dilate(x, [1, 2, 3], 7.0), [x], apart
    for mode in ("SYMMETRIC", "REFLECT"):
        width = ((0, 0), (2, 1), (1, 3))
        yield (
            f"mirror_pad {mode}", lambda x, m=mode, w=width: NN.mirror_pad(x, w, m), [x],
            np.pad(x, width, mode.lower()),
        )  # fmt: skip
        yield (
            f"mirror_pad {mode}, all of an axis",
            lambda x, m=mode: NN.mirror_pad(x, ((0, 0), (0, 0), (3, 3)), m), [x],
            np.pad(x, ((0, 0), (0, 0), (3, 3)), mode.lower()),
        )  # fmt: skip
    old, new = real(2, 5, 3), real(2, 2, 3)
    yield (
        "fifo_buffer", lambda d, b: NN.fifo_buffer(d, b, 1), [new, old],
        np.concatenate([old, new], 1)[:, 2:],
    )  # fmt: skip
    bits = RNG.integers(0, 4, (2, 16, 3)).astype("int32")
    planes = [np.packbits(((bits >> b) & 1).astype("uint8"), axis=1) for b in range(2)]
    yield (
        "bitpack", lambda x: NN.bitpack(x, 2, 1, 2, "uint8"), [bits], np.stack(planes, 2),
    )  # fmt: skip


def sparse():
    from types import SimpleNamespace

    dense = np.where(RNG.random((6, 4)) < 0.4, real(6, 4), 0).astype("float32")
    rows, columns = np.nonzero(dense)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=6))]).astype("int32")
    matrix = SimpleNamespace(
        data=dense[rows, columns], indices=columns.astype("int32"), indptr=starts
    )
    x = real(3, 4)
    yield "sparse_dense", lambda x: NN.sparse_dense(x, matrix), [x], x @ dense.T
    yield "sparse left", lambda x: NN.sparse_dense(x, matrix, True), [x], dense @ x.T
    x = real(6, 4)
    yield "sparse_add", lambda x: NN.sparse_add(x, matrix), [x], x + dense


def images():
    x = real(2, 3, 6, 7)
    yield (
        "resize1d floors", lambda x: IMAGE.resize1d(x, 5, method="nearest_neighbor"), [x[:, :, 0]],
        x[:, :, 0][:, :, np.floor((np.arange(5) + 0.5) * 7 / 5 - 0.5).clip(0).astype(int)],
    )  # fmt: skip
    x3 = real(1, 2, 2, 3, 2)
    twice = x3.repeat(2, 2).repeat(2, 3).repeat(2, 4)
    yield "upsampling3d", lambda x: NN.upsampling3d(x, 2, 2, 2), [x3], twice
    yield (
        "resize3d", lambda x: IMAGE.resize3d(x, (4, 6, 4), method="nearest_neighbor",
                                             coordinate_transformation_mode="asymmetric"), [x3],
        twice,
    )  # fmt: skip
    boxes = np.array([[0.1, 0.2, 0.9, 0.7], [0.8, 1.2, -0.1, 0.0], [0, 0, 1, 1]], "float32")
    which = np.array([1, 0, 1], "int32")

    def crop(image, box, height, width):
        """One crop, position by position."""
        out = np.full((image.shape[0], height, width), 5, "float32")
        y1, x1, y2, x2 = box
        h, w = image.shape[1:]
        for i, j in np.ndindex(height, width):
            y = (y1 + (y2 - y1) * (i / (height - 1) if height > 1 else 0.5)) * (h - 1)
            z = (x1 + (x2 - x1) * (j / (width - 1) if width > 1 else 0.5)) * (w - 1)
            if 0 <= y <= h - 1 and 0 <= z <= w - 1:
                a, b = int(y), int(z)
                c, d = min(a + 1, h - 1), min(b + 1, w - 1)
                top = image[:, a, b] + (image[:, a, d] - image[:, a, b]) * (z - b)
                low = image[:, c, b] + (image[:, c, d] - image[:, c, b]) * (z - b)
                out[:, i, j] = top + (low - top) * (y - a)
        return out

    for size in ((4, 3), (1, 5)):
        want = np.stack([crop(x[n], box, *size) for n, box in zip(which, boxes, strict=True)])
        yield (
            f"crop_and_resize {size}",
            lambda *a, s=size: IMAGE.crop_and_resize(*a, s, "NCHW", "bilinear", 5.0),
            [x, boxes, which], want,
        )  # fmt: skip
        yield (
            f"crop_and_resize NHWC {size}",
            lambda *a, s=size: IMAGE.crop_and_resize(*a, s, "NHWC", extrapolation_value=5.0),
            [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), boxes, which],
            np.ascontiguousarray(want.transpose(0, 2, 3, 1)),
        )  # fmt: skip
    theta = real(2, 2, 3)
    y, z = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    points = np.stack([z.ravel(), y.ravel(), np.ones(12)]).astype("float32")
    yield (
        "affine_grid", lambda t: IMAGE.affine_grid(t, (3, 4)), [theta],
        (theta @ points).reshape(2, 2, 3, 4),
    )  # fmt: skip
    kernel = real(3, 2, 3)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)], constant_values=np.finfo("float32").min)
    best = None
    for i, j in np.ndindex(2, 3):
        part = padded[:, :, i * 2 : i * 2 + 5 : 2, j : j + 6] + kernel[:, i, j][:, None, None]
        best = part if best is None else np.maximum(best, part)
    yield (
        "dilation2d", lambda x, w: IMAGE.dilation2d(x, w, (2, 1), (1, 0, 0, 1), (2, 1)),
        [x, kernel], best,
    )  # fmt: skip


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.long)])
def test_they_compute_what_numpy_does(target):
    groups = (pixels, losses, spreading, sparse, images)
    check_all([case for group in groups for case in group()], target)


def test_the_transpose_of_a_sparse_matrix():
    dense = np.array([[0, 1, 2], [0, 0, 3], [4, 0, 0]], "float32")
    rows, columns = np.nonzero(dense)
    csr = (dense[rows, columns], columns.astype("int32"), np.array([0, 2, 3, 4], "int32"))
    data, indices, starts = (f.array for f in NN.sparse_transpose(csr).astuple().fields)
    made = np.zeros((3, 3), "float32")
    made[np.repeat(np.arange(3), np.diff(starts)), indices] = data
    np.testing.assert_array_equal(made, dense.T)


X = relay.var("x", shape=(2, 3, 4, 5))
N = relay.var("n", shape=(2,), dtype="int32")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: NN.depth_to_space(X, 2), "'block_size' is 2.*does not divide 3"),
        (lambda: NN.depth_to_space(X, 1, "NCWH"), "'layout'"),
        (lambda: NN.depth_to_space(X, 1, mode="RDC"), "'mode'"),
        (lambda: NN.space_to_depth(X, 2), "'block_size'.*4 and 5"),
        (lambda: NN.space_to_batch_nd(X, [2, 2], [[0, 0], [0, 0]]), "'block_shape'.*divide"),
        (lambda: NN.space_to_batch_nd(X, [2, 2], [[0, 0]]), "'paddings' must be 2 pairs"),
        (lambda: NN.batch_to_space_nd(X, [3], [[0, 0]]), "'block_shape'"),
        (lambda: NN.batch_to_space_nd(X, [2], [[3, 3]]), "'crops'.*leave nothing"),
        (lambda: NN.nll_loss(X, N, N), "'targets' must have shape"),
        (lambda: NN.cross_entropy(X, N), "'targets'"),
        (lambda: NN.dilate(X, [2]), "'strides'"),
        (lambda: NN.mirror_pad(X, [(0, 0)] * 3 + [(6, 0)]), "'pad_width'.*beyond"),
        (lambda: NN.bitpack(X), "'data' must hold integers"),
        (lambda: NN.bitpack(N, pack_axis=0, bit_axis=0), "'pack_axis' has 2"),
        (lambda: NN.sparse_dense(X, (N, N, N)), "'sparse_mat' must be a constant"),
        (lambda: IMAGE.crop_and_resize(X, N, N, (2, 2)), r"'boxes' must be \(boxes, 4\)"),
        (lambda: IMAGE.affine_grid(X), "'data' must be"),
        (lambda: IMAGE.dilation2d(X, N), "'weight' must have 3 axes"),
        (lambda: IMAGE.resize2d(X, (2, 2), method="lanczos"), "'method'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(build, words):
    with pytest.raises(TypeInferenceError, match=words):
        build()
