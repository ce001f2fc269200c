import gc

import numpy as np
import pytest

from slipway.errors import ArgumentValueError
from slipway.runtime import cpu, cuda, device
from slipway.runtime import ndarray as nd

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = ["bool", "float16", "float32", "float64", *INTEGERS]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_round_trip(dtype, shape):
    values = np.arange(int(np.prod(shape)) or 1)[: int(np.prod(shape))].reshape(shape).astype(dtype)
    made = nd.array(values)
    assert (made.shape, made.dtype, made.device) == (shape, dtype, cpu(0))
    np.testing.assert_array_equal(made.numpy(), values)
    assert made.numpy().dtype == values.dtype


def test_bfloat16_through_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    made = nd.array(values)
    assert made.dtype == "bfloat16"
    np.testing.assert_array_equal(made.numpy(), values)


def test_data_is_aligned():
    for size in (1, 3, 100, 4097):
        assert nd.empty((size,), "float32")._tensor.data_ptr() % 64 == 0


def test_array_copies_and_numpy_copies():
    source = np.zeros(4, "float32")
    made = nd.array(source)
    source[0] = 1
    out = made.numpy()
    out[1] = 1
    assert made.numpy().tolist() == [0, 0, 0, 0]


def test_literals_get_classic_dtypes():
    assert nd.array([1.0, 2.0]).dtype == "float32"
    assert nd.array([1, 2]).dtype == "int32"
    assert nd.array(np.array([1.0])).dtype == "float64"


def test_set_all_elements():
    made = nd.empty((2, 2))
    made[:] = 3
    made[:] = np.array([[1, 2], [3, 4]], "float64")
    assert made.numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"shape \(3,\) into one of shape \(2, 2\)"):
        made[:] = np.zeros(3)
    with pytest.raises(IndexError, match=r"y\[:\]"):
        made[0] = 1


def test_copyto_array_and_device():
    made = nd.array(np.arange(3, dtype="int32"))
    other = nd.empty((3,), "int32")
    assert made.copyto(other) is other
    assert made.copyto(cpu(0)).numpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="shape and dtype must be equal"):
        made.copyto(nd.empty((3,), "int64"))


def test_dlpack_both_ways_shares_memory():
    made = nd.array(np.zeros(4, "float32"))
    view = np.from_dlpack(made)
    made[:] = 2
    assert view.tolist() == [2, 2, 2, 2]
    source = np.zeros(4, "float32")
    for again in (nd.from_dlpack(source), nd.from_dlpack(made.to_dlpack())):
        again[:] = 5
    assert source.tolist() == [5, 5, 5, 5]
    assert made.numpy().tolist() == [5, 5, 5, 5]


def test_producer_stays_alive():
    view = nd.from_dlpack(np.full(1 << 20, 7, "int32"))
    back = np.from_dlpack(nd.array(np.full(1 << 20, 9, "int32")))
    gc.collect()
    np.full(1 << 20, 1, "int32")
    assert view.numpy().min() == 7
    assert back.min() == 9


def test_strided_memory_is_read_in_order():
    source = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(nd.from_dlpack(source.T).numpy(), source.T)


def test_scalars_convert():
    assert float(nd.array(np.float32(2.5))) == 2.5
    assert int(nd.array(np.int64(7))) == 7


def test_other_devices_are_refused_with_words():
    with pytest.raises(ValueError, match="over RPC"):
        nd.empty((1,), "float32", device("ext_dev", 0))
    with pytest.raises(ValueError, match=r"'cpuu' is not a kind of device\. Did you mean 'cpu'"):
        device("cpuu")


def test_devices():
    assert device("llvm") == device("cpu:0") == cpu(0)
    assert repr(cuda(1)) == "cuda(1)"
    assert not cuda(0).exist
    assert cpu(0).exist
    assert len({cpu(0), cpu(0), cuda(0)}) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "float32x4", "bool"])
def test_views_share_the_memory_of_their_array(dtype):
    whole = nd.empty((4, 6), dtype)
    view = whole._create_view((3, 4))
    assert (view.shape, view.dtype, view.device) == ((3, 4), dtype, whole.device)
    ones = np.ones_like(view.numpy())
    view.copyfrom(ones)
    flat = whole.numpy().reshape(24, *ones.shape[2:])
    np.testing.assert_array_equal(flat[:12].reshape(ones.shape), ones)
    del whole
    np.testing.assert_array_equal(view.numpy(), ones)
    with pytest.raises(ArgumentValueError, match=r"of 12 elements has no view of shape \(13,\)"):
        view._create_view((13,))
    with pytest.raises(ArgumentValueError, match="no view of shape"):
        view._create_view((-1, 2))


def test_a_view_of_what_is_not_contiguous_is_refused():
    torch = pytest.importorskip("torch")
    crossed = nd.from_dlpack(torch.arange(6.0).reshape(2, 3).T)
    with pytest.raises(ArgumentValueError, match="not contiguous has no view"):
        crossed._create_view((6,))


def test_an_array_in_memory_of_a_kernel_is_refused():
    assert nd.empty((2, 3), "float32", cpu(0), "global").shape == (2, 3)
    with pytest.raises(ArgumentValueError, match=r"mem_scope='global\.texture'.*cache_read"):
        nd.empty((2, 3, 4), "float32", cpu(0), mem_scope="global.texture")
