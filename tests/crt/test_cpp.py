"""The classic C++ interface: programs alone, beside Python, without exceptions, on a Cortex-M4."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import libinfo
from slipway.toolchain import native
from slipway.version import VERSION

from . import foreign

FLAGS = ["-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.fixture(params=["g++", "clang++"])
def compiler(request):
    return foreign.needed(request.param)


def build(compiler, source, out, *flags):
    command = [compiler, *FLAGS, *foreign.compile_flags(), str(source), "-o", str(out), *flags]
    done = subprocess.run([*command, *foreign.link_flags()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_program_runs_a_model_and_survives_misuse(compiler, model, tmp_path):
    """What it prints is the model's output three times, and one clear error for each mistake."""
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(model.library.read_bytes()[:3000])
    program = build(compiler, foreign.CPP / "cpp_program.cc", tmp_path / "program", "-pthread")
    for path in (model.library, model.archive):
        printed = foreign.run([program, path, damaged]).splitlines()
        outputs = " ".join(f"{value:.6f}" for value in model.output) + " "
        assert [line for line in printed if line == outputs] == [outputs] * 3
        assert printed[-1] == "done"
        assert "nothing" not in printed, "a mistake went unnoticed"
        errors = [line for line in printed if re.match(r"[A-Za-z]+Error: ", line)]
        assert len(errors) == 28
    for text in (
        "the global function 'again' is registered already",
        "argument 0: expected int, got str",
        "asked for argument 1",
        "the model has no input 'inputs'. Its inputs are: 'input'.",
        "'input' has shape (1, 3, 8, 8) in this model, got (1, 3, 8, 9)",
        "FileNotFoundError: cannot open no/such/file.so",
        "ArtifactError: damaged.so is not a library",
        "MemoryError: an array of shape (1125899906842624,)",
    ):
        assert any(text in line for line in errors), text


@pytest.mark.parametrize("order", ["library first", "Python first"])
def test_one_table_with_python(model, tmp_path, order):
    """What C++ registers Python finds, and the reverse, whoever came first."""
    compiler = foreign.needed("g++")
    flags = ["-fPIC", "-shared"]
    library = build(compiler, foreign.CPP / "cpp_functions.cc", tmp_path / "lib.so", *flags)
    script = foreign.CPP / "cpp_beside_python.py"
    assert foreign.run([sys.executable, script, order, library, model.library]).endswith("done\n")


WITHOUT_EXCEPTIONS = """\
3 []
0 [TypeError: argument 1: expected int, got str]
0 [TypeError: argument 0: expected int, got str]
called
7 []
1 []
3 []
0 [ValueError: an array of shape (-2,) (1 dimensions) and dtype float32 cannot be made: \
an argument is unusable]
0 [TypeError: TVMModGetFunction takes a module of this runtime, not a null handle]
0 [ValueError: this PackedFunc is empty: GetFunction or Registry::Get found no function of the \
name it was given; compare with nullptr before the call]
"""


def test_without_exceptions(compiler, tmp_path):
    source = foreign.CPP / "cpp_without_exceptions.cc"
    program = build(compiler, source, tmp_path / "program", "-fno-exceptions", "-fno-rtti")
    assert foreign.run([program]) == WITHOUT_EXCEPTIONS


def test_on_a_cortex_m4(tmp_path):
    """The same program, headers and C sources as firmware."""
    foreign.needed("arm-none-eabi-g++")
    qemu = foreign.needed("qemu-system-arm")
    flags = ["-mcpu=cortex-m4", "-mthumb", "-Os", "-DSLW_NO_THREADS", "-Wall", "-Wextra", "-Werror"]
    flags += ["-ffunction-sections", "-fdata-sections", "-I", str(native.include_path())]
    parts = "registry object module error format tensor status device"
    sources = [native.CRT / "src" / f"{part}.c" for part in parts.split()]
    parts = "function value array module keep"
    sources += [native.CRT / "classic" / f"classic_{part}.c" for part in parts.split()]
    sources += [foreign.CPP / "cpp_platform.c", foreign.CPP / "cpp_vectors.c"]
    compile_c = ["arm-none-eabi-gcc", "-std=c11", *flags, "-c", *map(str, sources)]
    subprocess.run(compile_c, check=True, cwd=tmp_path)
    link = ["--specs=rdimon.specs", "-Wl,--gc-sections,-u,vectors,--section-start=.vectors=0"]
    program = str(foreign.CPP / "cpp_without_exceptions.cc")
    no_exceptions = ["-fno-exceptions", "-fno-rtti", "-Wno-psabi"]
    compile_cpp = ["arm-none-eabi-g++", "-std=c++14", *no_exceptions, *flags, *link, program]
    objects = [path.name for path in tmp_path.glob("*.o")]
    subprocess.run([*compile_cpp, *objects, "-o", "firmware"], check=True, cwd=tmp_path)
    board = [qemu, "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none"]
    done = subprocess.run(
        [*board, "-semihosting", "-kernel", tmp_path / "firmware"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout + done.stderr == WITHOUT_EXCEPTIONS


def test_containers(tmp_path):
    """Lists, texts and missing values: alone, and as Python's own beside it."""
    source = foreign.CPP / "cpp_containers.cc"
    program = build(foreign.needed("clang++"), source, tmp_path / "program", "-DALONE")
    assert foreign.run([program]) == "done\n"
    library = build(foreign.needed("g++"), source, tmp_path / "lib.so", "-fPIC", "-shared")
    script = foreign.CPP / "containers_beside_python.py"
    assert foreign.run([sys.executable, script, library]) == "done\n"


def test_maps(compiler, tmp_path):
    """Tables: alone, without exceptions, and as Python's own beside it."""
    source = foreign.CPP / "cpp_map.cc"
    program = build(compiler, source, tmp_path / "program", "-DALONE", "-fsanitize=address")
    assert foreign.run([program]) == "done\n"
    library = build(compiler, source, tmp_path / "lib.so", "-fPIC", "-shared")
    script = foreign.CPP / "map_beside_python.py"
    assert foreign.run([sys.executable, script, library]) == "done\n"
    without = ["-fno-exceptions", "-fno-rtti", "-fPIC", "-shared"]
    build(compiler, source, tmp_path / "nothing", *without)


@pytest.mark.parametrize("flags", [[], ["-fno-exceptions", "-fno-rtti"]])
def test_names_of_classic_programs(compiler, flags, tmp_path):
    """Types that print themselves, casts, questions about a value, modules by `String` names."""
    source = foreign.CPP / "cpp_names.cc"
    program = build(compiler, source, tmp_path / "program", "-fsanitize=address", *flags)
    assert foreign.run([program]) == "done\n"


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_modules_of_its_own(compiler, tmp_path):
    """A class derived from ModuleNode: what Python gets of it, and how long it lives."""
    source = foreign.CPP / "cpp_module_node.cc"
    library = build(foreign.needed(compiler), source, tmp_path / "lib.so", "-fPIC", "-shared")
    script = foreign.CPP / "beside_module_node.py"
    assert foreign.run([sys.executable, script, library]) == "done\n"


def test_registered_code_outlives_its_module(tmp_path):
    """A library that load_module loaded for what it registers may be dropped by its user."""
    compiler = foreign.needed("clang++")  # g++ marks symbols that keep a library in any case
    flags = ["-fPIC", "-shared"]
    library = build(compiler, foreign.CPP / "cpp_functions.cc", tmp_path / "lib.so", *flags)
    script = (
        "import sys, gc, slipway as tvm\n"
        "tvm.runtime.load_module(sys.argv[1])\n"
        "gc.collect()\n"
        "assert tvm.get_global_func('cpp.add')(1, 2) == 3\n"
    )
    foreign.run([sys.executable, "-c", script, library])


def test_tvm_ffi_headers_in_the_same_file(compiler, tmp_path):
    """tvm-ffi's C++ API, which needs C++17, and the classic headers understand each other."""
    source = tmp_path / "both.cc"
    source.write_text(
        "#include <tvm/ffi/tvm_ffi.h>\n"
        "#include <tvm/runtime/registry.h>\n"
        'TVM_REGISTER_GLOBAL("classic.add").set_body_typed([](int a, int b) { return a + b; });\n'
        "int main() {\n"
        '  tvm::ffi::Function add = tvm::ffi::Function::GetGlobalRequired("classic.add");\n'
        "  tvm::ffi::Function::SetGlobal(\n"
        '      "ffi.double", tvm::ffi::Function::FromTyped([](int x) { return 2 * x; }));\n'
        '  int doubled = (*tvm::runtime::Registry::Get("ffi.double"))(21);\n'
        "  return add(1, 2).cast<int>() == 3 && doubled == 42 ? 0 : 1;\n"
        "}\n"
    )
    program = foreign.build_with_tvm_ffi(compiler, source, tmp_path / "both")
    foreign.run([program])


CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(app LANGUAGES {languages})
find_package(slipway {version} CONFIG REQUIRED)
add_executable(app {source})
target_compile_features(app PRIVATE cxx_std_14)
target_link_libraries(app PRIVATE slipway::runtime)
"""


def configured(folder, *options, languages="C CXX", version=""):
    folder.mkdir(exist_ok=True)
    text = CMAKE.format(languages=languages, version=version, source=foreign.CPP / "cpp_program.cc")
    (folder / "CMakeLists.txt").write_text(text)
    command = [foreign.needed("cmake"), "-S", folder, "-B", folder / "build", *options]
    command.append(f"-Dslipway_DIR={libinfo.find_cmake_path()[0]}")
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["shared", pytest.param("compiled", marks=pytest.mark.long)])
def test_a_project_of_cmake(model, tmp_path, kind):
    options = [f"-DSLIPWAY_LIB_DIR={Path(libinfo.find_lib_path()[0]).parent}"]
    options = options if kind == "shared" else []
    done = configured(tmp_path, *options, version=VERSION)
    assert done.returncode == 0, done.stderr
    build = ["cmake", "--build", tmp_path / "build"]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(model.library.read_bytes()[:3000])
    printed = foreign.run([tmp_path / "build" / "app", model.archive, damaged]).splitlines()
    assert printed[-1] == "done"


def test_mistakes_of_a_cmake_project_are_told(tmp_path):
    lib = f"-DSLIPWAY_LIB_DIR={Path(libinfo.find_lib_path()[0]).parent}"
    for options, about, said in (
        ([], {"languages": "CXX"}, "write project(... LANGUAGES C CXX)"),
        ([f"-DSLIPWAY_LIB_DIR={tmp_path}"], {}, "where no libslipway_runtime.so is"),
        ([lib], {"version": "99.0"}, f"version: {VERSION}"),
    ):
        done = configured(tmp_path / said[:5].strip(), *options, **about)
        assert done.returncode != 0
        assert said in " ".join(done.stderr.split()), done.stderr
