"""What goes both ways: callbacks, lists, output, many things in one round trip."""

import gc
import weakref

import numpy as np
import pytest

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError


@pytest.fixture
def apply(remote):
    return remote.get_function("test.rpc.apply")


def test_device_calls_a_function_of_the_client(apply):
    assert apply(lambda x: x + 1, 41) == 42
    assert apply(lambda a, b: a + b, "a text that is not short, ", "and another") == (
        "a text that is not short, and another"
    )
    assert apply(lambda: None) is None
    assert apply(lambda *items: list(items), 1, "two", 3.5, None) == [1, "two", 3.5, None]


def test_callback_uses_the_session(remote, apply):
    make = remote.get_function("test.rpc.make_tensor")
    total = remote.get_function("test.rpc.total")

    def both(tensor):
        np.testing.assert_array_equal(tensor.numpy(), np.arange(6, dtype="float32").reshape(2, 3))
        return total(tensor) + float(make(4).numpy().sum())

    assert apply(both, make(2, 3)) == 15 + 6


def test_callbacks_within_callbacks_end_at_a_limit(apply):
    def depth(n):
        return 0 if n == 0 else apply(depth, n - 1) + 1

    assert apply(depth, 5) == 5
    with pytest.raises(RemoteError, match="too many calls back and forth"):
        apply(depth, 50)
    assert apply(depth, 3) == 3


def test_error_of_a_callback_comes_back_through_the_device(apply):
    original = KeyError("nothing there")

    def fail():
        raise original

    with pytest.raises(KeyError, match="nothing there") as caught:
        apply(fail)
    assert caught.value.__cause__ is original
    assert apply(lambda: 1) == 1


def test_what_a_callback_was_given_may_be_freed_in_it(remote, apply):
    make = remote.get_function("test.rpc.make_tensor")
    tensor = make(3)

    def free(given):
        del given
        remote.link.discard(tensor.handle)
        return remote.get_function("test.rpc.addone")(1)

    assert apply(free, tensor) == 2
    assert apply(lambda: 5) == 5


def test_callback_that_is_kept_works_in_later_calls(remote):
    keep = remote.get_function("test.rpc.keep")
    kept = remote.get_function("test.rpc.kept")
    keep(lambda x: x * 2)
    assert kept(21) == 42


def test_callback_from_another_thread_is_refused(remote):
    in_thread = remote.get_function("test.rpc.apply_in_thread")
    with pytest.raises(RemoteError, match="only on the thread"):
        in_thread(lambda: 1)


def test_many_calls_with_callbacks(remote, apply):
    assert remote.call_many(apply, [(lambda x: x + 1, i) for i in range(5)]) == [1, 2, 3, 4, 5]


def test_interrupt_in_a_callback_frees_the_device(server):
    session = rpc.connect("127.0.0.1", server.port)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.get_function("test.rpc.apply")(interrupt)
    with pytest.raises(RPCConnectionError, match="interrupted"):
        session.ping(b"x")


def test_lists_as_arguments(remote):
    echo = remote.get_function("test.rpc.echo")
    assert echo([1, "a text that is not short at all", 2.5, None]) == [
        1, "a text that is not short at all", 2.5, None,
    ]  # fmt: skip
    assert echo(()) == []
    total = remote.get_function("test.rpc.total_of_all")
    tensor = nd.array(np.ones(3, "float32"), remote.cpu(0))
    assert total([tensor, np.full(4, 2, "float32")]) == 11
    with pytest.raises(RPCError, match="list with a list in it"):
        echo([[1]])
    with pytest.raises(RemoteError, match="more items than this device takes"):
        echo(list(range(2000)))


def test_output_of_the_device(server):
    got = []
    with rpc.connect(
        "127.0.0.1", server.port, output=lambda stream, text: got.append((stream, text))
    ) as session:
        session.get_function("test.rpc.print")("out", "err")
        assert "".join(text for stream, text in got if stream == 1) == "out\n"
        assert "".join(text for stream, text in got if stream == 2) == "err\n"
        got.clear()
        # More than a pipe holds: it is sent while the function runs.
        session.get_function("test.rpc.print")("x" * 1_000_000, "")
        assert sum(len(text) for stream, text in got if stream == 1) == 1_000_001
        add = session.get_function("test.rpc.addone")
        assert session.call_many(add, [(1,), (2,)]) == [2, 3]


def test_output_on_this_process(server, capfd):
    with rpc.connect("127.0.0.1", server.port, output=True) as session:
        session.get_function("test.rpc.print")("to stdout", "to stderr")
    assert capfd.readouterr() == ("to stdout\n", "to stderr\n")


def test_call_many_of_every_kind(remote):
    add = remote.get_function("test.rpc.addone")
    assert remote.call_many(add, [(i,) for i in range(10_000)]) == list(range(1, 10_001))
    assert remote.call_many(add, [(i / 2,) for i in range(10)]) == [i / 2 + 1 for i in range(10)]
    assert remote.call_many(add, [(1,), (0.5,), (True,)]) == [2, 1.5, 2]
    assert remote.call_many(add, []) == []
    echo = remote.get_function("test.rpc.echo")
    assert remote.call_many(echo, [("a", i) for i in range(100)]) == [["a", i] for i in range(100)]
    with pytest.raises(RPCError, match="does not fit into 64 bits"):
        remote.call_many(add, [(1,), (1 << 80,)])
    with pytest.raises(ValueError, match="first"):
        remote.call_many(
            remote.get_function("test.rpc.raise_value_error"), [("first",), ("second",)]
        )
    assert add(1) == 2


def test_call_many_into_a_crash(server):
    with rpc.connect("127.0.0.1", server.port) as session:
        leave = session.get_function("test.rpc.exit")
        with pytest.raises(RemoteError, match="exited with status 3"):
            session.call_many(leave, [(3,)] * 10)


def test_several_tensors_in_one_round_trip(remote):
    rng = np.random.default_rng(1)
    arrays = [rng.random(size, "float32") for size in (*range(300), 100_000, 7, 5000)]
    tensors = [nd.empty(array.shape, "float32", remote.cpu(0)) for array in arrays]
    remote.write_all(tensors, arrays)
    for array, back in zip(arrays, remote.read_all(tensors), strict=True):
        np.testing.assert_array_equal(array, back)
    with pytest.raises(ValueError, match="shape"):
        remote.write_all(tensors[:1], [np.zeros(99)])
    with pytest.raises(ValueError, match="one for each"):
        remote.write_all(tensors, [])


def test_asynchronous_copies(remote):
    array = np.random.default_rng(2).random(3_000_000, "float32")
    tensor = nd.empty(array.shape, "float32", remote.cpu(0))
    back = np.empty_like(array)
    there = remote.copy_async(array, tensor)
    here = remote.copy_async(tensor, back)
    assert remote.ping(b"meanwhile") == b"meanwhile"
    assert here.result(60) is back
    assert there.done()
    np.testing.assert_array_equal(back, array)
    bad = remote.copy_async(np.zeros(2), tensor)
    with pytest.raises(ValueError, match="shape"):
        bad.result(60)


def test_dropped_session_is_closed_at_once(server):
    session = rpc.connect("127.0.0.1", server.port)
    session.get_function("test.rpc.apply")(lambda: 1)
    link = session.link
    gc.disable()
    try:
        del session
        closed = weakref.ref(link)
        del link
        assert closed() is None
    finally:
        gc.enable()
