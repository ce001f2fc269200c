"""The Java example: a class over the C interface of models, compiled and run where a JDK is."""

import json
import shutil
import subprocess
import sys
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
    lines = run(*java, "-cp", tmp_path, "Use", tmp_path / "model.tar").splitlines()
    assert lines[0].startswith("FileNotFoundError | ")
    assert lines[1] == "ValueError | ValueError: a model's path is null"
    assert lines[2] == "[1, 3, 8, 8][1, 3]"
    np.testing.assert_allclose(json.loads(lines[3]), np.full(3, 1 / 3), rtol=1e-6)
    assert lines[4] == "12"
    assert [line.split(" | ")[0] for line in lines[5:]] == [
        "ExecutionError", "ExecutionError", "ValueError", "IndexError", "ValueError",
    ]  # fmt: skip
