"""Each ATen operator, in all its overloads, against torch through the reference interpreter.

The functions of a family are exported together, because an export takes longer than what it finds.
"""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, expected, interpreted
from torch import nn

RNG = torch.Generator().manual_seed(0)


def randn(*shape):
    return torch.randn(*shape, generator=RNG)


def randint(low, high, *shape):
    return torch.randint(low, high, shape, generator=RNG)


class Several(nn.Module):
    """Several functions of the same inputs."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        found = []
        for function in self.functions:
            made = function(*inputs)
            found.extend(made if isinstance(made, (tuple, list)) else [made])
        return tuple(found)


def put(x, indices, values):
    x = x.clone()
    x[indices] = values
    return x


X = randn(2, 3, 5)
Y = randn(2, 3, 5)
IMAGE = randn(2, 4, 9, 8)
WHOLE = randint(-9, 9, 2, 3, 5)
MASK = randn(2, 3, 5) > 0

FAMILIES = {
    "numbers": (
        [
            torch.fmax, torch.fmin, torch.maximum, lambda x, y: torch.fmin(y, x), torch.logaddexp2,
            lambda x, y: torch.exp2(x),
            lambda x, y: torch.exp2((y.nan_to_num() * 3).to(torch.int32)),
            lambda x, y: torch.round(x, decimals=1), lambda x, y: torch.round(y * 90, decimals=-1),
            lambda x, y: torch.linspace(x[0, 0, 1], y[0, 0, 2], 7),
            lambda x, y: torch.linspace(2.0, x[0, 0, 1], 4), lambda x, y: torch.fmax(x > 0, y > 0),
            lambda x, y: torch.minimum(x > 0, y > 0), lambda x, y: (x > 0).amax(1),
            lambda x, y: torch.max(x > 0, 2), lambda x, y: (x > 9).max(),
            lambda x, y: F.avg_pool3d(y.nan_to_num()[None], (2, 2, 3), 1, 1, divisor_override=5),
            lambda x, y: F.avg_pool2d(y.nan_to_num(), 2, 1, 1, False, False, divisor_override=3),
        ],
        [torch.where(X > 1, torch.nan, X), torch.where(Y > 1, torch.nan, Y)],
    ),
    "unary": (
        [
            torch.abs, torch.neg, torch.ceil, torch.floor, torch.round, torch.trunc, torch.sign,
            torch.exp, torch.expm1, torch.sin, torch.cos, torch.tan, torch.tanh, torch.sigmoid,
            torch.erf, torch.sinh, torch.cosh, torch.asinh, torch.atan, torch.reciprocal,
            torch.square, torch.isnan, torch.isinf, torch.isfinite, torch.logical_not,
            lambda x: torch.sqrt(x.abs()), lambda x: torch.rsqrt(x.abs()),
            lambda x: torch.log(x.abs()), lambda x: torch.log2(x.abs()),
            lambda x: torch.log10(x.abs()), lambda x: torch.log1p(x.abs()),
            lambda x: torch.log1p(x * 1e-6), lambda x: torch.expm1(x * 1e-6),
            lambda x: torch.asin(x / 9), lambda x: torch.acos(x / 9), lambda x: torch.atanh(x / 9),
            lambda x: torch.acosh(x.abs() + 1),
        ],
        [X],
    ),
    "binary": (
        [
            torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.atan2,
            lambda x, y: torch.add(x, y, alpha=2), lambda x, y: torch.sub(x, y, alpha=0.5),
            lambda x, y: x + 1, lambda x, y: 2 - x, lambda x, y: 1 / x, lambda x, y: x / 3,
            lambda x, y: torch.div(x, y, rounding_mode="floor"),
            lambda x, y: torch.div(x, y, rounding_mode="trunc"), lambda x, y: x // 0.5,
            torch.remainder, torch.fmod, lambda x, y: x % 0.75, lambda x, y: torch.pow(x, 2),
            lambda x, y: x**3, lambda x, y: x.abs() ** 0.5, lambda x, y: x.abs() ** -0.5,
            lambda x, y: x**-1, lambda x, y: x.abs() ** y, lambda x, y: 2**x,
            lambda x, y: x == y, lambda x, y: x != 0, lambda x, y: x < y, lambda x, y: x <= 0.5,
            lambda x, y: x > y, lambda x, y: x >= y, torch.logical_and, torch.logical_or,
            torch.logical_xor, lambda x, y: torch.where(x > 0, x, y),
            lambda x, y: torch.where(x > 0, x, 0.0), lambda x, y: x.masked_fill(y > 0, -1e4),
            lambda x, y: x.clamp(-0.5, 0.5), lambda x, y: x.clamp(min=0.1),
            lambda x, y: x.clamp(max=0.1), lambda x, y: x.clamp(min=y),
            lambda x, y: torch.addcmul(x, x, y, value=0.5),
            lambda x, y: torch.addcdiv(x, x, y), lambda x, y: torch.lerp(x, y, 0.3),
            lambda x, y: torch.max(x, y), lambda x, y: torch.min(x, y),
        ],
        [X, Y],
    ),
    "integers": (
        [
            lambda a, b: a + b, lambda a, b: a * 3, lambda a, b: a / b, lambda a, b: a // b,
            lambda a, b: torch.div(a, b, rounding_mode="trunc"), lambda a, b: a % b,
            lambda a, b: a.float() / 2, lambda a, b: a * 0.5, lambda a, b: a & b,
            lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: ~a, lambda a, b: a == b,
            lambda a, b: a < 2, lambda a, b: a.sum(), lambda a, b: (a > 0).sum(1),
            lambda a, b: a.to(torch.int32) + 1, lambda a, b: a.to(torch.bool),
            lambda a, b: torch.sqrt(b), lambda a, b: torch.where(a > 0, a, b),
            lambda a, b: a.clamp(0, 4), lambda a, b: a.abs(), lambda a, b: (a > 0) & (b > 5),
            lambda a, b: ~(a > 0), lambda a, b: torch.cumsum(a, 1), lambda a, b: a.max(),
            lambda a, b: a.to(torch.uint8).to(torch.int64), lambda a, b: a + (a > 0),
        ],
        [WHOLE, randint(1, 9, 2, 3, 5)],
    ),
    "activations": (
        [
            F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.gelu, F.silu, F.mish,
            F.hardswish, F.hardsigmoid, F.hardtanh, F.softplus, F.logsigmoid, F.softsign,
            F.tanhshrink, lambda x: F.leaky_relu(x, 0.2), lambda x: F.elu(x, 0.5),
            lambda x: F.celu(x, 2.0), lambda x: F.gelu(x, approximate="tanh"),
            lambda x: F.softplus(x, 3.0, 2.0), lambda x: F.hardtanh(x, -0.2, 0.3),
            lambda x: F.glu(x[..., :4], -1), lambda x: F.softmax(x, 1),
            lambda x: F.log_softmax(x, -1), lambda x: F.softmin(x, -1),
            lambda x: F.prelu(x, torch.full((3,), 0.2)), lambda x: F.threshold(x, 0.1, 20.0),
            lambda x: F.hardshrink(x), lambda x: F.softshrink(x),
            lambda x: F.dropout(x, 0.5, False),
        ],
        [X * 3],
    ),
    "reductions": (
        [
            torch.sum, torch.mean, torch.prod, torch.amax, torch.amin, torch.max, torch.min,
            lambda x: x.sum(1), lambda x: x.sum((0, 2), keepdim=True), lambda x: x.mean(-1),
            lambda x: x.mean((1, 2), keepdim=True), lambda x: x.prod(1), lambda x: x.amax(-1),
            lambda x: x.amin((0, 1)), lambda x: x.max(1), lambda x: x.min(2, keepdim=True),
            torch.argmax, lambda x: x.argmax(1), lambda x: x.argmin(-1, keepdim=True),
            torch.var, lambda x: x.var(1), lambda x: x.var((1, 2), correction=0),
            lambda x: x.std(-1, keepdim=True), lambda x: torch.var_mean(x, 1),
            lambda x: torch.std_mean(x, (0, 2)), lambda x: (x > 0).any(),
            lambda x: (x > 0).all(1), lambda x: (x > -9).all(), lambda x: torch.logsumexp(x, 1),
            lambda x: x.cumsum(1), lambda x: x.cumprod(-1), lambda x: x.topk(2, -1),
            lambda x: x.topk(2, 1, largest=False), lambda x: x.sort(-1),
            lambda x: x.argsort(1, descending=True), lambda x: x.norm(dim=1),
            lambda x: x.norm(p=1, dim=-1), lambda x: torch.linalg.vector_norm(x, 3.0, (1, 2)),
            lambda x: torch.linalg.vector_norm(x, float("inf")), lambda x: F.normalize(x, dim=1),
            lambda x: torch.count_nonzero(x > 0), lambda x: x.sum(0),
        ],
        [X],
    ),
    "shapes": (
        [
            lambda x: x.view(6, 5), lambda x: x.reshape(-1), lambda x: x.flatten(1),
            lambda x: x.unflatten(2, (5, 1)), lambda x: x.permute(2, 0, 1),
            lambda x: x.transpose(0, 2), lambda x: x[0].t(), lambda x: x.mT,
            lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(-1).squeeze(-1),
            lambda x: x[:, None].squeeze(), lambda x: x[:, :1].expand(2, 4, 5),
            lambda x: x[:, :1].expand_as(x), lambda x: x.repeat(2, 1, 3),
            lambda x: x.repeat(2, 1, 1, 1), lambda x: torch.tile(x, (2,)),
            lambda x: x.repeat_interleave(2, 1), lambda x: x.repeat_interleave(2),
            lambda x: torch.cat([x, x], 1), lambda x: torch.cat([torch.zeros(0), x.view(-1)], 0),
            lambda x: torch.stack([x, x], -1), lambda x: x.split(2, -1), lambda x: x.chunk(2, 1),
            lambda x: x.split([1, 4], 2), lambda x: x.unbind(1), lambda x: x[1],
            lambda x: x.select(2, -1), lambda x: x[:, 1:, ::2], lambda x: x[:, -2:],
            lambda x: x[..., 100:], lambda x: x.narrow(2, 1, 3), lambda x: x.flip((0, 2)),
            lambda x: x.roll(2, 1), lambda x: x.roll((1, -2), (0, 2)), lambda x: x.roll(3),
            lambda x: x.movedim(0, -1), lambda x: x.contiguous().clone().detach(),
            lambda x: x.tril(), lambda x: x.triu(1), lambda x: torch.broadcast_to(x, (2, 2, 3, 5)),
            lambda x: torch.rot90(x, 1, (1, 2)),
            lambda x: torch.tensor_split(x, 3, 2), lambda x: torch.hstack([x, x]),
        ],
        [X],
    ),
    "pads": (
        [
            lambda x: F.pad(x, (1, 2)), lambda x: F.pad(x, (1, 0, 0, 2), value=3.0),
            lambda x: F.pad(x, (-1, 1, 2, -2)), lambda x: F.pad(x, (2, 1, 1, 2), "reflect"),
            lambda x: F.pad(x, (2, 1, 1, 2), "replicate"), lambda x: F.pixel_shuffle(x, 2),
            lambda x: F.pixel_unshuffle(x[..., :8, :], 2), lambda x: F.channel_shuffle(x, 2),
            lambda x: F.pad(x[0], (1, 1), "reflect"),
            lambda x: nn.ZeroPad2d(1)(x),
        ],
        [IMAGE],
    ),
    "pools": (
        [
            lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 3, 2, 1),
            lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
            lambda x: F.max_pool2d(x, (2, 3), (1, 2), dilation=2), lambda x: F.avg_pool2d(x, 2),
            lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1, True),
            lambda x: F.avg_pool2d(x, 3, 2, 1, False, False),
            lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
            lambda x: F.adaptive_avg_pool2d(x, (4, 3)), lambda x: F.adaptive_max_pool2d(x, 1),
            lambda x: F.max_pool1d(x[0], 2), lambda x: F.avg_pool1d(x[:, 0], 2),
            lambda x: F.adaptive_avg_pool1d(x[:, 0], 1), lambda x: F.max_pool2d(x[0], 2),
            lambda x: F.max_pool3d(x[None], 2), lambda x: F.avg_pool3d(x[None], 2),
            lambda x: x.mean((2, 3)), lambda x: F.lp_pool2d(x, 2, 2),
        ],
        [IMAGE],
    ),
    "resizing": (
        [
            lambda x: F.interpolate(x, scale_factor=2), lambda x: F.interpolate(x, (5, 13)),
            lambda x: F.interpolate(x, scale_factor=1.7), lambda x: F.interpolate(
                x, scale_factor=2, mode="bilinear"),
            lambda x: F.interpolate(x, (5, 13), mode="bilinear"),
            lambda x: F.interpolate(x, (5, 13), mode="bilinear", align_corners=True),
            lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear",
                                    recompute_scale_factor=True),
            lambda x: F.interpolate(x, (12, 7), mode="bicubic"),
            lambda x: F.interpolate(x, (12, 7), mode="nearest-exact"),
            lambda x: F.interpolate(x[0], 11, mode="linear"), lambda x: F.interpolate(x[0], 11),
            lambda x: F.interpolate(x[None], (3, 4, 5), mode="trilinear"),
            lambda x: F.grid_sample(x, x[..., :2] * 0.4, align_corners=False),
            lambda x: F.grid_sample(x, x[..., :2], "nearest", "border", align_corners=True),
        ],
        [IMAGE],
    ),
    "indices": (
        [
            lambda x, i: x.index_select(1, i[0]), lambda x, i: x[i], lambda x, i: x[:, i],
            lambda x, i: x[i[0], i[1]], lambda x, i: x[:, i[0], i[1]],
            lambda x, i: x[..., i], lambda x, i: x[i - 2], lambda x, i: F.embedding(i, x[0]),
            lambda x, i: x.gather(1, i[None].expand(2, 2, 2)),
            lambda x, i: torch.take_along_dim(x[0], i[:, :1].expand(2, 5), 0),
            lambda x, i: x.scatter(1, i[None].expand(2, 2, 2), 7.0),
            lambda x, i: x.scatter(1, i[None].expand(2, 2, 2) * 0, x[:, :2, :2]),
            lambda x, i: x.scatter_add(1, i[None].expand(2, 2, 2), x),
            lambda x, i: x.scatter_reduce(1, i[None].expand(2, 2, 2), x, "amax"),
            lambda x, i: x.index_put((torch.tensor([1]),), x[:1] * 0),
            lambda x, i: x.index_put((torch.tensor([1, 0]), torch.tensor([0, 2])), x[0, :2], True),
            lambda x, i: x.index_add(1, torch.tensor([0, 2]), x[:, :2]),
            lambda x, i: x.index_copy(1, torch.tensor([2, 0]), x[:, :2]),
            *(
                lambda x, i, r=r: x.index_reduce(1, torch.tensor([0, 2, 0]), x * 2, *r)
                for r in (("amax",), ("mean",), ("prod",), ("amin",))
            ),
            lambda x, i: x.index_reduce(2, torch.tensor([4]), x[..., :1], "mean",
                                        include_self=False),
            lambda x, i: x.index_put((x > 0.3,), torch.tensor(2.0), accumulate=True),
            lambda x, i: x.index_put((x[..., 0] > 0,), x[0, 0], accumulate=True),
            lambda x, i: F.one_hot(i, 4), lambda x, i: torch.slice_scatter(x, x[:, :1], 1, 1, 2),
            lambda x, i: torch.select_scatter(x, x[:, 0], 1, 2),
            lambda x, i: torch.zeros_like(x) + torch.ones(5),
            lambda x, i: torch.arange(5) + i[0, 0],
            lambda x, i: torch.arange(1, 9, 3), lambda x, i: torch.full((2, 3), 4.0),
            lambda x, i: x.new_zeros(3) + torch.eye(3), lambda x, i: torch.linspace(0, 1, 7),
        ],
        [X, randint(0, 2, 2, 2)],
    ),
    "products": (
        [
            lambda x, y: x @ y.mT, lambda x, y: torch.bmm(x, y.mT), lambda x, y: x[0] @ y[0].t(),
            lambda x, y: torch.mm(x[0], y[0].t()), lambda x, y: x[0] @ y[0, 0],
            lambda x, y: torch.dot(x[0, 0], y[0, 0]), lambda x, y: F.linear(x, y[0]),
            lambda x, y: F.linear(x, y[0], torch.arange(3.0)), lambda x, y: F.linear(x[0, 0], y[0]),
            lambda x, y: torch.addmm(torch.ones(3), x[0], y[0].t()),
            lambda x, y: torch.addmm(y[0, :, :3], x[0], y[0].t(), beta=0.5, alpha=2),
            lambda x, y: torch.baddbmm(y[:, :, :3], x, y.mT),
            lambda x, y: torch.addbmm(y[0, :, :3], x, y.mT, beta=0.5, alpha=2),
            lambda x, y: torch.einsum("bij,bkj->bik", x, y),
            lambda x, y: torch.einsum("bij,bij->b", x, y),
            lambda x, y: torch.matmul(x[:, None], y.mT),
            lambda x, y: torch.outer(x[0, 0], y[0, 0]),
            lambda x, y: torch.tensordot(x, y, ([2], [2])),
            lambda x, y: F.cosine_similarity(x, y, 1), lambda x, y: torch.cdist(x, y),
            torch.dist, lambda x, y: torch.dist(x, y[0], 1),
            *(lambda x, y, p=p: torch.cdist(x, y, p) for p in (0, 1, 2.5, float("inf"))),
        ],
        [X, Y],
    ),
    "attention": (
        [
            F.scaled_dot_product_attention,
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            lambda q, k, v: F.scaled_dot_product_attention(
                q, k, v, q[..., :1] * k[..., 0][:, :, None]),
            lambda q, k, v: F.scaled_dot_product_attention(
                q, k, v, torch.tensor([[True, False, True, True, True]])),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.1),
            lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
            lambda q, k, v: F.scaled_dot_product_attention(q[0], k[0], v[0]),
        ],
        [randn(2, 4, 5, 6), randn(2, 4, 5, 6), randn(2, 4, 5, 6)],
    ),
    "masks": (
        [
            lambda x, m: put(x, m > 0, 5.0), lambda x, m: put(x, m[:, 0, 0] > 0, x[0]),
            lambda x, m: torch.index_put(x, (m > 0,), torch.tensor(5.0)),
            lambda x, m: x.masked_scatter(m > 0, torch.arange(30.0)),
            lambda x, m: x.masked_scatter(m[:, :, :1] > 0, torch.arange(30.0)),
        ],
        [X, Y],
    ),
    "places": (
        [
            lambda x: x[[0, 1, 0], :, [1, 2, 3]], lambda x: x[None][:, [0, 1], :, [[1], [2]]],
            lambda x: put(x, (slice(None), [0, 2]), 7.0),
            lambda x: put(x, (slice(None), [0, 1], [2, 3]), x[:, 0, :2]),
            lambda x: put(x, ([0, 1], slice(None), [1, 2]), x[:, :, 4]),
            lambda x: put(x, (slice(None), slice(None), slice(1, None, 3)), x[:, :, :2]),
            *(lambda x, r=r, own=own: x[0].scatter_reduce(
                1, torch.tensor([[0, 1, 1, 4], [2, 2, 3, 3]]), x[1, :2, :4], r, include_self=own)
              for r in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
            lambda x: (x.unfold(0, 2, 1), x.unfold(1, 2, 1), x.unfold(2, 3, 2)),
            lambda x: (torch.diagonal(x), torch.diagonal(x, 1, 1, 2), torch.diagonal(x, -2, 2, 1)),
            lambda x: (torch.diag(x[0, 0]), torch.diag(x[0]), torch.diagonal_scatter(
                x[0], torch.ones(3), 1)),
            lambda x: (x.as_strided((2, 3, 4), (15, 2, 1), 1), (x * 2).as_strided((3, 5), (5, 1))),
            lambda x: [F.embedding_bag(torch.arange(6).reshape(2, 3), x.reshape(6, 5), mode=m)
                       for m in ("sum", "mean", "max")],
            lambda x: [F.embedding_bag(torch.arange(6).reshape(2, 3), x.reshape(6, 5), mode=m,
                                       padding_idx=4) for m in ("sum", "mean")],
        ],
        [X],
    ),
    "orders": (
        [
            lambda x: torch.cummax(x.round(), 1), lambda x: torch.cummin(x.round(), 2),
            lambda x: torch.logcumsumexp(x * 5, 2), torch.median,
            lambda x: torch.median(x, 1, keepdim=True), lambda x: torch.kthvalue(x, 4, 2),
            lambda x: torch.histc(x, 8, -1, 1),
            lambda x: torch.searchsorted(torch.sort(x)[0], x + 0.1, right=True),
            lambda x: torch.searchsorted(torch.sort(x[0, 0])[0], 0.3),
            lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1])),
        ],
        [X],
    ),
    "linear algebra": (
        [
            torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet,
            lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)),
            lambda x: torch.linalg.solve(x, x + 1), lambda x: torch.linalg.solve(x, x[:, 0]),
            lambda x: torch.linalg.inv(x[0, :1, :1]), lambda x: F.bilinear(
                x, x + 1, torch.ones(3, 4, 4), torch.ones(3)),
            lambda x: [
                torch.linalg.solve_triangular(
                    x + torch.eye(4), x[0] + 1, upper=up, left=left, unitriangular=up == left)
                for up in (True, False) for left in (True, False)
            ],
            lambda x: [torch.pdist(x[0], p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
        ],
        [randn(2, 4, 4)],
    ),
    "columns": (
        [
            lambda x: F.fold(F.unfold(x, (3, 2), 2, (1, 0), (2, 1)), (9, 8), (3, 2), 2, (1, 0),
                             (2, 1)),
            lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
            lambda x: F.max_pool2d(x[0], (2, 3), ceil_mode=True, return_indices=True),
            lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        ],
        [IMAGE],
    ),
    "norms": (
        [
            lambda x: F.layer_norm(x, (8,)), lambda x: F.layer_norm(x, (9, 8), eps=1e-3),
            lambda x: F.layer_norm(x, (8,), torch.arange(8.0), torch.ones(8)),
            lambda x: F.group_norm(x, 2), lambda x: F.group_norm(x, 2, torch.arange(4.0)),
            lambda x: F.instance_norm(x), lambda x: F.rms_norm(x, (8,)),
            lambda x: F.rms_norm(x, (8,), torch.arange(8.0), 1e-3),
            lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4), torch.arange(4.0)),
            lambda x: F.local_response_norm(x, 3),
            lambda x: F.batch_norm(x, None, None, training=True),
        ],
        [IMAGE],
    ),
}  # fmt: skip


QUICK = (
    *("binary", "activations", "shapes", "indices", "products", "attention", "masks", "places"),
    *("orders", "columns", "numbers"),
    *("plain", "transposed", "1d", "lstm", "gru"),
)


def cases(names):
    """Return the names as test cases, of which the default suite runs the quick ones."""
    return [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.long]) for n in names]


@pytest.mark.parametrize("family", cases(FAMILIES))
def test_family(family):
    functions, inputs = FAMILIES[family]
    module = Several(functions).eval()
    assert_same(interpreted(module, inputs), expected(module, inputs))


@pytest.mark.parametrize("x", [IMAGE, IMAGE[0, :, :, 0], IMAGE[None]], ids=["2d", "rows", "3d"])
def test_a_norm_without_stored_statistics_has_those_of_the_batch(x):
    """So weights are standardised: by way of one such norm with a channel for each filter."""
    width = x.shape[1]
    module = Several([
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.batch_norm(x, None, None, torch.arange(1.0, width + 1), training=True, eps=0.1),
        lambda x: F.batch_norm(
            x, None, None, torch.arange(1.0, width + 1), -torch.arange(0.0, width), training=True),
    ]).eval()  # fmt: skip
    assert_same(interpreted(module, [x]), expected(module, [x]))


CONVOLUTIONS = {
    "plain": (nn.Conv2d(4, 6, 3), IMAGE),
    "groups": (nn.Conv2d(4, 8, 3, 2, 1, groups=2, bias=False), IMAGE),
    "dilated": (nn.Conv2d(4, 6, (3, 2), dilation=(2, 1), padding=(2, 0)), IMAGE),
    "same": (nn.Conv2d(4, 6, 4, padding="same"), IMAGE),
    "reflecting": (nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), IMAGE),
    "1d": (nn.Conv1d(9, 6, 3, 2, 1), IMAGE[0]),
    "3d": (nn.Conv3d(2, 3, 2), IMAGE[None]),
    "single": (nn.Conv2d(4, 6, 3), IMAGE[0]),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), IMAGE),
    "transposed groups": (nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2), IMAGE),
    "transposed 1d": (nn.ConvTranspose1d(9, 6, 4, 2), IMAGE[0]),
    "weight norm": (torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(9, 6, 3)), IMAGE[0]),
}


@pytest.mark.parametrize("case", cases(CONVOLUTIONS))
def test_convolution(case):
    module, x = CONVOLUTIONS[case]
    assert_same(interpreted(module, [x]), expected(module, [x]))


class Taken(nn.Module):
    """The tensors of a recurrent layer's nested result."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *inputs):
        y, state = self.layer(*inputs)
        return (y, *state) if isinstance(state, tuple) else (y, state)


RECURRENT = {
    "lstm": (nn.LSTM(5, 4), 1), "lstm deep": (nn.LSTM(5, 4, 2, bidirectional=True), 1),
    "lstm batch first": (nn.LSTM(5, 4, batch_first=True, bias=False), 1),
    "gru": (nn.GRU(5, 4, 2, batch_first=True, bidirectional=True), 1),
    "gru without bias": (nn.GRU(5, 4, bias=False), 1), "gru with state": (nn.GRU(5, 4), 2),
    "rnn": (nn.RNN(5, 4), 1), "rnn relu": (nn.RNN(5, 4, nonlinearity="relu"), 1),
}  # fmt: skip


@pytest.mark.parametrize("case", cases(RECURRENT))
def test_recurrent(case):
    layer, count = RECURRENT[case]
    module, inputs = Taken(layer).eval(), [X, randn(1, 3, 4)][:count]
    assert_same(interpreted(module, inputs), expected(module, inputs))


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        (nn.LSTM, 1), (nn.GRU, 2), (nn.RNN, 140),
        *(pytest.param(kind, 1100, marks=pytest.mark.long) for kind in (nn.LSTM, nn.GRU, nn.RNN)),
    ],
)  # fmt: skip  # torch.export itself takes 10 to 40 ms a step
def test_recurrent_layers_of_any_length(kind, steps):
    module, x = Taken(kind(5, 4, bidirectional=True)).eval(), randn(steps, 1, 5)
    found = interpreted(module, [x])
    assert_same(found, expected(module, [x]))


class Quantized(nn.Module):
    """Quantise and dequantise nodes, as torch's quantisation writes them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", randint(-127, 128, 6, 5).to(torch.int8))
        self.register_buffer("scales", torch.rand(6, generator=RNG) / 50 + 0.01)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        x8 = q.quantize_per_tensor(x, 0.03, 3, -128, 127, torch.int8)
        x = q.dequantize_per_tensor(x8, 0.03, 3, -128, 127, torch.int8)
        w = q.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        y = F.linear(x, w)
        return x8, q.quantize_per_tensor(y, 0.5, -4, -100, 90, torch.int8)


def test_quantised_programs():
    import torch.ao.quantization.fx._decomposed  # noqa: F401 - it defines the operators

    module = Quantized().eval()
    assert_same(interpreted(module, [X]), expected(module, [X]))
