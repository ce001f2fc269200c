"""The runtime in C: one page of functions, and two files that any project drops in."""

import re
import subprocess

import pytest

from slipway.toolchain.amalgamation import write_amalgamation

from . import foreign

STRICT = ["-Wmissing-prototypes", "-Wstrict-prototypes", "-Wold-style-definition", "-Wvla"]
CHECKS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


@pytest.fixture(params=["gcc", "clang"])
def compiler(request):
    return foreign.needed(request.param)


@pytest.fixture(scope="module")
def amalgamation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("amalgamation")
    write_amalgamation(folder)
    return folder


def test_two_files_run_a_model(compiler, amalgamation, model, sized_model, tmp_path):
    """Under sanitizers, without a warning; each mistake gets its error, and nothing leaks."""
    damaged = tmp_path / "damaged.tar"
    content = bytearray(model.archive.read_bytes())
    content[len(content) // 2] ^= 0x10
    damaged.write_bytes(content)
    program = tmp_path / "program"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *STRICT, *CHECKS]
    sources = [str(foreign.HERE / "c_program.c"), str(amalgamation / "slipway.c")]
    command = [compiler, *flags, "-I", str(amalgamation), *sources, "-o", str(program)]
    done = subprocess.run([*command, "-pthread", "-ldl"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = EXPECTED.format(empty="", scores=" ".join(f"{value:.6f}" for value in model.output))
    for path in (model.library, model.archive):
        printed = foreign.run([program, path, damaged.name, sized_model], cwd=tmp_path)
        assert re.sub(r"is damaged: .*", "is damaged", printed) == expected


EXPECTED = """\
1 input 4
{scores} 
10 ExecutionError: the model has no input 'inputs'. Its inputs are: 'input'.
12 ExecutionError: input input is float32 of shape (1, 3, 8, 8), which takes 768 bytes, and 3 were given.
10 IndexError: there is no output 1, the model has 1
12 ExecutionError: output 0 is float32 of shape (1, 4), which takes 16 bytes, and 4 were given.
1 TypeError: slw_model_set_input: the data is a null pointer.
1 TypeError: slw_model_get_output: the data is a null pointer.
1 TypeError: slw_model_open: the path is a null pointer.
1 TypeError: slw_model_open: the place for the model is a null pointer.
1 TypeError: slw_model_set_input: the model is a null pointer.
1 TypeError: slw_model_run: the model is a null pointer.
1 TypeError: slw_model_get_output: the model is a null pointer.
1 TypeError: slw_module_open takes a path and a place for the module, not null
1 TypeError: slw_module_get_function takes a module, a name and a place for the function, not null
1 ValueError: -1 threads: there may be 1 to 256, or 0 for the machine's
0 0 1
10 FileNotFoundError: cannot open no/such/file.so: No such file or directory. Check the path; export_library writes such files.
11 ArtifactError: damaged.tar is damaged
2 gain named 12
 [1 3] 1 -2 6 [2] 6 1 [3] 2 -4 12
14 ExecutionError: run: the input 'gain' of shape (n, 3) does not have the sizes of what was set last: with them it is (3, 3). Set it so; inputs agree about a size.
 [3 3] 1 -2 6 -4 -5 12 7 -8 18 [5] 18 12 7 6 1 [3] 10 -34 84
14 ExecutionError: set_input: 'x' has shape (n, 3) in this model, got (5, 3): n is 1 to 4. Compile the model with a wider range for more.
12 ExecutionError: input x is float32 of shape (3, 3), which takes 36 bytes, and 12 were given.
12 ExecutionError: what is given for input x is float32 of shape (2, 3), which takes 24 bytes, and 12 were given.
14 ExecutionError: set_input: 'x' has shape (n, 3) in this model, got (3,). Reshape it, or compile the model for that shape.
1 TypeError: slw_model_set_input_shaped: the shape is a null pointer.
10 ExecutionError: the model has no input 'total'. Its inputs are: 'x', 'gain'.
 [3 3] 1 -2 6 -4 -5 12 7 -8 18 [5] 18 12 7 6 1 [3] 8 -30 72
1 TypeError: slw_model_reset_states: the model is a null pointer.
-1 ValueError: the global function 'my_add' is registered already; override it, or choose another name.
7 0 1
-1 TypeError: my_add takes two integers
-1 TypeError: my_add takes two integers
a text that is longer than eight bytes 11
14 12
-1 TypeError: the call of a function got a null handle instead of a function
name my_add
name module._GetSystemLib
name module._LoadFromFile
name runtime.ModuleLoadFromFile
name runtime.NumThreads
name runtime.SystemLib
name runtime.config_threadpool
name tvm.graph_executor.create
name tvm.graph_runtime.create
1
0 {empty}
101
-1 ValueError: there is no global function 'my_add' to remove
5 13 1
406 1 -1
"""  # noqa: E501, W291
