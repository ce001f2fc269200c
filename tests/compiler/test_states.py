"""States: inputs that a model itself writes, and that live between runs."""

import ctypes

import numpy as np
import pytest
from tests.compiler.aot.test_aot import compile_shared

from slipway import relay, rpc
from slipway.errors import ArtifactError, ExecutionError, LoweringError
from slipway.ir.function import IRModule
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.graph.graph_format import GraphTables
from slipway.runtime.load import load_module

RNG = np.random.default_rng(5)
PAIRS = {"cache": 1, "hidden": 2, "last": 3}
FIRST = {"hidden": np.full((1, 8), 0.5, "float32")}


def values(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def network(rows=1):
    """A cache that gets rows at a position, a recurrent sum, and the value of the run before."""
    cache, new = relay.var("cache", shape=(2, 16, 8)), relay.var("new", shape=(2, rows, 8))
    at = relay.var("at", shape=(1,), dtype="int64")
    hidden, x, last = (relay.var(name, shape=(1, 8)) for name in ("hidden", "x", "last"))
    kept = relay.dynamic_update_slice(cache, new, at, axes=[1])
    sums = relay.tanh(hidden * relay.const(np.float32(0.5)) + x)
    results = [relay.sum(kept, axis=1), kept, sums, relay.exp(x), relay.nn.relu(sums) + last]
    return IRModule.from_expr(
        relay.Function([cache, new, at, hidden, x, last], relay.Tuple(results))
    )


class Reference:
    """The states kept by hand."""

    def __init__(self, mod):
        self.mod = mod
        self.states = {"cache": np.zeros((2, 16, 8), "float32"), **FIRST}
        self.states["last"] = np.zeros((1, 8), "float32")

    def run(self, **inputs):
        found = interpret(self.mod, **inputs, **self.states)
        self.states = dict(zip(PAIRS, found[1:4], strict=True))
        return found[0], found[4]


def inputs_of(position, rows=1):
    return {"new": values(2, rows, 8), "at": np.array([position]), "x": values(1, 8)}


def agree(module, reference, position, rows=1):
    inputs = inputs_of(position, rows)
    module.run(**inputs)
    for i, wanted in enumerate(reference.run(**inputs)):
        np.testing.assert_allclose(module.get_output(i).numpy(), wanted, rtol=1e-5, atol=1e-6)
    for name, wanted in reference.states.items():
        np.testing.assert_allclose(module.get_input(name).numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def library():
    """The network with an open number of rows, compiled once."""
    mod = network(Dim("n", 1, 4))
    return mod, relay.build(mod, target="llvm", state=PAIRS, params=FIRST)


def executor(library):
    return GraphModule(library["default"](cpu(0)))


def test_states_live_between_runs_of_any_size(library):
    mod, lib = library
    module, reference = executor(lib), Reference(mod)
    for rows, position in ((1, 0), (3, 5), (4, 100), (2, -7)):
        agree(module, reference, position, rows)
    assert list(module.get_state_info()) == list(PAIRS)
    assert list(module.get_input_info()[0]) == ["new", "at", "x"]
    assert [row["name"] for row in lib.metadata["states"]] == list(PAIRS)


def test_sessions_keep_their_own_and_reset_and_hand_over(library):
    mod, lib = library
    first, second = executor(lib), executor(lib)
    one, two = Reference(mod), Reference(mod)
    agree(first, one, 3)
    agree(second, two, 7)
    agree(first, one, 4)
    second.load_state(first.save_state())
    agree(second, one, 5)
    first.reset()
    agree(first, Reference(mod), 2)
    with pytest.raises(ExecutionError, match=r"'x'.*this model has 'cache', 'hidden', 'last'"):
        first.load_state(relay.save_param_dict({"x": values(1)}))


def test_what_cannot_be_loaded_leaves_the_states_as_they_were(library):
    mod, lib = library
    module, reference = executor(lib), Reference(mod)
    agree(module, reference, 3)
    saved = module.save_state()
    states = dict(relay.load_param_dict(saved).items())
    last = list(states)[-1]
    others = {name: np.zeros(a.shape, a.dtype) for name, a in states.items()}
    others[last] = np.zeros((3, 3, 3), "float32")  # the others before it would fit
    for wrong in (saved + b"\0", saved + saved, saved[:-1], b"", b"text"):
        with pytest.raises(ArtifactError, match="parameters"):
            module.load_state(wrong)
    with pytest.raises(ExecutionError, match=last):
        module.load_state(relay.save_param_dict(others))
    assert module.save_state() == saved
    agree(module, reference, 4)


def test_a_state_in_memory_of_the_callers(library):
    mod, lib = library
    module, reference = executor(lib), Reference(mod)
    own = module.get_input("cache").copyto(cpu(0))
    module.set_input_zero_copy("cache", own)
    agree(module, reference, 3)
    np.testing.assert_allclose(own.numpy(), reference.states["cache"])


def test_an_update_writes_its_region_alone(library):
    """The cache's memory is the result's: no node copies it, and no second one is there."""
    _, lib = library
    kernels = [node.function for node in lib.graph.nodes if "update_slice" in node.function]
    assert kernels == ["tvmgen_default_fused_dynamic_update_slice_in_place"]
    assert lib.metadata["memory"]["workspace_bytes"] < 2 * 16 * 8 * 4


def test_a_cache_that_is_read_after_its_update_is_copied_instead():
    cache, new = relay.var("cache", shape=(8, 4)), relay.var("new", shape=(1, 4))
    at = relay.var("at", shape=(1,), dtype="int32")
    kept = relay.dynamic_update_slice(cache, new, at, axes=[0])
    late = relay.nn.relu(cache) + relay.sum(kept, axis=0)  # of the old value
    doubled = new * relay.const(np.float32(2))
    again = relay.dynamic_update_slice(kept, doubled, at + relay.const(1), [0])
    mod = IRModule.from_expr(relay.Function([cache, new, at], relay.Tuple([late, again])))
    module = executor(relay.build(mod, target="llvm", state={"cache": 1}))
    state = np.zeros((8, 4), np.float32)
    for position in (2, 3, 0):
        inputs = {"new": values(1, 4), "at": np.array([position], "int32")}
        wanted, state = interpret(mod, cache=state, **inputs)
        module.run(**inputs)
        np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-6)
        np.testing.assert_allclose(module.get_input("cache").numpy(), state, rtol=1e-6)


def test_states_that_exchange_what_they_hold():
    a, b, x = (relay.var(name, shape=(4,)) for name in "abx")
    mod = IRModule.from_expr(relay.Function([a, b, x], relay.Tuple([b, a + x, a * b])))
    module = executor(relay.build(mod, target="llvm", state={"a": 0, "b": 1}))
    states = [np.zeros(4, np.float32)] * 2
    for _ in range(3):
        x = values(4)
        *states, wanted = interpret(mod, a=states[0], b=states[1], x=x)
        module.run(x=x)
        np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-6)
        for name, state in zip("ab", states, strict=True):
            np.testing.assert_allclose(module.get_input(name).numpy(), state, rtol=1e-6)


def test_an_exported_library_keeps_states_here_and_over_rpc(library, tmp_path):
    mod, lib = library
    path = tmp_path / "model.tar"
    lib.export_library(path)
    local = GraphModule(load_module(path)["default"](cpu(0)))
    agree(local, Reference(mod), 1)
    tables = GraphTables.from_json(lib.get_graph_json())
    assert tables.functions() == lib.tables.functions()
    session = rpc.LocalSession()
    session.upload(path)
    there = GraphModule(session.load_module("model.tar")["default"](session.cpu(0)))
    reference = Reference(mod)
    for position in (2, 9):
        agree(there, reference, position)
    there.load_state(local.save_state())
    there.reset()
    agree(there, Reference(mod), 0, 2)


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_a_program_writes_the_states_that_its_caller_holds(target, tmp_path):
    mod = network()
    lib = relay.build(
        mod,
        target=target,
        params=FIRST,
        state=PAIRS,
        executor=relay.backend.Executor("aot"),
        runtime=relay.backend.Runtime("crt"),
    )
    library, reference = compile_shared(lib, tmp_path), Reference(mod)

    def held(ports):
        arrays = {p.name: np.full(p.type.shape, 7, p.type.dtype) for p in ports}
        return arrays, (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays.values()))

    memory, inputs = held(lib.program.inputs)
    results, outputs = held(lib.program.outputs)
    library.tvmgen_default_reset(inputs)
    for position in (0, 3, 20):
        given = inputs_of(position)
        for name, value in given.items():
            memory[name][...] = value
        assert library.tvmgen_default_run(inputs, outputs) == 0
        wanted = reference.run(**given)
        for found, one in zip(results.values(), wanted, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-6)
        for name, state in reference.states.items():
            np.testing.assert_allclose(memory[name], state, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"cach": 1}, r"no input 'cach'\. Did you mean 'cache'"),
        ({"cache": 9}, "output 9, which the model lacks; its outputs are the numbers 0 to 4"),
        ({"cache": "kept"}, "output 'kept'"),
        ({"cache": 0}, r"'cache' is .*\(2, 16, 8\).*next value is .*\(2, 8\).*keeps its type"),
        ({"hidden": 2, "last": 2}, "'last' and 'hidden' are both paired with the output 2"),
    ],
)
def test_pairs_that_no_model_can_have_are_refused(state, words):
    with pytest.raises(LoweringError, match=words):
        relay.build(network(), target="llvm", state=state)


@pytest.mark.parametrize(("shape", "dtype"), [((1, 8), "float64"), ((2,), "float32")])
def test_a_first_value_has_the_type_of_its_state(shape, dtype):
    with pytest.raises(LoweringError, match=rf"'last' is .*{dtype}\({shape[0]},.*of its type"):
        params = {"last": np.zeros(shape, dtype)}
        relay.build(network(), target="llvm", state=PAIRS, params=params)
