"""Resident firmware: code is linked for the board's RAM, uploaded, run; no flashing."""

import numpy as np
import pytest
from aot_models import build, keyword_net, recurrent_net
from firmware_tools import needs

import slipway as tvm
from slipway import micro, relay, te
from slipway.errors import ArtifactError, RemoteError, ToolchainError
from slipway.micro.board import find_board
from slipway.micro.image import CodeSpace, ImageLinker, ImageParts, parse_code_space
from slipway.micro.image_parts import parts_of_module
from slipway.runtime.graph.graph_executor import GraphModule

DEVICES = [
    "host",
    "mps2-an386",
    pytest.param("riscv64-virt", marks=pytest.mark.long),
    pytest.param("mps3-an547", marks=pytest.mark.long),
    pytest.param("riscv32-virt", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    """A function from a device's name to its project, built once, and the target of its code."""
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("resident") / name
            if name == "host":
                made[name] = micro.generate_firmware("crt", folder)
            else:
                needs(name)
                options = {"board": name, "heap_bytes": 200000, "warning_as_error": True}
                made[name] = micro.generate_firmware("baremetal", folder, options)
            made[name].build()
            made[name].flash()
        return made[name], "c" if name == "host" else find_board(name).target

    yield get
    for project in made.values():
        project.close()


def twice(target, scale=2.0):
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * scale + 1.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target, name="twice")


def run_twice(module, device):
    x = tvm.nd.array(np.arange(64, dtype="float32"), device)
    y = tvm.nd.array(np.zeros(64, "float32"), device)
    module["twice"](x, y)
    return y.numpy(), (x, y)


@pytest.mark.parametrize("name", DEVICES)
def test_code_runs_without_flashing_and_its_memory_comes_back(firmware, name):
    project, target = firmware(name)
    with micro.Session(project.transport()) as session:
        empty = session.rpc.code_space()
        for scale in (2.0, 3.0, 4.0):
            module = session.load(twice(target, scale))
            found, arguments = run_twice(module, session.device)
            np.testing.assert_array_equal(found, np.arange(64, dtype="float32") * scale + 1)
            timer = module.time_evaluator("twice", session.device, number=3, repeat=2)
            assert timer(*arguments).mean > 0
            assert session.rpc.code_space().address > empty.address
            del module, timer
        assert session.rpc.code_space() == empty
        first = session.load(twice(target, 5.0))
        second = session.load(twice(target, 6.0))  # after the first, which is still in use
        assert run_twice(first, session.device)[0][1] == 6
        assert run_twice(second, session.device)[0][1] == 7
        with pytest.raises(RemoteError, match="twice"):
            second["twice"](arguments[0])


@pytest.mark.parametrize("name", DEVICES)
def test_whole_models_by_graph_and_ahead_of_time(firmware, name):
    project, target = firmware(name)
    mod, params = keyword_net()
    host = GraphModule(relay.build(mod, target="llvm", params=params)["default"](tvm.cpu(0)))
    data = np.random.default_rng(0).standard_normal((1, 1, 25, 10)).astype("float32")
    host.set_input("data", data)
    host.run()
    wanted = host.get_output(0).numpy()
    graph = relay.build(mod, target=target, params=params)
    with micro.Session(project.transport()) as session:
        for lib in (graph, build((mod, params), target=target)):
            model = GraphModule(session.load(lib)["default"](session.device))
            model.set_input("data", data)
            model.run()
            np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)
            assert model.module.time_evaluator("run", session.device, number=1)().mean > 0
            del model


@pytest.mark.parametrize("name", DEVICES)
def test_recurrent_layers_are_loops_on_the_device_too(firmware, name):
    project, target = firmware(name)
    mod, data, wanted = recurrent_net()
    with micro.Session(project.transport()) as session:
        for lib in (relay.build(mod, target=target), build((mod, {}), target=target)):
            model = GraphModule(session.load(lib)["default"](session.device))
            model.set_input("x", data)
            model.run()
            np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=0, atol=1e-6)
            del model


def test_exported_files_are_linked_for_the_device(firmware, tmp_path):
    project, target = firmware("mps2-an386")
    lib = twice(target)
    lib.export_library(tmp_path / "twice.a")
    archive = tmp_path / "k.tar"
    micro.export_model_library_format(build(keyword_net(), target=target), archive)
    operators = micro.export_model_library_format(lib, tmp_path / "op.tar")
    with micro.Session(project.transport()) as session:
        for path in (tmp_path / "twice.a", operators):
            session.upload(path)
            assert run_twice(session.load_module(path.name), session.device)[0][3] == 7
        assert session.rpc.listdir() == ["op.tar", "twice.a"]
        session.upload(archive)
        model = GraphModule(session.load_module("k.tar")["default"](session.device))
        model.run()
        assert model.get_output(0).numpy().sum() == pytest.approx(1, abs=1e-5)


def test_what_is_linked_already_or_for_another_machine_is_refused_with_what_to_do(
    firmware, tmp_path
):
    project, _ = firmware("mps2-an386")
    elsewhere = twice("llvm -mtriple=aarch64-linux-gnu")
    for name in ("twice.so", "twice.o", "twice.tar"):
        elsewhere.export_library(tmp_path / name)
    (tmp_path / "shared.o").write_bytes((tmp_path / "twice.so").read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07")
    takes = r'linked for its own memory.*Session.load\(lib\).*export_library\("model.o"\)'
    with micro.Session(project.transport()) as session:
        for name in ("twice.so", "twice.tar", "shared.o"):
            with pytest.raises(ArtifactError, match=takes):
                session.upload(tmp_path / name)
        wrong = r"aarch64 \(64 bits\), and mps2-an386 runs code for arm \(32 bits\): build it"
        with pytest.raises(ArtifactError, match=wrong):
            session.upload(tmp_path / "twice.o")
        with pytest.raises(ArtifactError, match=wrong):
            session.load(elsewhere)
        with pytest.raises(ArtifactError, match=r"model.onnx is no code that a device could run"):
            session.upload(tmp_path / "model.onnx")
        assert session.rpc.listdir() == []


def test_what_is_no_image_or_for_another_place_is_refused(firmware):
    project, target = firmware("host")
    linker, parts = ImageLinker.for_this_machine(), parts_of_module(twice(target))
    with micro.Session(project.transport()) as session:
        session.upload(b"\0" * 500, "zeros")
        with pytest.raises(RemoteError, match="'zeros' is no image for this device"):
            session.load_module("zeros")
        with pytest.raises(RemoteError, match="'nothing'"):
            session.load_module("nothing")
        space = session.rpc.code_space()
        elsewhere = CodeSpace(space.address + 4096, space.end, space.lent)
        session.upload(linker.link(parts, elsewhere), "moved")
        with pytest.raises(RemoteError, match="'moved' was linked for another address"):
            session.load_module("moved")
        image = linker.link(parts, session.rpc.code_space())
        session.upload(image[:200], "short")
        with pytest.raises(RemoteError, match="'short' was linked for another"):
            session.load_module("short")
        with pytest.raises(RemoteError, match="at most 8 images"):
            for number in range(9):
                session.upload(bytes(64), f"n{number}")
    with micro.Session(project.transport()) as session:
        assert session.rpc.listdir() == []


def test_too_little_memory_and_missing_functions_are_told_before_anything_travels():
    linker = ImageLinker.for_this_machine()
    parts = parts_of_module(twice("c"))
    space = parse_code_space("0x10000 0x10800\nmemcpy 0x400\n")
    assert space == CodeSpace(0x10000, 0x10800, {"memcpy": 0x400})
    with pytest.raises(ArtifactError, match=r"the code needs [\d,]+ bytes .* 2,048 bytes free"):
        linker.link(parts, space)
    text = "extern int other(void);\nint __tvm_ffi_f(void) { return other(); }\n"
    lacking = ImageParts(("f",), {"f.c": text.replace("(void) {", "(void *a) {")})
    with pytest.raises(ToolchainError, match="other"):
        linker.link(lacking, CodeSpace(0x10000, 0x90000, {}))
    with pytest.raises(ArtifactError, match="a dict cannot be sent to a device"):
        parts_of_module({})


def test_graph_model_is_part_of_the_firmware(tmp_path):
    board = find_board("mps2-an386")
    needs(board)
    mod, params = keyword_net()
    lib = relay.build(
        mod, target=board.target, params=params, executor=relay.backend.Executor("graph"),
        runtime=relay.backend.Runtime("crt"),
    )  # fmt: skip
    project = micro.generate_project(
        "baremetal", lib, tmp_path / "p",
        {"board": board.name, "project_type": "host_driven", "heap_bytes": 200000},
    )  # fmt: skip
    project.build()
    project.flash()
    data = np.random.default_rng(0).standard_normal((1, 1, 25, 10)).astype("float32")
    host = GraphModule(relay.build(mod, target="llvm", params=params)["default"](tvm.cpu(0)))
    host.set_input("data", data)
    host.run()
    with micro.Session(project.transport()) as session:
        library = session.get_system_lib()
        model = micro.create_local_graph_executor(lib.get_graph_json(), library, session.device)
        assert isinstance(model, GraphModule)
        model.set_input("data", data)
        model.run()
        np.testing.assert_allclose(
            model.get_output(0).numpy(), host.get_output(0).numpy(), rtol=1e-5, atol=1e-6
        )
    project.close()
