"""Symbols of an object under other names: code, relocations and other symbols stay."""

import ctypes
import platform

import pytest

from slipway.errors import ArtifactError
from slipway.toolchain import zig
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.elf_rename import rename_symbols
from slipway.toolchain.link import link_shared

HERE = f"{zig.architecture_of(platform.machine())}-linux-gnu"
SOURCE = "extern int value; int value = 3; int f(int x) { return x + value; }"
NAMES = {"f": "a_longer_name_for_f", "value": "v"}


def renamed_object(folder, triple):
    (folder / "a.c").write_text(SOURCE)
    zig.run_zig(
        ["cc", "-target", zig.musl_target(triple), "-c", "-fPIC", "-O1", "-g0",
         "-fno-unwind-tables", "-o", str(folder / "a.o"), str(folder / "a.c")],
        purpose="compiling",
    )  # fmt: skip
    data = (folder / "a.o").read_bytes()
    return data, rename_symbols(data, lambda name: NAMES.get(name, name))


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "armv7a-linux-gnueabihf"])
def test_symbols_have_their_new_names_and_nothing_else_changes(tmp_path, triple):
    data, renamed = renamed_object(tmp_path, triple)
    before, after = ElfFile(data).symbols, ElfFile(renamed).symbols
    assert [NAMES.get(s.name, s.name) for s in before] == [s.name for s in after]
    assert [(s.value, s.size, s.binding, s.section) for s in before] == [
        (s.value, s.size, s.binding, s.section) for s in after
    ]
    link_shared([renamed], triple, tmp_path / "a.so")
    assert {"a_longer_name_for_f", "v"} <= set(ElfFile((tmp_path / "a.so").read_bytes()).exported)


def test_the_code_behind_the_names_runs(tmp_path):
    _, renamed = renamed_object(tmp_path, HERE)
    link_shared([renamed], HERE, tmp_path / "a.so")
    library = ctypes.CDLL(str(tmp_path / "a.so"))
    assert library.a_longer_name_for_f(4) == 7
    assert ctypes.c_int.in_dll(library, "v").value == 3


def test_a_damaged_object_is_refused(tmp_path):
    data, _ = renamed_object(tmp_path, HERE)
    with pytest.raises(ArtifactError, match="the kernel k is not a usable"):
        rename_symbols(data[:-40], str.upper, "the kernel k")
