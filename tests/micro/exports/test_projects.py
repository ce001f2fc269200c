"""Models in the build systems of vendors, with stand-ins for their headers and commands."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from aot_models import build, quantized_net, residual_net

from slipway import micro
from slipway.errors import ArgumentValueError, ToolchainError
from slipway.libinfo import find_crt_include_path
from slipway.micro.baremetal import BaremetalHandler
from slipway.micro.exports.projects import CmsisPackHandler, EspIdfHandler, PlatformIOHandler
from slipway.micro.library_projects import ArduinoHandler, CMakeHandler
from slipway.micro.model_library_format import export_model_library_format

ARDUINO = """
#pragma once
#include <stdint.h>
#include <stdio.h>
#define HEX 16
struct SerialPort {
  void begin(unsigned long) {}
  void print(const char *text) { fputs(text, stdout); }
  void print(unsigned value, int) { printf("%x", value); }
  void print(long value) { printf("%ld", value); }
  void print(double value, int digits) { printf("%.*f", digits, value); }
  void println(const char *text) { puts(text); }
};
static SerialPort Serial;
inline void delay(unsigned) {}
"""
ESP = {
    "freertos/FreeRTOS.h": "#define pdMS_TO_TICKS(ms) (ms)\n",
    "freertos/task.h": """
#include <stdlib.h>
static inline void vTaskDelay(int t) { exit(t != 1000); }
""",
    "tools/cmake/project.cmake": """
set(CMAKE_C_FLAGS "-Wall -Wextra -Werror")
enable_language(C)
macro(idf_component_register)
  cmake_parse_arguments(R "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  get_filename_component(COMPONENT_LIB ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_library(${COMPONENT_LIB} STATIC ${R_SRCS})
  target_include_directories(${COMPONENT_LIB} PUBLIC ${R_INCLUDE_DIRS} $ENV{IDF_PATH})
  target_link_libraries(${COMPONENT_LIB} PUBLIC ${R_REQUIRES})
endmacro()
macro(project name)
  _project(${name} C)
  file(GLOB parts ${CMAKE_SOURCE_DIR}/components/*)
  foreach(part ${parts} ${CMAKE_SOURCE_DIR}/main)
    get_filename_component(own ${part} NAME)
    add_subdirectory(${part} ${own})
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/start.c "void app_main(void); int main(void) { app_main(); }")
  add_executable(app ${CMAKE_BINARY_DIR}/start.c)
  target_link_libraries(app main)
endmacro()
""",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    lib = build(quantized_net(), mod_name="kws", target="c -mcpu=cortex-m4")
    return export_model_library_format(lib, tmp_path_factory.mktemp("export") / "m.tar")


HANDLERS = {
    "platformio": PlatformIOHandler,
    "espidf": EspIdfHandler,
    "cmsis": CmsisPackHandler,
    "cmake": CMakeHandler,
    "arduino": ArduinoHandler,
    "baremetal": BaremetalHandler,
}


def made(template, archive, folder, **options):
    """Generate a project in this process; test_templates.py does it through servers."""
    handler = HANDLERS[template](Path(micro.get_microtvm_template_projects(template)))
    crt = Path(find_crt_include_path()[0])
    handler.generate_project(archive, crt, folder, options)
    return folder


def need(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def readme_compiles(folder, work):
    """The example of the project's README is C that takes the project's header."""
    text = (folder / "README.md").read_text().partition("```c\n")[2].partition("```")[0]
    (work / "readme.c").write_text(text)
    header = next(folder.rglob("tvmgen_kws.h"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{header.parent}", "-fsyntax-only"]
    subprocess.run(["gcc", *flags, work / "readme.c"], check=True)


def test_platformio_project_compiles_and_runs(archive, tmp_path):
    need("g++")
    folder = made("platformio", archive, tmp_path / "p", board="nucleo_f446re")
    assert "platform = ststm32\nboard = nucleo_f446re" in (folder / "platformio.ini").read_text()
    assert json.loads((folder / "lib/kws/library.json").read_text())["headers"] == "tvmgen_kws.h"
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    (tmp_path / "start.cpp").write_text("void setup();void loop();int main(){setup();loop();}")
    library = folder / "lib/kws/src"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{library}", f"-I{tmp_path}"]
    subprocess.run(
        ["gcc", *flags, "-c", library / "kws_lib0.c", "-o", tmp_path / "m.o"], check=True
    )
    parts = [folder / "src/main.cpp", tmp_path / "start.cpp", tmp_path / "m.o"]
    subprocess.run(["g++", *flags, *parts, "-o", tmp_path / "app"], check=True)
    out = subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True).stdout
    values = [int(text) for text in out.removeprefix("output: ").split()]
    size = re.search(r"OUTPUT_SIZE (\d+)", (library / "tvmgen_kws.h").read_text(), re.ASCII)
    assert len(values) == int(size[1]), out
    assert min(values) < 0, out  # int8 in decimal, not its bytes in hex
    readme_compiles(folder, tmp_path)


def test_espidf_component_compiles_and_runs(archive, tmp_path, monkeypatch):
    need("cmake")
    folder = made("espidf", archive, tmp_path / "p", board="esp32c3")
    for name, text in ESP.items():
        path = tmp_path / "idf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("IDF_PATH", str(tmp_path / "idf"))
    out = tmp_path / "out"
    for command in (["-S", folder, "-B", out], ["--build", out]):
        subprocess.run(["cmake", *map(str, command)], check=True, capture_output=True)
    printed = subprocess.run([out / "app"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("output (int8):")
    readme_compiles(folder, tmp_path)
    text = (folder / "README.md").read_text()
    assert "as an espidf project for esp32c3" in text
    assert "`idf.py set-target esp32c3 build`" in text


def test_a_pack_holds_what_its_description_lists(archive, tmp_path):
    folder = made("cmsis", archive, tmp_path / "p")
    CmsisPackHandler(folder).build({})
    with zipfile.ZipFile(folder / "build/Slipway.kws.1.0.0.pack") as pack:
        names = set(pack.namelist())
        root = ET.fromstring(pack.read("Slipway.kws.pdsc"))
    listed = {file.get("name") for file in root.iter("file")}
    assert listed == {"include/tvmgen_kws.h", "source/kws_lib0.c"}
    assert names == listed | {"Slipway.kws.pdsc", "LICENSE.txt"}
    assert root.find("./conditions/condition/require").get("Dcore") == "Cortex-M4"
    first = (folder / "build/Slipway.kws.1.0.0.pack").read_bytes()
    CmsisPackHandler(folder).build({})
    assert (folder / "build/Slipway.kws.1.0.0.pack").read_bytes() == first


@pytest.mark.parametrize("template", ["cmake", "arduino", "baremetal"])
def test_readme_of_the_other_templates_compiles(template, archive, tmp_path):
    options = {
        "arduino": {"board": "due", "project_type": "example_project"},
        "baremetal": {"board": "mps2-an386", "project_type": "example_project"},
    }
    folder = made(template, archive, tmp_path / "p", **options.get(template, {}))
    readme_compiles(folder, tmp_path)
    text = (folder / "README.md").read_text()
    assert "| constants (flash) |" in text
    sources = {p.name for p in folder.rglob("*.c")} - {"kws_lib0.c"}
    board = {"main_example.c", "print.c", "setup.c", "startup_cortex_m.c", "uart_cmsdk.c"}
    assert sources == (board if template == "baremetal" else set())


def test_what_cannot_be_exported_says_why(archive, tmp_path, monkeypatch):
    with pytest.raises(ArgumentValueError, match="pio boards"):
        made("platformio", archive, tmp_path / "a", board="ours")
    lib = build(residual_net(), "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4")
    objects = export_model_library_format(lib, tmp_path / "o.tar")
    with pytest.raises(ArgumentValueError, match="for a target of kind c"):
        made("espidf", objects, tmp_path / "b", board="esp32c3")
    monkeypatch.delenv("IDF_PATH", raising=False)
    with pytest.raises(ToolchainError, match="IDF_PATH"):
        EspIdfHandler(made("espidf", archive, tmp_path / "c", board="esp32c3")).build({})
