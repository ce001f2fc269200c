"""What a target's words say of a core: options, a named CPU, and the core of all others."""

import pytest

from slipway.codegen.llvm.module import attributes_of
from slipway.errors import TargetError
from slipway.target import Target
from slipway.target.cores import Core, core_of, host_options

X86 = "llvm -mtriple=x86_64-linux-gnu"


def test_a_cpu_that_the_table_does_not_know_has_the_core_of_all_others():
    for text in (X86, f"{X86} -mcpu=x86-64-v3"):
        target = Target(text)
        assert target.core == Core(2 * target.vector_bits, 2 * target.vector_bits)


@pytest.mark.parametrize("text", ["llvm", "llvm -mcpu=native"])
def test_this_machine_has_the_core_of_the_cpu_that_it_is(text):
    host = Target(text)
    assert host.core == core_of(host.cpu, host.vector_bits, {})
    assert "tune-cpu" not in attributes_of(host)


def test_a_named_cpu_has_its_own():
    core = Target(f"{X86} -mcpu=sapphirerapids").core
    assert (core.fma_bits, core.l2_bytes, core.l1_sets) == (1024, 2 << 20, 64)
    small = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72").core
    assert (small.fma_bits, small.l1_sets, small.l2_bytes) == (128, 256, 512 << 10)


def test_options_win_over_the_named_cpu():
    words = "-mcpu=znver4 -l2-cache-bytes=2097152 -fma-units=2 -fma-latency=3 -l1-cache-ways=4"
    core = Target(f"{X86} {words} -l1-cache-bytes=65536 -cache-line-bytes=128").core
    assert core == Core(1024, 512, 3, 65536, 4, 128, 2 << 20)
    assert Target(str(Target(f"{X86} {words}"))).core == Target(f"{X86} {words}").core


def test_a_cache_that_is_no_number_is_an_error():
    with pytest.raises(TargetError, match="l2-cache-bytes"):
        Target(f"{X86} -l2-cache-bytes=lots")


def test_a_core_without_vectors():
    assert core_of("cortex-m4", 0, {}).fma_bits == 64


def test_the_words_for_a_machine_come_from_its_caches(tmp_path):
    caches = (("1", "Data", "48K", "12", "0"), ("1", "Instruction", "32K", "8", "0"),
              ("2", "Unified", "1024K", "16", "0-3"))  # fmt: skip
    for number, values in enumerate(caches):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        names = ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
        for name, value in zip(names, values, strict=True):
            (folder / name).write_text(value + "\n")
        (folder / "coherency_line_size").write_text("64\n")
    words = host_options(tmp_path)
    assert words == (
        "-l1-cache-bytes=49152 -l1-cache-ways=12 -cache-line-bytes=64 -l2-cache-bytes=262144"
    )
    assert Target(f"llvm {words}").core.l2_bytes == 262144
    assert host_options(tmp_path / "none") == ""
