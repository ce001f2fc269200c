"""Expressions made of the operators of graphs, and products with sparse matrices."""

import numpy as np
import pytest
import scipy.sparse
import torch
from tests.topi.checks import check, given

import slipway as tvm
from slipway import te, topi
from slipway.errors import InvalidShapeError

BOTH = pytest.mark.parametrize("target", ["llvm", "c"])


def tensor(x):
    return torch.tensor(np.asarray(x))


@BOTH
def test_images_are_sampled(target):
    x = given(1, 2, 5, 6)

    def resized(mode, align):
        return lambda a: torch.nn.functional.interpolate(
            tensor(a), (9, 7), mode=mode, align_corners=align
        ).numpy()

    for method, mode, kind in (
        ("linear", "bilinear", "half_pixel"),
        ("bilinear", "bilinear", "align_corners"),
    ):
        check(
            lambda a, m=method, k=kind: topi.image.resize2d(
                a, (0.0,) * 4, (9, 7), "NCHW", m, coordinate_transformation_mode=k
            ),
            resized(mode, kind == "align_corners"), x, target=target,
        )  # fmt: skip
    for method in ("nearest_neighbor", "nearest"):
        check(
            lambda a, m=method: topi.image.resize2d(
                a, (0.0,) * 4, (10, 12), "NCHW", m, "asymmetric", "floor"
            ),
            lambda a: a.repeat(2, 2).repeat(2, 3), x, target=target,
        )  # fmt: skip
    volume, moved = given(1, 2, 3, 4, 5), given(1, 3, 2, 3, 4) / 2
    check(
        lambda a, g: topi.image.grid_sample(a, g, "bilinear", "NCDHW", "border", False),
        lambda a, g: torch.nn.functional.grid_sample(
            tensor(a), tensor(g.transpose(0, 2, 3, 4, 1)), "bilinear", "border", False
        ).numpy(),
        volume, moved, target=target, rtol=1e-4,
    )  # fmt: skip
    grid = given(1, 2, 4, 3) / 2
    check(
        topi.image.grid_sample,
        lambda a, g: torch.nn.functional.grid_sample(
            tensor(a), tensor(g.transpose(0, 2, 3, 1)), align_corners=True
        ).numpy(),
        x, grid, target=target,
    )  # fmt: skip


@BOTH
def test_elements_are_put_at_places(target):
    data, updates = given(4, 5), given(4, 2)
    indices = np.array([[0, 3], [4, 1], [2, 0], [1, 3]], "int64")

    def put(a, i, u):
        a = a.copy()
        np.put_along_axis(a, i, u, 1)
        return a

    def added(a, i, u):
        return tensor(a).scatter_add(1, tensor(i), tensor(u)).numpy()

    check(lambda a, i, u: topi.scatter(a, i, u, 1), put, data, indices, updates, target=target)
    check(
        lambda a, i, u: topi.scatter_add(a, i, u, 1), added, data, indices, updates, target=target
    )
    rows = np.sort(given(3, 8), axis=1)
    check(
        lambda a, v: topi.searchsorted(a, v, True, "int32"),
        lambda a, v: np.stack([np.searchsorted(r, w, "right") for r, w in zip(a, v, strict=True)]),
        rows, given(3, 4), target=target,
    )  # fmt: skip
    order = RNG.permutation(9).astype("int32")
    check(topi.invert_permutation, np.argsort, order, target=target)
    check(
        lambda a, v: topi.strided_set(a, v, [1, 0], [4, 5], [2, 2]),
        lambda a, v: [a.__setitem__((slice(1, 4, 2), slice(0, 5, 2)), v), a][1],
        data.copy(), given(2, 3), target=target,
    )  # fmt: skip
    check(
        lambda a: topi.sliding_window(a, 0, [2, 3], [1, 2]),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 3))[::1, ::2],
        data, target=target,
    )  # fmt: skip


RNG = np.random.default_rng(5)


@BOTH
def test_layers_of_graphs(target):
    x = given(2, 4, 6, 6)
    check(
        lambda a: topi.nn.space_to_depth(topi.nn.depth_to_space(a, 2), 2), lambda a: a, x,
        target=target,
    )  # fmt: skip
    check(
        lambda a, w: topi.nn.conv2d_transpose_nchw(a, w, (2, 2), (1, 1, 1, 1), "float32", (1, 0)),
        lambda a, w: torch.conv_transpose2d(
            tensor(a), tensor(w), stride=2, padding=1, output_padding=(1, 0)
        ).numpy(),
        x, given(4, 3, 3, 3), target=target, rtol=1e-4,
    )  # fmt: skip
    check(
        lambda a: topi.nn.lrn(a, 3),
        lambda a: torch.nn.functional.local_response_norm(tensor(a), 3, 1e-4, 0.75, 2.0).numpy(),
        x, target=target, rtol=1e-4,
    )  # fmt: skip
    check(
        lambda a: topi.nn.pool3d(a, (2, 2, 2), (2, 1, 2), (1, 1, 1), (0,) * 6, "max"),
        lambda a: torch.max_pool3d(tensor(a), 2, (2, 1, 2)).numpy(),
        given(1, 2, 4, 5, 6), target=target,
    )  # fmt: skip


@BOTH
def test_convolutions_in_blocks(target):
    data, kernel = given(1, 8, 7, 6), given(12, 8, 3, 3)

    def reference(a, w):
        plain = a.transpose(0, 1, 4, 2, 3).reshape(1, 8, 7, 6)
        whole = w.transpose(0, 5, 1, 4, 2, 3).reshape(12, 8, 3, 3)
        out = torch.conv2d(tensor(plain), tensor(whole), padding=1).numpy()
        return out.reshape(1, 3, 4, 7, 6).transpose(0, 1, 3, 4, 2)

    blocks = data.reshape(1, 2, 4, 7, 6).transpose(0, 1, 3, 4, 2).copy()
    packed = kernel.reshape(3, 4, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    check(
        lambda a, w: topi.nn.conv2d_NCHWc(a, w, 1, (1, 1), 1, "NCHW4c", "NCHW4c"),
        reference, blocks, packed, target=target, rtol=1e-4,
    )  # fmt: skip
    whole = RNG.integers(-5, 6, (1, 1, 7, 6, 8)).astype("int8")
    weights = RNG.integers(-5, 6, (3, 1, 3, 3, 2, 4, 4)).astype("int8")

    def integers(a, w):
        plain = a.transpose(0, 1, 4, 2, 3).reshape(1, 8, 7, 6)
        full = w.transpose(0, 5, 1, 4, 6, 2, 3).reshape(12, 8, 3, 3)
        out = torch.conv2d(tensor(plain).double(), tensor(full).double()).numpy()
        return out.reshape(1, 3, 4, 5, 4).transpose(0, 1, 3, 4, 2)

    check(
        lambda a, w: topi.nn.conv2d_NCHWc_int8(a, w, 1, 0, 1, "NCHW8c", "NCHW4c"),
        integers, whole, weights, target=target, dtype="int32",
    )  # fmt: skip


@BOTH
def test_boxes(target):
    anchors = topi.vision.ssd.multibox_prior(te.placeholder((1, 3, 2, 2)), (0.5,), (1, 2))
    assert tuple(int(d) for d in anchors.shape) == (1, 8, 4)
    boxes = np.array(
        [[[0, 0.9, 0, 0, 4, 4], [0, 0.8, 0, 0, 4, 3.5], [1, 0.7, 0, 0, 4, 4], [0, -1, 5, 5, 6, 6]]],
        "float32",
    )

    def detect(a):
        count, valid, indices = topi.vision.get_valid_counts(a, 0)
        return topi.vision.non_max_suppression(
            valid, count, indices, iou_threshold=0.5, return_indices=False
        )

    wanted = boxes.copy()
    wanted[0, 1] = wanted[0, 3] = -1
    check(detect, lambda a: wanted, boxes, target=target)


@BOTH
@pytest.mark.parametrize("block", [None, (2, 3)])
def test_products_with_sparse_matrices(target, block):
    if block is None:
        whole = scipy.sparse.random(12, 9, 0.3, "csr", "float32", random_state=3)
    else:
        made = topi.sparse.utils.random_bsr_matrix(12, 9, *block, 0.4, "float32")
        whole = scipy.sparse.bsr_matrix((made.data, made.indices, made.indptr), made.shape)
        np.testing.assert_array_equal(made.todense(), whole.toarray())
    parts = [whole.data, whole.indices.astype("int32"), whole.indptr.astype("int32")]
    x = given(5, 9)
    check(topi.nn.sparse_dense, lambda a, *_: a @ whole.toarray().T, x, *parts, target=target)
    check(
        lambda a, *s: topi.nn.sparse_dense(a, *s, sparse_lhs=True),
        lambda a, *_: whole.toarray() @ a.T, x, *parts, target=target,
    )  # fmt: skip


class Csr:
    def __init__(self, data, indices, indptr):
        self.data, self.indices, self.indptr = data, indices, indptr


@BOTH
def test_matrices_in_csr(target):
    square = scipy.sparse.random(8, 8, 0.3, "csr", "float32", random_state=4)
    parts = [square.data, square.indices.astype("int32"), square.indptr.astype("int32")]
    dense = square.toarray()
    x, bias = given(8, 5), given(8)
    check(
        lambda b, c, *s: topi.sparse.csrmm(Csr(*s), b, c), lambda b, c, *_: dense @ b + c[:, None],
        x, bias, *parts, target=target,
    )  # fmt: skip
    check(
        lambda b, *s: topi.sparse.dense(b, Csr(*s)), lambda b, *_: b @ dense.T,
        given(3, 8), *parts, target=target,
    )  # fmt: skip
    check(topi.nn.sparse_add, lambda a, *_: a + dense, given(8, 8), *parts, target=target)
    turned = square.T.tocsr()
    turned.sort_indices()
    check(
        topi.nn.sparse_transpose, lambda *_: (turned.data, turned.indices, turned.indptr), *parts,
        target=target,
    )  # fmt: skip


def test_a_symbolic_shape_is_refused_where_numbers_are_needed():
    with pytest.raises(InvalidShapeError, match="symbolic extent n"):
        topi.image.resize2d(te.placeholder((1, 1, te.var("n"), 4)), (0,) * 4, (2, 2))
    with pytest.raises(InvalidShapeError, match="one dense matrix and one sparse"):
        topi.sparse.dense(te.placeholder((2, 2)), te.placeholder((2, 2)))
    with pytest.raises(AttributeError, match="no attribute 'resize9d'"):
        topi.image.resize9d  # noqa: B018


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ii->i", [(4, 4)]),
        ("ijk->ki", [(2, 3, 4)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 2)]),
    ],
)
def test_einsum(subscripts, shapes):
    arrays = [given(*shape) for shape in shapes]
    check(lambda *x: topi.einsum(subscripts, *x), lambda *x: np.einsum(subscripts, *x), *arrays)


def test_positions_sets_and_sparse_shapes():
    mask = RNG.integers(0, 3, (6, 4, 5)).astype("int32")
    positions = np.argwhere(mask)
    check(lambda s, c: topi.argwhere(s, c), lambda s, c: positions, positions.astype("int32"), mask)
    data = RNG.integers(0, 9, 20)
    found, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True
    )

    def of_the_set(x):
        made = list(topi.unique(x, True, True))
        cut = [topi.strided_slice(made[i], [0], [len(found)]) for i in (0, 1, 4)]
        return [*cut, made[2], made[3]]

    want = [found, first, counts, inverse, np.array([len(found)])]
    check(of_the_set, lambda x: want, data, schedule=topi.generic.schedule_unique)
    check(
        lambda i, old, new: list(topi.sparse_reshape(i, old, new, (3, 3), (3,))),
        lambda i, old, new: [np.array([[0, 0, 1], [0, 2, 2], [1, 3, 2]]), np.array([2, 4, 3])],
        np.array([[0, 1], [1, 2], [3, 5]]), np.array([4, 6]), np.array([2, -1, 3]),
    )  # fmt: skip


def test_short_time_fourier_transform():
    signal, window = given(2, 50), np.hanning(8).astype("float32")
    want = torch.stft(tensor(signal), 8, 4, 8, tensor(window), center=False, return_complex=True)
    want = torch.view_as_real(want).numpy()
    check(
        lambda s, w: topi.stft(s, 8, 4, 8, w, False, True, want.shape),
        lambda s, w: want, signal, window, rtol=1e-4,
    )  # fmt: skip


def test_volumes_pooled_and_windows_moved_with_channels_last():
    x = given(2, 3, 4, 6, 8)
    check(
        lambda a: topi.nn.adaptive_pool3d(a, (2, 3, 4), "avg"),
        lambda a: torch.nn.functional.adaptive_avg_pool3d(tensor(a), (2, 3, 4)).numpy(), x,
        rtol=1e-4,
    )  # fmt: skip
    data, offset, kernel = given(2, 6, 7, 8), given(2, 6, 7, 18), given(3, 3, 8, 5)
    offset[...] = np.round(offset)  # then a moved window reads elements: no interpolation

    def moved(d, o, k):
        made, padded = (
            np.zeros((2, 6, 7, 5), "float64"),
            np.pad(d, ((0, 0), (9, 9), (9, 9), (0, 0))),
        )
        for n, y, z, i, j in np.ndindex(2, 6, 7, 3, 3):
            dy, dx = o[n, y, z, 2 * (3 * i + j) :][:2].astype(int)
            made[n, y, z] += padded[n, y + i + dy + 8, z + j + dx + 8] @ k[i, j]
        return made

    check(
        lambda d, o, k: topi.nn.deformable_conv2d_nhwc(d, o, k, 1, 1, 1, 1, 1, "float32"), moved,
        data, offset, kernel, rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("padding", "edges"), [("SAME", (2, 2)), ("VALID", (0, 0)), ((1, 2), (1, 2))]
)
def test_sequences_are_padded_by_words(padding, edges):
    x, w = given(2, 4, 9), given(6, 2, 3)
    padded = torch.nn.functional.pad(tensor(x), edges)
    want = torch.nn.functional.conv1d(padded, tensor(w), dilation=2, groups=2).numpy()
    check(lambda a, b: topi.nn.group_conv1d_ncw(a, b, 1, padding, 2, 2), lambda a, b: want, x, w,
          rtol=1e-4)  # fmt: skip
    last = np.ascontiguousarray
    check(
        lambda a, b: topi.nn.group_conv1d_nwc(a, b, 1, padding, 2, 2),
        lambda a, b: want.transpose(0, 2, 1), last(x.transpose(0, 2, 1)),
        last(w.transpose(2, 1, 0)), rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_a_table_of_constants_is_filled_by_a_thread(kind):
    """A stage of statements, which no schedule of elements binds."""
    device = tvm.device(kind, 0)
    if not device.exist:
        pytest.skip(f"no {kind} device: apt-get install pocl-opencl-icd mesa-vulkan-drivers")
    with tvm.target.Target(kind):
        data = te.placeholder((1, 2, 3), name="data")
        grid = topi.image.affine_grid(data, (5, 7))
        function = tvm.build(topi.testing.get_injective_schedule(kind)(grid), [data, grid], kind)
    x, out = given(1, 2, 3), tvm.nd.array(np.zeros((1, 2, 5, 7), "float32"), device)
    function(tvm.nd.array(x, device), out)
    wanted = torch.nn.functional.affine_grid(tensor(x), (1, 1, 5, 7), align_corners=True)
    np.testing.assert_allclose(out.numpy(), wanted.numpy().transpose(0, 3, 1, 2), atol=1e-6)
