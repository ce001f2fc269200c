"""Products of few bits: ones counted in words, against plain integer products; topi and relay."""

import numpy as np
import pytest
from tests.topi.checks import check

import slipway as tvm
from slipway import relay, te, topi
from slipway.errors import InvalidShapeError, SlipwayError, TypeInferenceError

RNG = np.random.default_rng(5)


def conv(x, w, stride, padding):
    x = np.pad(x, ((0, 0), (0, 0), *((padding, padding),) * 2))
    seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", seen[:, :, ::stride, ::stride], w)


def bits(count, *shape):
    return RNG.integers(0, 2**count, shape).astype("int32")


def worth(w, count, unipolar):
    return 2 * w - (2**count - 1) if unipolar else w


CASES = [(1, 1, True, "uint32"), (2, 1, True, "uint8"), (2, 2, False, "uint64"),
         (1, 2, True, "uint16")]  # fmt: skip


@pytest.mark.parametrize(("xb", "wb", "unipolar", "word"), CASES)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_convolutions(xb, wb, unipolar, word, target):
    x, w = bits(xb, 1, 64, 6, 5), bits(wb, 3, 64, 3, 3)
    want = conv(x, worth(w, wb, unipolar), 2, 1)
    options = (2, 1, xb, wb, word, "int16", unipolar)
    check(
        lambda a, b: topi.nn.bitserial_conv2d_nchw(a, b, *options),
        lambda a, b: want, x, w, target=target, dtype="int16",
    )  # fmt: skip
    if target == "llvm":
        check(
            lambda a, b: topi.nn.bitserial_conv2d_nhwc(a, b, *options),
            lambda a, b: want.transpose(0, 2, 3, 1),
            x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy(),
            schedule=topi.generic.schedule_bitserial_conv2d_nhwc,
        )  # fmt: skip


@pytest.mark.parametrize(("xb", "wb", "unipolar", "word"), CASES)
def test_products_of_matrices(xb, wb, unipolar, word):
    x, w = bits(xb, 4, 128), bits(wb, 6, 128)
    check(
        lambda a, b: topi.nn.bitserial_dense(a, b, xb, wb, word, "int32", unipolar),
        lambda a, b: a @ worth(b, wb, unipolar).T, x, w, dtype="int32",
    )  # fmt: skip


def test_weights_that_are_packed_already():
    x, w = bits(1, 1, 32, 4, 4), bits(2, 8, 32, 3, 3)

    def packed(a, b):
        words = topi.nn.bitpack(b, 2, 1, 4, "uint32")
        return topi.nn.bitserial_conv2d_nchw(a, words, 1, 1, 1, 2, "uint32", "int32")

    check(packed, lambda a, b: conv(a, 2 * b - 3, 1, 1), x, w)


def test_signs_in_words():
    x, w = (RNG.standard_normal(s).astype("float32") for s in ((3, 64), (5, 64)))

    def made(a, b):
        return topi.nn.binary_dense(topi.nn.binarize_pack(a), topi.nn.binarize_pack(b))

    check(made, lambda a, b: np.where(a >= 0, 1, -1) @ np.where(b >= 0, 1, -1).T, x, w)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("unipolar", [True, False])
def test_graphs(target, unipolar):
    x, w = bits(2, 1, 5, 6, 6), bits(1, 4, 5, 3, 3)
    data, weight = (relay.var(n, shape=v.shape, dtype="int32") for n, v in (("x", x), ("w", w)))
    conv2d = relay.nn.bitserial_conv2d(
        data, weight, (1, 1), (1, 1), 4, (3, 3), 2, 1, unipolar=unipolar
    )
    flat = relay.nn.batch_flatten(data)
    units = relay.const(bits(2, 7, 180))
    dense = relay.nn.bitserial_dense(flat, units, 7, 2, 2, out_dtype="int32", unipolar=unipolar)
    mod = tvm.IRModule.from_expr(relay.Function([data, weight], relay.Tuple([conv2d, dense])))
    run = relay.create_executor("graph", mod, tvm.cpu(), target).evaluate()
    first, second = (r.numpy() for r in run(x, w))
    np.testing.assert_array_equal(first, conv(x, worth(w, 1, unipolar), 1, 1))
    assert first.dtype == "int16"
    weights = worth(units.data.numpy(), 2, unipolar)
    np.testing.assert_array_equal(second, x.reshape(1, -1) @ weights.T)


@pytest.mark.parametrize("layout", ["OIHW", "HWIO"])
@pytest.mark.parametrize("word", ["uint8", "uint32", "uint64"])
def test_graphs_of_packed_weights(layout, word):
    x, w = bits(2, 1, 64, 4, 4), bits(3, 5, 64, 2, 2)
    rows, units = bits(1, 2, 128), bits(2, 6, 128)
    data, flat = (relay.var(n, shape=v.shape, dtype="int32") for n, v in (("x", x), ("r", rows)))
    own = w if layout == "OIHW" else w.transpose(2, 3, 1, 0)
    kernel = relay.nn.bitpack(relay.const(own), 3, layout.index("I"), 4, word)
    conv2d = relay.nn.bitserial_conv2d(
        data, kernel, channels=5, kernel_size=(2, 2), activation_bits=2, weight_bits=3,
        kernel_layout=layout, pack_dtype=word,
    )  # fmt: skip
    packed = relay.var("u", shape=(6, 2, 128 // (8 * np.dtype(word).itemsize)), dtype=word)
    dense = relay.nn.bitserial_dense(flat, packed, 6, 1, 2, word, unipolar=False)
    func = relay.Function([data, flat, packed], relay.Tuple([conv2d, dense]))
    run = relay.create_executor("graph", tvm.IRModule.from_expr(func), tvm.cpu(), "llvm").evaluate()
    planes = np.stack([units >> n & 1 for n in range(2)], 1).astype("uint8")
    words = np.packbits(planes, axis=-1).view(np.dtype(word).newbyteorder(">")).astype(word)
    first, second = (r.numpy() for r in run(x, rows, words))
    np.testing.assert_array_equal(first, conv(x, worth(w, 3, True), 1, 0))
    np.testing.assert_array_equal(second, rows @ units.T)


def test_packed_weights_of_other_words_or_bits():
    data = relay.var("x", shape=(2, 64), dtype="int32")
    words = relay.var("w", shape=(6, 2, 2), dtype="uint32")
    for word, depth in (("uint64", 2), ("uint32", 1)):
        with pytest.raises(TypeInferenceError, match=r"'weight' of 3 axes is one of words, which"):
            relay.nn.bitserial_dense(data, words, 6, 1, depth, word)
    with pytest.raises(TypeInferenceError, match="'weight_bits' must be 1 to 8, is 9"):
        relay.nn.bitserial_dense(data, words, 6, 1, 9)


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("pack_axis", 9, "pack_axis"), ("pack_axis", "a", "pack_axis"), ("bit_axis", 9, "bit_axis"),
        ("bit_axis", 1.5, "bit_axis"), ("bits", "a", "'a'|'bits'"), ("bits", 0, "bits"),
        ("pack_type", "uint7", "uint7"), ("pack_type", 3, "3"),
    ],
)  # fmt: skip
def test_bitpack_refuses(name, value, cause):
    options = {"bits": 1, "pack_axis": 1, "bit_axis": 2, "pack_type": "uint8", name: value}
    with pytest.raises(SlipwayError, match=cause):
        relay.nn.bitpack(relay.var("x", shape=(1, 8, 4), dtype="uint8"), **options)
    with pytest.raises(SlipwayError, match=cause if name != "bits" else "bits|constant"):
        topi.nn.bitpack(te.placeholder((1, 8, 4), "uint8"), **options)


def test_axes_of_words_from_the_end():
    x = bits(1, 2, 8, 3)
    for axes in ((1, 2), (-2, -2)):
        check(lambda a, axes=axes: topi.nn.bitpack(a, 1, *axes, "uint8"),
              lambda a: np.packbits(a.astype("uint8"), axis=1).reshape(2, 1, 1, 3), x,
              dtype="uint8")  # fmt: skip


def test_what_cannot_be_packed():
    a, b = te.placeholder((1, 33), "int32"), te.placeholder((2, 33), "int32")
    with pytest.raises(InvalidShapeError, match="its 33 elements must be a multiple of 32"):
        topi.nn.bitserial_dense(a, b, 1, 1)
    with pytest.raises(InvalidShapeError, match="the data has 4 axes"):
        topi.nn.bitserial_conv2d_nchw(a, b, 1, 1, 1, 1)
    with pytest.raises(InvalidShapeError, match="takes what binarize_pack gives"):
        topi.nn.binary_dense(a, b)
    data = relay.var("x", shape=(1, 32), dtype="float32")
    with pytest.raises(TypeInferenceError, match="'data'"):
        relay.nn.bitserial_dense(data, relay.const(bits(1, 2, 32)))
    data = relay.var("x", shape=(1, 32), dtype="int32")
    with pytest.raises(TypeInferenceError, match="'out_dtype' is 'float32'"):
        relay.nn.bitserial_dense(data, relay.const(bits(1, 2, 32)), out_dtype="float32")


def test_data_and_weights_of_other_depths_are_refused():
    image, rows = te.placeholder((1, 32, 4, 4), dtype="int8"), te.placeholder((4, 64), dtype="int8")
    kernel = te.placeholder((2, 64, 3, 3), dtype="int8")
    with pytest.raises(InvalidShapeError, match="1 words to be summed and the weights 2"):
        topi.nn.bitserial_conv2d_nchw(image, kernel, 1, 0, 1, 1)
    with pytest.raises(InvalidShapeError, match="2 words to be summed and the weights 3"):
        topi.nn.bitserial_dense(rows, te.placeholder((5, 96), dtype="int8"), 2, 1)
    words = [te.placeholder((n, k), dtype="uint32") for n, k in ((1, 3), (2, 2))]
    with pytest.raises(InvalidShapeError, match="3 words to be summed and the weights 2"):
        topi.nn.binary_dense(*words)
