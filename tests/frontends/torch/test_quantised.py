"""Models of torch.ao's quantisation, eager and FX, against the integers of PyTorch's own engine."""

import warnings

import numpy as np
import pytest
import torch
from compare import compiled, expected, interpreted
from torch import nn

from slipway import relay
from slipway.errors import ModelError

RNG = torch.Generator().manual_seed(5)
pytestmark = pytest.mark.filterwarnings("ignore")
ENGINES = torch.backends.quantized.supported_engines


class Net(nn.Module):
    """A small network with the layers that quantised vision models have."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.depthwise = nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.pool, self.mean = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
        self.swish, self.linear = nn.Hardswish(), nn.Linear(16, 5)
        self.sum, self.join = (torch.ao.nn.quantized.FloatFunctional() for _ in range(2))
        self.quant = torch.ao.quantization.QuantStub()
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.pool(self.sum.add(x, self.depthwise(x)))
        x = self.mean(self.join.cat([x, self.swish(x)], 1))
        return self.dequant(self.linear(torch.flatten(x, 1)))


def eager(module, inputs, fused=()):
    """Return a module quantised by hand."""
    ao = torch.ao.quantization
    module = module.eval()
    if fused:
        ao.fuse_modules(module, list(fused), inplace=True)
    module.qconfig = ao.get_default_qconfig("fbgemm")
    ao.prepare(module, inplace=True)
    for _ in range(3):
        module(*(torch.rand(x.shape, generator=RNG) * 2 - 1 for x in inputs))
    return ao.convert(module, inplace=True)


def by_fx(module, inputs):
    """Return a module quantised by FX."""
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    mapping = torch.ao.quantization.get_default_qconfig_mapping("fbgemm")
    prepared = prepare_fx(module.eval(), mapping, tuple(inputs))
    prepared(*inputs)
    return convert_fx(prepared)


def steps_apart(found, wanted):
    """Return the most levels of the result's scale that two results differ by."""
    levels = np.unique(wanted)
    step = np.diff(levels)[np.diff(levels) > 1e-6].min()
    return np.abs(found - wanted).max() / step


@pytest.mark.skipif("fbgemm" not in ENGINES, reason="needs PyTorch's engine for x86")
class TestModels:
    @pytest.fixture(scope="class")
    def models(self):
        torch.backends.quantized.engine = "fbgemm"
        torch.manual_seed(7)
        image = torch.rand(1, 3, 16, 16, generator=RNG)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = eager(Net(), [image], [["conv", "bn", "relu"]])
            fx = by_fx(Net(), [image])
            traced = torch.jit.trace(fx, image)
            return image, {"eager": own, "fx": fx, "traced": traced,
                           "scripted": torch.jit.script(own)}  # fmt: skip

    @pytest.mark.parametrize("kind", ["eager", "fx", "traced", "scripted"])
    def test_every_way_to_a_quantised_model(self, models, kind):
        image, found = models
        assert (
            steps_apart(*interpreted(found[kind], [image]), *expected(found[kind], [image])) < 1.1
        )

    @pytest.mark.long
    def test_compiled_in_integers(self, models):
        image, found = models
        assert steps_apart(*compiled(found["fx"], [image]), *expected(found["fx"], [image])) < 1.1


class Around(nn.Module):
    """What a function computes of quantised inputs."""

    def __init__(self, inner, inputs=1):
        super().__init__()
        self.inner = inner
        self.quants = nn.ModuleList(torch.ao.quantization.QuantStub() for _ in range(inputs))
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, *xs):
        return self.dequant(self.inner(*(q(x) for q, x in zip(self.quants, xs, strict=True))))


class Functional(nn.Module):
    """A function of torch.ao's functional modules."""

    def __init__(self, compute):
        super().__init__()
        self.f, self.compute = torch.ao.nn.quantized.FloatFunctional(), compute

    def forward(self, *xs):
        return self.compute(self.f, *xs)


USUAL = ("conv1d", "elu", "mul", "numbers", "pools")
CASES = {
    "conv1d": (nn.Conv1d(4, 6, 3, 2, 1), [(2, 4, 9)]),
    "conv3d": (nn.Conv3d(2, 3, 2), [(1, 2, 4, 4, 4)]),
    "conv2d dilated": (nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2), [(1, 4, 8, 8)]),
    "linear of 3 axes": (nn.Linear(8, 5, bias=False), [(2, 3, 8)]),
    "elu": (nn.ELU(), [(3, 8)]),
    "leaky_relu": (nn.LeakyReLU(0.2), [(3, 8)]),
    "sigmoid": (nn.Sigmoid(), [(3, 8)]),
    "hardswish": (nn.Hardswish(), [(3, 8)]),
    "layer_norm": (nn.LayerNorm(8), [(3, 8)]),
    "batch_norm": (nn.BatchNorm2d(3), [(2, 3, 4, 4)]),
    "relu6": (nn.ReLU6(), [(3, 8)]),
    "add": (Functional(lambda f, a, b: f.add(a, b)), [(3, 8), (3, 8)]),
    "mul": (Functional(lambda f, a, b: f.mul(a, b)), [(3, 8), (3, 8)]),
    "add_relu": (Functional(lambda f, a, b: f.add_relu(a, b)), [(3, 8), (3, 8)]),
    "numbers": (Functional(lambda f, a: f.mul_scalar(f.add_scalar(a, 0.3), 1.7)), [(3, 8)]),
    "moves": (Functional(lambda f, a: a.permute(1, 0)[2:].reshape(-1, 2)), [(4, 6)]),
    "pools": (nn.Sequential(nn.AvgPool2d(3, 1, 1), nn.MaxPool2d(3, 2, 1)), [(1, 3, 9, 9)]),
    "upsample": (nn.Upsample(scale_factor=2, mode="nearest"), [(1, 2, 3, 3)]),
}  # fmt: skip


@pytest.mark.skipif("fbgemm" not in ENGINES, reason="needs PyTorch's engine for x86")
@pytest.mark.parametrize(
    "name", [n if n in USUAL else pytest.param(n, marks=pytest.mark.long) for n in CASES]
)
def test_layers(name):
    torch.backends.quantized.engine = "fbgemm"
    inner, shapes = CASES[name]
    inputs = [torch.rand(shape, generator=RNG) * 2 - 1 for shape in shapes]
    module = eager(Around(inner, len(inputs)), inputs)
    assert steps_apart(*interpreted(module, inputs), *expected(module, inputs)) < 1.1


def test_weights_alone_quantised():
    """Each call finds the scale of its input; sums are of integers in PyTorch, of floats here."""
    module = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    module = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
    x = torch.rand(3, 16, generator=RNG) * 4 - 1
    np.testing.assert_allclose(*interpreted(module, [x]), *expected(module, [x]), atol=1e-5)


def test_what_is_not_served_is_named():
    module = torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.GRUCell(4, 4)).eval(), {nn.GRUCell}, dtype=torch.qint8
    )
    with pytest.raises(ModelError, match="quantised"):
        relay.frontend.from_pytorch(module, [("x", (1, 4))])


class Rounding(nn.Module):
    """Fake quantisation by numbers, by tensors, and by a scale for each channel."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scales", torch.tensor([0.02, 0.1, 0.05]))
        self.register_buffer("zeros", torch.tensor([0, -3, 7], dtype=torch.int32))

    def forward(self, x):
        one = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
        two = torch.fake_quantize_per_tensor_affine(x, self.scales[1], self.zeros[2], 0, 15)
        return (
            one,
            two,
            torch.fake_quantize_per_channel_affine(x, self.scales, self.zeros, 1, -3, 9),
        )


def test_fake_quantisation_rounds_as_torch_does():
    x = torch.cat([torch.arange(-60, 60) * 0.025, torch.randn(120, generator=RNG) * 4])
    x = x.reshape(8, 3, 10)  # halves of steps, too
    for found, wanted in zip(interpreted(Rounding(), [x]), expected(Rounding(), [x]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def trained_for_integers():
    ao = torch.ao.quantization
    module = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 2, 1))
    module.train().qconfig = ao.get_default_qat_qconfig("fbgemm")
    module = ao.prepare_qat(ao.fuse_modules_qat(module, [["0", "1", "2"]]))
    module(torch.rand(4, 3, 9, 9, generator=RNG))
    return module.eval()


def test_modules_in_training_for_integers_whose_observers_are_off():
    module, x = trained_for_integers(), torch.rand(1, 3, 9, 9, generator=RNG)
    with pytest.raises(ModelError, match="disable_observer"):
        relay.frontend.from_pytorch(module, [("x", (1, 3, 9, 9))])
    module.apply(torch.ao.quantization.disable_observer)
    mod, _ = relay.frontend.from_pytorch(module, [("x", (1, 3, 9, 9))])
    assert [v.name for v in mod["main"].params] == ["x"]  # the observers' state is constant
    (found,), (wanted,) = interpreted(module, [x]), expected(module, [x])
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    module.apply(torch.ao.quantization.disable_fake_quant)
    (found,), (wanted,) = interpreted(module, [x]), expected(module, [x])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
