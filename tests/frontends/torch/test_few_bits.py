"""Weights of few bits as torchao exports them, against torch, and how many bytes are kept."""

import numpy as np
import pytest
import torch
from compare import compiled, expected
from torch import nn

from slipway import relay

DEPTH, UNITS = 96, 40


def _torchao():
    """Define torchao's operator, which its package would, with the same schema and meaning."""
    if hasattr(torch.ops.torchao, "dequantize_affine"):
        return
    torch.library.define(
        "torchao::dequantize_affine",
        "(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
        "input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, *, ScalarType "
        "output_dtype=float32) -> Tensor",
    )

    def meaning(x, block_size, scale, zero_point, input_dtype, low=None, high=None, *,
                output_dtype=torch.float32):  # fmt: skip
        parts, counts = [], []
        for extent, size in zip(x.shape, block_size, strict=True):
            parts += [extent // size, size]
            counts += [extent // size, 1]
        whole = x.to(torch.int32).reshape(parts)
        if zero_point is not None:
            whole = whole - zero_point.to(torch.int32).reshape(counts)
        return (whole.to(output_dtype) * scale.to(output_dtype).reshape(counts)).reshape(x.shape)

    torch.library.impl("torchao::dequantize_affine", "CompositeExplicitAutograd", meaning)
    torch.library.register_fake("torchao::dequantize_affine", meaning)


class Grouped(nn.Module):
    """A layer whose weights have a scale for each group of a row (IntxWeightOnlyConfig)."""

    def __init__(self, low, high, group, zeros):
        super().__init__()
        shape = (UNITS, DEPTH // group)
        self.low, self.high, self.group = low, high, group
        self.register_buffer("q", torch.randint(low, high + 1, (UNITS, DEPTH), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(shape) / 10 + 0.01)
        zero = torch.randint(low, high + 1, shape, dtype=torch.int8) if zeros else None
        self.register_buffer("zero", zero)

    def forward(self, x):
        weight = torch.ops.torchao.dequantize_affine(
            self.q, [1, self.group], self.scale, self.zero, torch.int8, self.low, self.high
        )
        return nn.functional.linear(x, weight)


class Scaled(nn.Module):
    """A layer with a scale for each output, after the product (Int8WeightOnlyConfig)."""

    def __init__(self):
        super().__init__()
        q = torch.randint(-128, 128, (UNITS, DEPTH), dtype=torch.int8)
        self.register_buffer("q", q)
        self.register_buffer("scale", torch.rand(UNITS) / 10 + 0.01)

    def forward(self, x):
        return torch.mm(x, self.q.t().to(torch.float32)) * self.scale


@pytest.mark.parametrize(
    ("low", "high", "group", "zeros", "bits"),
    [(-8, 7, 32, False, 4), (-8, 7, 16, True, 4), (-4, 3, 96, False, 4), (-128, 127, 48, True, 8)],
)
def test_groups(low, high, group, zeros, bits):
    _torchao()
    torch.manual_seed(1)
    _check(Grouped(low, high, group, zeros), bits)


def test_a_scale_for_each_output():
    """One row reads each weight once; of more rows the products with floats take less time."""
    torch.manual_seed(2)
    _check(Scaled(), 8, rows=1)
    assert _bytes_of_blocks(torch.export.export(Scaled(), (torch.randn(3, DEPTH),))) == []


def _check(module, bits, rows=3):
    x = torch.randn(rows, DEPTH)
    program = torch.export.export(module, (x,))
    want = expected(module, (x,))
    found = compiled(program, (x,))
    np.testing.assert_allclose(found[0], want[0], rtol=0, atol=2e-6 * np.abs(want[0]).max())
    assert _bytes_of_blocks(program) == [UNITS * DEPTH * bits // 8]


def _bytes_of_blocks(program):
    mod, params = relay.frontend.from_pytorch(program)
    library = relay.build(mod, target="llvm -mcpu=haswell", params=params)
    return [a.nbytes for a in library.get_params().values() if str(a.dtype) == "uint8"]


def test_blocks_of_several_rows_become_floats():
    _torchao()
    torch.manual_seed(3)
    module = Grouped(-8, 7, 32, True)
    x = torch.randn(2, DEPTH)

    class Two(nn.Module):
        def forward(self, x):
            weight = torch.ops.torchao.dequantize_affine(
                module.q, [4, 3], module.scale.new_ones(UNITS // 4, DEPTH // 3) / 3, None,
                torch.int8, -8, 7,
            )  # fmt: skip
            return nn.functional.linear(x, weight)

    found = compiled(torch.export.export(Two(), (x,)), (x,))
    np.testing.assert_allclose(found[0], expected(Two(), (x,))[0], atol=1e-4)


def test_the_product_of_bytes():
    class Bytes(nn.Module):
        def forward(self, a, b):
            return torch._int_mm(a, b)

    torch.manual_seed(4)
    a = torch.randint(-128, 128, (32, 64), dtype=torch.int8)
    b = torch.randint(-128, 128, (64, 24), dtype=torch.int8)
    found = compiled(torch.export.export(Bytes(), (a, b)), (a, b))
    np.testing.assert_array_equal(found[0], expected(Bytes(), (a, b))[0])
