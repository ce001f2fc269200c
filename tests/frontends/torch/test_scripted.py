"""Traced and scripted modules and functions, and files of them, against TorchScript itself."""

import zipfile

import numpy as np
import pytest
import torch
from compare import assert_same, compiled, expected

import slipway
from slipway import relay
from slipway.errors import ModelError, OpenShapeError
from slipway.relay.dims import Dim

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.linspace(-1, 1, 24).reshape(4, 6)


class Fixed(torch.nn.Module):
    """Loops and branches over sizes, lists, and a weight of its own."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6)
        self.scale = torch.nn.Parameter(torch.linspace(1, 2, 6))

    def forward(self, x):
        y = self.norm(self.linear(x))
        parts = []
        for i in range(x.shape[0]):
            parts.append(y[i] * float(i) + self.scale)
        stacked = torch.stack(parts)
        if stacked.shape[1] > 5:
            stacked -= 1.5 - x
        return stacked


class Branch(torch.nn.Module):
    """Two branches by the data, one in the other, with a weight in both."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(1, 2, 6))

    def forward(self, x):
        y = (x * self.weight if x.max() > 0.9 else x + 2) if x.sum() > 0 else self.weight - x
        return y + 1


class InPlace(torch.nn.Module):
    """Writes in place in branches of a loop."""

    def forward(self, x):
        a = x.clone()
        for _ in range(x.size(0)):
            b = a * 0.5
            if b.sum() > 0.0:
                a += b
            else:
                a -= b * 3.0
        return a


class Newton(torch.nn.Module):
    """A loop as long as the data wants."""

    def forward(self, x):
        x = x.abs() + 0.5
        y = x
        count = 0
        while bool((y * y - x).abs().max() > 1e-5) and count < 30:
            y = (y + x / y) / 2
            count = count + 1
        return y


class Gate(torch.nn.Module):
    """Gives its input itself, or another."""

    def forward(self, x):
        if x.sum() > 0:
            return x
        else:  # noqa: RET505 - TorchScript has no early returns under a branch of data
            return -x


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.linear = torch.jit.script(Gate()), torch.nn.Linear(6, 6)

    def forward(self, x, h):
        new = torch.tanh(self.gate(self.linear(x)) + h)
        return new, new


class Recurrent(torch.nn.Module):
    """A traced cell in a scripted loop, as PyTorch's tutorial of TorchScript has it."""

    def __init__(self):
        super().__init__()
        self.cell = torch.jit.trace(Cell(), (torch.rand(4, 6), torch.rand(4, 6)))

    def forward(self, x):
        h = torch.zeros(4, 6)
        y = torch.zeros(4, 6)
        for i in range(x.size(0)):
            y, h = self.cell(x + i, h)
        return y


class Buffers(torch.nn.Module):
    """Writes to tensors that it makes itself, beside a branch by the data."""

    def forward(self, x):
        h = torch.zeros(4, 6)
        y = x * 2 if x.sum() > 0 else x - 1
        h[0] = y[1]
        h[1:3] += y[2:4]
        h.add_(1.0)
        return h * y


class Tuples(torch.nn.Module):
    """Branches that exchange two states."""

    def forward(self, x):
        made = []
        state = (torch.zeros(6), torch.ones(6))
        for i in range(x.size(0)):
            a, b = state
            if (a + x[i]).mean() > 0.1:
                a = torch.relu(a + x[i])
            else:
                a, b = b, a - x[i]
            state = (a, b)
            made.append(a)
        return torch.stack(made), state[0], state[1]


class Halvings(torch.nn.Module):
    """Counts how often a loop of data runs."""

    def forward(self, x):
        count = 0
        while x.abs().sum() > 1.0:
            x = x * 0.5
            count += 1
        return x, torch.tensor(count)


class Early(torch.nn.Module):
    """Returns from branches."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        y = x + 1
        if y.mean() > 0.5:
            return y
        return y - 3


def reads(script, *inputs):
    """Compare a script, imported and compiled, with TorchScript, which still runs it after that."""
    wanted = expected(script, [x.clone() for x in inputs])
    assert_same(compiled(script, [x.clone() for x in inputs]), wanted)
    assert_same(expected(script, [x.clone() for x in inputs]), wanted)


@pytest.mark.parametrize(
    "kind", [Fixed, Branch, InPlace, Newton, Recurrent, Buffers, Tuples, Halvings, Early]
)
def test_control_flow(kind):
    torch.manual_seed(7)
    script = torch.jit.script(kind().eval())
    model = slipway.compile(script, shapes={"x": (4, 6)})
    for x in (X.abs(), -X.abs(), X * 0.5 - 0.1, 0.1 - X * 0.5, X * 3 + 0.2):
        found = model(x.numpy().copy())
        found = list(found.values()) if isinstance(found, dict) else [found]
        assert_same([np.asarray(f) for f in found], expected(script, [x.clone()]))


def test_a_frozen_script():
    reads(torch.jit.freeze(torch.jit.script(Fixed().eval())), X)


def test_weights_keep_their_names():
    script = torch.jit.script(Fixed().eval())
    _, params = relay.frontend.from_pytorch(script, [("x", (4, 6))])
    assert set(params) == {
        "scale", "linear.weight", "linear.bias", "norm.weight", "norm.bias", "norm.running_mean",
        "norm.running_var",
    }  # fmt: skip


def test_a_trace_knows_the_types_of_its_inputs():
    index = torch.tensor([[0, 2, 1], [3, 3, 0]])
    traced = torch.jit.trace(lambda x, i: torch.gather(x, 1, i), (X, index))
    mod, _ = relay.frontend.from_pytorch(traced, [("x", (4, 6)), ("i", (2, 3))])
    assert [p.type_annotation.dtype for p in mod["main"].params] == ["float32", "int64"]
    reads(traced, X, index)
    mod, _ = relay.frontend.from_pytorch(traced)
    assert [tuple(p.type_annotation.shape) for p in mod["main"].params] == [(4, 6), (2, 3)]
    model = slipway.compile(traced)
    assert_same([np.asarray(model(X.numpy(), index.numpy()))], [torch.gather(X, 1, index).numpy()])


def test_dtypes_as_torchscript_writes_them():
    script = torch.jit.script(torch.nn.Embedding(5, 3))
    for dtype in ("long", "int64"):
        mod, _ = relay.frontend.from_pytorch(script, [("i", ((2, 2), dtype))])
        assert mod["main"].params[0].type_annotation.dtype == "int64"


def test_a_script_that_was_never_run_before():
    """What the import makes the interpreter see must not stay in the script."""
    script = torch.jit.script(Tuples())
    relay.frontend.from_pytorch(script, [("x", (4, 6))])
    assert_same(expected(script, [X]), expected(Tuples(), [X]))


def test_numbers_that_a_trace_writes_as_tensors():
    def sizes(x):
        stride = torch.tensor(x.shape[0]).int() - torch.tensor(2)
        return torch.nn.functional.max_pool1d(x[None], 2, stride=stride)

    def narrow(x):
        return torch.narrow(x, 1, torch.tensor(2) - torch.tensor(1), torch.tensor(1) * 2)

    def reversed_difference(x):
        return torch.rsub(x, 3, alpha=2.5)

    for function in (sizes, narrow, reversed_difference):
        reads(torch.jit.trace(function, X), X)


def test_scripts_without_inputs_and_with_numbers_alone():
    class Nothing(torch.nn.Module):
        def forward(self):
            return torch.arange(5) * 2

    reads(torch.jit.trace(Nothing(), ()))

    class Number(torch.nn.Module):
        def forward(self, x):
            total = 0
            for i in range(x.size(0)):
                total += i * i
            return total

    assert compiled(torch.jit.script(Number()), [X])[0].item() == 14


def test_linear_maps_of_other_ranks():
    square, vector = torch.linspace(0, 1, 36).reshape(6, 6), torch.linspace(1, 2, 6)
    linear = torch.nn.functional.linear
    reads(torch.jit.trace(lambda x, w, b: linear(x, w, b), (X, square, X)), X, square, X)
    reads(torch.jit.trace(lambda x, w: linear(x, w), (X, vector)), X, vector)
    deep = X.reshape(2, 2, 6)
    reads(torch.jit.trace(lambda x, w: linear(x, w), (deep, vector)), deep, vector)


def test_an_input_that_a_script_writes_to():
    def wider(x):
        x.unsqueeze_(1)
        x += 1
        return x.squeeze(1) * 2

    reads(torch.jit.trace(wider, X.clone()), X)


def test_inputs_that_are_no_tensors():
    class Scaled(torch.nn.Module):
        def forward(self, x, factor: int = 3):
            made = torch.jit.annotate(list[torch.Tensor], [])
            for part in x.split(2, dim=0):
                made.append(part.mean(0) * factor)
            both = {"first": made[0], "last": made[-1]}
            return torch.stack(made), both["first"] - both["last"]

    reads(torch.jit.script(Scaled()), X)

    class Wanting(torch.nn.Module):
        def forward(self, x, factor: int):
            return x * factor

    with pytest.raises(ModelError, match="input 'factor' is of type int"):
        relay.frontend.from_pytorch(torch.jit.script(Wanting()), [("x", (4, 6))])


def test_an_open_batch():
    torch.manual_seed(7)
    traced = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.ReLU()), X)
    model = slipway.compile(traced, shapes={"x": (Dim("n", 1, 9), 6)})
    for rows in (1, 3, 9):
        x = torch.rand(rows, 6)
        assert_same([np.asarray(model(x.numpy()))], [traced(x).detach().numpy()])


def test_a_file(tmp_path):
    traced = torch.jit.trace(torch.nn.Linear(6, 3), X)
    for name in ("model.pt", "model.pth"):
        path = tmp_path / name
        traced.save(str(path))
        with pytest.raises(ModelError, match=r"does not say the shapes of its inputs, input.*224"):
            slipway.compile(path)
        model = slipway.compile(path, shapes={"input": (4, 6)})
        assert_same([np.asarray(model(X.numpy()))], [traced(X).detach().numpy()])
    with pytest.raises(OpenShapeError):
        relay.frontend.from_pytorch(path)


def test_a_file_of_weights_is_none(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save(torch.nn.Linear(6, 3).state_dict(), path)
    with pytest.raises(ModelError, match="weights and names of classes"):
        slipway.compile(path)


def test_a_file_that_writes_files_is_refused(tmp_path):
    class Writer(torch.nn.Module):
        def forward(self, x):
            torch.save(x, "taken.bin")
            return x

    path = tmp_path / "writer.pt"
    torch.jit.script(Writer()).save(str(path))
    with pytest.raises(ModelError, match=r"calls torch.save in .*not loaded"):
        slipway.compile(path, shapes={"x": (4, 6)})


def test_a_damaged_file(tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.trace(torch.nn.Linear(6, 3), X).save(str(path))
    cut = tmp_path / "cut.pt"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(cut, "w") as part:
        for entry in whole.infolist():
            if not entry.filename.endswith("data.pkl"):
                part.writestr(entry, whole.read(entry.filename))
    with pytest.raises(ModelError, match="or it is damaged"):
        slipway.compile(cut, shapes={"x": (4, 6)})


def test_what_is_not_imported_is_told():
    class Texts(torch.nn.Module):
        def forward(self, x):
            names = ["a"] if x.sum() > 0 else ["b"]
            return x * len(names[0])

    with pytest.raises(ModelError, match="gives a list: tensors and numbers"):
        relay.frontend.from_pytorch(torch.jit.script(Texts()), [("x", (4, 6))])

    class Written(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            if x.sum() > 0:
                y.add_(1)
            return y

    with pytest.raises(ModelError, match=r"writes in place \(aten::add_\)"):
        relay.frontend.from_pytorch(torch.jit.script(Written()), [("x", (4, 6))])


class Masked(torch.nn.Module):
    """An encoder with a mask of one kind, which a trace keeps as torch's fused layers."""

    def __init__(self, kind, **options):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.kind = kind

    def forward(self, x, mask):
        return self.encoder(x, **{self.kind: mask})


def traced_without_check(module, *inputs):
    with torch.no_grad():
        return torch.jit.trace(module.eval(), inputs, check_trace=False)


HIDDEN = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
CAUSAL = torch.triu(torch.ones(5, 5), 1).bool()


@pytest.mark.parametrize(
    ("kind", "mask", "options"),
    [
        ("src_key_padding_mask", HIDDEN, {}),
        ("mask", CAUSAL, {"activation": "gelu"}),
        ("mask", CAUSAL, {"norm_first": True}),
    ],
)
def test_fused_layers_of_an_encoder(kind, mask, options):
    torch.manual_seed(7)
    x = torch.rand(2, 5, 16)
    script = traced_without_check(Masked(kind, **options), x, mask)
    assert "_transformer_encoder_layer_fwd" in str(script.inlined_graph)
    reads(script, x, mask)


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"average_attn_weights": False}])
def test_fused_attention(options):
    torch.manual_seed(7)

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x):
            made, weights = self.attention(x, x, x, **options)
            return (made, weights) if weights is not None else made

    x = torch.rand(2, 5, 16)
    script = traced_without_check(Attention(), x)
    assert "_native_multi_head_attention" in str(script.inlined_graph)
    reads(script, x)
