"""Library, graph and parameters apart: the classic way to deploy a model from C++."""

import subprocess

import slipway as tvm
from slipway import relay
from slipway.relay.backend import Runtime

from . import foreign


def deployed(model, folder):
    """Write a model in pieces, and its kernels as an object that lists them; return one's name."""
    runtime = Runtime("cpp", {"system-lib": True})
    lib = relay.build(model.module, target="llvm", runtime=runtime, params=model.params)
    lib.export_library(str(folder / "model.so"))
    lib.lib.save(str(folder / "kernels.o"))
    (folder / "model.json").write_text(lib.get_graph_json())
    (folder / "model.params").write_bytes(relay.save_param_dict(lib.get_params()))
    return lib.compiled.functions[0]


def test_pieces_from_a_file_and_linked_in(model, tmp_path):
    """Both run the model; what is no graph is refused in words, and never ends the program."""
    name = deployed(model, tmp_path)
    compiler = foreign.needed("g++")
    source = foreign.CPP / "cpp_classic_deploy.cc"
    flags = ["-std=c++14", "-Wall", "-Wextra", "-Werror", f'-DLINKED_FUNCTION="{name}"']
    command = [compiler, *flags, *foreign.compile_flags(), str(source), str(tmp_path / "kernels.o")]
    program = str(tmp_path / "program")
    done = subprocess.run(
        [*command, "-o", program, *foreign.link_flags()], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    printed = foreign.run([program, tmp_path]).splitlines()
    outputs = " ".join(f"{value:.6f}" for value in model.output) + " "
    assert printed[:2] == [outputs, outputs]
    unreadable = "ArtifactError: the graph cannot be read: "
    for line, text in zip(
        printed[2:10],
        [
            f"{unreadable}it is not JSON",
            f"{unreadable}it is not JSON",
            f'{unreadable}there is no list "nodes"',
            f'{unreadable}"attrs" has not one shape, dltype and storage_id for each tensor',
            f'{unreadable}a "dltype" is no data type',
            f'{unreadable}one of "arg_nodes" is not a node',
            "ArtifactError: the model's graph needs the function 'none_default_",
            "TypeError: tvm.graph_executor.create takes the graph's JSON, a module",
        ],
        strict=True,
    ):
        assert line.startswith(text)
    assert printed[10:] == ["TypeError", "1", "7", "damaged graphs are refused"]


def test_objects_that_list_nothing_need_no_runtime(tmp_path):
    """Nothing is asked for without the option; with it a program may still do without the list."""
    x = tvm.te.placeholder((4,), name="x")
    schedule = tvm.te.create_schedule(tvm.te.compute((4,), lambda i: x[i] + 1).op)
    wanted = {}
    for target in ("llvm", "llvm -system-lib"):
        path = tmp_path / "kernels.o"
        tvm.build(schedule, [x, schedule.outputs[0].output(0)], target).save(str(path))
        listed = subprocess.run(["nm", "-u", str(path)], capture_output=True, text=True, check=True)
        wanted[target] = listed.stdout.split()
    assert wanted["llvm"] == []
    assert "TVMBackendRegisterSystemLibSymbol" in wanted["llvm -system-lib"]
    assert set(wanted["llvm -system-lib"][::2]) == {"w"}, "a symbol that the program must have"
    main = tmp_path / "main.c"
    main.write_text("int main(void) { return 0; }\n")
    program = tmp_path / "program"
    subprocess.run([foreign.needed("cc"), str(main), str(path), "-o", str(program)], check=True)
    foreign.run([program])


def test_firmware_lists_nothing(tmp_path):
    """Its own table says what is in it, and its start may run no constructors."""
    x = tvm.te.placeholder((4,), name="x")
    schedule = tvm.te.create_schedule(tvm.te.compute((4,), lambda i: x[i] + 1).op)
    base = "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4"
    objects = []
    for target in (base, f"{base} -system-lib"):
        path = tmp_path / "kernels.o"
        tvm.build(schedule, [x, schedule.outputs[0].output(0)], target).save(str(path))
        objects.append(b"RegisterSystemLib" in path.read_bytes())
    assert objects == [False, False]
