"""Dtypes with parts, and what else of classic TVM's containers is Python's own."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ArgumentValueError


@pytest.mark.parametrize(
    ("given", "name", "code", "bits", "lanes"),
    [
        ("float32x4", "float32x4", 2, 32, 4), (np.int8, "int8", 0, 8, 1),
        (np.dtype("uint16"), "uint16", 1, 16, 1), ("bool", "bool", 1, 1, 1),
        ("bfloat16", "bfloat16", 4, 16, 1), ("handle", "handle", 3, 64, 1),
    ],
)  # fmt: skip
def test_a_dtype_has_parts(given, name, code, bits, lanes):
    made = tvm.DataType(given)
    assert (made, made.type_code, made.bits, made.lanes) == (name, code, bits, lanes)


def test_a_dtype_is_used_as_a_string():
    assert tvm.nd.empty((2,), tvm.runtime.DataType("int8")).dtype == "int8"
    for wrong, cause in (("flot32", "is not a dtype"), (3, "takes the name"), (None, "the name")):
        with pytest.raises(ArgumentValueError, match=cause):
            tvm.DataType(wrong)


def test_what_an_operator_says_of_itself():
    conv2d = relay.op.get("nn.conv2d")
    assert [a.name for a in conv2d.arguments] == ["data", "weight"]
    assert (conv2d.num_inputs, conv2d.get_attr("TOpPattern"), conv2d.has_attr("x")) == (2, 4, False)
    assert "data" in conv2d.description
