"""What ``tvm.build`` returns, loaded into this process."""

import threading
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentValueError, ExecutionError
from slipway.runtime.libraries.library import DsoLibrary
from slipway.target import Target


def adder(constant, target="llvm"):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + constant, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target)


def run(module):
    out = tvm.nd.array(np.zeros(4, "float32"))
    module(tvm.nd.array(np.zeros(4, "float32")), out)
    return out.numpy()


def mapping_of(address):
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            return line
    raise AssertionError(f"{address:#x} is not mapped")


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_was_built_is_loaded_by_the_system_like_an_exported_file():
    """A loader of LLVM's places sections apart, and aborts where they are 2 GB from each other."""
    module = adder(1)
    library = module.loaded().library
    assert isinstance(library, DsoLibrary)
    for symbol in ("__tvm_ffi_main", "__slipway_metadata", "__slipway_parallel_launch"):
        assert "memfd:slipway-library" in mapping_of(library.address(symbol))
    np.testing.assert_array_equal(run(module), 1)


def test_modules_in_one_process_stay_apart_and_take_no_file_numbers():
    modules = [adder(n) for n in range(30)]
    np.testing.assert_array_equal(run(modules[0]), 0)
    before = open_files()
    for n, module in enumerate(modules):
        np.testing.assert_array_equal(run(module), n)
        if n % 2:
            modules[n // 2] = None
    np.testing.assert_array_equal(run(modules[-1]), 29)
    assert open_files() == before


def test_threads_load_a_module_once():
    module, found = adder(3), []
    threads = [threading.Thread(target=lambda: found.append(module.loaded())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_code_for_another_machine_is_not_loaded():
    with pytest.raises(ExecutionError, match="cannot be called here"):
        adder(1, "llvm -mtriple=aarch64-linux-gnu")(None, None)


def test_the_target_of_a_module_may_stand_second():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    mod = te.create_prim_func([A, B])
    assert tvm.build(mod, "c").get_source("c")
    assert tvm.build(tvm.IRModule({"main": mod}), Target("c")).get_source("c")
    with pytest.raises(ArgumentValueError, match=r"build got 'c' in the place of `args`, and targ"):
        tvm.build(mod, "c", target="llvm")
    with pytest.raises(ArgumentValueError, match="a schedule needs `args`"):
        tvm.build(te.create_schedule(B.op), "llvm")
