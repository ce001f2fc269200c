"""Results as long as values say (torch's u0), at several values each, against torch."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import ExecutionError, ModelError
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

torch = pytest.importorskip("torch")


class Masked(torch.nn.Module):
    """A mask as index; what is made of the number found; the positions."""

    def forward(self, x):
        mask = x > 0.3
        values = x[mask]
        made = torch.zeros(values.shape[0], 2) + values[:, None]
        return values * 2, values.sum(), made, torch.nonzero(x)


class Updated(torch.nn.Module):
    """What a mask finds is computed and written back."""

    def forward(self, x):
        mask, y = x > 0, x.clone()
        y[mask] = torch.exp(x[mask])
        y[x < 0] = 2 * x[x < 0]  # compared twice
        return y, torch.masked_select(x, mask).cumsum(0)


class Rows(torch.nn.Module):
    """Rows that are kept attend to each other."""

    def forward(self, x):
        rows = x[x.sum(1) > 0]
        return torch.softmax(rows @ rows.t(), -1) @ rows


class Repeated(torch.nn.Module):
    """As speech is made of phonemes: each as long as a vector says."""

    def forward(self, x):
        times = (x[:, 0] * 2).to(torch.int64)
        y = torch.repeat_interleave(x, times, dim=0)
        torch._check(y.shape[0] <= 24)
        return y.cumsum(0)


class Unique(torch.nn.Module):
    """Different values, which of them each is, and how often; runs of a sequence."""

    def forward(self, x):
        whole = (2 * x).round()
        values, inverse, counts = torch.unique(whole, return_inverse=True, return_counts=True)
        runs, lengths = torch.unique_consecutive(whole.flatten(), return_counts=True)
        return values.cumsum(0), inverse, counts, runs, lengths


class Cropped(torch.nn.Module):
    """A batch cropped to its longest sequence, which attends where the sequences have something."""

    def forward(self, x, lengths):
        most = lengths.max().item()
        torch._check(most >= 1)
        torch._check(most <= x.shape[1])
        there = torch.arange(most)[None] < lengths[:, None]
        y = x[:, :most]
        scores = (y @ y.mT).masked_fill(~there[:, None], -1e9)
        return scores.softmax(-1) @ y, x * most, there


class Numbers(torch.nn.Module):
    """Integers as sizes, positions and factors; a float that is computed with."""

    def forward(self, x, numbers):
        first, second = numbers.tolist()
        torch._check(first >= 1)
        torch._check(first < x.shape[0])
        torch._check(second >= 0)
        torch._check(second <= 4)
        scale = x.max().item()
        return (
            x[first:], x[-first:], x[first], x.new_ones(first, second + 2).cumsum(0),
            torch.nn.functional.pad(x, (0, 0, 0, second)), x * scale + (scale * 2 - 1),
        )  # fmt: skip


def compare(module, cases, dims=None):
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]
    program = torch.export.export(module.eval(), cases[0], dynamic_shapes=dims)
    mod, params = relay.frontend.from_pytorch(program)
    made = GraphModule(relay.build(mod, "llvm", params=params)["default"](cpu()))
    names = [param.name_hint for param in mod["main"].params]
    for case in cases:
        want = module(*case)
        made.run(**{name: x.numpy() for name, x in zip(names, case, strict=True)})
        for index, value in enumerate(want if isinstance(want, tuple) else (want,)):
            found = made.get_output(index).numpy()
            assert found.shape == tuple(value.shape)
            np.testing.assert_allclose(found, value.numpy(), rtol=1e-5, atol=1e-5)


def drawn(*sizes):
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(size, generator=generator) for size in sizes]
    return [*made, -made[0].abs(), made[0].abs()]  # nothing found, and everything


@pytest.mark.parametrize("module", [Masked, Updated, Rows, Unique])
def test_sizes_that_values_decide(module):
    compare(module(), drawn((4, 5), (4, 5)))


@pytest.mark.parametrize("module", [Masked, Unique])
def test_beside_open_sizes(module):
    dims = ({0: torch.export.Dim("n", min=2, max=9)},)
    compare(module(), drawn((4, 5), (9, 5), (2, 5)), dims)


def test_repeats_by_a_tensor():
    compare(Repeated(), [torch.rand(6, 3) * 1.9, torch.rand(6, 3), torch.zeros(6, 3)])


def test_numbers_read_from_a_tensor():
    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(0))
    compare(Numbers(), [(x, torch.tensor(n)) for n in ((3, 2), (5, 4), (1, 0))])


def test_sequences_are_cropped_to_the_longest():
    b, t = torch.export.Dim("b", min=1, max=4), torch.export.Dim("t", min=2, max=12)
    sizes = ((2, 7, (3, 5)), (3, 12, (7, 2, 12)), (1, 2, (1,)))
    cases = [(torch.rand(n, most, 4), torch.tensor(own)) for n, most, own in sizes]
    compare(Cropped(), cases, ({0: b, 1: t}, {0: b}))


def test_a_number_that_nothing_bounds_is_refused():
    class Unbounded(torch.nn.Module):
        def forward(self, n):
            return torch.arange(n.item()) * 2

    program = torch.export.export(Unbounded(), (torch.tensor(3),))
    with pytest.raises(ModelError, match=r"item\(\) reads .*nothing bounds .*torch\._check"):
        relay.frontend.from_pytorch(program)


def test_a_number_out_of_its_range_ends_the_run():
    class Bounded(torch.nn.Module):
        def forward(self, n):
            size = n.item()
            torch._check(size <= 7)
            return torch.arange(size) * 2

    mod, _ = relay.frontend.from_pytorch(torch.export.export(Bounded(), (torch.tensor(3),)))
    made = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    for wrong in (8, -1):
        with pytest.raises(ExecutionError, match=rf"u0.*{wrong}"):
            made.run(n=np.array(wrong))


class Branches(torch.nn.Module):
    """Sizes that values decide in branches, and in a branch of one; one fits one side alone."""

    def forward(self, x, n):
        def counted(x, n):
            size = (n + x.sum().long() * 0).item()
            torch._check(size <= 5)
            torch._check(size >= 1)
            return torch.arange(size).float().cumsum(0).sum() + x.sum()

        def found(x, n):
            return torch.cond(
                x.sum() > 0,
                lambda x: x[x > 0].cumsum(0).sum(),
                lambda x: torch.nonzero(x).sum().float(),
                (x,),
            )

        return torch.cond(n > 0, counted, found, (x, n))


def test_in_branches():
    x = torch.tensor([1.0, 2, -3, 4])
    values = ((x, 3), (x, -1), (x - 2, 0), (x, 5), (-x.abs(), -100))
    compare(Branches(), [(x, torch.tensor(n)) for x, n in values])


class Loop(torch.nn.Module):
    """What is positive is added, as many numbers as the sum says, and rows by themselves."""

    def forward(self, x):
        def body(x):
            n = (x.sum().abs().long() % 4 + 1).item()
            torch._check(n <= 4)
            torch._check(n >= 1)
            return (x + x[x > 0].sum() * 0.1 + torch.arange(n).float().sum() * 0.01 + 0.03,)

        step = torch._higher_order_ops.while_loop
        (last,) = step(lambda x: x.sum() < 9, body, (x,))
        rows = torch._higher_order_ops.map(lambda row: row[row > 0].cumsum(0).sum() + row, x)
        return last, rows


def test_in_a_loop():
    x = torch.tensor([[1.0, 2, -3], [-1, -2, -0.5]])
    compare(Loop(), [(x,), (-x,), (x * 4,)])


class Slices(torch.nn.Module):
    def __init__(self, function, dim):
        super().__init__()
        self.function, self.dim = function, dim

    def forward(self, x):
        found, inverse, counts = self.function(
            x, dim=self.dim, return_inverse=True, return_counts=True
        )
        return found.cumsum(self.dim), inverse, counts


@pytest.mark.parametrize(
    ("function", "dim", "shape"),
    [
        (torch.unique, 0, (9, 3)),
        (torch.unique, -1, (2, 2, 7)),
        (torch.unique_consecutive, 1, (2, 8)),
    ],
)
def test_unique_slices(function, dim, shape):
    torch.manual_seed(0)
    compare(Slices(function, dim), [(torch.randint(0, n, shape),) for n in (1, 2, 3)])


class Distinct(torch.nn.Module):
    def forward(self, x):
        return torch.unique((x > 0).long(), dim=0), torch.unique_consecutive(x.round(), dim=1)


def test_unique_slices_of_open_sizes():
    torch.manual_seed(0)
    dims = ({0: torch.export.Dim("n", min=2, max=9)},)
    compare(Distinct(), [(torch.randn(n, 3),) for n in (4, 2, 9)], dims)


class Unequal(torch.nn.Module):
    """Branches that give one or three times as many rows, and a result of equal sizes."""

    def forward(self, x, choice):
        rows, one = torch.cond(
            choice.sum() > 0,
            lambda x: (x.clone(), x[0].exp()),
            lambda x: (torch.cat([x, x * 2, x]), x.sum(0)),
            (x,),
        )
        return rows.softmax(0), one, rows.shape[0] + torch.zeros(1)


@pytest.mark.parametrize("dims", [None, ({0: torch.export.Dim("n", min=2, max=5)}, None)])
def test_branches_of_unequal_sizes(dims):
    torch.manual_seed(0)
    signs = [torch.tensor([1.0]), torch.tensor([-1.0])]
    sizes = (3,) if dims is None else (3, 2, 5)
    compare(Unequal(), [(torch.randn(n, 4), sign) for n in sizes for sign in signs], dims)


class Nested(torch.nn.Module):
    def forward(self, x):
        def inner(x):
            rows = torch.cond(x.amax() > 1, lambda x: x.clone(), lambda x: torch.cat([x, x]), (x,))
            return rows.sum(0)

        return torch.cond(x.sum() > 0, inner, lambda x: x[0].clone(), (x,))


def test_branches_of_unequal_sizes_inside_of_another_are_refused():
    program = torch.export.export(Nested(), (torch.rand(3, 2),), strict=False)
    with pytest.raises(ModelError, match="different shapes inside of another one"):
        relay.frontend.from_pytorch(program)


def test_repeats_that_nothing_bounds_are_refused():
    class Unbounded(torch.nn.Module):
        def forward(self, x, times):
            return torch.repeat_interleave(x, times, dim=0)

    program = torch.export.export(Unbounded(), (torch.rand(3, 2), torch.tensor([1, 2, 0])))
    with pytest.raises(ModelError, match=r"nothing bounds .*torch\._check"):
        relay.frontend.from_pytorch(program)


class Counted(torch.nn.Module):
    """How often each number is there, and the sums of weights."""

    def forward(self, x, weights):
        often, sums = torch.bincount(x, minlength=4), torch.bincount(x, weights)
        torch._check(often.shape[0] <= 9)
        torch._check(sums.shape[0] <= 9)
        return often * 2, sums.cumsum(0)


def test_how_often_numbers_are_there():
    draws = [(torch.tensor(x), torch.rand(5)) for x in ([1, 2, 2, 0, 3], [0] * 5, [8, 1, 1, 0, 7])]
    compare(Counted(), draws)


class Cut(torch.nn.Module):
    """The first entries, as many as a tensor says: beyond the end, and from the back."""

    def forward(self, x, length):
        return x[0:length] * 2, x[:, 0:length].sum(1)


def test_slices_to_a_number_of_the_data():
    x = torch.rand(6, 3)
    compare(Cut(), [(x, torch.tensor(n)) for n in (2, 0, 3, 9, -2, -9)])
