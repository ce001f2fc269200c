"""Models of Keras give what Keras' own predict gives."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import ArgumentTypeError, ArgumentValueError, ModelError
from slipway.transform.context import PassContext


class _OnUse:
    """Keras, or a module of it, imported by the first test that needs it: it takes seconds."""

    def __init__(self, *path):
        self._path = path

    def __getattr__(self, name):
        found = pytest.importorskip("keras", minversion="3.0")
        for part in (*self._path, name):
            found = getattr(found, part)
        return found


keras, layers = _OnUse(), _OnUse("layers")
# NumPy's, of Keras' own classes.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(0)


def randomized(model):
    """Give every weight other numbers: what starts as zeros or ones would hide mistakes."""
    for weight in model.weights:
        values = RNG.uniform(0.1, 0.6, weight.shape) if "variance" in weight.name else RNG.normal(
            0, 0.4, weight.shape)  # fmt: skip
        if "seed" not in weight.path:
            weight.assign(values.astype("float32"))
    return model


def check(model, layout="NHWC", inputs=None, rtol=2e-4):
    """Compare both on random data, of the model's own shapes with a batch of 2."""
    given = [RNG.normal(size=(2, *t.shape[1:])).astype("float32") for t in model.inputs]
    given = given if inputs is None else inputs
    wanted = model.predict(given if len(given) > 1 else given[0], verbose=0)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    first = layout == "NCHW"

    def outer(x):
        return np.moveaxis(x, -1, 1) if first and x.ndim in (4, 5) else x

    names = [t._keras_history.operation.name for t in model.inputs]
    shapes = {n: outer(g).shape for n, g in zip(names, given, strict=True)}
    mod, params = relay.frontend.from_keras(model, shapes, layout=layout)
    with PassContext(opt_level=3):
        run = relay.create_executor("graph", mod=mod).evaluate()
    got = run(*map(outer, given), **params)
    got = list(got) if len(wanted) > 1 else [got]
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), outer(np.asarray(theirs)), rtol=rtol, atol=2e-5)


def sequential(shape, *more):
    return randomized(keras.Sequential([keras.Input(shape), *more]))


IMAGE = (9, 10, 4)
LAYERS = {
    "conv": (IMAGE, lambda: layers.Conv2D(6, (3, 2), padding="same", activation="relu")),
    "strided": (IMAGE, lambda: layers.Conv2D(6, 3, strides=2, padding="same", use_bias=False)),
    "dilated": (IMAGE, lambda: layers.Conv2D(6, 3, dilation_rate=2, padding="same")),
    "grouped": (IMAGE, lambda: layers.Conv2D(6, 3, groups=2)),
    "conv1": ((11, 3), lambda: layers.Conv1D(5, 3, strides=2)),
    "causal": ((11, 3), lambda: layers.Conv1D(5, 3, dilation_rate=2, padding="causal")),
    "conv3": ((5, 6, 4, 2), lambda: layers.Conv3D(3, 2, padding="same", activation="tanh")),
    "depthwise": (IMAGE, lambda: layers.DepthwiseConv2D(3, strides=2, padding="same",
                                                        depth_multiplier=2)),
    "depthwise1": ((9, 4), lambda: layers.DepthwiseConv1D(3)),
    "separable": (IMAGE, lambda: layers.SeparableConv2D(5, 3, padding="same")),
    "separable1": ((9, 4), lambda: layers.SeparableConv1D(5, 3, depth_multiplier=2)),
    "transposed": (IMAGE, lambda: layers.Conv2DTranspose(5, 3, strides=2, padding="same")),
    "transposed_even": (IMAGE, lambda: layers.Conv2DTranspose(5, 4, strides=2, padding="same")),
    "transposed_valid": (IMAGE, lambda: layers.Conv2DTranspose(5, 3, strides=2)),
    "transposed1": ((7, 3), lambda: layers.Conv1DTranspose(4, 3, strides=2, padding="same")),
    "max": (IMAGE, lambda: layers.MaxPooling2D(3, strides=2, padding="same")),
    "average": (IMAGE, lambda: layers.AveragePooling2D(2, padding="same")),
    "max1": ((9, 3), lambda: layers.MaxPooling1D(2)),
    "average3": ((4, 6, 4, 2), lambda: layers.AveragePooling3D(2)),
    "global": (IMAGE, lambda: layers.GlobalAveragePooling2D()),
    "global_kept": (IMAGE, lambda: layers.GlobalMaxPooling2D(keepdims=True)),
    "global1": ((9, 3), lambda: layers.GlobalMaxPooling1D()),
    "batch_norm": (IMAGE, lambda: layers.BatchNormalization(scale=False, epsilon=0.01)),
    "layer_norm": (IMAGE, lambda: layers.LayerNormalization(axis=[2, 3])),
    "rms_norm": ((9, 5), lambda: layers.RMSNormalization(epsilon=0.01)),
    "rms_norm_axes": (IMAGE, lambda: layers.RMSNormalization(axis=[2, 3])),
    "gated": ((9, 6), lambda: layers.Activation("glu")),
    "group_norm": (IMAGE, lambda: layers.GroupNormalization(2)),
    "unit_norm": ((7,), lambda: layers.UnitNormalization()),
    "rescaling": (IMAGE, lambda: layers.Rescaling(1 / 127.5, offset=-1)),
    "normalization": ((3,), lambda: layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 1, 9])),
    "relu": (IMAGE, lambda: layers.ReLU(1.5, negative_slope=0.1, threshold=0.2)),
    "leaky": ((7,), lambda: layers.LeakyReLU(negative_slope=0.3)),
    "elu": ((7,), lambda: layers.ELU(0.7)),
    "prelu": (IMAGE, lambda: layers.PReLU(shared_axes=[1, 2])),
    "softmax": (IMAGE, lambda: layers.Softmax(axis=1)),
    "reshape": (IMAGE, lambda: layers.Reshape((-1, 8))),
    "permute": (IMAGE, lambda: layers.Permute((3, 1, 2))),
    "repeat": ((5,), lambda: layers.RepeatVector(3)),
    "padding": (IMAGE, lambda: layers.ZeroPadding2D(((1, 2), (0, 3)))),
    "padding1": ((5, 2), lambda: layers.ZeroPadding1D((1, 2))),
    "cropping": (IMAGE, lambda: layers.Cropping2D(((1, 2), (0, 3)))),
    "nearest": (IMAGE, lambda: layers.UpSampling2D((2, 3))),
    "bilinear": (IMAGE, lambda: layers.UpSampling2D(2, interpolation="bilinear")),
    "upsampling1": ((5, 2), lambda: layers.UpSampling1D(3)),
    "dropout": ((5, 2), lambda: layers.Dropout(0.5)),
    "dense_of_steps": ((5, 3), lambda: layers.Dense(4, activation="softmax")),
    "einsum_dense": ((5, 3), lambda: layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d")),
    "rnn": ((5, 3), lambda: layers.SimpleRNN(4)),
    "lstm": ((5, 3), lambda: layers.LSTM(4, return_sequences=True)),
    "lstm_backwards": ((5, 3), lambda: layers.LSTM(4, go_backwards=True, return_sequences=True,
                                                   recurrent_activation="hard_sigmoid")),
    "gru": ((5, 3), lambda: layers.GRU(4)),
    "gru_before": ((5, 3), lambda: layers.GRU(4, reset_after=False, return_sequences=True)),
    "gru_no_bias": ((5, 3), lambda: layers.GRU(4, use_bias=False)),
    "bidirectional": ((5, 3), lambda: layers.Bidirectional(layers.LSTM(4, return_sequences=True))),
    "bidirectional_sum": ((5, 3), lambda: layers.Bidirectional(layers.GRU(4), merge_mode="sum")),
    "stacked_cells": ((5, 3), lambda: layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)],
                                                 return_sequences=True)),
    "one_cell": ((5, 3), lambda: layers.RNN(layers.SimpleRNNCell(4), go_backwards=True)),
    "conv_lstm": ((3, *IMAGE), lambda: layers.ConvLSTM2D(5, (3, 2), padding="same",
                                                         return_sequences=True)),
    "conv_lstm_strided": ((3, *IMAGE), lambda: layers.ConvLSTM2D(5, 3, strides=2)),
    "conv_lstm1": ((3, 9, 4), lambda: layers.ConvLSTM1D(5, 3, dilation_rate=2)),
    "adaptive": (IMAGE, lambda: layers.AdaptiveAveragePooling2D((3, 4))),
    "adaptive1": ((9, 4), lambda: layers.AdaptiveMaxPooling1D(4)),
    "center": (IMAGE, lambda: layers.CenterCrop(6, 5)),
    "resizing": (IMAGE, lambda: layers.Resizing(7, 15)),
    "resizing_nearest": (IMAGE, lambda: layers.Resizing(5, 13, interpolation="nearest")),
    "each_step": ((3, *IMAGE), lambda: layers.TimeDistributed(layers.Conv2D(5, 3))),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    shape, make = LAYERS[name]
    check(sequential(shape, make()))


@pytest.mark.parametrize("name", ["conv", "transposed", "batch_norm", "global", "conv3", "lstm"])
def test_channels_first_at_the_border(name):
    shape, make = LAYERS[name]
    check(sequential(shape, make()), layout="NCHW")


def test_values_are_flattened_in_keras_order_under_either_layout():
    for layout in ("NCHW", "NHWC"):
        check(sequential(IMAGE, layers.Flatten(), layers.Dense(3)), layout=layout)


ACTIVATIONS = [
    "linear", "relu", "relu6", "sigmoid", "tanh", "softmax", "log_softmax", "exponential", "elu",
    "selu", "softplus", "softsign", "silu", "hard_sigmoid", "hard_silu", "leaky_relu", "gelu",
    "mish", "celu", "hard_tanh", "hard_shrink", "soft_shrink", "log_sigmoid", "sparse_plus",
    "sparse_sigmoid", "squareplus", "tanh_shrink",
]  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    check(sequential((6, 5), layers.Activation(name)))


def test_a_network_of_branches_shared_layers_and_models_inside():
    x, y = keras.Input((12, 12, 3), name="x"), keras.Input((12, 12, 3), name="y")
    shared = layers.Conv2D(4, 3, padding="same", activation=layers.LeakyReLU(), name="shared")
    inner = keras.Sequential([keras.Input((12, 12, 4)), layers.BatchNormalization(name="bn"),
                              layers.Activation("relu")], name="inner")  # fmt: skip
    a, b = inner(shared(x)), shared(y)
    parts = [layers.Add()([a, b]), layers.Subtract()([a, b]), layers.Maximum()([a, b]),
             layers.Average()([a, b]), layers.Multiply()([a, b])]  # fmt: skip
    both = layers.Concatenate()(parts)
    squeezed = layers.GlobalAveragePooling2D(keepdims=True)(both)
    gate = layers.Dense(20, activation="sigmoid")(squeezed)
    out = (both * gate + 3.0) / 6.0
    model = randomized(keras.Model([x, y], [layers.Flatten()(out), 1.0 - gate]))
    check(model)
    _, params = relay.frontend.from_keras(model, layout="NHWC")
    assert {"shared.kernel", "inner.bn.gamma"} <= set(params)


def test_dots_states_attention_and_words():
    words = keras.Input((5,), name="words", dtype="int32")
    x = layers.Embedding(11, 6)(words)
    h, state = layers.GRU(6, return_sequences=True, return_state=True)(x)
    attended = layers.MultiHeadAttention(2, 3)(h, x)
    normal = layers.LayerNormalization()(h + attended)
    cosine = layers.Dot(axes=1, normalize=True)([state, layers.Flatten()(normal[:, :1])])
    later = layers.LSTM(6)(normal, initial_state=[state, state])
    model = randomized(keras.Model(words, [layers.Dot(axes=2)([normal, x]), cosine, later]))
    check(model, inputs=[RNG.integers(0, 11, (2, 5)).astype("int32")])


def test_attention_with_masks_and_groups():
    x, y = keras.Input((5, 8)), keras.Input((7, 8))
    outputs = [
        layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True),
        layers.MultiHeadAttention(2, 4)(
            x, y, attention_mask=keras.ops.matmul(x, keras.ops.transpose(y, (0, 2, 1))) > 0
        ),
        *layers.MultiHeadAttention(2, 3)(x, y, return_attention_scores=True),
        layers.GroupQueryAttention(6, 4, 2)(x, y),
        layers.Attention(use_scale=True)([x, y]),
        layers.Attention(score_mode="concat")([x, y], use_causal_mask=True),
        layers.AdditiveAttention()([x, y]),
    ]
    check(randomized(keras.Model([x, y], outputs)))


def test_masked_steps_change_no_state():
    ids, x = keras.Input((6,)), keras.Input((6, 3))
    words = layers.Embedding(9, 4, mask_zero=True)(ids)
    marked = layers.Masking(0.5)(x)
    outputs = [
        layers.LSTM(4, return_sequences=True)(words),
        layers.Bidirectional(layers.GRU(3))(words),
        layers.GlobalAveragePooling1D()(words),
        layers.MultiHeadAttention(2, 3)(words, words),
        layers.RNN([layers.GRUCell(3), layers.LSTMCell(2)])(marked),
        layers.SimpleRNN(3, go_backwards=True)(marked),
    ]
    model = randomized(keras.Model([ids, x], outputs))
    numbers = RNG.normal(size=(2, 6, 3)).astype("float32")
    numbers[0, 1:3] = numbers[1, 4:] = 0.5
    check(model, inputs=[np.float32([[3, 1, 0, 2, 0, 0], [1, 0, 5, 8, 7, 2]]), numbers])


def test_a_mask_that_a_layer_does_not_know_is_told():
    ids = keras.Input((6,))
    words = layers.Embedding(9, 4, mask_zero=True)(ids)
    model = keras.Model(ids, layers.Softmax()(words))
    with pytest.raises(ModelError, match=r"Softmax\): it is given a mask"):
        relay.frontend.from_keras(model, {ids._keras_history.operation.name: (2, 6)})


def test_operations_between_layers():
    x = keras.Input((6, 8), name="x")
    a = keras.ops.exp(x[:, 1:5, ::2]) + keras.ops.square(x)[:, :4, 4:]
    b = keras.ops.mean(keras.ops.transpose(a, [0, 2, 1]), axis=-1, keepdims=True)
    c = keras.ops.matmul(a, keras.ops.relu(b)) - keras.ops.max(a, axis=(1, 2), keepdims=True)
    d = keras.ops.squeeze(keras.ops.expand_dims(c[..., -1], 1), 1)
    check(keras.Model(x, [d[:, None, 1], keras.ops.reshape(a, (-1, 16)), 2.0 / keras.ops.exp(c)]))


@pytest.mark.parametrize("name", ["MobileNetV2", "MobileNetV3Small"])
def test_networks_of_keras_applications(name):
    make = getattr(keras.applications, name)
    model = make(weights=None, input_shape=(64, 64, 3), alpha=0.35 if "V2" in name else 0.75,
                 classes=10)  # fmt: skip
    check(model, layout="NCHW", rtol=1e-3)


def test_one_name_names_the_one_input_and_open_batches_are_1():
    model = sequential(IMAGE, layers.Conv2D(2, 3))
    mod, _ = relay.frontend.from_keras(model, {"input_1": (1, 4, 9, 10)})
    assert mod["main"].params[0].name_hint == "input_1"
    mod, _ = relay.frontend.from_keras(model)
    assert mod["main"].params[0].tensor_type.shape == (1, 4, 9, 10)


def test_what_is_not_supported_is_told_for_the_whole_model():
    class Own(layers.Layer):
        def call(self, x):
            return x * 2

    model = sequential((5, 3), Own(name="mine"), layers.LSTM(4, stateful=False, name="kept"),
                       Own(name="again"))  # fmt: skip
    with pytest.raises(ModelError, match=r"(?s)mine \(Own\): there is no converter") as caught:
        relay.frontend.from_keras(model)
    assert "kept" not in str(caught.value)


def test_what_is_no_model_and_shapes_that_do_not_fit():
    model = sequential(IMAGE, layers.Conv2D(2, 3))
    with pytest.raises(ArgumentTypeError, match="takes a model of Keras 3"):
        relay.frontend.from_keras(object())
    with pytest.raises(ArgumentValueError, match="layout is 'CHWN'"):
        relay.frontend.from_keras(model, layout="CHWN")
    with pytest.raises(ModelError, match=r"does not fit"):
        relay.frontend.from_keras(model, {"x": (1, 9, 10, 4)})
    with pytest.raises(ModelError, match="has open dimensions"):
        relay.frontend.from_keras(sequential((None, 3), layers.LSTM(2)))
    with pytest.raises(ModelError, match="has no graph of layers"):
        relay.frontend.from_keras(keras.Sequential([layers.Dense(3)]))

    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(ModelError, match="has no graph of layers"):
        relay.frontend.from_keras(Own())
