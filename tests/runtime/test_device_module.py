"""Code of devices as modules: the texts that it has, and those that it has not."""

import pytest

import slipway as tvm
from slipway import te
from slipway.errors import CodegenError
from slipway.runtime import load_module
from slipway.target import Target

# Target -> its formats, the file of what its driver takes, and whether that is text.
TARGETS = {
    "opencl": ("cl, opencl", ".cl", True),
    "cuda -arch=sm_80": ("cuda, ll, ptx", ".ptx", True),
    "rocm -mcpu=gfx90a": ("asm, hip, ll", ".hsaco", False),
    "vulkan": ("spirv", ".spv", False),
    "metal": ("metal", ".metal", True),
    "webgpu": ("wgsl", ".wgsl", True),
}


def tripled(target):
    a = te.placeholder((64,), name="a")
    out = te.compute((64,), lambda i: a[i] * 3.0, name="out")
    s = te.create_schedule(out.op)
    s[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    return tvm.build(s, [a, out], Target(target, host="llvm"), name="tripled")


@pytest.mark.parametrize("target", TARGETS)
def test_every_format_is_text_and_others_are_refused(target):
    formats, suffix, _ = TARGETS[target]
    (code,) = tripled(target).imported_modules
    texts = {name: code.get_source(name) for name in formats.split(", ")}
    assert all("tripled_kernel0" in text for text in texts.values())
    assert code.get_source() in texts.values()
    for name in ("nonsense", "hsaco", "sass"):
        with pytest.raises(CodegenError) as error:
            code.get_source(name)
        assert f"no source in format {name!r}: they have {formats}." in str(error.value)
        assert f'save("NAME{suffix}")' in str(error.value)
    if "ll" in texts:
        assert code.get_source("llvm") == texts["ll"]


@pytest.mark.parametrize("suffix", [".tar", ".so"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_library_that_was_loaded_has_its_kernels(target, suffix, tmp_path):
    built = tripled(target)
    built.export_library(tmp_path / f"tripled{suffix}")
    loaded = load_module(tmp_path / f"tripled{suffix}")
    (code,), (before,) = loaded.imported_modules, built.imported_modules
    assert (code.type_key, code.device_type) == (before.type_key, before.device_type)
    assert code.code == before.code
    if TARGETS[target][2]:
        assert code.get_source() == before.get_source()
    else:
        with pytest.raises(CodegenError, match="they have none: this is code without its text"):
            code.get_source("asm")
    code.save(tmp_path / f"again{TARGETS[target][1]}")
    assert (tmp_path / f"again{TARGETS[target][1]}").read_bytes() == before.code


def test_a_library_for_a_processor_has_none(tmp_path):
    a = te.placeholder((64,), name="a")
    out = te.compute((64,), lambda i: a[i] * 3.0, name="out")
    tvm.build(te.create_schedule(out.op), [a, out], "llvm").export_library(tmp_path / "f.so")
    assert load_module(tmp_path / "f.so").imported_modules == []
