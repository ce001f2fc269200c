"""The core of the runtime needs no system: compiled freestanding, it asks for next to nothing."""

import shutil
import subprocess

import pytest

from slipway.toolchain import native

# What compilers emit by themselves, two string functions, and the porting header.
ALLOWED = {"memcpy", "memset", "memmove", "memcmp", "strlen", "strcmp"}
GRAPH_BYTES_LIMIT = 4096
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = {
    "gcc": ["-m64"],
    "clang": ["-m64"],
    "arm-none-eabi-gcc": ["-mcpu=cortex-m4", "-mthumb", "-DSLW_NO_THREADS"],
}


def core_sources():
    return [path for path in native.crt_sources("src") if not path.name.startswith("rpc_")]


@pytest.fixture(params=list(COMPILERS))
def compiler(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return [request.param, *COMPILERS[request.param]]


def compile_core(compiler, folder):
    flags = ["-std=c11", "-ffreestanding", "-Os", *WARNINGS, "-I", str(native.include_path())]
    paths = [str(path) for path in core_sources()]
    done = subprocess.run(
        [*compiler, *flags, "-c", *paths], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return sorted(folder.glob("*.o"))


def symbols(tool, objects, kinds):
    done = subprocess.run([tool, *map(str, objects)], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {words[-1] for words in lines if len(words) >= 2 and words[-2] in kinds}


def test_core_asks_for_nothing_but_memory_functions_and_the_platform(compiler, tmp_path):
    objects = compile_core(compiler, tmp_path)
    tool = "arm-none-eabi-nm" if compiler[0].startswith("arm") else "nm"
    undefined = symbols(tool, objects, {"U"}) - symbols(tool, objects, set("TDBRdbrt"))
    helpers = {name for name in undefined if name.startswith("__aeabi_")}
    rest = undefined - ALLOWED - helpers - {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    assert {name for name in rest if not name.startswith(("slw_platform_", "slw_cpu_"))} == set()


def test_graph_executor_is_small_on_a_microcontroller(tmp_path):
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    compile_core(["arm-none-eabi-gcc", *COMPILERS["arm-none-eabi-gcc"]], tmp_path)
    done = subprocess.run(
        ["arm-none-eabi-size", *(str(tmp_path / f"{n}.o") for n in ("graph", "graph_check"))],
        capture_output=True,
        text=True,
        check=True,
    )
    code = sum(int(line.split()[0]) for line in done.stdout.splitlines()[1:])
    assert code < GRAPH_BYTES_LIMIT
