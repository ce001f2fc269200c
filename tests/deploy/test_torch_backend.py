"""``torch.compile`` with Slipway for its backend, against torch itself."""

import copy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from slipway.errors import SlipwayError

torch = pytest.importorskip("torch")
STRICT = {"fallback": False}


@pytest.fixture(scope="module")
def backend():
    from slipway.deploy.torch_backend import compile_graph

    return compile_graph


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def same(compiled, plain, *arguments):
    with torch.no_grad():
        got, want = compiled(*arguments), plain(*arguments)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_a_network_runs_at_every_size_and_with_new_weights(backend):
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()]
    head = torch.nn.Linear(8, 5)
    plain = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), head)
    compiled = torch.compile(plain.eval(), backend=backend, options=STRICT)
    for shape in ((2, 3, 16, 16), (3, 3, 16, 16), (9, 3, 16, 20), (50, 3, 33, 20)):
        same(compiled, plain, torch.randn(shape))
    with torch.no_grad():
        head.weight.mul_(2)
    same(compiled, plain, torch.randn(2, 3, 16, 16))


def test_a_size_beyond_the_end_that_was_guessed_is_compiled_anew(backend):
    made = []

    def counted(graph, inputs):
        made.append(backend(graph, inputs, options=STRICT))
        return made[-1]

    compiled = torch.compile(torch.nn.functional.softmax, backend=counted, dynamic=True)
    for rows in (5, 16, 3, 60):
        same(compiled, torch.nn.functional.softmax, torch.randn(rows, 7), -1)
    (piece,) = made
    assert len(piece.variants) == 2


def test_what_breaks_a_graph_and_numbers_between(backend):
    linear = torch.nn.Linear(4, 4)

    def plain(x, factor, more):
        y = linear(x) * factor
        torch._dynamo.graph_break()
        if y.sum() > 0:  # Python's branch: the graph ends here as well
            y = y + more
        return y.reshape(x.shape[0] * 2, -1), x.shape[0] * 3, None, x

    compiled = torch.compile(plain, backend=backend, options=STRICT, dynamic=True)
    for rows, factor, more in ((3, 2, 0.5), (5, 3, 0.25), (40, 3, 0.25)):
        same(compiled, plain, torch.randn(rows, 4), factor, more)


def test_what_is_written_in_place_is_written(backend):
    class Cache(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(4, 3))
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, at):
            self.rows.index_copy_(0, at, self.linear(x))
            x.add_(1)
            return self.rows.sum(0)

    plain = Cache()
    beside = copy.deepcopy(plain)
    compiled = torch.compile(plain, backend=backend, options=STRICT)
    for i in range(3):
        x = torch.randn(1, 3)
        y = x.clone()
        with torch.no_grad():
            got, want = compiled(x, torch.tensor([i])), beside(y, torch.tensor([i]))
        torch.testing.assert_close((got, x, plain.rows), (want, y, beside.rows))


def test_what_cannot_be_compiled_stays_with_torch(backend):
    linear = torch.nn.Linear(3, 3)
    learns = torch.compile(linear, backend=backend)
    with pytest.warns(UserWarning, match="needs a gradient.*torch.no_grad"):
        learns(torch.randn(2, 3)).sum().backward()
    assert linear.weight.grad is not None
    compiled = torch.compile(torch.fft.fft, backend=backend)
    with pytest.warns(UserWarning, match=r"torch runs a graph of \d nodes"):
        same(compiled, torch.fft.fft, torch.ones(4))
    torch._dynamo.reset()
    strict = torch.compile(torch.fft.fft, backend=backend, options=STRICT)
    with pytest.raises(SlipwayError, match="complex"):
        strict(torch.ones(4))


def test_an_option_that_there_is_not_is_named(backend):
    with pytest.raises(ValueError, match=r"has 'targets'; .* Did you mean 'target'\?"):
        backend(None, (), options={"targets": "llvm"})


def test_the_package_says_where_torch_finds_it(backend):
    project = Path(__file__).parents[2] / "pyproject.toml"
    groups = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]
    module, _, name = groups["torch_dynamo_backends"]["slipway"].partition(":")
    assert getattr(import_module(module), name) is backend
