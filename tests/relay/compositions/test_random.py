"""Threefry and what is drawn with it: published vectors, classic TVM's keys, distributions."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te, topi
from slipway.errors import TypeInferenceError
from slipway.relay.ops.random import _PARITY, _hash

ALL = 2**64 - 1
PI = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89,
      0x452821E638D01377, 0xBE5466CF34E90C6C, 0xBE5466CF34E90C6C, 0xC0AC29B7C97C50DD]  # fmt: skip
# Of Random123's kat_vectors: threefry4x64, 20 rounds: counter, key, words.
PUBLISHED = [
    ([0] * 4, [0] * 4, [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC,
                        0xEE29EC846BD2E40B]),
    ([ALL] * 4, [ALL] * 4, [0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C,
                            0xCD29113FDE32D168]),
    (PI[:4], PI[4:], [0xA7E8FDE591651BD9, 0xBAAFD0C30138319B, 0x84A5C1A729E685B9,
                      0x901D406CCEBC1BA4]),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "words"), PUBLISHED)
def test_the_hash_is_the_published_one_but_for_the_last_key(counter, key, words):
    key = [np.uint64(k) for k in key]
    with np.errstate(over="ignore"):
        found = _hash(key, [np.uint64(c) for c in counter], np.uint64)
        parity = np.uint64(_PARITY) ^ key[0] ^ key[1] ^ key[2] ^ key[3]
        last = [k + n for k, n in zip((*key, parity), np.uint64([0, 0, 0, 5, 0]), strict=True)]
        assert [int(x + k) for x, k in zip(found, last[:4], strict=True)] == words


def evaluated(make, seed=7, target="llvm"):
    """Return what is drawn with a key that is told at run time."""
    key = relay.var("key", shape=(10,), dtype="uint64")
    mod = tvm.IRModule.from_expr(relay.Function([key], make(key).astuple()))
    run = relay.create_executor("graph", mod, tvm.cpu(), target).evaluate()
    return [x.numpy() for x in run(relay.random.threefry_key(seed).data.numpy())]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_keys_and_words_are_classic_ones(target):
    after, words = evaluated(lambda k: relay.random.threefry_generate(k, (4,)), 0, target)
    first = PUBLISHED[0][2]
    assert words.tolist() == [*first[:3], first[3] - 5]
    assert after.tolist() == [0] * 7 + [4, 1 << 63, 0]
    left, right = evaluated(relay.random.threefry_split, 0, target)
    assert left.tolist() == [0] * 8 + [1 << 62, 0]
    assert right.tolist() == [0] * 4 + [1 << 63, 0, 0, 0, 1 << 62, 0]


def test_more_splits_than_a_path_has_bits():
    key = tvm.relay.random.threefry_key(0).data.numpy()
    gen = te.placeholder((10,), "uint64", "gen")
    left, right = topi.random.threefry_split(gen)
    split = tvm.build(topi.generic.schedule_extern([left, right]), [gen, left, right], "llvm")
    a, b = (tvm.nd.array(np.zeros(10, "uint64")) for _ in range(2))
    b.copyfrom(key)
    for _ in range(130):
        split(tvm.nd.array(b.numpy()), a, b)
    assert (a.numpy()[:4] == b.numpy()[:4]).all()
    assert (b.numpy()[:4] != 0).any()
    assert a.numpy()[8:].tolist() == b.numpy()[8:].tolist()


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers(target, dtype):
    after, found = evaluated(
        lambda k: relay.random.uniform(k, (50, 41), dtype, 5.0, 10.0), target=target
    )
    assert after[7] == 2052
    assert (found.dtype, found.shape) == (dtype, (50, 41))
    assert 5 <= found.min() < 5.1
    assert 9.9 < found.max() < 10
    counts = np.histogram(found, 10, (5, 10))[0]
    assert (np.abs(counts - 205) < 5 * np.sqrt(205)).all()


def test_uniform_numbers_are_bits_behind_the_point():
    _, words = evaluated(lambda k: relay.random.threefry_generate(k, (64,)))
    _, found = evaluated(lambda k: relay.random.uniform(k, (64,)))
    want = (words.astype("uint32") >> np.uint32(9)).astype("float64") / 2**23
    np.testing.assert_array_equal(found, want.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers(dtype):
    _, found = evaluated(lambda k: relay.random.normal(k, (3001,), dtype, -2.0, 3.0))
    assert found.shape == (3001,)
    assert abs(found.mean() + 2) < 0.3
    assert abs(found.std() - 3) < 0.2
    _, both = evaluated(lambda k: relay.random.uniform(k, (2, 3001), dtype))
    want = np.sqrt(-2 * np.log(1 - both[0])) * np.sin(2 * np.pi * both[1]) * 3 - 2
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_drawn_positions():
    weights = np.array([[1, 0, 3, -5, 4], [0, 0, 0, 2, 0]], "float32")
    probs = relay.const(weights)
    _, found = evaluated(lambda k: relay.random.multinomial(k, probs, 4000))
    assert (found.dtype, found.shape) == ("int32", (2, 4000))
    counts = np.bincount(found[0], minlength=5)
    np.testing.assert_allclose(counts, [500, 0, 1500, 0, 2000], atol=150)
    assert (found[1] == 3).all()


def test_two_of_one_key_are_alike_and_of_two_keys_not():
    def pair(key):
        left, right = relay.random.threefry_split(key)
        draw = [relay.random.threefry_generate(k, (100,))[1] for k in (left, right, left)]
        return relay.TupleWrapper(relay.Tuple(draw), 3)

    first, second, again = evaluated(pair)
    assert (first != second).all()
    assert (first == again).all()


def test_errors_name_the_argument():
    key = relay.random.threefry_key(1)
    with pytest.raises(TypeInferenceError, match=r"\'seed\' must be 0 to 2\*\*256 - 1, is -1"):
        relay.random.threefry_key(-1)
    with pytest.raises(TypeInferenceError, match="'dtype' must be float32 or float64, is float16"):
        relay.random.uniform(key, (4,), "float16")
    short = relay.var("key", shape=(9,), dtype="uint64")
    with pytest.raises(TypeInferenceError, match=r"'key' must be .*threefry_key"):
        relay.random.threefry_split(short).astuple().checked_type  # noqa: B018
    with pytest.raises(TypeInferenceError, match="'shape' must be of sizes from 0 on"):
        relay.random.threefry_generate(key, (-4,)).astuple().checked_type  # noqa: B018
    for seed in ("a", 1.5, None, [1]):
        with pytest.raises(TypeInferenceError, match="'seed' must be an integer, got"):
            relay.random.threefry_key(seed)
    probs = relay.var("p", shape=(3,))
    for count, cause in ((0, "must be 1 to"), ("a", "must be an integer, got 'a'")):
        with pytest.raises(TypeInferenceError, match=f"'num_samples' {cause}"):
            relay.random.multinomial(key, probs, count)
    for draw in (relay.random.uniform, relay.random.normal):
        with pytest.raises(TypeInferenceError, match="'shape' must be integers, got 'n'"):
            draw(key, "n")
    assert relay.random.uniform(key, 3).astuple().checked_type.fields[1].shape == (3,)


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_kernels_of_gpus_are_made(target):
    key = relay.var("key", shape=(10,), dtype="uint64")
    made = relay.random.uniform(key, (32,)).astuple()
    relay.build(tvm.IRModule.from_expr(relay.Function([key], made)), target=target)


def test_what_weighs_nothing_is_not_drawn_beside_many_small_weights():
    weights = np.full(50000, 2e-8, "float32")
    weights[:2] = 0, 1
    drawn = relay.random.multinomial(relay.random.threefry_key(3), relay.const(weights), 4000)[1]
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([], drawn)), target="llvm")
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run()
    assert module.get_output(0).numpy().min() > 0


def test_a_pair_is_wrapped_again_as_scripts_do():
    key = relay.random.threefry_key(0)
    _, numbers = relay.TupleWrapper(relay.random.threefry_generate(key, (4,)), 2)
    assert numbers.checked_type.shape == (4,)
