"""argwhere, unique, sparse tensors, einsum and Fourier transforms, against NumPy and PyTorch."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError

RNG = np.random.default_rng(0)


def run(build, values, kind):
    params = [
        relay.var(f"p{i}", shape=np.shape(v), dtype=np.asarray(v).dtype.name)
        for i, v in enumerate(values)
    ]
    body = build(*params)
    body = body.astuple() if hasattr(body, "astuple") else body
    made = relay.create_executor(kind, mod=relay.Function(params, body)).evaluate()(*values)
    return [one.numpy() for one in made] if isinstance(made, tuple | list) else made.numpy()


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("shape", [(7,), (3, 4, 2)])
def test_argwhere_gives_as_many_rows_as_there_are_elements(kind, shape):
    data = RNG.integers(0, 2, shape).astype("float32")
    found = run(relay.argwhere, [data], kind)
    assert found.dtype == "int32"
    np.testing.assert_array_equal(found, np.argwhere(data))
    none = run(relay.argwhere, [np.zeros(shape, "float32")], kind)
    assert none.shape == (0, len(shape))


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_unique_elements_their_places_and_counts(kind, is_sorted, dtype):
    data = RNG.integers(-4, 5, 23).astype(dtype)
    want, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True
    )
    if not is_sorted:
        order = np.argsort(first)
        want, first, counts = want[order], first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    made = run(lambda x: relay.unique(x, is_sorted, True), [data], kind)
    number = int(made[3][0])
    assert number == len(want)
    for found, right in zip(made[:2] + made[4:], (want, first, counts), strict=True):
        np.testing.assert_array_equal(found[:number], right)
    np.testing.assert_array_equal(made[2], inverse)


def test_unique_of_a_length_that_is_not_known():
    x = relay.var("x", shape=(relay.Any(),), dtype="int32")
    execute = relay.create_executor("vm", mod=relay.Function([x], relay.unique(x).astuple()))
    run_any = execute.evaluate()
    for size in (1, 9):
        data = RNG.integers(0, 3, size).astype("int32")
        assert run_any(data)[3].numpy().tolist() == [len(np.unique(data))]


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("rows", [[0, 0, 2, 3], [1, 1, 1], [0, 1, 2, 3, 4]])
def test_empty_rows_get_the_default_in_their_first_column(kind, rows):
    indices = np.array([[r, c] for c, r in enumerate(rows)], "int64")
    values = np.arange(1, len(rows) + 1, dtype="float32")
    made = run(
        relay.sparse_fill_empty_rows,
        [indices, values, np.array([5, 6]), np.float32([10])],
        kind,
    )
    empty = [r not in rows for r in range(5)]
    want = [[r, 0] for r in range(5) if empty[r]] + indices.tolist()
    amounts = [10.0] * sum(empty) + values.tolist()
    order = sorted(range(len(want)), key=lambda i: want[i])
    assert made[0].tolist() == [want[i] for i in order]
    assert made[1].tolist() == [amounts[i] for i in order]
    assert made[2].tolist() == empty


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("shape", [(6, -1), (2, 2, 6), (-1,)])
def test_sparse_tensors_in_another_shape(kind, shape):
    dense = RNG.integers(0, 2, (2, 3, 4))
    made = run(
        relay.sparse_reshape,
        [np.argwhere(dense), np.array([2, 3, 4]), np.array(shape)],
        kind,
    )
    np.testing.assert_array_equal(made[0], np.argwhere(dense.reshape(shape)))
    assert tuple(made[1]) == dense.reshape(shape).shape


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(4, 4)]),
        ("iij->j", [(3, 3, 2)]),
        ("i,j", [(3,), (4,)]),
        ("...ij,jk,k->...i", [(2, 5, 3, 4), (4, 2), (2,)]),
    ],
)
def test_einsum_is_that_of_numpy(equation, shapes):
    data = [RNG.normal(size=s).astype("float32") for s in shapes]
    found = run(lambda *x: relay.einsum(x, equation), data, "graph")
    np.testing.assert_allclose(found, np.einsum(equation, *data), rtol=1e-5, atol=1e-5)


def test_einsum_names_what_does_not_fit():
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(TypeInferenceError, match="operand 0 has 2 axes"):
        relay.einsum([x], "ijk->i")


@pytest.mark.parametrize("inverse", [False, True])
def test_dft_is_that_of_numpy(inverse):
    real, imaginary = RNG.normal(size=(2, 3, 7)).astype("float32")
    want = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    found = run(lambda a, b: relay.dft(a, b, inverse), [real, imaginary], "graph")
    np.testing.assert_allclose(found[0] + 1j * found[1], want, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "hop", "width", "normalized", "onesided"),
    [(16, 5, 12, True, True), (9, 3, 9, False, False), (8, 8, 8, False, True)],
)
def test_stft_is_that_of_pytorch(size, hop, width, normalized, onesided):
    torch = pytest.importorskip("torch", reason="pip install torch")
    signal = RNG.normal(size=(2, 60)).astype("float32")
    window = np.hanning(width).astype("float32")
    want = torch.stft(
        torch.tensor(signal), size, hop, width, torch.tensor(window), center=False,
        normalized=normalized, onesided=onesided, return_complex=True,
    )  # fmt: skip
    found = run(
        lambda x, w: relay.stft(x, size, hop, width, w, normalized, onesided),
        [signal, window],
        "graph",
    )
    np.testing.assert_allclose(found, torch.view_as_real(want).numpy(), atol=1e-4)


def test_stft_with_a_window_of_integers():
    signal = RNG.normal(size=(2, 9)).astype("float32")
    found = run(
        lambda x, w: relay.stft(x, 2, 1, 2, w), [signal, np.array([1, 3], "int32")], "graph"
    )
    parts = np.stack([signal[:, :-1], 3 * signal[:, 1:]], -1)
    want = np.fft.rfft(parts).transpose(0, 2, 1)
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), atol=1e-5)
