"""Every operator of the registry: complete, typed as its reference computes, its te compute right.

The computes run in the interpreter of loop programs, without any schedule.
"""

import subprocess
import sys

import numpy as np
import pytest

from slipway import relay, te
from slipway.errors import TypeInferenceError
from slipway.ir.interpreter.interpret import run
from slipway.relay import op_registry
from slipway.relay.types import TensorType, TupleType, flatten

OPS = op_registry.load_ops()
CASES = [
    pytest.param(name, case, id=f"{name}-{number}")
    for name, definition in OPS.items()
    for number, case in enumerate(definition.cases)
]


def type_of(value):
    if isinstance(value, (tuple, list)):
        return TupleType(tuple(type_of(v) for v in value))
    return TensorType(value.shape, value.dtype.name)


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    return [np.asarray(value)]


@pytest.mark.parametrize("name", OPS)
def test_section_is_complete(name):
    assert OPS[name].missing_parts() == []


@pytest.mark.parametrize(("name", "case"), CASES)
def test_type_relation_agrees_with_reference(name, case):
    arrays = case.arrays()
    found = OPS[name].evaluate(case.attrs, *arrays)
    want = OPS[name].infer(case.attrs, [type_of(a) for a in arrays])
    assert type_of(found if isinstance(found, tuple) else np.asarray(found)) == want


@pytest.mark.parametrize(("name", "case"), CASES)
def test_compute_agrees_with_reference(name, case):
    definition, arrays = OPS[name], case.arrays()
    want = leaves(definition.evaluate(case.attrs, *arrays))
    out_types = flatten(definition.infer(case.attrs, [type_of(a) for a in arrays]))
    flat = leaves(arrays)
    inputs = [te.placeholder(a.shape, dtype=a.dtype.name, name=f"p{i}") for i, a in enumerate(flat)]
    outputs = definition.compute_function(case.attrs, inputs, out_types)
    assert [tuple(int(d) for d in t.shape) for t in outputs] == [t.shape for t in out_types]
    assert [t.dtype for t in outputs] == [t.dtype for t in out_types]
    schedule = te.create_schedule([t.op for t in outputs])
    function = te.lower(schedule, [*inputs, *outputs])
    got = [np.zeros(t.shape, "uint16" if t.dtype == "bfloat16" else t.dtype) for t in out_types]
    assert run(function, *flat, *got) == 0
    for stored, reference in zip(got, want, strict=True):
        found = stored.view(reference.dtype) if reference.dtype == "bfloat16" else stored
        tolerance = 2e-3 if name == "power" else 2e-5
        np.testing.assert_allclose(found, reference, rtol=tolerance, atol=2e-5)


def test_an_incomplete_section_names_what_it_lacks():
    definition = op_registry.OpDefinition("x", ("data",), None, op_registry.OpPattern.OPAQUE, 0, "")
    assert definition.missing_parts() == [
        "doc", "type_relation", "reference", "compute", "make", "sample_case",
    ]  # fmt: skip


@pytest.mark.parametrize("family", ["recurrence", "tensor.scan"])
def test_a_family_may_be_imported_before_the_registry_is_loaded(family):
    """An importer reaches it first through a pass that knows the operator's attributes."""
    code = (
        f"import slipway.relay.ops.{family}; from slipway.relay.op_registry import load_ops; "
        "assert not [n for n, d in load_ops().items() if d.missing_parts()]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_unknown_operator_gets_a_suggestion():
    with pytest.raises(KeyError, match=r"nn\.conv2d"):
        op_registry.get("nn.conv2dd")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda r, x: r.nn.conv2d(x, r.var("w", shape=(4, 2, 3, 3))),
            "argument 'weight'.*channels",
        ),
        (lambda r, x: r.nn.conv2d(x, r.var("w", shape=(4, 3, 9, 9))), "argument 'data'.*window"),
        (lambda r, x: r.nn.dense(x, r.var("w", shape=(4, 9))), "nn.dense: argument 'weight'"),
        (lambda r, x: r.add(x, r.var("y", shape=(7,))), "argument 'rhs'.*broadcast"),
        (lambda r, x: r.add(x, r.var("y", shape=(8,), dtype="int8")), "argument 'rhs' is int8"),
        (lambda r, x: r.reshape(x, (5, -1)), "argument 'newshape'"),
        (lambda r, x: r.reshape(x, (0, 0, 0, -3)), "argument 'newshape'"),
        (lambda r, x: r.reshape(x, (-4, 2)), "argument 'newshape'"),
        (lambda r, x: r.reshape(x, (-4, 0, -1, -2)), "argument 'newshape'"),
        (lambda r, x: r.concatenate([x, r.var("y", shape=(1, 3, 8))], 1), "argument 'data'"),
        (lambda r, x: r.squeeze(x, [1]), "argument 'axis'.*extent 3"),
        (lambda r, x: r.transpose(x, (0, 1)), "argument 'axes'"),
        (lambda r, x: r.exp(r.cast(x, "int8")), "argument 'data' must be floating point"),
    ],
)
def test_type_errors_name_operator_and_argument(build, words):
    from slipway import relay

    with pytest.raises(TypeInferenceError, match=words):
        build(relay, relay.var("x", shape=(1, 3, 8, 8)))


def test_functions_are_called_as_their_operators():
    """Scripts ask for the name in ``str(relay.nn.max_pool1d)``."""
    for function in (relay.nn.max_pool1d, relay.nn.conv2d_transpose, relay.argmax, relay.add):
        assert f"<function {function.__name__} at" in str(function)
    assert "max_pool1d" in str(relay.nn.max_pool1d)
