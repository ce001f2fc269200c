"""What `slipway targets` says of each target is what becomes of a kernel compiled for it."""

import pytest

import slipway as tvm
from slipway import te
from slipway.errors import SlipwayError, TargetError
from slipway.target import Target
from slipway.target.outcome import (
    FIRMWARE,
    LIBRARY,
    MEANINGS,
    NOTHING,
    OBJECT,
    PAGE,
    UNSERVED,
    outcome_of,
)

OTHERS = ["c -mtriple=wasm32", "llvm -mtriple=x86_64-pc-windows-msvc",
          "llvm -mtriple=thumbv6m-none-eabi -mcpu=cortex-m0",
          "llvm -mtriple=nvptx64-nvidia-cuda", "c -mtriple=aarch64-linux-gnu",
          "llvm -mtriple=riscv32-unknown-elf", "llvm -mtriple=aarch64",
          "c -mtriple=armv7a"]  # fmt: skip
MAGIC = {"elf": b"\x7fELF", "wasm": b"\0asm", "macho": b"\xcf\xfa\xed\xfe"}


def tiny(target):
    a = te.placeholder((16,), name="a")
    b = te.compute((16,), lambda i: te.exp(a[i]) + 1, name="b")
    schedule = te.create_schedule(b.op)
    if not Target(target).kind.is_cpu:
        schedule[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    return tvm.build(schedule, [a, b], target)


@pytest.mark.parametrize("name", [*Target.list_kinds(), *Target.list_tags(), *OTHERS])
def test_every_target_compiles_to_what_it_is_marked_with(name, tmp_path):
    target = Target(name)
    outcome = outcome_of(target)
    if outcome == NOTHING:
        with pytest.raises(SlipwayError) as caught:
            tiny(name)
        assert isinstance(caught.value, TargetError) or target.kind.is_cpu
        return
    module = tiny(name)
    form = target.parsed_triple.object_format
    if outcome in (LIBRARY, UNSERVED, PAGE):
        path = tmp_path / ("x.wasm" if form == "wasm" else "x.so")
        module.export_library(str(path))
        assert path.read_bytes()[:4] == MAGIC[form]
        assert b"__tvm_ffi_main" in path.read_bytes()
    if outcome == LIBRARY:
        module.export_library(str(tmp_path / "x.tar"))
    if outcome in (FIRMWARE, OBJECT):
        assert b"__tvm_ffi_main" in b"".join(module.compiled.objects)
        module.export_library(str(tmp_path / "x.a"))
    if outcome == FIRMWARE:
        module.save(str(tmp_path / "x.o"))
        assert (tmp_path / "x.o").read_bytes()[:4] == MAGIC["elf"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("llvm -mtriple=wasm64-unknown-unknown", "Write wasm32"),
        ("llvm -mtriple=avr", "addresses have 16 bits.*cortex-m0"),
        ("c -mtriple=msp430-none-elf", "addresses have 16 bits.*riscv32"),
        ("llvm -mtriple=mips-linux-gnu", "unknown architecture 'mips'"),
        ("llvm -mtriple=powerpc64le-linux-gnu", "unknown architecture 'powerpc64le'"),
    ],
)
def test_architectures_without_code_are_refused_in_words(target, words):
    with pytest.raises(TargetError, match=words):
        Target(target).pointer_bits  # noqa: B018


def test_all_outcomes_occur():
    found = {outcome_of(Target(name)) for name in [*Target.list_kinds(), *Target.list_tags()]}
    found.add(outcome_of(Target("llvm -mtriple=x86_64-pc-windows-msvc")))
    assert found == set(MEANINGS)


def test_objects_that_cannot_be_joined_say_what_to_write_instead(tmp_path):
    with pytest.raises(SlipwayError, match=r"\.a"):
        tiny("apple/m1").export_library(str(tmp_path / "x.o"))
    tiny("web/wasm").export_library(str(tmp_path / "x.o"))
    assert (tmp_path / "x.o").read_bytes()[:4] == b"\0asm"
    with pytest.raises(SlipwayError, match="no linker here for x86_64-pc-windows-msvc"):
        tiny("llvm -mtriple=x86_64-pc-windows-msvc").export_library(str(tmp_path / "x.so"))
