"""ELF files and archives from elsewhere: no count makes more of them than they hold."""

import struct
import tracemalloc

import pytest

from slipway import te
from slipway.compiler.emit import build_module
from slipway.errors import ArtifactError
from slipway.target import Target
from slipway.toolchain.ar import read_archive, write_archive
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.link import linked_bytes


def peak_bytes(read):
    tracemalloc.start()
    with pytest.raises(ArtifactError):
        read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def header(kind, segments=(0, 0, 0), sections=(0, 0, 0)):
    """An ELF header of 64 bits: offset, entry bytes and count of the two tables."""
    return b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", kind, 62, 1, 0, segments[0], sections[0], 0, 64, *segments[1:],
        *sections[1:], 0)  # fmt: skip


def test_a_dynamic_table_is_read_once():
    """All of 65,535 program headers are the same bytes, and each says where the table is."""
    pairs = struct.pack("<qQ", 1, 0) * 4000
    data = header(3, (64, 0, 65535)) + struct.pack("<IIQQQQQQ", 2, 6, 120, 0, 0, len(pairs), 0, 8)
    assert peak_bytes(lambda: ElfFile(data + pairs, "x.so").symbols) < 32 << 20


def test_names_that_never_end_are_not_copied_for_each_symbol():
    count, text = 20_000, b"x" * 400_000
    symbols = struct.pack("<IBBHQQ", 1, 16, 0, 1, 0, 0) * count
    at = 64 + 2 * 64
    tables = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(symbols), 1, 0, 8, 24)
    tables += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(symbols), len(text), 0, 0, 1, 0)
    data = header(1, sections=(64, 64, 2)) + tables + symbols + text
    assert peak_bytes(lambda: ElfFile(data, "x.o").symbols) < 80 * len(data)


def test_a_table_of_symbols_counts_once():
    """4,000 sections that are the same symbols; then symbols of one byte each."""
    symbols = bytes(24) * 4000
    for count, step in ((4000, 24), (1, 1)):
        at = 64 + (count + 1) * 64
        tables = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(symbols), count, 0, 8, step) * count
        tables += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, 8, 0, 0, 1, 0)
        data = header(1, sections=(64, 64, count + 1)) + tables + symbols
        assert peak_bytes(lambda data=data: ElfFile(data, "x.o").symbols) < 40 << 20


@pytest.fixture(scope="module")
def made():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0)
    func = te.lower(te.create_schedule(b.op), [a, b], name="a_kernel")
    return build_module(func, Target("llvm -mtriple=x86_64-linux-gnu")).object_bytes()


def test_objects_and_libraries_of_ours_are_read(made):
    assert "__tvm_ffi_a_kernel" in ElfFile(made).exported
    linked = ElfFile(linked_bytes([made], "x86_64-linux", "x.so"))
    assert "__tvm_ffi_a_kernel" in linked.exported
    assert linked.needed == []


def test_archives_with_sizes_and_names_that_are_no_numbers(made):
    data = write_archive({"a.o": made, "a_name_of_more_than_15.o": made})
    assert list(read_archive(data)) == ["a.o", "a_name_of_more_than_15.o"]
    at = data.index(b"`\n") - 10  # the size of the first member
    for text in ("\xb2", "-1", "1_0", "+3"):
        with pytest.raises(ArtifactError, match="damaged"):
            read_archive(data[:at] + text.encode("latin-1").ljust(10) + data[at + 10 :])
    title = data.index(b"/0 ")
    odd = read_archive(data[:title] + "/\xb2 ".encode("latin-1") + data[title + 3 :])
    assert "a.o" in odd


def test_long_names_of_archives_are_bounded():
    def member(title, content):
        return f"{title:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode() + content

    data = b"!<arch>\n" + member("//", b"x" * 400_000) + member("/0", b"") * 4000
    tracemalloc.start()
    read_archive(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
