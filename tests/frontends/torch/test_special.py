"""Special functions, what counts and ranks, antialiased resizes, weights that torch computes."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, compiled, expected, interpreted
from tests.frontends.torch.test_operators import Several
from torch import nn

from slipway import relay
from slipway.errors import ModelError

RNG = torch.Generator().manual_seed(3)
WIDE = torch.randn(60, generator=RNG) * 3
GAPS = torch.where(torch.rand(4, 9, generator=RNG) > 0.8, torch.nan, torch.randn(4, 9))
WHOLE = torch.randint(-3, 4, (4, 9), generator=RNG)
COMPLEX = torch.randn(3, 4, 2, generator=RNG)
IMAGE = torch.rand(2, 3, 17, 12, generator=RNG) * 255


def z(function):
    return lambda x: torch.view_as_real(function(torch.view_as_complex(x)))


FAMILIES = {
    "errors": (
        [
            torch.erfc, lambda x: torch.erfc(x.abs() + 3) * 1e4, torch.special.erfcx,
            lambda x: torch.special.erfcx(x.abs() * 9), lambda x: torch.erfinv(x.tanh()),
            lambda x: torch.erfinv(1 - x.abs() * 1e-5), lambda x: torch.erfinv(x.sign() * (x > 1)),
            lambda x: torch.erfinv(x), torch.signbit,
        ],
        WIDE,
    ),
    "gamma": (
        [
            lambda x: torch.lgamma(x.abs() * 9), lambda x: torch.lgamma(x.abs() * 1e-4),
            lambda x: torch.lgamma(x.double()), lambda x: torch.digamma(x.double()),
            lambda x: torch.digamma(x.abs() + 0.1), lambda x: torch.lgamma(torch.round(x)),
            lambda x: torch.digamma(torch.round(x) * 0.0), lambda x: torch.lgamma(x / 0),
        ],
        WIDE,
    ),
    "counts": (
        [
            lambda x: torch.histc(x.nan_to_num(), 7), lambda x: torch.histc(x.nan_to_num() * 0, 3),
            lambda x: torch.histc(x.nan_to_num(), 5, -1, 2), torch.nanmedian,
            lambda x: torch.nanmedian(x, 1).values, lambda x: torch.nanmedian(x, 0, True).values,
            lambda x: torch.nanmedian(x * torch.nan, 1).values,
        ],
        GAPS,
    ),
    "ranks": (
        [
            lambda x: torch.mode(x, 1).values, lambda x: torch.mode(x, 0, True).values,
            lambda x: torch.mode(x[:, None, 3:], 2).values, lambda x: torch.mode(x[0, 0]).values,
            lambda x: torch.gather(x, 1, torch.mode(x, 1, True).indices),
            lambda x: torch.gcd(x.int() * 6, x.flip(1).int() * 4), torch.nanmedian,
        ],
        WHOLE,
    ),
    "complex": (
        [
            z(torch.sqrt), z(torch.rsqrt), z(torch.sin), z(torch.cos), z(torch.sinh), z(torch.cosh),
            z(torch.tanh), z(torch.tan), z(torch.sigmoid), z(torch.log2), z(torch.log10),
            z(lambda x: torch.tanh(x * 40)),
            z(lambda x: torch.sqrt(torch.complex(x.real * 0 - 4, x.imag.abs() * 0))),
        ],
        COMPLEX,
    ),
    "resizes": (
        [
            lambda x: F.interpolate(x, (8, 20), mode="bilinear", antialias=True),
            lambda x: F.interpolate(x, (5, 5), mode="bicubic", antialias=True, align_corners=True),
            lambda x: F.interpolate(x, scale_factor=(0.37, 1.3), mode="bicubic", antialias=True),
            lambda x: F.interpolate(x.byte(), (8, 5), mode="bilinear", antialias=True),
            lambda x: F.interpolate(x.byte(), (21, 7), mode="bicubic", antialias=True),
            lambda x: F.interpolate(x.double(), (1, 1), mode="bilinear", antialias=True),
        ],
        IMAGE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    functions, x = FAMILIES[family]
    module = Several(functions).eval()
    assert_same(interpreted(module, [x]), expected(module, [x]))


class Weighed(nn.Module):
    """Weights that are computed from others: rotations, and a window."""

    def __init__(self):
        super().__init__()
        self.orthogonal = nn.utils.parametrizations.orthogonal(nn.Linear(5, 5))
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(5, 4))

    def forward(self, x):
        window = torch.kaiser_window(4, True, 6.0) + torch.special.i1(torch.ones(4))
        return self.normed(self.orthogonal(x)) * window


def test_what_depends_on_weights_alone_is_computed_by_torch():
    module, x = Weighed().eval(), torch.randn(3, 5, generator=RNG)
    assert_same(compiled(module, [x]), expected(module, [x]))


def test_an_operator_of_data_without_a_converter_is_named():
    module = Several([torch.special.i1]).eval()
    with pytest.raises(ModelError, match=r"special_i1.*there is no converter for it"):
        relay.frontend.from_pytorch(module, [("x", (3,))])


@pytest.mark.parametrize("bias", [True, False])
def test_outputs_of_an_lstm_are_projected(bias):
    layer = nn.LSTM(5, 6, 2, bias=bias, bidirectional=True, proj_size=3, batch_first=True).eval()

    class Taken(nn.Module):
        def forward(self, x):
            y, (h, c) = layer(x)
            return y, h, c

    module, x = Taken().eval(), torch.randn(2, 7, 5, generator=RNG)
    module.layer = layer
    assert_same(interpreted(module, [x]), expected(module, [x]))
