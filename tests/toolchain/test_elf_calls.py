"""Who calls whom in an object file, and what each function takes of the stack."""

import pytest

from slipway.errors import ArtifactError
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.elf_calls import frame_sizes, references
from slipway.toolchain.zig import run_zig

SOURCE = """
#define APART __attribute__((noinline))
extern int elsewhere(int *);
APART static int leaf(int x) { volatile int room[25]; room[x] = x; return room[x / 2]; }
APART static int inner(int x) { int room[10]; room[x] = x; return elsewhere(room) + leaf(x); }
APART static int given(int (*f)(int), int x) { return f(x) + 1; }
int outer(int n) { int s = 0; for (int i = 0; i < n; ++i) { s += given(inner, i); } return s; }
int again(int n) { return n < 2 ? n : again(n - 1) * elsewhere(&n) + again(n - 2); }
"""
CORES = {
    "cortex-m4": ("thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"),
    "cortex-m0": ("thumb-freestanding-eabi", "-mcpu=cortex_m0"),
    "riscv32": ("riscv32-freestanding-none", "-mcpu=generic_rv32+m"),
    "riscv64": ("riscv64-freestanding-none", "-mcpu=generic_rv64+m"),
    "x86_64": ("x86_64-linux-musl", "-mno-red-zone"),
}


@pytest.fixture(params=CORES)
def elf(request, tmp_path):
    (tmp_path / "a.c").write_text(SOURCE)
    flags = ["-O2", "-ffunction-sections", "-fstack-size-section", "-fno-sanitize=all"]
    out = tmp_path / "a.o"
    command = ["cc", "-target", *CORES[request.param], *flags, "-c", str(tmp_path / "a.c")]
    run_zig([*command, "-o", str(out)], purpose="a test")
    return ElfFile(out.read_bytes(), "a.o")


def test_calls_and_addresses_are_references_and_loops_are_none(elf):
    found = references(elf)
    assert found["inner"] == {"leaf", "elsewhere"}
    assert "inner" in found["outer"] | found.get("given", set())
    assert "outer" not in found["outer"]  # it has a loop, and does not call itself
    assert found["again"] == {"again", "elsewhere"}
    assert not found.get("leaf")


def test_frames_are_as_large_as_what_lies_in_them(elf):
    frames = frame_sizes(elf)
    assert {"leaf", "inner", "outer", "again"} <= frames.keys()
    assert 100 <= frames["leaf"] < 180
    assert 40 <= frames["inner"] < 120
    assert frames["outer"] < 120


def test_damaged_objects_are_refused_or_read(elf):
    """Bytes that are not there, and names that are none: an ArtifactError, or an answer."""
    data = bytes(elf.data)
    for cut in range(1, len(data), 37):
        try:
            cut_file = ElfFile(data[:cut], "cut.o")
            references(cut_file), frame_sizes(cut_file)
        except ArtifactError:
            continue
    for at in range(0, len(data), 5):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        try:
            read = ElfFile(bytes(changed), "changed.o")
            references(read), frame_sizes(read)
        except ArtifactError:
            continue
