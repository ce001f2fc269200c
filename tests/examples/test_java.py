"""The Java example: a class over the C interface of models, compiled and run where a JDK is."""

import json
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay


def run(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_model_in_java(repository, tmp_path):
    javac, gcc = shutil.which("javac"), shutil.which("gcc")
    if javac is None or gcc is None:
        pytest.skip("javac or gcc is not installed: apt-get install default-jdk-headless gcc")
    home = Path(javac).resolve().parent.parent
    x = relay.var("input", shape=(1, 3, 8, 8))
    function = relay.Function([x], relay.nn.softmax(relay.mean(x * x, axis=(2, 3))))
    lib = relay.build(tvm.IRModule.from_expr(function), "llvm")
    lib.export_library(str(tmp_path / "model.tar"))
    x = relay.var("x", shape=(relay.Dim("n", 1, 4), 2), dtype="uint8")
    flat = relay.reshape(x, (-1,))
    is_found = flat > relay.const(3, "uint8")
    order = relay.argsort(relay.cast(is_found, "int32"), is_ascend=False)
    count = relay.sum(relay.cast(is_found, "int64"))
    found = relay.sized(relay.take(flat, order), count, relay.Dim("k", 0, 8))
    function = relay.Function([x], found + relay.const(0, "uint8"))
    lib = relay.build(tvm.IRModule.from_expr(function), "llvm")
    lib.export_library(str(tmp_path / "sized.tar"))
    example = repository / "examples" / "java"
    run(sys.executable, "-m", "slipway", "runtime", "--amalgamation", tmp_path)
    flags = ["-std=c11", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    include = [f"-I{home / 'include'}", f"-I{home / 'include' / 'linux'}", f"-I{tmp_path}"]
    sources = [example / "slipway_jni.c", tmp_path / "slipway.c"]
    run(gcc, *flags, *include, *sources, "-pthread", "-ldl", "-o", tmp_path / "libslipway_jni.so")
    classes = sorted((example / "slipway").glob("*.java"))
    classes.append(Path(__file__).parent / "Use.java")
    run(javac, "-Xlint:all", "-Werror", "-d", tmp_path, *classes)
    java = [home / "bin" / "java", "-Xcheck:jni", f"-Djava.library.path={tmp_path}"]
    lines = run(*java, "-cp", tmp_path, "Use", tmp_path / "model.tar", tmp_path / "sized.tar")
    lines = lines.splitlines()
    assert lines[0].startswith("FileNotFoundError | ")
    assert lines[1] == "ValueError | ValueError: a model's path is null"
    assert lines[2] == "[1, 3, 8, 8][1, 3]"
    np.testing.assert_allclose(json.loads(lines[3]), np.full(3, 1 / 3), rtol=1e-6)
    assert lines[4] == "12"
    assert [line.split(" | ")[0] for line in lines[5:]] == [
        "ExecutionError", "ExecutionError", "ValueError", "IndexError", "ExecutionError",
        "ValueError", "float32 1", "ValueError", "TypeError", "[0][]", "[2][4, 5]",
        "ExecutionError",
    ]  # fmt: skip
    assert "n is 1 to 4" in lines[-1]


# What an NDK's clang is asked, by one that compiles for this machine alone.
NDK_CLANG = """#!/bin/sh
case "$1" in --target=x86_64-linux-android24) shift;; *) echo "no target $1" >&2; exit 1;; esac
exec gcc -I{home}/include -I{home}/include/linux "$@" -pthread
"""


@pytest.mark.long
def test_an_android_library_is_packed(repository, tmp_path):
    """By an NDK whose compiler is this machine's: what is packed runs here."""
    javac, gcc = shutil.which("javac"), shutil.which("gcc")
    if javac is None or gcc is None or platform.machine() != "x86_64":
        pytest.skip("javac or gcc is not installed, or no x86-64")
    home = Path(javac).resolve().parent.parent
    clang = tmp_path / "ndk/toolchains/llvm/prebuilt/linux-x86_64/bin/clang"
    clang.parent.mkdir(parents=True)
    clang.write_text(NDK_CLANG.format(home=home))
    clang.chmod(0o755)
    script = repository / "examples" / "java" / "make_aar.py"
    ndk = ["--ndk", tmp_path / "ndk", "--abi", "x86_64"]
    run(sys.executable, script, *ndk, "-o", tmp_path / "a.aar")
    with zipfile.ZipFile(tmp_path / "a.aar") as archive:
        archive.extractall(tmp_path / "a")
    found = {str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*") if p.is_file()}
    native = "jni/x86_64/libslipway_jni.so"
    assert found == {"AndroidManifest.xml", "R.txt", "classes.jar", "proguard.txt", native}
    again = ["--library", f"x86_64={tmp_path / 'a' / native}", "-o", tmp_path / "b.aar"]
    run(sys.executable, script, *again)
    assert (tmp_path / "a.aar").read_bytes() == (tmp_path / "b.aar").read_bytes()
    x = relay.var("input", shape=(1, 3, 8, 8))
    function = relay.Function([x], relay.nn.softmax(relay.mean(x * x, axis=(2, 3))))
    lib = relay.build(tvm.IRModule.from_expr(function), "llvm")
    lib.export_library(str(tmp_path / "model.tar"))
    jar = tmp_path / "a" / "classes.jar"
    run(javac, "-cp", jar, "-d", tmp_path, Path(__file__).parent / "Use.java")
    path = f"-Djava.library.path={tmp_path / 'a/jni/x86_64'}"
    java = [home / "bin" / "java", path, "-cp", f"{jar}:{tmp_path}"]
    lines = run(*java, "Use", tmp_path / "model.tar").splitlines()
    np.testing.assert_allclose(json.loads(lines[3]), np.full(3, 1 / 3), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give --ndk"),
        (["--ndk", "none"], "none is no Android NDK"),
        (["--library", "mips=x"], "arm64-v8a, armeabi-v7a, x86_64, not 'mips=x'"),
        (["--library", "arm64-v8a=none.so"], "cannot read none.so: No such file"),
        (["--library", "arm64-v8a=text.so"], "text.so is no ELF file"),
    ],
)
def test_an_android_library_that_cannot_be_packed(repository, tmp_path, arguments, text):
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    (tmp_path / "text.so").write_text("a text, and not a library")
    script = repository / "examples" / "java" / "make_aar.py"
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "slipway.aar").exists()
