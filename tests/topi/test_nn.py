"""Convolutions, pooling, dense layers and normalisation against NumPy."""

import numpy as np
import pytest
import torch
from tests.topi.checks import check, given

from slipway import te, topi


def convolved(x, w, stride=1, padding=(0, 0, 0, 0), dilation=1, groups=1):
    """NCHW by OIHW, one kernel element at a time."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    kh, kw = w.shape[2:]
    rows = (x.shape[2] - (kh - 1) * dilation - 1) // stride + 1
    columns = (x.shape[3] - (kw - 1) * dilation - 1) // stride + 1
    made, per, inner = np.zeros((len(x), len(w), rows, columns)), len(w) // groups, w.shape[1]
    for g in range(groups):
        part = x[:, g * inner : (g + 1) * inner]
        for i in range(kh):
            for j in range(kw):
                a, b = i * dilation, j * dilation
                seen = part[:, :, a : a + rows * stride : stride, b : b + columns * stride : stride]
                seen = seen[:, :, :rows, :columns]
                mine = slice(g * per, (g + 1) * per)
                made[:, mine] += np.einsum("nchw,oc->nohw", seen, w[mine, :, i, j])
    return made


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_conv2d_in_each_layout(target):
    x, w = given(2, 3, 8, 7), given(4, 3, 3, 2)
    for name, data, kernel in [
        ("conv2d_nchw", "NCHW", "OIHW"),
        ("conv2d_nhwc", "NHWC", "HWIO"),
        ("conv2d_hwcn", "HWCN", "HWIO"),
    ]:
        for stride, padding, sides in [(1, "SAME", (1, 1, 1, 0)), (2, (1, 0, 2, 1), (1, 0, 2, 1))]:
            to_data = ["NCHW".index(c) for c in data]
            to_kernel = ["OIHW".index(c) for c in kernel]
            check(
                lambda a, b, n=name, s=stride, p=padding: getattr(topi.nn, n)(a, b, s, p, 1),
                lambda a, b, s=stride, p=sides, t=to_data: convolved(x, w, s, p).transpose(t),
                x.transpose(to_data).copy(),
                w.transpose(to_kernel).copy(),
                target=target,
                rtol=1e-4,
            )


def test_conv2d_takes_classic_arguments():
    x, w = given(1, 4, 9, 9), given(6, 2, 3, 3)
    check(
        lambda a, b: topi.nn.group_conv2d_nchw(a, b, 2, 2, 2, 2),
        lambda a, b: convolved(a, b, 2, (2, 2, 2, 2), 2, 2),
        x,
        w,
        rtol=1e-4,
    )
    check(
        lambda a, b: topi.nn.conv2d(a, b, strides=1, padding=2, dilation=1),
        lambda a, b: convolved(a, b, 1, (2, 2, 2, 2)),
        x,
        given(2, 4, 5, 5),
        rtol=1e-4,
    )
    x, w = given(1, 3, 9, dtype="int8"), given(2, 3, 4, dtype="int8")
    check(
        lambda a, b: topi.nn.conv1d_ncw(a, b, 2, (1, 2), 1, "int32"),
        lambda a, b: convolved(np.pad(a, ((0, 0), (0, 0), (1, 2)))[:, :, None], b[:, :, None])[
            :, :, 0, ::2
        ],
        x,
        w,
        dtype="int32",
    )
    for shape, message in [((1, 5, 8, 8), "5 and 3 differ"), ((1, 3, 2, 2), "windows of 3")]:
        with pytest.raises(topi.InvalidShapeError, match=message):
            topi.nn.conv2d_nchw(te.placeholder(shape), te.placeholder((2, 3, 3, 3)), 1, 0)
    with pytest.raises(topi.InvalidShapeError, match="padding"):
        topi.nn.conv2d_nchw(
            te.placeholder((1, 3, 8, 8)), te.placeholder((2, 3, 3, 3)), 1, (1, 2, 3)
        )


def test_depthwise_conv2d():
    x, w = given(1, 3, 7, 6), given(3, 2, 3, 3)
    want = convolved(x, w.reshape(6, 1, 3, 3), 2, (1, 1, 1, 1), 1, 3)
    check(
        lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 2, 1), lambda a, b: want, x, w, rtol=1e-4
    )
    check(
        lambda a, b: topi.nn.depthwise_conv2d_nhwc(a, b, (2, 2), "SAME", 1),
        lambda a, b: want.transpose(0, 2, 3, 1),
        x.transpose(0, 2, 3, 1).copy(),
        w.transpose(2, 3, 0, 1).copy(),
        rtol=1e-4,
    )


def windows_of(x, size, stride, before, count, function):
    """`function` of the part of each window that lies within NCHW."""
    made = np.zeros((*x.shape[:2], *count))
    for y in range(count[0]):
        for z in range(count[1]):
            top, left = y * stride - before, z * stride - before
            part = x[:, :, max(top, 0) : top + size, max(left, 0) : left + size]
            made[:, :, y, z] = function(part)
    return made


def test_pooling():
    x = given(2, 3, 7, 8)
    most, mean = (lambda p: p.max((2, 3))), (lambda p: p.mean((2, 3)))
    check(
        lambda a: topi.nn.pool2d(a, 3, 2, 1, 1, "max"),
        lambda a: windows_of(a, 3, 2, 1, (4, 4), most),
        x,
    )
    check(
        lambda a: topi.nn.pool2d(a, 3, 2, 1, 1, "avg", count_include_pad=False),
        lambda a: windows_of(a, 3, 2, 1, (4, 4), mean),
        x,
    )
    check(
        lambda a: topi.nn.pool2d(a, 3, 2, 1, 0, "avg", True, count_include_pad=False),
        lambda a: windows_of(a, 3, 2, 0, (3, 4), mean),
        x,
    )
    check(
        lambda a: topi.nn.pool(a, (3, 3), (2, 2), (1, 1, 1, 1), "avg"),
        lambda a: windows_of(a, 3, 2, 1, (4, 4), lambda p: p.sum((2, 3)) / 9),
        x,
    )
    check(
        lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "max", layout="NHWC"),
        lambda a: a.reshape(2, 3, 2, 4, 2, 4).max((2, 4)),
        given(2, 6, 8, 4),
    )
    check(lambda a: topi.nn.global_pool(a, "avg"), lambda a: a.mean((2, 3), keepdims=True), x)
    want = np.stack(
        [
            np.stack([x[:, :, a:b, c:d].mean((2, 3)) for c, d in ((0, 3), (2, 6), (5, 8))], -1)
            for a, b in ((0, 4), (3, 7))
        ],
        2,
    )
    check(lambda a: topi.nn.adaptive_pool(a, (2, 3), "avg"), lambda a: want, x)


def test_layers():
    a, b = given(3, 4, 5), given(1, 6, 5)
    check(topi.nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), a, b, rtol=1e-4)
    check(
        lambda a, b: topi.nn.batch_matmul(a, b, transpose_a=True, transpose_b=False),
        lambda a, b: a.transpose(0, 2, 1) @ b,
        a,
        given(3, 4, 2),
        rtol=1e-4,
    )
    x = given(3, 7) * 40
    want = x - x.max(1, keepdims=True)
    want -= np.log(np.exp(want).sum(1, keepdims=True))
    check(topi.nn.log_softmax, lambda a: want, x)
    check(
        lambda a: topi.nn.dilate(a, (2, 3), 1.5),
        lambda a: np.array(
            [
                [a[y // 2, x // 3] if y % 2 == x % 3 == 0 else 1.5 for x in range(7)]
                for y in range(3)
            ],
            "float32",
        ),
        given(2, 3),
    )


def test_normalisation_and_scaling():
    x, g, b, m, v = given(2, 3, 4, 5), given(3), given(3), given(3), np.abs(given(3)) + 0.5
    along = (slice(None), None, None)
    check(
        lambda *t: topi.nn.batch_norm(*t)[0],
        lambda x, g, b, m, v: (x - m[along]) / np.sqrt(v[along] + 1e-5) * g[along] + b[along],
        x,
        g,
        b,
        m,
        v,
        rtol=1e-4,
    )
    check(topi.nn.scale_shift_nchw, lambda x, g, b: x * g[along] + b[along], x, g, b)
    check(topi.nn.prelu, lambda x, g: np.where(x > 0, x, x * g[along]), x, g)


def test_matrices_are_transposed_and_get_a_bias():
    a, b, bias = given(5, 3), given(4, 5), given(4)
    check(
        lambda x, y, z: topi.nn.matmul(x, y, z, transpose_a=True, transpose_b=True),
        lambda x, y, z: x.T @ y.T + z, a, b, bias, rtol=1e-4,
    )  # fmt: skip


def test_scale_and_shift_of_blocks_of_channels():
    x, scale, shift = given(2, 3, 4, 5, 8), given(3, 8), given(3, 8)
    check(
        topi.nn.scale_shift_nchwc,
        lambda a, b, c: a * b[None, :, None, None] + c[None, :, None, None], x, scale, shift,
    )  # fmt: skip


def test_batch_norm_gives_mean_and_variance_as_outputs():
    x, rows = given(2, 4, 3), [np.abs(given(4)) + 0.5 for _ in range(4)]

    def reference(a, gamma, beta, mean, var):
        column = lambda v: v[:, None]  # noqa: E731
        made = (a - column(mean)) / np.sqrt(column(var) + 1e-3) * column(gamma) + column(beta)
        return [made, mean, var]

    check(lambda *t: topi.nn.batch_norm(*t, axis=1, epsilon=1e-3), reference, x, *rows, rtol=1e-4)


def test_depth_to_space_knows_both_spellings_of_a_mode():
    x = given(1, 8, 2, 3)
    want = torch.nn.functional.pixel_shuffle(torch.tensor(x), 2).numpy()
    for mode in ("CRD", "CDR"):
        check(lambda a, m=mode: topi.nn.depth_to_space(a, 2, mode=m), lambda a: want, x)
