"""Arduino and Zephyr projects with stand-ins for their cores: compiled strictly, linked, and run.

The stand-ins are headers of a few lines that put the serial line on standard input and output.
"""

import shutil
import subprocess

import numpy as np
import pytest
from aot_models import build, keyword_net

import slipway as tvm
from slipway import micro, relay
from slipway.micro.emulator import SerialProcess
from slipway.micro.project_api.server import ServerError
from slipway.runtime.graph.graph_executor import GraphModule

ARDUINO = """
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
struct SerialPort {
  void begin(unsigned long) {}
  size_t write(uint8_t byte) { return ::write(1, &byte, 1) == 1; }
  size_t print(const char *text) { size_t n = 0; while (text[n]) write(text[n++]); return n; }
  int read() {
    uint8_t byte;
    if (::read(0, &byte, 1) != 1) exit(0);
    return byte;
  }
};
static SerialPort Serial;
inline unsigned long micros() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000ul + now.tv_nsec / 1000;
}
"""

ZEPHYR = {
    "zephyr/device.h": """
#pragma once
struct device { int unused; };
#define DT_CHOSEN(name) stand_in_##name
#define DEVICE_DT_GET(node) (&node)
static const struct device stand_in_zephyr_console;
""",
    "zephyr/drivers/uart.h": """
#pragma once
#include <stdlib.h>
#include <unistd.h>
#include <zephyr/device.h>
static inline void uart_poll_out(const struct device *dev, unsigned char byte) {
  (void)dev;
  if (write(1, &byte, 1) != 1) exit(1);
}
static inline int uart_poll_in(const struct device *dev, unsigned char *byte) {
  (void)dev;
  if (read(0, byte, 1) != 1) exit(0);
  return 0;
}
""",
    "zephyr/kernel.h": """
#pragma once
#include <stdint.h>
#include <time.h>
static inline int64_t k_uptime_ticks(void) { return (int64_t)clock(); }
static inline uint64_t k_ticks_to_ns_floor64(uint64_t t) {
  return t * (1000000000u / CLOCKS_PER_SEC);
}
""",
    "zephyr/sys/printk.h": "#pragma once\n#include <stdio.h>\n#define printk printf\n",
}
STRICT = ["-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
DATA = np.random.default_rng(3).standard_normal((1, 1, 25, 10)).astype("float32")


@pytest.fixture(scope="module")
def model():
    return build(keyword_net())


@pytest.fixture(scope="module")
def wanted():
    mod, params = keyword_net()
    host = GraphModule(relay.build(mod, target="llvm", params=params)["default"](tvm.cpu(0)))
    host.set_input("data", DATA)
    host.run()
    return host.get_output(0).numpy()


def tools(*names):
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


def run(*command):
    subprocess.run([*map(str, command)], check=True)


def drive(program, wanted):
    process = SerialProcess([str(program)])
    try:
        with micro.Session(process) as session:
            model = GraphModule(session.create_aot_executor())
            model.set_input("data", DATA)
            model.run()
            np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)
            timer = model.module.time_evaluator("run", session.device, number=5)
            assert timer().mean > 0
            with pytest.raises(Exception, match="no memory for uploaded code"):
                session.rpc.code_space()
    finally:
        process.close()


def test_arduino_sketch_serves_sessions(model, wanted, tmp_path):
    tools("gcc")
    cxx = shutil.which("g++") or shutil.which("clang++")
    if cxx is None:
        pytest.skip("neither g++ nor clang++ is installed")
    options = {"board": "nano33ble", "project_type": "host_driven", "heap_bytes": 32768}
    micro.generate_project("arduino", model, tmp_path / "kws", options).close()
    sketch = tmp_path / "kws"
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    objects = []
    for source in sorted((sketch / "src").rglob("*.c")):  # as arduino-cli does: no include paths
        objects.append(tmp_path / f"{source.stem}.o")
        core = ['-DBOARD_NAME="the core\'s own"', "-Dprintf=iprintf"]  # as that of the Due does
        run("gcc", "-std=gnu11", "-O1", *core, *STRICT, "-c", source, "-o", objects[-1])
    main = tmp_path / "main.cpp"
    main.write_text("void setup();\nvoid loop();\nint main() { setup(); for (;;) loop(); }\n")
    flags = ["-std=gnu++11", *STRICT, "-include", tmp_path / "Arduino.h"]
    run(cxx, *flags, "-x", "c++", "-c", sketch / "kws.ino", "-o", tmp_path / "ino.o")
    run(cxx, "-o", tmp_path / "board", tmp_path / "ino.o", main, *objects)
    drive(tmp_path / "board", wanted)


def test_arduino_takes_no_graph_models(tmp_path):
    mod, params = keyword_net()
    lib = relay.build(mod, target="c", params=params)
    options = {"board": "nano33ble", "project_type": "host_driven"}
    with pytest.raises(ServerError, match="compiled ahead of time"):
        micro.generate_project("arduino", lib, tmp_path / "p", options)


@pytest.mark.parametrize("kind", ["example_project", "host_driven"])
def test_zephyr_application_compiles_and_runs(model, wanted, kind, tmp_path):
    tools("gcc")
    options = {"board": "nucleo_l4r5zi", "project_type": kind}
    micro.generate_project("zephyr", model, tmp_path / "p", options).close()
    for name, text in ZEPHYR.items():
        path = tmp_path / "stub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project = tmp_path / "p"
    cmake = (project / "CMakeLists.txt").read_text()
    assert "@" not in cmake
    listed = cmake.split("target_sources(app PRIVATE ")[1].split(")")[0].split()
    sources = [project / name for name in listed]
    sources += [*project.glob("model/codegen/host/src/*.c"), *project.glob("crt/src/*.c")]
    includes = ["stub", "p/src", "p/model/codegen/host/include", "p/crt/include"]
    defines = ["-DSLW_STATIC", "-DSLW_NO_THREADS", "-DSLW_RPC_MESSAGE_BYTES=512"]
    flags = [*STRICT, *defines, *(f"-I{tmp_path / i}" for i in includes)]
    run("gcc", "-std=gnu11", "-O1", *flags, "-o", tmp_path / "board", *sources)
    if kind == "host_driven":
        drive(tmp_path / "board", wanted)
        return
    said = subprocess.run([tmp_path / "board"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("output (float32):")
    values = np.frombuffer(bytes.fromhex(said.split(":")[1]), "float32")
    assert values.sum() == pytest.approx(1, abs=1e-5)


# As cmake/modules/extensions.cmake of Zephyr declares them (2.2 to 4.2), without its own targets.
ZEPHYR_CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(stand_in C)
set(CONFIG_SLIPWAY ON)
function(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name} PARENT_SCOPE)
  add_library(${name} STATIC)
endfunction()
function(zephyr_library_sources source)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${source} ${ARGN})
endfunction()
function(zephyr_library_compile_definitions item)
  target_compile_definitions(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${item} ${ARGN})
endfunction()
function(zephyr_include_directories)
  target_include_directories(slipway PRIVATE ${ARGN})
endfunction()
function(zephyr_library_link_libraries item)
  target_link_libraries(${ZEPHYR_CURRENT_LIBRARY} PUBLIC ${item} ${ARGN})
endfunction()
add_subdirectory(p/module)
"""


@pytest.mark.parametrize("kind", ["example_project", "host_driven"])
def test_zephyr_module_is_taken_by_cmake(model, kind, tmp_path):
    """A model without objects gave a function no argument that needs one: no Zephyr took it."""
    tools("cmake", "gcc")
    options = {"board": "nucleo_l4r5zi", "project_type": kind}
    micro.generate_project("zephyr", model, tmp_path / "p", options).close()
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR_CMAKE)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    assert list(tmp_path.glob("build/**/libslipway.a"))


def test_generated_c_refuses_an_int_of_16_bits(model, tmp_path):
    """Its integers are promoted to an int: on an AVR the numbers would be others."""
    tools("gcc")
    options = {"board": "arduino:avr:mega", "project_type": "example_project"}
    micro.generate_project("arduino", model, tmp_path / "p", options).close()
    (source,) = (tmp_path / "p/src").glob("*_lib0.c")
    text = source.read_text().replace("sizeof(int)", "sizeof(short)")  # as there
    command = ["gcc", "-fsyntax-only", "-x", "c", "-I", tmp_path / "p/src", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert "an int of 32 bits" in done.stderr
