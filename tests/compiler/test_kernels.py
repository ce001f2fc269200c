"""The kernels of a model come from the cache without being lowered, when nothing else has a say."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.backends import strategy as registry
from slipway.codegen import cache
from slipway.codegen.llvm import machine
from slipway.compiler import kernels
from slipway.compiler.kernels import kernel_key
from slipway.contrib import graph_executor
from slipway.ir import custom
from slipway.relay import op_registry
from slipway.target import Target
from slipway.toolchain.elf import ElfFile
from slipway.transform.instruments import PassTimer

WEIGHT = np.linspace(-1, 1, 16 * 16 * 9, dtype="float32").reshape(16, 16, 3, 3)


def model(first="relu", size=24):
    """A Winograd convolution, whose kernel uses the library's arena, behind another kernel."""
    x = relay.var("x", shape=(1, 16, size, size))
    y = relay.nn.softmax(getattr(relay.nn if first == "relu" else relay, first)(x), axis=3)
    y = relay.nn.conv2d(y, relay.const(WEIGHT), padding=(1, 1), channels=16, kernel_size=(3, 3))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y)))


def build(mod, target="llvm", mod_name="default", **options):
    with tvm.transform.PassContext(opt_level=3, **options):
        return relay.build(mod, target=target, mod_name=mod_name)


def run(lib, size=24, name="default"):
    executor = graph_executor.GraphModule(lib[name](tvm.cpu(0)))
    executor.run(x=np.linspace(-2, 2, 16 * size * size, dtype="float32").reshape(1, 16, size, size))
    return executor.get_output(0).numpy()


def count_lowered(monkeypatch):
    lowered = []
    original = kernels.lower_kernel
    monkeypatch.setattr(
        kernels, "lower_kernel", lambda name, *rest: lowered.append(name) or original(name, *rest)
    )
    return lowered


def test_a_model_built_again_is_not_lowered_again(cache_folder, monkeypatch):
    lowered = count_lowered(monkeypatch)
    first = build(model())
    assert len(lowered) == len(first.graph.kernels) >= 2
    again = build(model())
    assert len(lowered) == len(first.graph.kernels)
    assert again.compiled.objects == first.compiled.objects
    np.testing.assert_array_equal(run(again), run(first))
    assert again.get_source("raw") == first.get_source("raw")  # lowered for it, to the same text


def test_models_share_kernels_whatever_they_call_them(cache_folder, monkeypatch):
    lowered = count_lowered(monkeypatch)
    first = build(model(), mod_name="first")
    done = len(lowered)
    second = build(model(), mod_name="second")
    assert len(lowered) == done
    assert all(name.startswith("tvmgen_second_") for name in second.compiled.functions)
    names = [s for data in second.compiled.objects for s in ElfFile(data).exported]
    assert {f"__tvm_ffi_{name}" for name in second.compiled.functions} <= set(names)
    np.testing.assert_array_equal(run(second, name="second"), run(first, name="first"))
    for text in (second.get_source("raw"), second.get_source("asm")):
        assert "tvmgen_second_fused_nn_softmax.compute" in text
        assert "tvmgen_first" not in text


def test_a_kernel_uses_the_arena_of_the_library_it_is_in(cache_folder, monkeypatch):
    one = build(model())
    lowered = count_lowered(monkeypatch)
    other = build(model("tanh"))
    assert [name for name in lowered if "tanh" not in name] == []  # the convolution was there
    assert np.isfinite(run(other)).all()
    for built in (one, other):
        arenas = {s for data in built.compiled.objects for s in symbols(data) if "slw_arena" in s}
        assert arenas == {f"slw_arena_{built.compiled.functions[0]}"}


def symbols(data):
    return [symbol.name for symbol in ElfFile(data).symbols]


def test_objects_that_are_no_elf_keep_the_names_they_are_compiled_under(cache_folder, monkeypatch):
    mac = "llvm -mtriple=aarch64-apple-darwin"
    first = build(model(), mac, mod_name="first").compiled.objects
    lowered = count_lowered(monkeypatch)
    assert build(model(), mac, mod_name="first").compiled.objects == first
    assert not lowered
    second = build(model(), mac, mod_name="second")
    assert any(b"tvmgen_second_fused_nn_softmax" in data for data in second.compiled.objects)
    assert lowered


def test_a_damaged_or_missing_object_is_made_again(cache_folder, monkeypatch):
    first = build(model()).compiled.objects
    for path in (cache_folder / "kernels").glob("*/*"):
        if path.stat().st_size > 500:  # the objects; what leads to them stays
            path.unlink()
    lowered = count_lowered(monkeypatch)
    machine.part_object.cache_clear()
    assert build(model()).compiled.objects == first
    assert lowered


def function_and_target():
    x = relay.var("x", shape=(4, 8))
    function = relay.nn.relu(relay.tanh(x)).as_function().with_attr("Primitive", 1)
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"], Target("llvm")


def test_the_key_names_everything_that_a_kernel_is_made_from(monkeypatch):
    function, target = function_and_target()
    other = relay.var("x", shape=(4, 9))
    other = relay.nn.relu(relay.tanh(other)).as_function().with_attr("Primitive", 1)
    other = relay.transform.InferType()(tvm.IRModule.from_expr(other))["main"]
    keys = [
        kernel_key(function, target),
        kernel_key(other, target),
        *(kernel_key(function, Target(f"llvm {words}")) for words in (
            "-num-cores=7", "-mcpu=x86-64-v3", "-mattr=-avx512f", "-l2-cache-bytes=1024",
            "-strict=1", "-mtriple=aarch64-linux-gnu",
        )),
    ]  # fmt: skip
    for options in ({"opt_level": 3}, {"disabled_pass": ["simplify"]},
                    {"config": {"tir.noalias": False}}):  # fmt: skip
        with tvm.transform.PassContext(**options):
            keys.append(kernel_key(function, target))
    monkeypatch.setattr(kernels, "source_digest", lambda: b"a newer compiler")
    keys.append(kernel_key(function, target))
    assert "" not in keys
    assert len(set(keys)) == len(keys)


def test_what_the_user_has_a_say_in_has_no_key(monkeypatch):
    function, target = function_and_target()
    with tvm.transform.PassContext(instruments=[PassTimer()]):
        assert kernel_key(function, target) == ""
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(0, lambda f: f)]}):
        assert kernel_key(function, target) == ""
    with monkeypatch.context() as patch:
        patch.setattr(custom, "_RULES", {("tanh", "llvm"): (10, lambda call: None)})
        assert kernel_key(function, target) == ""
    with monkeypatch.context() as patch:
        theirs = op_registry.get("tanh").compute_function
        patch.setattr(op_registry.get("tanh"), "compute_function", lambda *a: theirs(*a))
        assert kernel_key(function, target) == ""
    register(monkeypatch, "tanh", lambda *a: True)
    assert kernel_key(function, target) == ""


def register(monkeypatch, op, applies):
    mine = registry.Strategy("mine", op, lambda *a: None, None, applies, 99)
    every = {**registry._STRATEGIES, op: [*registry.strategies(op, Target("llvm")), mine]}
    monkeypatch.setattr(registry, "_STRATEGIES", every)


def test_what_the_user_does_elsewhere_changes_no_key(monkeypatch):
    function, target = function_and_target()
    key = kernel_key(function, target)
    register(monkeypatch, "nn.conv2d", lambda *a: True)
    register(monkeypatch, "tanh", lambda attrs, in_types, target: in_types[0].shape == (9, 9))
    monkeypatch.setattr(custom, "_DECLARED", set())
    monkeypatch.setattr(custom, "INTRINSICS", dict(custom.INTRINSICS))
    rules = {("tanh", "c"): (10, lambda call: None), ("mine", "llvm"): (10, lambda call: None)}
    monkeypatch.setattr(custom, "_RULES", rules)
    assert kernel_key(function, target) == key
    custom.register_op_attr("tir.mine", "TCallEffectKind", custom.CallEffectKind.Pure)
    assert kernel_key(function, target) == key
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 3, "tir.usmp.enable": True}):
        assert kernel_key(function, target) == key


def test_options_within_options_are_known():
    function, target = function_and_target()
    keys = []
    for steps in (4, 8):
        with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": steps}}):
            keys.append(kernel_key(function, target))
    assert "" not in keys
    assert keys[0] != keys[1]


def test_a_kernel_without_a_key_still_finds_its_text_compiled(cache_folder, monkeypatch):
    build(model())
    compiled = []
    original = machine._request

    def request(want, *rest):
        compiled.extend([1] * (want == "object"))
        return original(want, *rest)

    monkeypatch.setattr(machine, "_request", request)
    lowered = count_lowered(monkeypatch)
    build(model(), instruments=[PassTimer()])
    assert lowered
    assert not compiled


def test_every_operator_of_slipway_has_a_key():
    assert all(kernels._is_ours(op_registry.get(name).compute_function) for name in op_registry.OPS)
    target = Target("llvm")
    entries = [e for name in op_registry.OPS for e in registry.strategies(name, target)]
    assert all(map(kernels._implements_ours, entries))


HAMMER = """
import sys
from slipway.codegen import cache
for turn in range(150):
    for number in range(8):
        key, content = cache.key_of(str(number)), bytes([number]) * 5000
        found = cache.load(key)
        assert found is None or found == content
        cache.store(key, content)
    cache.sweep(limit_bytes=20000)
"""


def test_processes_share_the_folder_and_see_whole_files_only(cache_folder):
    with ThreadPoolExecutor(3) as pool:
        command = [sys.executable, "-c", HAMMER]
        done = list(pool.map(
            lambda _: subprocess.run(command, capture_output=True, text=True, check=False), range(3)
        ))  # fmt: skip
    assert [d.stderr for d in done] == [""] * 3
    cache.sweep(limit_bytes=20000)
    assert sum(p.stat().st_size for p in (cache_folder / "kernels").glob("*/*")) <= 20000
