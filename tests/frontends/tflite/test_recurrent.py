"""Recurrent layers with every part that a file may leave out, beside LiteRT, state and all."""

import numpy as np
import pytest
from builder import T, const, model
from litert import Peer, compiled, outputs

from slipway import relay
from slipway.errors import SlipwayError
from slipway.frontends.tflite.importer import initial_state

TANH = 4


def follows(data, *, exact=False, tolerance=1e-5, rounding="single", runs=3):
    """Run some steps here and in LiteRT from the model's own first state."""
    peer, executor = Peer(data), compiled(data, dense_rounding=rounding)
    peer.run_time.reset_all_variables()
    states = list(initial_state(data).values())
    rng, count = np.random.default_rng(3), len(peer.outputs)
    for _ in range(runs):
        inputs = peer.random_inputs(rng)
        got = outputs(executor, [*inputs, *states])
        got, states = got[:count], got[count:]
        for ours, theirs in zip(got, peer(inputs), strict=True):
            if exact:
                np.testing.assert_array_equal(ours, theirs)
            else:
                np.testing.assert_allclose(ours, theirs, rtol=tolerance * 10, atol=tolerance)


class Made:
    """Random constants of a cell: real, or with int8 matrices."""

    def __init__(self, hybrid=False, seed=5):
        self.rng = np.random.default_rng(seed)
        self.hybrid = hybrid

    def matrix(self, *shape):
        if self.hybrid:
            values = self.rng.integers(-127, 128, shape)
            return const(values, "int8", float(self.rng.uniform(0.002, 0.01)))
        return const(self.rng.standard_normal(shape) * 0.5, "float32")

    def vector(self, *shape):
        return const(self.rng.standard_normal(shape), "float32")

    def cell(self, depth, units, given=None, *, cifg=False, peephole=False, diagonal=False):
        """Return weights, recurrent weights, peephole weights, biases and projection."""
        none = [None]
        width = given or units
        first = none if cifg else []
        count = 3 if cifg else 4
        weights = first + [self.matrix(units, depth) for _ in range(count)]
        shape = (units,) if diagonal else (units, width)
        back = first + [
            self.vector(*shape) if diagonal else self.matrix(*shape) for _ in range(count)
        ]
        seen = [None] * 3
        if peephole:
            seen = first + [self.peephole(units) for _ in range(count - 1)]
        bias = first + [self.vector(units) for _ in range(count)]
        projection = [self.matrix(given, units), self.vector(given)] if given else [None, None]
        return [*weights, *back, *seen, *bias, *projection]

    def peephole(self, units):
        if self.hybrid:
            return const(self.rng.integers(-127, 128, units), "int8", 0.01)
        return self.vector(units)


PARTS = {
    "plain": {},
    "coupled": {"cifg": True},
    "peephole": {"peephole": True},
    "projection": {"given": 3},
    "all": {"cifg": True, "peephole": True, "given": 3},
}


def one_way(made, parts, *, norm=False, shape=(2, 5), depth=7, units=6, **fields):
    parts = dict(parts)
    cell = made.cell(depth, units, **parts)
    width = parts.get("given") or units
    batch = shape[1] if fields.get("timeMajor") else shape[0]
    norms = [None] * 4
    if norm:
        norms = [None if parts.get("cifg") and g == 0 else made.vector(units) for g in range(4)]
    inputs = [
        T((*shape, depth)), *cell,
        T((batch, width), variable=True), T((batch, units), variable=True), *norms,
    ]  # fmt: skip
    return model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [T((*shape, width))],
        "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=TANH, **fields,
    )  # fmt: skip


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("parts", PARTS)
def test_float_cell(parts, norm):
    follows(one_way(Made(), PARTS[parts], norm=norm, cellClip=1.5, projClip=0.7))


def test_float_cell_with_time_first_and_another_activation():
    data = one_way(Made(), {}, shape=(5, 2), timeMajor=True)
    follows(data)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("asymmetric", [False, True])
def test_hybrid_cell(parts, asymmetric):
    """Data is rounded to int8 while it runs, so a last bit may become a step: 1/127 of a gate."""
    data = one_way(Made(hybrid=True), PARTS[parts], asymmetricQuantizeInputs=asymmetric)
    follows(data, tolerance=1e-4, runs=2)


def test_lstm_of_one_step():
    made = Made()
    inputs = [
        T((3, 7)), *made.cell(7, 5, 4, peephole=True),
        T((3, 4), variable=True), T((3, 5), variable=True),
    ]  # fmt: skip
    follows(model("LSTM", inputs, [T((3, 4))], "LSTMOptions", fusedActivationFunction=TANH))


# Of merged outputs with the batch first, LiteRT's kernel takes the state of a wrong batch entry.
@pytest.mark.parametrize(("merge", "early"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("aux", ["none", "linked", "crossed"])
def test_bidirectional_lstm(merge, early, aux):
    made, batch, steps, depth, units = Made(), 2, 4, 5, 3
    lead = (steps, batch) if early else (batch, steps)
    forward, backward = made.cell(depth, units), made.cell(depth, units, cifg=False)
    states = [T((batch, units), variable=True) for _ in range(4)]
    more = [T((*lead, depth)) if aux != "none" else None]
    more += [made.matrix(units, depth) if aux == "crossed" else None for _ in range(8)]
    inputs = [T((*lead, depth)), *forward, *backward, *states, *more]
    results = [T((*lead, 2 * units))] if merge else [T((*lead, units)), T((*lead, units))]
    follows(
        model(
            "BIDIRECTIONAL_SEQUENCE_LSTM", inputs, results, "BidirectionalSequenceLSTMOptions",
            fusedActivationFunction=TANH, mergeOutputs=merge, timeMajor=early,
        )
    )  # fmt: skip


def test_merged_rows_are_the_same_with_batch_first():
    made, batch, steps, depth, units = Made(), 2, 4, 5, 3
    cells = [*made.cell(depth, units), *made.cell(depth, units)]
    found = {}
    for merge in (False, True):
        inputs = [
            T((batch, steps, depth)), *cells, *(T((batch, units), variable=True) for _ in range(4)),
            *[None] * 9,
        ]  # fmt: skip
        count = 1 if merge else 2
        data = model(
            "BIDIRECTIONAL_SEQUENCE_LSTM", inputs,
            [T((batch, steps, 2 * units // count)) for _ in range(count)],
            "BidirectionalSequenceLSTMOptions", fusedActivationFunction=TANH, mergeOutputs=merge,
            timeMajor=False,
        )  # fmt: skip
        x = np.random.default_rng(2).standard_normal((batch, steps, depth)).astype(np.float32)
        found[merge] = outputs(compiled(data), [x, *initial_state(data).values()])[:count]
    np.testing.assert_allclose(found[True][0], np.concatenate(found[False], 2), atol=1e-6)


def rnn_layer(made, batch, depth, units):
    return [
        made.matrix(units, depth), made.matrix(units, units), made.vector(units),
        T((batch, units), variable=True),
    ]  # fmt: skip


@pytest.mark.parametrize("activation", [0, 1, TANH])
@pytest.mark.parametrize("hybrid", [False, True])
def test_rnn(activation, hybrid):
    inputs = [T((3, 7)), *rnn_layer(Made(hybrid), 3, 7, 5)]
    data = model("RNN", inputs, [T((3, 5))], "RNNOptions", fusedActivationFunction=activation)
    follows(data, tolerance=1e-4 if hybrid else 1e-5)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("hybrid", [False, True])
def test_sequence_rnn(early, hybrid):
    lead = (4, 2) if early else (2, 4)
    inputs = [T((*lead, 7)), *rnn_layer(Made(hybrid), 2, 7, 5)]
    data = model(
        "UNIDIRECTIONAL_SEQUENCE_RNN", inputs, [T((*lead, 5))], "SequenceRNNOptions",
        fusedActivationFunction=TANH, timeMajor=early,
    )  # fmt: skip
    follows(data, tolerance=1e-4 if hybrid else 1e-5)


# Of (batch, time, inputs) LiteRT's kernel gives the second layer the data of the first.
@pytest.mark.parametrize(
    ("aux", "early"),
    [("none", False), ("none", True), ("linked", True), ("crossed", False), ("crossed", True)],
)
@pytest.mark.parametrize("merge", [False, True])
def test_bidirectional_rnn(merge, aux, early):
    made, lead = Made(), (4, 2) if early else (2, 4)
    inputs = [T((*lead, 5)), *rnn_layer(made, 2, 5, 3), *rnn_layer(made, 2, 5, 6)]
    inputs += [T((*lead, 5)) if aux != "none" else None]
    inputs += [made.matrix(n, 5) if aux == "crossed" else None for n in (3, 6)]
    results = [T((*lead, 9))] if merge else [T((*lead, 3)), T((*lead, 6))]
    follows(
        model(
            "BIDIRECTIONAL_SEQUENCE_RNN", inputs, results, "BidirectionalSequenceRNNOptions",
            fusedActivationFunction=TANH, mergeOutputs=merge, timeMajor=early,
        )
    )  # fmt: skip


def integer_lstm(parts, *, depth=13, units=11, shape=(3, 4), power=-11, zero=-9, **fields):
    """An int8 LSTM whose gates reach their ends."""
    rng = np.random.default_rng(8)
    given = parts.get("given")
    width, cifg = given or units, parts.get("cifg", False)
    count, first = (3, [None]) if cifg else (4, [])

    def matrix(*size):
        scale = float(rng.uniform(0.01, 0.03))
        return const(rng.integers(-127, 128, size), "int8", scale)

    def biases():
        return const(rng.integers(-4000, 4000, units), "int32", 0.0005)

    peephole = [None] * 3
    if parts.get("peephole"):
        peephole = first + [
            const(rng.integers(-32768, 32768, units), "int16", 2e-5) for _ in range(count - 1)
        ]
    projection = [None, None]
    if given:
        bias = const(rng.integers(-500, 500, given), "int32", 0.0001)
        projection = [matrix(given, units), bias]
    inner = T((), "int8", 0.0061, 5) if given else T((), "int8", 1 / 128, zero)
    inputs = [
        T((*shape, depth), "int8", 0.03, 7),
        *first, *(matrix(units, depth) for _ in range(count)),
        *first, *(matrix(units, width) for _ in range(count)), *peephole,
        *first, *(biases() for _ in range(count)), *projection,
        T((shape[0], width), "int8", 1 / 128, zero, variable=True),
        T((shape[0], units), "int16", 2.0**power, 0, variable=True), *[None] * 4,
    ]  # fmt: skip
    return model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [T((*shape, width), "int8", 1 / 128, zero)],
        "UnidirectionalSequenceLSTMOptions",
        [T((), "int16", 2.0**-12, 0) for _ in range(4)] + [inner], fusedActivationFunction=TANH,
        **fields,
    )  # fmt: skip


SQUARE = {**PARTS, "all": {"cifg": True, "peephole": True, "given": 11}}


@pytest.mark.parametrize("parts", SQUARE)
def test_integer_cell_equals_litert_in_every_byte(parts):
    follows(integer_lstm(SQUARE[parts]), exact=True)


@pytest.mark.parametrize("power", range(-15, -8))
def test_integer_cell_of_every_scale(power):
    follows(integer_lstm({}, power=power, cellClip=0.9), exact=True, runs=2)


def test_parts_that_do_not_fit_are_refused_with_words():
    made = Made()
    cell = made.cell(7, 6)
    cell[2] = made.matrix(6, 8)
    inputs = [
        T((2, 5, 7)), *cell, T((2, 6), variable=True), T((2, 6), variable=True), *[None] * 4
    ]  # fmt: skip
    data = model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [T((2, 5, 6))],
        "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=TANH,
    )  # fmt: skip
    with pytest.raises(SlipwayError, match=r"its input 3 has the shape \(6, 8\); \(6, 7\) fits"):
        relay.frontend.from_tflite(data)
