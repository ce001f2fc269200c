"""PassContext: options, instruments, and passes of one's own."""

import pytest

from slipway import te
from slipway.errors import LoweringError
from slipway.transform.context import PassContext
from slipway.transform.instruments import PassDumper, PassTimer, VerifyEachPass
from slipway.transform.loop.pipeline import PIPELINE, run_pipeline


def example():
    a = te.placeholder((8, 32), name="A")
    b = te.compute((8, 32), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    return te.lower(s, [a, b])


def test_instruments_see_every_pass():
    timer, texts = PassTimer(), []
    with PassContext(instruments=[timer, PassDumper(texts.append), VerifyEachPass()]):
        run_pipeline(example())
    ran = ["reduce_over_threads", "lower_blocks", *(p.name for p in PIPELINE)]
    assert list(timer.seconds) == list(dict.fromkeys(ran))
    assert "vectorize_loop" in timer.render()
    assert any(t.startswith("# after flatten_storage") for t in texts)
    assert not any(t.startswith("# after inject_prefetch") for t in texts)


def test_an_instrument_may_skip_a_pass():
    class NoVectors:
        def should_run(self, func, info):
            return info.name != "vectorize_loop"

    func = run_pipeline(example(), instruments=[NoVectors()])
    assert "vectorized for" in str(func)


def test_a_disabled_pass_does_not_run():
    with PassContext(disabled_pass=["vectorize_loop"]):
        assert "vectorized for" in str(run_pipeline(example()))


def test_an_unknown_key_is_an_error_with_a_hint():
    with pytest.raises(LoweringError, match=r"no config key 'tir.disable_vectorise'. Did you mean"):
        PassContext(config={"tir.disable_vectorise": True})


def test_contexts_nest_and_leave():
    assert PassContext.current().opt_level == 2
    with PassContext(opt_level=3):
        with PassContext(opt_level=0):
            assert PassContext.current().opt_level == 0
        assert PassContext.current().opt_level == 3
    assert PassContext.current().opt_level == 2


def test_passes_of_ones_own_run_in_their_phase():
    seen = []

    def spy(phase):
        def look(func):
            seen.append((phase, "vectorized for" in str(func)))
            return func

        return look

    extra = [(phase, spy(phase)) for phase in (0, 1, 2, 3)]
    with PassContext(config={"tir.add_lower_pass": extra}):
        run_pipeline(example())
    assert seen == [(0, True), (1, True), (2, False), (3, False)]


def test_automatic_unrolling():
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        text = str(run_pipeline(example()))
    assert "for " not in text
