"""Instruments, contexts that hold them, and the user's own passes."""

import threading

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.errors import LoweringError
from slipway.instrument import (
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    pass_instrument,
)


def module():
    x = relay.var("x", shape=(4,), dtype="float32")
    one = relay.const(np.ones(4, "float32"))
    return tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.add(one, one))))


class Noted:
    def __init__(self, name, log, fails=""):
        self.name, self.log, self.fails = name, log, fails

    def __getattr__(self, method):
        if method not in ("enter_pass_ctx", "exit_pass_ctx", "run_before_pass", "run_after_pass"):
            raise AttributeError(method)

        def call(*_):
            self.log.append((self.name, method))
            if method == self.fails:
                raise ValueError(f"{self.name} {method}")

        return call


def test_an_instrument_that_fails_to_begin_ends_those_before_it_and_all_are_dropped():
    log = []
    context = tvm.transform.PassContext(
        instruments=[Noted("a", log), Noted("b", log, "enter_pass_ctx"), Noted("c", log)]
    )
    with pytest.raises(ValueError, match="b enter"), context:
        pytest.fail("entered")
    assert log == [("a", "enter_pass_ctx"), ("b", "enter_pass_ctx"), ("a", "exit_pass_ctx")]
    assert context.instruments == ()
    assert tvm.transform.PassContext.current() is not context


def test_an_instrument_that_fails_to_end_drops_the_others():
    log = []
    context = tvm.transform.PassContext(
        instruments=[Noted("a", log), Noted("b", log, "exit_pass_ctx"), Noted("c", log)]
    )
    with pytest.raises(ValueError, match="b exit"), context:
        pass
    assert [name for name, method in log if method == "exit_pass_ctx"] == ["a", "b"]
    assert context.instruments == ()
    assert tvm.transform.PassContext.current() is not context


def test_a_pass_that_fails_ends_the_context_with_all_its_instruments():
    log = []
    failing = [Noted("a", log), Noted("b", log, "run_before_pass"), Noted("c", log)]
    with (
        pytest.raises(ValueError, match="b run_before"),
        tvm.transform.PassContext(instruments=failing),
    ):
        relay.transform.InferType()(module())
    assert [name for name, method in log if method == "exit_pass_ctx"] == ["a", "b", "c"]


def test_instruments_of_the_running_context_are_exchanged_and_each_thread_has_its_own():
    log = []
    current = tvm.transform.PassContext.current()
    current.override_instruments([Noted("a", log)])
    try:
        thread = threading.Thread(target=lambda: relay.transform.InferType()(module()))
        thread.start()
        thread.join()
        assert log == [("a", "enter_pass_ctx")]
        relay.transform.InferType()(module())
    finally:
        current.override_instruments([])
    assert [method for _, method in log] == [
        "enter_pass_ctx", "run_before_pass", "run_after_pass", "exit_pass_ctx",
    ]  # fmt: skip
    relay.transform.InferType()(module())
    assert len(log) == 4


def test_timing_has_passes_inside_others_and_is_forgotten_with_its_context():
    timing = PassTimingInstrument()
    inner = tvm.transform.Sequential([relay.transform.InferType()], name="pair")
    whole = tvm.transform.Sequential([relay.transform.FoldConstant(), inner], name="whole")
    with tvm.transform.PassContext(instruments=[timing]):
        whole(module())
        relay.transform.InferType()(module())
        text = timing.render()
    names = [line.partition(":")[0] for line in text.splitlines()]
    assert names == ["whole", "  FoldConstant", "  pair", "    InferType", "InferType",
                     "Total time"]  # fmt: skip
    assert timing.render() == ""


def test_a_decorated_class_is_an_instrument_and_may_leave_a_pass_out():
    @pass_instrument
    class Skip:
        def __init__(self, name, log=None):
            self.name, self.log = name, [] if log is None else log

        def should_run(self, mod, info):
            self.log.append(info.name)
            return info.name != self.name

    skip = Skip("FoldConstant")
    assert isinstance(skip, PassInstrument)
    given = relay.transform.InferType()(module())
    with tvm.transform.PassContext(instruments=[skip]):
        assert relay.transform.FoldConstant()(given) is given
    assert skip.log == ["FoldConstant"]


def test_named_passes_are_printed(capsys):
    watch = PassPrintingInstrument(["InferType"], ["FoldConstant"])
    with tvm.transform.PassContext(instruments=[watch]):
        tvm.transform.Sequential(
            [relay.transform.InferType(), tvm.transform.PrintIR("here"),
             relay.transform.FoldConstant()]
        )(module())  # fmt: skip
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if "Print" in line]
    assert heads == ["Print IR before: InferType", "PrintIR(here):",
                     "Print IR after: FoldConstant"]  # fmt: skip


def test_a_pass_of_a_class_keeps_what_the_object_holds():
    @tvm.transform.module_pass(opt_level=2, name="counted")
    class Count:
        """Counts its runs."""

        def __init__(self, step):
            self.step, self.runs = step, 0

        def transform_module(self, mod, ctx):
            assert isinstance(ctx, tvm.transform.PassContext)
            self.runs += self.step
            return mod

    count = Count(3)
    assert isinstance(count, tvm.transform.ModulePass)
    assert (count.info.name, count.info.opt_level, Count.__doc__) == (
        "counted", 2, "Counts its runs.",
    )  # fmt: skip
    count(module())
    assert count.runs == 3
    with pytest.raises(AttributeError, match="no attribute 'rans'"):
        count.rans  # noqa: B018


def loops():
    a = te.placeholder((16,), name="a")
    b = te.compute((16,), lambda i: a[i] * 2 + (i - i), name="b")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], 4)[1])
    return tvm.lower(s, [a, b], simple_mode=True)


def test_loop_passes_run_alone_on_modules_and_functions():
    flat = tvm.tir.transform.StorageFlatten(64)(loops())
    vectors = tvm.transform.Sequential(
        [tvm.tir.transform.VectorizeLoop(), tvm.tir.transform.Simplify()]
    )(flat)
    assert "ramp(" in str(vectors)
    serial = tvm.tir.transform.VectorizeLoop(False)(flat)["main"]
    assert "vectorized" not in str(serial)
    assert "ramp(" not in str(serial)


@tvm.tir.transform.prim_func_pass(opt_level=0)
class Rename:
    def __init__(self, name):
        self.name = name

    def transform_function(self, func, mod, ctx):
        return func.with_attr("global_symbol", self.name)


def test_a_loop_pass_of_ones_own():
    assert Rename("other")(loops())["main"].name == "other"
    assert Rename("alone")(loops()["main"]).name == "alone"
    with pytest.raises(LoweringError, match="no method transform_function"):
        tvm.tir.transform.prim_func_pass(opt_level=0)(dict)
    bad = tvm.tir.transform.prim_func_pass(lambda f, m, c: None, 0, "bad")
    with pytest.raises(LoweringError, match="'bad' must return a PrimFunc, got a NoneType"):
        bad(loops())


def test_a_loop_pass_of_ones_own_is_a_step_of_the_pipeline():
    seen = []

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def look(func, mod, ctx):
        seen.append(func.name)
        return func

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, look)]}):
        tvm.lower(loops())
    assert seen == ["main"]


def test_a_function_is_called_before_and_after_each_pass():
    seen = []

    def trace(mod, info, is_before):
        seen.append((info.name, is_before, len(mod.functions)))

    newer = tvm.transform.PassContext(3, trace=trace)
    for context in (newer, relay.build_config(opt_level=3, trace=trace)):
        seen.clear()
        with context:
            relay.transform.FoldConstant()(relay.transform.InferType()(module()))
        assert seen == [("InferType", True, 1), ("InferType", False, 1),
                        ("FoldConstant", True, 1), ("FoldConstant", False, 1)]  # fmt: skip
    with pytest.raises(LoweringError, match="trace is a function"):
        tvm.transform.PassContext(trace=3)
