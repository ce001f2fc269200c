"""An ahead-of-time model that was built before: neither lowered nor compiled again."""

import numpy as np
import pytest
from aot_models import build, keyword_net

import slipway as tvm
from slipway import relay
from slipway.codegen.llvm import machine
from slipway.compiler import kernels
from slipway.contrib import graph_executor
from slipway.transform.instruments import PassTimer


@pytest.fixture
def lowered(monkeypatch):
    names = []
    original = kernels.lower_kernel
    monkeypatch.setattr(
        kernels, "lower_kernel", lambda name, *rest: names.append(name) or original(name, *rest)
    )
    return names


def run(lib):
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    rng = np.random.default_rng(0)
    shapes, dtypes = module.get_input_info()
    for name, shape in shapes.items():
        module.set_input(name, rng.uniform(0, 1, tuple(shape)).astype(str(dtypes[name])))
    module.run()
    return module.get_output(0).numpy()


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_built_again_it_is_the_same_and_nothing_is_lowered(cache_folder, lowered, target):
    first = build(keyword_net(), target)
    source, overlaps = first.sources.source, first.overlaps
    expected = run(first)
    assert lowered
    lowered.clear()
    again = build(keyword_net(), target)
    assert again.sources.source == source
    assert again.overlaps == overlaps
    np.testing.assert_array_equal(run(again), expected)
    assert not lowered


def test_a_program_for_the_c_runtime_is_compiled_when_asked_for(cache_folder, monkeypatch):
    compiled = []
    original = machine._request

    def request(want, *rest):
        compiled.extend([1] * (want == "object"))
        return original(want, *rest)

    monkeypatch.setattr(machine, "_request", request)
    lib = build(keyword_net(), "llvm")
    assert "define" in lib.sources.source
    assert not compiled
    assert np.isfinite(run(lib)).all()
    assert compiled


def test_an_instrument_watches_each_kernel_once(cache_folder, lowered):
    mod, params = keyword_net()
    for _ in range(2):
        entered = []
        timer = PassTimer()
        timer.enter_pass_ctx = lambda: entered.append(1)  # noqa: B023
        lowered.clear()
        with tvm.transform.PassContext(opt_level=3, instruments=[timer]):
            executor = relay.backend.Executor("aot")
            lib = relay.build(mod, target="llvm", params=params, executor=executor)
        assert sorted(lowered) == sorted(lib.graph.kernels)
        assert entered == [1]
