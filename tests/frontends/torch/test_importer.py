"""What `from_pytorch` takes and what it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, compiled, expected, interpreted
from torch import nn
from typer.testing import CliRunner

import slipway
from models import Cached, mobilenet
from slipway import relay
from slipway.cli.app import app
from slipway.errors import ModelError
from slipway.frontends.torch.importer import check_pytorch
from slipway.relay.interpret import interpret


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean((2, 3)))


class Strange(nn.Module):
    """Several things at once that cannot be compiled."""

    def forward(self, x):
        bessel = torch.special.i0(x)
        common = torch.mode(x)
        noise = torch.relu(x + torch.rand_like(x))
        return bessel, common[0], noise, torch.linalg.qr(x)[0]


X = torch.randn(2, 3, 8, 8)
SHAPE = [("image", (2, 3, 8, 8))]


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture(scope="module")
def program(small):
    return torch.export.export(small, (X,))


def reads(model, infos, wanted):
    mod, _ = relay.frontend.from_pytorch(model, infos)
    assert mod["main"].params[0].name == ("image" if infos else "x")
    assert_same([interpret(mod, X.numpy())], wanted)


def test_modules_programs_and_files(small, program, tmp_path):
    torch.export.save(program, tmp_path / "small.pt2")
    wanted = expected(small, [X])
    for model, infos in ((small, SHAPE), (program, None), (tmp_path / "small.pt2", None)):
        reads(model, infos, wanted)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of torch.jit.trace
def test_other_ways_to_give_a_model(small, program):
    wanted = expected(small, [X])
    reads(small, [("image", ((2, 3, 8, 8), "float32"))], wanted)
    reads(program, SHAPE, wanted)
    reads(torch.jit.trace(small, X), SHAPE, wanted)


def test_weights_are_constants_or_parameters(program):
    mod, params = relay.frontend.from_pytorch(program)
    names = ["conv.weight", "conv.bias", "head.weight", "head.bias"]
    assert [p.name for p in mod["main"].params] == ["x"]
    assert list(params) == names
    free, params = relay.frontend.from_pytorch(program, freeze_params=False)
    assert [p.name for p in free["main"].params] == ["x", *names]
    assert_same([interpret(free, X.numpy(), params=params)], [interpret(mod, X.numpy())])
    _, params = relay.frontend.from_pytorch(program, use_parser_friendly_name=True)
    assert "conv_weight" in params


def test_nodes_have_the_names_of_their_modules(program):
    entries = check_pytorch(program)
    assert [e.name for e in entries] == ["conv.convolution", "relu", "mean", "head.linear"]
    assert {e.status for e in entries} <= {"native", "rewritten"}


def test_a_module_in_training_is_exported_for_inference():
    module = mobilenet(nn.ReLU6, None, 3).train()
    found = interpreted(module, [X])
    assert all(part.training for part in module.modules())
    assert_same(found, expected(module.eval(), [X]))


def test_everything_unsupported_is_reported_at_once():
    with pytest.raises(ModelError) as caught:
        relay.frontend.from_pytorch(Strange(), [("x", (1, 2, 8, 8))])
    message = str(caught.value)
    for text in ("i0", "mode", "rand", "qr"):
        assert text in message
    assert "random numbers are not served" in message
    entries = check_pytorch(Strange(), [("x", (1, 2, 8, 8))])
    assert {"native", "unsupported"} <= {e.status for e in entries}


def test_a_nested_program_that_is_not_served_is_named():
    from torch.nn.attention.flex_attention import flex_attention

    class Flexible(nn.Module):
        def forward(self, x):
            return flex_attention(x, x, x)

    with pytest.raises(ModelError, match=r"flex_attention.*nested programs"):
        relay.frontend.from_pytorch(Flexible(), [("x", (1, 1, 16, 2))])


def test_a_region_without_gradients():
    class Region(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = torch.tanh(x)
            return x * y

    assert_same(interpreted(Region(), [X]), expected(Region(), [X]))


def test_open_dimensions_are_fixed_or_refused(small):
    program = torch.export.export(
        small, (X,), dynamic_shapes=({0: torch.export.Dim("n"), 1: None},)
    )
    with pytest.raises(
        ModelError, match=r"open: x \(.*, 3, 8, 8\)\. Pass input_infos=\[\('x', \(2, 3, 8, 8\)\)\]"
    ):
        relay.frontend.from_pytorch(program)
    mod, _ = relay.frontend.from_pytorch(program, [("x", (5, 3, 8, 8))])
    x = torch.randn(5, 3, 8, 8)
    assert_same([interpret(mod, x.numpy())], expected(small, [x]))


def test_halves_work(small):
    half = Small().eval().half()
    (found,) = compiled(half, [X.half()])
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, half(X.half()).detach().numpy(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_bfloat16_is_as_near_to_float32_as_in_torch(target, tmp_path):
    """Weights, inputs and outputs are bfloat16; a module, a program and its file give the same."""
    module, x = Small().eval().bfloat16(), X.bfloat16()
    with torch.no_grad():
        exact = Small().eval()
        exact.load_state_dict(module.state_dict())
        want, theirs = exact(x.float()).numpy(), module(x).float().numpy()
    program = torch.export.export(module, (x,))
    torch.export.save(program, tmp_path / "m.pt2")
    made = slipway.compile(module, target=target, example=(x,), quiet=True)
    found = made(x)
    assert found.dtype.name == "bfloat16"
    apart = np.abs(found.astype(np.float32) - want).max()
    assert apart <= 1.5 * np.abs(theirs - want).max() + 2**-9
    for other in (program, tmp_path / "m.pt2"):
        np.testing.assert_array_equal(slipway.compile(other, target=target, quiet=True)(x), found)


def test_types_that_slipway_lacks_are_named():
    class Narrow(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.float8_e4m3fn).float()

    with pytest.raises(ModelError, match="float8_e4m3fn"):
        relay.frontend.from_pytorch(torch.export.export(Narrow(), (X,)))


def test_a_written_buffer_becomes_an_input_and_an_output():
    module, position = Cached().eval(), torch.tensor([2, 3])
    x = torch.randn(1, 2, 4)
    mod, _ = relay.frontend.from_pytorch(module, [("x", (1, 2, 4)), ("position", ((2,), "int64"))])
    assert [p.name for p in mod["main"].params] == ["x", "position", "cache"]
    assert mod["main"].attr("output_names")[1] == "cache"
    found = interpret(mod, x.numpy(), position.numpy(), np.zeros((1, 6, 4), np.float32))
    assert_same([found[0]], expected(module, [x, position]))
    assert_same([found[1]], [module.cache.numpy()])


def test_own_operators_get_own_converters():
    @torch.library.custom_op("slipway_tests::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @double.register_fake
    def _(x):
        return torch.empty_like(x)

    class Own(nn.Module):
        def forward(self, x):
            return double(x) + 1

    infos = [("x", (3,))]
    with pytest.raises(ModelError, match=r"slipway_tests\.double"):
        relay.frontend.from_pytorch(Own(), infos)

    def convert(node):
        return relay.add(node.input("x"), node.input("x"))

    mod, _ = relay.frontend.from_pytorch(
        Own(), infos, custom_convert_map={"slipway_tests::double": convert}
    )
    np.testing.assert_array_equal(interpret(mod, np.ones(3, np.float32)), [3, 3, 3])


@pytest.mark.parametrize(
    ("model", "infos", "message"),
    [
        (Small(), None, "pass input_infos"),
        (Small(), [("x", "y", "z")], "write .name, shape."),
        (Small(), [("x", ((1, 3, 8, 8), "complex64"))], "dtype complex64"),
        (Small(), [("x", (1, 4, 8, 8))], "cannot export Small"),
        ("nowhere.pt2", None, "no model file"),
        (3, None, "not a int"),
    ],
)
def test_what_cannot_be_read_is_said(model, infos, message):
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_pytorch(model, infos)


def test_input_infos_must_fit_the_program(program):
    with pytest.raises(ModelError, match="was exported for"):
        relay.frontend.from_pytorch(program, [("x", (1, 3, 8, 8))])
    with pytest.raises(ModelError, match="names 2 inputs"):
        relay.frontend.from_pytorch(program, [("x", (2, 3, 8, 8)), ("y", (1,))])


def test_a_damaged_file_is_no_crash(program, tmp_path):
    path = tmp_path / "small.pt2"
    torch.export.save(program, path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="damaged"):
        relay.frontend.from_pytorch(path)


def test_check_reads_a_pt2_file(program, tmp_path):
    path = tmp_path / "small.pt2"
    torch.export.save(program, path)
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["supported"]


def test_torch_is_imported_only_when_it_is_needed():
    program = (
        "import sys, slipway\n"
        "from slipway import relay\n"
        "relay.frontend.from_onnx, relay.frontend.from_pytorch\n"
        "import slipway.frontends.torch.importer as importer\n"
        "importer.load_converters()\n"
        "import slipway.cli.app, typer\n"
        "list(typer.main.get_command(slipway.cli.app.app).commands.values())\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Scalars(nn.Module):
    """A parameter, a buffer and a constant of rank 0, as Swin and RAFT have them."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("limit", torch.tensor(0.25))
        self.register_buffer("steps", torch.tensor(3))

    def forward(self, x):
        low = torch.tensor(0.125)
        return torch.clamp(x * self.scale, max=self.limit) + low, x * self.steps, self.scale * 2


def test_constants_of_rank_0():
    inputs = [torch.randn(2, 3)]
    wanted = expected(Scalars(), inputs)
    assert_same(interpreted(Scalars(), inputs), wanted)
    assert_same(compiled(Scalars(), inputs), wanted)


class TwoInputs(torch.nn.Module):
    def forward(self, ids, scale):
        return ids * scale


def test_inputs_by_name_in_any_order_and_bound():
    """Shapes by the program's own names; dtypes are the program's where none is given."""
    examples = (torch.arange(6).reshape(2, 3), torch.ones(2, 3))
    open_first = {
        "ids": {0: torch.export.Dim("n", min=1)},
        "scale": {0: torch.export.Dim("n", min=1)},
    }
    program = torch.export.export(TwoInputs(), examples, dynamic_shapes=open_first)
    infos = [("scale", (4, 3)), ("ids", (4, 3))]
    mod, _ = relay.frontend.from_pytorch(program, infos, default_dtype="")
    assert [(p.name, p.tensor_type.dtype) for p in mod["main"].params] == [
        ("ids", "int64"), ("scale", "float32"),
    ]  # fmt: skip
    mod, _ = relay.frontend.from_pytorch(program, infos, default_dtype="", constants={"scale": 2.0})
    ids = np.arange(12).reshape(4, 3)
    np.testing.assert_array_equal(interpret(mod, ids=ids), 2.0 * ids)
    with pytest.raises(ModelError, match="no input 'skale'; its inputs are ids, scale"):
        relay.frontend.from_pytorch(program, infos, default_dtype="", constants={"skale": 2.0})


class Detector(torch.nn.Module):
    """A network whose boxes are filtered by score, as detectors are."""

    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Conv2d(3, 8, 3)
        self.head = torch.nn.Conv2d(8, 5, 1)

    def network(self, x):
        return self.head(torch.relu(self.backbone(x)))

    def forward(self, x):
        found = self.network(x).flatten(2)[0].T
        kept = found[found[:, 4] > 0]
        order = kept[:, 4].argsort(descending=True)
        return kept[order][:10] if len(kept) > 10 else kept[order]


class Loops(torch.nn.Module):
    def forward(self, x):
        while x.sum() < 100:
            x = x * 2
        return x


@pytest.mark.parametrize("module", [Detector(), Loops()])
def test_what_depends_on_data_is_told_to_be_cut_off(module):
    with pytest.raises(ModelError, match=r"cannot export \w+: .*Export the part before that"):
        relay.frontend.from_pytorch(module, [("x", (1, 3, 8, 8))])


def test_the_network_of_a_detector_is_exported():
    module = Detector().eval()
    module.forward = module.network
    mod, _ = relay.frontend.from_pytorch(module, [("x", (1, 3, 8, 8))])
    assert mod["main"].checked_type.ret_type.shape == (1, 5, 6, 6)


def test_another_reason_gets_no_such_advice():
    class Wrong(torch.nn.Module):
        def forward(self, x):
            return x @ x

    with pytest.raises(ModelError) as caught:
        relay.frontend.from_pytorch(Wrong(), [("x", (2, 3))])
    assert "Export the part" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of torch.jit.trace
def test_a_traced_convolution_of_one_image(small):
    """Its converter leaves the batch a symbol whose range is one number."""
    one = X[:1]
    traced = torch.jit.trace(small, one)
    mod, _ = relay.frontend.from_pytorch(traced, [("image", tuple(one.shape))])
    assert_same([interpret(mod, one.numpy())], expected(small, [one]))


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning")
def test_a_program_is_imported_inside_a_compilation_of_torch():
    """As in torch.compile(model, backend="tvm"), whose guards an export must leave alone."""
    torch._dynamo.reset()  # of sizes that another test compiled this layer for, which opens them
    model, x = torch.nn.Conv2d(3, 4, 3), torch.rand(1, 3, 8, 8)
    found = []

    def backend(graph, examples):
        traced = torch.jit.trace(graph, examples)
        infos = [(f"inp_{i}", tuple(e.shape)) for i, e in enumerate(examples)]
        found.append(relay.frontend.from_pytorch(traced, infos)[0])
        return graph.forward

    with torch.no_grad():
        torch.compile(model, backend=backend)(x)
    assert len(found) == 1
