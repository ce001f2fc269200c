"""`relay.vm.compile` and `runtime.vm.VirtualMachine`: scripts of classic TVM that use them."""

import sys

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ArtifactError, ExecutionError, NotAvailableError
from slipway.runtime import load_module, profiler_vm
from slipway.runtime.vm import COMPILING, Executable, VirtualMachine

X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
B = np.ones(3, np.float32)


def pair():
    x, b = relay.var("x", shape=(2, 3)), relay.var("b", shape=(3,))
    return tvm.IRModule.from_expr(relay.Tuple((relay.nn.relu(x - 2.0) + b, relay.exp(x))))


def test_a_tuple_with_parameters():
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldScaleAxis"]):
        exe = relay.vm.compile(pair(), target="llvm", params={"b": B})
    vm = VirtualMachine(exe, tvm.cpu())
    vm.set_input("main", x=tvm.nd.array(X))
    first, second = vm.run()
    np.testing.assert_allclose(first.numpy(), np.maximum(X - 2, 0) + 1)
    np.testing.assert_allclose(second.numpy(), np.exp(X), rtol=1e-5)
    again = vm.invoke("main", X + 1)
    np.testing.assert_allclose(again[1].numpy(), np.exp(X + 1), rtol=1e-5)
    np.testing.assert_allclose(vm.get_outputs()[1].numpy(), np.exp(X + 1), rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), np.exp(X), rtol=1e-5)  # its own memory


def test_one_result_and_inputs_in_order():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    vm = VirtualMachine(relay.vm.compile(relay.Function([x, y], x - y)), [tvm.cpu(0)])
    np.testing.assert_array_equal(vm.run(B, 2 * B).numpy(), -B)
    np.testing.assert_array_equal(vm.get_outputs()[0].numpy(), -B)


def test_open_sizes_and_branches():
    x = relay.var("x", shape=(relay.Any(), 2))
    vm = VirtualMachine(relay.vm.compile(relay.Function([x], relay.nn.relu(x))), tvm.cpu())
    for rows in (1, 3):
        given = np.full((rows, 2), -1, np.float32)
        np.testing.assert_array_equal(vm.run(given).numpy(), np.zeros((rows, 2)))
    x, flag = relay.var("x", shape=(3,)), relay.var("flag", shape=(), dtype="bool")
    chosen = relay.Function((x, flag), relay.If(flag, relay.exp(x), relay.negative(x)))
    vm = VirtualMachine(relay.vm.compile(chosen), tvm.cpu())
    np.testing.assert_array_equal(vm.run(B, np.array(False)).numpy(), -B)


def test_mistakes_are_named():
    exe = relay.vm.compile(pair())
    vm = VirtualMachine(exe, tvm.cpu())
    with pytest.raises(ExecutionError, match="call run first"):
        vm.get_outputs()
    with pytest.raises(ExecutionError, match="no function 'other'"):
        vm.invoke("other", X)
    with pytest.raises(ExecutionError, match="'b' is missing"):
        vm.run(X)
    with pytest.raises(ExecutionError, match=r"there is no cuda\(0\) here"):
        VirtualMachine(exe, tvm.cuda())
    with pytest.raises(
        ExecutionError, match=r"takes what .*load_exec returns, or a library of a model, not str"
    ):
        VirtualMachine("model.so", tvm.cpu())
    with pytest.raises(ExecutionError, match="takes a device, as"):
        VirtualMachine(exe, "cpu")
    with pytest.raises(ExecutionError, match="one input"):
        vm.set_one_input("main", "x")
    with pytest.raises(NotAvailableError, match=r"relay\.vm\.compile"):
        tvm.runtime.vm.convert()


def nested(size):
    """Results of an open number of rows, nested, with a branch."""
    x, flag = relay.var("x", shape=(size, 3)), relay.var("flag", shape=(), dtype="bool")
    chosen = relay.If(flag, relay.exp(x), relay.negative(x))
    main = relay.Function([x, flag], relay.Tuple([chosen, relay.Tuple([relay.sum(x, axis=0), x])]))
    return tvm.IRModule.from_expr(main)


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_what_is_saved_runs_every_size_when_it_is_loaded(tmp_path, suffix):
    code, lib = relay.vm.compile(nested(relay.Dim("n", 1, 8)), "llvm").save()
    lib.export_library(str(tmp_path / f"lib.{suffix}"))
    (tmp_path / "code.ro").write_bytes(code)
    library = load_module(str(tmp_path / f"lib.{suffix}"))
    exe = Executable.load_exec(bytearray((tmp_path / "code.ro").read_bytes()), library)
    assert exe.get_function_params("main") == ["x", "flag"]
    assert exe.globals == ["main"]
    assert exe.stats.startswith("main: 2 inputs, ")
    assert exe.stats.endswith(" kernels, 3 outputs")
    assert all(name in exe.bytecode for name in exe.primitive_ops)
    vm = VirtualMachine(exe, tvm.cpu())
    for rows in (1, 5, 8, 2):
        given = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        vm.set_one_input("main", "x", given)
        vm.set_one_input("main", flag=np.array(rows % 2 == 0))
        vm.invoke_stateful("main")
        first, (total, whole) = vm.get_outputs()
        want = np.exp(given) if rows % 2 == 0 else -given
        np.testing.assert_allclose(first.numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(total.numpy(), given.sum(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(whole.numpy(), given)
    with pytest.raises(ExecutionError, match="n is 1 to 8"):
        vm.run(np.zeros((9, 3), np.float32), np.array(True))
    assert vm.get_input_index("flag") == 1
    assert vm.get_input_index("other") == -1


@pytest.mark.parametrize(
    "code",
    [b"", b"\xff\x00", b"[]", b"{}", b'{"slipway_vm": 1, "inputs": ["x"], "result": [1, 1]}',
     b'{"slipway_vm": 1, "inputs": 3, "result": 0}', b"[" * 100000],
)  # fmt: skip
def test_code_that_is_none(code):
    with pytest.raises(ArtifactError, match=r"not what Executable\.save gave"):
        Executable.load_exec(code, None)
    with pytest.raises(ArtifactError, match="format 9"):
        Executable.load_exec(b'{"slipway_vm": 9, "inputs": [], "result": 0}', None)


def counting():
    """The sum of 1 to n, by a function that calls itself."""
    n, m = (relay.var(name, shape=(), dtype="int32") for name in "nm")
    own = relay.GlobalVar("sum_up")
    less = relay.Call(own, [n - relay.const(1)])
    chosen = relay.If(relay.equal(n, relay.const(0)), n, less + n)
    mod = tvm.IRModule({})
    mod[own] = relay.Function([n], chosen, relay.TensorType([], "int32"))
    mod["main"] = relay.Function([m], relay.Call(own, [m]))
    return mod


def saved_and_loaded(exe, folder):
    code, lib = exe.save()
    lib.export_library(str(folder / "lib.so"))
    (folder / "code.ro").write_bytes(code)
    return Executable.load_exec(
        bytearray((folder / "code.ro").read_bytes()), load_module(str(folder / "lib.so"))
    )


def test_a_model_of_any_size_is_saved_with_its_constants(tmp_path):
    x, w = relay.var("x", shape=(relay.Any(), 3)), relay.var("w", shape=(2, 3))
    main = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    weights = np.random.default_rng(0).standard_normal((2, 3)).astype("float32")
    exe = relay.vm.compile(tvm.IRModule.from_expr(main), "llvm", params={"w": weights})
    for one in (exe, saved_and_loaded(exe, tmp_path)):
        assert one.stats == "main: 1 inputs, compiled when it is called"
        vm = VirtualMachine(one, tvm.cpu())
        for rows in (1, 5):
            given = np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")
            want = np.maximum(given @ weights.T, 0)
            np.testing.assert_allclose(vm.run(given).numpy(), want, rtol=1e-5, atol=1e-6)
    again = saved_and_loaded(saved_and_loaded(exe, tmp_path), tmp_path)
    assert VirtualMachine(again, tvm.cpu()).run(np.ones((4, 3), "float32")).shape == (4, 2)


def test_a_function_that_calls_itself_is_saved(tmp_path):
    exe = saved_and_loaded(relay.vm.compile(counting()), tmp_path)
    assert int(VirtualMachine(exe, tvm.cpu()).run(np.array(7, "int32")).numpy()) == 28
    with pytest.raises(ExecutionError, match=r"on this process's cpu\(0\)"):
        exe.on([tvm.opencl(0)])


def test_a_model_that_is_damaged_or_meets_no_compiler(monkeypatch):
    code, lib = relay.vm.compile(counting()).save()
    with pytest.raises(ArtifactError, match=r"damaged: 'main' is missing|damaged"):
        Executable.load_exec(code.replace(b"relay.If", b"relay.Of"), lib)
    with pytest.raises(ArtifactError, match="holds no model"):
        Executable.load_exec(code.replace(b'"target"', b'"tarjet"'), lib)
    monkeypatch.setitem(sys.modules, "slipway.compiler.vm", None)
    monkeypatch.setattr(COMPILING, "__dict__", {})
    with pytest.raises(ArtifactError, match=r"no compiler here .*relay\.Dim"):
        Executable.load_exec(code, lib)


def test_in_steps_and_as_an_executor():
    compiler = relay.vm.VMCompiler()
    with pytest.raises(ExecutionError, match="call lower"):
        compiler.get_exec()
    compiler.set_params({"b": B})
    compiler.lower(pair(), target="llvm")
    compiler.codegen()
    vm = VirtualMachine(compiler.get_exec(), tvm.cpu())
    np.testing.assert_allclose(vm.run(X)[0].numpy(), np.maximum(X - 2, 0) + 1)
    vm.set_input("main", X)
    assert vm.benchmark(tvm.cpu(), repeat=1, number=1).mean > 0
    executor = relay.vm.VMExecutor(pair(), tvm.cpu(), "llvm", {"b": B})
    np.testing.assert_allclose(executor.evaluate()(X)[1].numpy(), np.exp(X), rtol=1e-5)
    np.testing.assert_allclose(executor.vm.run(X)[1].numpy(), np.exp(X), rtol=1e-5)


def test_the_graph_passes_alone_give_what_can_be_compiled_further():
    for given in ("llvm", tvm.target.Target("llvm", host="llvm")):
        for optimize in (relay.vm.VMCompiler().optimize, relay.optimize):
            mod, params = optimize(pair(), target=given, params={"b": B})
            assert "fn(" in (text := str(mod)) or "Primitive" in text
            assert params == {}
            made = relay.create_executor("graph", mod=mod, target=given).evaluate()(X)
            np.testing.assert_allclose(made[1].numpy(), np.exp(X), rtol=1e-5)


def test_on_a_device_of_a_session(tmp_path):
    from slipway import rpc

    code, lib = relay.vm.compile(nested(relay.Dim("n", 1, 8)), "llvm").save()
    lib.export_library(str(tmp_path / "lib.tar"))
    session = rpc.LocalSession()
    session.upload(str(tmp_path / "lib.tar"))
    exe = Executable.load_exec(code, session.load_module("lib.tar"))
    vm = VirtualMachine(exe, session.cpu())
    for rows in (3, 7):
        given = np.full((rows, 3), rows, np.float32)
        first, (total, _) = vm.run(given, np.array(False))
        np.testing.assert_array_equal(first.numpy(), -given)
        np.testing.assert_array_equal(total.numpy(), given.sum(0))
        flat = profiler_vm.VirtualMachineProfiler(session.load_module("lib.tar"), session.cpu())
        first, total, _ = flat.run(given, np.array(False))
        np.testing.assert_array_equal(first.numpy(), -given)
        np.testing.assert_array_equal(total.numpy(), given.sum(0))
        assert flat.profile().calls[0]["Device"] == str(session.cpu())
    with pytest.raises(ExecutionError, match="remote"):
        VirtualMachine(Executable.load_exec(code, lib), session.cpu())


def test_a_library_alone_has_the_inputs_that_are_no_parameters(tmp_path):
    relay.vm.compile(pair(), "llvm", params={"b": B}).mod.export_library(str(tmp_path / "lib.so"))
    found = VirtualMachine(load_module(tmp_path / "lib.so"), tvm.cpu()).invoke("main", X)
    np.testing.assert_allclose(found[0].numpy(), np.maximum(X - 2, 0) + 1)
    np.testing.assert_allclose(found[1].numpy(), np.exp(X), rtol=1e-5)
    a = tvm.te.placeholder((2,), name="a")
    b = tvm.te.compute((2,), lambda i: a[i] + 1.0)
    kernels = tvm.build(tvm.te.create_schedule(b.op), [a, b])
    for other in (kernels, load_module(tmp_path / "lib.so")["default"], None):
        with pytest.raises(ExecutionError, match="or a library of a model, not"):
            VirtualMachine(other, tvm.cpu())


def test_segments_of_open_data_and_ids_are_as_many_as_the_ids_say():
    data = relay.var("data", shape=(relay.Any(), relay.Any()))
    ids = relay.var("ids", shape=(relay.Any(),), dtype="int32")
    vm = VirtualMachine(relay.vm.compile(relay.segment_sum(data, ids)), tvm.cpu())
    for given in ([0, 2, 0], [4]):
        x = np.arange(3 * len(given), dtype=np.float32).reshape(len(given), 3)
        wanted = np.zeros((max(given) + 1, 3), np.float32)
        np.add.at(wanted, given, x)
        found = vm.run(data=x, ids=np.array(given, np.int32))
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_runs_are_measured():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(relay.Any(),))
    vm = VirtualMachine(relay.vm.compile(relay.Function([x], relay.exp(x))), tvm.cpu())
    times = vm.benchmark(tvm.cpu(), B, repeat=3, number=2, end_to_end=True)
    assert len(times.results) == 3
    assert 0 < times.min <= times.median <= times.max
    opened = VirtualMachine(relay.vm.compile(relay.Function([y], relay.exp(y))), tvm.cpu())
    assert len(opened.benchmark(tvm.cpu(), y=B, repeat=1).results) == 1
    with pytest.raises(ExecutionError, match="no function 'other'"):
        vm.benchmark(tvm.cpu(), B, func_name="other")
    with pytest.raises(ExecutionError, match="'x' is missing"):
        vm.benchmark(tvm.cpu())
