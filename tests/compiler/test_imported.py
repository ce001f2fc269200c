"""Modules that are exported with what they import, object files among them."""

import ctypes

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ExecutionError


def adding(amount, name, target="llvm"):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + float(amount), name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target, name=name)


def result(function):
    out = tvm.nd.empty((8,))
    function(tvm.nd.array(np.zeros(8, "float32")), out)
    return out.numpy()[0]


def test_a_library_has_the_functions_of_imported_modules(tmp_path):
    one, two, three = adding(1, "one"), adding(2, "two"), adding(3, "three")
    two.import_module(three)
    one.import_module(two)
    one.export_library(tmp_path / "all.so")
    loaded = tvm.runtime.load_module(tmp_path / "all.so")
    assert loaded.function_names() == ["one", "two", "three"]
    assert [result(loaded[name]) for name in ("one", "two", "three")] == [1, 2, 3]
    assert not loaded.is_dso_exportable
    assert result(loaded) == 1  # its own entry
    ctypes.CDLL(str(tmp_path / "all.so"))
    assert result(tvm.runtime.system_lib()["three"]) == 3


def test_an_object_file_is_a_module(tmp_path):
    adding(2, "part").save(tmp_path / "part.o")
    part = tvm.runtime.load_static_library(tmp_path / "part.o", ["part"])
    assert part.implements_function("part")
    assert not part.implements_function("other")
    assert result(part["part"]) == 2
    whole = adding(1, "whole")
    whole.import_module(part)
    whole.export_library(tmp_path / "whole.a")
    assert result(tvm.runtime.load_module(tmp_path / "whole.a")["part"]) == 2


def test_what_cannot_be_exported_together_says_so(tmp_path):
    whole = adding(1, "same")
    whole.import_module(adding(2, "same"))
    with pytest.raises(ExecutionError, match="have a function 'same'"):
        whole.export_library(tmp_path / "x.so")
    other = adding(1, "one")
    other.import_module(adding(2, "two", "llvm -mtriple=aarch64-linux-gnu"))
    with pytest.raises(ExecutionError, match="compile both for one target"):
        other.export_library(tmp_path / "x.so")
    proxy = tvm.support.FrontendTestModule()
    proxy["f"] = lambda: 1
    last = adding(1, "last")
    last.import_module(proxy)
    with pytest.raises(ExecutionError, match="whose code is in no object"):
        last.export_library(tmp_path / "x.so")


def test_a_python_function_hands_on_the_tensors_it_is_lent():
    inner = adding(5, "inner")

    def between(a, b):
        inner(a, b)

    tvm.register_func("test.lend", between, override=True)
    a = te.placeholder((8,), name="a")
    b = te.extern((8,), [a], lambda i, o: tvm.tir.call_packed("test.lend", i[0], o[0]), name="b")
    assert result(tvm.build(te.create_schedule(b.op), [a, b])) == 5
