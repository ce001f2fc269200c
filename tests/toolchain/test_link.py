import ctypes
import platform
import shutil
import subprocess

import pytest

from slipway.errors import ArtifactError, ToolchainError
from slipway.toolchain import ar, zig
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.link import link_shared, write_file

HERE = f"{zig.architecture_of(platform.machine())}-linux-gnu"
SOURCE = "int value = 3; int f(int x) { return x + value; }"


def compile_object(folder, source=SOURCE, name="a", triple=HERE):
    (folder / f"{name}.c").write_text(source)
    out = folder / f"{name}.o"
    command = ["cc", "-target", zig.musl_target(triple), "-c", "-fPIC", "-O1", "-g0"]
    zig.run_zig(
        [*command, "-fno-unwind-tables", "-o", str(out), str(folder / f"{name}.c")],
        purpose="compiling",
    )
    return out


@pytest.fixture
def obj(tmp_path):
    return compile_object(tmp_path)


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_links_for_any_processor_without_dependencies(tmp_path, triple):
    made = compile_object(tmp_path, triple=triple)
    elf = ElfFile(link_shared([made], triple, tmp_path / "lib.so").read_bytes())
    assert {"f", "value"} <= set(elf.exported)
    assert elf.undefined == []
    assert elf.needed == []


def test_bytes_and_paths_give_the_same_library(obj, tmp_path):
    a = link_shared([obj], HERE, tmp_path / "a.so").read_bytes()
    b = link_shared([obj.read_bytes()], HERE, tmp_path / "b.so").read_bytes()
    assert a == b


def test_exports_hide_the_rest(obj, tmp_path):
    made = link_shared([obj], HERE, tmp_path / "lib.so", exports=["f"])
    assert ElfFile(made.read_bytes()).exported == ["f"]


def test_undefined_symbol_is_named_and_no_file_is_left(tmp_path):
    made = compile_object(tmp_path, "int outside(int); int f(int x) { return outside(x); }")
    with pytest.raises(ToolchainError, match="outside"):
        link_shared([made], HERE, tmp_path / "lib.so")
    assert not (tmp_path / "lib.so").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_compilers_own_calls_are_taken_in(tmp_path):
    source = "void f(char *a, const char *b, unsigned long n) { __builtin_memcpy(a, b, n); }"
    made = compile_object(tmp_path, source)
    assert "memcpy" in ElfFile(made.read_bytes()).undefined
    assert ElfFile(link_shared([made], HERE, tmp_path / "l.so").read_bytes()).undefined == []


def test_options_as_a_compiler_takes_them(tmp_path):
    """Scripts of external code generators give those of g++; what is not about linking is left."""
    made = compile_object(tmp_path, "int f(void) { return 1; } int kept(void) { return 2; }")
    options = ["-O2", "-std=c++14", "-I/usr/include", "-I", "/opt/include", "-DNDEBUG", "-fPIC"]
    options += ["-march=native", "-Wall", "-g", "-pthread", "-Wl,--defsym,alias=kept", "-z", "now"]
    library = link_shared([made], HERE, tmp_path / "l.so", options=options)
    assert ctypes.CDLL(str(library)).alias() == 2


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_users_compiler_by_path(obj, tmp_path):
    made = link_shared([obj], HERE, tmp_path / "lib.so", cc=shutil.which("gcc"))
    elf = ElfFile(made.read_bytes())
    assert elf.undefined == []
    assert elf.needed == []


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_users_function(obj, tmp_path):
    calls = []

    def fcompile(output, objects, options=None):
        calls.append((objects, options))
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", output, *objects], check=True)

    link_shared([obj], HERE, tmp_path / "lib.so", cc=fcompile)
    assert calls == [([str(obj)], None)]


def test_function_that_writes_nothing_is_reported(obj, tmp_path):
    with pytest.raises(ToolchainError, match="without writing"):
        link_shared([obj], HERE, tmp_path / "lib.so", cc=lambda output, objects: None)


def test_object_for_another_processor_is_reported(obj, tmp_path):
    with pytest.raises(ToolchainError, match=r"cannot link a\.o for aarch64"):
        link_shared([obj], "aarch64-linux-gnu", tmp_path / "lib.so")


def test_missing_object_and_missing_compiler(tmp_path, obj):
    with pytest.raises(ToolchainError, match="does not exist"):
        link_shared([tmp_path / "none.o"], HERE, tmp_path / "lib.so")
    with pytest.raises(ToolchainError, match="nothing to link"):
        link_shared([], HERE, tmp_path / "lib.so")
    with pytest.raises(ToolchainError, match="is not on this machine"):
        link_shared([obj], HERE, tmp_path / "lib.so", cc="/no/such/gcc")


def test_archive_round_trip_and_symbol_index(obj, tmp_path):
    members = {"short.o": obj.read_bytes(), "a_name_longer_than_fifteen.o": obj.read_bytes()}
    data = ar.write_archive(members)
    assert ar.read_archive(data) == members
    assert data == ar.write_archive(members)
    (tmp_path / "l.a").write_bytes(ar.write_archive({"x.o": obj.read_bytes()}))
    main = compile_object(tmp_path, "int f(int); int g(void) { return f(1); }", "main")
    linked = link_shared([main, tmp_path / "l.a"], HERE, tmp_path / "l.so")
    assert {"f", "g"} <= set(ElfFile(linked.read_bytes()).exported)  # found through the index


def test_damaged_archive_is_an_error(obj):
    data = ar.write_archive({"x.o": obj.read_bytes()})
    for size in (0, 5, 30, 100, len(data) - 10):
        with pytest.raises(ArtifactError):
            ar.read_archive(data[:size])


def test_no_truncated_library_is_accepted(obj, tmp_path):
    data = link_shared([obj], HERE, tmp_path / "lib.so").read_bytes()
    ElfFile(data).symbol_bytes("value")
    for size in range(0, len(data), 7):
        with pytest.raises(ArtifactError):
            ElfFile(data[:size]).symbol_bytes("value")


def test_changed_library_is_an_error_or_readable(obj, tmp_path):
    data = bytearray(link_shared([obj], HERE, tmp_path / "lib.so").read_bytes())
    for at in range(0, len(data), 3):
        data[at] ^= 0xFF
        try:
            elf = ElfFile(bytes(data))
            assert elf.undefined is not None
            elf.symbol_bytes("value")
        except ArtifactError:
            pass
        data[at] ^= 0xFF


def test_a_file_system_that_is_full_is_told(monkeypatch, tmp_path):
    """The linker writes through a memory map: no space is a SIGBUS, of which it says nothing."""
    program = tmp_path / "zig"
    program.write_text("#!/bin/sh\nkill -BUS $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(zig, "zig_path", lambda: program)
    with pytest.raises(ToolchainError, match=r"SIGBUS.*full file system.*KiB left.*TMPDIR\.$"):
        zig.run_zig(["ld.lld"], purpose="linking")


def test_a_file_whose_content_ends_in_an_error_is_as_it_was(tmp_path):
    def pieces():
        yield b"half"
        raise ArtifactError("no more")

    (tmp_path / "old").write_bytes(b"whole")
    for name in ("old", "new"):
        with pytest.raises(ArtifactError, match="no more"):
            write_file(tmp_path / name, pieces())
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("old", b"whole")]
