"""Settings of a ``with`` belong to the thread, and to the task of asyncio, that entered it."""

import asyncio
import threading

import pytest

from slipway import relay, te
from slipway.errors import LoweringError
from slipway.relay.qnn.config import current_requantize_config, requantize_config
from slipway.target import Target
from slipway.te.declare import TagScope
from slipway.transform.context import PassContext

SCOPES = {
    "PassContext": (lambda i: PassContext(opt_level=i), lambda: PassContext.current().opt_level),
    "Target": (
        lambda i: Target(f"llvm -num-cores={i + 1}"),
        lambda: Target.current().num_cores - 1 if Target.current() else None,
    ),
    "qconfig": (
        lambda i: relay.quantize.qconfig(skip_conv_layers=[i]),
        lambda: (relay.quantize.current_qconfig().skip_conv_layers or [None])[0],
    ),
    "requantize": (
        lambda i: requantize_config(rounding=str(i)),
        lambda: int(current_requantize_config().rounding or -1),
    ),
    "tag": (lambda i: te.tag_scope(str(i)), lambda: int(TagScope.current() or -1)),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_tasks_that_take_turns_keep_their_own(scope):
    make, read = SCOPES[scope]
    outside = read()

    async def task(number, rounds):
        found = []
        with make(number):
            for _ in range(rounds):
                await asyncio.sleep(0)
                found.append(read())
        found.append(read())
        return found

    async def main():
        return await asyncio.gather(*(task(number, 4 - number) for number in range(4)))

    for number, found in enumerate(asyncio.run(main())):
        assert found == [number] * (4 - number) + [outside]
    assert read() == outside


@pytest.mark.parametrize("scope", SCOPES)
def test_threads_begin_outside_of_all(scope):
    make, read = SCOPES[scope]
    outside, found = read(), []
    with make(3):
        thread = threading.Thread(target=lambda: found.append(read()))
        thread.start()
        thread.join()
        assert read() == 3
    assert found == [outside]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_thread_of_asyncio_begins_outside_too_and_leaves_nothing(scope):
    make, read = SCOPES[scope]
    outside = read()

    def elsewhere():
        found = [read()]
        with make(2):
            found.append(read())
        return [*found, read()]

    async def main():
        with make(3):
            return await asyncio.to_thread(elsewhere), read()

    assert asyncio.run(main()) == ([outside, 2, outside], 3)


def test_a_context_that_was_not_entered_is_not_left():
    with PassContext(), pytest.raises(LoweringError, match="has not entered"):
        PassContext().__exit__()
