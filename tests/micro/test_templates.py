"""The templates around the two generated files: host process, cmake, Zephyr, Arduino."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from aot_models import build, keyword_net

import slipway as tvm
from slipway import micro, relay
from slipway.micro.project_api.server import ServerError
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.fixture(scope="module")
def model():
    return build(keyword_net())


def test_crt_template_runs_the_model_in_a_process(model, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    template = micro.get_microtvm_template_projects("crt")
    project = micro.generate_project(template, model, tmp_path / "p", {})
    project.build()
    project.flash()
    data = np.random.default_rng(3).standard_normal((1, 1, 25, 10)).astype("float32")
    mod, params = keyword_net()
    host = GraphModule(relay.build(mod, target="llvm", params=params)["default"](tvm.cpu(0)))
    with micro.Session(project.transport()) as session:
        assert session.rpc.key == "host"
        device = GraphModule(session.create_aot_executor())
        for module in (host, device):
            module.set_input("data", data)
            module.run()
        np.testing.assert_allclose(
            device.get_output(0).numpy(), host.get_output(0).numpy(), rtol=1e-5, atol=1e-6
        )
    project.close()


def test_cmake_template_builds_a_library_that_links(model, tmp_path):
    for tool in ("cmake", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    project = micro.generate_project("cmake", model, tmp_path / "p", {})
    project.build()
    with pytest.raises(ServerError, match="nothing to flash"):
        project.flash()
    project.close()
    main = tmp_path / "main.c"
    main.write_text(
        '#include "tvmgen_default.h"\nstatic float in[250], out[12];\nint main(void) {\n'
        "  struct tvmgen_default_inputs i = {in};\n  struct tvmgen_default_outputs o = {out};\n"
        "  return tvmgen_default_run(&i, &o);\n}\n"
    )
    include = tmp_path / "p/model/codegen/host/include"
    library = tmp_path / "p/build/libslipway_default.a"
    exe = tmp_path / "main"
    subprocess.run(["gcc", "-I", include, "-o", exe, main, library], check=True)
    subprocess.run([exe], check=True)


def test_zephyr_template_lays_out_an_application_and_says_what_building_needs(
    model, tmp_path, monkeypatch
):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    options = {"board": "nucleo_l4r5zi", "project_type": "example_project"}
    project = micro.generate_project("zephyr", model, tmp_path / "p", options)
    text = (tmp_path / "p/CMakeLists.txt").read_text()
    assert "find_package(Zephyr" in text
    assert "project(slipway_default)" in text
    with pytest.raises(ServerError, match="ZEPHYR_BASE"):
        project.build()
    project.close()


ARDUINO_STUB = """
#pragma once
#include <stdint.h>
#include <stddef.h>
#define HEX 16
struct SerialPort {
  void begin(unsigned long) {}
  template <typename T> void print(T) {}
  template <typename T> void print(T, int) {}
  void println() {}
  template <typename T> void println(T) {}
};
static SerialPort Serial;
inline void delay(unsigned long) {}
"""


@pytest.mark.parametrize(
    ("compiler", "c_compiler"),
    [("g++", "gcc"), ("clang++", "clang"), ("arm-none-eabi-g++", "arm-none-eabi-gcc")],
)
def test_arduino_template_compiles_against_a_core(compiler, c_compiler, model, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    options = {"board": "nano33ble", "project_type": "example_project"}
    micro.generate_project(
        template_dir="arduino",
        module=model,
        generated_project_dir=tmp_path / "kws",
        options=options,
    ).close()
    (tmp_path / "Arduino.h").write_text(ARDUINO_STUB)
    core = ["-mcpu=cortex-m4", "-mthumb"] if compiler.startswith("arm") else []
    core += ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    flags = [*core, "-x", "c++", "-std=gnu++11", "-include", tmp_path / "Arduino.h"]
    subprocess.run([compiler, *flags, tmp_path / "kws/kws.ino"], check=True)
    sources = sorted((tmp_path / "kws/src").rglob("*.c"))
    assert sources
    for source in sources:
        subprocess.run([c_compiler, *core, "-std=gnu11", source], check=True)


def test_arduino_build_without_the_tool_says_where_it_comes_from(model, tmp_path):
    options = {
        "board": "nano33ble",
        "project_type": "example_project",
        "arduino_cli_cmd": os.fspath(tmp_path / "arduino-cli"),
    }
    project = micro.generate_project("arduino", model, tmp_path / "kws", options)
    with pytest.raises(ServerError, match=r"arduino-cli.* is not installed.*arduino\.github\.io"):
        project.build()
    project.close()


NUCLEO = "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F446RE"


@pytest.mark.parametrize(
    ("board", "full"), [("nano33ble", "arduino:mbed_nano:nano33ble"), (NUCLEO, NUCLEO)]
)
def test_arduino_build_and_flash_call_the_tool_with_the_board(board, full, model, tmp_path):
    """A stand-in for arduino-cli records how it is called."""
    tool = tmp_path / "arduino-cli"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    tool.chmod(0o755)
    options = {
        "board": board,
        "project_type": "example_project",
        "arduino_cli_cmd": os.fspath(tool),
        "port": "/dev/ttyACM7",
    }
    project = micro.generate_project("arduino", model, tmp_path / "kws", options)
    project.build()
    project.flash()
    project.close()
    compiled, uploaded = (tmp_path / "calls").read_text().splitlines()
    assert compiled.startswith(f"compile --fqbn {full} ")
    assert f"--fqbn {full} ." in (tmp_path / "kws/README.md").read_text()
    assert "upload" in uploaded
    assert "--port /dev/ttyACM7" in uploaded


def test_unknown_arduino_board_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'nano33ble'"):
        micro.generate_project(
            "arduino",
            model,
            tmp_path / "p",
            {"board": "nano33bel", "project_type": "example_project"},
        )
