"""The core of the runtime needs no system: compiled freestanding, it asks for next to nothing."""

import shutil
import subprocess
from functools import cache

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


@pytest.fixture(scope="module")
def core_objects(tmp_path_factory):
    """A function from a compiler to the objects of the core, compiled once."""

    @cache
    def compiled(name):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        flags = ["-std=c11", "-ffreestanding", "-Os", *WARNINGS, "-I", str(native.include_path())]
        paths = [str(path) for path in core_sources()]
        folder = tmp_path_factory.mktemp(name)
        done = subprocess.run(
            [name, *COMPILERS[name], *flags, "-c", *paths],
            capture_output=True, text=True, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return sorted(folder.glob("*.o"))

    return compiled


def symbols(tool, objects, kinds):
    done = subprocess.run([tool, *map(str, objects)], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {words[-1] for words in lines if len(words) >= 2 and words[-2] in kinds}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_core_asks_for_nothing_but_memory_functions_and_the_platform(compiler, core_objects):
    objects = core_objects(compiler)
    tool = "arm-none-eabi-nm" if compiler.startswith("arm") else "nm"
    undefined = symbols(tool, objects, {"U"}) - symbols(tool, objects, set("TDBRdbrt"))
    helpers = {name for name in undefined if name.startswith("__aeabi_")}
    others = undefined - ALLOWED - helpers - {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    assert {name for name in others if not name.startswith(("slw_platform_", "slw_cpu_"))} == set()


def test_graph_executor_is_small_on_a_microcontroller(core_objects):
    objects = core_objects("arm-none-eabi-gcc")
    parts = [path for path in objects if path.stem in ("graph", "graph_check")]
    assert len(parts) == 2
    done = subprocess.run(
        ["arm-none-eabi-size", *map(str, parts)],
        capture_output=True,
        text=True,
        check=True,
    )
    code = sum(int(line.split()[0]) for line in done.stdout.splitlines()[1:])
    assert code < GRAPH_BYTES_LIMIT
