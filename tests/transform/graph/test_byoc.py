"""Parts for an accelerator: found by patterns, marked, joined, cut out, and compiled by its C."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import CodegenError, LoweringError, SlipwayError
from slipway.relay.dataflow_pattern import is_op, wildcard
from slipway.relay.interpret import interpret
from slipway.toolchain.unpack import unpack_tar

T = relay.transform


@pytest.fixture
def takes():
    """A function from names of operators to an accelerator "npu" that takes them."""
    taken = []

    def register(*names):
        for name in names:
            taken.append(name)
            tvm.ir.register_op_attr(name, "target.npu", lambda call: True, level=11)

    yield register
    for name in taken:
        tvm.ir.reset_op_attr(name, "target.npu")


def x_of(*shape):
    return relay.var("x", shape=shape or (4,))


def cut(body, **options):
    mod = tvm.IRModule.from_expr(body)
    steps = [T.AnnotateTarget("npu"), T.MergeCompilerRegions(), T.PartitionGraph(**options)]
    return T.Sequential(steps)(mod)


def parts(mod):
    return [f for _, f in mod.items() if f.attr("Compiler") == "npu"]


def data(shape=(4,)):
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype("float32")


def test_a_composite_goes_to_the_accelerator_of_its_name():
    x = x_of()
    pattern = is_op("exp")(is_op("sqrt")(wildcard()))
    mod = T.MergeComposite([("npu.root", pattern)])(
        tvm.IRModule.from_expr(relay.log(relay.exp(relay.sqrt(x))))
    )
    mod = T.PartitionGraph()(T.AnnotateTarget(["other", "npu"])(mod))
    (part,) = parts(mod)
    assert part.attrs["global_symbol"] == "tvmgen_default_npu_main_0"
    assert part.body.op.attrs["Composite"] == "npu.root"
    assert mod["main"].checked_type.ret_type.shape == (4,)
    np.testing.assert_allclose(interpret(mod, data()), np.sqrt(data()), rtol=1e-6)


def test_checks_refuse_and_earlier_entries_win():
    body = relay.exp(relay.sqrt(x_of()))
    one, both = is_op("sqrt")(wildcard()), is_op("exp")(is_op("sqrt")(wildcard()))
    mod = T.MergeComposite([("npu.both", both, lambda e: False), ("npu.one", one)])(
        tvm.IRModule.from_expr(body)
    )
    names = [
        e.attr("Composite")
        for e in relay.analysis.post_order(mod["main"])
        if isinstance(e, relay.Function) and e.attr("Composite")
    ]
    assert names == ["npu.one"]
    with pytest.raises(LoweringError, match=r"\(name, pattern\)"):
        T.MergeComposite([("npu.both", "exp")])(mod)


def test_neighbours_become_one_part(takes):
    takes("exp", "sqrt")
    mod = cut(relay.exp(relay.sqrt(x_of())))
    assert len(parts(mod)) == 1
    assert relay.analysis.list_op_freqs(parts(mod)[0]) == {"sqrt": 1, "exp": 1}


def test_a_detour_keeps_them_apart(takes):
    """exp(a) + log(a): the sum needs the log, and the log needs a: one part would wait for it."""
    takes("sqrt", "add")
    a = relay.sqrt(x_of())
    mod = cut(relay.add(a, relay.log(a)))
    assert len(parts(mod)) == 2
    np.testing.assert_allclose(
        interpret(mod, data()), np.sqrt(data()) + np.log(np.sqrt(data())), rtol=1e-6
    )


def test_a_detour_through_another_part_of_the_same_accelerator(takes):
    takes("sqrt", "add", "exp")
    a = relay.sqrt(x_of())
    b = relay.exp(relay.log(a))
    mod = cut(relay.add(a, b))
    assert len(parts(mod)) == 2  # a; exp and the sum
    want = np.sqrt(data()) + np.exp(np.log(np.sqrt(data())))
    np.testing.assert_allclose(interpret(mod, data()), want, rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_keep_their_meaning(seed, takes):
    takes("sqrt", "add", "abs")
    rng = np.random.default_rng(seed)
    values = [x_of()]
    for _ in range(14):
        kind = rng.integers(0, 4)
        a, b = (values[i] for i in rng.integers(max(0, len(values) - 4), len(values), 2))
        values.append([relay.sqrt(a), relay.abs(a), relay.tanh(a), relay.add(a, b)][kind])
    whole = relay.Function((values[0],), relay.Tuple((values[-1], values[-3])))
    mod = cut(whole)
    plain = interpret(whole, data())
    for found, want in zip(interpret(mod, data()), plain, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6)


def test_a_part_may_have_several_results(takes):
    takes("sqrt", "exp")
    a = relay.sqrt(x_of())
    mod = cut(relay.Tuple((relay.log(a), relay.exp(a))))
    (part,) = parts(mod)
    assert len(part.body.checked_type.fields) == 2
    first, second = interpret(mod, data())
    np.testing.assert_allclose(first, np.log(np.sqrt(data())), rtol=1e-6)
    np.testing.assert_allclose(second, np.exp(np.sqrt(data())), rtol=1e-6)


def test_constants_lie_inside_or_are_handed_over(takes):
    takes("add")
    body = relay.add(x_of(), relay.const(np.ones(4, "float32")))
    assert len(parts(cut(body))[0].params) == 1
    assert len(parts(cut(body, bind_constants=False))[0].params) == 2


def doubles(function, status=0):
    """C for a part of one input and one result: twice the input."""
    symbol = function.attrs["global_symbol"]
    return (
        "#include <stdint.h>\n"
        f"int32_t {symbol}(const float *x, float *y) {{\n"
        f"  for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];\n  return {status};\n}}\n"
    )


@pytest.fixture
def generator():
    """A function that registers the code generator of "npu"."""
    yield lambda f: tvm.register_func("relay.ext.npu", f, override=True)
    if tvm.get_global_func("relay.ext.npu", allow_missing=True):
        from slipway.runtime.packed_func import remove_global_func

        remove_global_func("relay.ext.npu")


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_the_parts_c_runs_in_the_model(target, executor, takes, generator):
    takes("sqrt")
    generator(doubles)
    mod = cut(relay.exp(relay.sqrt(relay.log(x_of()))))
    lib = relay.build(mod, target, executor=relay.backend.Executor(executor))
    run = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    run.run(x=data())
    np.testing.assert_allclose(run.get_output(0).numpy(), data() ** 2, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (None, LoweringError, r"no code generator: .*relay\.ext\.npu"),
        (lambda f: 3, CodegenError, r"relay\.ext\.npu returned int for tvmgen_default_npu_main_0"),
        (lambda f: "int other(void);", CodegenError, "defines no function tvmgen_default_npu"),
        (lambda f: doubles(f).replace("y[i]", "z[i]"), SlipwayError, "undeclared"),
    ],
)
def test_what_a_code_generator_does_wrong_is_named(make, error, words, takes, generator):
    takes("sqrt")
    if make is not None:
        generator(make)
    with pytest.raises(error, match=words):
        relay.build(cut(relay.sqrt(x_of())), "llvm")


def test_a_part_that_fails_is_named(takes, generator):
    takes("sqrt")
    generator(lambda f: doubles(f, status=7))
    lib = relay.build(cut(relay.sqrt(x_of())), "llvm")
    run = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    with pytest.raises(Exception, match=r"tvmgen_default_npu_main_0.*npu.*failure"):
        run.run(x=data())


def test_marks_of_two_accelerators_in_one_part_are_refused():
    begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end
    body = end(relay.exp(begin(x_of(), "one")), "two")
    with pytest.raises(LoweringError, match=r"'one'|'two'"):
        T.PartitionGraph()(tvm.IRModule.from_expr(body))


def test_the_c_of_a_whole_program_has_the_part(takes, generator, tmp_path):
    """What a part writes through is no constant: the C compiles without a warning."""
    import shutil
    import subprocess

    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    takes("sqrt")
    generator(doubles)
    executor = relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"})
    runtime = relay.backend.Runtime("crt")
    lib = relay.build(cut(relay.exp(relay.sqrt(x_of()))), "c", executor=executor, runtime=runtime)
    tvm.micro.export_model_library_format(lib, tmp_path / "model.tar")
    unpack_tar(tmp_path / "model.tar", tmp_path)
    (source,) = (tmp_path / "codegen" / "host" / "src").glob("*lib0.c")
    include = f"-I{tmp_path / 'codegen' / 'host' / 'include'}"
    command = ["gcc", "-c", "-Wall", "-Werror", "-Wcast-qual", include, str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "part.o")], check=True)


def test_a_part_with_several_results_gives_each(takes):
    takes("split", "sqrt")
    pieces = relay.split(relay.sqrt(x_of(6)), 3)
    mod = cut(relay.exp(pieces[0]) + pieces[2])
    (part,) = parts(mod)
    assert len(part.checked_type.ret_type.fields) == 2  # the third is not read
    expected = interpret(
        tvm.IRModule.from_expr(relay.exp(pieces[0]) + pieces[2])["main"], data((6,))
    )
    np.testing.assert_allclose(interpret(mod, data((6,))), expected)


def test_a_marked_tuple_is_marked_by_its_parts():
    begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end
    pieces = relay.split(begin(x_of(6), "npu"), 2)
    ended = end(pieces.astuple() if hasattr(pieces, "astuple") else pieces, "npu")
    mod = T.PartitionGraph()(tvm.IRModule.from_expr(relay.Tuple([ended[0], ended[1]])))
    assert [len(f.checked_type.ret_type.fields) for f in parts(mod)] == [2]


def test_a_constant_between_marks_lies_in_the_part():
    begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end
    weight = relay.const(np.ones((4,), "float32"))
    body = end(begin(x_of(), "npu") + begin(weight, "npu"), "npu")
    for bound in (True, False):
        (part,) = parts(T.PartitionGraph(bind_constants=bound)(tvm.IRModule.from_expr(body)))
        assert len(part.params) == (1 if bound else 2)


def test_kernels_of_others_are_not_fused(takes):
    takes("sqrt", "exp")
    mod = cut(relay.log(relay.exp(relay.sqrt(x_of()))))
    fused = T.FuseOps()(mod)
    assert tvm.ir.structural_equal(parts(fused)[0], parts(mod)[0])
