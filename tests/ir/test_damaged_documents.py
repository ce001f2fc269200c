"""Damaged JSON of the IR and damaged relay text: each is read, or refused with one SlipwayError."""

import copy
import json
import random

import numpy as np
import pytest
from benchmarks.fuzz_importers.damage import mutate_bytes

from slipway import relay, te
from slipway.errors import ModelError, SlipwayError
from slipway.ir.buffer import decl_buffer
from slipway.ir.node import NODE_CLASSES
from slipway.ir.text.serialize import load_json, save_json
from slipway.relay.expr import Call, Function
from slipway.relay.types import TensorType
from slipway.te.lowering import lower
from slipway.transform.loop.pipeline import run_pipeline


def loops():
    """A function of loops as te makes it, and as the pipeline leaves it."""
    a, k = te.placeholder((8, 4), name="A"), te.reduce_axis((0, 4), "k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((8,), lambda i: te.exp(b[i]) + 1.5, name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].vectorize(schedule[c].split(c.op.axis[0], 4)[1])
    made = lower(schedule, [a, c])
    return made, run_pipeline(made)


def functions():
    x = relay.var("x", shape=(1, 3, 8, 8))
    weight = relay.const(np.ones((4, 3, 3, 3), np.float32))
    conv = relay.nn.relu(relay.nn.conv2d(x, weight, padding=(1, 1, 1, 1)))
    pair = relay.Tuple([x, relay.split(x, 2, 3)[0]])
    choice = relay.If(relay.const(True), relay.TupleGetItem(pair, 0), x)
    return relay.Function([x], conv), relay.Function([x], choice)


VALUES = (
    None, True, -1, 2**31, 2**70, 1e300, "", "x", [], {}, ["@", 0], ["@", -1], ["@", 10**9],
    ["t"], ["t", 1], ["l"], ["d", 1], ["f", "zz"], ["f", 1], ["a", 0], ["a", "x"], ["z"], [[]],
)  # fmt: skip


def places(value, path=()):
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    items = value.items() if isinstance(value, dict) else items
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(text, rng):
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        path = rng.choice([p for p in places(document) if p])
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = copy.deepcopy(rng.choice(VALUES))
    return json.dumps(document)


@pytest.mark.parametrize("seed", range(4))
def test_changed_json_is_read_or_refused(seed):
    rng = random.Random(seed)
    texts = [save_json(f) for f in functions()]
    refused = 0
    for number in range(250):
        text = rng.choice(texts)
        made = changed(text, rng)
        if number % 3 == 0:
            made = mutate_bytes(text.encode(), rng).decode("latin-1")
        try:
            load_json(made)
        except SlipwayError:
            refused += 1
    assert 100 < refused < 250


@pytest.mark.parametrize("seed", range(2))
def test_changed_loops_that_are_read_are_printed(seed):
    rng = random.Random(seed)
    texts = [save_json(f) for f in loops()]
    for _ in range(120):
        try:
            found = load_json(changed(rng.choice(texts), rng))
        except SlipwayError:
            continue
        str(found)


def test_a_dtype_that_is_none_is_named():
    """Such a document was read, and broke the printer with a ValueError."""
    kept = [json.loads(save_json(f)) for f in loops()]
    changes = 0
    for document in kept:
        for number, (name, *fields) in enumerate(document["nodes"]):
            for index, field in enumerate(NODE_CLASSES[name].FIELDS):
                if field == "dtype" and index < len(fields):
                    for wrong in ("s", "", "int7", "float32x0"):
                        changed_one = copy.deepcopy(document)
                        changed_one["nodes"][number][index + 1] = wrong
                        with pytest.raises(
                            SlipwayError, match=f"'dtype' of node {number}, .* is '{wrong}'"
                        ):
                            load_json(json.dumps(changed_one))
                        changes += 1
    assert changes > 40


def test_whole_documents_come_back():
    for function in (*functions(), *loops()):
        assert str(load_json(save_json(function))) == str(function)


DEEP = {
    "brackets": "[" * 100_000,
    "values": json.dumps({"slipway_ir": 1, "nodes": [], "arrays": [], "root": 0}).replace(
        '"root": 0', '"root": ' + '["t",' * 900 + "1" + "]" * 900
    ),
}


@pytest.mark.parametrize("case", DEEP)
def test_deep_json_is_refused(case):
    with pytest.raises(SlipwayError, match="nested"):
        load_json(DEEP[case])


def test_a_field_of_the_wrong_kind_is_named():
    document = json.loads(save_json(functions()[1]))
    number = next(i for i, n in enumerate(document["nodes"]) if n[0] == "relay.If")
    document["nodes"][number][1] = "text"
    with pytest.raises(SlipwayError, match=rf"'cond' of node {number}, relay.If, cannot be a str"):
        load_json(json.dumps(document))


BAD_TEXT = {
    "nested": ("(" * 900 + ")" * 900, "nested more than"),
    "nested types": ("fn (%x: " + "(" * 900 + ")" * 900 + ") { %x }", "nested more than"),
    "nested calls": ("nn.relu(" * 900 + "1f" + ")" * 900, "nested more than"),
    "an attribute that is not there": ("nn.softmax(1f, axsi=1)", "no attribute 'axsi'"),
    "an attribute of another type": ("nn.softmax(1f, axis='x')", "axis of nn.softmax cannot be"),
    "an operator that is not there": ("nn.rleu(1f)", "no operator 'nn.rleu'"),
    "no shape": ("fn (%x: Tensor[(,), float32]) { %x }", "expected a whole number, found ','"),
    "a number too large": ("99999999999999999999int8", "is no number of type int8"),
    "an index": ("(1f,).x", "expected a whole number"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_relay_text_that_is_none_is_refused_with_its_place(case):
    text, words = BAD_TEXT[case]
    with pytest.raises(ModelError, match=rf"line 1, column \d+: .*{words}"):
        relay.fromtext(text)


@pytest.mark.parametrize("seed", range(3))
def test_changed_text_is_read_or_refused(seed):
    rng = random.Random(seed)
    texts = [relay.astext(f, show_meta_data=True) for f in functions()]
    for _ in range(150):
        text = mutate_bytes(rng.choice(texts).encode(), rng).decode("latin-1")
        try:
            relay.fromtext(text)
        except SlipwayError:
            continue


def test_a_call_of_what_is_no_function_is_named():
    """Two parts of the printer once handed such a node to each other without end."""
    x = relay.var("x", shape=(3,))
    with pytest.raises(SlipwayError, match="a TensorType is called, which is no function"):
        str(load_json(save_json(Function((x,), Call(TensorType((3,), "float32"), (x,))))))


def test_a_buffer_is_no_list_of_indices():
    a = decl_buffer((4,), "float32", "a")
    document = json.loads(save_json(a[2]))
    load = next(n for n in document["nodes"] if n[0] == "BufferLoad")
    load[2] = load[1]
    with pytest.raises(SlipwayError, match=r"the field 'indices' of node .* cannot be a Buffer"):
        load_json(json.dumps(document))
    with pytest.raises(TypeError):
        iter(a)
