"""What is asked of `xcrun` and `spirv-opt`, with programs that write it down."""

import pytest

from slipway.contrib import spirv, xcode
from slipway.errors import ArgumentValueError, ToolchainError


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("VULKAN_SDK", raising=False)

    def make(name, *lines):
        (tmp_path / name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
        (tmp_path / name).chmod(0o755)
        return tmp_path

    return make


def test_library_for_apple(program):
    folder = program("xcrun", f'echo "$@" >> {"$0"}.log', 'case "$3" in --show*) echo /sdk;; esac')
    xcode.create_dylib("lib.dylib", ["a.o", "b.o"], "arm64", sdk="iphoneos", min_os_version="14")
    assert (folder / "xcrun.log").read_text().splitlines() == [
        "-sdk iphoneos --show-sdk-path",
        "-sdk iphoneos clang -dynamiclib -arch arm64 -isysroot /sdk -miphoneos-version-min=14 "
        "-o lib.dylib a.o b.o",
    ]
    assert xcode.create_dylib.output_format == "dylib"
    with pytest.raises(ArgumentValueError, match="no sdk 'watchos'; there are macosx"):
        xcode.create_dylib("lib.dylib", "a.o", "arm64", sdk="watchos")


def test_library_of_metal(program):
    out = 'for last; do :; done; case "$3" in metallib) cp "$4" "$last";; *) cp "$8" "$last";; esac'
    program("xcrun", out)
    assert xcode.compile_metal("kernel void f() {}") == b"kernel void f() {}"
    program("xcrun", "echo wrong word >&2", "exit 1")
    with pytest.raises(ToolchainError, match=r"xcrun -sdk macosx metal .*failed: wrong word"):
        xcode.compile_metal("kernal")


def test_a_library_is_signed(program, monkeypatch):
    monkeypatch.delenv("TVM_IOS_CODESIGN", raising=False)
    with pytest.raises(ToolchainError, match="TVM_IOS_CODESIGN is not set"):
        xcode.codesign("a.dylib")
    monkeypatch.setenv("TVM_IOS_CODESIGN", "me")
    folder = program("codesign", f'echo "$@" >> {"$0"}.log')
    xcode.codesign("a.dylib")
    assert (folder / "codesign.log").read_text() == "--force --sign me a.dylib\n"
    program("codesign", "echo no identity >&2", "exit 1")
    with pytest.raises(ToolchainError, match=r"codesign a.dylib failed: no identity"):
        xcode.codesign("a.dylib")


def test_optimiser_of_spirv(program, monkeypatch, tmp_path):
    folder = program("spirv-opt", 'test "$1" = -O && tr a b < "$2" > "$4"')
    assert spirv.optimize(b"abc") == b"bbc"
    sdk = tmp_path / "sdk"
    (sdk / "bin").mkdir(parents=True)
    (folder / "spirv-opt").rename(sdk / "bin" / "spirv-opt")
    monkeypatch.setenv("VULKAN_SDK", str(sdk))
    assert spirv.optimize(bytearray(b"aa")) == b"bb"
    (sdk / "bin" / "spirv-opt").write_text("#!/bin/sh\necho invalid >&2\nexit 1\n")
    with pytest.raises(ToolchainError, match="refuses the module: invalid"):
        spirv.optimize(b"abc")


def test_tools_that_are_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VULKAN_SDK", raising=False)
    with pytest.raises(ToolchainError, match="export_library for a target of macOS"):
        xcode.xcrun(["--version"])
    with pytest.raises(ToolchainError, match="install spirv-tools"):
        spirv.optimize(b"")
