"""ELF files as pyelftools reads them: what we export for each processor, and the system's own."""

import io
import sys
from pathlib import Path

import numpy
import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE
from elftools.elf.sections import SymbolTableSection

import slipway
from slipway import te
from slipway.toolchain.elf import ET_REL, ElfFile

TARGETS = [
    "llvm -mtriple=x86_64-linux-gnu",
    "llvm -mtriple=aarch64-linux-gnu -mattr=+neon",
    "llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon",
    "llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c",
    "llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4",
    "llvm -mtriple=riscv32-none-elf -mattr=+m,+c",
]


def symbol_of(entry):
    kinds = {"STB_LOCAL": 0, "STB_GLOBAL": 1, "STB_WEAK": 2, "STB_GNU_UNIQUE": 10}
    types = ("NOTYPE", "OBJECT", "FUNC", "SECTION", "FILE", "COMMON", "TLS")
    named = {f"STT_{name}": number for number, name in enumerate(types)} | {"STT_LOOS": 10}
    sections = {"SHN_UNDEF": 0, "SHN_ABS": 0xFFF1, "SHN_COMMON": 0xFFF2}
    section, info = entry["st_shndx"], entry["st_info"]
    return (
        entry.name,
        entry["st_value"],
        entry["st_size"],
        kinds[info["bind"]],
        named.get(info["type"], info["type"]),
        sections.get(section, section),
    )


def assert_same(data, name):
    """Compare all that `ElfFile` says of a file."""
    ours, theirs = ElfFile(data, name), ELFFile(io.BytesIO(data))
    assert ours.is_64 == (theirs.elfclass == 64)
    assert ours.machine == ENUM_E_MACHINE[theirs["e_machine"]]
    assert ours.type == {"ET_REL": 1, "ET_EXEC": 2, "ET_DYN": 3}[theirs["e_type"]]
    for one, other in zip(ours.segments, theirs.iter_segments(), strict=True):
        head = other.header
        assert (one.flags, one.offset, one.address, one.file_bytes, one.memory_bytes) == tuple(
            head[f"p_{field}"] for field in ("flags", "offset", "vaddr", "filesz", "memsz")
        )
        assert one.load_address == head["p_paddr"]
    if ours.type == ET_REL:
        tables = [s for s in theirs.iter_sections() if isinstance(s, SymbolTableSection)]
        entries = [e for table in tables for e in list(table.iter_symbols())[1:]]
    else:
        section = theirs.get_section_by_name(".dynsym")
        entries = list(section.iter_symbols())[1:]
        dynamic = next(s for s in theirs.iter_segments() if isinstance(s, DynamicSegment))
        tags = dynamic.iter_tags()
        assert ours.needed == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
    found = [(s.name, s.value, s.size, s.binding, s.type, s.section) for s in ours.symbols]
    assert found == [symbol_of(e) for e in entries]
    return ours, theirs


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_compiled_for_a_processor(target, tmp_path):
    a = te.placeholder((37,), name="a")
    b = te.compute((37,), lambda i: te.exp(a[i]) / 3.0, name="b")
    built = slipway.build(te.create_schedule(b.op), [a, b], target, name="kernel")
    path = tmp_path / "kernel.o"
    built.save(str(path))
    ours, _ = assert_same(path.read_bytes(), "kernel.o")
    assert "__tvm_ffi_kernel" in ours.exported
    if "none" in target:
        return
    built.export_library(str(tmp_path / "kernel.so"))
    ours, theirs = assert_same((tmp_path / "kernel.so").read_bytes(), "kernel.so")
    assert "__tvm_ffi_kernel" in ours.exported
    named = [s for s in theirs.get_section_by_name(".dynsym").iter_symbols()]
    for symbol in named:
        if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"]:
            section = theirs.get_section(symbol["st_shndx"])
            if section["sh_type"] == "SHT_NOBITS":
                continue
            at = symbol["st_value"] - section["sh_addr"]
            want = section.data()[at : at + symbol["st_size"]]
            assert bytes(ours.symbol_bytes(symbol.name)) == want


def libraries():
    """Return shared libraries that other linkers made: extensions, and those of NumPy."""
    found = [*Path(numpy.__file__).parent.rglob("*.so")][:4]
    found += [*(Path(numpy.__file__).parents[1] / "numpy.libs").glob("*.so*")]
    return found + [Path(m.__file__) for m in sys.modules.values()
                    if str(getattr(m, "__file__", "")).endswith(".so")][:6]  # fmt: skip


def test_libraries_that_other_linkers_made():
    paths = libraries()
    assert len(paths) >= 5
    for path in paths:
        if path.stat().st_size < 8 << 20:
            assert_same(path.read_bytes(), path.name)
