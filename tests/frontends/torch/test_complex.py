"""Complex tensors and Fourier transforms: pairs of real tensors and products with matrices."""

import pytest
import torch
from compare import assert_same, compiled, expected, interpreted
from tests.frontends.torch.test_operators import Several
from torch import nn

from slipway import relay
from slipway.errors import ModelError

X = torch.randn(2, 16, generator=torch.Generator().manual_seed(1))
WINDOW = torch.hann_window(8)


def z(x, shift=1):
    return torch.complex(x, x * shift + 1)


def spectrum(x, **kwargs):
    return torch.stft(x, 8, hop_length=4, window=WINDOW, return_complex=True, **kwargs)


def rotary(x):
    rotations = torch.polar(torch.ones(8), torch.arange(8.0))
    return torch.view_as_real(torch.view_as_complex(x.reshape(2, 8, 2)) * rotations).flatten(1)


def filtered(x):
    """A Fourier layer: the low frequencies times weights, the others zero."""
    found = torch.fft.rfft(x)
    kept = torch.zeros(2, 9, dtype=torch.cfloat)
    kept[:, :4] = found[:, :4] * torch.complex(torch.ones(4), torch.arange(4.0))
    return torch.fft.irfft(kept, n=16)


FAMILIES = {
    "transforms": [
        lambda x: torch.fft.rfft(x).abs(), lambda x: torch.fft.irfft(torch.fft.rfft(x), n=16),
        lambda x: torch.fft.irfft(torch.fft.rfft(x[:, :15]), n=15),
        lambda x: torch.fft.irfft(torch.fft.rfft(x), n=22, norm="ortho"),
        lambda x: torch.fft.ihfft(x).imag, lambda x: torch.fft.fft2(x).real,
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho") * 2, norm="ortho"),
        lambda x: torch.view_as_real(torch.fft.fftn(x, dim=(0, 1), norm="forward")),
        lambda x: torch.fft.ifft(torch.fft.fft(x, n=20), norm="forward").real,
        lambda x: torch.fft.fftshift(torch.fft.fft(x)).imag,
    ],
    "signals": [
        lambda x: spectrum(x).abs(), lambda x: torch.istft(spectrum(x), 8, 4, window=WINDOW),
        lambda x: torch.view_as_real(spectrum(x, normalized=True, onesided=False)),
        filtered,
    ],
    "arithmetic": [
        rotary, lambda x: torch.angle(z(x)), lambda x: z(x).abs(), lambda x: z(x).conj().imag,
        lambda x: torch.exp(1j * x).imag, lambda x: (z(x) ** 3).imag, lambda x: z(x).sgn().real,
        lambda x: torch.log(z(x)).imag, lambda x: torch.view_as_real(z(x) / z(x, -2)),
        lambda x: torch.view_as_real(2 / z(x) + z(x) / 3), lambda x: (z(x) == z(x, -2)),
        lambda x: torch.view_as_real(z(x) @ z(x, 3).T),
        lambda x: torch.view_as_real(z(x) @ x.to(torch.complex64).T),
        lambda x: torch.view_as_real(torch.einsum("bi,ij->bj", z(x), torch.complex(x.T, x.T))),
    ],
    "moves": [
        lambda x: torch.view_as_real(torch.cat([z(x), z(x, 3)], 1)[:, ::2].reshape(4, -1).sum(0)),
        lambda x: torch.view_as_real(torch.cat([z(x), x, z(x)], 1)),
        lambda x: torch.view_as_real(torch.stack([x, z(x)]) + x - torch.where(x > 0, z(x), x)),
        lambda x: torch.view_as_real(torch.where(x > 0, z(x), z(x, -1))),
        lambda x: torch.view_as_real(z(x).roll(3, 1).mean(0).unsqueeze(0).expand(2, 16)),
        lambda x: torch.fft.irfft(torch.fft.rfft(x).masked_fill(torch.arange(9) > 4, 0)),
        lambda x: torch.fft.irfft(torch.nn.functional.pad(torch.fft.rfft(x), (0, 3))),
        lambda x: torch.view_as_real(torch.stack([z(x), z(x)])[1].T.contiguous()),
    ],
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    module = Several(FAMILIES[family]).eval()
    assert_same(interpreted(module, [X]), expected(module, [X]))


def test_a_spectrogram_and_a_complex_weight_compile():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rotations", torch.polar(torch.ones(5), torch.arange(5.0)))
            self.weight = nn.Parameter(z(torch.linspace(-1, 1, 15).reshape(3, 5)))

        def forward(self, x):
            found = spectrum(x).transpose(1, 2) * self.rotations
            return torch.nn.functional.linear(found, self.weight).abs()

    module = Net().eval()
    assert_same(compiled(module, [X]), expected(module, [X]))


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_lengths_and_quotients_neither_vanish_nor_overflow(size):
    def quotient(x):
        return (torch.complex(x, x * 2) / torch.complex(x * 3, x)).imag

    module = Several(
        [lambda x: torch.complex(x, x).abs(), lambda x: torch.hypot(x, x * 2), quotient]
    )
    assert_same(interpreted(module, [X * size]), expected(module, [X * size]))


def test_complex_numbers_at_the_border_are_refused_with_what_to_write():
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x)

    with pytest.raises(ModelError, match=r"is complex.*view_as_real"):
        relay.frontend.from_pytorch(Spectrum(), [("x", (2, 16))])

    class Length(nn.Module):
        def forward(self, x):
            return x.abs()

    program = torch.export.export(Length(), (torch.ones(3, dtype=torch.complex64),))
    with pytest.raises(ModelError, match=r"holds complex64.*view_as_complex"):
        relay.frontend.from_pytorch(program)


def test_an_operator_that_complex_tensors_lack_is_named():
    class Arc(nn.Module):
        def forward(self, x):
            return torch.asin(torch.fft.rfft(x)).real

    with pytest.raises(ModelError, match=r"asin.*complex"):
        relay.frontend.from_pytorch(Arc(), [("x", (2, 16))])
