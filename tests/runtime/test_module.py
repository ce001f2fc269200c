from functools import partial

import numpy as np
import pytest

from slipway import runtime
from slipway.errors import ArtifactError, ExecutionError
from slipway.runtime import cpu, load_module
from slipway.runtime import ndarray as nd
from slipway.runtime.packed_func import get_global_func, register_func, remove_global_func


def test_loaded_library_computes(kernels_library):
    module = load_module(kernels_library)
    a = nd.array(np.arange(1000, dtype="float32"))
    b = nd.empty((1000,), "float32")
    module["add_one"](a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() + 1)


def test_calling_the_module_calls_its_entry(kernels_library):
    module = load_module(kernels_library)
    assert module.entry_name == "add_one"
    a, b = nd.array(np.ones(8, "float32")), nd.empty((8,))
    module(a, b)
    assert b.numpy()[0] == 2


def test_objects_and_archives_are_linked_on_load(kernels_object, tmp_path):
    from slipway.toolchain.ar import write_archive

    archive = tmp_path / "kernels.a"
    archive.write_bytes(write_archive({"a_rather_long_name.o": kernels_object.read_bytes()}))
    for path in (kernels_object, archive):
        a, b = nd.array(np.ones(8, "float32")), nd.empty((8,))
        load_module(path)(a, b)
        assert b.numpy()[0] == 2


def test_same_path_written_again_is_a_new_library(kernels_library, tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(kernels_library.read_bytes())
    first = load_module(path)
    assert [first["count"](), first["count"]()] == [1, 2]
    path.write_bytes(kernels_library.read_bytes())
    assert load_module(path)["count"]() == 1


def test_error_of_a_kernel_keeps_class_and_words(kernels_library):
    module = load_module(kernels_library)
    with pytest.raises(ValueError, match="this kernel always fails"):
        module["fail"]()
    with pytest.raises(TypeError, match="takes 2 arguments"):
        module["add_one"](1)


def test_kernel_that_fails_without_a_reason_ends_no_process(kernels_library):
    """Called directly, timed or through another: tvm-ffi ends Python where no error is set."""
    module = load_module(kernels_library)
    register_func("tests.module.silent", module["silent"], override=True)
    for call in (
        module["silent"],
        partial(module["call"], "tests.module.silent"),
        module.time_evaluator("silent", cpu(0)),
    ):
        with pytest.raises(ExecutionError, match="failed without a reason"):
            call(1)
    with pytest.raises(ValueError, match="this kernel always fails"):
        module["fail"]()


def test_missing_function_lists_those_there_are(kernels_library):
    module = load_module(kernels_library)
    with pytest.raises(AttributeError, match=r"no function 'ad_one'.*Did you mean 'add_one'"):
        module["ad_one"]


def test_kernel_calls_global_function_and_its_exception_survives(kernels_library):
    class Odd(Exception):
        pass

    @register_func("test.double", override=True)
    def double(x):
        if x < 0:
            raise Odd("negative")
        return 2 * x

    module = load_module(kernels_library)
    try:
        assert module["call"]("test.double", 21) == 42
        with pytest.raises(Odd, match="negative"):
            module["call"]("test.double", -1)
        with pytest.raises(ValueError, match="no such function"):
            module["call"]("test.nowhere", 1)
    finally:
        remove_global_func("test.double")


def test_time_evaluator_returns_seconds_of_each_repeat(kernels_library):
    module = load_module(kernels_library)
    a, b = nd.array(np.ones(1 << 16, "float32")), nd.empty((1 << 16,))
    result = module.time_evaluator("add_one", ctx=cpu(0), number=3, repeat=5)(a, b)
    assert len(result.results) == 5
    assert 1e-7 < result.min <= result.median <= result.max < 1
    assert result.mean == pytest.approx(sum(result.results) / 5)


def test_time_evaluator_calls_preproc_before_each_repeat(kernels_library):
    calls = []
    evaluator = load_module(kernels_library).time_evaluator(
        "count", cpu(0), number=4, repeat=3, f_preproc=lambda *args: calls.append(args)
    )
    evaluator()
    assert len(calls) == 3
    module = load_module(kernels_library)
    module.time_evaluator("count", cpu(0), number=4, repeat=3)()
    assert module["count"]() == 1 + 12 + 1  # the warm-up, the measured runs, this one


def test_time_evaluator_reports_the_kernels_error(kernels_library):
    with pytest.raises(ValueError, match="always fails"):
        load_module(kernels_library).time_evaluator("fail", cpu(0))()


def test_min_repeat_ms_raises_the_number(kernels_library):
    module = load_module(kernels_library)
    module.time_evaluator("count", cpu(0), number=1, repeat=1, min_repeat_ms=5)()
    assert module["count"]() > 1000


def test_other_devices_are_refused(kernels_library):
    with pytest.raises(ValueError, match=r"ext_dev\(0\) is not a device this process can use"):
        load_module(kernels_library).time_evaluator("count", runtime.device("ext_dev", 0))


def test_library_for_another_machine_is_named(tmp_path):
    from slipway.toolchain.link import link_shared

    from .conftest import compile_kernels

    triple = "aarch64-linux-gnu"
    compile_kernels(triple, tmp_path / "k.o")
    path = link_shared([tmp_path / "k.o"], triple, tmp_path / "k.so")
    with pytest.raises(ArtifactError, match=r"compiled for aarch64.*this machine is x86-64"):
        load_module(path)


def test_missing_feature_is_named_before_anything_runs(tmp_path, host_triple):
    from slipway.toolchain.link import link_shared

    from .conftest import compile_kernels

    compile_kernels(host_triple, tmp_path / "k.o", isa=["xop", "sse2"])
    path = link_shared([tmp_path / "k.o"], host_triple, tmp_path / "k.so")
    with pytest.raises(ArtifactError, match=r"needs the processor features xop"):
        load_module(path)


def test_get_global_func_missing():
    with pytest.raises(ValueError, match="no global function"):
        get_global_func("test.not_there")
    assert get_global_func("test.not_there", allow_missing=True) is None


@pytest.mark.parametrize(("kind", "language"), [("metal", "metal"), ("webgpu", "wgsl")])
def test_devices_without_a_driver_interface_say_what_their_text_is_for(kind, language):
    with pytest.raises(ExecutionError, match=rf'get_source\("{language}"\)\) is for a program of'):
        nd.array(np.zeros(4, "float32"), runtime.device(kind, 0))
