"""Damaged models: whatever the bytes, the importer answers with an error of its own."""

import random

import pytest
from benchmarks._damage import mutate_bytes
from graphs import helper, model, small_cnn

from slipway import relay
from slipway.errors import ModelError, SlipwayError


@pytest.mark.parametrize("seed", range(8))
def test_mutated_models_never_crash(seed):
    rng = random.Random(seed)
    whole = small_cnn().SerializeToString()
    errors = 0
    for _ in range(60):
        try:
            relay.frontend.from_onnx(mutate_bytes(whole, rng))
        except SlipwayError:
            errors += 1
    assert errors


def test_a_node_that_breaks_its_operators_rules_is_named():
    proto = model(
        [helper.make_node("MaxPool", ["x"], ["y"], name="pool3")],
        {"x": ("float32", (1, 1, 4, 4))},
        ["y"],
    )
    with pytest.raises(ModelError, match=r"MaxPool x 1 \(pool3\): its attributes or inputs"):
        relay.frontend.from_onnx(proto)


def test_loops_are_bounded():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Identity", ["v"], ["v_out"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, t, ()) for n, t in (("i", 7), ("c", 9), ("v", 1))],
        [helper.make_tensor_value_info(n, t, ()) for n, t in (("c_out", 9), ("v_out", 1))],
    )
    proto = model(
        [helper.make_node("Loop", ["", "", "x"], ["y"], name="forever", body=body)],
        {"x": ("float32", ())},
        ["y"],
    )
    with pytest.raises(ModelError, match=r"forever.*more than 1024 steps"):
        relay.frontend.from_onnx(proto)
