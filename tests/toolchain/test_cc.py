import ctypes
import shutil

import pytest

from slipway.contrib import cc, ndk
from slipway.errors import ToolchainError

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="apt-get install gcc")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "add.c"
    path.write_text("int add(int a, int b) { return a + b; }\n")
    return path


@needs_gcc
def test_create_shared_makes_a_library_without_dependencies(source, tmp_path):
    library = tmp_path / "add.so"
    cc.create_shared(library, [source], cc="gcc")
    assert ctypes.CDLL(str(library)).add(1, 2) == 3
    assert b"libc.so" not in library.read_bytes()


@needs_gcc
def test_cross_compiler_passes_options_and_files_on(source, tmp_path):
    other = tmp_path / "two.c"
    other.write_text("int two(void) { return TWO; }\n")
    fcompile = cc.cross_compiler("gcc", options=["-DTWO=2"], add_files=[other])
    library = tmp_path / "both.so"
    fcompile(library, source)
    assert ctypes.CDLL(str(library)).two() == 2
    assert fcompile.output_format == "so"
    assert "-" in fcompile.get_target_triple()


@needs_gcc
def test_a_failure_is_the_compilers_own_words(tmp_path):
    broken = tmp_path / "broken.c"
    broken.write_text("int f( {\n")
    with pytest.raises(ToolchainError, match=r"gcc .* failed with exit code 1:\n.*broken.c:1"):
        cc.create_shared(tmp_path / "x.so", broken, cc="gcc")


def test_a_missing_compiler_says_what_to_do(tmp_path):
    with pytest.raises(ToolchainError, match=r"'no-such-gcc' is not on this machine.*apt-get"):
        cc.create_shared(tmp_path / "x.so", [], cc="no-such-gcc")
    with pytest.raises(ToolchainError, match="apt-get install gcc-m68k-linux-gnu"):
        cc.create_shared(tmp_path / "x.so", [], cc="/no/such/m68k-linux-gnu-gcc")


def test_ndk_compiler_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TVM_NDK_CC", "no-such-clang")
    with pytest.raises(ToolchainError, match="no-such-clang"):
        ndk.create_shared(tmp_path / "x.so", [])


@needs_gcc
def test_ndk_links_without_the_ndk(monkeypatch, source, tmp_path):
    pytest.importorskip("ziglang")
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    monkeypatch.delenv("SLIPWAY_NDK_CC", raising=False)
    object_file, library = tmp_path / "add.o", tmp_path / "add.so"
    cc.create_executable(object_file, source, options=["-c", "-fPIC"], cc="gcc")
    ndk.create_shared(library, object_file)
    assert ctypes.CDLL(str(library)).add(1, 2) == 3
