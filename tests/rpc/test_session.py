"""Calls, values, tensors and files of a session with the Python server."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.5, float("inf"), "", "a", "longer text: ä",
     "seven77", b"", b"bytes", b"\0" * 100],
)  # fmt: skip
def test_value_survives_the_way_there_and_back(remote, value):
    result = remote.get_function("test.rpc.echo")(value)
    assert result == value
    assert type(result) is type(value)


def test_several_values_come_back_as_a_list(remote):
    values = [1, "two", 3.0, b"four", None, True]
    assert remote.get_function("test.rpc.echo")(*values) == values


def test_numpy_scalars_travel(remote):
    echo = remote.get_function("test.rpc.echo")
    assert echo(np.int32(7)) == 7
    assert echo(np.float32(0.25)) == 0.25


def test_arrays_keep_their_rank(remote):
    total = remote.get_function("test.rpc.rank")
    assert [total(np.zeros((1,) * rank, "float32")) for rank in range(4)] == [0, 1, 2, 3]


def test_integer_beyond_64_bits_is_refused_here(remote):
    with pytest.raises(RPCError, match="does not fit into 64 bits"):
        remote.get_function("test.rpc.echo")(2**63)


def test_more_numbers_than_a_call_takes(remote):
    echo = remote.get_function("test.rpc.echo")
    assert echo(*range(1000)) == list(range(1000))
    with pytest.raises(RemoteError, match="arguments"):
        echo(*range(2000))
    with pytest.raises(RPCError, match=r"more than the .* bytes that the device takes"):
        echo(*range(remote.link.request.nbytes // 16))
    assert echo(1) == 1


def test_numbers_travel_before_and_after_tvm_ffi_is_there(server):
    """A client that calls little does not wait for the import of tvm-ffi and its frameworks."""
    code = (
        "import sys; from slipway import rpc\n"
        "with rpc.connect('127.0.0.1', int(sys.argv[1])) as session:\n"
        "    echo = session.get_function('test.rpc.echo')\n"
        "    assert [echo(i) for i in range(5)] == list(range(5))\n"
        "    assert 'tvm_ffi' not in sys.modules\n"
        "    assert [echo(i, None) for i in range(100)] == [[i, None] for i in range(100)]\n"
        "    assert 'tvm_ffi' in sys.modules\n"
        "    assert [echo(i / 2) for i in range(5)] == [i / 2 for i in range(5)]\n"
    )
    subprocess.run([sys.executable, "-c", code, str(server.port)], check=True)


def test_long_text(remote):
    text = "x" * 1_000_000
    assert remote.get_function("test.rpc.echo")(text) == text


def test_unknown_argument_type_names_position_and_type(remote):
    with pytest.raises(RPCError, match=r"argument 1 is a set"):
        remote.get_function("test.rpc.echo")(1, {1})


def test_array_by_value(remote):
    total = remote.get_function("test.rpc.total")
    assert total(np.arange(10, dtype="float64")) == 45.0
    assert total(np.ones((3, 4), "int8")[:, ::2]) == 6.0


def test_missing_function_is_named(remote):
    with pytest.raises(AttributeError, match=r"no global function 'test\.rpc\.nope'"):
        remote.get_function("test.rpc.nope")


def test_function_returned_by_a_function(remote):
    assert remote.get_function("test.rpc.adder")(5)(6) == 11


def test_remote_exception_arrives_with_type_message_and_place(remote):
    with pytest.raises(ValueError, match="no good") as caught:
        remote.get_function("test.rpc.raise_value_error")("no good")
    assert isinstance(caught.value, RemoteError)
    assert caught.value.kind == "ValueError"
    assert "functions.py" in "".join(caught.value.__notes__)
    assert remote.get_function("test.rpc.addone")(1) == 2


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "uint16", "int64", "bool", "float16"]
)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4, 5), (0, 3), (100_001,)])
def test_tensor_survives_the_way_there_and_back(remote, dtype, shape):
    data = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    tensor = remote.cpu(0).empty(shape, dtype)
    tensor.copyfrom(data)
    back = tensor.numpy()
    assert back.dtype == data.dtype
    assert back.shape == data.shape
    np.testing.assert_array_equal(back, data)


def test_tensor_larger_than_a_frame(remote):
    data = np.random.default_rng(1).random(3_000_001)
    tensor = remote.cpu(0).empty(data.shape, "float64")
    tensor[:] = data
    np.testing.assert_array_equal(tensor.numpy(), data)


def test_tensor_is_zero_at_first_and_functions_fill_it(remote):
    tensor = remote.cpu(0).empty((2, 3), "float32")
    assert not tensor.numpy().any()
    remote.get_function("test.rpc.fill")(tensor, 7.5)
    assert (tensor.numpy() == 7.5).all()


def test_tensor_returned_by_a_function(remote):
    tensor = remote.get_function("test.rpc.make_tensor")(2, 3)
    assert (tensor.shape, tensor.dtype) == ((2, 3), "float32")
    np.testing.assert_array_equal(tensor.numpy(), np.arange(6, dtype="float32").reshape(2, 3))


def test_copy_on_the_device(remote):
    source = remote.cpu(0).empty((1000,), "int32")
    source.copyfrom(np.arange(1000))
    np.testing.assert_array_equal(source.copyto(remote.cpu(0)).numpy(), np.arange(1000))


def test_local_nd_functions_make_remote_tensors(remote):
    data = np.random.default_rng(3).random((3, 5), "float32")
    there = nd.array(data, remote.cpu(0))
    assert isinstance(there, rpc.RemoteNDArray)
    np.testing.assert_array_equal(there.asnumpy(), data)
    empty = nd.empty((3, 5), "float32", remote.cpu(0))
    there.copyto(empty)
    np.testing.assert_array_equal(empty.numpy(), data)
    here = nd.empty((3, 5), "float32")
    there.copyto(here)
    np.testing.assert_array_equal(here.numpy(), data)
    np.testing.assert_array_equal(nd.array(there).numpy(), data)
    here.copyto(empty)
    empty[:] = 2.5
    assert (empty.numpy() == 2.5).all()
    into = np.empty((3, 5), "float32")
    assert there.copyto(into) is into
    np.testing.assert_array_equal(into, data)


def test_remote_tensor_is_no_argument_of_a_local_function(remote):
    tensor = remote.cpu(0).empty((1,))
    import tvm_ffi

    with pytest.raises(RPCError, match="cannot be an argument of a function in this process"):
        tvm_ffi.get_global_func("test.rpc.echo")(tensor)


def test_copy_of_another_shape_is_refused(remote):
    tensor = remote.cpu(0).empty((4,), "float32")
    with pytest.raises(ValueError, match=r"shape \(5,\).*shape \(4,\)"):
        tensor.copyfrom(np.zeros(5))


def test_impossible_tensor_is_refused_and_the_session_goes_on(remote):
    with pytest.raises(MemoryError, match="more than the device has free"):
        remote.cpu(0).empty((1 << 40,), "float64")
    with pytest.raises(ValueError, match="no tensor can have that shape"):
        remote.cpu(0).empty((1 << 62, 1 << 62), "float64")
    with pytest.raises(RemoteError, match=r"this server has no ext_dev\(0\)"):
        remote.device("ext_dev").empty((1,), "float32")
    assert remote.get_function("test.rpc.addone")(1) == 2


def test_devices(remote):
    assert remote.cpu(0).exist
    remote.cpu(0).check()
    with pytest.raises(RPCError, match=r"cpu\(3\).* is not there.*cpu\(0\), all of them"):
        remote.cpu(3).check()
    assert not remote.cuda(0).exist
    assert remote.device("cpu") == remote.cpu(0)
    with pytest.raises(ValueError, match="'tpu9' is not a kind of device"):
        remote.device("tpu9")


def test_deleted_objects_are_freed_and_live_ones_are_limited():
    options = rpc.ServerOptions(max_handles=100, is_quiet=True)
    with (
        rpc.Server("127.0.0.1", 0, use_popen=False, options=options) as server,
        rpc.connect("127.0.0.1", server.port, tls=False) as session,
    ):
        for _ in range(1000):
            session.cpu(0).empty((1,), "int8")
        keep = [session.cpu(0).empty((1,), "int8") for _ in range(100)]
        with pytest.raises(RemoteError, match="too many remote objects"):
            session.cpu(0).empty((1,), "int8")
        del keep[50:]
        session.cpu(0).empty((1,), "int8")


def test_object_of_another_session_is_refused(server, remote):
    with rpc.connect("127.0.0.1", server.port) as other:
        tensor = other.cpu(0).empty((1,), "int8")
        with pytest.raises(RPCError, match="lives in another session"):
            remote.get_function("test.rpc.echo")(tensor)


@pytest.mark.parametrize("size", [0, 1, 8, 65_535, 65_536, 5_000_001])
def test_file_survives_the_way_there_and_back(remote, size):
    content = np.random.default_rng(2).bytes(size)
    remote.upload(content, "data.bin")
    assert remote.download("data.bin") == content
    assert remote.listdir() == ["data.bin"]
    remote.remove("data.bin")
    assert remote.listdir() == []


def test_upload_of_a_path_and_again(remote, tmp_path):
    path = tmp_path / "weights.bin"
    for content in (b"first version", b"second"):
        path.write_bytes(content)
        remote.upload(path)
        assert remote.download("weights.bin") == content


def test_missing_files(remote, tmp_path):
    with pytest.raises(RPCError, match="cannot upload"):
        remote.upload(tmp_path / "nothing")
    with pytest.raises(RemoteError, match="cannot read 'nothing'"):
        remote.download("nothing")
    with pytest.raises(RemoteError, match="cannot remove 'nothing'"):
        remote.remove("nothing")
    with pytest.raises(RemoteError, match="no file 'nothing' in this session"):
        remote.load_module("nothing")


ESCAPES = [
    "../x", "/etc/passwd", "a/b", "..", ".", "a/../../b", "..\\x", "c:x", "x\n", "\x7f", "./x",
]  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_no_name_leads_out_of_the_folder(remote, name):
    for action in (
        lambda: remote.upload(b"content", name),
        lambda: remote.download(name),
        lambda: remote.remove(name),
        lambda: remote.load_module(name),
    ):
        with pytest.raises((ValueError, RemoteError)):
            action()
    assert remote.listdir() == []


def test_link_in_the_folder_is_not_followed(remote, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    from pathlib import Path

    folder = Path(remote.get_function("test.rpc.cwd")())
    (folder / "link").symlink_to(secret)
    with pytest.raises(RemoteError):
        remote.download("link")
    remote.upload(b"new", "link")
    assert secret.read_text() == "secret"


def test_sessions_have_folders_and_processes_of_their_own(server, remote):
    with rpc.connect("127.0.0.1", server.port) as other:
        other.upload(b"mine", "file")
        assert remote.listdir() == []
        pid = "test.rpc.pid"
        assert other.get_function(pid)() != remote.get_function(pid)()


def test_use_after_close_says_so(server):
    session = rpc.connect("127.0.0.1", server.port)
    function = session.get_function("test.rpc.addone")
    session.close()
    with pytest.raises(RPCConnectionError, match="session was closed"):
        function(1)


def test_threads_share_a_session(remote):
    addone = remote.get_function("test.rpc.addone")
    wrong = []

    def work(start):
        for i in range(start, start + 300):
            if addone(i) != i + 1:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_ping(remote):
    assert remote.ping(b"hello") == b"hello"


def test_many_calls_in_one_round_trip(remote):
    addone = remote.get_function("test.rpc.addone")
    assert remote.call_many(addone, ((i,) for i in range(3000))) == list(range(1, 3001))
    echo = remote.get_function("test.rpc.echo")
    texts = ["x" * size for size in (10, 70_000, 3, 1_000_000, 5)]  # some beyond the queue
    assert remote.call_many(echo, [(text,) for text in texts]) == texts
    assert remote.call_many(echo, []) == []


def test_failure_among_many_calls(remote):
    bad = remote.get_function("test.rpc.raise_value_error")
    with pytest.raises(ValueError, match="first"):
        remote.call_many(bad, [("first",), ("second",)])
    assert remote.get_function("test.rpc.addone")(1) == 2


def test_a_copy_to_a_device_of_this_machine(remote):
    """The classic spelling of "bring it here"; it gives a local array."""
    there = nd.array(np.arange(6, dtype="float32").reshape(2, 3), remote.cpu(0))
    here = there.copyto(nd.cpu(0))
    assert isinstance(here, nd.NDArray)
    np.testing.assert_array_equal(here.numpy(), there.numpy())
