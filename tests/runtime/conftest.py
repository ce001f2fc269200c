"""Compiled kernels for the runtime's tests: written in C, because code generation comes later."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from slipway.toolchain import native, zig
from slipway.toolchain.link import link_shared

HERE = Path(__file__).parent


def compile_kernels(triple, out, isa=(), source=HERE / "kernels.c"):
    """Compile kernels.c for a triple and return the object's bytes."""
    listed = json.dumps(json.dumps(list(isa))[1:-1])  # a C string literal of JSON strings
    defines = [f'-DTRIPLE="{triple}"', f"-DISA={listed}", "-I", str(native.include_path())]
    flags = ["-std=c11", "-O2", "-ffreestanding", "-fPIC", "-fvisibility=hidden", "-c"]
    host = zig.architecture_of(triple) == zig.architecture_of(platform.machine())
    cc = shutil.which("gcc") or shutil.which("cc")
    if host and cc:
        command = [cc]
    else:
        extra = ["-mcpu=cortex_a7"] if zig.architecture_of(triple) == "armv7" else []
        command = [str(zig.zig_path()), "cc", "-target", zig.musl_target(triple), *extra]
    subprocess.run([*command, *flags, *defines, "-o", str(out), str(source)], check=True)
    return out.read_bytes()


@pytest.fixture(scope="session")
def host_triple() -> str:
    return f"{zig.architecture_of(platform.machine())}-linux-gnu"


@pytest.fixture(scope="session")
def kernels_object(tmp_path_factory, host_triple) -> Path:
    out = tmp_path_factory.mktemp("kernels") / "kernels.o"
    compile_kernels(host_triple, out)
    return out


@pytest.fixture(scope="session")
def kernels_library(kernels_object, host_triple) -> Path:
    out = kernels_object.with_name("kernels.so")
    return link_shared([kernels_object], host_triple, out)
