"""Branches and loops of torch's higher-order operators, compiled and interpreted."""

import pytest
import torch
from compare import assert_same, compiled, expected, interpreted
from torch import nn
from torch._higher_order_ops import map as each
from torch._higher_order_ops import scan, while_loop


class Branch(nn.Module):
    """Two layers, of which the data chooses one; both are followed by another."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        taken = torch.cond(x.mean() > 0, lambda x: self.one(x).relu(), lambda x: self.two(x), (x,))
        return self.last(taken)


class Pairs(nn.Module):
    """Branches of two results each, inside another branch."""

    def forward(self, x):
        def inner(x):
            return torch.cond(
                x.amax() > 9, lambda x: (x * 2, x + 1), lambda x: (x - 1, x * 3), (x,)
            )

        return torch.cond(x.sum() > 0, inner, lambda x: (x.exp(), x.neg()), (x,))


class Doubling(nn.Module):
    """As many turns as the data asks for, with a weight that does not change."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.linspace(1.5, 2.5, 6))

    def forward(self, x):
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(
            lambda n, x: x.abs().amax() < 50, lambda n, x: (n + 1, x * self.factor), (start, x)
        )


class Smoothing(nn.Module):
    """A running state over the rows, and what each row gives."""

    def forward(self, x):
        def step(state, row):
            state = state * 0.9 + row * 0.1
            return state, state.tanh() * row

        return scan(step, x[0] * 0, x)


class Rows(nn.Module):
    """The same for each row."""

    def forward(self, x, y):
        return each(lambda row, y: (row * y).cumsum(0), x, y)


X = torch.linspace(-2, 3, 24).reshape(4, 6)
CASES = {
    "taken": (Branch, [X]),
    "other": (Branch, [-X]),
    "pairs": (Pairs, [X]),
    "pairs-inner": (Pairs, [X * 9]),
    "pairs-other": (Pairs, [-X]),
    "doubling": (Doubling, [X]),
    "no-turn": (Doubling, [X * 100]),
    "smoothing": (Smoothing, [X]),
    "rows": (Rows, [X, X[1] * 2]),
}


@pytest.mark.parametrize("name", CASES)
def test_control_flow_is_that_of_torch(name):
    made, inputs = CASES[name]
    torch.manual_seed(0)
    module = made().eval()
    wanted = expected(module, inputs)
    assert_same(interpreted(module, inputs), wanted)
    assert_same(compiled(module, inputs), wanted)
