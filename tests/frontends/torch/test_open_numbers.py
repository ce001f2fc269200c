"""What a program computes of its open sizes, and along them: numbers, tests, rolls, bags."""

import numpy as np
import pytest
import torch
from compare import assert_same
from torch.export import Dim

import slipway

RNG = torch.Generator().manual_seed(5)
TABLE = torch.randn(9, 4, generator=RNG)
N = Dim("n", min=2, max=40)
ROWS = ({0: N},)


class Computed(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def agree(function, draw, shapes, sizes=(7, 2, 40, 16, 33)):
    module = Computed(function)
    program = torch.export.export(module, draw(sizes[0]), dynamic_shapes=(shapes,), strict=False)
    model = slipway.compile(program, quiet=True)
    for size in sizes:
        given = draw(size)
        wanted = module(*given)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = model.run({s.name: v.numpy() for s, v in zip(model.inputs, given, strict=True)})
        assert_same(list(found.values()), [value.numpy() for value in wanted])


def rows(count):
    return (torch.randn(count, 4, generator=RNG),)


def test_floats_of_sizes():
    def of_sizes(x):
        part = x.numel() / 3 + x.shape[0] / 2 + 1
        return x / x.shape[0] + part, torch.full_like(x, x.shape[0] * 0.5), torch.tensor(x.shape[0])

    agree(of_sizes, rows, ROWS)


@pytest.mark.parametrize("test", [lambda n: n > 10, lambda n: n * 2 <= 14, lambda n: n == 7])
def test_a_branch_that_a_size_decides(test):
    def chosen(x):
        return torch.cond(test(x.shape[0]), torch.sin, torch.cos, (x,))

    agree(chosen, rows, ROWS)


@pytest.mark.parametrize(
    "roll",
    [
        lambda x: torch.roll(x, x.shape[0] // 2, 0),
        lambda x: torch.roll(x, 5, 0),
        lambda x: torch.roll(x, (-7, 1), (0, 1)),
        lambda x: torch.fft.fftshift(torch.fft.ifftshift(x, 0), 0),
    ],
)
def test_rolls_by_a_size_and_further_than_the_smallest(roll):
    agree(roll, rows, ROWS)


def test_what_was_so_far_along_an_open_axis():
    agree(lambda x: (*x.cummax(0), *x.cummin(0), x.logcumsumexp(0)), rows, ROWS)


def test_matrices_of_an_open_batch():
    def solved(x):
        system = x + 3 * torch.eye(3)
        return (
            torch.linalg.inv(system),
            torch.linalg.det(x),
            torch.linalg.solve(system, x[:, :, :2]),
        )

    agree(solved, lambda n: (torch.randn(n, 3, 3, generator=RNG),), ROWS)


def test_positions_where_a_condition_holds():
    agree(lambda x: torch.where(x > 0), rows, ROWS)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_that_begin_at_computed_offsets(mode):
    """Some are empty, and one is all that follows the last offset."""

    def bags(indices, offsets):
        return torch.nn.functional.embedding_bag(indices, TABLE, offsets, mode=mode)

    def draw(count):
        starts = torch.randint(0, 3 * count, (count - 1,), generator=RNG).sort()[0]
        indices = torch.randint(0, 9, (3 * count,), generator=RNG)
        return indices, torch.cat([torch.zeros(1, dtype=torch.int64), starts])

    agree(bags, draw, ({0: 3 * N}, {0: N}))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_equal_length_without_an_index_that_pads(mode):
    def bags(indices):
        return torch.nn.functional.embedding_bag(indices, TABLE, mode=mode, padding_idx=2)

    agree(bags, lambda n: (torch.randint(0, 5, (n, 3), generator=RNG),), ROWS)


def test_a_test_of_a_number_that_was_read():
    def chosen(x, limit):
        return torch.cond(limit.item() > 0.5, torch.sin, torch.cos, (x,))

    module = Computed(chosen)
    given = (*rows(3), torch.tensor(0.7))
    model = slipway.compile(torch.export.export(module, given, strict=False), quiet=True)
    for limit in (0.7, 0.2):
        wanted = (torch.sin if limit > 0.5 else torch.cos)(given[0])
        np.testing.assert_allclose(model(given[0], np.float32(limit)), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "shapes", "lengths"),
    [
        (lambda x, y: x[1:] * y, ({0: Dim("n", min=3, max=40)}, {0: Dim("n", min=3, max=40) - 1}),
         lambda n: (n + 3, n + 2)),
        (lambda x, y: x[::2][1:] + y, ({0: 2 * N + 1}, {0: N}), lambda n: (2 * n + 1, n)),
    ],
)  # fmt: skip
def test_a_size_is_told_by_an_axis_that_is_some_more(function, shapes, lengths):
    """Though the input that is set first has no axis of the size itself."""

    def draw(count):
        return tuple(torch.randn(length, 4, generator=RNG) for length in lengths(count))

    agree(function, draw, shapes, (7, 2, 30))
    program = torch.export.export(
        Computed(function), draw(7), dynamic_shapes=(shapes,), strict=False
    )
    model = slipway.compile(program, quiet=True)
    with pytest.raises(
        slipway.TVMError, match=r"shape \(.*s\d+ \+ 1, 4\) .* got \(99, 4\): s\d+ is"
    ):
        model(np.zeros((99, 4), "float32"), np.zeros((2, 4), "float32"))
