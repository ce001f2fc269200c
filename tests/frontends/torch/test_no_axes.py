"""Tensors without axes, of which PyTorch counts one, and tensors without elements."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, compiled, expected, interpreted
from tests.frontends.torch.test_operators import Several

ALONG = {
    "reductions": [
        lambda x: x.sum(0), lambda x: x.sum(-1, keepdim=True), lambda x: x.mean(0),
        lambda x: x.prod(-1), lambda x: x.amax(0), lambda x: x.amin(-1, keepdim=True),
        lambda x: x.max(0), lambda x: x.min(-1, keepdim=True), lambda x: (x > 0).any(0),
        lambda x: (x > 0).all(-1), lambda x: x.var(0, unbiased=False), lambda x: x.logsumexp(0),
        lambda x: torch.linalg.vector_norm(x, 3, 0), lambda x: torch.count_nonzero(x, 0),
    ],
    "positions": [
        lambda x: x.argmax(0), lambda x: x.argmin(-1, keepdim=True), lambda x: x.sort(),
        lambda x: x.argsort(-1), lambda x: x.topk(1), lambda x: x.kthvalue(1),
        lambda x: x.median(0), lambda x: x.cummax(0),
    ],
    "elementwise": [
        lambda x: torch.softmax(x, 0), lambda x: torch.log_softmax(x, -1),
        lambda x: x.cumsum(0), lambda x: x.cumprod(-1), lambda x: x.flip(0),
        lambda x: x.index_select(0, torch.zeros(1, dtype=torch.int64)),
        lambda x: x.gather(0, torch.zeros((), dtype=torch.int64)),
        lambda x: x.unsqueeze(0), lambda x: x.unsqueeze(-1), lambda x: x.squeeze(0),
        lambda x: torch.stack([x, x], 0), lambda x: F.normalize(x, dim=0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("family", ALONG)
def test_an_axis_of_a_scalar(family):
    module, inputs = Several(ALONG[family]), (torch.tensor(-1.5),)
    assert_same(interpreted(module, inputs), expected(module, inputs))


def test_an_axis_of_a_scalar_compiled():
    module = Several([lambda x: torch.softmax(x * 2, 0) + x.sum(-1), lambda x: (x + 1).sort()])
    inputs = (torch.tensor(0.25),)
    assert_same(compiled(module, inputs), expected(module, inputs))


def test_the_norm_of_order_zero_counts_what_is_not_zero():
    x = torch.tensor([[0.0, -1.0, 2.0], [-0.0, 0.0, 5.0]])
    module = Several([
        lambda x: torch.linalg.vector_norm(x, 0), lambda x: torch.linalg.vector_norm(x, 0, 1),
        lambda x: torch.linalg.vector_norm(x, 0, -1, keepdim=True),
    ])  # fmt: skip
    assert_same(interpreted(module, (x,)), expected(module, (x,)))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_what_is_made_of_no_elements(shape):
    functions = [
        lambda x: x.median(), lambda x: x.sum(), lambda x: x.mean(0), lambda x: x.sort(0),
        lambda x: torch.log_softmax(x, 0), lambda x: x.cumsum(-1), lambda x: x.logsumexp(0),
        lambda x: x.roll(1), lambda x: x.roll(2, 0), lambda x: x.topk(0),
        lambda x: x.reshape(-1), lambda x: x.flatten(),
        lambda x: F.layer_norm(x, x.shape[-1:]), lambda x: torch.cat([x, x], -1),
    ]  # fmt: skip
    module, inputs = Several(functions), (torch.zeros(shape),)
    assert_same(interpreted(module, inputs), expected(module, inputs))
