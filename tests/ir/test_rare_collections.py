"""Collections of garbage while a compiler makes nodes: rarer, and as they were afterwards."""

import gc
import threading
import weakref

import pytest

from slipway.ir.rare_collections import rare_collections


@pytest.fixture(autouse=True)
def _threshold():
    usual = gc.get_threshold()
    yield
    gc.set_threshold(*usual)


def test_collections_are_rare_inside_and_as_before_behind_even_after_an_error():
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError), rare_collections():
        assert gc.get_threshold() == (50_000, 10, 10)
        with rare_collections():
            pass
        assert gc.get_threshold()[0] == 50_000  # the outer one still holds
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (80_000, 5, 5)])
def test_a_program_that_collects_never_or_more_rarely_keeps_its_setting(own):
    gc.set_threshold(*own)
    with rare_collections():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_the_last_of_several_threads_restores_the_setting():
    gc.set_threshold(700, 10, 10)
    entered, leave = threading.Event(), threading.Event()

    def other():
        with rare_collections():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with rare_collections():
        thread.start()
        assert entered.wait(10)
    assert gc.get_threshold()[0] == 50_000
    leave.set()
    thread.join(10)
    assert gc.get_threshold() == (700, 10, 10)


def test_cycles_are_still_found():
    class Ring:
        pass

    with rare_collections():
        ring = Ring()
        ring.self = ring
        known = weakref.ref(ring)
        del ring
        kept = [[] for _ in range(60_000)]
    assert known() is None
    assert len(kept) == 60_000
