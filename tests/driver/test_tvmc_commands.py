"""tvmc's command lines, as its tutorials write them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from slipway.driver import tvmc
from slipway.driver.tvmc import commands
from slipway.driver.tvmc.commands import main
from slipway.version import VERSION

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(4, 3, 3, 3)).astype("float32")
X = RNG.normal(size=(1, 3, 8, 8)).astype("float32")
SHAPES = ("--input-shapes", "data:[1,3,8,8]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    nodes = [helper.make_node("Conv", ["data", "w"], ["y"], pads=[1, 1, 1, 1])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", c, 8, 8])
              for n, c in (("data", 3), ("y", 4))]  # fmt: skip
    graph = helper.make_graph(nodes, "g", values[:1], values[1:],
                              [numpy_helper.from_array(WEIGHT, "w")])  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
        tmp_path / "model.onnx",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_is_compiled_and_run(folder, capsys):
    np.savez("in.npz", data=X)
    assert main(["compile", "--target", "llvm", *SHAPES, "--output", "m.tar", "model.onnx"]) == 0
    run = ["run", "--inputs", "in.npz", "--output", "out.npz", "--print-time", "--repeat", "2"]
    assert main([*run, "--print-top", "2", "m.tar"]) == 0
    wanted = tvmc.run(tvmc.TVMCPackage("m.tar"), "cpu", inputs={"data": X}).get_output("output_0")
    with np.load("out.npz") as made:
        np.testing.assert_array_equal(made["output_0"], wanted)
    said = capsys.readouterr().out
    assert "Execution time summary" in said
    assert f"{wanted.argmax()}: {wanted.max()}" in said


def test_records_of_a_search_are_used(folder):
    tune = ["tune", "--target", "llvm", *SHAPES, "--trials", "1", "--number", "1", "-o", "r.json"]
    assert main([*tune, "model.onnx"]) == 0
    done = main(["compile", "--target", "llvm", *SHAPES, "--tuning-records", "r.json", "-O2",
                 "--desired-layout=NHWC", "--dump-code", "relay", "model.onnx"])  # fmt: skip
    assert done == 0
    assert "conv2d" in (folder / "module.tar.relay").read_text()


@pytest.fixture
def compiled(monkeypatch):
    """What a line asks `compile_model` for, which does nothing."""
    seen = {}

    def compile_model(model, target, **options):
        seen.update(options, target=target)
        return tvmc.TVMCPackage("model.onnx")

    monkeypatch.setattr("slipway.driver.tvmc.commands.compile_model", compile_model)
    return seen


def test_options_of_targets_executors_and_runtimes(folder, compiled):
    line = ["compile", "--target=llvm", "--target-llvm-mcpu=skylake", "--target-llvm-num-cores",
            "2", "--target-host", "llvm", *SHAPES, "--executor", "aot",
            "--executor-aot-unpacked-api=1", "--executor-aot-interface-api", "c", "--runtime=crt",
            "--runtime-crt-system-lib", "1", "--module-name", "foo",
            "--pass-config", "tir.disable_vectorize=1", "model.onnx"]  # fmt: skip
    assert main(line) == 0
    assert compiled["additional_target_options"] == {"llvm": {"mcpu": "skylake", "num-cores": "2"}}
    assert (compiled["executor"].name, compiled["executor"]["interface-api"]) == ("aot", "c")
    assert (compiled["runtime"].name, compiled["runtime"]["system-lib"]) == ("crt", True)
    assert (compiled["target_host"], compiled["mod_name"]) == ("llvm", "foo")
    assert compiled["pass_context_configs"] == ["tir.disable_vectorize=1"]


def test_options_that_take_many_values_leave_the_models_name(folder, compiled):
    line = ["compile", "--target=llvm", *SHAPES, "--desired-layout", "NHWC:HWIO", "NCHW",
            "--mixed-precision", "--mixed-precision-ops", "nn.conv2d", "nn.dense",
            "--mixed-precision-acc-type", "float32", "--desired-layout-ops", "nn.conv2d",
            "nn.max_pool2d", "model.onnx"]  # fmt: skip
    assert main(line) == 0
    assert compiled["desired_layout"] == ["NHWC:HWIO", "NCHW"]
    assert compiled["desired_layout_ops"] == ["nn.conv2d", "nn.max_pool2d"]
    assert compiled["mixed_precision"]
    assert compiled["mixed_precision_ops"] == ["nn.conv2d", "nn.dense"]


def test_the_pools_of_a_program(folder, compiled):
    line = ["compile", "--target=c", *SHAPES, "--executor=aot", "--runtime=crt",
            "--executor-aot-constant-byte-alignment=32", "--workspace-pools=sram,dram",
            "--workspace-pools-targets=sram:c", "--workspace-pools-targets=dram:c,llvm",
            "--workspace-pools-size-hint-bytes=sram:4096",
            "--workspace-pools-read-latency-cycles=dram:7",
            "--workspace-pools-target-burst-bytes=sram:c:8", "model.onnx"]  # fmt: skip
    assert main(line) == 0
    sram, dram = compiled["workspace_pools"].pools
    assert (sram.pool_name, sram.size_bytes, dram.size_bytes) == ("sram", 4096, None)
    assert dram.pool_info_properties.read_latency_cycles == 7
    assert list(sram.pool_info_properties.target_burst_bytes.values()) == [8]
    assert compiled["executor"]["constant-byte-alignment"] == 32


def test_options_of_a_file_hold_where_the_line_does_not_give_them(folder, compiled):
    (folder / "usual.json").write_text(
        """{"targets": [{"kind": "llvm", "mcpu": "skylake"}], "opt-level": "1",
        "executor": {"kind": "aot", "interface-api": "c"}, "runtime": {"kind": "crt"},
        "pass-config": {"tir.disable_vectorize": "1"}, "print-pass-times": true}"""
    )
    assert main(["compile", "--config", "usual", *SHAPES, "-O2", "model.onnx"]) == 0
    assert (compiled["target"], compiled["opt_level"]) == ("llvm", 2)
    assert compiled["additional_target_options"] == {"llvm": {"mcpu": "skylake"}}
    assert (compiled["executor"].name, compiled["executor"]["interface-api"]) == ("aot", "c")
    assert compiled["pass_context_configs"] == ["tir.disable_vectorize=1"]
    assert compiled["print_pass_times"]


def test_options_that_have_a_name(folder, compiled, monkeypatch):
    """Those of a folder of one's own come first; without a file there is no name."""
    assert main(["compile", "--config", "default", *SHAPES, "model.onnx"]) == 0
    assert compiled["target"] == "llvm"
    (folder / "own" / "lab").mkdir(parents=True)
    (folder / "own" / "lab" / "default.json").write_text('{"targets": [{"kind": "c"}]}')
    monkeypatch.setenv("TVM_CONFIGS_JSON_DIR", str(folder / "own"))
    assert main(["compile", "--config=default.json", *SHAPES, "model.onnx"]) == 0
    assert compiled["target"] == "c"
    monkeypatch.setenv("TVM_CONFIGS_JSON_DIR", str(folder / "nowhere"))
    assert main(["compile", "--config", "default", *SHAPES, "model.onnx"]) == 0
    assert compiled["target"] == "llvm"


def test_layouts_precision_and_times_of_passes_reach_the_compiler(folder, capsys):
    line = ["compile", "--target=llvm", *SHAPES, "--desired-layout", "NHWC:HWIO",
            "--desired-layout-ops", "nn.conv2d", "--mixed-precision", "--print-pass-times",
            "--dump-code=relay", "model.onnx"]  # fmt: skip
    assert main(line) == 0
    graph = (folder / "module.tar.relay").read_text()
    assert 'kernel_layout="HWIO"' in graph
    assert "float16" in graph
    assert "breakdown by pass:\nRemoveUnusedFunctions: " in capsys.readouterr().out


def test_a_library_before_the_target_takes_no_part(folder):
    line = ["compile", "--target=cmsis-nn,c", "--target-c-mcpu=cortex-m55", *SHAPES, "-f", "mlf",
            "--target-cmsis-nn-mcpu=cortex-m55", "--runtime=crt", "--executor=aot",
            "--dump-code=relay", "model.onnx"]  # fmt: skip
    with pytest.warns(UserWarning, match=r"no operator is handed to CMSIS-NN"):
        assert main(line) == 0
    assert "conv2d" in (folder / "module.tar.relay").read_text()


def test_an_archive_becomes_a_project(folder, capsys):
    line = ["compile", "--target=c", "--runtime=crt", "--executor=aot", *SHAPES, "-f", "mlf",
            "-o", "model.tar", "model.onnx"]  # fmt: skip
    assert main(line) == 0
    assert main(["micro", "create-project", "made", "model.tar", "crt",
                 "--project-option", "heap_bytes=65536"]) == 0  # fmt: skip
    assert (folder / "made" / "microtvm_api_server.py").exists()
    assert main(["micro", "create", "other", "model.tar", "crt",
                 "--project-option", "list_options"]) == 0  # fmt: skip
    assert "heap_bytes: Bytes for tensors." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run nothing.tar", "there is no package nothing.tar"),
        ("compile --target llvm model.onnx", "sizes of its inputs open"),
        ("compile --target llvm --input-shapes data=[1,3] model.onnx", "is not of the form data:"),
        ("compile --target llvm --input-shapes data:[1,x] model.onnx", "is not of the form data:"),
        ("compile --target llvm --target-llvm-mcpu", "--target-llvm-mcpu has no value"),
        ("compile --target llvm --input-shapes data:[1,3,8,8] --executor-aot-unpacked-api=1 "
         "model.onnx", "did not specify aot executor: --executor is graph"),
        ("compile --target llvm --executor=woof --input-shapes data:[1,3,8,8] model.onnx",
         'Executor "woof" is not defined: there are graph, aot'),
        ("compile --target llvm --target-opencl-max_num_threads=4 --input-shapes data:[1,3,8,8] "
         "model.onnx", "Passed --target-opencl-max_num_threads but did not specify opencl target"),
        ("tune --target llvm --target-c-mcpu=x --input-shapes data:[1,3,8,8] -o r model.onnx",
         "Passed --target-c-mcpu but did not specify c target"),
        ("compile --config none --target llvm model.onnx", "none.json cannot be read"),
        ("compile --target c --workspace-pools=a --input-shapes data:[1,3,8,8] model.onnx",
         "add --workspace-pools-targets=a:c"),
        ("compile --target c --workspace-pools-targets=a:c --input-shapes data:[1,3,8,8] "
         "model.onnx", "'a:c' is not NAME:VALUE of one of --workspace-pools, which names none"),
        ("compile --target c --workspace-pools=a --workspace-pools-targets=a:llvm "
         "--input-shapes data:[1,3,8,8] model.onnx", "the targets are c"),
        ("run --rpc-tracker here:x m.tar", "not of the form host:port"),
        ("micro create made model.tar template", "--template-dir is of the platform template"),
        ("micro create made model.tar crt --project-option heap", "'heap', which is not name="),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(folder, capsys, line, words):
    assert main(line.split()) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert words in said


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == VERSION


def test_a_search_is_for_the_target_with_its_options(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(commands, "tune_model", lambda model, target, **_: seen.append(target))
    line = [
        "tune",
        "--target",
        "llvm",
        "--target-llvm-mcpu=skylake",
        *SHAPES,
        "-o",
        "r",
        "model.onnx",
    ]
    with pytest.raises(TypeError):  # there is no file of records
        main(line)
    assert seen[0].mcpu == "skylake"
