"""Programs that leave sizes open, with the names and ranges of torch.export or of input_infos."""

import numpy as np
import pytest
import torch

from slipway import relay
from slipway.errors import ModelError, OpenShapeError
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule


class Encoder(torch.nn.Module):
    """Embeddings with positions, attention in heads, slices, and a mean over all rows."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.register_buffer("positions", torch.arange(40)[None])

    def forward(self, ids):
        length = ids.shape[1]
        x = self.table(ids) + torch.sin(self.positions[:, :length].float())[..., None]
        x = self.layer(x + torch.arange(length).float()[None, :, None] * 0.01)
        return x[:, 0], x[:, -1:].flatten(1), x.mean(1)


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(3)
    return Encoder().eval()


def exported(encoder, low=2, high=12):
    shapes = (
        {0: torch.export.Dim("b", min=1, max=3), 1: torch.export.Dim("n", min=low, max=high)},
    )
    ids = torch.zeros(2, 7, dtype=torch.int64)
    return torch.export.export(encoder, (ids,), dynamic_shapes=shapes, strict=False)


def draw(batch, length):
    return np.random.default_rng(length).integers(0, 50, (batch, length))


def wanted(encoder, ids):
    return [value.detach().numpy() for value in encoder(torch.from_numpy(ids))]


def test_a_program_keeps_the_sizes_that_it_leaves_open(encoder):
    mod, params = relay.frontend.from_pytorch(exported(encoder))
    module = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))
    for batch, length in ((1, 2), (3, 12), (2, 7), (1, 5)):
        ids = draw(batch, length)
        module.set_input(0, ids)
        module.run()
        for i, one in enumerate(wanted(encoder, ids)):
            np.testing.assert_allclose(module.get_output(i).numpy(), one, rtol=1e-4, atol=1e-5)


def test_infos_name_sizes_or_fix_them(encoder):
    program = exported(encoder)
    for infos, shape in (
        ((Dim("rows", 1, 2), Dim("long", 2, 9)), "(rows, long)"),
        ((2, Dim("long", 2, 9)), "(2, long)"),
    ):
        mod, params = relay.frontend.from_pytorch(program, [("ids", (infos, "int64"))])
        assert f"%ids: Tensor[{shape}, int64]" in str(mod)
        ids = draw(2, 6)
        for found, one in zip(
            interpret(mod, ids, params=params), wanted(encoder, ids), strict=True
        ):
            np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5)


def test_a_module_is_exported_for_the_ranges_of_the_infos(encoder):
    infos = [("ids", ((1, Dim("n", 2, 9)), "int64"))]
    mod, params = relay.frontend.from_pytorch(encoder, infos)
    ids = draw(1, 9)
    for found, one in zip(interpret(mod, ids, params=params), wanted(encoder, ids), strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5)


def test_a_size_without_an_upper_end_is_asked_for():
    shapes = ({0: torch.export.Dim("n", min=1)},)
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),), dynamic_shapes=shapes)
    with pytest.raises(OpenShapeError, match="leaves sizes of its inputs open"):
        relay.frontend.from_pytorch(program)
    mod, _ = relay.frontend.from_pytorch(program, [("x", (Dim("n", 1, 7),))])
    np.testing.assert_array_equal(interpret(mod, np.float32([-1, 2])), np.float32([0, 2]))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((2, Dim("n", 2, 13)), r"exported for sizes 2\.\.12 of \w+, and .* n \(2\.\.13\)"),
        ((Dim("b", 1, 3), 13), r"exported for sizes 2\.\.12 of \w+, and input_infos has 13"),
    ],
)
def test_sizes_that_the_program_was_not_exported_for(encoder, shape, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_pytorch(exported(encoder), [("ids", (shape, "int64"))])


class Statistics(torch.nn.Module):
    """What needs the number of rows, or where rows and columns meet."""

    def forward(self, x):
        products = x @ x.mT
        spread = x.var(1) + x.std(1) + x.var(1, correction=0)
        return spread, products.tril(), products.triu(1), x.roll(2, 1), x.roll(-3, 1)


def test_triangles_rolls_and_spreads_of_an_open_size():
    rows = torch.export.Dim("n", min=4, max=20)
    program = torch.export.export(
        Statistics(), (torch.zeros(1, 7, 5),), dynamic_shapes=({1: rows},)
    )
    mod, params = relay.frontend.from_pytorch(program)
    run = GraphModule(relay.build(mod, "llvm", params=params)["default"](cpu(0)))
    for count in (4, 9, 20):
        x = torch.randn(1, count, 5, generator=torch.Generator().manual_seed(count))
        run.run(x=x.numpy())
        for index, value in enumerate(Statistics()(x)):
            found = run.get_output(index).numpy()
            np.testing.assert_allclose(found, value.numpy(), rtol=1e-5, atol=1e-5)


class Sorted(torch.nn.Module):
    """Every way to the order of an axis."""

    def forward(self, x):
        values, indices = torch.sort(x, 1, descending=True)
        return (
            values,
            indices,
            torch.argsort(x, dim=1, stable=True),
            torch.sort(x, stable=True, dim=0)[1],
            *torch.topk(x, x.shape[1], 1, largest=False),
        )


class Skip(torch.nn.Module):
    """An image made smaller, then as large as it was: the size is another tensor's."""

    def forward(self, x):
        small = torch.nn.functional.max_pool2d(x, 2)
        to = {"size": x.shape[2:]}
        resize = torch.nn.functional.interpolate
        return (
            resize(small, mode="bilinear", align_corners=False, **to),
            resize(small, mode="bilinear", align_corners=True, **to),
            resize(small, mode="nearest", **to),
            resize(small, mode="nearest-exact", **to),
            resize(small, mode="bicubic", **to),
            resize(x, size=(9, 11), mode="bilinear"),
            resize(x, scale_factor=(2.0, 1.5), mode="bilinear"),
            x.unfold(2, 3, 1),
        )


class OfTheLength(torch.nn.Module):
    """What is computed of a length itself, and of squares of it."""

    def forward(self, x):
        count = x.shape[1]
        square = x @ x.mT
        attend = torch.nn.functional.scaled_dot_product_attention
        return (
            attend(x, x * 0.5, x + 1, is_causal=True),
            square + torch.eye(count) * 0.5,
            x.sum(1) / count,
            x * (2 * count + 1) - count,
            torch.arange(count) * 10 // count,
            torch.diagonal(square, dim1=1, dim2=2),
            x.var(1, correction=0),
            x.std((0, 1), keepdim=True),
            *x.median(1),
            *x.median(1, keepdim=True),
            torch.nn.functional.pad(x, (1, 2), mode="circular"),
            torch.nn.functional.pad(x, (2, 1), mode="reflect"),
            torch.arange(12.0).reshape(3, 4).repeat(count, 2),
            torch.ones(5, 45).triu(count),
            torch.arange(80.0)[count : count + x.shape[0]] * 2,
        )


@pytest.mark.parametrize(
    ("module", "shape", "dims", "sizes"),
    [
        (
            OfTheLength,
            (2, 7, 4),
            {0: ("n", 1, 3), 1: ("t", 2, 40)},
            [(1, 2), (3, 40), (2, 17), (1, 16), (2, 31)],
        ),
        (Sorted, (3, 7, 4), {0: ("n", 1, 5), 1: ("t", 2, 40)}, [(1, 2), (5, 40), (2, 31)]),
        (Skip, (1, 2, 10, 14), {2: ("h", 4, 24), 3: ("w", 4, 24)}, [(4, 4), (24, 23), (7, 18)]),
    ],
)
def test_all_outputs_at_every_size(module, shape, dims, sizes):
    axes = {axis: torch.export.Dim(n, min=low, max=high) for axis, (n, low, high) in dims.items()}
    program = torch.export.export(
        module(), (torch.randn(shape),), dynamic_shapes=(axes,), strict=False
    )
    mod, params = relay.frontend.from_pytorch(program)
    run = GraphModule(relay.build(mod, "llvm", params=params)["default"](cpu(0)))
    for size in sizes:
        given = list(shape)
        for axis, extent in zip(axes, size, strict=True):
            given[axis] = extent
        x = torch.randn(given, generator=torch.Generator().manual_seed(0))
        run.run(x=x.numpy())
        for index, value in enumerate(module()(x)):
            found = run.get_output(index).numpy()
            np.testing.assert_allclose(found, value.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("factor", "words"), [(1 / 3, "1024 parts"), (0.7, "1024 parts")])
def test_a_factor_that_is_no_fraction_is_refused(factor, words):
    """0.7 in floats is a little less: for some sizes torch rounds to another number."""

    class Smaller(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.interpolate(x, scale_factor=factor, mode="nearest")

    rows = torch.export.Dim("n", min=8, max=20)
    program = torch.export.export(
        Smaller(), (torch.zeros(1, 2, 9, 8),), dynamic_shapes=({2: rows},), strict=False
    )
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_pytorch(program)


class Resized(torch.nn.Module):
    """Antialiased resizes to a size and by a part, a count downwards from a size."""

    def forward(self, x):
        small = torch.nn.functional.interpolate(x, (9, 15), mode="bicubic", antialias=True)
        size = (x.shape[2] * 2, x.shape[3] // 2)
        half = torch.nn.functional.interpolate(x, size, mode="bilinear", antialias=True)
        return small, half, torch.arange(x.shape[0], 0, -1) * 2


def test_resizes_with_antialias_have_matrices_of_any_size():
    dims = {0: torch.export.Dim("b", min=1, max=3), 2: torch.export.Dim("h", min=8, max=24)}
    dims[3] = torch.export.Dim("w", min=8, max=24)
    module = Resized().eval()
    program = torch.export.export(module, (torch.zeros(2, 3, 16, 12),), dynamic_shapes=(dims,))
    mod, params = relay.frontend.from_pytorch(program)
    run = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))
    for shape in ((1, 3, 8, 24), (3, 3, 24, 8), (2, 3, 13, 17), (1, 3, 9, 15)):
        x = np.random.default_rng(shape[3]).standard_normal(shape).astype("float32")
        run.set_input(0, x)
        run.run()
        for i, one in enumerate(wanted(module, x)):
            np.testing.assert_allclose(run.get_output(i).numpy(), one, atol=1e-5)
